// Host of coreww.c: gives one line (128 bytes) of far memory to cores 0 and 1, of which core N stores word N, and
// prints both words. If a store is lost, its word is 0.

#include "nearmemory/host.h"

int main(void) {
  volatile uint64_t *far = nm_far_alloc(128);
  for (uint64_t core = 0; core < 2; core++) {
    nm_give(core, far, 128);
    if (nm_spawn(core, "coreww", (uint64_t[4]){(uint64_t)far, core})) return 1;
  }
  nm_wait(0, 0);
  nm_wait(1, 0);
  nm_flush_all(far, 128);
  printf("%lu and %lu\n", (unsigned long)far[0], (unsigned long)far[1]);
  return 0;
}
