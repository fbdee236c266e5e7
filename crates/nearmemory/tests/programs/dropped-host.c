// Prefetches lines that a fence has dropped while hardware prefetches of them are on their way. Each run loads three
// successive lines, so that the last load starts hardware prefetches, and prefetches a line after the fence that waits
// for this load. The first argument is the number of runs, and the second one the number of lines from the first loaded
// line to the prefetched one. Loads all lines afterwards, and prints the number of runs.

#include "nearmemory/programs/bench.h"

#include <stdlib.h>

// Lines between two runs.
#define RUN_INTERVAL 16

int main(int argc, char **argv) {
  uint64_t runs = argument(argc, argv, 1), distance = argument(argc, argv, 2);
  volatile uint64_t *far = nm_far_alloc(runs * RUN_INTERVAL * NM_LINE);
  require(far != NULL, "no far memory");
  for (uint64_t i = 0; i < runs; i++) {
    volatile uint64_t *run = far + i * RUN_INTERVAL * 16;
    for (uint64_t j = 0; j < 3; j++) (void)run[j * 16];
    __asm__ volatile("fence r, rw" ::: "memory");
    nm_prefetch(run + distance * 16);
  }
  for (uint64_t i = 0; i < runs * RUN_INTERVAL; i++) (void)far[i * 16];
  printf("%lu\n", (unsigned long)runs);
  return 0;
}
