// Host cores that share memory: they count with atomic accesses, update a number under a lock, pass words in turns, and
// meet at a barrier. Invalid calls are rejected. Exit codes other than 0 name the call with an unexpected result.

#include "nearmemory/cores.h"

#include <stdio.h>

#define ROUNDS 1000
#define MAX_CORES 8
#define BARRIERS 3

// Number of atomic additions of all cores.
static uint64_t counted;
// A lock, 1 while taken, and a sequence that cores advance under it: an update that is lost changes its last element.
static uint64_t lock, sequence;
// Number of cores in use; number of turns so far; word that each core passes to the next one, greater by 1 at each
// turn.
static uint64_t cores, turn, passed[MAX_CORES];
// Number of cores that have arrived at each barrier; 1 if a core left a barrier before all had arrived.
static uint64_t arrivals[BARRIERS], left_early;
static struct nm_barrier barrier;

static uint64_t next(uint64_t element) { return element * 3 + 1; }

static void acquire_lock(void) {
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {
  }
}

// Program of one core, whose number is the argument.
static void work(void *argument) {
  uint64_t own = (uintptr_t)argument;
  for (int i = 0; i < ROUNDS; i++) {
    // One atomic addition, and one by compare-and-swap.
    __atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED);
    uint64_t before = __atomic_load_n(&counted, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&counted, &before, before + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    acquire_lock();
    sequence = next(sequence);
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
  }
  for (int i = 0; i < ROUNDS; i++) {
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) % cores != own) {
    }
    passed[own] = passed[(own + cores - 1) % cores] + 1;
    __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
  }
  for (int i = 0; i < BARRIERS; i++) {
    __atomic_fetch_add(&arrivals[i], 1, __ATOMIC_RELAXED);
    nm_barrier_wait(&barrier);
    if (__atomic_load_n(&arrivals[i], __ATOMIC_RELAXED) != cores) left_early = 1;
  }
}

// Returns 1 if the last word that was passed counts all turns so far: each core saw the word of the core before it.
static int all_passed(void) { return passed[cores - 1] == turn; }

int main(void) {
  struct nm_thread threads[MAX_CORES];
  cores = nm_cores();
  barrier.cores = cores;
  for (uint64_t i = 1; i < cores; i++)
    if (nm_thread_start(&threads[i], i, work, (void *)i)) return 2;
  // Error codes of the supervisor binary interface (SBI), by which a hart is started: -6 already started, -3 invalid
  // hart, -2 unsupported function.
  if (cores > 1 && nm_hart(NM_HART_START, 1, 0, 0) != -6) return 3;
  if (nm_hart(NM_HART_START, 0, 0, 0) != -6 || nm_hart(NM_HART_START, cores, 0, 0) != -3) return 4;
  if (nm_hart(99, 0, 0, 0) != -2) return 5;
  work(NULL);
  for (uint64_t i = 1; i < cores; i++) nm_thread_join(&threads[i]);
  if (!all_passed()) return 7;
  // A core that has ended is started again. It does the work alone, so all rounds are done once more by one core.
  uint64_t all_rounds = cores * ROUNDS;
  if (cores > 1) {
    barrier.cores = cores = 1;
    for (int i = 0; i < BARRIERS; i++) arrivals[i] = 0;
    if (nm_thread_start(&threads[1], 1, work, NULL)) return 6;
    nm_thread_join(&threads[1]);
    cores = nm_cores();
    all_rounds += ROUNDS;
  }
  uint64_t expected = 0;
  for (uint64_t i = 0; i < all_rounds; i++) expected = next(expected);
  printf("%lu cores: %lu counted, %s, %lu turns, early %lu\n", (unsigned long)cores, (unsigned long)counted,
         sequence == expected ? "locked" : "not locked", (unsigned long)turn, (unsigned long)left_early);
  return 0;
}
