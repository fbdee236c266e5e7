// Host of prefetched.c: reads the first half of some lines of far memory in order, while a near-memory core stores the
// second half, and then the second half. A hardware prefetcher that follows the first half reads lines of the second
// half before they are stored. Prints the sum of the first words of all lines: of the lines' numbers, if none is stale.
// Compile-time macros:
//   ACQUIRE waits for the core by atomic accesses with acquire semantics to a line of the host's own memory, without
//           fences
//   RACES   reads the second half without waiting for the core
//   STORES  stores other words of the second half's lines, the last line first, after a look at the register pipe,
//           without a fence, and flushes these lines, before it reads them
//   FENCED  with STORES: a fence orders the look before the stores

#include "nearmemory/programs/bench.h"

// Lines of each half.
#define LINES 24

#ifdef ACQUIRE
// Line of the host's own memory whose first word the core sets.
static uint64_t notice[16] __attribute__((aligned(NM_LINE)));
#endif

int main(void) {
  volatile uint64_t *far = nm_far_alloc(2 * LINES * NM_LINE);
  for (uint64_t i = 0; i < LINES; i++) far[i * 16] = i;
  nm_flush_all(far, LINES * NM_LINE);
  nm_give(0, (uint64_t *)far, 2 * LINES * NM_LINE);
  struct nm_registers *registers = nm_registers_of(0, 0);
  uint64_t word, sum = 0;
  uint64_t arguments[4] = {(uintptr_t)far + LINES * NM_LINE, LINES};
#ifdef ACQUIRE
  nm_give(0, notice, sizeof notice);
  arguments[2] = (uintptr_t)notice;
#endif
  require(nm_spawn(0, "prefetched", arguments) == 0, "no start");
  require(nm_receive_word(registers, &word), "the core sends nothing");
  for (uint64_t i = 0; i < LINES; i++) sum += far[i * 16];
#ifdef STORES
  while (registers->flag != NM_FULL) {
  }
#ifdef FENCED
  __asm__ volatile("fence ir, w" ::: "memory");
#endif
  for (uint64_t i = 2 * LINES; i-- > LINES;) far[i * 16 + 1] = i;
  nm_flush_all(far + LINES * 16, LINES * NM_LINE);
#endif
#ifdef ACQUIRE
  while (__atomic_fetch_or(notice, 0, __ATOMIC_ACQUIRE) == 0) {
  }
#elif !defined RACES
  require(nm_receive_word(registers, &word), "the core sends nothing");
#endif
  for (uint64_t i = LINES; i < 2 * LINES; i++) sum += far[i * 16];  // loads
  printf("%lu\n", (unsigned long)sum);
  return nm_wait(0, NULL) == NM_EXITED ? 0 : 1;
}
