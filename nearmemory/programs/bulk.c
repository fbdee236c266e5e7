// Sets, clears and copies ranges of far memory.
//
// A request is one line of four words in the line pipe at scratchpad line IN: the operation, as numbered by the enum
// below; the destination's address in far memory; the source's address, or the 64-bit value that SET writes; and the
// number of bytes, a multiple of a line. The response is one word in the line pipe at line OUT: the last word of the
// destination, read back from far memory after all stores are complete.

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_GIVEN)

// Operations, as in bulk-host.c. INTERLEAVED copies with overlapping fetches and stores.
enum { SET, CLEAR, COPY, INTERLEAVED };

// Lines of a transfer of `fill`, its maximum number of outstanding transfers, and lines of a transfer of `copy`.
#define TRANSFER_LINES 48
#define TRANSFERS 2
#define SYNCHRONOUS 384
// Scratchpad: copied lines from 0; lines that stay zero; pipes of requests and responses, as in bulk-host.c, with
// PIPE_LINES data lines each; and the line into which the last line of the destination is read back.
#define ZEROES 384
#define IN 480
#define OUT 490
#define PIPE_LINES 2
#define LAST 500

static uint64_t minimum(uint64_t a, uint64_t b) { return a < b ? a : b; }

// Stores the lines from scratchpad line `from` repeatedly to `lines` lines at address `to`, TRANSFERS transfers at a
// time, each from lines of its own.
static void fill(uint64_t from, uint64_t to, uint64_t lines) {
  uint64_t stores[TRANSFERS] = {0};
  for (uint64_t slot = 0; lines > 0; slot = (slot + 1) % TRANSFERS) {
    uint64_t count = minimum(lines, TRANSFER_LINES);
    nm_await_stores(stores[slot]);
    nm_store(from + slot * TRANSFER_LINES, to, count);
    stores[slot] = nm_stores_begun();
    to += count * NM_LINE;
    lines -= count;
  }
  nm_await_stores(nm_stores_begun());
}

// Stores `value` to `lines` lines at address `to`.
static void set(uint64_t to, uint64_t value, uint64_t lines) {
  uint64_t words = minimum(lines, TRANSFERS * TRANSFER_LINES) * 16;
  volatile uint64_t *first = nm_words(0);
#pragma GCC unroll 8
  for (uint64_t i = 0; i < words; i++) first[i] = value;
  fill(0, to, lines);
}

// Copies `lines` lines; each part is stored before the next one is fetched.
static void copy(uint64_t to, uint64_t from, uint64_t lines) {
  for (uint64_t copied = 0; copied < lines; copied += SYNCHRONOUS) {
    uint64_t count = minimum(lines - copied, SYNCHRONOUS);
    nm_fetch(0, from + copied * NM_LINE, count);
    nm_await_fetches(nm_fetches_begun());
    nm_store(0, to + copied * NM_LINE, count);
    nm_await_stores(nm_stores_begun());
  }
}

// Two outstanding transfers: one half of the lines is fetched while the other half is stored.
static void copy_interleaved(uint64_t to, uint64_t from, uint64_t lines) {
  uint64_t half_lines = SYNCHRONOUS / 2, stores[2] = {0};
  nm_fetch(0, from, minimum(lines, half_lines));
  uint64_t fetched = nm_fetches_begun();
  for (uint64_t copied = 0, current_half = 0; copied < lines; copied += half_lines, current_half = 1 - current_half) {
    uint64_t count = minimum(lines - copied, half_lines), other_half = 1 - current_half, current_fetch = fetched;
    if (copied + half_lines < lines) {
      nm_await_stores(stores[other_half]);
      nm_fetch(other_half * half_lines, from + (copied + half_lines) * NM_LINE,
               minimum(lines - copied - half_lines, half_lines));
      fetched = nm_fetches_begun();
    }
    nm_await_fetches(current_fetch);
    nm_store(current_half * half_lines, to + copied * NM_LINE, count);
    stores[current_half] = nm_stores_begun();
  }
  nm_await_stores(nm_stores_begun());
}

int channel(uint64_t unused_0, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  struct nm_receiver in = nm_receiver(nm_pipe_at(IN), PIPE_LINES);
  struct nm_sender out = nm_sender(nm_pipe_at(OUT), PIPE_LINES);
  uint64_t words[NM_WORDS];
  while (nm_receive(&in, words)) {
    uint64_t to = words[1], from = words[2], lines = words[3] / NM_LINE;
    switch (words[0]) {
    case SET: set(to, from, lines); break;
    case CLEAR: fill(ZEROES, to, lines); break;
    case COPY: copy(to, from, lines); break;
    default: copy_interleaved(to, from, lines);  // INTERLEAVED
    }
    nm_fetch(LAST, to + (lines - 1) * NM_LINE, 1);
    nm_await_fetches(nm_fetches_begun());
    words[0] = nm_words(LAST)[15];
    nm_send(&out, words, 1);
  }
  return 0;
}
