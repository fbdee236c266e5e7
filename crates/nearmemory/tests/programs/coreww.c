// Two cores store the same line of far memory without having fetched it. Each has changed its own word, so one store is
// lost, and the race detector must report it (UnorderedStores). Compile-time macro:
//   WAITS  core 1 fetches and stores after core 0 is done: no race
// Arguments: address of the line, number of the core.

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_GIVEN, NM_FIFO(0), NM_FIFO(1))

// Core N sets word N of the line.
int channel(uint64_t far, uint64_t core, uint64_t unused_2, uint64_t unused_3) {
  uint64_t read = nm_read_stamp(0), written = nm_write_stamp(0), word;
#ifdef WAITS
  if (core == 1 && nm_fifo_receive(0, &word)) nm_fetch(0, far, 1), nm_fetched(0, written);
#else
  (void)word, (void)written;
#endif
  nm_words(0)[core] = 1;
  nm_store(0, far, 1);  // stores
  nm_stored(0, read);
#ifdef WAITS
  if (core == 0) nm_fifo_send(1, 1);
#endif
  return 0;
}
