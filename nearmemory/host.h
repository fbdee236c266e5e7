// Hosts of cores beside far memory: they start programs on them and talk with them by pipes. Far memory and the scratchpads
// are cached by a host, and nothing keeps that coherent: it cleans, flushes and fetches.

#ifndef NEARMEMORY_HOST_H
#define NEARMEMORY_HOST_H

#include "nearmemory/pipe.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NM_FAR_MEMORY 0x4000000000
#define NM_UNCACHED 0x6000000000
#define NM_SCRATCHPADS 0x7000000000
#define NM_REGISTERS 0x7100000000
// The most bytes of a binary: those of the scratchpad it travels through; a library of the machine at hand travels through none.
#ifdef __riscv
#define NM_BINARY 65536
#else
#define NM_BINARY (16 << 20)
#endif

enum nm_state { NM_IDLE, NM_LOADING, NM_RUNNING, NM_EXITED, NM_REFUSED, NM_STOPPED };

// Why nm_spawn fails: there is no binary of this name, it is too long, a program runs on that core, or the core refuses it.
enum nm_error { NM_NO_BINARY = -1, NM_TOO_LONG = -2, NM_BUSY = -3, NM_REFUSED_BINARY = -4 };

// What the machine has counted since the beginning.
enum nm_counter { NM_BYTES_TO_DEVICE, NM_BYTES_TO_HOST, NM_LINES_READ, NM_LINES_WRITTEN, NM_COUNTERS };

// What a program was stopped for, as mcause and mtval tell it, and at which instruction.
struct nm_fault {
  uint64_t cause, value, pc;
};

static inline void nm_flush_all(volatile void *far, uint64_t bytes);

#ifdef __riscv

static inline volatile uint64_t *nm_control(uint64_t core, uint64_t offset) {
  return (volatile uint64_t *)(NM_REGISTERS + (core << 12) + offset);
}

// How many cores there are beside far memory.
static inline uint64_t nm_open(void) { return *nm_control(0, 0x850); }

// The bytes of the host's last cache.
static inline uint64_t nm_last_cache(void) { return *nm_control(0, 0x860); }

// See enum nm_counter.
static inline uint64_t nm_counter(enum nm_counter which) { return *nm_control(0, 0x8c0 + which * 8); }

// A register pipe between host and core: NM_REGISTER_PIPE of the core's program has its number.
static inline struct nm_registers *nm_registers_of(uint64_t core, uint64_t number) {
  return (struct nm_registers *)nm_control(core, number * 16);
}

// A line of a core's scratchpad.
static inline volatile uint64_t *nm_line_of(uint64_t core, uint64_t line) {
  return (volatile uint64_t *)(NM_SCRATCHPADS + (core << 24) + line * NM_LINE);
}

// Reads a line of a core's scratchpad anew, and writes one back, as a whole unless a cache evicts it before: who locks it holds both.
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

// The same memory without caches.
static inline volatile void *nm_uncached(volatile void *far) {
  return (volatile void *)((uintptr_t)far - NM_FAR_MEMORY + NM_UNCACHED);
}

// How much of far memory is taken: one count for a program, however many of its sources include this.
__attribute__((weak)) uint64_t nm_far_used;

// Far memory in whole lines, which is zero and never given back; nothing if there is no more.
static inline void *nm_far_alloc(uint64_t bytes) {
  uint64_t all = *nm_control(0, 0x858);
  if (bytes > all - nm_far_used) return NULL;
  void *far = (void *)(NM_FAR_MEMORY + nm_far_used);
  nm_far_used += (bytes + NM_LINE - 1) / NM_LINE * NM_LINE;
  return far;
}

// Hints that a line will be read: in the core's own cache, or in the last one. It may be dropped.
static inline void nm_prefetch(const volatile void *line) {
  __asm__ volatile(".option push\n .option arch, +zicbop\n prefetch.r 0(%0)\n .option pop" ::"r"(line));
}
static inline void nm_prefetch_far(const volatile void *line) {
  __asm__ volatile(".option push\n .option arch, +zicbop\n prefetch.r 32(%0)\n .option pop" ::"r"(line));
}

static inline void nm_clean_now(volatile void *line) {
  __asm__ volatile(".option push\n .option arch, +zicbom\n cbo.clean (%0)\n .option pop" ::"r"(line) : "memory");
}

// Gives the next program that is spawned on a core this part of far memory, or of the host's own.
static inline void nm_give(uint64_t core, volatile void *far, uint64_t bytes) {
  *nm_control(core, 0x828) = (uintptr_t)far;
  nm_order();
  *nm_control(core, 0x830) = bytes;
}

static inline enum nm_state nm_state(uint64_t core) { return (enum nm_state)*nm_control(core, 0x800); }

// Whether the program on a core runs or is about to.
static inline int nm_runs(uint64_t core) {
  enum nm_state state = nm_state(core);
  return state == NM_LOADING || state == NM_RUNNING;
}

// Starts a program with four words on a core, which looks through it first unless `trusted`, and finds its
// scratchpad and the registers it shares with the host zero. What the host has of that scratchpad in its caches is of programs before:
// pipes and streams that begin anew drop it, and who loads other lines flushes them. 0, or an enum nm_error.
static inline int nm_start(uint64_t core, const void *binary, uint64_t length, const uint64_t words[4], int trusted) {
  if (length > NM_BINARY) return NM_TOO_LONG;
  if (nm_runs(core)) return NM_BUSY;
  volatile uint64_t *lines = nm_line_of(core, 0);
  // What this host has of the scratchpad may be older than what is in it.
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
  // How it was loaded: what the program does then is not waited for.
  while ((state = (enum nm_state)*nm_control(core, 0x868)) == NM_LOADING) {
  }
  return state == NM_REFUSED ? NM_REFUSED_BINARY : 0;
}

// The file with the binary of this name.
static inline FILE *nm_binary_file(const char *name) {
  char path[80];
  snprintf(path, sizeof path, ":channel/%s", name);
  return fopen(path, "r");
}

static inline int nm_status(uint64_t core) { return (int)*nm_control(core, 0x808); }

static inline struct nm_fault nm_fault(uint64_t core) {
  return (struct nm_fault){*nm_control(core, 0x810), *nm_control(core, 0x818), *nm_control(core, 0x820)};
}

static inline void nm_stop(uint64_t core) { *nm_control(core, 0x848) = 1; }

#else
#include "nearmemory/native-host.h"
#endif

// The line pipe whose lines begin with this one of the scratchpad.
static inline struct nm_pipe *nm_pipe_of(uint64_t core, uint64_t line) { return (struct nm_pipe *)nm_line_of(core, line); }

// All lines of these bytes: far memory gets what was written; and the second one, and the next access fetches them anew.
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

// The bytes of the binary that the command was told by this name with --cp; an error if there is none.
static inline long nm_binary(const char *name, void *bytes, size_t room) {
  FILE *file = nm_binary_file(name);
  if (!file) return NM_NO_BINARY;
  size_t length = fread(bytes, 1, room, file);
  int more = fgetc(file) != EOF;
  fclose(file);
  return more ? NM_TOO_LONG : (long)length;
}

// Starts the program that the command was told by this name.
static inline int nm_spawn(uint64_t core, const char *name, const uint64_t words[4]) {
  void *binary = malloc(NM_BINARY);
  if (!binary) return NM_TOO_LONG;
  long length = nm_binary(name, binary, NM_BINARY);
  int error = length < 0 ? (int)length : nm_start(core, binary, length, words, 0);
  free(binary);
  return error;
}

// Waits until the program on a core has ended, and says whether it did so by itself, with this exit status.
static inline enum nm_state nm_wait(uint64_t core, int *status) {
  while (nm_runs(core)) nm_relax();
  if (status) *status = nm_status(core);
  return nm_state(core);
}

// How often a pipe is looked at between two looks at whether the program on its other side runs still.
#define NM_LOOKS 64

// Waits for a line, and receives its words, at least one; 0 at the end of the stream, and -1 if the program has ended without.
static inline int nm_receive_from(uint64_t core, struct nm_receiver *receiver, uint64_t words[NM_WORDS]) {
  for (;;) {
    // What the program has sent before it ended is there once it has.
    int runs = nm_runs(core);
    for (int i = 0; i < NM_LOOKS; i++) {
      int count = nm_try_receive(receiver, words);
      if (count) return count < 0 ? 0 : count;
      nm_relax();
    }
    if (!runs) return -1;
  }
}

// Sends all of these words: 0, or -1 if the program has ended without taking them.
static inline int nm_send_to(uint64_t core, struct nm_sender *sender, const uint64_t *words, uint64_t count) {
  for (uint64_t looks = 1; count > 0; looks++) {
    uint64_t sent = nm_try_send(sender, words, count);
    words += sent;
    count -= sent;
    if (sent == 0 && looks % NM_LOOKS == 0 && !nm_runs(core)) return -1;
    if (sent == 0) nm_relax();
  }
  return 0;
}

// Ends the stream: 0, or -1 if the program has ended and there is no room.
static inline int nm_end_to(uint64_t core, struct nm_sender *sender) {
  for (uint64_t looks = 1; !nm_has_room(sender); looks++) {
    if (looks % NM_LOOKS == 0 && !nm_runs(core)) return -1;
    nm_relax();
  }
  nm_end(sender);
  return 0;
}

#endif
