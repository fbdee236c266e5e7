// Sends words to a near-memory core, by a line pipe or by register pipes, from one thread or from four; and
// round trips of single words. Arguments: lines or registers, number of words, and number of threads if four.

#include "nearmemory/programs/bench.h"
#include "nearmemory/programs/team.h"

enum { LINES, REGISTERS, LINE_BACK, REGISTER_BACK };

#define REGISTER_PIPES 15
// Words sent together.
#define BATCH (64 * NM_WORDS)
#define SCRATCHPAD 512

static void start(uint64_t kind, uint64_t count, uint64_t threads) {
  require(nm_spawn(0, "pipes", (uint64_t[4]){kind, count, threads}) == 0, "the core does not start");
}

static uint64_t answer(void) {
  uint64_t word = 0;
  require(nm_receive_word(nm_registers_of(0, REGISTER_PIPES), &word), "the core sends nothing");
  require(nm_wait(0, NULL) == NM_EXITED, "the core does not end");
  return word;
}

// Words of each thread, and its lines or registers.
static uint64_t lines, words, batch[BATCH];

static void by_lines(uint64_t thread) {
  struct nm_sender out = nm_sender(nm_pipe_of(0, thread * (lines + 1)), lines);
  for (uint64_t sent = 0; sent < words;) {
    // Each batch, and the rest, begins with a new line.
    uint64_t left = words - sent, more = BATCH - sent % BATCH;
    sent += nm_send_some(&out, batch + sent % BATCH, left < more ? left : more);
  }
  nm_end(&out);
}

static void by_registers(uint64_t thread) {
  uint64_t first = thread * lines;
  for (uint64_t i = 0, at = 0, from = 0; i < words; i++) {
    nm_send_word(nm_registers_of(0, first + at), batch[from]);
    at = at + 1 == lines ? 0 : at + 1;
    from = from + 1 == BATCH ? 0 : from + 1;
  }
  nm_end_words(nm_registers_of(0, first + words % lines));
}

// From the first word to the sum, which the core computes of each word or of each line's first word: all lines but the last are full.
static void measure(int kind, uint64_t threads, const char *who) {
  void (*send)(uint64_t) = kind == LINES ? by_lines : by_registers;
  uint64_t expected = 0, each = kind == LINES ? NM_WORDS : 1;
  for (uint64_t i = 0; i < words; i += each) expected += batch[i % BATCH] * threads;
  start(kind, lines, threads);
  if (threads > 1) team_begin();
  uint64_t began = cycles();
  if (threads > 1)
    team_run(send);
  else
    send(0);
  uint64_t got = answer(), found = cycles() - began;
  if (threads > 1) team_end();
  require(got == expected, who);
  print_duration(who, found);
}

static void line_back(uint64_t times) {
  start(LINE_BACK, 1, 1);
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
  print_duration("line there and back", found / times);
}

static void register_back(uint64_t times) {
  start(REGISTER_BACK, 1, 1);
  uint64_t began = cycles();
  for (uint64_t i = 0; i < times; i++) {
    uint64_t word = 0;
    nm_send_word(nm_registers_of(0, 0), i);
    require(nm_receive_word(nm_registers_of(0, 1), &word) && word == i, "a word that comes back");
  }
  uint64_t found = cycles() - began;
  nm_end_words(nm_registers_of(0, 0));
  answer();
  print_duration("word there and back", found / times);
}

int main(int argc, char **argv) {
  uint64_t threads = argc > 3 ? argument(argc, argv, 3) : 1, all = argument(argc, argv, 2);
  lines = argument(argc, argv, 1);
  words = all / threads;
  require(threads == 1 || threads == CORES, "1 thread, or 4");
  require(lines >= 1 && threads * (lines + 1) <= SCRATCHPAD && words > 0, "so many lines that there are, and some words");
  for (uint64_t i = 0; i < BATCH; i++) batch[i] = hash(i);
  measure(LINES, threads, threads == 1 ? "lines" : "lines, 4 threads");
  if (threads * lines <= REGISTER_PIPES) measure(REGISTERS, threads, threads == 1 ? "registers" : "registers, 4 threads");
  if (lines == 1 && threads == 1) {
    line_back(words / 16 + 1);
    register_back(words / 16 + 1);
  }
  return 0;
}
