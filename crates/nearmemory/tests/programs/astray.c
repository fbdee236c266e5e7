// Never ends, uses what it has not asked for, or sends more than a FIFO holds to a program that ends without taking it.

#include "nearmemory/channel.h"

NM_CHANNEL(512, NM_FIFO(2))

static volatile uint64_t calls;

// (What is done behind the call keeps it from being a loop.)
__attribute__((noinline)) static uint64_t deep(uint64_t depth) {
  calls++;
  return depth == 0 ? 0 : 1 + deep(depth - 1) * calls;
}

int channel(uint64_t what, uint64_t b, uint64_t c, uint64_t d) {
  switch (what) {
  case 1: nm_send_word(nm_register_pipe(3), 1); break;
  case 2: nm_fifo_send(1, 1); break;
  case 3: *nm_words(512) = 1; break;
  case 4: return (int)deep(1000);
  case 5:
    for (int i = 0; i < 1500; i++) nm_fifo_send(2, i);
    break;
  case 6:
    while (calls < 20000) calls++;
    break;
  default: for (;;) calls++;
  }
  return 0;
}
