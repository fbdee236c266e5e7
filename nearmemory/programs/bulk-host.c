// Sets, clears and copies a range: by the host in its own memory and in far memory, with and without prefetches, with prefetches by four
// cores, and by a near-memory core. Argument: bytes.

#include "nearmemory/programs/bench.h"
#include "nearmemory/programs/team.h"

enum { SET, CLEAR, COPY, INTERLEAVED };
static const char *const names[] = {"set", "clear", "copy", "interleaved copy"};

// Maximum size, in bytes, of the runs that determine the best prefetch distance.
#define TRIED 262144

// Loops of the host. `ahead` is the prefetch distance in words; 0: no prefetches.
static void fill(uint64_t *to, uint64_t value, uint64_t bytes, uint64_t ahead) {
  for (uint64_t i = 0; i < bytes / 8; i += 16) {
    if (ahead) nm_prefetch_far(to + i + ahead * 16);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) *(volatile uint64_t *)(to + i + j) = value;
  }
}

static void copy(uint64_t *to, const uint64_t *from, uint64_t bytes, uint64_t ahead) {
  for (uint64_t i = 0; i < bytes / 8; i += 16) {
    if (ahead) {
      nm_prefetch_far(from + i + ahead * 16);
      nm_prefetch_far(to + i + ahead * 16);
    }
    uint64_t words[16];
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) words[j] = *(const volatile uint64_t *)(from + i + j);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) *(volatile uint64_t *)(to + i + j) = words[j];
  }
}

struct memory {
  uint64_t *to, *from, bytes;
  int far;
};

// Performs an operation on a range and writes it back to far memory.
static void carry_out(int what, struct memory at, uint64_t value, uint64_t ahead) {
  if (what == COPY)
    copy(at.to, at.from, at.bytes, ahead);
  else
    fill(at.to, what == SET ? value : 0, at.bytes, ahead);
  if (at.far) nm_flush_all(at.to, at.bytes);
}

// The same by several cores, each with whole lines of the range.
static struct {
  struct memory all;
  int what;
  uint64_t value, ahead;
} shared;

static void work(uint64_t core) {
  struct memory at = shared.all;
  uint64_t lines = at.bytes / NM_LINE, each = (lines + CORES - 1) / CORES, first = core * each < lines ? core * each : lines;
  at.to += first * 16;
  at.from += first * 16;
  at.bytes = (first + each < lines ? each : lines - first) * NM_LINE;
  carry_out(shared.what, at, shared.value, shared.ahead);
}

static void share(int what, struct memory at, uint64_t value, uint64_t ahead) {
  shared.all = at, shared.what = what, shared.value = value, shared.ahead = ahead / CORES;
  team_works(work);
}

// Operation by the host: until the last line can be read again and, in far memory, all lines are written back.
static uint64_t by_host(int what, struct memory at, uint64_t value, uint64_t ahead, int several) {
  if (at.far) nm_flush_all(at.from, at.bytes);
  uint64_t start = cycles();
  (several ? share : carry_out)(what, at, value, ahead);
  (void)*(volatile uint64_t *)(at.to + at.bytes / 8 - 1);
  return cycles() - start;
}

static struct nm_sender out;
static struct nm_receiver in;

// Operation by the near-memory core, from the request to the answer. The host holds no copy of the written lines.
static uint64_t by_core(int what, struct memory at, uint64_t value) {
  uint64_t start = cycles(), words[NM_WORDS];
  uint64_t job[4] = {what, (uintptr_t)at.to, what == SET ? value : (uintptr_t)at.from, at.bytes};
  require(nm_send_to(0, &out, job, 4) == 0 && nm_receive_from(0, &in, words) == 1, "the core has ended");
  uint64_t found = cycles() - start;
  uint64_t last = what == SET ? value : what == CLEAR ? 0 : mixed(at.bytes / 8 - 1);
  require(words[0] == last, "the last word that the core has read");
  return found;
}

// Verifies each word against the operation's result.
static void verify(int what, struct memory at, uint64_t value) {
  uint64_t differs = 0;
  for (uint64_t i = 0; i < at.bytes / 8; i += 16) {
    if (at.far) nm_prefetch_far(at.to + i + 48 * 16);
    for (uint64_t j = i; j < i + 16; j++)
      differs |= at.to[j] ^ (what == SET ? value : what == CLEAR ? 0 : mixed(j));
  }
  require(differs == 0, names[what]);
  if (at.far) nm_flush_all(at.to, at.bytes);
}

// Overwrites the range with values that no operation produces, so that an operation without effect is detected.
static void spoil(struct memory at, uint64_t value) {
  if (at.far)
    by_core(SET, at, ~value);
  else
    fill(at.to, ~value, at.bytes, 0);
}

// By the near-memory core if `ahead` is -1, otherwise by one core of the host or by several.
static uint64_t run(int what, struct memory at, int64_t ahead, int several, uint64_t value) {
  return ahead < 0 ? by_core(what, at, value) : by_host(what, at, value, ahead, several);
}

// Runs an operation twice; the second run is measured.
static void measure(int what, struct memory at, int64_t ahead, int several, const char *who) {
  static uint64_t value = 0x0123456789abcdef;
  value = next_random(value);
  spoil(at, value);
  if (several) team_begin();
  run(what, at, ahead, several, value);
  uint64_t found = run(what, at, ahead, several, value);
  if (several) team_end();
  verify(what, at, value);
  char name[80];
  snprintf(name, sizeof name, "%s, %s", names[what], who);
  took(name, found);
}

// Best prefetch distance.
static uint64_t best_ahead(int what, struct memory at) {
  if (at.bytes > TRIED) at.bytes = TRIED;
  uint64_t best = 0, least = UINT64_MAX;
  for (unsigned i = 0; i < NM_AHEADS; i++) {
    uint64_t found = by_host(what, at, 1, nm_aheads[i], 0);
    if (found < least) least = found, best = nm_aheads[i];
  }
  return best;
}

static struct memory memory(uint64_t bytes, int far) {
  // Prefetches reach beyond the accessed range.
  struct memory at = {.bytes = bytes, .far = far};
  at.to = far ? nm_far_alloc(bytes + 64 * NM_LINE) : malloc(bytes);
  at.from = far ? nm_far_alloc(bytes + 64 * NM_LINE) : malloc(bytes);
  require(at.to && at.from, "no memory");
  for (uint64_t i = 0; i < bytes / 8; i++) at.from[i] = mixed(i);
  if (far) nm_flush_all(at.from, bytes);
  return at;
}

int main(int argc, char **argv) {
  uint64_t bytes = argument(argc, argv, 1);
  require(bytes > 0 && bytes % NM_LINE == 0, "the bytes are whole lines");
  struct memory local = memory(bytes, 0), far = memory(bytes, 1);
  nm_give(0, far.to, bytes);
  nm_give(0, far.from, bytes);
  require(nm_spawn(0, "bulk", NULL) == 0, "the core does not start");
  out = nm_sender(nm_pipe_of(0, 480), 2);
  in = nm_receiver(nm_pipe_of(0, 490), 2);
  for (int what = SET; what <= INTERLEAVED; what++) {
    if (what != INTERLEAVED) {
      uint64_t ahead = best_ahead(what, far);
      measure(what, local, 0, 0, "host, local");
      measure(what, far, 0, 0, "host, far");
      measure(what, far, ahead, 0, "host, far with hints");
      if (nm_cores() >= CORES) measure(what, far, ahead, 1, "host, far with hints, 4 cores");
    }
    measure(what, far, -1, 0, "core");
  }
  nm_end(&out);
  return nm_wait(0, NULL) == NM_EXITED ? 0 : 1;
}
