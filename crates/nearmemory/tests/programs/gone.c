// Ends, waits for a word that is never sent (WAITS), or ends late: after a delay by its clock (LATE) or in instructions
// (BUSY).

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_REGISTER_PIPE(0))

// Nothing here reads or writes the host's pipe of gone-host.c.
int channel(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
#ifdef WAITS
  nm_receive_word(nm_register_pipe(0), &a);  // waits
#endif
#ifdef LATE
  // 5 ms at 300 MHz: longer than a window of the livelock detection.
  for (uint64_t since = nm_now(); nm_now() < since + 1500000;) nm_relax();
#endif
#ifdef BUSY
  for (uint64_t i = 0; i < 1500000; i++) __asm__ volatile("");
#endif
  return 0;
}
