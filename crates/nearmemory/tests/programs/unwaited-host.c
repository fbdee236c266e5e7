// Host of unwaited.c: starts a program that ends in three ways with outstanding copies, and immediately afterwards
// another program on the same core. The second program finds no trace of the first, and the host finds all stored data.
// Then stops a core that is loading a binary.

#include "nearmemory/programs/bench.h"

// Half of the scratchpad: lines that the program fetches, and as many that it stores.
#define HALF 256
#define BYTES (HALF * NM_LINE)

// The program, and its length in bytes. The far memory: lines to fetch, then the lines that the program stores.
static char binary[NM_BINARY];
static long length;
static volatile uint64_t *far;

// Starts the program in a mode of unwaited.c, with all of the far memory.
static void start(uint64_t mode) {
  nm_give(0, far, 2 * BYTES);
  uint64_t arguments[4] = {mode, (uintptr_t)far};
  require(nm_start(0, binary, length, arguments, 0) == 0, "a program starts behind another one");
}

int main(void) {
  static const enum nm_state ends[] = {NM_EXITED, NM_STOPPED, NM_EXITED};
  far = nm_far_alloc(2 * BYTES);
  length = nm_binary("unwaited", binary, sizeof binary);
  memset((void *)far, 0x5a, BYTES);
  nm_clean_all(far, BYTES);
  for (uint64_t mode = 0; mode < 3; mode++) {
    volatile uint64_t *stored = far + BYTES / 8;
    for (int i = 0; i < HALF; i++) stored[i * 16] = 0;
    nm_clean_all(stored, BYTES);
    start(mode);
    uint64_t word;
    require(nm_receive_word(nm_registers_of(0, 0), &word), "it has begun its copies");
    if (mode == 2) nm_stop(0);
    int status = 0;
    require(nm_wait(0, &status) == ends[mode] && status == (mode == 0 ? 5 : -1), "how it ends");
    nm_flush_all(stored, BYTES);
    for (int i = 0; i < HALF; i++) require(stored[i * 16] == mode + 1, "what it has stored is there once it has ended");
    start(3);
    require(nm_wait(0, &status) == NM_EXITED && status == 0, "the scratchpad is zero");
  }
  // The load register: a binary of the maximum size. The stop arrives before the load completes.
  *nm_control(0, 0x838) = NM_BINARY;
  nm_order();
  nm_stop(0);
  for (int i = 0; i < 2000; i++) require(nm_state(0) == NM_EXITED, "what is stopped while it is loaded does not begin");
  printf("all is right\n");
  return 0;
}
