// Typed channels over line pipes. A line carries as many values as fit; the interface hides lines, tags and cache
// maintenance. Sender and receiver define the channel by the same macro call:
//
//     NM_TYPED(points, struct point)
//
// The call defines `struct points_sender` and `struct points_receiver`. The functions points_sender and points_receiver
// initialise them with a pipe and its number of lines. The other functions are:
//
//     points_send     appends a value to the current line, and sends the line when it is full
//     points_flush    sends the current line, even if it is not full
//     points_end      flushes and ends the stream; send nothing afterwards
//     points_receive  waits for a value; returns 1, or 0 at the end of the stream
//
// If host.h is included first, the variants points_send_to, points_flush_to, points_end_to and points_receive_from are
// also defined. Their first argument is the core. They return -1 if the program on that core has ended before it
// received the line or ended the stream, for example after a fault.

#ifndef NEARMEMORY_TYPED_H
#define NEARMEMORY_TYPED_H

#include "nearmemory/pipe.h"

#include <string.h>

// Variants of the host, which detect that the program on a core has ended.
#ifdef NEARMEMORY_HOST_H
#define NM_TYPED_HOST(name, type)                                                                                 \
  static inline int name##_flush_to(uint64_t core, struct name##_sender *sender) {                                \
    uint64_t count = sender->count;                                                                               \
    sender->count = 0;                                                                                            \
    return nm_send_to(core, &sender->pipe, sender->words, count * name##_words);                                  \
  }                                                                                                               \
  static inline int name##_send_to(uint64_t core, struct name##_sender *sender, type value) {                     \
    name##_append(sender, value);                                                                                 \
    return sender->count == name##_per_line ? name##_flush_to(core, sender) : 0;                                  \
  }                                                                                                               \
  static inline int name##_end_to(uint64_t core, struct name##_sender *sender) {                                  \
    return name##_flush_to(core, sender) ? -1 : nm_end_to(core, &sender->pipe);                                   \
  }                                                                                                               \
  static inline int name##_receive_from(uint64_t core, struct name##_receiver *receiver, type *value) {           \
    if (receiver->next < receiver->count) return name##_next(receiver, value);                                    \
    int count = nm_receive_from(core, &receiver->pipe, receiver->words);                                          \
    receiver->next = 0;                                                                                           \
    receiver->count = count > 0 ? count / name##_words : 0;                                                       \
    return count > 0 ? name##_next(receiver, value) : count;                                                      \
  }
#else
#define NM_TYPED_HOST(name, type)
#endif

// Defines a channel `name` of values of a type, of at most NM_WORDS * 8 bytes. A value occupies whole words. The
// structs hold the pipe, the values of one line, and the number of values that they hold; `next` is the index of the
// next value to return.
#define NM_TYPED(name, type)                                                                                      \
  enum { name##_words = (sizeof(type) + 7) / 8, name##_per_line = NM_WORDS / name##_words };                      \
  _Static_assert(sizeof(type) <= NM_WORDS * 8, "a value must fit in one line");                                   \
  struct name##_sender {                                                                                          \
    struct nm_sender pipe;                                                                                        \
    uint64_t words[NM_WORDS], count;                                                                              \
  };                                                                                                              \
  struct name##_receiver {                                                                                        \
    struct nm_receiver pipe;                                                                                      \
    uint64_t words[NM_WORDS], next, count;                                                                        \
  };                                                                                                              \
  static inline struct name##_sender name##_sender(struct nm_pipe *pipe, uint64_t lines) {                        \
    return (struct name##_sender){.pipe = nm_sender(pipe, lines)};                                                \
  }                                                                                                               \
  static inline struct name##_receiver name##_receiver(struct nm_pipe *pipe, uint64_t lines) {                    \
    return (struct name##_receiver){.pipe = nm_receiver(pipe, lines)};                                            \
  }                                                                                                               \
  static inline void name##_flush(struct name##_sender *sender) {                                                 \
    nm_send(&sender->pipe, sender->words, sender->count *name##_words);                                           \
    sender->count = 0;                                                                                            \
  }                                                                                                               \
  static inline void name##_append(struct name##_sender *sender, type value) {                                    \
    memcpy(sender->words + sender->count++ * name##_words, &value, sizeof value);                                 \
  }                                                                                                               \
  static inline void name##_send(struct name##_sender *sender, type value) {                                      \
    name##_append(sender, value);                                                                                 \
    if (sender->count == name##_per_line) name##_flush(sender);                                                   \
  }                                                                                                               \
  static inline void name##_end(struct name##_sender *sender) {                                                   \
    name##_flush(sender);                                                                                         \
    nm_end(&sender->pipe);                                                                                        \
  }                                                                                                               \
  static inline int name##_next(struct name##_receiver *receiver, type *value) {                                  \
    memcpy(value, receiver->words + receiver->next++ * name##_words, sizeof *value);                              \
    return 1;                                                                                                     \
  }                                                                                                               \
  static inline int name##_receive(struct name##_receiver *receiver, type *value) {                               \
    if (receiver->next == receiver->count) {                                                                      \
      receiver->count = nm_receive(&receiver->pipe, receiver->words) / name##_words;                              \
      receiver->next = 0;                                                                                         \
      if (receiver->count == 0) return 0;                                                                         \
    }                                                                                                             \
    return name##_next(receiver, value);                                                                          \
  }                                                                                                               \
  NM_TYPED_HOST(name, type)

#endif
