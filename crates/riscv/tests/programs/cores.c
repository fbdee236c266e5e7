// Several cores increment shared counters in four ways and meet at a barrier; core 0 exits with the set of wrong counters.

// Number of increments of each counter by each core.
#define TIMES 500

// The lock, 1 while taken, and the number of cores that have reached the barrier.
static volatile int lock, met;
// Counters: incremented under the lock, by atomic additions, by compare-and-swap, and by load-reserved and
// store-conditional.
static volatile long locked;
static long added, exchanged, reserved;

__attribute__((naked)) void _start(void) {
  // Each core has a stack of 4 KiB, in order of core numbers. a0 is the core number, a1 the number of cores.
  // (Without `norelax`, the linker would make this address relative to gp before gp is set.)
  asm(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n"
      "la sp, stacks\n addi t0, a0, 1\n slli t0, t0, 12\n add sp, sp, t0\n j work");
}

__attribute__((aligned(16), used)) char stacks[8 << 12];

// Waits until all cores have reached the barrier.
static void meet(int cores) {
  __atomic_fetch_add(&met, 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(&met, __ATOMIC_ACQUIRE) % cores) {}
}

// Part of one core. The exit code has one bit for each counter that does not have its final value.
void work(long core, long cores) {
  for (int i = 0; i < TIMES; i++) {
    __atomic_fetch_add(&added, core + 1, __ATOMIC_RELAXED);

    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {}
    locked = locked + 1;
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);

    // Compiles to lr and sc.
    long old = __atomic_load_n(&exchanged, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&exchanged, &old, old * 5 % 1000003 + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}

    long number, failed;
    asm volatile(
        "1: lr.d %0, (%2)\n"
        " addi %0, %0, 3\n"
        " sc.d %1, %0, (%2)\n"
        " bnez %1, 1b"
        : "=&r"(number), "=&r"(failed)
        : "r"(&reserved)
        : "memory");
  }
  meet(cores);
  long all = TIMES * cores, expected = 0;
  for (int i = 0; i < all; i++) expected = expected * 5 % 1000003 + 1;
  long wrong = (added != TIMES * cores * (cores + 1) / 2) | (locked != all) << 1 | (exchanged != expected) << 2 | (reserved != 3 * all) << 3;
  register long a0 asm("a0") = wrong, a7 asm("a7") = 93;
  asm volatile("ecall" ::"r"(a0), "r"(a7));
  __builtin_unreachable();
}
