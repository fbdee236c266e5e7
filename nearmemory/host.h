// Hosts of near-memory cores: they start programs on the cores and communicate with them by pipes. A host caches far
// memory and the scratchpads without hardware coherence: it cleans, flushes and fetches lines.

#ifndef NEARMEMORY_HOST_H
#define NEARMEMORY_HOST_H

#include "nearmemory/pipe.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Base addresses in the host's address space: far memory, its uncached alias, scratchpads, and registers. Scratchpads
// are 2^24 bytes apart, registers of cores 2^12 bytes.
#define NM_FAR_MEMORY 0x4000000000
#define NM_UNCACHED 0x6000000000
#define NM_SCRATCHPADS 0x7000000000
#define NM_REGISTERS 0x7100000000
// Maximum size of a binary in bytes: that of the scratchpad that transfers it; unlimited for a native library.
#ifdef __riscv
#define NM_BINARY 65536
#else
#define NM_BINARY (16 << 20)
#endif

// States of a core: no program so far, a binary is being loaded, a program runs, has exited or was stopped by the
// host, its binary was rejected, or an exception stopped it.
enum nm_state { NM_IDLE, NM_LOADING, NM_RUNNING, NM_EXITED, NM_REFUSED, NM_STOPPED };

// Errors of nm_spawn: no binary of this name, binary too long, core busy, or binary rejected by the core.
enum nm_error { NM_NO_BINARY = -1, NM_TOO_LONG = -2, NM_BUSY = -3, NM_REFUSED_BINARY = -4 };

// Counters of the machine, since its start: bytes sent over this host's link to the device and to the host, lines of
// far memory read and written by all hosts and cores, and the number of counters.
enum nm_counter { NM_BYTES_TO_DEVICE, NM_BYTES_TO_HOST, NM_LINES_READ, NM_LINES_WRITTEN, NM_COUNTERS };

// Cause of a program's trap, with mcause, mtval and the program counter.
struct nm_fault {
  uint64_t cause, value, pc;
};

static inline void nm_flush_all(volatile void *far, uint64_t bytes);

#ifdef __riscv

// A control register of a core; `offset` is in bytes.
static inline volatile uint64_t *nm_control(uint64_t core, uint64_t offset) {
  return (volatile uint64_t *)(NM_REGISTERS + (core << 12) + offset);
}

// Number of near-memory cores.
static inline uint64_t nm_open(void) { return *nm_control(0, 0x850); }

// Number of this host, from 0 on, and number of hosts. Each host runs its own copy of the program. Hosts share far
// memory, scratchpads and registers, and `nm_far_alloc` returns the same addresses on all of them in the same order.
static inline uint64_t nm_host(void) { return *nm_control(0, 0x878); }
static inline uint64_t nm_hosts(void) { return *nm_control(0, 0x8a0); }

// Size of the host's last-level cache in bytes.
static inline uint64_t nm_last_cache(void) { return *nm_control(0, 0x860); }

// Number of lines that the host's last-level cache may have in flight.
static inline uint64_t nm_last_cache_misses(void) { return *nm_control(0, 0x870); }

// Value of a counter; see enum nm_counter.
static inline uint64_t nm_counter(enum nm_counter which) { return *nm_control(0, 0x8c0 + which * 8); }

// A register pipe between host and core, whose number the core's program declares by NM_REGISTER_PIPE. Two hosts may
// also use a register pipe that the core's program does not use; the start of a program clears it.
static inline struct nm_registers *nm_registers_of(uint64_t core, uint64_t number) {
  return (struct nm_registers *)nm_control(core, number * 16);
}

// First of the 16 words of a line of a core's scratchpad. The host's caches hold copies of it, which become stale.
static inline volatile uint64_t *nm_line_of(uint64_t core, uint64_t line) {
  return (volatile uint64_t *)(NM_SCRATCHPADS + (core << 24) + line * NM_LINE);
}

// Read a scratchpad line uncached; write a line back, as a whole unless a cache evicts it earlier. A lock holds either
// access.
static inline void nm_read_line(uint64_t core, uint64_t line, uint64_t words[16]) {
  volatile uint64_t *from = nm_line_of(core, line);
  nm_flush(from);
  for (int i = 0; i < 16; i++) words[i] = from[i];
  nm_order();
}
static inline void nm_write_line(uint64_t core, uint64_t line, const uint64_t words[16]) {
  volatile uint64_t *to = nm_line_of(core, line);
  for (int i = 0; i < 16; i++) to[i] = words[i];
  nm_flush(to);
}

// The uncached alias of the same memory.
static inline volatile void *nm_uncached(volatile void *far) {
  return (volatile void *)((uintptr_t)far - NM_FAR_MEMORY + NM_UNCACHED);
}

// Bytes of far memory in use: one count per program, shared by all of its source files.
__attribute__((weak)) uint64_t nm_far_used;

// Allocates far memory in whole lines, initially zero and never freed; NULL if exhausted.
static inline void *nm_far_alloc(uint64_t bytes) {
  uint64_t total = *nm_control(0, 0x858);
  if (bytes > total - nm_far_used) return NULL;
  void *far = (void *)(NM_FAR_MEMORY + nm_far_used);
  nm_far_used += (bytes + NM_LINE - 1) / NM_LINE * NM_LINE;
  return far;
}

// Gives this range of far or host memory to the next program that is spawned on a core. A program with NM_GIVEN may
// copy from and to all ranges given to it.
static inline void nm_give(uint64_t core, volatile void *far, uint64_t bytes) {
  *nm_control(core, 0x828) = (uintptr_t)far;
  nm_order();
  *nm_control(core, 0x830) = bytes;
}

// State of a core; NM_EXITED and NM_STOPPED appear only after all copies of the program are complete.
static inline enum nm_state nm_state(uint64_t core) { return (enum nm_state)*nm_control(core, 0x800); }

// True if a program is running or starting on a core.
static inline int nm_runs(uint64_t core) {
  enum nm_state state = nm_state(core);
  return state == NM_LOADING || state == NM_RUNNING;
}

// Starts a program on a core with four words. The core verifies it first unless `trusted`, and clears its
// scratchpad and the shared registers. Copies of that scratchpad in the host's caches are stale:
// new pipes and streams drop theirs; other lines must be flushed by the caller. Returns 0 or an enum nm_error.
static inline int nm_start(uint64_t core, const void *binary, uint64_t length, const uint64_t words[4], int trusted) {
  if (length > NM_BINARY) return NM_TOO_LONG;
  if (nm_runs(core)) return NM_BUSY;
  volatile uint64_t *lines = nm_line_of(core, 0);
  // The host's copies of the scratchpad may be stale.
  nm_flush_all(lines, length);
  for (uint64_t i = 0; i < length; i += 8) {
    uint64_t word = 0;
    memcpy(&word, (const char *)binary + i, length - i < 8 ? length - i : 8);
    lines[i / 8] = word;
  }
  nm_flush_all(lines, length);
  for (int i = 0; i < 4; i++) *nm_control(core, 0x880 + i * 8) = words ? words[i] : 0;
  nm_order();
  *nm_control(core, trusted ? 0x840 : 0x838) = length;
  nm_order();
  enum nm_state state;
  // Waits for the load only, not for the program's execution.
  while ((state = (enum nm_state)*nm_control(core, 0x868)) == NM_LOADING) {
  }
  return state == NM_REFUSED ? NM_REFUSED_BINARY : 0;
}

// Opens the binary of this name for reading; NULL if there is none.
static inline FILE *nm_binary_file(const char *name) {
  char path[80];
  snprintf(path, sizeof path, ":channel/%s", name);
  return fopen(path, "r");
}

// Exit status of the last program; -1 if it was stopped.
static inline int nm_status(uint64_t core) { return (int)*nm_control(core, 0x808); }

// Exception that stopped the last program whose state is NM_STOPPED.
static inline struct nm_fault nm_fault(uint64_t core) {
  return (struct nm_fault){*nm_control(core, 0x810), *nm_control(core, 0x818), *nm_control(core, 0x820)};
}

// Stops the program on a core, if one runs or is loaded. Its state becomes NM_EXITED with status -1. Returns without
// waiting.
static inline void nm_stop(uint64_t core) { *nm_control(core, 0x848) = 1; }

#else
#include "nearmemory/native-host.h"
#endif

// The line pipe whose lines begin at this line of the scratchpad.
static inline struct nm_pipe *nm_pipe_of(uint64_t core, uint64_t line) {
  return (struct nm_pipe *)nm_line_of(core, line);
}

// All lines of a range: write them back to far memory; the second function also invalidates them.
static inline void nm_clean_all(volatile void *far, uint64_t bytes) {
  nm_order();
  for (uint64_t i = 0; i < bytes; i += NM_LINE) nm_clean_now((volatile char *)far + i);
  nm_order();
}
static inline void nm_flush_all(volatile void *far, uint64_t bytes) {
  nm_order();
  for (uint64_t i = 0; i < bytes; i += NM_LINE) nm_flush_now((volatile char *)far + i);
  nm_order();
}

// Reads the binary that the option --channel-program of the command defines under this name, and returns its length in
// bytes; NM_NO_BINARY if there is none, NM_TOO_LONG if it exceeds the capacity.
static inline long nm_binary(const char *name, void *bytes, size_t capacity) {
  FILE *file = nm_binary_file(name);
  if (!file) return NM_NO_BINARY;
  size_t length = fread(bytes, 1, capacity, file);
  int is_longer = fgetc(file) != EOF;
  fclose(file);
  return is_longer ? NM_TOO_LONG : (long)length;
}

// Starts the program that the option --channel-program of the command defines under this name, with four argument
// words (zeroes if `words` is NULL). Returns 0 or an enum nm_error.
static inline int nm_spawn(uint64_t core, const char *name, const uint64_t words[4]) {
  void *binary = malloc(NM_BINARY);
  if (!binary) return NM_TOO_LONG;
  long length = nm_binary(name, binary, NM_BINARY);
  int error = length < 0 ? (int)length : nm_start(core, binary, length, words, 0);
  free(binary);
  return error;
}

// Waits until the program on a core has ended; returns its final state, and its exit status if `status` is not NULL.
static inline enum nm_state nm_wait(uint64_t core, int *status) {
  while (nm_runs(core)) nm_relax();
  if (status) *status = nm_status(core);
  return nm_state(core);
}

// Polls of a pipe between two checks that the program on the other side still runs.
#define NM_POLLS 64

// Waits for a line and receives its words, at least one; 0 at the end of the stream, -1 if the program ended without
// ending it.
static inline int nm_receive_from(uint64_t core, struct nm_receiver *receiver, uint64_t words[NM_WORDS]) {
  for (;;) {
    // Words that the program sent before its end are visible after its end.
    int runs = nm_runs(core);
    for (int i = 0; i < NM_POLLS; i++) {
      int count = nm_try_receive(receiver, words);
      if (count) return count < 0 ? 0 : count;
      nm_relax();
    }
    if (!runs) return -1;
  }
}

// Sends all of these words: returns 0, or -1 if the program has ended without taking them.
static inline int nm_send_to(uint64_t core, struct nm_sender *sender, const uint64_t *words, uint64_t count) {
  for (uint64_t polls = 1; count > 0;) {
    if (!nm_has_room(sender)) {
      if (polls++ % NM_POLLS == 0 && !nm_runs(core)) return -1;
      nm_relax();
      continue;
    }
    uint64_t sent = count < NM_WORDS ? count : NM_WORDS;
    nm_put(sender, words, sent);
    words += sent;
    count -= sent;
  }
  return 0;
}

// Ends the stream: returns 0, or -1 if the program has ended and the pipe is full.
static inline int nm_end_to(uint64_t core, struct nm_sender *sender) {
  for (uint64_t polls = 1; !nm_has_room(sender); polls++) {
    if (polls % NM_POLLS == 0 && !nm_runs(core)) return -1;
    nm_relax();
  }
  nm_end(sender);
  return 0;
}

#endif
