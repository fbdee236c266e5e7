// Helpers of the benchmark hosts: timing, output, verification and random numbers.

#ifndef NEARMEMORY_BENCH_H
#define NEARMEMORY_BENCH_H

#include "nearmemory/host.h"

#include <time.h>

// Returns the cycle counter after all earlier accesses have completed; nanoseconds in a native program.
static inline uint64_t cycles(void) {
  uint64_t now;
#ifdef __riscv
  __asm__ volatile("fence iorw, iorw\n csrr %0, cycle" : "=r"(now)::"memory");
#else
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  now = time.tv_sec * 1000000000ull + time.tv_nsec;
#endif
  return now;
}

// Prints the name of a measurement and its duration, a difference of two results of `cycles`.
static inline void print_duration(const char *name, uint64_t duration) {
#ifdef __riscv
  printf("%s: %lu cycles\n", name, (unsigned long)duration);
#else
  printf("%s: %lu ns\n", name, (unsigned long)duration);
#endif
}

// Exits with an error message if the condition is false.
static inline void require(int condition, const char *name) {
  if (condition) return;
  printf("wrong: %s\n", name);
  exit(1);
}

// Returns a command-line argument as a number (decimal, or hexadecimal with 0x). Exits with an error message if there
// are too few.
static inline uint64_t argument(int argc, char **argv, int index) {
  require(index < argc, "too few arguments");
  return strtoul(argv[index], NULL, 0);
}

// Returns the xorshift successor of `x`; never 0 for x > 0.
static inline uint64_t next_random(uint64_t x) {
  x ^= x << 13;
  x ^= x >> 7;
  return x ^ x << 17;
}

// Returns a hash of a number (finaliser of SplitMix64).
static inline uint64_t hash(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Maximum prefetch distance, in lines: ranges of far memory that are prefetched are longer by this.
#define NM_MAX_PREFETCHES 128

// Prefetch distance, in lines, of a loop that reads a line of far memory for each line that it prefetches: the number
// of misses that the last-level cache may have outstanding. Further prefetches would be dropped, and fewer would leave
// miss entries unused.
static inline uint64_t nm_prefetch_distance(void) {
  uint64_t misses = nm_last_cache_misses();
  return misses < NM_MAX_PREFETCHES ? misses : NM_MAX_PREFETCHES;
}

// Candidate prefetch distances, in eighths of `nm_prefetch_distance`: a loop with a shorter latency, or with accesses
// to the lines between, is fastest with a shorter distance.
static const uint64_t nm_prefetch_eighths[] = {1, 2, 3, 4, 6, 8};
#define NM_PREFETCH_DISTANCES (sizeof nm_prefetch_eighths / sizeof *nm_prefetch_eighths)

// Returns a candidate by its index.
static inline uint64_t nm_prefetch_candidate(unsigned index) {
  return (nm_prefetch_eighths[index] * nm_prefetch_distance() + 7) / 8;
}

// Prefetch distance, in lines, of the loops below, which are not measured; they prefetch as far beyond the range.
#define NM_WARM_DISTANCE 48

// Loads a range of `bytes` bytes into the last-level cache, with prefetches.
static inline void warm_cache(volatile uint64_t *far, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes / NM_LINE; i++) {
    nm_prefetch_far(far + (i + NM_WARM_DISTANCE) * 16);
    (void)far[i * 16];
  }
}

// Returns 1 if all words of a range of `bytes` bytes, a multiple of a line, are zero.
static inline int is_zero(const volatile uint64_t *words, uint64_t bytes) {
  uint64_t bits = 0;
  for (uint64_t i = 0; i < bytes / 8; i += 16) {
    nm_prefetch_far(words + i + NM_WARM_DISTANCE * 16);
    for (uint64_t j = 0; j < 16; j++) bits |= words[i + j];
  }
  return bits == 0;
}

#endif
