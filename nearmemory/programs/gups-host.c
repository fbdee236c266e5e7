// Benchmark similar to GUPS: combines random words of a table with random numbers by exclusive or. Variants: the host
// in its own memory and in far memory, with and without prefetches; four host cores with prefetches; a near-memory core
// (gups.c). Arguments: bytes of the table, a power of two; number of updates.
//
// Repeating the updates undoes them, so a table that is not zero again has lost an update.

#include "nearmemory/programs/bench.h"
#include "nearmemory/programs/team.h"

// First random number, the same for host and near-memory core.
#define SEED 0x2545f4914f6cdd1d

// Updates with this prefetch distance, in updates (0: no prefetches); returns the last random number. `words` is a
// power of two.
static uint64_t update(uint64_t *table, uint64_t words, uint64_t updates, uint64_t distance) {
  uint64_t random = SEED, later = SEED;
  for (uint64_t i = 0; i < distance; i++) later = next_random(later);
  for (uint64_t i = 0; i < updates; i++) {
    if (distance) {
      later = next_random(later);
      nm_prefetch_far(table + (later & (words - 1)));
    }
    random = next_random(random);
    table[random & (words - 1)] ^= random;
  }
  return random;
}

// Undoes the updates, and verifies that the table is zero.
static void verify(uint64_t *table, uint64_t words, uint64_t updates, const char *label) {
  update(table, words, updates, 48);
  require(is_zero(table, words * 8), label);
}

// Returns the time of the updates in a warm cache.
static uint64_t by_host(uint64_t *table, uint64_t words, uint64_t updates, uint64_t distance) {
  // Steady state after many updates: the last-level cache is full of the table.
  uint64_t bytes = words * 8, cache_bytes = nm_last_cache();
  warm_cache(table, bytes < cache_bytes ? bytes : cache_bytes);
  uint64_t start = cycles();
  update(table, words, updates, distance);
  return cycles() - start;
}

// Measures one variant of the host, verifies and prints it.
static void measure(uint64_t *table, uint64_t words, uint64_t updates, uint64_t distance, const char *label) {
  uint64_t duration = by_host(table, words, updates, distance);
  verify(table, words, updates, label);
  print_duration(label, duration);
}

// Arguments of `update` for each core's own part of the table, so that no word has two writers.
static struct {
  uint64_t *table, words, updates, distance;
} shared;

static void work(uint64_t core) {
  update(shared.table + core * shared.words, shared.words, shared.updates, shared.distance);
}

// Measures the updates by all cores of the team, verifies and prints them.
static void measure_cores(uint64_t *table, uint64_t words, uint64_t updates, uint64_t distance, const char *label) {
  shared.table = table, shared.words = words / CORES, shared.updates = updates / CORES;
  shared.distance = distance / CORES;
  uint64_t bytes = words * 8, cache_bytes = nm_last_cache();
  warm_cache(table, bytes < cache_bytes ? bytes : cache_bytes);
  team_begin();
  uint64_t duration = team_run(work);
  team_end();
  // One core undoes the updates of all, which detects updates that were never made.
  for (uint64_t core = 0; core < CORES; core++) update(table + core * shared.words, shared.words, shared.updates, 48);
  require(is_zero(table, bytes), label);
  print_duration(label, duration);
}

int main(int argc, char **argv) {
  uint64_t bytes = argument(argc, argv, 1), updates = argument(argc, argv, 2), words = bytes / 8;
  require(bytes >= CORES * NM_LINE && (bytes & (bytes - 1)) == 0, "the bytes are a power of two, and 4 lines or more");
  // Rounds up to the same number of updates per core.
  updates = (updates + CORES - 1) / CORES * CORES;
  uint64_t *local = calloc(words, 8), *far = nm_far_alloc(bytes + NM_MAX_PREFETCHES * NM_LINE);
  require(local && far, "no memory");
  measure(local, words, updates, 0, "host, local");
  measure(far, words, updates, 0, "host, far");
  // Each run is undone by the next one.
  uint64_t best_distance = 0, best_duration = UINT64_MAX;
  for (unsigned i = 0; i < NM_PREFETCH_DISTANCES; i++) {
    uint64_t duration = by_host(far, words, updates / 4 + 1, nm_prefetch_candidate(i));
    if (duration < best_duration) best_duration = duration, best_distance = nm_prefetch_candidate(i);
  }
  require(NM_PREFETCH_DISTANCES % 2 == 0 && is_zero(far, bytes), "updates that were undone");
  measure(far, words, updates, best_distance, "host, far with hints");
  if (nm_cores() >= CORES) measure_cores(far, words, updates, best_distance, "host, far with hints, 4 cores");
  nm_flush_all(far, bytes);
  nm_give(0, far, bytes);
  require(nm_spawn(0, "gups", (uint64_t[4]){(uintptr_t)far, words, SEED}) == 0, "the core does not start");
  uint64_t start = cycles(), final_random = 0, random = SEED;
  nm_send_word(nm_registers_of(0, 0), updates);
  require(nm_receive_word(nm_registers_of(0, 1), &final_random), "the core sends nothing");
  uint64_t duration = cycles() - start;
  for (uint64_t i = 0; i < updates; i++) random = next_random(random);
  require(final_random == random && nm_wait(0, NULL) == NM_EXITED, "the core has ended wrongly");
  verify(far, words, updates, "core");
  print_duration("core", duration);
  return 0;
}
