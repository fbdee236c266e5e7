// Doubles the words of some lines of far memory, once per command of the host. The race detector must report the lines
// marked by comments. Compile-time macro:
//   FORGETS=N  seeded fault of cache management: 1 to 9 are in forgets-host.c, 8 and 10 to 13 here; 0 (default) and 14
//              have no fault
// Argument: address of the lines. A word in register pipe 0 is a command, and its end ends the program; register pipe 1
// returns a word after each command.
//
// Write stamps of scratchpad lines change when a fetched line arrives, read stamps when a line has been stored.

#include "nearmemory/channel.h"
#include "double.h"

#ifndef FORGETS
#define FORGETS 0
#endif

NM_CHANNEL(4096, NM_GIVEN, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1))

int channel(uint64_t far, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  uint64_t word, before[PIECES], rounds = 0;
  while (nm_receive_word(nm_register_pipe(0), &word)) {
    for (int i = 0; i < PIECES; i++) before[i] = nm_write_stamp(i);
    // Fault 13: reuses the lines of the first round, which the host has changed since. Fault 11: does not wait until
    // the lines have arrived.
    const int fetches = FORGETS != 13 || rounds++ == 0;
    if (fetches) nm_fetch(0, far, PIECES);
    if (fetches && FORGETS != 11)
      for (int i = 0; i < PIECES; i++) nm_fetched(i, before[i]);
    for (int i = 0; i < WORDS; i++) nm_words(0)[i] *= 2;  // doubles
    for (int i = 0; i < PIECES; i++) before[i] = nm_read_stamp(i);
    if (FORGETS == 8)
      // Delays the store until after the host's early store, because the host is slower.
      for (uint64_t start = nm_now(); nm_now() < start + 2000;) {
      }
    nm_store(0, far, PIECES);
    // Fault 12: changes a word before it has been stored.
    if (FORGETS == 12) nm_words(PIECES - 1)[15] = word;  // changes
    // Fault 10: does not wait until the lines have been stored.
    if (FORGETS != 10)
      for (int i = 0; i < PIECES; i++) nm_stored(i, before[i]);
    nm_send_word(nm_register_pipe(1), 1);
  }
  return 0;
}
