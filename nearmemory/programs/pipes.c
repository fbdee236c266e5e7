// Sums the first word of each line of line pipes, or each word of register pipes, until their ends; or returns the
// received words to the host.
//
// Arguments: mode, as numbered by the enum below; lines or register pipes of each thread of the host; number of
// threads. Thread T sends by the line pipe at scratchpad line T * (lines + 1), or by the register pipes from T *
// registers on. In the round-trip modes the host sends by the line pipe at line 0, or register pipe 0, and the core
// returns the words by the line pipe at line RETURN_LINE, or register pipe 1. At its end the core sends the sum, or 0,
// by register pipe REGISTER_PIPES.

#include "nearmemory/channel.h"

// Number of register pipes for words, maximum number of host threads, and first line of the returning pipe, as in
// pipes-host.c.
#define REGISTER_PIPES 15
#define THREADS 4
#define RETURN_LINE 16

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1), NM_REGISTER_PIPE(2), NM_REGISTER_PIPE(3), NM_REGISTER_PIPE(4),
           NM_REGISTER_PIPE(5), NM_REGISTER_PIPE(6), NM_REGISTER_PIPE(7), NM_REGISTER_PIPE(8), NM_REGISTER_PIPE(9),
           NM_REGISTER_PIPE(10), NM_REGISTER_PIPE(11), NM_REGISTER_PIPE(12), NM_REGISTER_PIPE(13), NM_REGISTER_PIPE(14),
           NM_REGISTER_PIPE(15))

// Modes, as in pipes-host.c.
enum { LINES, REGISTERS, LINE_ROUND_TRIP, REGISTER_ROUND_TRIP };

// Sums by line pipes: round-robin over pipes; each is served as long as it has lines. Words stay in the scratchpad.
static uint64_t sum_lines(uint64_t lines, uint64_t threads) {
  struct nm_receiver in[THREADS];
  uint64_t sum = 0;
  for (uint64_t i = 0; i < threads; i++) in[i] = nm_receiver(nm_pipe_at(i * (lines + 1)), lines);
  for (uint64_t open_pipes = threads; open_pipes > 0;)
    for (uint64_t i = 0; i < threads; i++) {
      if (in[i].ended) continue;
      // A local copy keeps the receiver's fields in registers.
      struct nm_receiver receiver = in[i];
      const volatile uint64_t *words;
      int count;
      while ((words = nm_next_line(&receiver, &count))) {
        sum += words[0];
        nm_line_done(&receiver);
      }
      in[i] = receiver;
      open_pipes -= receiver.ended;
    }
  return sum;
}

// Sums by register pipes: round-robin over threads, and over the registers of each.
static uint64_t sum_registers(uint64_t registers, uint64_t threads) {
  uint64_t sum = 0, word = 0, next_register[THREADS] = {0}, ended[THREADS] = {0};
  for (uint64_t open_pipes = threads; open_pipes > 0;)
    for (uint64_t i = 0; i < threads; i++) {
      if (ended[i]) continue;
      uint64_t next = next_register[i], first = i * registers;
      int count;
      while ((count = nm_try_receive_word(nm_register_pipe(first + next), &word)) > 0) {
        sum += word;
        next = next + 1 == registers ? 0 : next + 1;
      }
      next_register[i] = next;
      if (count < 0) ended[i] = 1, open_pipes--;
    }
  return sum;
}

// Returns each line to the host.
static void return_lines(void) {
  struct nm_receiver in = nm_receiver(nm_pipe_at(0), 1);
  struct nm_sender out = nm_sender(nm_pipe_at(RETURN_LINE), 1);
  uint64_t words[NM_WORDS], count;
  while ((count = nm_receive(&in, words))) nm_send(&out, words, count);
}

// Returns each word to the host.
static void return_registers(void) {
  uint64_t word;
  while (nm_receive_word(nm_register_pipe(0), &word)) nm_send_word(nm_register_pipe(1), word);
}

int channel(uint64_t mode, uint64_t count, uint64_t threads, uint64_t unused_3) {
  uint64_t sum = 0;
  switch (mode) {
  case LINES: sum = sum_lines(count, threads); break;
  case REGISTERS: sum = sum_registers(count, threads); break;
  case LINE_ROUND_TRIP: return_lines(); break;
  default: return_registers();  // REGISTER_ROUND_TRIP
  }
  nm_send_word(nm_register_pipe(REGISTER_PIPES), sum);
  return 0;
}
