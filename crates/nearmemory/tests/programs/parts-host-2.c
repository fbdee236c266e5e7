// Second source file of parts-host.c.

#include "nearmemory/host.h"

// Returns a line of far memory whose first word is 2. Allocations of both source files must not overlap.
volatile uint64_t *other(void) {
  volatile uint64_t *far = nm_far_alloc(NM_LINE);
  far[0] = 2;
  nm_clean_all(far, NM_LINE);
  return far;
}

// Gives two lines to core 0 and starts its program. Returns 0 or an enum nm_error.
int start(uint64_t far, uint64_t more) {
  nm_give(0, (void *)far, NM_LINE);
  nm_give(0, (void *)more, NM_LINE);
  return nm_spawn(0, "parts", (uint64_t[4]){far, more});
}
