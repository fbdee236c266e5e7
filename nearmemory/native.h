// Native execution of hosts and channel programs as threads: no simulator, no timing, and no detection of missing cache
// maintenance, because native caches are coherent. A host is compiled as a program, and a channel program as a library.
// The environment variable NEARMEMORY_CP defines the binaries, as `--channel-program` does:
//
//     cc @nearmemory/native.flags host.c -o host
//     cc @nearmemory/native.flags -shared sum.c -o sum.so
//     NEARMEMORY_CP=sum=sum.so ./host
//
// A channel program is loaded anew at each start, so that cores share none of its variables. Its declared resources are
// not enforced. Loads cannot be held: a lock holds a host that reads and writes lines by nm_read_line and
// nm_write_line.

#ifndef NEARMEMORY_NATIVE_H
#define NEARMEMORY_NATIVE_H

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

// Number of cores, lines of a scratchpad, bytes of a line, and words of a FIFO.
#define NM_NATIVE_CORES 4
#define NM_NATIVE_LINES 512
#define NM_NATIVE_LINE 128
#define NM_NATIVE_FIFO 1024

// Highest bit of the count of sent words: the stream ends after these words.
#define NM_NATIVE_END ((uint64_t)1 << 63)

// FIFO from one core to another: a ring of words, and the counts of words sent and taken since the start. Each side
// writes its own cache line.
struct nm_native_fifo {
  uint64_t words[NM_NATIVE_FIFO];
  volatile uint64_t sent __attribute__((aligned(128)));
  volatile uint64_t taken __attribute__((aligned(128)));
};

// A host request held at a locked line, in storage of the waiting thread: line, kind (enum nm_kind), and the line's
// contents to write or to fill.
struct nm_native_held {
  uint64_t line, kind, *words;
  // A write-back is stored once no earlier one is held; its notice is taken then. `released` ends the host's wait.
  int stored, noticed;
  volatile int released;
  struct nm_native_held *next;
};

// Shared state of a host and a near-memory core, and the core's private state.
struct nm_native_core {
  // Scratchpad, registers shared with the host, and FIFOs by sending core.
  uint64_t lines[NM_NATIVE_LINES][16] __attribute__((aligned(NM_NATIVE_LINE)));
  uint64_t registers[32];
  struct nm_native_fifo from[NM_NATIVE_CORES];
  // Read and write stamp of each line in turn, as in scratchpad.h; last time returned by nm_now; lines per copy
  // (nm_copies); numbers of fetches and stores of the program.
  uint64_t stamps[NM_NATIVE_LINES * 2], clock, lines_per_copy, fetches, stores;
  // Array of all cores, number of this core, and arguments of its program.
  struct nm_native_core *all;
  uint64_t number, words[4];
  // Lines that a stream has sent, as reported to the host.
  volatile uint64_t streamed;
  volatile int state, status;
  // Locks for reads and write-backs, and the held requests, oldest first.
  pthread_mutex_t mutex;
  uint8_t locks[NM_NATIVE_LINES][2];
  struct nm_native_held *held;
  // The program's thread and code range, its jump target when stopped, a flag that is 1 in sections that must not be
  // stopped, a flag that is 1 once the host stops the program, and the handle of the loaded library.
  pthread_t thread;
  uintptr_t code, code_end;
  sigjmp_buf stop_target;
  volatile int busy, stopping;
  void *library;
};

// Nanoseconds; strictly increasing.
static inline uint64_t nm_native_now(struct nm_native_core *core) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  uint64_t now = time.tv_sec * 1000000000ull + time.tv_nsec, next;
  uint64_t last = __atomic_load_n(&core->clock, __ATOMIC_RELAXED);
  do
    next = now > last ? now : last + 1;
  while (!__atomic_compare_exchange_n(&core->clock, &last, next, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  return next;
}

// Returns the link to the oldest held request of a kind at a line, or the end of the list. The caller holds the mutex.
static inline struct nm_native_held **nm_native_oldest(struct nm_native_core *core, uint64_t line, uint64_t kind) {
  struct nm_native_held **link = &core->held;
  while (*link && ((*link)->line != line || (*link)->kind != kind)) link = &(*link)->next;
  return link;
}

// Appends a request to the list of held ones. The caller holds the mutex.
static inline void nm_native_hold(struct nm_native_core *core, struct nm_native_held *held) {
  struct nm_native_held **last = &core->held;
  while (*last) last = &(*last)->next;
  held->next = NULL;
  *last = held;
}

// Copies a line for a read or a write-back, and stamps it.
static inline void nm_native_transfer(struct nm_native_core *core, uint64_t line, uint64_t kind, uint64_t *words) {
  memcpy(kind ? core->lines[line] : words, kind ? words : core->lines[line], sizeof *core->lines);
  core->stamps[line * 2 + kind] = nm_native_now(core);
}

// Releases the oldest held request of a kind, and stores the next held write-back. Returns 0 if no request is held.
static inline int nm_native_release(struct nm_native_core *core, uint64_t line, uint64_t kind) {
  struct nm_native_held **link = nm_native_oldest(core, line, kind), *held = *link;
  if (!held) return 0;
  *link = held->next;
  if (kind == 0) nm_native_transfer(core, line, kind, held->words);
  __atomic_store_n(&held->released, 1, __ATOMIC_RELEASE);
  struct nm_native_held *later = kind ? *(link = nm_native_oldest(core, line, kind)) : NULL;
  if (later) {
    *link = later->next;
    nm_native_transfer(core, line, kind, later->words);
    later->stored = 1;
    nm_native_hold(core, later);
  }
  return 1;
}

// Sleeps for a number of nanoseconds, below one second.
static inline void nm_native_sleep(long nanoseconds) {
  struct timespec duration = {0, nanoseconds};
  nanosleep(&duration, NULL);
}

// Yields the processor while a thread waits: with fewer processors than threads, the others could not run otherwise.
// Every 4,096th call sleeps, because the scheduler prefers a thread that wakes to one that computes.
static inline void nm_relax(void) {
  static _Thread_local unsigned waited;
  if (++waited % 4096 == 0) {
    nm_native_sleep(10000);
    return;
  }
  if (waited % 128 == 0) {
    sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Reads a line (kind 0) or writes it back (kind 1) for the host; waits while the line is locked.
static inline void nm_native_access(struct nm_native_core *core, uint64_t line, uint64_t kind, uint64_t *words) {
  struct nm_native_held held = {line, kind, words, 0, 0, 0, NULL};
  pthread_mutex_lock(&core->mutex);
  int later = kind && *nm_native_oldest(core, line, kind), must_wait = core->locks[line][kind] || later;
  if (kind ? !later : !must_wait) nm_native_transfer(core, line, kind, words);
  held.stored = !later;
  if (must_wait) nm_native_hold(core, &held);
  pthread_mutex_unlock(&core->mutex);
  while (must_wait && !__atomic_load_n(&held.released, __ATOMIC_ACQUIRE)) nm_relax();
}

#endif
