// Counts the nodes of a tree of the benchmark UTS, and prints the number. Arguments: the first seven of uts-host.c,
// which are the fields of `struct tree`.

#include "nearmemory/programs/tree.h"

#include <stdio.h>
#include <stdlib.h>

// Maximum number of nodes that are known but not yet counted.
#define STACK 1000000

// A node that is not yet counted. The root has depth 0.
struct entry {
  uint8_t state[TREE_STATE];
  int depth;
};

int main(int argc, char **argv) {
  static struct entry stack[STACK];
  if (argc < 8) return 2;
  struct tree tree = {atoi(argv[1]), atoi(argv[2]), atoi(argv[3]), atof(argv[4]), atof(argv[5]) / 1e6, atoi(argv[6]),
                      atoi(argv[7])};
  long nodes = 0, height = 1;
  tree_root(&tree, stack[0].state);
  while (height > 0) {
    struct entry entry = stack[--height];
    nodes++;
    int children = tree_children(&tree, entry.state, entry.depth);
    if (height + children > STACK) return 3;
    for (int i = 0; i < children; i++) {
      tree_spawn(entry.state, i, stack[height].state);
      stack[height++].depth = entry.depth + 1;
    }
  }
  printf("%ld nodes\n", nodes);
  return 0;
}
