// Host of half.c: writes a line LINES times, each time with a new number in words 0 to 3 and in word 15, which is
// stored last. The race detector must report the marked stores and loads unless the core checks the last word (TAG).
// The test finds the marked lines by their text, including the trailing comments.

#include "nearmemory/host.h"

#define LINES 5

int main(void) {
  uint64_t word;
  int sum = 0;
  if (nm_spawn(0, "half", (uint64_t[4]){LINES})) return 1;
  nm_receive_word(nm_registers_of(0, 0), &word);
  for (uint64_t line = 1; line <= LINES; line++) {
    uint64_t words[16] = {line, line, line, line};
    words[15] = line;
    nm_write_line(0, 0, words);  // stores
  }
  nm_wait(0, &sum);
  printf("sum %d\n", sum);
  return 0;
}
