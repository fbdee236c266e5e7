// Follows pointers through PAGES pages for a number of rounds, the argument, and prints the cycles. Then prefetches
// lines of far memory in as many pages, before and after one of them is accessed. Also prints the size of the
// last-level cache. The test counts page-table walks and prefetches.

#include "nearmemory/programs/bench.h"

// Number of pages, and their size in bytes.
#define PAGES 8
#define PAGE 4096

static char area[PAGES * PAGE] __attribute__((aligned(PAGE)));

// Returns the word of a page that points to the next page; these words map to different sets of every cache.
static void **place(int page) { return (void **)(area + page * PAGE + page * NM_LINE); }

// Prefetches one line of each page. A prefetch that misses the TLB is dropped.
static void hint(char *far, int line) {
  for (int page = 0; page < PAGES; page++) nm_prefetch_far(far + page * PAGE + line * NM_LINE);
}

int main(int argc, char **argv) {
  uint64_t rounds = argument(argc, argv, 1);
  for (int page = 0; page < PAGES; page++) *place(page) = place((page + 1) % PAGES);
  void **at = place(0);
  uint64_t start = cycles();
  for (uint64_t i = 0; i < rounds * PAGES; i++) at = *(void *volatile *)at;
  print_duration("followed", cycles() - start + (at != place(0)));
  printf("last cache: %lu bytes\n", (unsigned long)nm_last_cache());
  char *far = nm_far_alloc(PAGES * PAGE);
  hint(far, 0);
  (void)*(volatile char *)(far + NM_LINE);
  hint(far, 2);
  return 0;
}
