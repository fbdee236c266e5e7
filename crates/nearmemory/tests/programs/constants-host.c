// Host 0 stores in a line of far memory, writes it back and then writes a control register. Host 1 waits for a time
// only, reads registers that no program changes, and counters, and loads the line.

#include "nearmemory/programs/bench.h"

int main(void) {
  volatile uint64_t *far = nm_far_alloc(2 * NM_LINE);
  if (nm_host() == 0) {
    far[0] = 42;  // stores
    nm_flush_all(far, NM_LINE);
    nm_give(0, far, NM_LINE);
    return 0;
  }
  for (uint64_t start = cycles(); cycles() < start + 20000;) {
  }
  require(nm_hosts() == 2 && nm_host() == 1 && nm_open() > 0, "wrong constants");
  require(nm_last_cache() > 0 && nm_last_cache_misses() > 0 && nm_far_alloc(NM_LINE), "wrong sizes");
  require(nm_counter(NM_BYTES_TO_DEVICE) > 0 && nm_counter(NM_LINES_WRITTEN) > 0, "wrong counters");
  (void)far[0];  // loads
  return 0;
}
