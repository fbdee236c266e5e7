// Benchmark: sends words to a near-memory core (pipes.c), by line pipes or by register pipes, from one thread or from
// four; and round trips of single words. Arguments: lines or register pipes of each thread; number of words of all
// threads; number of threads, 1 or 4 (default 1). Round trips are measured with one line and one thread.

#include "nearmemory/programs/bench.h"
#include "nearmemory/programs/team.h"

// Modes, as in pipes.c.
enum { LINES, REGISTERS, LINE_ROUND_TRIP, REGISTER_ROUND_TRIP };

// Number of register pipes for words; the pipe after them returns the sum.
#define REGISTER_PIPES 15
// First line of the pipe of returning words, as in pipes.c.
#define RETURN_LINE 16
// Words sent together.
#define BATCH (64 * NM_WORDS)
// Lines of the scratchpad.
#define SCRATCHPAD 512

// Starts the program in a mode; `count` is the number of lines or registers of each thread.
static void start(uint64_t mode, uint64_t count, uint64_t threads) {
  require(nm_spawn(0, "pipes", (uint64_t[4]){mode, count, threads}) == 0, "the core does not start");
}

// Returns the sum that the core has computed, after its end.
static uint64_t receive_sum(void) {
  uint64_t word = 0;
  require(nm_receive_word(nm_registers_of(0, REGISTER_PIPES), &word), "the core sends nothing");
  require(nm_wait(0, NULL) == NM_EXITED, "the core does not end");
  return word;
}

// Number of lines or registers of each thread, and of its words; the words, which repeat after BATCH.
static uint64_t lines, words, batch[BATCH];

// Sends all words of a thread by its line pipe.
static void send_by_lines(uint64_t thread) {
  struct nm_sender out = nm_sender(nm_pipe_of(0, thread * (lines + 1)), lines);
  for (uint64_t sent = 0; sent < words;) {
    // Each batch, and the rest, begins with a new line.
    uint64_t left = words - sent, batch_left = BATCH - sent % BATCH, count = left < batch_left ? left : batch_left;
    nm_send(&out, batch + sent % BATCH, count);
    sent += count;
  }
  nm_end(&out);
}

// Sends all words of a thread by its register pipes in turn.
static void send_by_registers(uint64_t thread) {
  uint64_t first = thread * lines;
  for (uint64_t i = 0, register_index = 0, batch_index = 0; i < words; i++) {
    nm_send_word(nm_registers_of(0, first + register_index), batch[batch_index]);
    register_index = register_index + 1 == lines ? 0 : register_index + 1;
    batch_index = batch_index + 1 == BATCH ? 0 : batch_index + 1;
  }
  nm_end_words(nm_registers_of(0, first + words % lines));
}

// Measures the time from the first word to the sum, which the core computes of each word, or of each line's first word:
// all lines of a batch but the last are full.
static void measure(int mode, uint64_t threads, const char *label) {
  void (*send)(uint64_t) = mode == LINES ? send_by_lines : send_by_registers;
  uint64_t expected = 0, stride = mode == LINES ? NM_WORDS : 1;
  for (uint64_t i = 0; i < words; i += stride) expected += batch[i % BATCH] * threads;
  start(mode, lines, threads);
  if (threads > 1) team_begin();
  uint64_t start_time = cycles();
  if (threads > 1)
    team_run(send);
  else
    send(0);
  uint64_t sum = receive_sum(), duration = cycles() - start_time;
  if (threads > 1) team_end();
  require(sum == expected, label);
  print_duration(label, duration);
}

// Measures the mean time of a line to the core and back.
static void measure_line_round_trip(uint64_t round_trips) {
  start(LINE_ROUND_TRIP, 1, 1);
  struct nm_sender out = nm_sender(nm_pipe_of(0, 0), 1);
  struct nm_receiver in = nm_receiver(nm_pipe_of(0, RETURN_LINE), 1);
  uint64_t start_time = cycles();
  for (uint64_t i = 0; i < round_trips; i++) {
    uint64_t words[NM_WORDS] = {i};
    nm_send(&out, words, 1);
    require(nm_receive(&in, words) == 1 && words[0] == i, "a line that comes back");
  }
  uint64_t duration = cycles() - start_time;
  nm_end(&out);
  receive_sum();
  print_duration("line there and back", duration / round_trips);
}

// Measures the mean time of a word to the core and back.
static void measure_register_round_trip(uint64_t round_trips) {
  start(REGISTER_ROUND_TRIP, 1, 1);
  uint64_t start_time = cycles();
  for (uint64_t i = 0; i < round_trips; i++) {
    uint64_t word = 0;
    nm_send_word(nm_registers_of(0, 0), i);
    require(nm_receive_word(nm_registers_of(0, 1), &word) && word == i, "a word that comes back");
  }
  uint64_t duration = cycles() - start_time;
  nm_end_words(nm_registers_of(0, 0));
  receive_sum();
  print_duration("word there and back", duration / round_trips);
}

int main(int argc, char **argv) {
  uint64_t threads = argc > 3 ? argument(argc, argv, 3) : 1, total_words = argument(argc, argv, 2);
  lines = argument(argc, argv, 1);
  words = total_words / threads;
  require(threads == 1 || threads == CORES, "1 thread, or 4");
  require(lines >= 1 && threads * (lines + 1) <= SCRATCHPAD && words > 0, "pipes that fit, and at least 1 word a thread");
  for (uint64_t i = 0; i < BATCH; i++) batch[i] = hash(i);
  measure(LINES, threads, threads == 1 ? "lines" : "lines, 4 threads");
  if (threads * lines <= REGISTER_PIPES)
    measure(REGISTERS, threads, threads == 1 ? "registers" : "registers, 4 threads");
  if (lines == 1 && threads == 1) {
    measure_line_round_trip(words / 16 + 1);
    measure_register_round_trip(words / 16 + 1);
  }
  return 0;
}
