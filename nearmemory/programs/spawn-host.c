// Benchmark: starts a program (spawn.c) on a core repeatedly. The core first verifies it, then starts it as trusted,
// without verification. Prints the mean time of a start, up to the acceptance of the program, and the length of the
// binary. Argument: number of starts of each kind.

#include "nearmemory/programs/bench.h"

int main(int argc, char **argv) {
  uint64_t times = argument(argc, argv, 1);
  require(times > 0, "a count >= 1");
  static char binary[NM_BINARY];
  long length = nm_binary("spawn", binary, sizeof binary);
  require(length > 0, "no binary");
  for (int trusted = 0; trusted < 2; trusted++) {
    uint64_t all = 0;
    for (uint64_t i = 0; i < times; i++) {
      uint64_t words[4] = {i}, start = cycles();
      require(nm_start(0, binary, length, words, trusted) == 0, "the core does not start");
      all += cycles() - start;
      int status = 0;
      require(nm_wait(0, &status) == NM_EXITED && status == 1 + (int)i, "exit status of the core");
    }
    print_duration(trusted ? "as trusted" : "verified", all / times);
  }
  printf("length: %ld bytes\n", length);
  return 0;
}
