// Sends lines by a short stream, with numbers from the start value that the host sends.

#define NM_STREAM 8
#include "nearmemory/channel.h"
#include "nearmemory/stream.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1))

#define LINES 100

int channel(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
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
