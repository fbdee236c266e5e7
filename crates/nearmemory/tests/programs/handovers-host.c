// Host of handovers.c. Compile-time macros:
//   HANDOVER=N  synchronisation: 1 FIFOs of three cores, 2 a flag in host memory, 3 a ring of two cores, 4 a stamp, 5
//               the end of a program of two cores, 6 register pipes
//   RACES       one step is missing or too early
// The test finds the marked lines by their text, including the trailing comments.

#include "nearmemory/host.h"

// Starts the program on a core, which receives the line that is handed over and a line of host memory as a flag.
static void spawn(uint64_t core, volatile uint64_t *far, volatile uint64_t *flag) {
  nm_give(core, far, NM_LINE);
  nm_give(core, flag, NM_LINE);
  if (nm_spawn(core, "handovers", (uint64_t[4]){(uint64_t)far, core, (uint64_t)flag})) exit(1);
}

// Loads the line from far memory, not from a stale copy.
static uint64_t load(volatile uint64_t *far) {
  nm_flush_all(far, NM_LINE);
  uint64_t word = far[0];  // host loads
  nm_order();
  return word;
}

// Stores a word of the line, and waits until it is in far memory.
static void store(volatile uint64_t *far, uint64_t word) {
  far[0] = word;  // host stores
  nm_clean_all(far, NM_LINE);
}

int main(void) {
  volatile uint64_t *far = nm_far_alloc(NM_LINE), *flag = aligned_alloc(NM_LINE, NM_LINE);
  uint64_t cores = HANDOVER == 1 ? 3 : HANDOVER == 3 || HANDOVER == 5 ? 2 : 1, word, words[16];
  flag[0] = 0;
  if (HANDOVER == 6) store(far, 1);
  for (uint64_t core = 0; core < cores; core++) {
    spawn(core, far, flag);
#ifndef RACES
    if (HANDOVER == 5) nm_wait(core, 0);
#endif
  }
  switch (HANDOVER) {
  case 2:
    while (!flag[0]) nm_relax();
    load(far);
    break;
  case 4:
    nm_receive_word(nm_registers_of(0, 0), &word);
#ifdef RACES
    nm_read_line(0, 2, words);
    load(far);
#else
    load(far);
    nm_read_line(0, 2, words);
#endif
    break;
  case 6:
    nm_send_word(nm_registers_of(0, 0), 1);
#ifndef RACES
    nm_receive_word(nm_registers_of(0, 1), &word);
#endif
    store(far, 2);
#ifdef RACES
    nm_receive_word(nm_registers_of(0, 1), &word);
#endif
    break;
  }
  for (uint64_t core = 0; core < cores; core++) nm_wait(core, 0);
  return 0;
}
