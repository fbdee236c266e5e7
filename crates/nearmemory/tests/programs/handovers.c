// Hand-overs of a line of far memory from one program to another, each by a different kind of synchronisation. The race
// detector must report the marked lines. Compile-time macros:
//   HANDOVER=N  kind of synchronisation, as numbered in handovers-host.c; case 10 * HANDOVER + N below is the program
//               of core N
//   RACES       one step is missing or too early; the comments below describe both variants
// Arguments: address of the line, number of the core, and address of a line of the host's own memory as a flag.

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_GIVEN, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1), NM_FIFO(0), NM_FIFO(1), NM_FIFO(2))

// Starts to store the line. Returns the earlier read stamp: the stamp changes when the store is complete.
static uint64_t start_store(uint64_t to) {
  uint64_t before = nm_read_stamp(0);
  nm_words(0)[0] = 7;
  nm_store(0, to, 1);  // stores
  return before;
}

// Stores the line and waits for completion.
static void store(uint64_t far) { nm_stored(0, start_store(far)); }

// Fetches the line and waits until it has arrived.
static void fetch(uint64_t far) {
  uint64_t before = nm_write_stamp(1);
  nm_fetch(1, far, 1);  // fetches
  nm_fetched(1, before);
}

int channel(uint64_t far, uint64_t core, uint64_t flag, uint64_t unused_3) {
  uint64_t word, stamp;
  switch (HANDOVER * 10 + core) {
  // A chain of FIFOs: core 1 forwards the word of core 0 to core 2. Race: core 1 sends before it has received.
  case 10:
    store(far);
    nm_fifo_send(1, 1);
    break;
  case 11:
#ifdef RACES
    nm_fifo_send(2, 1);
    nm_fifo_receive(0, &word);
#else
    nm_fifo_receive(0, &word);
    nm_fifo_send(2, 1);
#endif
    break;
  case 12:
    nm_fifo_receive(1, &word);
    fetch(far);
    break;
  // A flag in the host's own memory, set when the store of the line is complete. Race: set at once.
  case 20:
#ifdef RACES
    start_store(far);
#else
    store(far);
#endif
    nm_words(2)[0] = 1;
    nm_store(2, flag, 1);
    break;
  // A ring of one line: the line is stored again after the receiver has reported its fetch. Race: stored again when the
  // receiver has only taken the word that announces the line.
  case 30:
    store(far);
    word = nm_fifo_room(1);
    nm_fifo_send(1, 1);
#ifdef RACES
    while (nm_fifo_room(1) < word) nm_relax();
#else
    nm_fifo_receive(1, &word);
#endif
    store(far);
    break;
  case 31:
    nm_fifo_receive(0, &word);
    fetch(far);
    nm_fifo_send(0, 1);
    break;
  // A stamp: the host reads a line of the scratchpad after it has loaded the line of far memory, and the read changes
  // the stamp. Race: the host reads before.
  case 40:
    stamp = nm_read_stamp(2);
    nm_send_word(nm_register_pipe(0), 1);
    while (nm_read_stamp(2) == stamp) nm_relax();
    store(far);
    break;
  // The end of a program, at which its stores are complete: the next program starts after it. Race: starts before.
  case 50:
    start_store(far);
    break;
  case 51:
    fetch(far);
    break;
  // Register pipes: the host stores again after it has received an answer. Race: stores before.
  case 60:
    nm_receive_word(nm_register_pipe(0), &word);
    fetch(far);
    nm_send_word(nm_register_pipe(1), 1);
    break;
  }
  return 0;
}
