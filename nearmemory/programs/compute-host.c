// Benchmark: a Dhrystone-like instruction mix on local data, by the host and by a near-memory core (compute.c).
// Argument: number of rounds. Prints the time of the same number of rounds on either side.

#include "nearmemory/programs/bench.h"
#include "nearmemory/programs/mixture.h"

int main(int argc, char **argv) {
  uint64_t rounds = argument(argc, argv, 1), sum, word = 0;
  int status = 1;
  // Warms the host's caches.
  require(mixture(1000, &sum) == 0, "the mixture of the host, the first time");
  uint64_t start = cycles();
  require(mixture(rounds, &sum) == 0, "the mixture of the host");
  print_duration("host", cycles() - start);
  require(nm_spawn(0, "compute", NULL) == 0, "the core does not start");
  start = cycles();
  nm_send_word(nm_registers_of(0, 0), rounds);
  require(nm_receive_word(nm_registers_of(0, 1), &word), "the core sends nothing");
  uint64_t duration = cycles() - start;
  require(nm_wait(0, &status) == NM_EXITED && status == 0 && word == sum, "the mixture of the core");
  print_duration("core", duration);
  return 0;
}
