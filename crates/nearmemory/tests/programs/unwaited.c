// Starts copies without waiting for them, and then ends as the mode says. Arguments: mode, and address of 2 * HALF
// lines of far memory. Modes:
//   0  ends by itself, with exit status 5
//   1  causes an exception
//   2  never ends
//   3  copies nothing; returns 0 if all scratchpad lines are zero, otherwise 1

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_GIVEN, NM_REGISTER_PIPE(0))

// Half of the lines of the scratchpad.
#define HALF 256

// Modes: 0 ends by itself, 1 causes an exception, 2 never ends, and 3 checks the lines.
int channel(uint64_t mode, uint64_t far, uint64_t unused_2, uint64_t unused_3) {
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
