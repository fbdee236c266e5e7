// Programs whose speed is measured: SORT sorts integers within any first cache; otherwise it is the mixture that programs beside
// far memory run, too. Both end with 0 if they have computed what they have to.

// Marks a function that the compiler neither inlines nor specialises.
#define DISTINCT __attribute__((noipa))

// Ends the program with this exit code.
static void end(long code) {
  register long a0 asm("a0") = code, a7 asm("a7") = 93;
  asm volatile("ecall" ::"r"(a0), "r"(a7));
  __builtin_unreachable();
}

#ifdef SORT

#define NUMBERS 2048

static int numbers[NUMBERS];

// Sorts numbers in ascending order (heap sort).
DISTINCT static void sort(int *a, int n) {
  for (int root = n / 2, last = n; last > 1;) {
    int moved;
    if (root > 0) moved = a[--root];
    else moved = a[--last], a[last] = a[0];
    int hole = root;
    for (int child; (child = 2 * hole + 1) < last; hole = child) {
      if (child + 1 < last && a[child + 1] > a[child]) child++;
      if (a[child] <= moved) break;
      a[hole] = a[child];
    }
    a[hole] = moved;
  }
}

static long run(void) {
  unsigned long seed = 1;
  long wrong = 0;
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < NUMBERS; i++) numbers[i] = (int)((seed = seed * 6364136223846793005ul + 1442695040888963407ul) >> 32);
    sort(numbers, NUMBERS);
    for (int i = 1; i < NUMBERS; i++) wrong += numbers[i - 1] > numbers[i];
  }
  return wrong != 0;
}

#else

#include "nearmemory/programs/mixture.h"

static long run(void) {
  unsigned long sum;
  return mixture(ROUNDS, &sum);
}

#endif

void _start(void) {
  asm(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop");
  end(run());
}
