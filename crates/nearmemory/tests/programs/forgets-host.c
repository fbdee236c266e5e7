// Host of forgets.c: lets a core double the words of some lines twice. The race detector must report the lines marked
// by comments. Compile-time macro:
//   FORGETS=N  seeded fault of cache management, described where it is made: 1 to 9 here, 8 and 10 to 13 in forgets.c;
//              0 (default) and 14 have no fault

#include "nearmemory/host.h"
#include "double.h"

#ifndef FORGETS
#define FORGETS 0
#endif

// Commands the core to double the words, and waits until it reports completion.
static void signal_and_wait(void) {
  uint64_t word;
  nm_send_word(nm_registers_of(0, 0), 1);
  while (nm_try_receive_word(nm_registers_of(0, 1), &word) == 0) {
  }
}

// Write back (clean), or write back and invalidate (flush), this number of lines. Not inlined, so that the detector
// attributes accesses to the caller's lines.
__attribute__((noipa)) static void clean(volatile uint64_t *far, uint64_t lines) { nm_clean_all(far, lines * NM_LINE); }
__attribute__((noipa)) static void flush(volatile uint64_t *far, uint64_t lines) { nm_flush_all(far, lines * NM_LINE); }

int main(void) {
  volatile uint64_t *far = nm_far_alloc(WORDS * 8), sum = 0;
  nm_give(0, far, WORDS * 8);
  if (nm_spawn(0, "forgets", (uint64_t[4]){(uint64_t)far})) return 1;
  for (int i = 0; i < WORDS; i++)
    far[i] = i;  // stores
  if (FORGETS == 1) {
    // Fault: no clean.
  } else if (FORGETS == 2) {
    // Fault: no barrier after the clean.
    for (int i = 0; i < PIECES; i++)
      __asm__ volatile(".option push\n .option arch, +zicbom\n cbo.clean (%0)\n .option pop" ::"r"(far + 16 * i)
                       : "memory");
    *nm_control(0, 0) = 1, *nm_control(0, 8) = NM_FULL;
    uint64_t word;
    while (nm_try_receive_word(nm_registers_of(0, 1), &word) == 0) {
    }
  } else if (FORGETS == 3) {
    // Fault: the last line is not cleaned.
    clean(far, PIECES - 1);
  } else {
    clean(far, PIECES);
  }
  // Fault: the host loads a line between its clean and the command, so its copy is older than the core's store.
  if (FORGETS == 4) flush(far, PIECES), sum += far[20];  // fetched again before the core has written
  if (FORGETS != 2) signal_and_wait();
  if (FORGETS == 5) {
    // Fault: no flush.
  } else if (FORGETS == 6) {
    // Fault: a clean instead of a flush keeps stale copies.
    clean(far, PIECES);
  } else if (FORGETS == 7) {
    // Fault: the first line is not flushed.
    flush(far + 16, PIECES - 1);
  } else if (FORGETS != 4) {
    flush(far, PIECES);
  }
  for (int i = 0; i < WORDS; i++)
    sum += far[i];  // loads
  if (FORGETS == 8) {
    // Stores a word of a line that the core has yet to write.
    nm_send_word(nm_registers_of(0, 0), 1);
    far[3] = 7;  // stores too early
    nm_order();
    uint64_t word;
    while (nm_try_receive_word(nm_registers_of(0, 1), &word) == 0) {
    }
    flush(far, PIECES);
  } else if (FORGETS == 9) {
    // Stores one word in a line that is known to be stale.
    signal_and_wait();
    far[3] = 7;  // stores in what is stale
    flush(far, PIECES);
  } else {
    // Fault 13 is in forgets.c. With 14, the core fetches this store, which is correct.
    if (FORGETS >= 13)
      far[5] = 5;  // stores between
    clean(far, PIECES);
    signal_and_wait();
    flush(far, PIECES);
  }
  for (int i = 0; i < WORDS; i++)
    sum += far[i];  // loads again
  nm_end_words(nm_registers_of(0, 0));
  nm_wait(0, NULL);
  printf("sum %lu\n", (unsigned long)sum);
  return 0;
}
