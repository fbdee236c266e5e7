// Adds up the numbers of one line pipe and sends their sum through another. Arguments: scratchpad line at which the
// pipes start, beyond the loaded binary; number of data lines of each. Each pipe has one more line, with its count.

#include "nearmemory/channel.h"

NM_CHANNEL(4096)

int channel(uint64_t first, uint64_t lines, uint64_t unused_2, uint64_t unused_3) {
  struct nm_receiver numbers = nm_receiver(nm_pipe_at(first), lines);
  struct nm_sender sums = nm_sender(nm_pipe_at(first + lines + 1), lines);
  uint64_t words[NM_WORDS], sum = 0;
  int received;
  while ((received = nm_receive(&numbers, words)))
    for (int i = 0; i < received; i++) sum += words[i];
  nm_send(&sums, &sum, 1);
  nm_end(&sums);
  return 0;
}
