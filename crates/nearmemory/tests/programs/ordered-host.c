// Measures uncached accesses and fences of the host, in cycles: CASE selects one. Prints the cycles of COUNT repetitions.

#include "nearmemory/programs/bench.h"

#define COUNT 64

static uint64_t now(void) {
  uint64_t cycle;
  __asm__ volatile("csrr %0, cycle" : "=r"(cycle)::"memory");
  return cycle;
}

int main(int argc, char **argv) {
  uint64_t kind = argument(argc, argv, 1), loaded[8];
  volatile uint64_t *registers = nm_control(0, 0), *far = nm_far_alloc(COUNT * NM_LINE);
  for (int i = 0; i < COUNT; i++) far[i * 16] = i;
  nm_order();
  uint64_t start = now();
  switch (kind) {
  // Loads of registers, eight before the first is used: one after the other.
  case 0:
    for (int i = 0; i < COUNT; i += 8) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; j++) loaded[j] = registers[j];
      __asm__ volatile("" ::"r"(loaded[0] + loaded[1] + loaded[2] + loaded[3] + loaded[4] + loaded[5] + loaded[6] + loaded[7]));
    }
    break;
  // Stores to registers: the device takes one at a time, and a load behind them returns last.
  case 1:
    for (int i = 0; i < COUNT; i++) registers[i % 8] = i;
    loaded[0] = registers[0];
    __asm__ volatile("" ::"r"(loaded[0]));
    break;
  // Flushes of dirty lines, and fences of stores.
  case 2:
    for (int i = 0; i < COUNT; i++) {
      nm_flush_now(far + i * 16);
      nm_order_stores();
    }
    break;
  // The same with full fences.
  case 3:
    for (int i = 0; i < COUNT; i++) nm_flush(far + i * 16);
  }
  printf("%lu\n", (unsigned long)(now() - start));
  return 0;
}
