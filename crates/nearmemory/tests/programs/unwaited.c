// Starts copies without waiting for them, and ends by itself, causes an exception, or never ends. Another mode checks
// that all lines are zero.

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_GIVEN, NM_REGISTER_PIPE(0))

// Half of the lines of the scratchpad.
#define HALF 256

// Modes: 0 ends by itself, 1 causes an exception, 2 never ends, and 3 checks the lines.
int channel(uint64_t mode, uint64_t far, uint64_t c, uint64_t d) {
  if (mode == 3) {
    for (int i = 0; i < 2 * HALF * 16; i++)
      if (nm_words(0)[i]) return 1;
    return 0;
  }
  for (int i = 0; i < HALF; i++) nm_words(HALF + i)[0] = mode + 1;
  for (int i = 0; i < 8; i++) nm_fetch(0, far, HALF);
  nm_store(HALF, far + HALF * 128, HALF);
  nm_send_word(nm_register_pipe(0), 1);
  if (mode == 1) *nm_words(2 * HALF) = 1;
  while (mode == 2) nm_now();
  return 5;
}
