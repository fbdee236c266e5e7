// Never ends, uses resources that it has not requested, or sends more words than a FIFO holds to a program that ends
// without receiving them.

#include "nearmemory/channel.h"

NM_CHANNEL(512, NM_FIFO(2))

static volatile uint64_t calls;
static uint64_t data[1] = {0x80828082};

__attribute__((noipa)) static uint64_t hidden(uint64_t at) { return at; }

// (The operation after the call prevents a tail call.)
__attribute__((noinline)) static uint64_t deep(uint64_t depth) {
  calls++;
  return depth == 0 ? 0 : 1 + deep(depth - 1) * calls;
}

int channel(uint64_t mode, uint64_t b, uint64_t c, uint64_t d) {
  switch (mode) {
  case 1: nm_send_word(nm_register_pipe(3), 1); break;
  case 2: nm_fifo_send(1, 1); break;
  case 3: *nm_words(512) = 1; break;
  case 4: return (int)deep(1000);
  case 5:
    for (int i = 0; i < 1500; i++) nm_fifo_send(2, i);
    break;
  case 6:
    // Longer than a start of the other program.
    while (calls < 60000) calls++;
    break;
  case 7: ((void (*)(void))hidden((uint64_t)data))(); break;  // jumps to data
  case 8: ((void (*)(void))hidden(0x4000000000))(); break;    // jumps to far memory
  case 9: calls = *(volatile uint64_t *)hidden((uint64_t)nm_words(3) + 124); break;
  case 10: nm_lock(512, NM_READ); break;
  case 13:
    for (int i = 0; i < 1500; i++) nm_fifo_send(2, i);
    break;
  case 14: calls = nm_fifo_take(2); break;
  case 15:
    // A load waits for a word in flight.
    for (int i = 0; i < 1500; i++) nm_fifo_send(2, i), calls += nm_fifo_take(2) == i;
    return calls == 1500 ? 0 : 1;
  default: for (;;) calls++;
  }
  return 0;
}
