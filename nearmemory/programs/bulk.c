// Sets, clears and copies far memory on requests of the host by a pipe: an operation, the destination, the source or value, and the
// number of bytes, in whole lines. The answer is the last written word, read from far memory.

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_GIVEN)

enum { SET, CLEAR, COPY, INTERLEAVED };

// Lines of a transfer, and maximum number of outstanding transfers.
#define PART 48
#define PARTS 2
#define SYNCHRONOUS 384
// First of the lines that stay zero, and the destination of the read-back of the last line.
#define ZEROES 384
#define LAST 500

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// Stores the same lines repeatedly: several parts at a time, each with lines of its own, whose stamps show completion.
static void fill(uint64_t from, uint64_t to, uint64_t lines) {
  uint64_t since[PARTS] = {0}, sent[PARTS] = {0};
  for (uint64_t part = 0; lines > 0; part = (part + 1) % PARTS) {
    uint64_t first = from + part * PART, count = least(lines, PART);
    nm_stored_since(first, sent[part], since[part]);
    since[part] = nm_now();
    sent[part] = count;
    nm_store(first, to, count);
    to += count * NM_LINE;
    lines -= count;
  }
  for (uint64_t part = 0; part < PARTS; part++) nm_stored_since(from + part * PART, sent[part], since[part]);
}

static void set(uint64_t to, uint64_t value, uint64_t lines) {
  uint64_t words = least(lines, PARTS * PART) * 16;
  volatile uint64_t *first = nm_words(0);
#pragma GCC unroll 8
  for (uint64_t i = 0; i < words; i++) first[i] = value;
  fill(0, to, lines);
}

static void copy(uint64_t to, uint64_t from, uint64_t lines) {
  for (uint64_t done = 0; done < lines; done += SYNCHRONOUS) {
    uint64_t count = least(lines - done, SYNCHRONOUS), since = nm_now();
    nm_fetch(0, from + done * NM_LINE, count);
    nm_fetched_since(0, count, since);
    since = nm_now();
    nm_store(0, to + done * NM_LINE, count);
    nm_stored_since(0, count, since);
  }
}

// Two outstanding transfers: one half of the lines is fetched while the other half is stored.
static void interleaved(uint64_t to, uint64_t from, uint64_t lines) {
  uint64_t half = SYNCHRONOUS / 2, stored[2] = {0}, sent[2] = {0}, fetched = nm_now();
  nm_fetch(0, from, least(lines, half));
  for (uint64_t done = 0, side = 0; done < lines; done += half, side = 1 - side) {
    uint64_t count = least(lines - done, half), other = 1 - side, began = fetched;
    if (done + half < lines) {
      nm_stored_since(other * half, sent[other], stored[other]);
      fetched = nm_now();
      nm_fetch(other * half, from + (done + half) * NM_LINE, least(lines - done - half, half));
    }
    nm_fetched_since(side * half, count, began);
    stored[side] = nm_now();
    sent[side] = count;
    nm_store(side * half, to + done * NM_LINE, count);
  }
  for (uint64_t side = 0; side < 2; side++) nm_stored_since(side * half, sent[side], stored[side]);
}

int channel(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  struct nm_receiver in = nm_receiver(nm_pipe_at(480), 2);
  struct nm_sender out = nm_sender(nm_pipe_at(490), 2);
  uint64_t words[NM_WORDS];
  while (nm_receive(&in, words)) {
    uint64_t to = words[1], from = words[2], lines = words[3] / NM_LINE;
    switch (words[0]) {
    case SET: set(to, from, lines); break;
    case CLEAR: fill(ZEROES, to, lines); break;
    case COPY: copy(to, from, lines); break;
    default: interleaved(to, from, lines);
    }
    uint64_t since = nm_now();
    nm_fetch(LAST, to + (lines - 1) * NM_LINE, 1);
    nm_fetched_since(LAST, 1, since);
    words[0] = nm_words(LAST)[15];
    nm_send(&out, words, 1);
  }
  return 0;
}
