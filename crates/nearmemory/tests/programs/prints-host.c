// Prints concurrently with four cores: an exception stops core 1, and the host stops core 2. Lines of different
// programs must not be mixed, and unfinished lines must be printed at the end of their program.

#include "nearmemory/programs/bench.h"

int main(void) {
  for (uint64_t core = 0; core < 4; core++)
    require(nm_spawn(core, "prints", (uint64_t[4]){core}) == 0, "a core starts");
  for (int i = 0; i < 5; i++) printf("host says %d\n", i);
  uint64_t word;
  nm_receive_word(nm_registers_of(2, 0), &word);
  nm_stop(2);
  for (uint64_t core = 0; core < 4; core++) nm_wait(core, NULL);
  printf("host ends");
  return 0;
}
