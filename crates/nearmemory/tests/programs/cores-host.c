// Host cores that share memory: they count with atomic accesses, update a number under a lock, pass words in turns, and
// meet at a barrier. Invalid calls are rejected. Exit codes other than 0 name the call with an unexpected result.

#include "nearmemory/cores.h"

#include <stdio.h>

#define ROUNDS 1000
#define MAX_CORES 8

// Number of atomic additions; number that cores update under `lock`; the lock, 1 while taken; number of cores in use;
// turns so far; word that each core passes to the next one, greater by 1 at each turn.
static uint64_t counted, locked, lock, cores, turn, passed[MAX_CORES];
// Arrivals at each of the three barriers. The last element is 1 if a core left a barrier before all had arrived.
static uint64_t arrivals[MAX_CORES];
static struct nm_barrier barrier;

static void acquire_lock(void) {
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {
  }
}

static void work(void *argument) {
  uint64_t own = (uintptr_t)argument;
  for (int i = 0; i < ROUNDS; i++) {
    // One atomic addition, and one by compare-and-swap.
    __atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED);
    uint64_t before = __atomic_load_n(&counted, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&counted, &before, before + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    acquire_lock();
    locked = locked * 3 + 1;
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
  }
  for (int i = 0; i < ROUNDS; i++) {
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) % cores != own) {
    }
    passed[own] = passed[(own + cores - 1) % cores] + 1;
    __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
  }
  for (int i = 0; i < 3; i++) {
    __atomic_fetch_add(&arrivals[i], 1, __ATOMIC_RELAXED);
    nm_barrier_wait(&barrier);
    if (__atomic_load_n(&arrivals[i], __ATOMIC_RELAXED) != cores) arrivals[MAX_CORES - 1] = 1;
  }
}

int main(void) {
  struct nm_thread threads[MAX_CORES];
  cores = nm_cores();
  barrier.cores = cores;
  for (uint64_t i = 1; i < cores; i++)
    if (nm_thread_start(&threads[i], i, work, (void *)i)) return 2;
  // Error codes of SBI: -6 already started, -3 invalid core, -2 unsupported function.
  if (cores > 1 && nm_hart(NM_HART_START, 1, 0, 0) != -6) return 3;
  if (nm_hart(NM_HART_START, 0, 0, 0) != -6 || nm_hart(NM_HART_START, cores, 0, 0) != -3) return 4;
  if (nm_hart(99, 0, 0, 0) != -2) return 5;
  work(NULL);
  for (uint64_t i = 1; i < cores; i++) nm_thread_join(&threads[i]);
  // A core that has ended is started again.
  if (cores > 1) {
    barrier.cores = cores = 1;
    for (int i = 0; i < 3; i++) arrivals[i] = 0;
    if (nm_thread_start(&threads[1], 1, work, NULL)) return 6;
    nm_thread_join(&threads[1]);
    cores = nm_cores();
  }
  uint64_t expected = 0;
  for (uint64_t i = 0; i < (cores + (cores > 1)) * ROUNDS; i++) expected = expected * 3 + 1;
  printf("%lu cores: %lu counted, %s, %lu turns, early %lu\n", (unsigned long)cores, (unsigned long)counted,
         locked == expected ? "locked" : "not locked", (unsigned long)turn, (unsigned long)arrivals[MAX_CORES - 1]);
  return 0;
}
