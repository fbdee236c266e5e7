// Line pipes of a host to and from near-memory cores. host.h includes this file through pipe.h.
//
// A sender marks a line as not whole, writes its words, writes its tag, flushes it, and prefetches it for its next use.
// So a partially written line that a cache evicts is known as such, whatever the line contained before.
//
// No function waits for acknowledgements, which the scratchpad holds until the core has taken a line: only partial
// fences are used. A full fence of the caller waits until the core has taken all lines.
//
// Each sent line that the core has not taken occupies an outstanding request of the host's last-level cache
// (host.llc_misses). The lines of all pipes must be fewer.

#ifndef NEARMEMORY_HOST_PIPE_H
#define NEARMEMORY_HOST_PIPE_H

// Maximum number of lines that are prefetched together.
#define NM_PIPE_PREFETCHES 8

struct nm_sender {
  struct nm_pipe *pipe;
  // Lines of the pipe, lines sent, lines known to be received, and position of the next line.
  uint64_t lines, sent, taken, slot;
};

struct nm_receiver {
  struct nm_pipe *pipe;
  // Lines of the pipe, lines received, and position of the next line.
  uint64_t lines, received, slot;
  int ended;
};

// Drops this host's copies of the lines, which are stale if they belong to an earlier pipe at this address.
static inline void nm_drop_lines(struct nm_pipe *pipe, uint64_t lines) {
  nm_flush_now(&pipe->taken);
  for (uint64_t i = 0; i < lines; i++) nm_flush_now(&pipe->lines[i]);
}

static inline struct nm_sender nm_sender(struct nm_pipe *pipe, uint64_t lines) {
  nm_drop_lines(pipe, lines);
  return (struct nm_sender){pipe, lines, 0, 0, 0};
}

static inline struct nm_receiver nm_receiver(struct nm_pipe *pipe, uint64_t lines) {
  nm_drop_lines(pipe, lines);
  return (struct nm_receiver){pipe, lines, 0, 0, 0};
}

// True if a line can be sent without waiting for the core.
static inline int nm_has_room(struct nm_sender *sender) {
  if (sender->sent - sender->taken < sender->lines) return 1;
  // The previous poll has requested this copy. The next poll's copy is requested now, and arrives while lines are sent.
  volatile struct nm_line *taken = &sender->pipe->taken;
  sender->taken = taken->words[0];
  nm_flush_now(taken);
  nm_prefetch_far(taken);
  return sender->sent - sender->taken < sender->lines;
}

// Sends a line with these words; the pipe must not be full.
static inline void nm_put(struct nm_sender *sender, const uint64_t *words, uint64_t count) {
  volatile struct nm_line *line = &sender->pipe->lines[sender->slot];
  sender->slot = sender->slot + 1 == sender->lines ? 0 : sender->slot + 1;
  if (sender->sent++ == 0)
    for (uint64_t i = 0; i < sender->lines && i < NM_PIPE_PREFETCHES; i++) nm_prefetch_far(&sender->pipe->lines[i]);
  line->tag = sender->sent << 8;
  nm_order_stores();
  if (count == NM_WORDS) {
#pragma GCC unroll 16
    for (int i = 0; i < NM_WORDS; i++) line->words[i] = words[i];
  } else {
    for (uint64_t i = 0; i < count; i++) line->words[i] = words[i];
  }
  nm_order_stores();
  line->tag = sender->sent << 8 | NM_WHOLE_LINE | count;
  nm_flush_now(line);
  // Of a long pipe, only a line that is sent soon: prefetches compete with held lines for the cache's outstanding
  // requests.
  uint64_t ahead = sender->slot + NM_PIPE_PREFETCHES - 1;
  if (sender->lines > NM_PIPE_PREFETCHES)
    line = &sender->pipe->lines[ahead < sender->lines ? ahead : ahead - sender->lines];
  nm_prefetch_far(line);
}

// Sends words while lines are free, and returns their number.
static inline uint64_t nm_send_some(struct nm_sender *sender, const uint64_t *words, uint64_t count) {
  if (count == 0 || !nm_has_room(sender)) return 0;
  uint64_t sent = 0;
  while (sent < count && sender->sent - sender->taken < sender->lines) {
    uint64_t next = count - sent < NM_WORDS ? count - sent : NM_WORDS;
    nm_put(sender, words + sent, next);
    sent += next;
  }
  return sent;
}

// Reports the received line to the core, which may overwrite it then; drops its copy, and prefetches a later line.
static inline void nm_line_done(struct nm_receiver *receiver) {
  volatile struct nm_line *taken = &receiver->pipe->taken;
  nm_order_loads();
  nm_flush_now(&receiver->pipe->lines[receiver->slot]);
  receiver->slot = receiver->slot + 1 == receiver->lines ? 0 : receiver->slot + 1;
  taken->words[0] = ++receiver->received;
  nm_clean_now(taken);
  // A line that the core has not written yet costs one more poll, so only half of the lines are prefetched.
  uint64_t half = receiver->lines / 2 < NM_PIPE_PREFETCHES ? receiver->lines / 2 : NM_PIPE_PREFETCHES;
  uint64_t ahead = receiver->slot + half;
  if (half) nm_prefetch_far(&receiver->pipe->lines[ahead < receiver->lines ? ahead : ahead - receiver->lines]);
}

// Returns the words of the next line, without copying them, and their number; the caller then calls nm_line_done.
// Without a line, returns a null pointer with the number 0, or -1 at the end of the stream.
static inline const volatile uint64_t *nm_next_line(struct nm_receiver *receiver, int *count) {
  *count = receiver->ended ? -1 : 0;
  if (receiver->ended) return 0;
  volatile struct nm_line *line = &receiver->pipe->lines[receiver->slot];
  uint64_t tag = line->tag;
  if (tag >> 7 != (receiver->received + 1) * 2 + 1) {
    nm_flush_now(line);
    return 0;
  }
  nm_order_loads();
  *count = tag & (NM_WHOLE_LINE - 1);
  if (*count > 0) return line->words;
  nm_line_done(receiver);
  receiver->ended = 1;
  *count = -1;
  return 0;
}

// Receives the words of all available lines, and returns their number: 0 if none is available, -1 at the end of the
// stream. The capacity must be at least one line.
static inline int64_t nm_receive_some(struct nm_receiver *receiver, uint64_t *words, uint64_t capacity) {
  uint64_t received = 0;
  int count = 0;
  while (capacity - received >= NM_WORDS) {
    const volatile uint64_t *line = nm_next_line(receiver, &count);
    if (!line) break;
    for (int i = 0; i < count; i++) words[received++] = line[i];
    nm_line_done(receiver);
  }
  return received ? (int64_t)received : count;
}

#endif
