// Sends the numbers from 1 to 1000 to a program beside far memory, and prints what it makes of them.

#include "nearmemory/host.h"

// Lines of each pipe.
#define LINES 8

int main(void) {
  int error = nm_spawn(0, "sum", (uint64_t[4]){LINES});
  if (error) {
    printf("the program cannot be started: error %d\n", error);
    return 1;
  }
  // Each pipe has a line more, by which the receiver tells how many it has taken.
  struct nm_sender numbers = nm_sender(nm_pipe_of(0, 0), LINES);
  struct nm_receiver sums = nm_receiver(nm_pipe_of(0, LINES + 1), LINES);
  for (uint64_t i = 1; i <= 1000; i++)
    if (nm_send_to(0, &numbers, &i, 1)) return 2;
  if (nm_end_to(0, &numbers)) return 2;
  uint64_t words[NM_WORDS];
  if (nm_receive_from(0, &sums, words) != 1) return 3;
  printf("their sum is %lu\n", (unsigned long)words[0]);
  int status;
  enum nm_state state = nm_wait(0, &status);
  printf("the program has ended %s, with %d\n", state == NM_EXITED ? "by itself" : "otherwise", status);
  return 0;
}
