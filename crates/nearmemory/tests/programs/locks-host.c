// Host of locks.c. Sends numbers to a core through a line that is locked for write-backs, and reads their sum from a
// line that is locked for reads: each request is held until the core has handled it. Writes one line back in pieces
// without waiting between them. Then stops a program that never ends, and starts another one.

#include "nearmemory/programs/bench.h"

// Number of lines with numbers, and index of the word that is written last.
#define TIMES 200
#define TAG 15

// Modes, the same in locks.c.
enum { ADD_UP, COMPUTE, LOCK, WAIT, LATE };

// Starts the program in a mode, and waits until it has set its locks.
static void start(uint64_t mode) {
  uint64_t word = 0;
  require(nm_spawn(0, "locks", (uint64_t[4]){mode}) == 0, "the core does not start");
  require(nm_receive_word(nm_registers_of(0, 0), &word) && word == 1, "it says that it runs");
}

// Sends numbers in a line whose last word is written last, so that a partly written line is distinguishable from a
// complete one.
static void send(uint64_t tag, uint64_t count, uint64_t first) {
  uint64_t words[16] = {count};
  for (uint64_t i = 0; i < count; i++) words[1 + i] = first + i;
  words[TAG] = tag;
  nm_write_line(0, 0, words);
}

// Sends lines of 1 to 14 numbers, and checks the sum after each. An empty line ends the program.
static void add_up(void) {
  uint64_t sum = 0, words[16];
  start(ADD_UP);
  for (uint64_t tag = 1; tag <= TIMES; tag++) {
    uint64_t count = 1 + tag % 14;
    for (uint64_t i = 0; i < count; i++) sum += tag * 100 + i;
    send(tag, count, tag * 100);
    nm_read_line(0, 1, words);
    require(words[0] == sum && words[1] == tag, "what is read once the write-back is acknowledged");
  }
  send(TIMES + 1, 0, 0);
  int status = 0;
  require(nm_wait(0, &status) == NM_EXITED && status == TIMES, "it ends by itself");
}

// Each write-back waits behind the previous one, which is held, and so does the read of the line for the next store.
static void in_pieces(void) {
  start(LATE);
  volatile uint64_t *line = nm_line_of(0, 3);
  for (uint64_t i = 0; i < TAG; i++) {
    line[i] = i + 1;
    nm_flush_now(line);
  }
  nm_order();
  nm_send_word(nm_registers_of(0, 1), 1);
  int status = 0;
  require(nm_wait(0, &status) == NM_EXITED && status == TAG, "what is written back in pieces is whole");
}

int main(void) {
  add_up();
  in_pieces();
  for (int mode = COMPUTE; mode <= WAIT; mode++) {
    start(mode);
    require(nm_state(0) == NM_RUNNING, "it runs");
    nm_stop(0);
    int status = 0;
    require(nm_wait(0, &status) == NM_EXITED && status == -1, "it is stopped");
  }
  // Locks are removed at the end of their program.
  uint64_t words[16] = {7};
  nm_write_line(0, 0, words);
  words[0] = 0;
  nm_read_line(0, 0, words);
  require(words[0] == 7, "what was written is read");
  add_up();
  printf("all is right\n");
  return 0;
}
