// A host program of two source files: each allocates far memory, and one stops the program that the other has started.

#include "nearmemory/host.h"
#include "nearmemory/programs/bench.h"

// Functions of parts-host-2.c.
volatile uint64_t *other(void);
int start(uint64_t, uint64_t);

int main(void) {
  volatile uint64_t *far = nm_far_alloc(NM_LINE), *more = other();
  far[0] = 1;
  nm_clean_all(far, NM_LINE);
  require(start((uintptr_t)far, (uintptr_t)more) == 0, "the core starts");
  uint64_t word = 0;
  require(nm_receive_word(nm_registers_of(0, 0), &word) && word == 3, "the sum of two lines");
  nm_stop(0);
  int status = 0;
  require(nm_wait(0, &status) == NM_EXITED && status == -1, "it is stopped");
  printf("all is right\n");
  return 0;
}
