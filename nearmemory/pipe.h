// Pipes from one core to another, over memory and registers without hardware coherence.
//
// A line pipe is a ring of lines. A line has one writer at a time, and its last word, the tag, is written last: a cache
// may evict a partially written line, so a line without the expected tag is ignored. Three implementations have one
// interface:
//
//     host-pipe.h     a host of near-memory cores, if host.h is included: no waits for acknowledgements, and prefetches
//     channel-pipe.h  a near-memory core, if channel.h is included: notices and locks of its scratchpad
//     this file       any two cores that cache the same memory: both sides flush lines, and poll tags
//
// A register pipe is a word and a flag in uncached registers. The hardware cannot delay register accesses, so both
// sides poll the flag.
//
// A pipe is initially all zeroes. Each side has a private struct.

#ifndef NEARMEMORY_PIPE_H
#define NEARMEMORY_PIPE_H

#include <stdint.h>

// Line size in bytes: one cache block, which a cache evicts as a whole.
#define NM_LINE 128
// Bit of a tag that a line in a scratchpad has once all of its words are written.
#define NM_WHOLE_LINE 128
// Data words per line.
#define NM_WORDS (NM_LINE / 8 - 1)

// A data line of a line pipe.
struct nm_line {
  uint64_t words[NM_WORDS];
  // Tag: sequence number of the line, from 1; in the lowest byte, its number of words, 0 at the end of the stream. In a
  // scratchpad, this byte also has NM_WHOLE_LINE.
  uint64_t tag;
} __attribute__((aligned(NM_LINE)));

// A line pipe in memory: a line written by the receiver, then the data lines, written by the sender.
struct nm_pipe {
  // The first word is the number of lines that the receiver has received.
  struct nm_line taken;
  struct nm_line lines[];
};

#ifdef __riscv
// Full fence: earlier accesses are ordered before later ones.
static inline void nm_order(void) { __asm__ volatile("fence iorw, iorw" ::: "memory"); }

// Issues a flush of a line without fences; it may complete later. The caller orders earlier stores before it and later
// accesses after it.
static inline void nm_flush_now(volatile void *line) {
  __asm__ volatile(".option push\n .option arch, +zicbom\n cbo.flush (%0)\n .option pop" ::"r"(line) : "memory");
}

// Prefetch a line to the core's own cache or, with offset 32, to the last-level cache. A prefetch may be dropped.
static inline void nm_prefetch(const volatile void *line) {
  __asm__ volatile(".option push\n .option arch, +zicbop\n prefetch.r 0(%0)\n .option pop" ::"r"(line));
}
static inline void nm_prefetch_far(const volatile void *line) {
  __asm__ volatile(".option push\n .option arch, +zicbop\n prefetch.r 32(%0)\n .option pop" ::"r"(line));
}

// Issues the write-back of a line without fences; the write-back may complete later. The cache keeps the line.
static inline void nm_clean_now(volatile void *line) {
  __asm__ volatile(".option push\n .option arch, +zicbom\n cbo.clean (%0)\n .option pop" ::"r"(line) : "memory");
}

// Partial fences, which do not wait for acknowledgements of flushes: order earlier loads before later loads and stores,
// and earlier stores before later stores.
static inline void nm_order_loads(void) { __asm__ volatile("fence r, rw" ::: "memory"); }
static inline void nm_order_stores(void) { __asm__ volatile("fence w, w" ::: "memory"); }
// Orders stores to registers of a device.
static inline void nm_order_registers(void) { __asm__ volatile("fence o, o" ::: "memory"); }

#ifndef NEARMEMORY_CHANNEL_H
// No operation: a waiting core has nothing else to do.
static inline void nm_relax(void) {}
#endif
#else
#include "nearmemory/native.h"
static inline void nm_order(void) { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
static inline void nm_order_registers(void) { nm_order(); }
static inline void nm_flush_now(volatile void *line) { (void)line; }
#endif

// Writes a line back to memory and invalidates it, so that the next access fetches it again.
static inline void nm_flush(volatile void *line) {
  nm_order();
  nm_flush_now(line);
  nm_order();
}

#if !defined(__riscv) || !(defined(NEARMEMORY_HOST_H) || defined(NEARMEMORY_CHANNEL_H))
// host.h and channel.h come first in a source file, because they have line pipes of their own.
#define NM_MEMORY_PIPES

// Sending side of a line pipe; private to one thread.
struct nm_sender {
  struct nm_pipe *pipe;
  // Lines of the pipe, lines sent, and lines known to be received.
  uint64_t lines, sent, taken;
};

// Receiving side of a line pipe; private to one thread. Fields: lines of the pipe; lines received so far; 1 once
// the end of the stream was received.
struct nm_receiver {
  struct nm_pipe *pipe;
  uint64_t lines, received;
  int ended;
};

// Initialises a sender for a pipe of `lines` data lines, which are all zeroes.
static inline struct nm_sender nm_sender(struct nm_pipe *pipe, uint64_t lines) {
  return (struct nm_sender){pipe, lines, 0, 0};
}

// Initialises a receiver. Invalidates this core's stale copies of the lines, for example of an earlier pipe at this
// address.
static inline struct nm_receiver nm_receiver(struct nm_pipe *pipe, uint64_t lines) {
  nm_order();
  for (uint64_t i = 0; i < lines; i++) nm_flush_now(&pipe->lines[i]);
  nm_order();
  return (struct nm_receiver){pipe, lines, 0, 0};
}

// True if a line can be sent without waiting.
static inline int nm_has_room(struct nm_sender *sender) {
  if (sender->sent - sender->taken < sender->lines) return 1;
  volatile struct nm_line *taken = &sender->pipe->taken;
  nm_flush(taken);
  sender->taken = taken->words[0];
  return sender->sent - sender->taken < sender->lines;
}

// Sends a line with these words; the pipe must not be full.
static inline void nm_put(struct nm_sender *sender, const uint64_t *words, uint64_t count) {
  volatile struct nm_line *line = &sender->pipe->lines[sender->sent % sender->lines];
  sender->sent++;
  for (uint64_t i = 0; i < count; i++) line->words[i] = words[i];
  nm_order();
  line->tag = sender->sent << 8 | count;
  nm_flush(line);
}

// Sends words while lines are free, and returns their number. All lines are flushed together, so the core waits only
// once.
static inline uint64_t nm_send_some(struct nm_sender *sender, const uint64_t *words, uint64_t count) {
  if (count == 0 || !nm_has_room(sender)) return 0;
  uint64_t lines = sender->lines - (sender->sent - sender->taken), first = sender->sent, sent = 0;
  for (; lines > 0 && sent < count; lines--) {
    volatile struct nm_line *line = &sender->pipe->lines[sender->sent++ % sender->lines];
    for (uint64_t i = 0; i < NM_WORDS && sent < count; i++) line->words[i] = words[sent++];
  }
  nm_order();
  for (uint64_t i = first; i < sender->sent; i++) {
    uint64_t left = sent - (i - first) * NM_WORDS;
    sender->pipe->lines[i % sender->lines].tag = (i + 1) << 8 | (left < NM_WORDS ? left : NM_WORDS);
  }
  nm_order();
  for (uint64_t i = first; i < sender->sent; i++) nm_flush_now(&sender->pipe->lines[i % sender->lines]);
  nm_order();
  return sent;
}

// Reports the received line to the sender, which may overwrite it then.
static inline void nm_line_done(struct nm_receiver *receiver) {
  nm_order();
  volatile struct nm_line *taken = &receiver->pipe->taken;
  taken->words[0] = ++receiver->received;
  nm_flush(taken);
}

// Returns the words of the next line, without copying them, and their number; the caller then calls nm_line_done.
// Without a line, returns a null pointer with the number 0, or -1 at the end of the stream.
static inline const volatile uint64_t *nm_next_line(struct nm_receiver *receiver, int *count) {
  *count = receiver->ended ? -1 : 0;
  if (receiver->ended) return 0;
  volatile struct nm_line *line = &receiver->pipe->lines[receiver->received % receiver->lines];
  uint64_t tag = line->tag;
  if (tag >> 8 != receiver->received + 1) {
    nm_flush(line);
    return 0;
  }
  nm_order();
  *count = tag & 255;
  if (*count > 0) return line->words;
  nm_line_done(receiver);
  receiver->ended = 1;
  *count = -1;
  return 0;
}

// Receives the words of all available lines, and returns their number: 0 if none is available, -1 at the end of the
// stream. The capacity must be at least one line. All received lines are reported to the sender together.
static inline int64_t nm_receive_some(struct nm_receiver *receiver, uint64_t *words, uint64_t capacity) {
  uint64_t before = receiver->received, count = 0;
  while (!receiver->ended && receiver->received - before < receiver->lines) {
    volatile struct nm_line *line = &receiver->pipe->lines[receiver->received % receiver->lines];
    uint64_t tag = line->tag, words_in_line = tag & 255;
    if (tag >> 8 != receiver->received + 1) {
      // The line has not arrived. Invalidate the copy, so that the next attempt fetches it again.
      nm_flush(line);
      break;
    }
    if (words_in_line > capacity - count) break;
    nm_order();
    for (uint64_t i = 0; i < words_in_line; i++) words[count++] = line->words[i];
    receiver->received++;
    receiver->ended = words_in_line == 0;
  }
  if (receiver->received != before) {
    nm_order();
    volatile struct nm_line *taken = &receiver->pipe->taken;
    taken->words[0] = receiver->received;
    nm_flush(taken);
  }
  return count ? (int64_t)count : receiver->ended ? -1 : 0;
}

#elif defined(NEARMEMORY_HOST_H)
#include "nearmemory/host-pipe.h"
#else
#include "nearmemory/channel-pipe.h"
#endif

// Sends all of these words, in as few lines as possible. Waits while the pipe is full; nm_try_send and nm_send_some do
// not.
static inline void nm_send(struct nm_sender *sender, const uint64_t *words, uint64_t count) {
  while (count > 0) {
    if (!nm_has_room(sender)) {
      nm_relax();
      continue;
    }
    uint64_t sent = count < NM_WORDS ? count : NM_WORDS;
    nm_put(sender, words, sent);
    words += sent;
    count -= sent;
  }
}

// Sends words up to the capacity of one line, and returns their number: 0 if the pipe is full.
static inline uint64_t nm_try_send(struct nm_sender *sender, const uint64_t *words, uint64_t count) {
  if (count == 0 || !nm_has_room(sender)) return 0;
  if (count > NM_WORDS) count = NM_WORDS;
  nm_put(sender, words, count);
  return count;
}

// Ends the stream. Nothing may be sent afterwards.
static inline void nm_end(struct nm_sender *sender) {
  while (!nm_has_room(sender)) nm_relax();
  nm_put(sender, 0, 0);
}

// Receives the words of one line, and returns their number: 0 if there is none, -1 at the end of the stream.
static inline int nm_try_receive(struct nm_receiver *receiver, uint64_t words[NM_WORDS]) {
  int count;
  const volatile uint64_t *line = nm_next_line(receiver, &count);
  if (!line) return count;
  for (int i = 0; i < count; i++) words[i] = line[i];
  nm_line_done(receiver);
  return count;
}

// Waits for a line and returns the number of its words, 0 at the end of the stream.
static inline int nm_receive(struct nm_receiver *receiver, uint64_t words[NM_WORDS]) {
  int count;
  while ((count = nm_try_receive(receiver, words)) == 0) nm_relax();
  return count < 0 ? 0 : count;
}

// Flags of a register pipe: empty, holds a word, or the stream has ended.
enum { NM_TAKEN, NM_FULL, NM_ENDED };

// A register pipe.
struct nm_registers {
  // The word and its flag. Only the sender changes the flag from NM_TAKEN, and only the receiver from NM_FULL.
  volatile uint64_t word, flag;
};

// Sends a word if the previous one was received; returns 1 if it was sent.
static inline int nm_try_send_word(struct nm_registers *registers, uint64_t word) {
  if (registers->flag != NM_TAKEN) return 0;
  nm_order();
  registers->word = word;
  nm_order_registers();
  registers->flag = NM_FULL;
  return 1;
}

// Waits until the previous word was received, and sends a word.
static inline void nm_send_word(struct nm_registers *registers, uint64_t word) {
  while (!nm_try_send_word(registers, word)) nm_relax();
}

// Ends the stream. Nothing may be sent afterwards.
static inline void nm_end_words(struct nm_registers *registers) {
  while (registers->flag != NM_TAKEN) nm_relax();
  nm_order();
  registers->flag = NM_ENDED;
}

// Tries to receive a word: returns 1, 0 if none is available, or -1 at the end of the stream.
static inline int nm_try_receive_word(struct nm_registers *registers, uint64_t *word) {
  uint64_t flag = registers->flag;
  if (flag == NM_TAKEN) return 0;
  if (flag == NM_ENDED) return -1;
  nm_order();
  *word = registers->word;
  nm_order();
  registers->flag = NM_TAKEN;
  return 1;
}

// Waits for a word: 1, or 0 at the end of the stream.
static inline int nm_receive_word(struct nm_registers *registers, uint64_t *word) {
  int found;
  while ((found = nm_try_receive_word(registers, word)) == 0) nm_relax();
  return found > 0;
}

#endif
