// Team of host cores that run a function in parallel.

#ifndef NEARMEMORY_TEAM_H
#define NEARMEMORY_TEAM_H

#include "nearmemory/cores.h"
#include "nearmemory/programs/bench.h"

// Number of cores of a team, including the calling one.
#define CORES 4

// State of the team. All of its cores meet at the barrier before and after each function.
static struct {
  struct nm_thread threads[CORES];
  struct nm_barrier barrier;
  // Next function to run; NULL ends the team.
  void (*work)(uint64_t core);
} team;

// Main loop of a core other than the first.
static void team_member(void *core) {
  for (;;) {
    nm_barrier_wait(&team.barrier);
    if (!team.work) return;
    team.work((uintptr_t)core);
    nm_order();
    nm_barrier_wait(&team.barrier);
  }
}

// Starts the other cores of the team, which poll for work. Exits with an error message if the host has too few cores.
static void team_begin(void) {
  team.barrier = (struct nm_barrier){.cores = CORES};
  for (uint64_t i = 1; i < CORES; i++)
    require(nm_thread_start(&team.threads[i], i, team_member, (void *)(uintptr_t)i) == 0,
            "the host does not have 4 cores");
}

// Runs a function on all cores; its argument is the number of the core. Returns its duration in cycles (in a native
// program: nanoseconds).
static uint64_t team_run(void (*work)(uint64_t core)) {
  uint64_t start = cycles();
  team.work = work;
  nm_barrier_wait(&team.barrier);
  work(0);
  nm_order();
  nm_barrier_wait(&team.barrier);
  return cycles() - start;
}

// Stops and joins the other cores.
static void team_end(void) {
  team.work = NULL;
  nm_barrier_wait(&team.barrier);
  for (uint64_t i = 1; i < CORES; i++) nm_thread_join(&team.threads[i]);
}

#endif
