// Adds up words of a line that the host writes and the core has locked for write-backs. Compile-time macro:
//   TAG  checks word 15, which the host stores last, before it uses the line
// Without TAG the program has a race (half-written line): the host's write of a line is not atomic, because its cache
// may evict the line between two stores, and the core takes such a partial line for a complete one.

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_REGISTER_PIPE(0))

// Word that the host stores last: the number of the line, from 1.
#define LAST_WORD 15

// Returns the sum of words 0 to 3 of `lines` write-backs, as exit status.
int channel(uint64_t lines, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  uint64_t sum = 0, seen = 0;
  nm_lock(0, NM_WRITE_BACK);
  nm_send_word(nm_register_pipe(0), 1);
  while (seen < lines) {
    uint64_t notice = nm_notice();
    if (notice == NM_NO_NOTICE) continue;
    volatile uint64_t *line = nm_words(0);
    int is_complete = 1;
#ifdef TAG
    is_complete = line[LAST_WORD] == seen + 1;
#endif
    if (is_complete) {
      for (int i = 0; i < 4; i++) sum += line[i];  // loads
      seen++;
    }
    nm_release(0, NM_WRITE_BACK);
  }
  return (int)sum;
}
