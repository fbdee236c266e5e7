// Host of streams.c: receives two consecutive streams of a core, with numbers of lines at which counters and buffers
// wrap around. The exit code names the failed check: 1 start, 2 begin of a stream, 3 word, 4 mark of the last line, 5
// end.

#include "nearmemory/host.h"
#include "nearmemory/stream.h"

int main(void) {
  static const uint64_t lengths[] = {1, 15, 16, 17, 31, 32, 33, 48, 64, 65, 200};
  for (uint64_t length = 0; length < sizeof lengths / sizeof *lengths; length++) {
    uint64_t lines = lengths[length], words[4] = {lines}, word = 0, last = 0;
    if (nm_spawn(0, "streams", words)) return 1;
    for (uint64_t round = 0; round < 2; round++) {
      if (!nm_receive_word(nm_registers_of(0, 0), &word) || word != round) return 2;
      struct nm_stream_in in = nm_stream_from(0, 100);
      for (uint64_t i = 0; i < lines; i++) {
        volatile uint64_t *line = nm_stream_take(&in);
        for (uint64_t word = 0; word < 15; word++)
          if (line[word] != (round * lines + i) * 16 + word) {
            printf("round %d of %d lines: word %d of line %d\n", (int)round, (int)lines, (int)word, (int)i);
            return 3;
          }
        last = line[15];
        if (last != (i + 1 == lines)) return 4;
      }
      nm_send_word(nm_registers_of(0, 1), round);
    }
    if (nm_wait(0, NULL) != NM_EXITED) return 5;
  }
  printf("all lines are right\n");
  return 0;
}
