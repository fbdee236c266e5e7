// Adds up the words of a line that is locked for write-backs. With TAG, it checks the word that the host stores last.
// Without, a line that a cache evicts between two stores is mistaken for a complete one.

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_REGISTER_PIPE(0))

// Returns the sum of words 0 to 3 of `lines` write-backs.
int channel(uint64_t lines, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t sum = 0, seen = 0;
  nm_lock(0, NM_WRITE_BACK);
  nm_send_word(nm_register_pipe(0), 1);
  while (seen < lines) {
    uint64_t notice = nm_notice();
    if (notice == NM_NO_NOTICE) continue;
    volatile uint64_t *line = nm_words(0);
#ifdef TAG
    if (line[15] == seen + 1)
#endif
      for (int i = (seen++, 0); i < 4; i++) sum += line[i];  // loads
    nm_release(0, NM_WRITE_BACK);
  }
  return (int)sum;
}
