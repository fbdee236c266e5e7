// Measures far memory: the latency of the host's uncached reads, its best bandwidth of prefetched reads, and, by a
// near-memory program (measure.c), latency and bandwidth of a copy engine. Optional argument: number of lines to read;
// it is rounded down to a multiple of 128.

#include "nearmemory/programs/bench.h"

// Clock period of this core, and of the near-memory core's counter, in femtoseconds: 2 GHz and 300 MHz on RISC-V, the
// clocks of the shipped platform nearmemory/enzian.toml; in a native program both count nanoseconds.
#ifdef __riscv
#define CYCLE 500000
#define TICK 3333333
#else
#define CYCLE 1000000
#define TICK 1000000
#endif

// Pipe from the near-memory core, as in measure.c.
#define OUT 500
#define OUT_LINES 4

// Number of lines to read, and number of reads for a latency.
static uint64_t lines = 16384, reads = 1000;

// Latency of dependent uncached reads, in picoseconds.
static uint64_t latency(volatile uint64_t *far) {
  volatile uint64_t *words = nm_uncached(far);
  uint64_t index = 0, start = cycles();
  for (uint64_t i = 0; i < reads; i++) index = words[(index + i) * 16];
  return (cycles() - start) * CYCLE / 1000 / reads + index;
}

// Bandwidth of sequential reads in kB/s, with a prefetch distance in lines, into the core's own cache (`first_level`)
// or the last-level cache. One word per line is read; eight lines are loaded before any is used, so that the in-order
// core waits for them once.
static uint64_t bandwidth(uint64_t *far, int distance, int first_level) {
  uint64_t sum = 0, start = cycles();
  for (uint64_t line = 0; line < lines; line += 8) {
    uint64_t *words = far + line * 16, loaded[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      if (first_level)
        nm_prefetch(words + (i + distance) * 16);
      else
        nm_prefetch_far(words + (i + distance) * 16);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) loaded[i] = *(volatile uint64_t *)(words + i * 16);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) sum += loaded[i];
  }
  uint64_t duration = cycles() - start;
  nm_flush_all(far, (lines + 128) * NM_LINE);
  return sum ? 0 : lines * NM_LINE * (1000000000000 / CYCLE) / duration;
}

int main(int argc, char **argv) {
  if (argc > 1) lines = strtoul(argv[1], NULL, 0) / 128 * 128;
  if (lines == 0) return 4;
  if (reads > lines) reads = lines;
  uint64_t *far = nm_far_alloc((lines + 128) * NM_LINE);
  uint64_t external = latency(far), best = 0;  // picoseconds, kB/s
  int best_distance = 0, best_first_level = 0;
  static const int distances[] = {0, 8, 16, 24, 32, 40, 48, 56};
  for (int first_level = 0; first_level < 2; first_level++)
    for (unsigned i = 0; i < sizeof distances / sizeof *distances; i++) {
      uint64_t kb_per_second = bandwidth(far, distances[i], first_level);
      if (kb_per_second > best) best = kb_per_second, best_distance = distances[i], best_first_level = first_level;
    }
  nm_give(0, far, lines * NM_LINE);
  if (nm_spawn(0, "measure", (uint64_t[4]){(uint64_t)far, reads, lines})) return 1;
  uint64_t words[NM_WORDS];
  struct nm_receiver in = nm_receiver(nm_pipe_of(0, OUT), OUT_LINES);
  if (nm_receive_from(0, &in, words) != 2) return 2;
  uint64_t internal = words[0] * TICK / 1000 / reads, copied = lines * NM_LINE * (1000000000000 / TICK) / words[1];
  printf("external latency %lu ps\ninternal latency %lu ps\n", (unsigned long)external, (unsigned long)internal);
  printf("external bandwidth %lu kB/s, hints %d ahead for the %s cache\ninternal bandwidth %lu kB/s\n",
         (unsigned long)best, best_distance, best_first_level ? "first" : "last", (unsigned long)copied);
  printf("latency ratio %lu.%02lu\n", (unsigned long)(external / internal),
         (unsigned long)(external * 100 / internal % 100));
  return nm_wait(0, NULL) == NM_EXITED ? 0 : 3;
}
