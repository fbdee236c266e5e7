// Doubles the words of some lines of far memory, once per command of the host.

#include "nearmemory/channel.h"
#include "double.h"

#ifndef FORGETS
#define FORGETS 0
#endif

NM_CHANNEL(4096, NM_GIVEN, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1))

int channel(uint64_t far, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t word, before[PIECES], rounds = 0;
  while (nm_receive_word(nm_register_pipe(0), &word)) {
    for (int i = 0; i < PIECES; i++) before[i] = nm_write_stamp(i);
    // Fault 13: the lines fetched in the first round may be stale by now.
    const int fetches = FORGETS != 13 || rounds++ == 0;
    if (fetches) nm_fetch(0, far, PIECES);
    if (fetches && FORGETS != 11)
      for (int i = 0; i < PIECES; i++) nm_fetched(i, before[i]);
    for (int i = 0; i < WORDS; i++) nm_words(0)[i] *= 2;  // doubles
    for (int i = 0; i < PIECES; i++) before[i] = nm_read_stamp(i);
    if (FORGETS == 8)
      // Delays the store, because the host is slow.
      for (uint64_t start = nm_now(); nm_now() < start + 2000;) {
      }
    nm_store(0, far, PIECES);
    if (FORGETS == 12) nm_words(PIECES - 1)[15] = word;  // changes
    if (FORGETS != 10)
      for (int i = 0; i < PIECES; i++) nm_stored(i, before[i]);
    nm_send_word(nm_register_pipe(1), 1);
  }
  return 0;
}
