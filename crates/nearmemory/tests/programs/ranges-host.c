// Each host of a machine reads something of its own at the same time, and prints the duration in cycles. The first
// argument selects the measurement by its number in the enum below, and the second one is the number of reads.

#include "nearmemory/programs/bench.h"

enum measurement {
  LOADS,          // lines of far memory, each after the previous one
  PREFETCHED,     // lines of far memory, with prefetches
  REGISTER_READS, // registers of a core
};

// Bytes of far memory of each host: a row in each channel of DRAM, so that hosts use different banks.
#define RANGE (16 << 10)

int main(int argc, char **argv) {
  uint64_t measurement = argument(argc, argv, 1), reads = argument(argc, argv, 2);
  uint64_t distance = nm_prefetch_distance();
  volatile char *far = (volatile char *)nm_far_alloc(nm_hosts() * RANGE) + nm_host() * RANGE;
  require(reads * NM_LINE <= RANGE, "too many reads");
  // Loads the translation before the measurement, by another line than those that are read.
  (void)*(far + RANGE - NM_LINE);
  uint64_t start = cycles();
  switch (measurement) {
  case LOADS:
    for (uint64_t i = 0; i < reads; i++) {
      uint64_t word = *(volatile uint64_t *)(far + i * NM_LINE);
      __asm__ volatile("" ::"r"(word + 1));
    }
    break;
  case PREFETCHED:
    for (uint64_t i = 0; i < distance && i < reads; i++) nm_prefetch_far(far + i * NM_LINE);
    for (uint64_t i = 0; i < reads; i++) {
      if (i + distance < reads) nm_prefetch_far(far + (i + distance) * NM_LINE);
      (void)*(far + i * NM_LINE);
    }
    break;
  case REGISTER_READS:
    for (uint64_t i = 0; i < reads; i++) (void)nm_open();
    break;
  default:
    return 1;
  }
  printf("%lu\n", (unsigned long)(cycles() - start));
  return 0;
}
