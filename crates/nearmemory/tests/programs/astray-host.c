// Starts a program that does what the first argument says, on core 0 or that of the second one, waits for its end and tells how it
// ended; or uses what a host has not.

#include "nearmemory/host.h"

int main(int argc, char **argv) {
  uint64_t what = argc > 1 ? strtoul(argv[1], 0, 10) : 0, core = argc > 2 ? strtoul(argv[2], 0, 10) : 0;
  if (what == 11) __atomic_fetch_add((uint64_t *)nm_far_alloc(NM_LINE), 1, __ATOMIC_SEQ_CST);
  if (what == 12) *nm_line_of(1, 512) = 1;
  // Core 2 takes nothing of what it is sent.
  if (what == 5 && nm_spawn(2, "astray", (uint64_t[4]){6})) return 1;
  int error = nm_spawn(core, "astray", (uint64_t[4]){what});
  if (error) return 1;
  enum nm_state state = nm_wait(core, 0);
  printf("state %d\n", state);
  return 0;
}
