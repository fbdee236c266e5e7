// Measures reads of the host and copies of a near-memory core, in cycles: the first argument selects a measurement. Prints its
// result.

#include "nearmemory/programs/bench.h"

#include <stdlib.h>

// Number of lines that prefetches read.
#define LINES 512

// Returns a load's value without a wait for it.
static inline uint64_t load(volatile uint64_t *word) { return *word; }

// Size of a part of the host's own memory, in words. Only its first word is loaded before a measurement.
#define LOCAL_WORDS (1 << 16)

int main(int argc, char **argv) {
  uint64_t kind = argument(argc, argv, 1), distance = nm_prefetch_distance(), loaded[4], start;
  volatile uint64_t *far = nm_far_alloc(2 * LINES * NM_LINE);
  volatile uint64_t *local = calloc(LOCAL_WORDS, sizeof *local);
  require(local != NULL, "no memory");
  // Loads the translations of both pages before the measurement, and leaves no load in flight.
  __asm__ volatile("" ::"r"(far[LINES * 16] + local[0]));
  switch (kind) {
  // One load of far memory, and four of different lines before the first is used.
  case 0:
  case 1:
    start = cycles();
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) loaded[i] = kind == 1 || i == 0 ? load(far + i * 16) : 0;
    __asm__ volatile("" ::"r"(loaded[0] + loaded[1] + loaded[2] + loaded[3]));
    break;
  // Lines of far memory with prefetches, as many ahead as may be in flight.
  case 2:
    for (uint64_t i = 0; i < distance; i++) nm_prefetch_far(far + i * 16);
    start = cycles();
    for (uint64_t i = 0; i < LINES; i++) {
      nm_prefetch_far(far + (i + distance) * 16);
      (void)far[i * 16];
    }
    break;
  // One load of the host's own memory, alone, after one of far memory and before one, without a use in between.
  case 6:
    start = cycles();
    loaded[0] = load(local + LOCAL_WORDS / 2);
    __asm__ volatile("" ::"r"(loaded[0] + 1));
    break;
  case 7:
    start = cycles();
    loaded[0] = load(far);
    loaded[1] = load(local + LOCAL_WORDS / 2);
    __asm__ volatile("" ::"r"(loaded[0] + loaded[1]));
    break;
  case 8:
    start = cycles();
    loaded[0] = load(local + LOCAL_WORDS / 2);
    loaded[1] = load(far);
    __asm__ volatile("" ::"r"(loaded[0] + loaded[1]));
    break;
  // Copies of a near-memory core: 0 fetches, 1 stores, 2 both at once. Prints clocks of that core.
  default: {
    nm_give(0, (uint64_t *)far, 2 * LINES * NM_LINE);
    require(nm_spawn(0, "rates", (uint64_t[4]){(uintptr_t)far, kind - 3}) == 0, "the core does not start");
    uint64_t clocks = 0;
    require(nm_receive_word(nm_registers_of(0, 0), &clocks), "the core sends nothing");
    printf("%lu\n", (unsigned long)clocks);
    return nm_wait(0, NULL) == NM_EXITED ? 0 : 1;
  }
  }
  printf("%lu\n", (unsigned long)(cycles() - start));
  return 0;
}
