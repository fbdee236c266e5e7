// Trees of the benchmark "unbalanced tree search" (UTS), defined by the hash SHA-1 (FIPS 180). The state of a node is
// the hash of its parent's state and its index among the siblings; the state determines the number of children.
//
// Compiles with any C compiler, so that the numbers of nodes can be compared with the published ones.

#ifndef NEARMEMORY_TREE_H
#define NEARMEMORY_TREE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

// Bytes of a node's state.
#define TREE_STATE 20

// Parameters of a tree.
struct tree {
  // Geometric trees: `branching` children on average at the root, varying with the depth by `shape`, down to `depth`.
  // Binomial trees: `branching` children at the root; every other node has `children` children with probability
  // `child_probability`, otherwise none.
  enum { TREE_BINOMIAL, TREE_GEOMETRIC } type;
  enum { TREE_LINEAR, TREE_EXPONENTIAL, TREE_CYCLIC, TREE_FIXED } shape;
  int depth;
  double branching, child_probability;
  int children;
  uint32_t seed;
};

// Maximum number of children in a geometric tree.
#define TREE_MAX_CHILDREN 100

static inline uint32_t rotate_left(uint32_t word, int count) { return word << count | word >> (32 - count); }

// Computes the SHA-1 hash of `length` bytes, at most 55: a single block with its padding.
static void tree_hash(const uint8_t *bytes, unsigned length, uint8_t hash[TREE_STATE]) {
  uint32_t words[80], h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  uint8_t block[64] = {0};
  memcpy(block, bytes, length);
  block[length] = 0x80;
  block[62] = length * 8 >> 8;
  block[63] = length * 8;
  for (int i = 0; i < 16; i++)
    words[i] = (uint32_t)block[i * 4] << 24 | block[i * 4 + 1] << 16 | block[i * 4 + 2] << 8 | block[i * 4 + 3];
  for (int i = 16; i < 80; i++) words[i] = rotate_left(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
  for (int i = 0; i < 80; i++) {
    uint32_t mix = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                   : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                   : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                            : (b ^ c ^ d) + 0xca62c1d6;
    uint32_t next = rotate_left(a, 5) + mix + e + words[i];
    e = d, d = c, c = rotate_left(b, 30), b = a, a = next;
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 4; j++) hash[i * 4 + j] = h[i] >> (24 - 8 * j);
}

// Computes the state of a child: the hash of the parent's state and the child's index.
static void tree_spawn(const uint8_t state[TREE_STATE], uint32_t index, uint8_t child[TREE_STATE]) {
  uint8_t bytes[TREE_STATE + 4];
  memcpy(bytes, state, TREE_STATE);
  for (int i = 0; i < 4; i++) bytes[TREE_STATE + i] = index >> (24 - 8 * i);
  tree_hash(bytes, sizeof bytes, child);
}

// Computes the state of the root: the hash of the seed.
static void tree_root(const struct tree *tree, uint8_t state[TREE_STATE]) {
  uint8_t bytes[TREE_STATE] = {0};
  for (int i = 0; i < 4; i++) bytes[16 + i] = tree->seed >> (24 - 8 * i);
  tree_hash(bytes, sizeof bytes, state);
}

// Returns the random number in [0, 1) of a state.
static double tree_random(const uint8_t state[TREE_STATE]) {
  uint32_t word = (uint32_t)state[16] << 24 | state[17] << 16 | state[18] << 8 | state[19];
  return (word & 0x7fffffff) / 2147483648.0;
}

// Returns the mean number of children at a depth of a geometric tree.
static double tree_branching(const struct tree *tree, int depth) {
  if (depth == 0) return tree->branching;
  switch (tree->shape) {
  case TREE_EXPONENTIAL: return tree->branching * pow(depth, -log(tree->branching) / log(tree->depth));
  case TREE_CYCLIC:
    return depth > 5 * tree->depth ? 0 : pow(tree->branching, sin(2.0 * 3.141592653589793 * depth / tree->depth));
  case TREE_FIXED: return depth < tree->depth ? tree->branching : 0;
  default: return tree->branching * (1.0 - (double)depth / tree->depth);
  }
}

// Returns the number of children of a node at this depth. In geometric trees it is geometrically distributed, by
// inversion of a uniform number, and at most TREE_MAX_CHILDREN.
static int tree_children(const struct tree *tree, const uint8_t state[TREE_STATE], int depth) {
  double uniform = tree_random(state);
  if (tree->type == TREE_BINOMIAL) {
    if (depth == 0) return (int)tree->branching;
    return uniform < tree->child_probability ? tree->children : 0;
  }
  double stop_probability = 1.0 / (1.0 + tree_branching(tree, depth));
  int children = (int)floor(log(1 - uniform) / log(1 - stop_probability));
  return children < TREE_MAX_CHILDREN ? children : TREE_MAX_CHILDREN;
}

#endif
