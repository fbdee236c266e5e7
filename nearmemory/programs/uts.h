// What both sides of the search of a tree know: how it lies in far memory, and what is sent between cores that search it.

#ifndef NEARMEMORY_UTS_H
#define NEARMEMORY_UTS_H

#include <stdint.h>

// A node is a line. Its children are lines one behind the other.
struct node {
  uint64_t first;
  uint32_t children, depth;
  uint8_t state[20];
} __attribute__((aligned(128)));

// Nodes to be searched, one behind the other: where the first one is among all, and how many there are.
#define RANGE_BITS 12
#define RANGE(first, count) ((uint64_t)(first) << RANGE_BITS | (count))
#define RANGE_FIRST(range) ((range) >> RANGE_BITS)
#define RANGE_COUNT(range) ((range) & ((1 << RANGE_BITS) - 1))

// A core that has nothing to do asks all others for nodes, each of whom remembers that until it has some to give. Credit says when
// all is done: who begins has all of it, nodes that are given take a part along, and who has nothing to do gives its own back. The
// search is over when who has begun has all of it again and nothing to do.
//
// A word to another core is a range with a part of the credit, two to the power of its upper bits; or, with its highest bit, credit
// that comes back; without credit, it is over; or, with the bit below, a question for nodes.
#define CREDIT ((uint64_t)1 << 61)
#define WORK_BITS 56
#define WORK(power, range) ((uint64_t)(power) << WORK_BITS | (range))
#define WORK_POWER(word) ((word) >> WORK_BITS)
#define WORK_RANGE(word) ((word) & (((uint64_t)1 << WORK_BITS) - 1))
#define BACK ((uint64_t)1 << 63)
#define OVER BACK
#define ASKS ((uint64_t)1 << 62)

#endif
