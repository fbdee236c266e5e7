// Sends LINES lines by a short stream. Line i has the start value plus i in word i % 16, and other words of earlier
// lines. Register pipe 0 tells the host that the stream has begun; register pipe 1 delivers the start value.

#define NM_STREAM 8
#include "nearmemory/channel.h"
#include "nearmemory/stream.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1))

#define LINES 100

int channel(uint64_t unused_0, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  uint64_t number = 0;
  struct nm_stream stream = nm_stream(3);
  nm_send_word(nm_register_pipe(0), 1);
  while (nm_try_receive_word(nm_register_pipe(1), &number) == 0) nm_stream_look(&stream);
  for (uint64_t i = 0; i < LINES; i++) {
    nm_stream_next(&stream)[i % 16] = number + i;
    nm_stream_send(&stream);
  }
  nm_stream_end(&stream);
  return 0;
}
