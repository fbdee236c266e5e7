// Fetches lines, stores other lines, or both at once, and sends the clocks that this takes. Arguments: address of far memory, and
// 0 to fetch, 1 to store, 2 for both.

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_REGISTER_PIPE(0), NM_GIVEN)

#define LINES 240

int channel(uint64_t far, uint64_t kind, uint64_t c, uint64_t d) {
  uint64_t start = nm_now();
  if (kind != 1) nm_fetch(0, far, LINES);
  if (kind != 0) nm_store(LINES, far + LINES * NM_LINE, LINES);
  nm_await_fetches(nm_fetches_begun());
  nm_await_stores(nm_stores_begun());
  nm_send_word(nm_register_pipe(0), nm_now() - start);
  return 0;
}
