// Definitions of the tree search for host and near-memory cores: layout of nodes in far memory, and messages between
// near-memory cores.

#ifndef NEARMEMORY_UTS_H
#define NEARMEMORY_UTS_H

#include <stdint.h>

// A node, in one line. Its children are consecutive nodes.
struct node {
  // Index of the first child; number of children; number of edges from the root.
  uint64_t first;
  uint32_t children, depth;
  // State of tree.h, from which the tree was built; searches do not use it.
  uint8_t state[20];
} __attribute__((aligned(128)));

// A range of consecutive nodes to be searched: index of the first node, and number of nodes.
#define RANGE_BITS 12
#define RANGE(first, count) ((uint64_t)(first) << RANGE_BITS | (count))
#define RANGE_FIRST(range) ((range) >> RANGE_BITS)
#define RANGE_COUNT(range) ((range) & ((1 << RANGE_BITS) - 1))

// Messages between cores, by their FIFOs. A core deals the children of each node equally to itself and to the others.
// Termination is detected by credit recovery: core 0 begins with all of the credit, each range that is sent carries a
// part, and an idle core returns its own to core 0. The search is over when core 0 is idle and has all of the credit
// again.
//
// A message is one word:
//   bit 63 set, credit in the lower bits       returned credit (RETURNED_CREDIT | credit)
//   bit 63 set, no credit                      the search has ended (SEARCH_ENDED)
//   bit 63 clear: bits 62 to 56, and 55 to 0   base-two logarithm of the credit, and a range (WORK)
#define CREDIT ((uint64_t)1 << 62)
#define WORK_BITS 56
#define WORK(power, range) ((uint64_t)(power) << WORK_BITS | (range))
#define WORK_POWER(word) ((word) >> WORK_BITS)
#define WORK_RANGE(word) ((word) & (((uint64_t)1 << WORK_BITS) - 1))
#define RETURNED_CREDIT ((uint64_t)1 << 63)
#define SEARCH_ENDED RETURNED_CREDIT

#endif
