// Host of gone.c: sends into a pipe that the ended program no longer empties, or as compile-time macros say:
//   WAITS  waits for the program, which does not end
//   STOPS  stops it before
// The simulator must report a livelock, not run up to its limit of 10,000,000,000 instructions.

#include "nearmemory/host.h"

int main(void) {
  if (nm_spawn(0, "gone", 0)) return 1;
#ifdef STOPS
  nm_stop(0);
#endif
#ifdef WAITS
  nm_wait(0, 0);  // waits
#else
  uint64_t words[15] = {0};
  struct nm_sender out = nm_sender(nm_pipe_of(0, 0), 2);
  for (int i = 0; i < 100; i++) nm_send(&out, words, 15);  // sends
#endif
  return 0;
}
