// Starts a program that does what the argument says, waits for its end and tells how it ended.

#include "nearmemory/host.h"

int main(int argc, char **argv) {
  uint64_t what = argc > 1 ? strtoul(argv[1], 0, 10) : 0;
  // Core 2 takes nothing of what it is sent.
  if (what == 5 && nm_spawn(2, "astray", (uint64_t[4]){6})) return 1;
  int error = nm_spawn(0, "astray", (uint64_t[4]){what});
  if (error) return 1;
  enum nm_state state = nm_wait(0, 0);
  printf("state %d\n", state);
  return 0;
}
