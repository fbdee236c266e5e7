// Copies lines of far memory by alternating between two concurrent transfers. Only stamps show when a line has arrived
// and when it may be refilled. Arguments in registers a0 to a2: source, destination, number of lines.

#include "nearmemory/scratchpad.h"

__attribute__((naked)) void _start(void) {
  // The arguments (source, destination, number of lines) are in a0 to a2.
  __asm__(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n"
          "la sp, stack + 1024\n j work");
}

__attribute__((aligned(16), used)) char stack[1024];

// Lines per transfer.
#define BATCH 4

// Copies `lines` lines of 128 bytes. Each iteration fetches two batches into lines 0 to 7 and stores them. Stamps that
// were read before a transfer differ from those after it.
__attribute__((used, noreturn)) void work(uint64_t from, uint64_t to, uint64_t lines) {
  uint64_t fetched[2][BATCH], stored[2][BATCH], counts[2];
  for (uint64_t begun = 0; begun < lines;) {
    uint64_t first = begun;
    for (uint64_t turn = 0; turn < 2; turn++) {
      uint64_t count = lines - begun < BATCH ? lines - begun : BATCH;
      counts[turn] = count;
      for (uint64_t i = 0; i < count; i++) fetched[turn][i] = nm_write_stamp(turn * BATCH + i);
      if (count) nm_fetch(turn * BATCH, from + begun * 128, count);
      begun += count;
    }
    for (uint64_t turn = 0; turn < 2; turn++) {
      for (uint64_t i = 0; i < counts[turn]; i++) {
        while (nm_write_stamp(turn * BATCH + i) == fetched[turn][i]);
        stored[turn][i] = nm_read_stamp(turn * BATCH + i);
      }
      if (counts[turn]) nm_store(turn * BATCH, to + first * 128, counts[turn]);
      first += counts[turn];
    }
    for (uint64_t turn = 0; turn < 2; turn++)
      for (uint64_t i = 0; i < counts[turn]; i++)
        while (nm_read_stamp(turn * BATCH + i) == stored[turn][i]);
  }
  __asm__ volatile("ecall");
  __builtin_unreachable();
}
