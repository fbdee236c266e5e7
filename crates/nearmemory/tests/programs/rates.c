// Measures the duration of copies between scratchpad and far memory: fetches, stores, or both at once. Arguments:
// address of 2 * LINES lines of far memory, and the direction as numbered by the enum below. Sends the duration by
// register pipe 0, in cycles of the core's clock.

#include "nearmemory/channel.h"

NM_CHANNEL(1024, NM_REGISTER_PIPE(0), NM_GIVEN)

// Lines of a copy in one direction.
#define LINES 240

// Directions; rates-host.c passes its measurements FETCHES, STORES and BOTH by these numbers.
enum { FETCH, STORE, BOTH };

int channel(uint64_t far, uint64_t direction, uint64_t unused_2, uint64_t unused_3) {
  uint64_t start = nm_now();
  if (direction != STORE) nm_fetch(0, far, LINES);
  if (direction != FETCH) nm_store(LINES, far + LINES * NM_LINE, LINES);
  nm_await_fetches(nm_fetches_begun());
  nm_await_stores(nm_stores_begun());
  nm_send_word(nm_register_pipe(0), nm_now() - start);
  return 0;
}
