// Host of held.c: waits for a held read or, with the macro ACKNOWLEDGES, for the acknowledgement of a write-back, and
// then loads a line of far memory. The load is ordered after the core's store unless the core releases too early
// (EARLY). The test finds the marked line by its text, including the trailing comment.

#include "nearmemory/host.h"

int main(void) {
  volatile uint64_t *far = nm_far_alloc(NM_LINE);
  uint64_t words[16] = {0}, word;
  nm_give(0, far, NM_LINE);
  if (nm_spawn(0, "held", (uint64_t[4]){(uint64_t)far})) return 1;
  nm_receive_word(nm_registers_of(0, 0), &word);
#ifdef ACKNOWLEDGES
  nm_write_line(0, 0, words);
#else
  nm_read_line(0, 0, words);
#endif
  printf("%lu\n", (unsigned long)far[0]);  // loads
  nm_wait(0, 0);
  return 0;
}
