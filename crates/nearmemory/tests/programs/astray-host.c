// Starts a program that does what the first argument says, on core 0 or that of the second one, waits for its end and tells how it
// ended.

#include "nearmemory/host.h"

int main(int argc, char **argv) {
  uint64_t what = argc > 1 ? strtoul(argv[1], 0, 10) : 0, core = argc > 2 ? strtoul(argv[2], 0, 10) : 0;
  // Core 2 takes nothing of what it is sent.
  if (what == 5 && nm_spawn(2, "astray", (uint64_t[4]){6})) return 1;
  int error = nm_spawn(core, "astray", (uint64_t[4]){what});
  if (error) return 1;
  enum nm_state state = nm_wait(core, 0);
  printf("state %d\n", state);
  return 0;
}
