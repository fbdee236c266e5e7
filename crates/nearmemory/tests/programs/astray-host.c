// Host of astray.c: starts a program with the first argument as its mode, on core 0 or on the core of the second
// argument. Waits for its end and prints its final state. Some modes use resources that the host lacks.

#include "nearmemory/host.h"

// Modes 11 and 12 are faults of the host itself: an atomic access to far memory, and an access to a line beyond the
// scratchpad. The other modes are those of astray.c.
int main(int argc, char **argv) {
  uint64_t mode = argc > 1 ? strtoul(argv[1], 0, 10) : 0, core = argc > 2 ? strtoul(argv[2], 0, 10) : 0;
  if (mode == 11) __atomic_fetch_add((uint64_t *)nm_far_alloc(NM_LINE), 1, __ATOMIC_SEQ_CST);
  if (mode == 12) *nm_line_of(1, 512) = 1;
  // Core 2 receives none of the words that are sent to it.
  if (mode == 5 && nm_spawn(2, "astray", (uint64_t[4]){6})) return 1;
  int error = nm_spawn(core, "astray", (uint64_t[4]){mode});
  if (error) return 1;
  enum nm_state state = nm_wait(core, 0);
  printf("state %d\n", state);
  return 0;
}
