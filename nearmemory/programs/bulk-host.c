// Benchmark: sets, clears and copies a range. Variants: the host in its own memory and in far memory, with and without
// prefetches; four host cores with prefetches; a near-memory core. Argument: bytes.

#include "nearmemory/programs/bench.h"
#include "nearmemory/programs/team.h"

// Operations, as in bulk.c, and their names in the output. INTERLEAVED is a copy with overlapping fetches and stores,
// by the near-memory core only.
enum { SET, CLEAR, COPY, INTERLEAVED };
static const char *const names[] = {"set", "clear", "copy", "interleaved copy"};

// Line pipes in the core's scratchpad, as in bulk.c.
#define IN 480
#define OUT 490
#define PIPE_LINES 2
// Maximum size, in bytes, of the runs that select the prefetch distance.
#define MAX_TUNED_BYTES 262144

// Loops of the host over `bytes` bytes, a multiple of a line. `distance` is the prefetch distance in lines; 0: no
// prefetches.
static void fill(uint64_t *to, uint64_t value, uint64_t bytes, uint64_t distance) {
  for (uint64_t i = 0; i < bytes / 8; i += 16) {
    if (distance) nm_prefetch_far(to + i + distance * 16);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) *(volatile uint64_t *)(to + i + j) = value;
  }
}

static void copy(uint64_t *to, const uint64_t *from, uint64_t bytes, uint64_t distance) {
  for (uint64_t i = 0; i < bytes / 8; i += 16) {
    if (distance) {
      nm_prefetch_far(from + i + distance * 16);
      nm_prefetch_far(to + i + distance * 16);
    }
    uint64_t words[16];
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) words[j] = *(const volatile uint64_t *)(from + i + j);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) *(volatile uint64_t *)(to + i + j) = words[j];
  }
}

// Destination and source of an operation, with their size in bytes; `far` is 1 if they are in far memory.
struct memory {
  uint64_t *to, *from, bytes;
  int far;
};

// Performs an operation on a range and writes it back to far memory.
static void run_on_host(int operation, struct memory range, uint64_t value, uint64_t distance) {
  if (operation == COPY)
    copy(range.to, range.from, range.bytes, distance);
  else
    fill(range.to, operation == SET ? value : 0, range.bytes, distance);
  if (range.far) nm_flush_all(range.to, range.bytes);
}

// Arguments of an operation by several cores, each with whole lines of the range.
static struct {
  struct memory all;
  int operation;
  uint64_t value, distance;
} shared;

// Performs one core's share of the operation.
static void work(uint64_t core) {
  struct memory range = shared.all;
  uint64_t lines = range.bytes / NM_LINE, core_lines = (lines + CORES - 1) / CORES;
  uint64_t first = core * core_lines < lines ? core * core_lines : lines;
  range.to += first * 16;
  range.from += first * 16;
  range.bytes = (first + core_lines < lines ? core_lines : lines - first) * NM_LINE;
  run_on_host(shared.operation, range, shared.value, shared.distance);
}

// Performs an operation on all cores. The prefetch distance is that of all cores together.
static void run_on_cores(int operation, struct memory range, uint64_t value, uint64_t distance) {
  shared.all = range, shared.operation = operation, shared.value = value, shared.distance = distance / CORES;
  team_run(work);
}

// Runs an operation on the host. Returns the time until the last line can be read again and, in far memory, all lines
// are written back.
static uint64_t by_host(int operation, struct memory range, uint64_t value, uint64_t distance, int all_cores) {
  if (range.far) nm_flush_all(range.from, range.bytes);
  uint64_t start = cycles();
  (all_cores ? run_on_cores : run_on_host)(operation, range, value, distance);
  (void)*(volatile uint64_t *)(range.to + range.bytes / 8 - 1);
  return cycles() - start;
}

// Line pipes to and from the near-memory core, with requests and responses in the formats of bulk.c.
static struct nm_sender out;
static struct nm_receiver in;

// Runs an operation on the near-memory core. Returns the time from the request to the response. The host has no copy of
// the written lines.
static uint64_t by_core(int operation, struct memory range, uint64_t value) {
  uint64_t start = cycles(), words[NM_WORDS];
  uint64_t job[4] = {operation, (uintptr_t)range.to, operation == SET ? value : (uintptr_t)range.from, range.bytes};
  require(nm_send_to(0, &out, job, 4) == 0 && nm_receive_from(0, &in, words) == 1, "the core has ended");
  uint64_t duration = cycles() - start;
  uint64_t last = operation == SET ? value : operation == CLEAR ? 0 : hash(range.bytes / 8 - 1);
  require(words[0] == last, "the last word that the core has read");
  return duration;
}

// Verifies each word against the operation's result.
static void verify(int operation, struct memory range, uint64_t value) {
  uint64_t difference = 0;
  for (uint64_t i = 0; i < range.bytes / 8; i += 16) {
    if (range.far) nm_prefetch_far(range.to + i + 48 * 16);
    for (uint64_t j = i; j < i + 16; j++)
      difference |= range.to[j] ^ (operation == SET ? value : operation == CLEAR ? 0 : hash(j));
  }
  require(difference == 0, names[operation]);
  if (range.far) nm_flush_all(range.to, range.bytes);
}

// Overwrites the range with values that no operation produces, so that an operation without effect is detected.
static void overwrite(struct memory range, uint64_t value) {
  if (range.far)
    by_core(SET, range, ~value);
  else
    fill(range.to, ~value, range.bytes, 0);
}

// Runs an operation on the near-memory core if `distance` is -1, otherwise on one or all cores of the host with this
// prefetch distance in lines. Returns its time.
static uint64_t run(int operation, struct memory range, int64_t distance, int all_cores, uint64_t value) {
  return distance < 0 ? by_core(operation, range, value) : by_host(operation, range, value, distance, all_cores);
}

// Runs an operation twice; the second run is measured.
static void measure(int operation, struct memory range, int64_t distance, int all_cores, const char *label) {
  static uint64_t value = 0x0123456789abcdef;
  value = next_random(value);
  overwrite(range, value);
  if (all_cores) team_begin();
  run(operation, range, distance, all_cores, value);
  uint64_t duration = run(operation, range, distance, all_cores, value);
  if (all_cores) team_end();
  verify(operation, range, value);
  char name[80];
  snprintf(name, sizeof name, "%s, %s", names[operation], label);
  print_duration(name, duration);
}

// Returns the prefetch distance, in lines, with the shortest time.
static uint64_t best_prefetch_distance(int operation, struct memory range) {
  if (range.bytes > MAX_TUNED_BYTES) range.bytes = MAX_TUNED_BYTES;
  uint64_t best = 0, best_duration = UINT64_MAX;
  for (unsigned i = 0; i < NM_PREFETCH_DISTANCES; i++) {
    uint64_t duration = by_host(operation, range, 1, nm_prefetch_candidate(i), 0);
    if (duration < best_duration) best_duration = duration, best = nm_prefetch_candidate(i);
  }
  return best;
}

// Allocates the ranges of an operation. Word `i` of the source is the hash of `i`.
static struct memory memory(uint64_t bytes, int far) {
  // Prefetches reach beyond the accessed range.
  struct memory range = {.bytes = bytes, .far = far};
  range.to = far ? nm_far_alloc(bytes + NM_MAX_PREFETCHES * NM_LINE) : malloc(bytes);
  range.from = far ? nm_far_alloc(bytes + NM_MAX_PREFETCHES * NM_LINE) : malloc(bytes);
  require(range.to && range.from, "no memory");
  for (uint64_t i = 0; i < bytes / 8; i++) range.from[i] = hash(i);
  if (far) nm_flush_all(range.from, bytes);
  return range;
}

int main(int argc, char **argv) {
  uint64_t bytes = argument(argc, argv, 1);
  require(bytes > 0 && bytes % NM_LINE == 0, "the bytes are whole lines");
  struct memory local = memory(bytes, 0), far = memory(bytes, 1);
  nm_give(0, far.to, bytes);
  nm_give(0, far.from, bytes);
  require(nm_spawn(0, "bulk", NULL) == 0, "the core does not start");
  out = nm_sender(nm_pipe_of(0, IN), PIPE_LINES);
  in = nm_receiver(nm_pipe_of(0, OUT), PIPE_LINES);
  for (int operation = SET; operation <= INTERLEAVED; operation++) {
    if (operation != INTERLEAVED) {
      uint64_t distance = best_prefetch_distance(operation, far);
      measure(operation, local, 0, 0, "host, local");
      measure(operation, far, 0, 0, "host, far");
      measure(operation, far, distance, 0, "host, far with hints");
      if (nm_cores() >= CORES) measure(operation, far, distance, 1, "host, far with hints, 4 cores");
    }
    measure(operation, far, -1, 0, "core");
  }
  nm_end(&out);
  return nm_wait(0, NULL) == NM_EXITED ? 0 : 1;
}
