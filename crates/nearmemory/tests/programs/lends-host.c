// Host of lends.c: lends part of its own memory to the core of its number, which copies lines from there and copies
// them back changed. The host's own memory is coherent, so no flush is necessary, and a word in it signals completion.
//
// With an address and a length as arguments, lends only that range and prints the core's final state. With one
// argument, the second of two hosts lends memory to a core whose program the first host starts.

#include "nearmemory/programs/bench.h"

// Lines that the core copies in each round, as in lends.c; and number of rounds.
#define LINES 100
#define ROUNDS 3

// Exits with an error message if `error` is not 0.
static void require_started(int error) { require(error == 0, "the core does not start"); }

// Starts a program on core 0 that copies from and to an address, and prints the core's final state. Memory that the
// host has not given, or cannot give, stops the program.
static int use_memory(uint64_t at) {
  require_started(nm_spawn(0, "lends", (uint64_t[4]){at, at, at, at}));
  nm_send_word(nm_registers_of(0, 0), 0);
  int state = nm_wait(0, NULL);
  struct nm_fault fault = nm_fault(0);
  printf("state %d cause %lu value %#lx\n", state, (unsigned long)fault.cause, (unsigned long)fault.value);
  return 0;
}

// The second host gives its memory, and then the first host starts the program. Both hosts have the same addresses.
static int lend_to_other_host(void) {
  uint64_t at = (uintptr_t)aligned_alloc(NM_LINE, LINES * NM_LINE), notice;
  if (nm_host() == 0) {
    nm_receive_word(nm_registers_of(1, 0), &notice);
    return use_memory(at);
  }
  nm_give(0, (void *)at, LINES * NM_LINE);
  nm_send_word(nm_registers_of(1, 0), 0);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 2) return lend_to_other_host();
  if (argc == 3) {
    nm_give(0, (void *)argument(argc, argv, 1), argument(argc, argv, 2));
    return use_memory(argument(argc, argv, 1));
  }
  uint64_t bytes = LINES * NM_LINE, core = nm_host(), first = core << 32;
  volatile uint64_t *from = aligned_alloc(NM_LINE, bytes), *to = aligned_alloc(NM_LINE, bytes);
  volatile uint64_t *flag = aligned_alloc(NM_LINE, NM_LINE), *far = nm_far_alloc(nm_hosts() * bytes);
  require(from && to && flag && far, "no memory");
  far += core * bytes / 8;
  *flag = 0;
  nm_give(core, from, bytes);
  nm_give(core, to, bytes);
  nm_give(core, flag, NM_LINE);
  nm_give(core, far, bytes);
  uint64_t words[4] = {(uintptr_t)from, (uintptr_t)to, (uintptr_t)flag, (uintptr_t)far};
  require_started(nm_spawn(core, "lends", words));
  for (uint64_t round = 0; round < ROUNDS; round++) {
    for (uint64_t i = 0; i < bytes / 8; i++) from[i] = hash(first + i + round), to[i] = 0;
    nm_order();
    nm_send_word(nm_registers_of(core, 0), round);
    while (*flag != round + 1) nm_relax();
    nm_order();
    uint64_t differs = 0;
    for (uint64_t i = 0; i < bytes / 8; i++)
      differs |= (from[i] ^ hash(first + i + round)) | (to[i] ^ (hash(first + i + round) * 3 + round));
    require(differs == 0, "the lines that were copied back");
    nm_flush_all(far, bytes);
    for (uint64_t i = 0; i < bytes / 8; i++) differs |= far[i] ^ (hash(first + i + round) * 3 + round);
    require(differs == 0, "the lines in far memory");
    nm_flush_all(far, bytes);
  }
  nm_end_words(nm_registers_of(core, 0));
  uint64_t latencies[2];
  for (int i = 0; i < 2; i++)
    require(nm_receive_word(nm_registers_of(core, 1), &latencies[i]), "the core ends too early");
  require(nm_wait(core, NULL) == NM_EXITED, "the core ends wrongly");
  printf("a line of the host %lu, of far memory %lu\n", (unsigned long)latencies[0], (unsigned long)latencies[1]);
  return 0;
}
