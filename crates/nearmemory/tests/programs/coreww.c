// Two cores store the same line of far memory without having fetched it; each has changed its own word, so one store is
// lost, and the race detector must report it. With WAITS, core 1 fetches and stores after core 0 is done.

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_GIVEN, NM_FIFO(0), NM_FIFO(1))

// Core `me` sets word `me` of the line at address `far`.
int channel(uint64_t far, uint64_t me, uint64_t c, uint64_t d) {
  uint64_t read = nm_read_stamp(0), written = nm_write_stamp(0), word;
#ifdef WAITS
  if (me == 1 && nm_fifo_receive(0, &word)) nm_fetch(0, far, 1), nm_fetched(0, written);
#else
  (void)word, (void)written;
#endif
  nm_words(0)[me] = 1;
  nm_store(0, far, 1);  // stores
  nm_stored(0, read);
#ifdef WAITS
  if (me == 0) nm_fifo_send(1, 1);
#endif
  return 0;
}
