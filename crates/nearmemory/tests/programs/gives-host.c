// Two hosts give a line each to the program of one core, which adds up the first words of both. Host 1 gives its line
// between the two stores of host 0 that give a line. Host 0 starts the program, and prints the sum.

#include "nearmemory/programs/bench.h"

int main(void) {
  uint64_t word;
  volatile uint64_t *lines = nm_far_alloc(2 * NM_LINE), *own = lines + nm_host() * (NM_LINE / 8);
  struct nm_registers *forth = nm_registers_of(1, 0), *back = nm_registers_of(1, 1);
  own[0] = 3 + nm_host();
  nm_flush_all(own, NM_LINE);
  if (nm_host() == 1) {
    nm_receive_word(forth, &word);
    nm_give(0, own, NM_LINE);
    nm_send_word(back, 1);
    return 0;
  }
  // The two stores of nm_give.
  *nm_control(0, 0x828) = (uintptr_t)own;
  nm_send_word(forth, 1);
  nm_receive_word(back, &word);
  *nm_control(0, 0x830) = NM_LINE;
  int status;
  require(nm_spawn(0, "gives", (uint64_t[4]){(uintptr_t)lines}) == 0, "the program does not start");
  require(nm_wait(0, &status) == NM_EXITED, "the program was stopped");
  printf("sum %d\n", status);
  return 0;
}
