// Definitions of the tree search for host and near-memory cores: layout of nodes in far memory, and messages between cores.

#ifndef NEARMEMORY_UTS_H
#define NEARMEMORY_UTS_H

#include <stdint.h>

// A node, in one line. Its children are consecutive lines.
struct node {
  uint64_t first;
  uint32_t children, depth;
  uint8_t state[20];
} __attribute__((aligned(128)));

// A range of consecutive nodes to be searched: index of the first node, and number of nodes.
#define RANGE_BITS 12
#define RANGE(first, count) ((uint64_t)(first) << RANGE_BITS | (count))
#define RANGE_FIRST(range) ((range) >> RANGE_BITS)
#define RANGE_COUNT(range) ((range) & ((1 << RANGE_BITS) - 1))

// An idle core requests nodes from all others, which record the request until they have some to give. Credit detects
// termination: the first core begins with all of it, given nodes carry a part, and an idle core returns its own. The
// search is over when the first core is idle and has all of the credit again.
//
// A word to another core is a range with a part of the credit, encoded as its base-two logarithm in the upper bits; or, with the highest
// bit, returned credit; the same without credit means the end; or, with the bit below, a request for nodes.
#define CREDIT ((uint64_t)1 << 61)
#define WORK_BITS 56
#define WORK(power, range) ((uint64_t)(power) << WORK_BITS | (range))
#define WORK_POWER(word) ((word) >> WORK_BITS)
#define WORK_RANGE(word) ((word) & (((uint64_t)1 << WORK_BITS) - 1))
#define RETURNED_CREDIT ((uint64_t)1 << 63)
#define SEARCH_ENDED RETURNED_CREDIT
#define NODE_REQUEST ((uint64_t)1 << 62)

#endif
