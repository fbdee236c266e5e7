// Adds up the host's write-backs to line 0: a word count, followed by that number of words. A read of line 1 returns
// the sum, the number of words, and the time of the last write-back in cycles. A line with word count 0 ends the
// program.

#include "nearmemory/scratchpad.h"

// The program runs without a C library or NM_CHANNEL: a test drives its memory directly, without a machine.
__attribute__((naked)) void _start(void) {
  __asm__(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n"
          "la sp, stack + 1024\n j work");
}

__attribute__((aligned(16), used)) char stack[1024];

// Serves notices until a line without words arrives. The final ecall returns to the test.
__attribute__((used, noreturn)) void work(void) {
  uint64_t sum = 0, words = 0, count = 1;
  nm_lock(0, NM_WRITE_BACK);
  nm_lock(1, NM_READ);
  while (count) {
    uint64_t notice = nm_notice();
    if (notice == NM_NO_NOTICE) continue;
    if (nm_notice_kind(notice) == NM_WRITE_BACK) {
      count = nm_words(0)[0];
      for (uint64_t i = 1; i <= count; i++) sum += nm_words(0)[i];
      words += count;
    } else {
      nm_words(1)[0] = sum;
      nm_words(1)[1] = words;
      nm_words(1)[2] = nm_write_stamp(0);
    }
    nm_release(nm_notice_line(notice), nm_notice_kind(notice));
  }
  nm_unlock(0, NM_WRITE_BACK);
  nm_unlock(1, NM_READ);
  __asm__ volatile("ecall");
  __builtin_unreachable();
}
