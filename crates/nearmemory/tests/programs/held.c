// Stores a line of far memory and then releases the request of the host that it holds: a read of scratchpad line 0, or
// the acknowledgement of a write-back to it. The race detector reports the marked line with EARLY. Compile-time macros:
//   ACKNOWLEDGES  holds a write-back instead of a read
//   EARLY         releases before it stores: a race

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_GIVEN, NM_REGISTER_PIPE(0))

#ifdef ACKNOWLEDGES
#define HELD NM_WRITE_BACK
#else
#define HELD NM_READ
#endif

// Stores 7 to the line at address `far`. The word in the register pipe says that the lock is set.
int channel(uint64_t far, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  nm_lock(0, HELD);
  nm_send_word(nm_register_pipe(0), 1);
  while (nm_notice() == NM_NO_NOTICE) nm_relax();
#ifdef EARLY
  nm_release(0, HELD);
#endif
  uint64_t read = nm_read_stamp(1);
  nm_words(1)[0] = 7;
  nm_store(1, far, 1);  // stores
  nm_stored(1, read);
#ifndef EARLY
  nm_release(0, HELD);
#endif
  return 0;
}
