// Receives nothing, sends, or receives, by mode.

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1), NM_FIFO(0), NM_FIFO(1))

int channel(uint64_t mode, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t word = 0;
  if (mode == 1) {
    for (int i = 0; i < 1000; i++) nm_fifo_send(1, 100 + i);
    nm_fifo_end(1);
    nm_send_word(nm_register_pipe(0), 1);
  }
  if (mode < 2) nm_receive_word(nm_register_pipe(1), &word);
  if (mode == 1) nm_fifo_send(1, 7);
  if (mode < 2) return 0;
  nm_fifo_receive(0, &word);
  return (int)(word + nm_fifo_words(0));
}
