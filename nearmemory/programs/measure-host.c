// Measures far memory: the latency of the host's uncached reads, its best bandwidth of prefetched reads, and,
// by a near-memory program, latency and bandwidth of a copy engine. Optional argument: number of lines to read, a multiple of
// 128.

#include "nearmemory/programs/bench.h"

// Clock period of this core, and of the near-memory core's counter, in femtoseconds.
#ifdef __riscv
#define CYCLE 500000
#define TICK 3333333
#else
#define CYCLE 1000000
#define TICK 1000000
#endif

static uint64_t lines = 16384, reads = 1000;

// Latency of dependent uncached reads, in picoseconds.
static uint64_t latency(volatile uint64_t *far) {
  volatile uint64_t *words = nm_uncached(far);
  uint64_t at = 0, start = cycles();
  for (uint64_t i = 0; i < reads; i++) at = words[(at + i) * 16];
  return (cycles() - start) * CYCLE / 1000 / reads + at;
}

// Bandwidth of sequential reads in kB/s, with a prefetch distance in lines, for one of the caches. One word per line is
// read; eight lines are loaded before any is used, so that the in-order core waits for them once.
static uint64_t bandwidth(uint64_t *far, int ahead, int own) {
  uint64_t sum = 0, start = cycles();
  for (uint64_t line = 0; line < lines; line += 8) {
    uint64_t *words = far + line * 16, read[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      if (own)
        nm_prefetch(words + (i + ahead) * 16);
      else
        nm_prefetch_far(words + (i + ahead) * 16);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) read[i] = *(volatile uint64_t *)(words + i * 16);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) sum += read[i];
  }
  uint64_t found = cycles() - start;
  nm_flush_all(far, (lines + 128) * NM_LINE);
  return sum ? 0 : lines * NM_LINE * (1000000000000 / CYCLE) / found;
}

int main(int argc, char **argv) {
  if (argc > 1) lines = strtoul(argv[1], NULL, 0) / 128 * 128;
  if (lines == 0) return 4;
  if (reads > lines) reads = lines;
  uint64_t *far = nm_far_alloc((lines + 128) * NM_LINE);
  uint64_t external = latency(far), best = 0;
  int best_ahead = 0, best_own = 0;
  static const int aheads[] = {0, 8, 16, 24, 32, 40, 48, 56};
  for (int own = 0; own < 2; own++)
    for (unsigned i = 0; i < sizeof aheads / sizeof *aheads; i++) {
      uint64_t found = bandwidth(far, aheads[i], own);
      if (found > best) best = found, best_ahead = aheads[i], best_own = own;
    }
  nm_give(0, far, lines * NM_LINE);
  if (nm_spawn(0, "measure", (uint64_t[4]){(uint64_t)far, reads, lines})) return 1;
  uint64_t words[NM_WORDS];
  struct nm_receiver in = nm_receiver(nm_pipe_of(0, 500), 4);
  if (nm_receive_from(0, &in, words) != 2) return 2;
  uint64_t internal = words[0] * TICK / 1000 / reads, copied = lines * NM_LINE * (1000000000000 / TICK) / words[1];
  printf("external latency %lu ps\ninternal latency %lu ps\n", (unsigned long)external, (unsigned long)internal);
  printf("external bandwidth %lu kB/s, hints %d ahead for the %s cache\ninternal bandwidth %lu kB/s\n", (unsigned long)best,
         best_ahead, best_own ? "first" : "last", (unsigned long)copied);
  printf("latency ratio %lu.%02lu\n", (unsigned long)(external / internal), (unsigned long)(external * 100 / internal % 100));
  return nm_wait(0, NULL) == NM_EXITED ? 0 : 3;
}
