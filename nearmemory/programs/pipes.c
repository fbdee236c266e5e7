// Adds up the first word of each line of a pipe, or each word of some register pipes, until their ends; or sends back what comes.
// Called with which of it, and how many lines or registers there are.

#include "nearmemory/channel.h"

#define REGISTER_PIPES 15

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1), NM_REGISTER_PIPE(2), NM_REGISTER_PIPE(3), NM_REGISTER_PIPE(4),
           NM_REGISTER_PIPE(5), NM_REGISTER_PIPE(6), NM_REGISTER_PIPE(7), NM_REGISTER_PIPE(8), NM_REGISTER_PIPE(9),
           NM_REGISTER_PIPE(10), NM_REGISTER_PIPE(11), NM_REGISTER_PIPE(12), NM_REGISTER_PIPE(13), NM_REGISTER_PIPE(14),
           NM_REGISTER_PIPE(15))

enum { LINES, REGISTERS, LINE_BACK, REGISTER_BACK };

static uint64_t of_lines(uint64_t lines) {
  struct nm_receiver in = nm_receiver(nm_pipe_at(0), lines);
  uint64_t words[NM_WORDS], sum = 0;
  while (nm_receive(&in, words)) sum += words[0];
  return sum;
}

static uint64_t of_registers(uint64_t registers) {
  uint64_t sum = 0, word = 0;
  for (uint64_t at = 0;; at = at + 1 == registers ? 0 : at + 1) {
    if (!nm_receive_word(nm_register_pipe(at), &word)) return sum;
    sum += word;
  }
}

static void lines_back(void) {
  struct nm_receiver in = nm_receiver(nm_pipe_at(0), 1);
  struct nm_sender out = nm_sender(nm_pipe_at(16), 1);
  uint64_t words[NM_WORDS], count;
  while ((count = nm_receive(&in, words))) nm_send(&out, words, count);
}

static void registers_back(void) {
  uint64_t word;
  while (nm_receive_word(nm_register_pipe(0), &word)) nm_send_word(nm_register_pipe(1), word);
}

int channel(uint64_t kind, uint64_t count, uint64_t c, uint64_t d) {
  uint64_t sum = 0;
  switch (kind) {
  case LINES: sum = of_lines(count); break;
  case REGISTERS: sum = of_registers(count); break;
  case LINE_BACK: lines_back(); break;
  default: registers_back();
  }
  nm_send_word(nm_register_pipe(REGISTER_PIPES), sum);
  return 0;
}
