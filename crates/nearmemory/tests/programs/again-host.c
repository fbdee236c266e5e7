// Starts the program `again` on one core repeatedly and checks that each sum covers only its own numbers: the next
// program is unaffected by lines of an earlier program's pipes in the host's caches. Round N sends 7 N numbers. The
// exit code names the failed step.

#include "nearmemory/host.h"

// First scratchpad line of the pipe of numbers, beyond the loaded binary.
#define FIRST 400
// Data lines of each pipe. The pipe of sums starts one line after them: each pipe also has a line with its count.
#define LINES 8

int main(void) {
  for (uint64_t round = 0; round < 5; round++) {
    if (nm_spawn(0, "again", (uint64_t[4]){FIRST, LINES})) return 1;
    struct nm_sender numbers = nm_sender(nm_pipe_of(0, FIRST), LINES);
    struct nm_receiver sums = nm_receiver(nm_pipe_of(0, FIRST + LINES + 1), LINES);
    uint64_t expected = 0, words[NM_WORDS], count = round * 7;
    for (uint64_t i = 1; i <= count; i++) {
      uint64_t number = i * (round + 1);
      expected += number;
      if (nm_send_to(0, &numbers, &number, 1)) return 2;
    }
    nm_end(&numbers);
    if (nm_receive_from(0, &sums, words) != 1) return 3;
    if (words[0] != expected) {
      printf("round %d: %lu instead of %lu\n", (int)round, (unsigned long)words[0], (unsigned long)expected);
      return 4;
    }
    if (nm_receive_from(0, &sums, words) != 0 || nm_wait(0, NULL) != NM_EXITED) return 5;
  }
  printf("each sum is right\n");
  return 0;
}
