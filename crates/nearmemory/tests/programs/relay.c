// Core 0 passes on what the host sends to core 1 by their FIFO, and core 1 sends it back to the host.

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(3), NM_FIFO(0), NM_FIFO(1))

enum { LINES, REGISTERS };

static int first(uint64_t kind, uint64_t lines) {
  struct nm_receiver in = nm_receiver(nm_pipe_at(0), lines);
  struct nm_registers *registers = nm_register_pipe(0);
  uint64_t words[NM_WORDS];
  int count;
  while ((count = kind == REGISTERS ? nm_receive_word(registers, words) : nm_receive(&in, words)))
    for (int i = 0; i < count; i++) nm_fifo_send(1, words[i]);
  nm_fifo_end(1);
  return 10;
}

static int second(uint64_t kind, uint64_t lines) {
  struct nm_sender out = nm_sender(nm_pipe_at(0), lines);
  struct nm_registers *registers = nm_register_pipe(3);
  uint64_t words[NM_WORDS];
  int more;
  do {
    // As many as there are, at least one.
    uint64_t count = 0;
    while ((more = nm_fifo_receive(0, &words[count])) && ++count < NM_WORDS && nm_fifo_words(0));
    if (kind == REGISTERS)
      for (uint64_t i = 0; i < count; i++) nm_send_word(registers, words[i]);
    else
      nm_send(&out, words, count);
  } while (more);
  if (kind == REGISTERS)
    nm_end_words(registers);
  else
    nm_end(&out);
  return 11;
}

int channel(uint64_t core, uint64_t kind, uint64_t lines, uint64_t d) {
  return core == 0 ? first(kind, lines) : second(kind, lines);
}
