// Sends so many words to core 0, which passes them on to core 1, and looks whether they come back from there: by line pipes or
// by register pipes. Called with the kind, the words and the lines of each pipe.

#include "nearmemory/host.h"

static uint64_t word(uint64_t i) { return (i + 1) * 0x9e3779b97f4a7c15; }

enum { LINES, REGISTERS };

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  uint64_t kind = strtoul(argv[1], 0, 0), all = strtoul(argv[2], 0, 0), lines = strtoul(argv[3], 0, 0);
  for (uint64_t core = 0; core < 2; core++) {
    int error = nm_spawn(core, "relay", (uint64_t[4]){core, kind, lines});
    if (error) {
      printf("core %d: error %d\n", (int)core, error);
      return 1;
    }
  }
  struct nm_sender out = nm_sender(nm_pipe_of(0, 0), lines);
  struct nm_receiver in = nm_receiver(nm_pipe_of(1, 0), lines);
  struct nm_registers *to = nm_registers_of(0, 0), *from = nm_registers_of(1, 3);
  uint64_t sent = 0, received = 0, words[40];
  int ended = 0, came = 0;
  while (came >= 0) {
    if (sent < all) {
      // Batches of all lengths, what was not taken of which is made again.
      uint64_t count = kind == REGISTERS ? 1 : sent % 40 + 1;
      if (count > all - sent) count = all - sent;
      for (uint64_t i = 0; i < count; i++) words[i] = word(sent + i);
      sent += kind == REGISTERS ? (uint64_t)nm_try_send_word(to, words[0]) : nm_try_send(&out, words, count);
    } else if (!ended) {
      if (kind == REGISTERS)
        nm_end_words(to);
      else
        nm_end(&out);
      ended = 1;
    }
    came = kind == REGISTERS ? nm_try_receive_word(from, words) : nm_try_receive(&in, words);
    for (int i = 0; i < came; i++, received++)
      if (words[i] != word(received)) {
        printf("word %lu is %#lx\n", (unsigned long)received, (unsigned long)words[i]);
        return 1;
      }
  }
  int status[2];
  for (int core = 0; core < 2; core++) nm_wait(core, &status[core]);
  printf("%lu words, with %d and %d\n", (unsigned long)received, status[0], status[1]);
  return received == all ? 0 : 1;
}
