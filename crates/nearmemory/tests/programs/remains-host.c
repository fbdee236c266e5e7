// Host of remains.c. A core sends words and an end mark to a program that ends without receiving them, and then a word
// for the next program. The words for the ended program must be dropped, and the later word delivered. Repeats this
// three times.

#include "nearmemory/programs/bench.h"

int main(void) {
  uint64_t word;
  for (int round = 0; round < 3; round++) {
    require(nm_spawn(1, "remains", (uint64_t[4]){0}) == 0, "the receiver starts");
    require(nm_spawn(0, "remains", (uint64_t[4]){1}) == 0, "the sender starts");
    nm_receive_word(nm_registers_of(0, 0), &word);
    nm_send_word(nm_registers_of(1, 1), 1);
    require(nm_wait(1, NULL) == NM_EXITED, "one ends");
    nm_send_word(nm_registers_of(0, 1), 1);
    require(nm_spawn(1, "remains", (uint64_t[4]){2}) == 0, "another one starts there");
    int status = 0;
    require(nm_wait(1, &status) == NM_EXITED && status == 7, "it receives what was sent for it and nothing else");
    require(nm_wait(0, NULL) == NM_EXITED, "the other one ends, too");
  }
  printf("all is right\n");
  return 0;
}
