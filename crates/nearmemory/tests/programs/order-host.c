// Loads from a line of far memory in flight, with stores to it before and after, and prints the loaded values. Each
// load must see the earlier stores of the program and none of the later ones.

#include "nearmemory/host.h"

int main(void) {
  volatile uint64_t *far = nm_far_alloc(2 * NM_LINE);
  uint64_t first, second, part, last;
  __asm__ volatile(
      "ld %0, 0(%3)\n sd %4, 0(%3)\n ld %1, 0(%3)\n"
      // Some bytes of the loaded word are stored before, others after.
      "sh %4, 10(%3)\n sh %5, 8(%3)\n ld %2, 8(%3)\n sd %6, 8(%3)\n"
      : "=&r"(first), "=&r"(second), "=&r"(part)
      : "r"(far), "r"(3l), "r"(4l), "r"(9l)
      : "memory");
  last = far[1];
  printf("%lu %lu %#lx %lu\n", (unsigned long)first, (unsigned long)second, (unsigned long)part, (unsigned long)last);
  return 0;
}
