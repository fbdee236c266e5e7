// A channel program of two source files: sends the sum of the first words of two lines of far memory by register pipe
// 0, and never ends by itself. Arguments: addresses of the lines.

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_GIVEN)

uint64_t first_word(uint64_t line, uint64_t far);

int channel(uint64_t far, uint64_t more, uint64_t unused_2, uint64_t unused_3) {
  nm_send_word(nm_register_pipe(0), first_word(0, far) + first_word(1, more));
  for (volatile uint64_t steps = 0;; steps++) {
  }
}
