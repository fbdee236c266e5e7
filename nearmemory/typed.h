// Channels of values of one type, over line pipes: a line carries as many values as fit, and the interface hides lines, tags and
// caches. Both sides define the channel and its type by the same line:
//
//     NM_TYPED(points, struct point)
//
// which defines `struct points_sender` and `struct points_receiver`, initialised by points_sender and points_receiver with a pipe and its
// number of lines, and
//
//     points_send     sends a value; it leaves when its line is full, or with
//     points_flush    sends all waiting values, and
//     points_end      ends the stream, after which nothing may be sent;
//     points_receive  waits for a value: 1, or 0 at the end of the stream.
//
// After host.h there are also points_send_to, points_flush_to, points_end_to and points_receive_from, which take the
// core first and return -1 if the program there has ended without taking or ending, e.g. after a fault.

#ifndef NEARMEMORY_TYPED_H
#define NEARMEMORY_TYPED_H

#include "nearmemory/pipe.h"

#include <string.h>

#ifdef NEARMEMORY_HOST_H
#define NM_TYPED_HOST(name, type)                                                                                 \
  static inline int name##_flush_to(uint64_t core, struct name##_sender *sender) {                                \
    uint64_t count = sender->count;                                                                               \
    sender->count = 0;                                                                                            \
    return nm_send_to(core, &sender->pipe, sender->words, count * name##_words);                                  \
  }                                                                                                               \
  static inline int name##_send_to(uint64_t core, struct name##_sender *sender, type value) {                     \
    name##_put(sender, value);                                                                                    \
    return sender->count == name##_most ? name##_flush_to(core, sender) : 0;                                      \
  }                                                                                                               \
  static inline int name##_end_to(uint64_t core, struct name##_sender *sender) {                                  \
    return name##_flush_to(core, sender) ? -1 : nm_end_to(core, &sender->pipe);                                   \
  }                                                                                                               \
  static inline int name##_receive_from(uint64_t core, struct name##_receiver *receiver, type *value) {           \
    if (receiver->at < receiver->count) return name##_take(receiver, value);                                      \
    int count = nm_receive_from(core, &receiver->pipe, receiver->words);                                          \
    receiver->at = 0;                                                                                             \
    receiver->count = count > 0 ? count / name##_words : 0;                                                       \
    return count > 0 ? name##_take(receiver, value) : count;                                                      \
  }
#else
#define NM_TYPED_HOST(name, type)
#endif

#define NM_TYPED(name, type)                                                                                      \
  enum { name##_words = (sizeof(type) + 7) / 8, name##_most = NM_WORDS / name##_words };                          \
  _Static_assert(sizeof(type) <= NM_WORDS * 8, "a value is no longer than the words of a line");                  \
  struct name##_sender {                                                                                          \
    struct nm_sender pipe;                                                                                        \
    uint64_t words[NM_WORDS], count;                                                                              \
  };                                                                                                              \
  struct name##_receiver {                                                                                        \
    struct nm_receiver pipe;                                                                                      \
    uint64_t words[NM_WORDS], at, count;                                                                          \
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
  static inline void name##_put(struct name##_sender *sender, type value) {                                       \
    memcpy(sender->words + sender->count++ * name##_words, &value, sizeof value);                                 \
  }                                                                                                               \
  static inline void name##_send(struct name##_sender *sender, type value) {                                      \
    name##_put(sender, value);                                                                                    \
    if (sender->count == name##_most) name##_flush(sender);                                                       \
  }                                                                                                               \
  static inline void name##_end(struct name##_sender *sender) {                                                   \
    name##_flush(sender);                                                                                         \
    nm_end(&sender->pipe);                                                                                        \
  }                                                                                                               \
  static inline int name##_take(struct name##_receiver *receiver, type *value) {                                  \
    memcpy(value, receiver->words + receiver->at++ * name##_words, sizeof *value);                                \
    return 1;                                                                                                     \
  }                                                                                                               \
  static inline int name##_receive(struct name##_receiver *receiver, type *value) {                               \
    if (receiver->at == receiver->count) {                                                                        \
      receiver->count = nm_receive(&receiver->pipe, receiver->words) / name##_words;                              \
      receiver->at = 0;                                                                                           \
      if (receiver->count == 0) return 0;                                                                         \
    }                                                                                                             \
    return name##_take(receiver, value);                                                                          \
  }                                                                                                               \
  NM_TYPED_HOST(name, type)

#endif
