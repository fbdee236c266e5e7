// Core 0 forwards the host's words to core 1 by their FIFO, or by lines of far memory, and core 1 returns them to the
// host. Arguments: number of the core, mode (the enum below), lines per pipe, and address of far memory for the mode
// FAR. The host sends by the line pipe at line 0 of core 0, or register pipe 0; core 1 returns by the line pipe at its
// line 0, register pipe 3, or a stream. Exit status: 10 of core 0, 11 of core 1.

#include "nearmemory/channel.h"
#include "nearmemory/far-pipe.h"
#include "nearmemory/stream.h"

NM_CHANNEL(8192, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(3), NM_FIFO(0), NM_FIFO(1), NM_GIVEN)

// Modes, the same in relay-host.c.
enum { LINES, REGISTERS, BATCHES, STREAM, FAR };

// Maximum number of words that a call receives.
#define BATCH_WORDS 100
// First line of the pipes between the two cores in their scratchpads.
#define FAR_LINES 64

// Core 0: forwards words from the host to the FIFO. Returns exit status 10.
static int first(uint64_t kind, uint64_t lines) {
  struct nm_receiver in = nm_receiver(nm_pipe_at(0), lines);
  struct nm_registers *registers = nm_register_pipe(0);
  uint64_t words[BATCH_WORDS];
  int64_t count;
  if (kind == BATCHES)
    while ((count = nm_receive_some(&in, words, BATCH_WORDS)) >= 0)
      for (int64_t sent = 0; sent < count;) sent += nm_fifo_send_some(1, words + sent, count - sent);
  else
    while ((count = kind == REGISTERS ? nm_receive_word(registers, words) : nm_receive(&in, words)))
      for (int64_t i = 0; i < count; i++) nm_fifo_send(1, words[i]);
  nm_fifo_end(1);
  return 10;
}

// Core 1: returns words by a stream of lines whose last word is the number of words, 0 in the last line. Returns exit
// status 11.
static int streamed(void) {
  struct nm_stream out = nm_stream(0);
  nm_send_word(nm_register_pipe(3), 1);
  int found = 0;
  while (found >= 0) {
    volatile uint64_t *line = nm_stream_next(&out);
    uint64_t count = 0, word;
    while ((found = nm_try_fifo_receive(0, &word)) == 0) nm_stream_look(&out);
    // All available words, at least one.
    for (; found > 0; found = count < NM_WORDS ? nm_try_fifo_receive(0, &word) : 0) line[count++] = word;
    line[15] = count;
    nm_stream_send(&out);
    // The end is a line of its own.
    if (found < 0 && count > 0) {
      nm_stream_next(&out)[15] = 0;
      nm_stream_send(&out);
    }
  }
  nm_stream_end(&out);
  return 11;
}

// Core 0: forwards all words received so far at once, so that they occupy several lines and the last line is partly
// full.
static int first_far(uint64_t lines, uint64_t far) {
  struct nm_receiver in = nm_receiver(nm_pipe_at(0), lines);
  struct nm_far_sender out = nm_far_sender(1, far, FAR_LINES, lines);
  uint64_t words[BATCH_WORDS];
  do {
    uint64_t count = nm_receive(&in, words);
    int found;
    while (count + NM_WORDS <= BATCH_WORDS && (found = nm_try_receive(&in, words + count)) > 0) count += found;
    nm_far_send(&out, words, count);
  } while (!in.ended);
  nm_far_end(&out);
  return 10;
}

// Core 1: returns words from far memory to the host.
static int second_far(uint64_t lines, uint64_t far) {
  struct nm_far_receiver in = nm_far_receiver(0, far, FAR_LINES, lines);
  struct nm_sender out = nm_sender(nm_pipe_at(0), lines);
  uint64_t words[BATCH_WORDS], count;
  // The maximum per call varies, so that some calls return fewer words than available.
  for (uint64_t capacity = 1; (count = nm_far_receive(&in, words, capacity)); capacity = capacity % BATCH_WORDS + 1)
    nm_send(&out, words, count);
  nm_end(&out);
  return 11;
}

// Core 1: returns words from the FIFO to the host by line pipe or register pipe. Exit status 11.
static int second(uint64_t kind, uint64_t lines) {
  struct nm_sender out = nm_sender(nm_pipe_at(0), lines);
  struct nm_registers *registers = nm_register_pipe(3);
  uint64_t words[BATCH_WORDS];
  int ended;
  do {
    // All available words; for batches, at least one.
    uint64_t count = 0;
    if (kind == BATCHES)
      count = nm_fifo_receive_some(0, words, BATCH_WORDS, &ended);
    else
      while (!(ended = !nm_fifo_receive(0, &words[count])) && ++count < NM_WORDS && nm_fifo_words(0));
    if (kind == REGISTERS)
      for (uint64_t i = 0; i < count; i++) nm_send_word(registers, words[i]);
    else if (kind == BATCHES)
      for (uint64_t sent = 0; sent < count;) sent += nm_send_some(&out, words + sent, count - sent);
    else
      nm_send(&out, words, count);
  } while (!ended);
  if (kind == REGISTERS)
    nm_end_words(registers);
  else
    nm_end(&out);
  return 11;
}

int channel(uint64_t core, uint64_t kind, uint64_t lines, uint64_t far) {
  if (kind == FAR) return core == 0 ? first_far(lines, far) : second_far(lines, far);
  return core == 0 ? first(kind, lines) : kind == STREAM ? streamed() : second(kind, lines);
}
