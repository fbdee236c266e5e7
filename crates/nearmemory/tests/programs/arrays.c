// Operations on arrays of elements of 1, 2, 8, 32 and 128 bytes. NM_ARRAYS lists them in the order of the enum in
// arrays.h of this folder.

#include "nearmemory/channel.h"

#include "nearmemory/arrays.h"

#include "crates/nearmemory/tests/programs/arrays.h"

static uint64_t wider(uint8_t x) { return x * 3 + 1; }
static uint8_t narrower(uint64_t x) { return x / 5; }
static int is_odd(uint16_t x) { return x & 1; }
static struct point moved(struct point point) { return (struct point){point.x + 1, point.y * 2, {point.x}}; }
static int is_right(struct point point) { return point.x % 3 == 0; }
static uint64_t joined(uint64_t value, struct point point) { return value * 31 + point.x + point.y; }
static struct wide grown(uint64_t x) { return (struct wide){{x, ~x}}; }
static uint64_t mixed(uint64_t value, struct wide wide) { return value * 7 + wide.words[0] - wide.words[1]; }

NM_MAP(wide, uint8_t, uint64_t, wider)
NM_MAP(narrow, uint64_t, uint8_t, narrower)
NM_FILTER(odd, uint16_t, is_odd)
NM_MAP(move, struct point, struct point, moved)
NM_FILTER(right, struct point, is_right)
NM_REDUCE(join, struct point, uint64_t, 9, joined)
NM_MAP(grow, uint64_t, struct wide, grown)
NM_REDUCE(mix, struct wide, uint64_t, 0, mixed)

NM_ARRAYS(4096, wide, narrow, odd, move, right, join, grow, mix)
