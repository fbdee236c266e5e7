// Second source file of parts.c.

#include "nearmemory/channel.h"

// Fetches the line at address `far` to a scratchpad line, and returns its first word.
uint64_t first_word(uint64_t line, uint64_t far) {
  uint64_t before = nm_write_stamp(line);
  nm_fetch(line, far, 1);
  nm_fetched(line, before);
  return nm_words(line)[0];
}
