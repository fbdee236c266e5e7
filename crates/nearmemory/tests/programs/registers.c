// Receives words through a register pipe (shared registers 0 and 1), and sends their running sum through another
// (registers 2 and 3). The test runs the program without a C library, so `_start` sets up the global pointer and the
// stack.

#include "nearmemory/pipe.h"
#include "nearmemory/scratchpad.h"

__attribute__((naked)) void _start(void) {
  __asm__(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n"
          "la sp, stack + 1024\n j work");
}

__attribute__((aligned(16), used)) char stack[1024];

// Runs until the end of the input stream. The final ecall returns to the test.
__attribute__((used, noreturn)) void work(void) {
  struct nm_registers *in = nm_shared(0), *out = nm_shared(2);
  uint64_t word, sum = 0;
  while (nm_receive_word(in, &word)) {
    sum += word;
    nm_send_word(out, sum);
  }
  nm_end_words(out);
  __asm__ volatile("ecall");
  __builtin_unreachable();
}
