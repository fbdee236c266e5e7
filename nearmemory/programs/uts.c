// Searches a tree in far memory, alone or with other cores, to which it deals the children of each node (uts.h).
//
// Arguments: address of the array of nodes in far memory, number of cores, and number of this core. Core 0 begins at
// the root, node 0. Register pipe 0 returns three words: the nodes and the leaves that this core has searched, and
// their maximum depth. Exit status 0, or 1 if the tree is too deep for the stack.

#include "nearmemory/channel.h"
#include "nearmemory/programs/uts.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_FIFO(0), NM_FIFO(1), NM_FIFO(2), NM_FIFO(3), NM_GIVEN)

// Maximum number of cores.
#define CORES 4
// Maximum outstanding reads of nodes, each to a line of its own.
#define READS 8
// Ranges of siblings to be searched: at most two for each level, with a margin.
#define STACK 8192

// Stack of ranges; the newest is below `height`.
static uint64_t stack[STACK], height;
// Arguments: address of the nodes, number of cores, number of this core.
static uint64_t far, cores, core;
// Credit held by this core.
static uint64_t credit;
// Free words of the FIFO to each core, and words in the FIFO from each core: at least so many, as last read.
static uint64_t room[CORES], available[CORES];
// Results so far.
static uint64_t nodes, leaves, max_depth;

// Adds a range. Returns 0 if the stack is full.
static inline int push(uint64_t first, uint64_t count) {
  if (count == 0) return 1;
  if (height == STACK) return 0;
  stack[height++] = RANGE(first, count);
  return 1;
}

// Removes the first node of the newest range, and returns it.
static inline uint64_t pop(void) {
  uint64_t *newest = &stack[height - 1], range = *newest;
  if (RANGE_COUNT(range) > 1)
    *newest = range + RANGE(1, 0) - 1;
  else
    height--;
  return RANGE_FIRST(range);
}

// Receives messages of the other cores, in turn, until one is a range. Returns 1 if it is, 0 if no message is left, or
// -1 if the search has ended. The stack must be empty.
static __attribute__((noinline)) int receive_range(void) {
  static uint64_t other;
  for (uint64_t i = 0; i < cores; i++) {
    other = other + 1 == cores ? 0 : other + 1;
    if (other == core) continue;
    if (available[other] == 0) available[other] = nm_fifo_words(other);
    while (available[other] > 0) {
      available[other]--;
      uint64_t word = nm_fifo_take(other);
      if (word == SEARCH_ENDED) return -1;
      if (word & RETURNED_CREDIT) {
        credit += word & ~RETURNED_CREDIT;
        continue;
      }
      credit += (uint64_t)1 << WORK_POWER(word);
      push(RANGE_FIRST(WORK_RANGE(word)), RANGE_COUNT(WORK_RANGE(word)));
      return 1;
    }
  }
  return 0;
}

// Sends a range to another core, with 1/32 to 1/64 of the credit. Returns 0 if its FIFO or the credit has no room: one
// word of each FIFO is kept free for returned credit.
static inline int send_range(uint64_t other, uint64_t first, uint64_t count) {
  if (credit < 2) return 0;
  if (room[other] < 2 && (room[other] = nm_fifo_room(other)) < 2) return 0;
  uint64_t power = 63 - __builtin_clzll(credit);
  power = power > 5 ? power - 5 : 0;
  credit -= (uint64_t)1 << power;
  room[other]--;
  nm_fifo_send(other, WORK(power, RANGE(first, count)));
  return 1;
}

// Deals children equally to this core and the others; cores take turns at those that are left over.
// This core keeps the children that another one has no room for. Returns 0 if the stack is full.
static int deal(uint64_t first, uint64_t count) {
  static uint64_t turn;
  if (cores == 1) return push(first, count);
  uint64_t each = count / cores, rest = count % cores, other = turn;
  turn = turn + rest < cores ? turn + rest : turn + rest - cores;
  // Adjacent parts that this core keeps are one range.
  uint64_t kept_first = first, kept = 0;
  for (uint64_t i = 0; i < cores && count > 0; i++) {
    uint64_t part = each + (i < rest);
    if (other != core && send_range(other, first, part)) {
      if (!push(kept_first, kept)) return 0;
      kept_first = first + part, kept = 0;
    } else {
      kept += part;
    }
    other = other + 1 == cores ? 0 : other + 1;
    first += part;
    count -= part;
  }
  return push(kept_first, kept);
}

// Returns the credit of this core, which has no node left. If core 0 has all of the credit, it announces the end.
// Returns 1 if the search has ended.
static __attribute__((noinline)) int return_credit(void) {
  if (core > 0) {
    if (credit) nm_fifo_send(0, RETURNED_CREDIT | credit), room[0] = 0;
    credit = 0;
    return 0;
  }
  if (credit < CREDIT) return 0;
  for (uint64_t other = 1; other < cores; other++) nm_fifo_send(other, SEARCH_ENDED);
  return 1;
}

// Searches the tree. Returns 0, or -1 if the tree is too deep.
static int search(void) {
  uint64_t fetches = 0, read = 0, earlier_stamp[READS];
  for (;;) {
    int received = 1;
    while (fetches - read < READS && (height > 0 || (received = receive_range()) > 0)) {
      uint64_t slot = fetches++ % READS;
      earlier_stamp[slot] = nm_write_stamp(slot);
      nm_fetch_lines(slot, far + pop() * NM_LINE);
    }
    if (received < 0) return 0;
    if (fetches == read) {
      if (return_credit()) return 0;
      nm_relax();
      continue;
    }
    uint64_t slot = read++ % READS;
    nm_fetched(slot, earlier_stamp[slot]);
    volatile struct node *node = (volatile struct node *)nm_words(slot);
    uint64_t first = node->first, count = node->children, depth = node->depth;
    nodes++;
    leaves += count == 0;
    if (depth > max_depth) max_depth = depth;
    if (count && !deal(first, count)) return -1;
  }
}

int channel(uint64_t address, uint64_t core_count, uint64_t number, uint64_t unused_3) {
  far = address, cores = core_count, core = number;
  nm_copies(1);
  if (core == 0) credit = CREDIT, push(0, 1);
  if (search() < 0) return 1;
  nm_send_word(nm_register_pipe(0), nodes);
  nm_send_word(nm_register_pipe(0), leaves);
  nm_send_word(nm_register_pipe(0), max_depth);
  return 0;
}
