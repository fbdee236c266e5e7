// Sends words to a core beside far memory, by a pipe of so many lines or by so many register pipes; and words there and back, one
// at a time. Called with the lines, and how many words are sent.

#include "nearmemory/programs/bench.h"

enum { LINES, REGISTERS, LINE_BACK, REGISTER_BACK };

#define REGISTER_PIPES 15
// Words that are sent at once.
#define BATCH (64 * NM_WORDS)

static void start(uint64_t kind, uint64_t count) {
  require(nm_spawn(0, "pipes", (uint64_t[4]){kind, count}) == 0, "the core does not start");
}

static uint64_t answer(void) {
  uint64_t word = 0;
  require(nm_receive_word(nm_registers_of(0, REGISTER_PIPES), &word), "the core sends nothing");
  require(nm_wait(0, NULL) == NM_EXITED, "the core does not end");
  return word;
}

// Words by a line pipe. The core adds up the first one of each line, and lines are full but for the last.
static void by_lines(uint64_t lines, uint64_t words) {
  static uint64_t batch[BATCH];
  uint64_t expected = 0;
  for (uint64_t i = 0; i < BATCH; i++) batch[i] = mixed(i);
  start(LINES, lines);
  struct nm_sender out = nm_sender(nm_pipe_of(0, 0), lines);
  uint64_t began = cycles();
  for (uint64_t sent = 0; sent < words;) {
    // Batches begin with a line, and so does what is left of one.
    uint64_t left = words - sent, more = BATCH - sent % BATCH;
    sent += nm_send_some(&out, batch + sent % BATCH, left < more ? left : more);
  }
  nm_end(&out);
  uint64_t got = answer(), found = cycles() - began;
  for (uint64_t i = 0; i < words; i += NM_WORDS) expected += batch[i % BATCH];
  require(got == expected, "the sum of lines");
  took("lines", found);
}

static void by_registers(uint64_t registers, uint64_t words) {
  uint64_t sum = 0;
  start(REGISTERS, registers);
  uint64_t began = cycles();
  for (uint64_t i = 0, at = 0; i < words; i++, at = at + 1 == registers ? 0 : at + 1) {
    nm_send_word(nm_registers_of(0, at), i);
    sum += i;
  }
  nm_end_words(nm_registers_of(0, words % registers));
  uint64_t got = answer(), found = cycles() - began;
  require(got == sum, "the sum of registers");
  took("registers", found);
}

static void line_back(uint64_t times) {
  start(LINE_BACK, 1);
  struct nm_sender out = nm_sender(nm_pipe_of(0, 0), 1);
  struct nm_receiver in = nm_receiver(nm_pipe_of(0, 16), 1);
  uint64_t began = cycles();
  for (uint64_t i = 0; i < times; i++) {
    uint64_t words[NM_WORDS] = {i};
    nm_send(&out, words, 1);
    require(nm_receive(&in, words) == 1 && words[0] == i, "a line that comes back");
  }
  uint64_t found = cycles() - began;
  nm_end(&out);
  answer();
  took("line there and back", found / times);
}

static void register_back(uint64_t times) {
  start(REGISTER_BACK, 1);
  uint64_t began = cycles();
  for (uint64_t i = 0; i < times; i++) {
    uint64_t word = 0;
    nm_send_word(nm_registers_of(0, 0), i);
    require(nm_receive_word(nm_registers_of(0, 1), &word) && word == i, "a word that comes back");
  }
  uint64_t found = cycles() - began;
  nm_end_words(nm_registers_of(0, 0));
  answer();
  took("word there and back", found / times);
}

int main(int argc, char **argv) {
  uint64_t lines = argument(argc, argv, 1), words = argument(argc, argv, 2);
  require(lines >= 1 && lines <= 128 && words > 0, "1 to 128 lines, and some words");
  by_lines(lines, words);
  if (lines <= REGISTER_PIPES) by_registers(lines, words);
  if (lines == 1) {
    line_back(words / 16 + 1);
    register_back(words / 16 + 1);
  }
  return 0;
}
