// Measures a copy engine, in cycles of its core's clock: latency from the command to the stamp of one line, and
// duration of a long copy.
//
// Arguments: address in far memory; number of single lines to fetch; number of lines of the long copy, a multiple of
// BATCH. Sends one line with two words by the pipe at line OUT, as in measure-host.c: the sum of the latencies, and the
// duration of the long copy.

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_GIVEN)

// Lines of a transfer. The scratchpad takes several transfers at once; their data is not used.
#define BATCH 128
// Number of scratchpad areas that transfers use in turn.
#define AREAS 3
// Pipe to the host: its first scratchpad line, and its number of data lines.
#define OUT 500
#define OUT_LINES 4
// Time without a new stamp after which the copy has ended, in cycles: several times the latency of a line.
#define QUIET_CYCLES 3000

int channel(uint64_t far, uint64_t reads, uint64_t lines, uint64_t unused_3) {
  uint64_t results[2] = {0, 0};
  for (uint64_t i = 0; i < reads; i++) {
    uint64_t before = nm_write_stamp(0), start = nm_now();
    nm_fetch(0, far + i * NM_LINE, 1);
    nm_fetched(0, before);
    results[0] += nm_write_stamp(0) - start;
  }
  uint64_t start = nm_now(), last = 0;
  // The core stalls while the maximum number of transfers is outstanding.
  for (uint64_t i = 0; i < lines / BATCH; i++) nm_fetch(i % AREAS * BATCH, far + i * BATCH * NM_LINE, BATCH);
  // The copy has ended when no later stamp appears for a long time.
  do
    for (uint64_t line = 0; line < AREAS * BATCH; line++)
      if (nm_write_stamp(line) > last) last = nm_write_stamp(line);
  while (nm_now() < last + QUIET_CYCLES);
  results[1] = last - start;
  struct nm_sender out = nm_sender(nm_pipe_at(OUT), OUT_LINES);
  nm_send(&out, results, 2);
  nm_end(&out);
  return 0;
}
