// Hosts of one machine hand lines of far memory around, each after the previous one. A host changes every word, and
// notifies the next host by a register pipe. `FORGETS` omits or misplaces one step of the hand-over.

#include "nearmemory/programs/bench.h"

// Steps that `FORGETS` names.
#define DROP 1         // old copies are not dropped before the lines are loaded
#define CLEAN 2        // the lines are not written back
#define EARLY_NOTICE 3 // the next host is notified before the lines are written back
#define NO_FENCE 4     // the notice does not wait for the acknowledgements of the write-backs
#define NOTICE 5       // hosts do not wait for each other
#ifndef FORGETS
#define FORGETS 0
#endif

// Words of a line, lines, and rounds.
#define WORDS (NM_LINE / 8)
#define LINES 6
#define ROUNDS 3

// Writes all lines back, and keeps copies of them.
static void clean(volatile uint64_t *far) {
  if (FORGETS == CLEAN) return;
  nm_order();
  for (uint64_t i = 0; i < LINES; i++) nm_clean_now(far + i * WORDS);
  if (FORGETS != NO_FENCE) nm_order();
}

// Notifies the next host.
static void notify(struct nm_registers *to) {
  if (FORGETS != NO_FENCE) return nm_send_word(to, 0);
  // The functions of the library have a fence.
  while (to->flag != NM_TAKEN) {
  }
  to->flag = NM_FULL;
}

int main(void) {
  volatile uint64_t *far = nm_far_alloc(LINES * NM_LINE);
  uint64_t host = nm_host(), hosts = nm_hosts(), notice;
  struct nm_registers *from = nm_registers_of(0, host), *to = nm_registers_of(0, (host + 1) % hosts);
  for (uint64_t round = 0; round < ROUNDS; round++) {
    // The first host begins.
    if (FORGETS != NOTICE && (host > 0 || round > 0)) nm_receive_word(from, &notice);
    if (FORGETS != DROP) nm_flush_all(far, LINES * NM_LINE);
    for (uint64_t i = 0; i < LINES * WORDS; i++) {
      uint64_t word = far[i];       // loads
      far[i] = 3 * word + host + i; // stores
    }
    if (FORGETS == EARLY_NOTICE) notify(to);
    clean(far);
    if (FORGETS != EARLY_NOTICE && FORGETS != NOTICE) notify(to);
  }
  // The last host has changed the lines last.
  if (host + 1 < hosts) return 0;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < LINES * WORDS; i++) sum = 5 * sum + far[i];
  printf("sum %lu\n", (unsigned long)sum);
  return 0;
}
