// Two compiled programs whose instruction rate instructions.rs measures. Macros of the compiler's command line:
//   SORT      sorts arrays of 8 KiB, which fit into any first-level cache; otherwise, the instruction mix similar to
//             Dhrystone of nearmemory/programs/mixture.h
//   ROUNDS=N  number of repetitions
// The exit code is 0 if the results are correct, otherwise 1.

// Prevents inlining, so that the measured code contains the call as written.
#define DISTINCT __attribute__((noipa))

// Ends the program with this exit code, by system call 93 (exit).
static void end(long code) {
  register long a0 asm("a0") = code, a7 asm("a7") = 93;
  asm volatile("ecall" ::"r"(a0), "r"(a7));
  __builtin_unreachable();
}

#ifdef SORT

#define NUMBERS 2048

static int numbers[NUMBERS];

// Sorts `n` numbers in ascending order (heap sort).
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

// Sorts random numbers ROUNDS times, and returns 1 if a result is out of order.
static long run(void) {
  unsigned long seed = 1;  // state of a linear congruential generator
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

// Returns 1 if the mix computes wrong results.
static long run(void) {
  unsigned long sum;
  return mixture(ROUNDS, &sum);
}

#endif

// Entry point: the program is linked without a C library, so it sets up the global pointer itself. The caller sets the
// stack pointer.
void _start(void) {
  asm(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop");
  end(run());
}
