// Whole lines from a core beside far memory to its host. The host asks for them before they are there: a line of the scratchpad
// that is locked for reads holds the request until the core releases it. So a line needs no tag, nobody polls, and many are
// under way at once.
//
// A cache may evict a line that has come before the host has used it, and the host then asks again. So the core changes a line
// only once it knows that the host has taken what was in it, and the host asks for what comes next only once the core knows.
//
// A core has one stream at a time, which takes all of its notices; once it has ended, another one may begin.
//
// Each line that the host asks for and that the core has yet to send is one of those that its last cache waits for
// (host.llc_misses, which are 64). Two streams of 32 lines take all of these: the host can then do nothing else with a core, not even
// send a word, until one of them sends a line. Who has several streams, or little to wait with, defines NM_STREAM less before this
// header, the same for host and core.

#ifndef NEARMEMORY_STREAM_H
#define NEARMEMORY_STREAM_H

#include "nearmemory/pipe.h"

// Lines of a stream, an even number, and those after which the host tells that it has taken them. Behind the lines is one that tells
// it.
#ifndef NM_STREAM
#define NM_STREAM 32
#endif
#define NM_STREAM_TOLD (NM_STREAM / 2)

#ifdef __riscv

#ifdef NEARMEMORY_CHANNEL_H

struct nm_stream {
  // The first of its lines in the scratchpad, how many lines were sent, and the requests that are held for what comes next.
  uint64_t first, sent;
  uint8_t held[NM_STREAM];
};

static inline struct nm_stream nm_stream(uint64_t first) {
  // What the host has told of a stream before.
  nm_words(first + NM_STREAM)[0] = 0;
  for (uint64_t i = 0; i < NM_STREAM; i++) nm_lock(first + i, NM_READ);
  return (struct nm_stream){.first = first};
}

// Takes one request that is held, if there is any: answers what the host asks for again, and notes what is not there.
static inline void nm_stream_look(struct nm_stream *stream) {
  uint64_t notice = nm_notice();
  if (notice == NM_NO_NOTICE) return;
  uint64_t slot = nm_notice_line(notice) - stream->first;
  // What was sent last in this line.
  uint64_t last = stream->sent - 1 - (stream->sent - 1 - slot) % NM_STREAM;
  if (slot < stream->sent && last >= nm_words(stream->first + NM_STREAM)[0])
    nm_release(stream->first + slot, NM_READ);
  else
    stream->held[slot]++;
}

// The words of the line that is sent next, once the host has taken what was in it.
static inline volatile uint64_t *nm_stream_next(struct nm_stream *stream) {
  while (stream->sent - nm_words(stream->first + NM_STREAM)[0] >= NM_STREAM) nm_stream_look(stream);
  return nm_words(stream->first + stream->sent % NM_STREAM);
}

// Sends it. Who sends nothing for long looks now and then at what the host asks for.
static inline void nm_stream_send(struct nm_stream *stream) {
  uint64_t slot = stream->sent++ % NM_STREAM;
  if (stream->held[slot] == 0) nm_stream_look(stream);
  for (; stream->held[slot] > 0; stream->held[slot]--) nm_release(stream->first + slot, NM_READ);
}

// Lets the host have what it asks for still, which is not used: it must know from the last line that no other one follows.
static inline void nm_stream_end(struct nm_stream *stream) {
  for (uint64_t i = 0; i < NM_STREAM; i++) nm_unlock(stream->first + i, NM_READ);
  while (nm_notice() != NM_NO_NOTICE) {
  }
}

#endif

#ifdef NEARMEMORY_HOST_H

struct nm_stream_in {
  // The first of its lines as the host has them, and how many were taken, and told to be.
  volatile uint64_t *first;
  uint64_t taken, told;
};

// Drops lines, and asks for them anew.
static inline void nm_stream_ask(struct nm_stream_in *in, uint64_t slot, uint64_t lines) {
  nm_flush_all(in->first + slot * 16, lines * NM_LINE);
  for (uint64_t i = 0; i < lines; i++) nm_prefetch_far(in->first + (slot + i) * 16);
}

// The stream whose lines begin with this one of a core's scratchpad. That the core has called nm_stream the host knows before, as by
// a word that it has sent.
static inline struct nm_stream_in nm_stream_from(uint64_t core, uint64_t first) {
  struct nm_stream_in in = {.first = nm_line_of(core, first)};
  nm_stream_ask(&in, 0, NM_STREAM);
  return in;
}

// The words of the next line, which stay until the one after it is asked for.
static inline volatile uint64_t *nm_stream_take(struct nm_stream_in *in) {
  if (in->taken - in->told == NM_STREAM_TOLD) {
    volatile uint64_t *line = in->first + NM_STREAM * 16;
    uint64_t slot = in->told % NM_STREAM;
    in->told = in->taken;
    line[0] = in->told;
    nm_flush(line);
    nm_stream_ask(in, slot, NM_STREAM_TOLD);
  }
  return in->first + in->taken++ % NM_STREAM * 16;
}

#endif

// No load can be held by a machine that caches are coherent in: the host polls how many lines were sent.
#else

#ifdef NEARMEMORY_CHANNEL_H
struct nm_stream {
  uint64_t first, sent;
};
static inline struct nm_stream nm_stream(uint64_t first) {
  nm_words(first + NM_STREAM)[0] = 0;
  nm_native_own->streamed = 0;
  return (struct nm_stream){first, 0};
}
static inline void nm_stream_look(struct nm_stream *stream) { (void)stream; }
static inline volatile uint64_t *nm_stream_next(struct nm_stream *stream) {
  while (stream->sent - nm_words(stream->first + NM_STREAM)[0] >= NM_STREAM) nm_relax();
  nm_order();
  return nm_words(stream->first + stream->sent % NM_STREAM);
}
static inline void nm_stream_send(struct nm_stream *stream) {
  __atomic_store_n(&nm_native_own->streamed, ++stream->sent, __ATOMIC_RELEASE);
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
  // The line before is used no more.
  __atomic_store_n((uint64_t *)nm_line_of(in->core, in->first + NM_STREAM), in->taken, __ATOMIC_RELEASE);
  while (__atomic_load_n(&nm_native_all()[in->core].streamed, __ATOMIC_ACQUIRE) == in->taken) nm_relax();
  return nm_line_of(in->core, in->first + in->taken++ % NM_STREAM);
}
#endif

#endif

#endif
