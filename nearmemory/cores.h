// Threads on the cores of one host, which share coherent memory and have atomic accesses. A program starts on the first
// core and runs functions on the others; `--set host.cores=N` sets the number of cores.
//
// The cores share the last-level cache, so copies of far memory and scratchpads are equally stale for all of them. This
// header is the only interface to the other cores. Functions there must not use files or input, nor allocate memory.

#ifndef NEARMEMORY_CORES_H
#define NEARMEMORY_CORES_H

#include "nearmemory/pipe.h"

#include <stdlib.h>

#ifdef __riscv

#include <picotls.h>

// Calls of RISC-V's SBI extension "hart state management": start a core, stop the calling core, or
// query a core's state. `at` and `argument` are the entry point and the value of a1 for a start. The result is 0 or a
// negative error code: -2 unsupported call, -3 no such core, -6 already started.
enum nm_hart_call { NM_HART_START, NM_HART_STOP, NM_HART_STATUS };
static inline long nm_hart(enum nm_hart_call call, uint64_t core, uint64_t at, uint64_t argument) {
  register uint64_t a0 __asm__("a0") = core, a1 __asm__("a1") = at, a2 __asm__("a2") = argument;
  register uint64_t a6 __asm__("a6") = call, a7 __asm__("a7") = 0x48534d;
  __asm__ volatile("ecall" : "+r"(a0), "+r"(a1) : "r"(a2), "r"(a6), "r"(a7) : "memory");
  return (long)a0;
}

// Number of cores of the host.
static inline uint64_t nm_cores(void) {
  uint64_t cores = 0;
  while (nm_hart(NM_HART_STATUS, cores, 0, 0) == 0) cores++;
  return cores;
}

// A function that runs on a core: stack, thread-local storage, function and argument, and completion flag.
struct nm_thread {
  void *stack, *tls;
  void (*function)(void *);
  void *argument;
  int ended;
};

// Bytes of a thread's stack.
#define NM_THREAD_STACK 65536

// Runs a thread's function, and stops the core.
__attribute__((used)) static void nm_thread_run(struct nm_thread *thread) {
  _set_tls(thread->tls);
  thread->function(thread->argument);
  __atomic_store_n(&thread->ended, 1, __ATOMIC_RELEASE);
  nm_hart(NM_HART_STOP, 0, 0, 0);
}

// Entry point of a core. Register a0 has the core number, and a1 the thread.
__attribute__((naked, used)) static void nm_thread_begin(void) {
  __asm__(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n"
          "mv a0, a1\n ld sp, 0(a0)\n j nm_thread_run");
}

// Calls a function on another, idle core. Returns 0, or a negative value if the core does not exist or is busy, or if
// memory is exhausted.
static inline int nm_thread_start(struct nm_thread *thread, uint64_t core, void (*function)(void *), void *argument) {
  size_t align = _tls_align() < 16 ? 16 : _tls_align(), tls = (_tls_size() + align - 1) / align * align;
  // The thread-local storage is above the stack, in the same allocation.
  char *memory = aligned_alloc(align, NM_THREAD_STACK + tls);
  if (!memory) return -1;
  *thread = (struct nm_thread){memory + NM_THREAD_STACK, memory + NM_THREAD_STACK, function, argument, 0};
  _init_tls(thread->tls);
  nm_order();
  int error = (int)nm_hart(NM_HART_START, core, (uintptr_t)nm_thread_begin, (uintptr_t)thread);
  if (error) free(memory);
  return error;
}

// Waits for the end of the function; all of its stores are visible on return.
static inline void nm_thread_join(struct nm_thread *thread) {
  while (!__atomic_load_n(&thread->ended, __ATOMIC_ACQUIRE)) nm_relax();
  free((char *)thread->stack - NM_THREAD_STACK);
}

#else

#include <pthread.h>
#include <unistd.h>

// A native thread: the operating system's handle, function and argument.
struct nm_thread {
  pthread_t thread;
  void (*function)(void *);
  void *argument;
};
// The number of processors, unless NM_CORES is defined: there may be more threads than processors.
#ifdef NM_CORES
static inline uint64_t nm_cores(void) { return NM_CORES; }
#else
static inline uint64_t nm_cores(void) { return (uint64_t)sysconf(_SC_NPROCESSORS_ONLN); }
#endif
// Start routine of a native thread.
static void *nm_thread_run(void *argument) {
  struct nm_thread *thread = argument;
  thread->function(thread->argument);
  return NULL;
}
// The core number is ignored: the operating system schedules the thread. Returns 0 or a negative errno.
static inline int nm_thread_start(struct nm_thread *thread, uint64_t core, void (*function)(void *), void *argument) {
  (void)core;
  thread->function = function;
  thread->argument = argument;
  return -pthread_create(&thread->thread, NULL, nm_thread_run, thread);
}
static inline void nm_thread_join(struct nm_thread *thread) { pthread_join(thread->thread, NULL); }

#endif

// A reusable barrier: number of participating cores, cores that have arrived in this round, and number of completed
// rounds. Initialise `cores`, and zero the other fields.
struct nm_barrier {
  uint64_t cores, arrived, round;
};
// Waits until all cores have arrived. Stores before the barrier are visible after it.
static inline void nm_barrier_wait(struct nm_barrier *barrier) {
  uint64_t round = __atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == barrier->cores) {
    barrier->arrived = 0;
    __atomic_store_n(&barrier->round, round + 1, __ATOMIC_RELEASE);
  } else {
    while (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) == round) nm_relax();
  }
}

#endif
