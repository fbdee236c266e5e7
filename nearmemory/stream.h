// Streams of whole lines from a near-memory core to its host. The host requests lines in advance: the scratchpad holds
// a read of a locked line until the core releases it. So lines need no tags, neither side polls, and many requests are
// outstanding.
//
// A cache may evict a received line before the host has used it; the host then requests it again. So the core changes a
// line only after the host has reported the line as used, and the host requests the next line in this slot only after
// the report.
//
// Requests of one host to one core stay in order: a report of used lines is written back before the lines are requested
// again, and arrives before these requests. Otherwise the core would take such a request for one of an evicted line,
// and would release the old content. The simulated link keeps this order. On a link whose virtual circuits may overtake
// each other, the host must wait for the acknowledgement of the report: nm_clean_all instead of nm_clean_now.
//
// A core has one stream at a time, which receives all of its notices, and passes on those of line pipes. A new stream
// may start after its end.
//
// Each requested line that the core has not sent occupies an outstanding miss of the host's last-level cache
// (host.llc_misses, 64). Two streams of 32 lines occupy all of them: the host can then do nothing else with a core, not
// even send a word, until one of them sends a line. With several streams, or few outstanding misses, define a smaller
// NM_STREAM before this header is included, the same for host and core.

#ifndef NEARMEMORY_STREAM_H
#define NEARMEMORY_STREAM_H

#include "nearmemory/pipe.h"

// Number of lines of a stream (even), and number of lines after which the host reports them as used. The line after the
// stream's lines holds that report.
#ifndef NM_STREAM
#define NM_STREAM 32
#endif
#define NM_STREAM_REPORT (NM_STREAM / 2)

#ifdef __riscv

#ifdef NEARMEMORY_CHANNEL_H

// The core's end of a stream.
struct nm_stream {
  // First line in the scratchpad, number of lines sent, and number of held requests by slot.
  uint64_t first, sent;
  uint8_t held[NM_STREAM];
};

// Begins a stream in NM_STREAM + 1 lines from scratchpad line `first` on.
static inline struct nm_stream nm_stream(uint64_t first) {
  // Clears the host's report of an earlier stream.
  nm_words(first + NM_STREAM)[0] = 0;
  nm_notice_users |= NM_STREAM_USES_NOTICES;
  for (uint64_t i = 0; i < NM_STREAM; i++) nm_lock(first + i, NM_READ);
  return (struct nm_stream){.first = first};
}

// Handles one held request, if any: releases repeated requests for sent lines, and records requests for later lines.
static inline void nm_stream_look(struct nm_stream *stream) {
  uint64_t notice = nm_notice();
  if (notice == NM_NO_NOTICE) return;
  if (nm_notice_kind(notice) == NM_WRITE_BACK) {
    nm_pipe_notice(notice);
    return;
  }
  uint64_t slot = nm_notice_line(notice) - stream->first;
  // Number of the last line sent in this slot.
  uint64_t last = stream->sent - 1 - (stream->sent - 1 - slot) % NM_STREAM;
  if (slot < stream->sent && last >= nm_words(stream->first + NM_STREAM)[0])
    nm_release(stream->first + slot, NM_READ);
  else
    stream->held[slot]++;
}

// Waits until the host has used the previous content of the next line, and returns the words of the line.
static inline volatile uint64_t *nm_stream_next(struct nm_stream *stream) {
  while (stream->sent - nm_words(stream->first + NM_STREAM)[0] >= NM_STREAM) nm_stream_look(stream);
  return nm_words(stream->first + stream->sent % NM_STREAM);
}

// Sends the line. A core that sends nothing for a long time must call nm_stream_look from time to time.
static inline void nm_stream_send(struct nm_stream *stream) {
  uint64_t slot = stream->sent++ % NM_STREAM;
  if (stream->held[slot] == 0) nm_stream_look(stream);
  for (; stream->held[slot] > 0; stream->held[slot]--) nm_release(stream->first + slot, NM_READ);
}

// Releases the remaining requests of the host, whose data is not used. The last line sent must identify itself as the
// last.
static inline void nm_stream_end(struct nm_stream *stream) {
  for (uint64_t i = 0; i < NM_STREAM; i++) nm_unlock(stream->first + i, NM_READ);
  uint64_t notice;
  while ((notice = nm_notice()) != NM_NO_NOTICE) nm_pipe_notice(notice);
  nm_notice_users &= ~(uint64_t)NM_STREAM_USES_NOTICES;
}

#endif

#ifdef NEARMEMORY_HOST_H

// The host's end of a stream.
struct nm_stream_in {
  // Host address of the first line, number of lines used, and number of lines reported as used.
  volatile uint64_t *first;
  uint64_t taken, reported;
};

// Invalidates lines, and requests them again. Only loads are waited for: the scratchpad may hold write-backs of line
// pipes.
static inline void nm_stream_request(struct nm_stream_in *in, uint64_t slot, uint64_t lines) {
  nm_order_loads();
  for (uint64_t i = 0; i < lines; i++) nm_flush_now(in->first + (slot + i) * 16);
  for (uint64_t i = 0; i < lines; i++) nm_prefetch_far(in->first + (slot + i) * 16);
}

// Returns the stream whose lines start at this line of a core's scratchpad. Call it only after the core has called
// nm_stream, for example after a word from the core.
static inline struct nm_stream_in nm_stream_from(uint64_t core, uint64_t first) {
  struct nm_stream_in in = {.first = nm_line_of(core, first)};
  nm_stream_request(&in, 0, NM_STREAM);
  return in;
}

// Returns the words of the next line, valid until the next call.
static inline volatile uint64_t *nm_stream_take(struct nm_stream_in *in) {
  if (in->taken - in->reported == NM_STREAM_REPORT) {
    volatile uint64_t *line = in->first + NM_STREAM * 16;
    uint64_t slot = in->reported % NM_STREAM;
    in->reported = in->taken;
    nm_order_loads();
    // The report must arrive before the requests that follow.
    line[0] = in->reported;
    nm_clean_now(line);
    nm_stream_request(in, slot, NM_STREAM_REPORT);
  }
  return in->first + in->taken++ % NM_STREAM * 16;
}

#endif

// Native machines cannot hold loads: the host polls the number of lines sent.
#else

#ifdef NEARMEMORY_CHANNEL_H
struct nm_stream {
  uint64_t first, sent;
};
static inline struct nm_stream nm_stream(uint64_t first) {
  nm_words(first + NM_STREAM)[0] = 0;
  nm_native_self->streamed = 0;
  return (struct nm_stream){first, 0};
}
static inline void nm_stream_look(struct nm_stream *stream) { (void)stream; }
static inline volatile uint64_t *nm_stream_next(struct nm_stream *stream) {
  while (stream->sent - nm_words(stream->first + NM_STREAM)[0] >= NM_STREAM) nm_relax();
  nm_order();
  return nm_words(stream->first + stream->sent % NM_STREAM);
}
static inline void nm_stream_send(struct nm_stream *stream) {
  __atomic_store_n(&nm_native_self->streamed, ++stream->sent, __ATOMIC_RELEASE);
}
static inline void nm_stream_end(struct nm_stream *stream) { (void)stream; }
#endif

#ifdef NEARMEMORY_HOST_H
struct nm_stream_in {
  uint64_t core, first, taken;
};
static inline struct nm_stream_in nm_stream_from(uint64_t core, uint64_t first) {
  return (struct nm_stream_in){core, first, 0};
}
static inline volatile uint64_t *nm_stream_take(struct nm_stream_in *in) {
  // The previous line is no longer used.
  __atomic_store_n((uint64_t *)nm_line_of(in->core, in->first + NM_STREAM), in->taken, __ATOMIC_RELEASE);
  while (__atomic_load_n(&nm_native_all()[in->core].streamed, __ATOMIC_ACQUIRE) == in->taken) nm_relax();
  return nm_line_of(in->core, in->first + in->taken++ % NM_STREAM);
}
#endif

#endif

#endif
