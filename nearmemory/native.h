// The same programs as threads of the machine at hand: no simulator, no time, and no way to see a fault of cache management, as
// caches are coherent here. A host is compiled as a program, and a channel program as a library; the environment variable
// NEARMEMORY_CP says which is which, as `--cp` does:
//
//     cc @nearmemory/native.flags host.c -o host
//     cc @nearmemory/native.flags -shared sum.c -o sum.so
//     NEARMEMORY_CP=sum=sum.so ./host
//
// A channel program that is started is loaded anew, so that cores share none of its variables. Nothing keeps it to what it is
// given. There are no locks of lines and no notices, as no load can be held.

#ifndef NEARMEMORY_NATIVE_H
#define NEARMEMORY_NATIVE_H

#include <sched.h>
#include <stdint.h>

#define NM_NATIVE_CORES 4
#define NM_NATIVE_LINES 512
#define NM_NATIVE_FIFO 1024

// Words from one core to another one: each side writes a line of its own.
struct nm_native_fifo {
  uint64_t words[NM_NATIVE_FIFO];
  volatile uint64_t sent __attribute__((aligned(128)));
  volatile uint64_t taken __attribute__((aligned(128)));
};

// What a host and a core beside far memory share, and what the core has of its own.
struct nm_native_core {
  uint64_t lines[NM_NATIVE_LINES][16] __attribute__((aligned(128)));
  uint64_t registers[32];
  struct nm_native_fifo from[NM_NATIVE_CORES];
  uint64_t stamps[NM_NATIVE_LINES * 2], clock, copied;
  struct nm_native_core *all;
  uint64_t number, words[4];
  // Lines that a stream has sent, of which the host is told.
  volatile uint64_t streamed;
  volatile int state, status;
  void *library;
};

// Lets others go on while a thread waits: where there are fewer processors than threads, they could not otherwise.
static inline void nm_relax(void) {
  static _Thread_local unsigned waited;
  if (++waited % 128 == 0) {
    sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif
