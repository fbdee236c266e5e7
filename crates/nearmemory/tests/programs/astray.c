// Uses resources that the program lacks, or reaches the limits of FIFOs. Argument: the mode, one of the cases below;
// 0 never ends. Modes 1 to 4 and 7 to 10 use missing resources; modes 5, 6 and 13 to 15 reach limits of FIFOs, of which
// 13 to 15 run on core 2, whose FIFO then leads to itself; 11 and 12 are faults of astray-host.c. The tests name the
// modes in run_near_memory.rs of crates/cohkit and find the lines by `case N:`.

#include "nearmemory/channel.h"

NM_CHANNEL(512, NM_FIFO(2))

// Counter of steps; volatile, so that the compiler keeps the loops and the recursion.
static volatile uint64_t calls;
// Two compressed return instructions, in memory that is not executable.
static uint64_t data[1] = {0x80828082};

// Returns its argument. The compiler does not see the address, so it emits the access as written.
__attribute__((noipa)) static uint64_t hidden(uint64_t at) { return at; }

// Recurses `depth` times. The operation after the call prevents a tail call.
__attribute__((noinline)) static uint64_t deep(uint64_t depth) {
  calls++;
  return depth == 0 ? 0 : 1 + deep(depth - 1) * calls;
}

int channel(uint64_t mode, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  switch (mode) {
  // Resources that NM_CHANNEL does not request: a register pipe, the FIFO of another core.
  case 1: nm_send_word(nm_register_pipe(3), 1); break;
  case 2: nm_fifo_send(1, 1); break;
  // The first line beyond a scratchpad of 512 lines.
  case 3: *nm_words(512) = 1; break;
  // A stack of more than the requested 512 bytes.
  case 4: return (int)deep(1000);
  // More words than a FIFO holds, to core 2. The program of the next mode runs there: it ends late and receives
  // nothing.
  case 5:
    for (int i = 0; i < 1500; i++) nm_fifo_send(2, i);
    break;
  case 6:
    // Longer than a start of the other program.
    while (calls < 60000) calls++;
    break;
  case 7: ((void (*)(void))hidden((uint64_t)data))(); break;  // jumps to data
  case 8: ((void (*)(void))hidden(0x4000000000))(); break;    // jumps to far memory
  // A load of 8 bytes across two lines, and a lock of a line that does not exist.
  case 9: calls = *(volatile uint64_t *)hidden((uint64_t)nm_words(3) + 124); break;
  case 10: nm_lock(512, NM_READ); break;
  // A core fills its own FIFO, or waits for a word in it: no other core could end either wait.
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
