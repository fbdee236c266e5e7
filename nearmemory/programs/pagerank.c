// Sums the contributions of neighbours, in far memory, for the node of each message, and stores the sums there.
//
// Arguments: addresses in far memory of the arrays of contributions and of sums, one float a node; and the number of
// line pipes that deliver messages, or 0 for register pipes. pagerank.h describes the messages. A word in register pipe
// ROUND_DONE_REGISTER reports that all sums of a round are in far memory.

#include "nearmemory/channel.h"
#include "nearmemory/programs/pagerank.h"

NM_CHANNEL(8192, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1), NM_REGISTER_PIPE(2), NM_REGISTER_PIPE(3), NM_REGISTER_PIPE(4),
           NM_REGISTER_PIPE(5), NM_REGISTER_PIPE(6), NM_REGISTER_PIPE(7), NM_REGISTER_PIPE(8), NM_REGISTER_PIPE(9),
           NM_REGISTER_PIPE(10), NM_REGISTER_PIPE(11), NM_REGISTER_PIPE(12), NM_REGISTER_PIPE(13), NM_REGISTER_PIPE(14),
           NM_REGISTER_PIPE(15), NM_GIVEN)

// First of the scratchpad lines into which contributions are fetched: two buffers of BUFFER_LINES lines, one for the
// message that is summed and one for the next message.
#define FETCHED FIRST_LINE(PIPES)
#define BUFFER_LINES 32

// Addresses of the arrays in far memory.
static uint64_t contributions, sums;

// A source of messages: a line pipe, or all register pipes.
struct source {
  // Number of the pipe, its first line, and number of messages received.
  uint64_t pipe, first, received;
  // Current node and its block; UINT64_MAX: none.
  uint64_t node, block;
  // Index of the block's line among the SUM_LINES lines, and number of the last store of each of these lines.
  uint64_t slot, stores[SUM_LINES];
  // Sum of the current node so far.
  float sum;
  int ended;
};

// A message whose contributions are being fetched: node, number of neighbours, first line that they are fetched to,
// and number of the last fetch before them.
struct pending {
  struct source *source;
  const volatile uint32_t *neighbours;
  uint64_t node, count, line, earlier_fetches;
};

// Number of fetches begun, and of fetches known to be complete. The copy engine's count of complete fetches is read
// only if the known number is too low.
static uint64_t fetches_begun, fetches_complete;

// Waits until all fetches with numbers up to this one are complete.
static inline void await_fetches(uint64_t number) {
  while (fetches_complete < number) fetches_complete = nm_fetches_complete();
}

// Starts to fetch the line of each neighbour's contribution.
static void fetch_contributions(struct pending *next) {
  next->earlier_fetches = fetches_begun;
  fetches_begun += next->count;
  const volatile uint32_t *neighbour = next->neighbours;
  uint64_t line = next->line, end = line + next->count, far = contributions;
#pragma GCC unroll 4
  for (; line < end; line++) nm_fetch_lines(line, far + (uint64_t)*neighbour++ / BLOCK * NM_LINE);
}

// Returns the sums of the current block, in the scratchpad.
static volatile float *scores_of(struct source *source) {
  return (volatile float *)nm_words(source->first + PIPE_LINES + source->slot);
}

// Starts to store the sums of the current block.
static void store_block(struct source *source) {
  if (source->block == UINT64_MAX) return;
  nm_store_lines(source->first + PIPE_LINES + source->slot, sums + source->block * NM_LINE);
  source->stores[source->slot] = nm_stores_begun();
  source->slot = (source->slot + 1) % SUM_LINES;
}

// Stores the sum of the finished node, and starts another node.
static void begin_node(struct source *source, uint64_t node) {
  if (source->node != UINT64_MAX) scores_of(source)[source->node % BLOCK] = source->sum;
  source->node = node;
  source->sum = 0;
  uint64_t block = node == UINT64_MAX ? UINT64_MAX : node / BLOCK;
  if (block == source->block) return;
  store_block(source);
  source->block = block;
  if (block == UINT64_MAX) return;
  // Waits for the earlier store of this line.
  nm_await_stores(source->stores[source->slot]);
  for (int i = 0; i < 16; i++) nm_words(source->first + PIPE_LINES + source->slot)[i] = 0;
}

// Waits for the contributions of a message and adds them to its node's sum.
static void add_contributions(const struct pending *message) {
  struct source *source = message->source;
  if (message->node != source->node) begin_node(source, message->node);
  float sum = source->sum;
  const volatile uint32_t *neighbour = message->neighbours;
  uint64_t left = message->count;
  uint64_t fetch = message->earlier_fetches;
  const volatile float *line = (const volatile float *)nm_words(message->line);
  // Four are loaded before the first is added, because the in-order core stalls at the first use of each load.
  for (; left >= 4; left -= 4, neighbour += 4, line += 4 * BLOCK) {
    await_fetches(fetch += 4);
    float loaded[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) loaded[i] = line[i * BLOCK + neighbour[i] % BLOCK];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) sum += loaded[i];
  }
  for (; left > 0; left--, neighbour++, line += BLOCK) {
    await_fetches(++fetch);
    sum += line[*neighbour % BLOCK];
  }
  source->sum = sum;
}

// Waits until the last sums of a round are in far memory.
static void end_round(struct source *source) {
  begin_node(source, UINT64_MAX);
  nm_await_stores(nm_stores_begun());
}

// Receives the next message of a line pipe. Returns 0 if none is available.
static int next_line(struct source *source, struct pending *next) {
  const volatile struct message *message =
      (const volatile struct message *)nm_words(source->first + source->received % PIPE_LINES);
  uint32_t mark = message->mark;
  if (mark >> 8 != (uint32_t)MARK(source->received + 1, 0) >> 8) return 0;
  *next = (struct pending){source, message->neighbours, message->node, mark & 255};
  source->received++;
  return 1;
}

// Receives the next message of the register pipes. Returns 0 if none is available.
static int next_words(struct source *source, struct pending *next) {
  // The current and the previous message; index of the next register pipe, and of the current message.
  static struct message messages[2];
  static uint64_t words, which;
  uint64_t word = 0;
  if (!nm_try_receive_word(nm_register_pipe(FIRST_WORD_REGISTER + words), &word)) return 0;
  words = words + 1 == WORD_REGISTERS ? 0 : words + 1;
  struct message *message = &messages[which = !which];
  *next = (struct pending){source, message->neighbours, word >> 32, word & 255};
  for (uint64_t i = 0; i < next->count; i += 2) {
    nm_receive_word(nm_register_pipe(FIRST_WORD_REGISTER + words), &word);
    words = words + 1 == WORD_REGISTERS ? 0 : words + 1;
    message->neighbours[i] = word >> 32;
    message->neighbours[i + 1] = word;
  }
  return 1;
}

// Reports to the host how many lines of a pipe are free again.
static void report_taken(const struct source *source, uint64_t taken) {
  *(volatile uint64_t *)nm_shared(TAKEN_REGISTER(source->pipe)) = taken;
}

int channel(uint64_t contributions_address, uint64_t sums_address, uint64_t pipes, uint64_t unused_3) {
  static struct source sources[PIPES];
  struct pending previous = {0}, next;
  contributions = contributions_address;
  sums = sums_address;
  uint64_t source_count = pipes ? pipes : 1, ended_sources = 0, buffer = 0, ended = 0;
  for (uint64_t i = 0; i < source_count; i++) {
    sources[i] = (struct source){.pipe = i, .first = FIRST_LINE(i), .node = UINT64_MAX, .block = UINT64_MAX};
  }
  nm_copies(1);
  for (uint64_t i = 0;; i = i + 1 == source_count ? 0 : i + 1) {
    struct source *source = &sources[i];
    int has_message = pipes ? next_line(source, &next) : next_words(source, &next);
    int ends = has_message && next.node >= ALL_ENDS;
    if (has_message && !ends) {
      next.line = FETCHED + buffer * BUFFER_LINES;
      buffer = !buffer;
      fetch_contributions(&next);
    }
    if (previous.source && (has_message || i + 1 == source_count)) {
      add_contributions(&previous);
      // The message's line, and all earlier lines, are free now.
      if (pipes) report_taken(previous.source, previous.source->received - (previous.source == source && has_message));
      previous.source = 0;
    }
    if (!has_message) nm_relax();
    if (has_message && !ends) previous = next;
    if (!ends) continue;
    if (pipes) report_taken(source, source->received);
    if (next.node == ALL_ENDS) {
      if (++ended_sources == source_count) return 0;
      continue;
    }
    end_round(source);
    if (++ended == source_count) {
      ended = 0;
      nm_send_word(nm_register_pipe(ROUND_DONE_REGISTER), 1);
    }
  }
}
