// Benchmark: searches an unbalanced tree (UTS), which is built beforehand. Variants: the host in its own memory and in
// far memory, with and without prefetches; four host cores in far memory, with and without prefetches; one and four
// near-memory cores (uts.c).
//
// Arguments: type, shape, depth, branching, child_probability in millionths, children and seed of `struct tree` in
// tree.h, with types and shapes as the numbers of their enums; and the maximum number of nodes, beyond which nodes have
// no children.

#include "nearmemory/cores.h"
#include "nearmemory/programs/bench.h"
#include "nearmemory/programs/tree.h"
#include "nearmemory/programs/uts.h"

// Cores of the host, and near-memory cores, of the parallel searches; capacity of a core's stack in ranges.
#define CORES 4
#define MCCS 4
#define STACK 65536
// Capacity of the pool of ranges that cores of the host exchange.
#define POOL 4096

// Result of a search, or of a part of it. The root has depth 0.
struct result {
  uint64_t nodes, leaves, max_depth;
};

// Result that follows from building the tree.
static struct result expected;

// Builds the tree; each node precedes its children, which are consecutive.
static struct node *build_tree(const struct tree *tree, uint64_t max_nodes) {
  struct node *nodes = aligned_alloc(NM_LINE, (max_nodes + (1 << RANGE_BITS)) * sizeof *nodes);
  require(nodes != NULL, "no memory for so many nodes");
  tree_root(tree, nodes[0].state);
  nodes[0].depth = 0;
  uint64_t count = 1;
  for (uint64_t i = 0; i < count; i++) {
    struct node *node = &nodes[i];
    uint64_t children = count < max_nodes ? tree_children(tree, node->state, node->depth) : 0;
    require(children < 1 << RANGE_BITS, "a node has too many children");
    node->first = count;
    node->children = children;
    for (uint64_t j = 0; j < children; j++) {
      tree_spawn(node->state, j, nodes[count].state);
      nodes[count++].depth = node->depth + 1;
    }
    expected.leaves += children == 0;
    if (node->depth > expected.max_depth) expected.max_depth = node->depth;
  }
  expected.nodes = count;
  return nodes;
}

// Search state of a core.
struct search {
  const struct node *tree;
  // Prefetch distance in nodes, and number of ranges of the stack.
  uint64_t prefetch_distance, height;
  // Number of nodes prefetched and read so far, and ring of the nodes between.
  uint64_t prefetched, read, pending[NM_MAX_PREFETCHES];
  uint64_t *stack;
  struct result result;
};

// Reads a node and adds its children to the search.
static inline void visit(struct search *search, uint64_t index) {
  const volatile struct node *node = &search->tree[index];
  uint64_t first = node->first, children = node->children, depth = node->depth;
  search->result.nodes++;
  search->result.leaves += children == 0;
  if (depth > search->result.max_depth) search->result.max_depth = depth;
  if (children == 0) return;
  require(search->height < STACK, "the tree is too deep");
  search->stack[search->height++] = RANGE(first, children);
}

// Removes the first node of the newest range, and returns its index.
static inline uint64_t pop(struct search *search) {
  uint64_t *top = &search->stack[search->height - 1], first = RANGE_FIRST(*top);
  if (RANGE_COUNT(*top) == 1)
    search->height--;
  else
    *top += RANGE(1, 0) - 1;
  return first;
}

// Visits the oldest prefetched node, or the next node without prefetches. Returns 0 if no node is left.
static inline int process_next(struct search *search) {
  if (search->prefetch_distance == 0) {
    if (search->height == 0) return 0;
    visit(search, pop(search));
    return 1;
  }
  while (search->prefetched - search->read < search->prefetch_distance && search->height > 0) {
    uint64_t index = pop(search);
    nm_prefetch_far(&search->tree[index]);
    search->pending[search->prefetched++ % NM_MAX_PREFETCHES] = index;
  }
  if (search->prefetched == search->read) return 0;
  visit(search, search->pending[search->read++ % NM_MAX_PREFETCHES]);
  return 1;
}

static struct search searches[CORES];

// Shared pool of work: a lock, 1 while taken; number of ranges; number of busy cores, which may add ranges; the ranges.
static struct {
  uint64_t lock, height, busy, ranges[POOL];
} pool;

static void take_lock(void) {
  while (__atomic_exchange_n(&pool.lock, 1, __ATOMIC_ACQUIRE)) nm_relax();
}

static void release_lock(void) { __atomic_store_n(&pool.lock, 0, __ATOMIC_RELEASE); }

// Moves the oldest part of the remaining work, usually the largest subtree, to the pool.
static void offload_range(struct search *search) {
  if (search->height < 2 || __atomic_load_n(&pool.height, __ATOMIC_RELAXED) >= CORES) return;
  take_lock();
  if (pool.height < POOL) {
    pool.ranges[pool.height++] = search->stack[0];
    search->height--;
    memmove(search->stack, search->stack + 1, search->height * sizeof *search->stack);
  }
  release_lock();
}

// Searches until no core has work: takes ranges from the pool, and offloads some.
static void work(void *argument) {
  struct search *search = argument;
  int busy = 0;
  for (;;) {
    take_lock();
    if (pool.height > 0) {
      search->stack[search->height++] = pool.ranges[--pool.height];
      pool.busy += !busy;
      busy = 1;
    } else {
      pool.busy -= busy;
      busy = 0;
    }
    int is_done = !busy && pool.busy == 0;
    release_lock();
    if (is_done) return;
    while (busy && process_next(search)) offload_range(search);
  }
}

static void require_result(struct result result, const char *label) {
  int is_expected = result.nodes == expected.nodes && result.leaves == expected.leaves &&
                    result.max_depth == expected.max_depth;
  require(is_expected, label);
}

// Measures a search by cores of the host, each with this prefetch distance in nodes; 0: no prefetches.
static void by_host(const struct node *tree, uint64_t prefetch_distance, uint64_t cores, const char *label) {
  struct nm_thread threads[CORES];
  struct result total = {0};
  for (uint64_t i = 0; i < cores; i++) {
    uint64_t *stack = malloc(STACK * sizeof *stack);
    searches[i] = (struct search){.tree = tree, .prefetch_distance = prefetch_distance, .stack = stack};
    require(searches[i].stack != NULL, "no memory");
  }
  pool.ranges[0] = RANGE(0, 1);
  pool.height = 1;
  uint64_t start = cycles();
  for (uint64_t i = 1; i < cores; i++)
    require(nm_thread_start(&threads[i], i, work, &searches[i]) == 0, "the host has not so many cores");
  if (cores > 1)
    work(&searches[0]);
  else
    for (searches[0].stack[searches[0].height++] = RANGE(0, 1); process_next(&searches[0]);) {
    }
  for (uint64_t i = 1; i < cores; i++) nm_thread_join(&threads[i]);
  uint64_t duration = cycles() - start;
  for (uint64_t i = 0; i < cores; i++) {
    total.nodes += searches[i].result.nodes;
    total.leaves += searches[i].result.leaves;
    if (searches[i].result.max_depth > total.max_depth) total.max_depth = searches[i].result.max_depth;
    free(searches[i].stack);
  }
  require_result(total, label);
  print_duration(label, duration);
}

// Measures a search by near-memory cores, from the start of the last program to the last result.
static void by_cores(struct node *tree, uint64_t cores, const char *label) {
  struct result total = {0};
  uint64_t start = cycles(), words[3];
  for (uint64_t i = cores; i-- > 0;) {
    nm_give(i, tree, expected.nodes * sizeof *tree);
    uint64_t arguments[4] = {(uintptr_t)tree, cores, i};
    require(nm_spawn(i, "uts", arguments) == 0, "a core does not start");
    // The first core, which has the root, starts last.
    if (i == 0) start = cycles();
  }
  for (uint64_t i = 0; i < cores; i++) {
    for (int j = 0; j < 3; j++) require(nm_receive_word(nm_registers_of(i, 0), &words[j]), "a core ends too early");
    total.nodes += words[0];
    total.leaves += words[1];
    if (words[2] > total.max_depth) total.max_depth = words[2];
  }
  uint64_t duration = cycles() - start;
  require_result(total, label);
  for (uint64_t i = 0; i < cores; i++) require(nm_wait(i, NULL) == NM_EXITED, "a core ends wrongly");
  print_duration(label, duration);
}

int main(int argc, char **argv) {
  struct tree tree = {argument(argc, argv, 1), argument(argc, argv, 2), argument(argc, argv, 3),
                      argument(argc, argv, 4)};
  tree.child_probability = argument(argc, argv, 5) / 1e6;
  tree.children = argument(argc, argv, 6);
  tree.seed = argument(argc, argv, 7);
  struct node *local = build_tree(&tree, argument(argc, argv, 8));
  uint64_t bytes = expected.nodes * sizeof *local;
  struct node *far = nm_far_alloc(bytes);
  require(far != NULL, "no memory");
  for (uint64_t i = 0; i < bytes / 8; i += 16) {
    nm_prefetch_far((uint64_t *)far + i + 48 * 16);
    for (uint64_t j = i; j < i + 3; j++) ((volatile uint64_t *)far)[j] = ((uint64_t *)local)[j];
  }
  nm_flush_all(far, bytes);
  printf("all: %lu nodes\nof these: %lu leaves\ndown to: %lu nodes\n", expected.nodes, expected.leaves,
         expected.max_depth + 1);
  by_host(local, 0, 1, "local");
  by_host(far, 0, 1, "far");
  nm_flush_all(far, bytes);
  by_host(far, nm_prefetch_distance(), 1, "far with hints");
  nm_flush_all(far, bytes);
  if (nm_cores() >= CORES) by_host(far, nm_prefetch_distance() / CORES, CORES, "far with hints, 4 cores");
  nm_flush_all(far, bytes);
  by_cores(far, 1, "1 beside");
  if (nm_open() >= MCCS) by_cores(far, MCCS, "4 beside");
  nm_flush_all(far, bytes);
  if (nm_cores() >= CORES) by_host(far, 0, CORES, "far, 4 cores");
  return 0;
}
