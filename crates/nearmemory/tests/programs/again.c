// Adds up the numbers of one pipe and sends their sum through another. The pipes start at the line `first` of the
// scratchpad, beyond the loaded binary; each has `lines` data lines and one line with its count.

#include "nearmemory/channel.h"

NM_CHANNEL(4096)

int channel(uint64_t first, uint64_t lines, uint64_t c, uint64_t d) {
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
