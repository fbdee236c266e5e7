// Sends words to a program that ends without receiving them. Argument, the mode:
//   0  receives nothing from the FIFO, and ends after a word in register pipe 1
//   1  sends 1,000 words and an end mark to core 1, then a word in register pipe 0 to the host; after a word in
//      register pipe 1, sends the word 7 to core 1
//   2  receives one word from core 0, and returns it as exit status, plus the number of words left in the FIFO

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1), NM_FIFO(0), NM_FIFO(1))

int channel(uint64_t mode, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
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
  // 7 if the last word is the only one in the FIFO.
  return (int)(word + nm_fifo_words(0));
}
