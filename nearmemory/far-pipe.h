// Line pipes between two near-memory cores, through far memory that the host has given to both. The sender stores lines
// from its scratchpad, the receiver fetches them to its own: only whole lines are transferred, so no line needs a tag,
// and all of its words are data.
//
// Counts are sent through the FIFOs between the two cores: the sender reports the words stored in far memory, and the
// receiver the lines fetched. These FIFOs are reserved for the pipe, so there is one such pipe between two cores.

#ifndef NEARMEMORY_FAR_PIPE_H
#define NEARMEMORY_FAR_PIPE_H

#include "nearmemory/channel.h"

// Data words per line.
#define NM_FAR_WORDS (NM_LINE / 8)

// One side of a pipe: the core of the other side, the first line in far memory and in this core's scratchpad, the
// number of lines, and the number of lines transferred.
struct nm_far_side {
  uint64_t core, far, first, lines, done;
};

// Sending side; private to the sender's core.
struct nm_far_sender {
  struct nm_far_side side;
  // Number of lines that the receiver has reported as fetched.
  uint64_t taken;
};

// Receiving side; private to the receiver's core.
struct nm_far_receiver {
  struct nm_far_side side;
  // Fetched words not yet received, the word index at which they begin, and fetched lines not yet reported to the
  // sender.
  uint64_t words_left, next_word, unreported;
};

// Initialise one side: number of the other core, address of the lines in far memory, first line of this core's
// scratchpad, and number of lines. Both sides pass the same lines of far memory; the lines of the scratchpad must be
// otherwise unused.
static inline struct nm_far_sender nm_far_sender(uint64_t core, uint64_t far, uint64_t first, uint64_t lines) {
  return (struct nm_far_sender){{core, far, first, lines, 0}, 0};
}
static inline struct nm_far_receiver nm_far_receiver(uint64_t core, uint64_t far, uint64_t first, uint64_t lines) {
  return (struct nm_far_receiver){{core, far, first, lines, 0}, 0, 0, 0};
}

// Number of lines that this number of words occupies.
static inline uint64_t nm_far_lines(uint64_t words) { return (words + NM_FAR_WORDS - 1) / NM_FAR_WORDS; }

// Copies the next lines between scratchpad and far memory, and waits for the copy. A range that wraps around takes two
// copies. NM_READ stores lines to far memory, NM_WRITE_BACK fetches them: the kind is that of the stamp that changes.
static inline void nm_far_copy(struct nm_far_side *side, uint64_t lines, enum nm_kind kind) {
  uint64_t slot = side->done % side->lines, until_wrap = nm_lesser(lines, side->lines - slot);
  nm_order();
  for (uint64_t part = 0; part < 2; part++) {
    uint64_t from = part ? 0 : slot, count = part ? lines - until_wrap : until_wrap;
    if (count == 0) continue;
    nm_copies(count);
    if (kind == NM_READ)
      nm_store_lines(side->first + from, side->far + from * NM_LINE);
    else
      nm_fetch_lines(side->first + from, side->far + from * NM_LINE);
  }
  if (kind == NM_READ)
    nm_await_stores(nm_stores_begun());
  else
    nm_await_fetches(nm_fetches_begun());
  nm_order();
  side->done += lines;
}

// Returns the word with this number, counted from the start of the pipe, in the lines of the scratchpad.
static inline volatile uint64_t *nm_far_word(struct nm_far_side *side, uint64_t number) {
  return nm_words(side->first) + number % (side->lines * NM_FAR_WORDS);
}

// Number of lines that can be sent without waiting.
static inline uint64_t nm_far_room(struct nm_far_sender *sender) {
  uint64_t taken;
  while (nm_try_fifo_receive(sender->side.core, &taken) > 0) sender->taken += taken;
  return sender->side.lines - (sender->side.done - sender->taken);
}

// Sends words as long as there is space; returns the number of words sent. At most half of the lines are sent at once,
// so that the receiver fetches some while others are stored.
static inline uint64_t nm_far_try_send(struct nm_far_sender *sender, const uint64_t *words, uint64_t count) {
  uint64_t room = nm_lesser(nm_far_room(sender), (sender->side.lines + 1) / 2);
  // A full FIFO means that the receiver has not yet read the earlier counts.
  if (count == 0 || room == 0 || nm_fifo_room(sender->side.core) == 0) return 0;
  count = nm_lesser(count, room * NM_FAR_WORDS);
  uint64_t number = sender->side.done * NM_FAR_WORDS;
  for (uint64_t i = 0; i < count; i++) *nm_far_word(&sender->side, number + i) = words[i];
  nm_far_copy(&sender->side, nm_far_lines(count), NM_READ);
  nm_fifo_send(sender->side.core, count);
  return count;
}

// Sends all of these words.
static inline void nm_far_send(struct nm_far_sender *sender, const uint64_t *words, uint64_t count) {
  while (count > 0) {
    uint64_t sent = nm_far_try_send(sender, words, count);
    words += sent;
    count -= sent;
    if (sent == 0) nm_relax();
  }
}

// Ends the stream after the receiver has fetched all of it. Words sent later belong to a new stream.
static inline void nm_far_end(struct nm_far_sender *sender) {
  while (nm_far_room(sender) < sender->side.lines) nm_relax();
  nm_fifo_end(sender->side.core);
}

// Reports fetched lines to the sender. If the FIFO is full, the report is postponed: the sender still has earlier
// reports.
static inline void nm_far_report(struct nm_far_receiver *receiver) {
  if (receiver->unreported == 0 || nm_fifo_room(receiver->side.core) == 0) return;
  nm_fifo_send(receiver->side.core, receiver->unreported);
  receiver->unreported = 0;
}

// Receives available words up to the given capacity, and returns their number: 0 if there are none, -1 at the
// end of the stream.
static inline int64_t nm_far_try_receive(struct nm_far_receiver *receiver, uint64_t *words, uint64_t capacity) {
  nm_far_report(receiver);
  if (receiver->words_left == 0) {
    uint64_t count;
    int found = nm_try_fifo_receive(receiver->side.core, &count);
    if (found <= 0) return found;
    receiver->next_word = receiver->side.done * NM_FAR_WORDS;
    receiver->words_left = count;
    receiver->unreported += nm_far_lines(count);
    nm_far_copy(&receiver->side, nm_far_lines(count), NM_WRITE_BACK);
    nm_far_report(receiver);
  }
  uint64_t count = nm_lesser(receiver->words_left, capacity);
  for (uint64_t i = 0; i < count; i++) words[i] = *nm_far_word(&receiver->side, receiver->next_word + i);
  receiver->next_word += count;
  receiver->words_left -= count;
  return count;
}

// Waits for at least one word, and returns the number received: 0 at the end of the stream.
static inline uint64_t nm_far_receive(struct nm_far_receiver *receiver, uint64_t *words, uint64_t capacity) {
  int64_t count;
  while ((count = nm_far_try_receive(receiver, words, capacity)) == 0) nm_relax();
  return count < 0 ? 0 : count;
}

#endif
