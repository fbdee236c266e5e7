// Measures uncached accesses and fences of the host. The argument selects the measurement by its number in the enum
// below. Prints the cycles of COUNT repetitions.

#include "nearmemory/programs/bench.h"

#define COUNT 64

enum measurement { REGISTER_LOADS, REGISTER_STORES, FLUSHES_WITH_STORE_FENCES, FLUSHES_WITH_FULL_FENCES };

// Returns the cycle counter; does not wait for earlier accesses.
static uint64_t now(void) {
  uint64_t cycle;
  __asm__ volatile("csrr %0, cycle" : "=r"(cycle)::"memory");
  return cycle;
}

int main(int argc, char **argv) {
  uint64_t measurement = argument(argc, argv, 1), loaded[8];
  volatile uint64_t *registers = nm_control(0, 0), *far = nm_far_alloc(COUNT * NM_LINE);
  for (int i = 0; i < COUNT; i++) far[i * 16] = i;
  nm_order();
  uint64_t start = now();
  switch (measurement) {
  // Eight loads precede the first use; the device answers one after the other.
  case REGISTER_LOADS:
    for (int i = 0; i < COUNT; i += 8) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; j++) loaded[j] = registers[j];
      __asm__ volatile("" ::"r"(loaded[0] + loaded[1] + loaded[2] + loaded[3] + loaded[4] + loaded[5] + loaded[6] +
                                loaded[7]));
    }
    break;
  // The device takes one store at a time, and a later load returns after all of them.
  case REGISTER_STORES:
    for (int i = 0; i < COUNT; i++) registers[i % 8] = i;
    loaded[0] = registers[0];
    __asm__ volatile("" ::"r"(loaded[0]));
    break;
  // A flush of a dirty line and a fence of stores, for each line.
  case FLUSHES_WITH_STORE_FENCES:
    for (int i = 0; i < COUNT; i++) {
      nm_flush_now(far + i * 16);
      nm_order_stores();
    }
    break;
  // nm_flush has a full fence.
  case FLUSHES_WITH_FULL_FENCES:
    for (int i = 0; i < COUNT; i++) nm_flush(far + i * 16);
  }
  printf("%lu\n", (unsigned long)(now() - start));
  return 0;
}
