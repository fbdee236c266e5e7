// Sends two consecutive streams of `lines` lines each (the argument), from the same lines of the scratchpad. Words are
// numbered; word 15 is 1 in the last line of a stream, otherwise 0. Register pipe 0 tells the host that a stream has
// begun; a word in register pipe 1 allows the next one.

#include "nearmemory/channel.h"
#include "nearmemory/stream.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1))

int channel(uint64_t lines, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  for (uint64_t round = 0; round < 2; round++) {
    struct nm_stream stream = nm_stream(100);
    nm_send_word(nm_register_pipe(0), round);
    for (uint64_t i = 0; i < lines; i++) {
      volatile uint64_t *out = nm_stream_next(&stream);
      for (uint64_t word = 0; word < 15; word++) out[word] = (round * lines + i) * 16 + word;
      out[15] = i + 1 == lines;
      nm_stream_send(&stream);
    }
    nm_stream_end(&stream);
    uint64_t word;
    if (!nm_receive_word(nm_register_pipe(1), &word)) return 1;
  }
  return 0;
}
