// Updates random words of a table in far memory, one at a time: fetches the line, changes the word, stores the line.
//
// Arguments: address of the table, its number of words (a power of two), and the seed of the random numbers, which are
// those of next_random in bench.h. Register pipe 0 delivers one word, the number of updates; register pipe 1 returns
// one word, the last random number.

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1), NM_GIVEN)

// Line of the scratchpad that holds the current line of the table.
#define LINE 0

// Exit status 0, or 1 without a number of updates.
int channel(uint64_t table, uint64_t words, uint64_t random, uint64_t unused_3) {
  uint64_t updates = 0;
  volatile uint64_t *line = nm_words(LINE);
  if (!nm_receive_word(nm_register_pipe(0), &updates)) return 1;
  for (uint64_t i = 0; i < updates; i++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    uint64_t index = random & (words - 1), far = table + index / 16 * NM_LINE, earlier_stamp = nm_write_stamp(LINE);
    nm_fetch(LINE, far, 1);
    nm_fetched(LINE, earlier_stamp);
    line[index % 16] ^= random;
    earlier_stamp = nm_read_stamp(LINE);
    nm_store(LINE, far, 1);
    nm_stored(LINE, earlier_stamp);
  }
  nm_send_word(nm_register_pipe(1), random);
  return 0;
}
