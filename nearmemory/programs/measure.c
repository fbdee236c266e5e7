// Measures a copy engine, in clocks of its core: latency from the command to the stamp of one line, and duration of a long copy.

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_GIVEN)

// Lines of a transfer. The scratchpad takes several transfers at once; their data is not used.
#define BATCH 128
// Number of scratchpad areas that transfers use in turn.
#define AREAS 3

// `reads` is the number of single lines to fetch, `lines` the number of lines of the long copy. Sends two numbers of
// clocks: the sum of the latencies, and the duration of the copy.
int channel(uint64_t far, uint64_t reads, uint64_t lines, uint64_t d) {
  uint64_t results[2] = {0, 0};
  for (uint64_t i = 0; i < reads; i++) {
    uint64_t before = nm_write_stamp(0), start = nm_now();
    nm_fetch(0, far + i * 128, 1);
    nm_fetched(0, before);
    results[0] += nm_write_stamp(0) - start;
  }
  uint64_t start = nm_now(), last = 0;
  // The core stalls while the maximum number of transfers is outstanding.
  for (uint64_t i = 0; i < lines / BATCH; i++) nm_fetch(i % AREAS * BATCH, far + i * BATCH * 128, BATCH);
  // The copy has ended when no later stamp appears for a long time.
  do
    for (uint64_t line = 0; line < AREAS * BATCH; line++)
      if (nm_write_stamp(line) > last) last = nm_write_stamp(line);
  while (nm_now() < last + 3000);
  results[1] = last - start;
  struct nm_sender out = nm_sender(nm_pipe_at(500), 4);
  nm_send(&out, results, 2);
  nm_end(&out);
  return 0;
}
