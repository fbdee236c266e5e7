// Measures reads of the host, in cycles of its clock, or copies of a near-memory core (rates.c), in cycles of that
// core. The first argument selects the measurement by its number in the enum below; the result is printed. The second
// argument is the number of lines or runs of the last three measurements.

#include "nearmemory/programs/bench.h"

#include <stdlib.h>

enum measurement {
  ONE_LOAD,         // one load of far memory
  FOUR_LOADS,       // four loads of different lines of far memory before the first value is used
  PREFETCHED_LINES, // sequential reads of far memory with prefetches
  FETCHES,          // copies of the near-memory core from far memory,
  STORES,           // to far memory,
  BOTH,             // and in both directions at once
  LOCAL_LOAD,       // one load of the host's own memory
  FAR_THEN_LOCAL,   // a load of far memory and one of the host's own memory before the first value is used
  LOCAL_THEN_FAR,   // the same in the other order
  SEQUENTIAL_LINES, // reads of lines of far memory without prefetches: in order of their addresses,
  SCATTERED_LINES,  // 59 lines apart,
  SHORT_RUNS,       // and in runs of three lines at intervals of 16 lines
};

// Distance of successive scattered lines, and lines between two runs.
#define SCATTER 59
#define RUN_INTERVAL 16

// Number of lines that prefetches read.
#define LINES 512

// Loads a word. The core waits for the value at its first use.
static inline uint64_t load(volatile uint64_t *word) { return *word; }

// Size of a part of the host's own memory, in words. Only its first word is loaded before a measurement.
#define LOCAL_WORDS (1 << 16)

int main(int argc, char **argv) {
  uint64_t measurement = argument(argc, argv, 1), distance = nm_prefetch_distance(), loaded[4], start;
  volatile uint64_t *far = nm_far_alloc(2 * LINES * NM_LINE);
  volatile uint64_t *local = calloc(LOCAL_WORDS, sizeof *local);
  require(local != NULL, "no memory");
  // Loads the translations of both pages before the measurement, and leaves no load in flight.
  __asm__ volatile("" ::"r"(far[LINES * 16] + local[0]));
  switch (measurement) {
  case ONE_LOAD:
  case FOUR_LOADS:
    start = cycles();
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) loaded[i] = measurement == FOUR_LOADS || i == 0 ? load(far + i * 16) : 0;
    __asm__ volatile("" ::"r"(loaded[0] + loaded[1] + loaded[2] + loaded[3]));
    break;
  // Prefetches are as many lines ahead as may be in flight.
  case PREFETCHED_LINES:
    for (uint64_t i = 0; i < distance; i++) nm_prefetch_far(far + i * 16);
    start = cycles();
    for (uint64_t i = 0; i < LINES; i++) {
      nm_prefetch_far(far + (i + distance) * 16);
      (void)far[i * 16];
    }
    break;
  case LOCAL_LOAD:
    start = cycles();
    loaded[0] = load(local + LOCAL_WORDS / 2);
    __asm__ volatile("" ::"r"(loaded[0] + 1));
    break;
  case FAR_THEN_LOCAL:
    start = cycles();
    loaded[0] = load(far);
    loaded[1] = load(local + LOCAL_WORDS / 2);
    __asm__ volatile("" ::"r"(loaded[0] + loaded[1]));
    break;
  case LOCAL_THEN_FAR:
    start = cycles();
    loaded[0] = load(local + LOCAL_WORDS / 2);
    loaded[1] = load(far);
    __asm__ volatile("" ::"r"(loaded[0] + loaded[1]));
    break;
  case SEQUENTIAL_LINES:
  case SCATTERED_LINES: {
    uint64_t lines = argument(argc, argv, 2), step = measurement == SCATTERED_LINES ? SCATTER : 1;
    start = cycles();
    for (uint64_t i = 0; i < lines; i++) (void)far[i * step % LINES * 16];
    break;
  }
  case SHORT_RUNS: {
    uint64_t runs = argument(argc, argv, 2);
    start = cycles();
    for (uint64_t i = 0; i < runs; i++)
      for (uint64_t j = 0; j < 3; j++) (void)far[(i * RUN_INTERVAL + j) * 16];
    break;
  }
  default: {
    nm_give(0, (uint64_t *)far, 2 * LINES * NM_LINE);
    require(nm_spawn(0, "rates", (uint64_t[4]){(uintptr_t)far, measurement - FETCHES}) == 0, "the core does not start");
    uint64_t clocks = 0;
    require(nm_receive_word(nm_registers_of(0, 0), &clocks), "the core sends nothing");
    printf("%lu\n", (unsigned long)clocks);
    return nm_wait(0, NULL) == NM_EXITED ? 0 : 1;
  }
  }
  printf("%lu\n", (unsigned long)(cycles() - start));
  return 0;
}
