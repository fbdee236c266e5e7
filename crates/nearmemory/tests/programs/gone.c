// Ends at once, or as a compile-time macro says:
//   WAITS  waits for a word that is never sent
//   LATE   ends after a delay by its clock
//   BUSY   ends after a delay by instructions

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_REGISTER_PIPE(0))

// The program never reads the line pipe of gone-host.c.
int channel(uint64_t a, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
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
