// Searches a tree in far memory, alone or with others, among whom it deals the children of each node: counts nodes and leaves, and
// finds out how deep it is. Called with where the nodes are, how many cores search, and which of these this one is: the first
// one begins at the root. A register pipe takes the three numbers.

#include "nearmemory/channel.h"
#include "nearmemory/programs/uts.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_FIFO(0), NM_FIFO(1), NM_FIFO(2), NM_FIFO(3), NM_GIVEN)

#define CORES 4
// Reads of nodes that are under way at once, each to a line of its own.
#define READS 8
// What is to be searched, of which each part has siblings: as many as the tree is deep, and some more.
#define STACK 8192

static uint64_t stack[STACK], height;
static uint64_t far, cores, own, credit, room[CORES], waiting[CORES], from, nodes, leaves, deepest;

static int push(uint64_t first, uint64_t count) {
  if (count == 0) return 1;
  if (height == STACK) return 0;
  stack[height++] = RANGE(first, count);
  return 1;
}

// Takes a word that another core has sent; -1 if all is done, and otherwise whether there is something to be searched now.
static int receive(void) {
  for (uint64_t i = 1; i < cores; i++) {
    from = from + 1 == cores ? 0 : from + 1;
    if (from == own) continue;
    // How many words there are is asked once for all of them.
    if (waiting[from] == 0 && (waiting[from] = nm_fifo_words(from)) == 0) continue;
    waiting[from]--;
    uint64_t word = nm_fifo_take(from);
    if (word == OVER) return -1;
    if (word & BACK) {
      credit += word & ~BACK;
      continue;
    }
    credit += (uint64_t)1 << WORK_POWER(word);
    stack[height++] = WORK_RANGE(word);
    return 1;
  }
  return 0;
}

// Sends nodes to another core with a thirty-second of the credit, if there is room and enough of it.
static int send(uint64_t other, uint64_t first, uint64_t count) {
  if (credit < 2) return 0;
  if (room[other] == 0) room[other] = nm_fifo_room(other);
  // One place is left for credit that goes back.
  if (room[other] < 2) return 0;
  uint64_t power = 63 - __builtin_clzll(credit);
  power = power > 5 ? power - 5 : 0;
  credit -= (uint64_t)1 << power;
  room[other]--;
  nm_fifo_send(other, WORK(power, RANGE(first, count)));
  return 1;
}

// Deals children equally, the first ones to this core or another one, in turns. What nobody takes stays here.
static int deal(uint64_t first, uint64_t count) {
  static uint64_t turn;
  if (cores == 1) return push(first, count);
  uint64_t each = count / cores, more = count % cores;
  for (uint64_t i = 0; i < cores && count > 0; i++) {
    turn = turn + 1 == cores ? 0 : turn + 1;
    uint64_t part = each + (i < more);
    if (part == 0) break;
    if ((turn == own || !send(turn, first, part)) && !push(first, part)) return 0;
    first += part;
    count -= part;
  }
  return 1;
}

// Gives credit back, or, where it comes together, says to the others that all is done. Whether it is.
static int is_over(void) {
  if (own > 0) {
    if (credit) nm_fifo_send(0, BACK | credit);
    credit = 0;
    return 0;
  }
  if (credit < CREDIT) return 0;
  for (uint64_t other = 1; other < cores; other++) nm_fifo_send(other, OVER);
  return 1;
}

// All of it, or -1 if the tree is too deep.
static int search(void) {
  uint64_t asked = 0, read = 0, before[READS];
  for (;;) {
    int more = 1;
    while (asked - read < READS && (height > 0 || (more = receive()) > 0)) {
      uint64_t *top = &stack[height - 1], place = asked++ % READS;
      before[place] = nm_write_stamp(place);
      nm_fetch(place, far + RANGE_FIRST(*top) * NM_LINE, 1);
      // The next one of its siblings, if there is any.
      if (RANGE_COUNT(*top) == 1)
        height--;
      else
        *top += RANGE(1, 0) - 1;
    }
    if (more < 0) return 0;
    if (asked == read) {
      if (is_over()) return 0;
      nm_relax();
      continue;
    }
    uint64_t place = read++ % READS;
    nm_fetched(place, before[place]);
    volatile struct node *node = (volatile struct node *)nm_words(place);
    uint64_t first = node->first, count = node->children, depth = node->depth;
    nodes++;
    leaves += count == 0;
    if (depth > deepest) deepest = depth;
    if (count && !deal(first, count)) return -1;
  }
}

int channel(uint64_t at, uint64_t all, uint64_t which, uint64_t d) {
  far = at, cores = all, own = which;
  if (own == 0) credit = CREDIT, push(0, 1);
  if (search() < 0) return 1;
  nm_send_word(nm_register_pipe(0), nodes);
  nm_send_word(nm_register_pipe(0), leaves);
  nm_send_word(nm_register_pipe(0), deepest);
  return 0;
}
