// Ends, waits for a word that is never sent (WAITS), or ends late: after a delay by its clock (LATE) or in instructions
// (BUSY).

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_REGISTER_PIPE(0))

int channel(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
#ifdef WAITS
  nm_receive_word(nm_register_pipe(0), &a);  // waits
#endif
#ifdef LATE
  for (uint64_t since = nm_now(); nm_now() < since + 1500000;) nm_relax();
#endif
#ifdef BUSY
  for (uint64_t i = 0; i < 1500000; i++) __asm__ volatile("");
#endif
  return 0;
}
