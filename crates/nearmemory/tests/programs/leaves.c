// Receives at most `max_values` values (the argument), or up to the end of their stream, doubles `high`, and sends back
// those before `max_values / 2`. Ends its own stream only if the received one has ended.

#include "nearmemory/channel.h"
#include "nearmemory/typed.h"

// The same type as in leaves-host.c.
typedef struct {
  uint32_t low;
  uint64_t high;
} pair;
NM_TYPED(pairs, pair)

NM_CHANNEL(4096)

int channel(uint64_t max_values, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  struct pairs_receiver in = pairs_receiver(nm_pipe_at(0), 4);
  struct pairs_sender out = pairs_sender(nm_pipe_at(10), 8);
  pair value;
  uint64_t received = 0;
  int found = 1;
  while (received < max_values && (found = pairs_receive(&in, &value))) {
    value.high *= 2;
    if (++received < max_values / 2) pairs_send(&out, value);
  }
  pairs_flush(&out);
  if (!found) pairs_end(&out);
  return 0;
}
