// Operations on arrays in far memory: squares of numbers, those of them that are even, and their sum.

#include "nearmemory/channel.h"

#include "nearmemory/arrays.h"

static int64_t square(int32_t x) { return (int64_t)x * x; }
static int is_even(int64_t x) { return x % 2 == 0; }
static int64_t add(int64_t sum, int64_t x) { return sum + x; }

NM_MAP(squares, int32_t, int64_t, square)
NM_FILTER(even, int64_t, is_even)
NM_REDUCE(sum, int64_t, int64_t, 0, add)

NM_ARRAYS(4096, squares, even, sum)
