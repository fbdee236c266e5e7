// Sends a word by register pipe 0, waits for longer than the host reads lines, and stores lines of far memory: the
// first word of line i is i more than the number of lines. When they are stored, stores 1 in the first word of a line
// of the host's memory, and sends another word. Arguments: address of the lines, their number, and address of the line
// in the host's memory, 0 for none. Compile-time macro:
//   WAIT  clocks of the wait

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_REGISTER_PIPE(0), NM_GIVEN)

#ifndef WAIT
#define WAIT 10000
#endif

int channel(uint64_t far, uint64_t lines, uint64_t notice, uint64_t unused) {
  for (uint64_t i = 0; i < lines; i++) nm_words(i)[0] = lines + i;
  nm_words(lines)[0] = 1;
  nm_send_word(nm_register_pipe(0), 1);
  uint64_t start = nm_now();
  while (nm_now() - start < WAIT) {}
  nm_store(0, far, lines);  // stores
  nm_await_stores(nm_stores_begun());
  if (notice) {
    nm_store(lines, notice, 1);
    nm_await_stores(nm_stores_begun());
  }
  nm_send_word(nm_register_pipe(0), 2);
  return 0;
}
