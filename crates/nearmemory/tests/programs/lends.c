// Copies LINES lines of the host's own memory to the scratchpad, and copies them, changed, to another place there and
// to far memory. Then signals the host by a line of its memory.
//
// Arguments: addresses of the source, of the destination, of the signal's line, and of far memory. Each word in
// register pipe 0 is the number of a round: word x becomes 3 * x + round, and the signal is round + 1. At the end of
// this stream, register pipe 1 returns two words: the latency of a line from the host's memory and from far memory, in
// cycles.

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1), NM_GIVEN)

// Lines of a round, lines of a transfer, and scratchpad line from which the signal is stored.
#define LINES 100
#define PART 25
#define FLAG_LINE 200

// Returns the latency of fetching one line, in clock cycles of the core.
static uint64_t latency(uint64_t from) {
  uint64_t before = nm_write_stamp(0), start = nm_now();
  nm_fetch(0, from, 1);
  nm_fetched(0, before);
  return nm_write_stamp(0) - start;
}

int channel(uint64_t from, uint64_t to, uint64_t flag, uint64_t far) {
  uint64_t round;
  while (nm_receive_word(nm_register_pipe(0), &round)) {
    uint64_t since = nm_now();
    for (uint64_t line = 0; line < LINES; line += PART) nm_fetch(line, from + line * NM_LINE, PART);
    nm_fetched_since(0, LINES, since);
    for (uint64_t line = 0; line < LINES; line++)
      for (int i = 0; i < 16; i++) nm_words(line)[i] = nm_words(line)[i] * 3 + round;
    since = nm_now();
    for (uint64_t line = 0; line < LINES; line += PART) nm_store(line, to + line * NM_LINE, PART);
    nm_stored_since(0, LINES, since);
    since = nm_now();
    nm_store(0, far, LINES);
    nm_stored_since(0, LINES, since);
    nm_words(FLAG_LINE)[0] = round + 1;
    since = nm_now();
    nm_store(FLAG_LINE, flag, 1);
    nm_stored_since(FLAG_LINE, 1, since);
  }
  nm_send_word(nm_register_pipe(1), latency(from));
  nm_send_word(nm_register_pipe(1), latency(far));
  return 0;
}
