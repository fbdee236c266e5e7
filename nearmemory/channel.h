// Interface of channel programs, which run on near-memory cores. A program defines the function `channel`, which
// receives four words of the host and returns the exit status, and declares its resources with NM_CHANNEL:
//
//     NM_CHANNEL(4096, NM_GIVEN)
//     int channel(uint64_t a, uint64_t b, uint64_t c, uint64_t d) { ... }
//
// The core enforces the declaration. The simulator prints the output of printf; the output itself takes no simulated
// time.

#ifndef NEARMEMORY_CHANNEL_H
#define NEARMEMORY_CHANNEL_H

#include "nearmemory/scratchpad.h"

#include "nearmemory/pipe.h"

// Resources besides private memory and the scratchpad, each as three words of the manifest: a register pipe, made of
// two registers that are shared with the host; the FIFOs to and from another core; far memory; and the range of far or
// host memory that the host gives it.
#define NM_REGISTER_PIPE(number) 1, number, 0
#define NM_FIFO(core) 1, 16 + (core), 0
#define NM_FAR(at, bytes) 2, at, bytes
#define NM_GIVEN 3, 0, 0

#ifdef __riscv
#define NM_CHANNEL(stack_bytes, ...)                                                                            \
  __attribute__((section(".channel"), used)) static const struct {                                              \
    char magic[8];                                                                                              \
    uint64_t stack, needs[];                                                                                    \
  } nm_manifest = {{'C', 'H', 'A', 'N', 'N', 'E', 'L', '1'}, stack_bytes, {__VA_ARGS__}};                       \
  __attribute__((naked, used, section(".text.nm_start"))) void _start(void) {                                   \
    __asm__(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n"                         \
            "la tp, nm_thread\n call channel\n li a7, 93\n ecall");                                             \
  }

int channel(uint64_t, uint64_t, uint64_t, uint64_t);

// Semihosting call of the C library. It replaces the library's function, which is followed by zeroes: illegal
// instructions, which the verifier would reject.
__attribute__((naked, used, weak)) uintptr_t sys_semihost(uintptr_t operation, uintptr_t argument) {
  __asm__(".option push\n .option norvc\n slli zero, zero, 0x1f\n ebreak\n srai zero, zero, 7\n ret\n"
          ".option pop");
}
#endif

// Returns the line pipe that starts at this line of the scratchpad; nm_pipe_of is the host's counterpart.
static inline struct nm_pipe *nm_pipe_at(uint64_t line) { return (struct nm_pipe *)nm_words(line); }

// Register pipe of this number between host and core, declared with NM_REGISTER_PIPE.
static inline struct nm_registers *nm_register_pipe(uint64_t number) {
  return (struct nm_registers *)nm_shared(2 * number);
}

#ifdef __riscv
// FIFO to and from another core, as words: the next word, the number of words, the free space, and the end mark.
static inline volatile uint64_t *nm_fifo(uint64_t core) { return (volatile uint64_t *)(0x220000 + core * 32); }

// Number of words in the FIFO from another core, including end marks; and free space of the FIFO to that core.
static inline uint64_t nm_fifo_words(uint64_t core) { return nm_fifo(core)[1]; }
static inline uint64_t nm_fifo_room(uint64_t core) { return nm_fifo(core)[2]; }

// Sends a word to another core; waits while the FIFO is full. A core with line pipes takes notices meanwhile.
static inline void nm_fifo_send(uint64_t core, uint64_t word) {
  if (nm_notice_users == NM_PIPES_USE_NOTICES)
    while (nm_fifo_room(core) == 0) nm_relax();
  nm_fifo(core)[0] = word;
}
// Ends the stream. Words sent later belong to a new stream.
static inline void nm_fifo_end(uint64_t core) { nm_fifo(core)[3] = 0; }
// Waits for a word. The next element must not be the end of the stream. A core with line pipes takes notices meanwhile.
static inline uint64_t nm_fifo_take(uint64_t core) {
  if (nm_notice_users == NM_PIPES_USE_NOTICES)
    while (nm_fifo_words(core) == 0) nm_relax();
  return nm_fifo(core)[0];
}
// True if the next element is the end of the stream; consumes it.
static inline int nm_fifo_ends(uint64_t core) { return nm_fifo(core)[3] != 0; }
#endif

// Tries to receive a word: returns 1, 0 if none is available, or -1 at the end of the stream.
static inline int nm_try_fifo_receive(uint64_t core, uint64_t *word) {
  if (nm_fifo_words(core) == 0) return 0;
  if (nm_fifo_ends(core)) return -1;
  *word = nm_fifo_take(core);
  return 1;
}

// Waits for a word; returns 1, or 0 at the end of the stream.
static inline int nm_fifo_receive(uint64_t core, uint64_t *word) {
  int found;
  while ((found = nm_try_fifo_receive(core, word)) == 0) nm_relax();
  return found > 0;
}

// Sends words while the FIFO has space; returns the number of words sent.
static inline uint64_t nm_fifo_send_some(uint64_t core, const uint64_t *words, uint64_t count) {
  uint64_t room = nm_fifo_room(core);
  if (count > room) count = room;
  for (uint64_t i = 0; i < count; i++) nm_fifo_send(core, words[i]);
  return count;
}

// Receives available words up to the capacity, and returns their number. Sets `ended` if the stream ends after them.
static inline uint64_t nm_fifo_receive_some(uint64_t core, uint64_t *words, uint64_t capacity, int *ended) {
  uint64_t available = nm_fifo_words(core), count = 0;
  *ended = 0;
  while (count < available && !(*ended = nm_fifo_ends(core)) && count < capacity) words[count++] = nm_fifo_take(core);
  return count;
}

// Waits until a fetched line has arrived: its write stamp differs from `before`, read before the fetch.
static inline void nm_fetched(uint64_t line, uint64_t before) {
  while (nm_write_stamp(line) == before) {
  }
}
// Waits until a line is stored: its read stamp differs from `before`, read before the store.
static inline void nm_stored(uint64_t line, uint64_t before) {
  while (nm_read_stamp(line) == before) {
  }
}

// The smaller of two numbers; one instruction of Zbb on a near-memory core.
static inline uint64_t nm_lesser(uint64_t a, uint64_t b) {
#ifdef __riscv
  __asm__(".option push\n .option arch, +zbb\n minu %0, %0, %1\n .option pop" : "+r"(a) : "r"(b));
  return a;
#else
  return a < b ? a : b;
#endif
}

// Waits until the stamps (every second word) of consecutive lines are later than the given time. Eight stamps are
// loaded before the first is used, because the in-order core stalls at the first use of each load.
static inline void nm_stamped_since(const volatile uint64_t *stamps, uint64_t lines, uint64_t since) {
  for (; lines >= 8; lines -= 8, stamps += 16) {
    uint64_t first;
    do {
      uint64_t loaded[8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; i++) loaded[i] = stamps[i * 2];
      first = loaded[0];
#pragma GCC unroll 8
      for (int i = 1; i < 8; i++) first = nm_lesser(first, loaded[i]);
    } while (first <= since);
  }
  for (; lines > 0; lines--, stamps += 2)
    while (*stamps <= since) {
    }
}

// Wait until all fetches, or all stores, with numbers up to this one are complete, by one look at a count: the number
// is the result of nm_fetches_begun or nm_stores_begun after the copy was begun.
static inline void nm_await_fetches(uint64_t number) {
  while (nm_fetches_complete() < number) {
  }
}
static inline void nm_await_stores(uint64_t number) {
  while (nm_stores_complete() < number) {
  }
}

// Waits until consecutive lines have arrived that were fetched after the given time (a result of nm_now).
static inline void nm_fetched_since(uint64_t line, uint64_t lines, uint64_t since) {
  nm_stamped_since(nm_stamps(line) + 1, lines, since);
}
// Waits until consecutive lines are stored that were sent after the given time.
static inline void nm_stored_since(uint64_t line, uint64_t lines, uint64_t since) {
  nm_stamped_since(nm_stamps(line), lines, since);
}

#endif
