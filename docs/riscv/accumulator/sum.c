// Adds up the numbers of one pipe, and sends their sum by another one.

#include "nearmemory/channel.h"

#include <stdio.h>

NM_CHANNEL(4096)

int channel(uint64_t lines, uint64_t b, uint64_t c, uint64_t d) {
  struct nm_receiver numbers = nm_receiver(nm_pipe_at(0), lines);
  struct nm_sender sums = nm_sender(nm_pipe_at(lines + 1), lines);
  uint64_t words[NM_WORDS], sum = 0, count = 0;
  int received;
  while ((received = nm_receive(&numbers, words))) {
    for (int i = 0; i < received; i++) sum += words[i];
    count += received;
  }
  printf("beside far memory: %d numbers\n", (int)count);
  nm_send(&sums, &sum, 1);
  nm_end(&sums);
  return 0;
}
