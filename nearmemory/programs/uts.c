// Searches a tree in far memory, alone or with other cores; idle cores request nodes from the others (uts.h).
//
// Arguments: address of the array of nodes in far memory, number of cores, and number of this core. Core 0 begins at
// the root, node 0. Register pipe 0 returns three words: the nodes and the leaves that this core has searched, and
// their maximum depth. Exit status 0, or 1 if the tree is too deep for the stack.

#include "nearmemory/channel.h"
#include "nearmemory/programs/uts.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_FIFO(0), NM_FIFO(1), NM_FIFO(2), NM_FIFO(3), NM_GIVEN)

// Maximum outstanding reads of nodes, each to a line of its own.
#define READS 8
// Ranges of siblings to be searched: the depth of the tree, with a margin.
#define STACK 8192
// Nodes searched between two checks for messages of another core.
#define NODES_PER_POLL 8

// Stack of ranges. The oldest range, usually the largest subtree, is at `bottom`; the newest is below `top`.
static uint64_t stack[STACK], bottom, top;
// Arguments: address of the nodes, number of cores, number of this core.
static uint64_t far, cores, core;
// Credit held by this core.
static uint64_t credit;
// Results so far.
static uint64_t nodes, leaves, max_depth;

// Moves the stack to the start of its array. Returns 0 if it is there already.
static __attribute__((noinline)) int make_room(void) {
  if (bottom == 0) return 0;
  for (uint64_t i = bottom; i < top; i++) stack[i - bottom] = stack[i];
  top -= bottom;
  bottom = 0;
  return 1;
}

// Adds a range. Returns 0 if the stack is full.
static inline int push(uint64_t first, uint64_t count) {
  if (count == 0) return 1;
  if (top == STACK && !make_room()) return 0;
  stack[top++] = RANGE(first, count);
  return 1;
}

// Removes the first node of the newest range, and returns it.
static inline uint64_t pop(void) {
  uint64_t *newest = &stack[top - 1], range = *newest;
  if (RANGE_COUNT(range) > 1)
    *newest = range + RANGE(1, 0) - 1;
  else
    top--;
  return RANGE_FIRST(range);
}

// Bit masks of cores: requesters without a response, and cores to which this core has sent a request.
static uint64_t requesters, requested_cores;

// Sends the oldest range, or half of the only range, to a requester, with 1/32 to 1/64 of the credit. Sends nothing if
// no node or no credit would remain.
static __attribute__((noinline)) void send_range(void) {
  uint64_t range = stack[bottom], count = RANGE_COUNT(range);
  if (top == bottom || credit < 2 || (top - bottom == 1 && count == 1)) return;
  if (top - bottom > 1)
    bottom++;
  else
    count /= 2, stack[bottom] += RANGE(count, 0) - count;
  uint64_t power = 63 - __builtin_clzll(credit);
  power = power > 5 ? power - 5 : 0;
  credit -= (uint64_t)1 << power;
  uint64_t other = __builtin_ctzll(requesters);
  requesters &= requesters - 1;
  nm_fifo_send(other, WORK(power, RANGE(RANGE_FIRST(range), count)));
}

// Receives all messages of one other core; successive calls take the cores in turn. Returns 1 if the search has ended.
static __attribute__((noinline)) int receive_messages(void) {
  static uint64_t other;
  do
    other = other + 1 == cores ? 0 : other + 1;
  while (other == core);
  for (uint64_t words = nm_fifo_words(other); words > 0; words--) {
    uint64_t word = nm_fifo_take(other);
    if (word == SEARCH_ENDED) return 1;
    if (word & RETURNED_CREDIT) {
      credit += word & ~RETURNED_CREDIT;
    } else if (word == NODE_REQUEST) {
      requesters |= (uint64_t)1 << other;
    } else {
      requested_cores &= ~((uint64_t)1 << other);
      credit += (uint64_t)1 << WORK_POWER(word);
      push(RANGE_FIRST(WORK_RANGE(word)), RANGE_COUNT(WORK_RANGE(word)));
    }
  }
  return 0;
}

// Requests nodes from the other cores and returns the credit. If core 0 has all of the credit, it announces the end.
// Returns 1 if the search has ended.
static __attribute__((noinline)) int wait_for_work(void) {
  if (core == 0 && credit == CREDIT) {
    for (uint64_t other = 1; other < cores; other++) nm_fifo_send(other, SEARCH_ENDED);
    return 1;
  }
  for (uint64_t other = 0; other < cores; other++)
    if (other != core && !(requested_cores >> other & 1)) nm_fifo_send(other, NODE_REQUEST);
  requested_cores = ((uint64_t)1 << cores) - 1;
  if (core > 0 && credit) {
    nm_fifo_send(0, RETURNED_CREDIT | credit);
    credit = 0;
  }
  nm_relax();
  return receive_messages();
}

// Searches the tree. Returns 0, or -1 if the tree is too deep.
static int search(void) {
  uint64_t fetches = 0, read = 0, polls_left = NODES_PER_POLL, earlier_stamp[READS];
  for (;;) {
    while (fetches - read < READS && top > bottom) {
      uint64_t slot = fetches++ % READS;
      earlier_stamp[slot] = nm_write_stamp(slot);
      nm_fetch_lines(slot, far + pop() * NM_LINE);
    }
    if (fetches == read) {
      if (wait_for_work()) return 0;
      continue;
    }
    uint64_t slot = read++ % READS;
    nm_fetched(slot, earlier_stamp[slot]);
    volatile struct node *node = (volatile struct node *)nm_words(slot);
    uint64_t first = node->first, count = node->children, depth = node->depth;
    nodes++;
    leaves += count == 0;
    if (depth > max_depth) max_depth = depth;
    if (!push(first, count)) return -1;
    if (requesters) send_range();
    if (--polls_left > 0) continue;
    polls_left = NODES_PER_POLL;
    if (cores > 1) receive_messages();
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
