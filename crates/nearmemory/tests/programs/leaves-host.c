// Host of leaves.c: sends values to a program that receives some of them, sends back about half, and ends before either
// stream does.

#include "nearmemory/programs/bench.h"
#include "nearmemory/typed.h"

// A value of two words. The core doubles `high`.
typedef struct {
  uint32_t low;
  uint64_t high;
} pair;
NM_TYPED(pairs, pair)

// Streams to and from core 1, by pipes of 4 and 8 lines at lines 0 and 10 of its scratchpad.
static struct pairs_sender out;
static struct pairs_receiver in;

// Returns the number of values sent until the receiver's end is reported.
static uint64_t send_until_end(void) {
  uint64_t count = 0;
  while (count < 10000 && !pairs_send_to(1, &out, (pair){count, count * 3})) count++;
  return count;
}

int main(void) {
  require(nm_spawn(1, "leaves", (uint64_t[4]){100}) == 0, "the core starts");
  out = pairs_sender(nm_pipe_of(1, 0), 4);
  in = pairs_receiver(nm_pipe_of(1, 10), 8);
  pair value;
  uint64_t sent = send_until_end();
  require(sent >= 100 && sent < 200, "more is sent than there is room for");
  require(pairs_end_to(1, &out) == -1, "a stream without room does not end");
  uint64_t received = 0;
  int found;
  while ((found = pairs_receive_from(1, &in, &value)) == 1) {
    require(value.low == received && value.high == received * 6, "a value");
    received++;
  }
  require(found == -1 && received == 49, "it ends without the end of its stream");
  // A second program receives and returns all values.
  require(nm_spawn(1, "leaves", (uint64_t[4]){1 << 20}) == 0, "the core starts again");
  out = pairs_sender(nm_pipe_of(1, 0), 4);
  in = pairs_receiver(nm_pipe_of(1, 10), 8);
  for (received = 0; received < 30; received++)
    require(pairs_send_to(1, &out, (pair){received, 0}) == 0, "it takes a value");
  require(pairs_end_to(1, &out) == 0, "the stream ends");
  for (received = 0; (found = pairs_receive_from(1, &in, &value)) == 1; received++)
    require(value.low == received, "a value again");
  require(found == 0 && received == 30, "its stream ends");
  printf("all is right\n");
  return 0;
}
