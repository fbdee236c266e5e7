// Line pipes of a near-memory core, in its scratchpad. channel.h includes this file through pipe.h.
//
// A receiver locks its lines for write-backs. A line that the host writes back is stored at once, with a notice, and
// the scratchpad holds its acknowledgement until the core releases it. Until then, no other write-back changes the
// line. A line is released when the core has taken it, or if its tag says that the host's cache has evicted it
// partially written. The host polls the number of taken lines. It waits for a release only if its cache has evicted one
// line twice while it was written, so a core with a receiver takes notices while it waits: a loop that waits calls
// nm_relax.
//
// A sender writes lines with plain stores, and the host polls their tags: a held read would block a host that has other
// work. stream.h has the stream of lines that the scratchpad holds for the host.

#ifndef NEARMEMORY_CHANNEL_PIPE_H
#define NEARMEMORY_CHANNEL_PIPE_H

#ifndef NEARMEMORY_CHANNEL_H
#error "include nearmemory/channel.h before other headers of pipes"
#endif

// Users of the core's notices: receivers of line pipes, and a stream, which takes all notices while it is open. One
// variable per program, shared by all of its source files.
enum { NM_PIPES_USE_NOTICES = 1, NM_STREAM_USES_NOTICES = 2 };
__attribute__((weak)) uint64_t nm_notice_users;

struct nm_sender {
  struct nm_pipe *pipe;
  // Lines of the pipe, lines sent, lines known to be received, and position of the next line.
  uint64_t lines, sent, taken, slot;
};

struct nm_receiver {
  struct nm_pipe *pipe;
  // Lines of the pipe, and lines received.
  uint64_t lines, received;
  // The next line, and its notice. They advance with each line, which is faster than computing them from a position.
  volatile struct nm_line *next;
  uint64_t notice;
  // True once the stream has ended; and if the core has taken the notice of the next line, but not the line.
  int ended, noticed;
};

static inline struct nm_sender nm_sender(struct nm_pipe *pipe, uint64_t lines) {
  return (struct nm_sender){pipe, lines, 0, 0, 0};
}

// Handles a notice: releases a line that the host's cache has evicted partially written. Returns 1 if the line is
// whole. A program that takes notices itself passes those of line pipes to this function.
static inline int nm_pipe_notice(uint64_t notice) {
  uint64_t line = nm_notice_line(notice);
  if (notice == NM_NO_NOTICE || nm_notice_kind(notice) == NM_READ) return 0;
  if (nm_words(line)[15] & NM_WHOLE_LINE) return 1;
  nm_release(line, NM_WRITE_BACK);
  return 0;
}

// A loop that waits for an event calls this function, which takes notices, so that the host can write further lines.
static inline void nm_relax(void) {
  if (nm_notice_users == NM_PIPES_USE_NOTICES) nm_pipe_notice(nm_notice());
}

// Initialises a receiver: locks its lines. A line that the host has sent before is not held, but found by its tag.
static inline struct nm_receiver nm_receiver(struct nm_pipe *pipe, uint64_t lines) {
  uint64_t first = (pipe->lines[0].words - (uint64_t *)nm_words(0)) / (NM_LINE / 8);
  nm_notice_users |= NM_PIPES_USE_NOTICES;
  for (uint64_t i = 0; i < lines; i++) nm_lock(first + i, NM_WRITE_BACK);
  return (struct nm_receiver){pipe, lines, 0, pipe->lines, first * 2 + NM_WRITE_BACK, 0, 0};
}

// True if a line can be sent without waiting.
static inline int nm_has_room(struct nm_sender *sender) {
  if (sender->sent - sender->taken < sender->lines) return 1;
  sender->taken = ((volatile struct nm_line *)&sender->pipe->taken)->words[0];
  return sender->sent - sender->taken < sender->lines;
}

// Sends a line with these words; the pipe must not be full.
static inline void nm_put(struct nm_sender *sender, const uint64_t *words, uint64_t count) {
  volatile struct nm_line *line = &sender->pipe->lines[sender->slot];
  sender->slot = sender->slot + 1 == sender->lines ? 0 : sender->slot + 1;
  sender->sent++;
  for (uint64_t i = 0; i < count; i++) line->words[i] = words[i];
  nm_order();
  line->tag = sender->sent << 8 | NM_WHOLE_LINE | count;
}

// Sends words while lines are free, and returns their number.
static inline uint64_t nm_send_some(struct nm_sender *sender, const uint64_t *words, uint64_t count) {
  uint64_t sent = 0;
  while (sent < count && nm_has_room(sender)) {
    uint64_t next = count - sent < NM_WORDS ? count - sent : NM_WORDS;
    nm_put(sender, words + sent, next);
    sent += next;
  }
  return sent;
}

// Releases the received line to the host, and reports it as taken.
static inline void nm_line_done(struct nm_receiver *receiver) {
  uint64_t own_notice = receiver->notice, notice = own_notice;
  // Each line has one notice. The taken notice may be that of another line, because lines are found by their tags.
  if (__builtin_expect(!receiver->noticed && nm_notice_users == NM_PIPES_USE_NOTICES, 1)) notice = nm_notice();
  nm_release(nm_notice_line(own_notice), NM_WRITE_BACK);
  receiver->noticed = 0;
  receiver->next++;
  receiver->notice += 2;
  if (receiver->next == receiver->pipe->lines + receiver->lines) {
    receiver->next -= receiver->lines;
    receiver->notice -= 2 * receiver->lines;
  }
  ((volatile struct nm_line *)&receiver->pipe->taken)->words[0] = ++receiver->received;
  if (__builtin_expect(notice != own_notice, 0)) nm_pipe_notice(notice);
}

// Takes a notice while the next line is missing.
static inline void nm_look_for_notice(struct nm_receiver *receiver) {
  if (nm_notice_users != NM_PIPES_USE_NOTICES) return;
  uint64_t notice = nm_notice();
  receiver->noticed |= nm_pipe_notice(notice) && notice == receiver->notice;
}

// Returns the words of the next line, without copying them, and their number; the caller then calls nm_line_done.
// Without a line, returns a null pointer with the number 0, or -1 at the end of the stream.
static inline const volatile uint64_t *nm_next_line(struct nm_receiver *receiver, int *count) {
  volatile struct nm_line *line = receiver->next;
  uint64_t tag = line->tag;
  if (tag >> 7 != (receiver->received + 1) * 2 + 1) {
    *count = receiver->ended ? -1 : 0;
    nm_look_for_notice(receiver);
    return 0;
  }
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
