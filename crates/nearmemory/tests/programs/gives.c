// Returns the sum of the first words of two lines of far memory; the argument is the address of the first line.

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_GIVEN)

int channel(uint64_t far, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  int sum = 0;
  for (uint64_t line = 0; line < 2; line++) {
    uint64_t before = nm_write_stamp(line);
    nm_fetch(line, far + line * NM_LINE, 1);
    nm_fetched(line, before);
    sum += (int)nm_words(line)[0];
  }
  return sum;
}
