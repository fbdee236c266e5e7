// Host of stray.c: starts it on core 0 with its own arguments. Waits on a line that the program may have locked, then
// for its end, and prints the result. Then starts the program again, without an access.

#include "nearmemory/host.h"

// The arguments become words 0, 1 and 3 of the program; word 2 is the address of a page of far memory.
int main(int argc, char **argv) {
  uint64_t words[4] = {0};
  for (int i = 1; i < argc && i <= 4; i++) words[i - 1] = strtoul(argv[i], 0, 0);
  uint64_t *far = nm_far_alloc(4096);
  far[0] = 7;
  nm_clean_all(far, NM_LINE);
  nm_give(0, far, 4096);
  words[2] = (uint64_t)far;
  int error = nm_spawn(0, "stray", words);
  if (error) {
    printf("error %d\n", error);
    return 1;
  }
  // Held if the program has locked the line, and released when the program is stopped.
  nm_flush_all(nm_line_of(0, 5), NM_LINE);
  uint64_t word = *nm_line_of(0, 5);
  int status;
  enum nm_state state = nm_wait(0, &status);
  struct nm_fault fault = nm_fault(0);
  nm_flush_all(far, 4096);
  printf("state %d status %d cause %d value %#lx word %lu far %lu\n", state, status, (int)fault.cause,
         (unsigned long)fault.value, (unsigned long)word, (unsigned long)far[16]);
  // The core accepts another program.
  words[0] = 0;
  nm_give(0, far, 4096);
  error = nm_spawn(0, "stray", words);
  state = nm_wait(0, &status);
  printf("again %d state %d status %d\n", error, state, status);
  return 0;
}
