// Element types of the array tests, and their operations in the order of arrays.c.

#ifndef TEST_ARRAYS_H
#define TEST_ARRAYS_H

#include "nearmemory/typed.h"

// An element of 32 bytes. The map stores the old `x` in `rest[0]`.
struct point {
  int32_t x, y;
  uint64_t rest[3];
};

// An element that fills a line.
struct wide {
  uint64_t words[16];
};

// Operations by their index in NM_ARRAYS.
enum { WIDE, NARROW, ODD, MOVE, RIGHT, JOIN, GROW, MIX };

// A value of 3.5 words.
struct record {
  uint64_t number;
  char name[20];
};

NM_TYPED(records, struct record)

#endif
