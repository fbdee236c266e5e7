// Host of `several.c`: receives the streams of four cores, alternating line by line. It sends the start values only
// after it has opened all streams, so that requests of all streams are outstanding before the first line is sent.

#define NM_STREAM 8
#include "nearmemory/programs/bench.h"
#include "nearmemory/stream.h"

#define CORES 4
#define LINES 100

int main(void) {
  struct nm_stream_in in[CORES];  // stream of each core, from line 3 of its scratchpad on
  uint64_t word;
  for (uint64_t core = 0; core < CORES; core++) require(nm_spawn(core, "several", NULL) == 0, "a core starts");
  // Each core announces its stream by a word in register pipe 0, and waits for its start value in register pipe 1.
  for (uint64_t core = 0; core < CORES; core++) {
    require(nm_receive_word(nm_registers_of(core, 0), &word), "its stream has begun");
    in[core] = nm_stream_from(core, 3);
  }
  for (uint64_t core = 0; core < CORES; core++) nm_send_word(nm_registers_of(core, 1), 1000 * core);
  for (uint64_t i = 0; i < LINES; i++)
    for (uint64_t core = 0; core < CORES; core++)
      // 16 words per line; line i has its number in word i % 16.
      require(nm_stream_take(&in[core])[i % 16] == 1000 * core + i, "a word of a line");
  for (uint64_t core = 0; core < CORES; core++) require(nm_wait(core, NULL) == NM_EXITED, "a core ends");
  printf("all is right\n");
  return 0;
}
