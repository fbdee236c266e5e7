// Benchmark: PageRank in pull direction, in which each node's score is computed from its neighbours' scores, by several
// cores of the host. The graph is in the host's own memory; the nodes' contributions are there or in far memory. The
// host reads them, with or without prefetches, or near-memory cores (pagerank.c) sum them, which receive nodes and
// neighbours by line pipes or register pipes.
//
// Arguments: shape of the graph, as numbered in graph.h; nodes; edges; maximum degree; cores of the host, 1 to 4;
// near-memory cores, 1 to 4; a bit mask of methods, with bit N for method N of the enum below; rounds.
//
// All methods sum in the same order, so scores are compared bit by bit; those of the first method also with double
// precision.

#include "nearmemory/cores.h"
#include "nearmemory/programs/graph.h"
#include "nearmemory/programs/pagerank.h"

// Methods, by their bit in the argument, and their names in the output. LOCAL always runs: its scores are the
// reference.
enum method { LOCAL, FAR, HINTS, LINES, REGISTERS };
static const char *const names[] = {"local", "far", "far with hints", "line pipes", "register pipes"};

// Probability of following an edge.
#define DAMPING 0.85f
// Number of messages sent together; a pipe has space for two batches.
#define BATCH (PIPE_LINES / 2)
// Maximum number of near-memory cores.
#define MCCS 4

static struct graph graph;
// Cores of the host and near-memory cores that take part; prefetch distance in neighbours; first node of each host
// core, and the number of nodes after them; number of rounds.
static uint64_t cores, mccs, prefetch_distance, bounds[PIPES + 1], rounds;
// The method that runs.
static enum method method;
// Contribution of each node to each of its neighbours; sum of the contributions of each node's neighbours.
static float *contributions, *sums;
// Barrier of the host's cores.
static struct nm_barrier barrier;

// Output of a host core to a near-memory core: pending messages, and numbers of messages sent, and freed by the
// receiver.
struct out {
  struct message batch[BATCH];
  uint64_t pending, sent, taken;
};
static struct out line_outputs[PIPES][MCCS];

// Pending words for the register pipes of a near-memory core, and index of the next register.
struct words {
  uint64_t batch[WORD_REGISTERS], pending, next;
};
static struct words words[MCCS];

// Sends the pending words to the register pipes of a near-memory core, once all of these are empty.
static void send_words(uint64_t mcc) {
  struct words *out = &words[mcc];
  struct nm_registers *to = nm_registers_of(mcc, FIRST_WORD_REGISTER);
  for (;;) {
    // All flags are loaded before the first is used, because the in-order core stalls at the first use of each load.
    uint64_t flags[WORD_REGISTERS], full = 0;
#pragma GCC unroll 16
    for (int i = 0; i < WORD_REGISTERS; i++) flags[i] = to[i].flag;
#pragma GCC unroll 16
    for (int i = 0; i < WORD_REGISTERS; i++) full |= flags[i];
    if (full == NM_TAKEN) break;
    nm_relax();
  }
  for (uint64_t i = 0; i < out->pending; i++) to[(out->next + i) % WORD_REGISTERS].word = out->batch[i];
  nm_order();
  for (uint64_t i = 0; i < out->pending; i++) to[(out->next + i) % WORD_REGISTERS].flag = NM_FULL;
  out->next = (out->next + out->pending) % WORD_REGISTERS;
  out->pending = 0;
}

// Adds a word to those pending; sends them when there is one for each register.
static inline void add_word(uint64_t mcc, uint64_t word) {
  struct words *out = &words[mcc];
  out->batch[out->pending++] = word;
  if (out->pending == WORD_REGISTERS) send_words(mcc);
}

// Returns the line of a message: `number` counts the messages of a pipe.
static volatile struct message *line_of(uint64_t core, uint64_t mcc, uint64_t number) {
  return (volatile struct message *)nm_line_of(mcc, FIRST_LINE(core) + number % PIPE_LINES);
}

// Sends the pending messages once their lines are free: all words except the marks, then the marks, then a write-back.
static void send_lines(uint64_t core, uint64_t mcc) {
  struct out *out = &line_outputs[core][mcc];
  uint64_t count = out->pending, first = out->sent;
  while (first + count - out->taken > PIPE_LINES) {
    out->taken = nm_registers_of(mcc, core)->word;
    nm_relax();
  }
  for (uint64_t i = 0; i < count; i++) {
    volatile uint64_t *line = (volatile uint64_t *)line_of(core, mcc, first + i);
    const uint64_t *from = (const uint64_t *)&out->batch[i];
#pragma GCC unroll 16
    for (int j = 0; j < 15; j++) line[j] = from[j];
    ((volatile uint32_t *)line)[30] = out->batch[i].neighbours[NEIGHBOURS - 1];
  }
  nm_order();
  for (uint64_t i = 0; i < count; i++) line_of(core, mcc, first + i)->mark = MARK(first + i + 1, out->batch[i].mark);
  nm_order();
  for (uint64_t i = 0; i < count; i++) nm_flush_now(line_of(core, mcc, first + i));
  out->sent += count;
  out->pending = 0;
  // Prefetches the lines of the next messages meanwhile: each line is overwritten completely before it is written back.
  for (uint64_t i = 0; i < BATCH; i++) nm_prefetch_far(line_of(core, mcc, out->sent + i));
}

// Returns the next message to fill in, after sending the batch if it is full.
static struct message *next_message(uint64_t core, uint64_t mcc) {
  struct out *out = &line_outputs[core][mcc];
  if (out->pending == BATCH) send_lines(core, mcc);
  return &out->batch[out->pending++];
}

// Sends a node and some of its neighbours to a core.
static inline void send_node(uint64_t core, uint64_t node, const uint32_t *neighbours, uint64_t count) {
  uint64_t mcc = node / BLOCK % mccs;
  if (method == REGISTERS) {
    add_word(mcc, node << 32 | count);
    for (uint64_t i = 0; i < count; i += 2) add_word(mcc, (uint64_t)neighbours[i] << 32 | neighbours[i + 1]);
    return;
  }
  struct message *message = next_message(core, mcc);
  message->node = node;
  message->mark = count;
  for (uint64_t i = 0; i < count; i++) message->neighbours[i] = neighbours[i];
}

// Sends ROUND_ENDS or ALL_ENDS to all near-memory cores, with all pending messages.
static void send_mark(uint64_t core, uint32_t mark) {
  for (uint64_t mcc = 0; mcc < mccs; mcc++) {
    if (method == REGISTERS) {
      add_word(mcc, (uint64_t)mark << 32);
      if (words[mcc].pending) send_words(mcc);
      continue;
    }
    *next_message(core, mcc) = (struct message){.node = mark};
    send_lines(core, mcc);
  }
}

// Sends all nodes of a host core.
static void send_nodes(uint64_t core) {
  for (uint64_t n = bounds[core]; n < bounds[core + 1]; n++) {
    uint64_t at = graph.first[n], end = graph.first[n + 1];
    // Each block needs at least one message.
    if (at == end && n % BLOCK == 0) send_node(core, n, NULL, 0);
    for (; at < end; at += NEIGHBOURS)
      send_node(core, n, graph.neighbours + at, end - at < NEIGHBOURS ? end - at : NEIGHBOURS);
  }
  send_mark(core, ROUND_ENDS);
}

// Sums the contributions of all neighbours of nodes `from` to `to - 1`, on the host, with this prefetch distance in
// neighbours; 0: no prefetches.
static void sum_neighbours(uint64_t from, uint64_t to, uint64_t distance) {
  for (uint64_t n = from; n < to; n++) {
    float sum = 0;
    for (uint64_t i = graph.first[n]; i < graph.first[n + 1]; i++) {
      if (distance) nm_prefetch_far(&contributions[graph.neighbours[i + distance]]);
      sum += *(volatile float *)&contributions[graph.neighbours[i]];
    }
    sums[n] = sum;
  }
}

// Computes the contribution of each node to each of its neighbours.
static void contribute(uint64_t from, uint64_t to) {
  float base_score = (1 - DAMPING) / graph.nodes;
  for (uint64_t n = from; n < to; n++) {
    if (method >= HINTS && n % BLOCK == 0) {
      nm_prefetch_far(&sums[n + 32 * BLOCK]);
      nm_prefetch_far(&contributions[n + 32 * BLOCK]);
    }
    contributions[n] = graph.degrees[n] ? (base_score + DAMPING * sums[n]) / graph.degrees[n] : 0;
  }
}

static int uses_near_memory(void) { return method == LINES || method == REGISTERS; }

// Runs all rounds for the nodes of one host core, whose number is the argument.
static void work(void *argument) {
  uint64_t core = (uintptr_t)argument, from = bounds[core], to = bounds[core + 1], bytes = (to - from) * sizeof *sums;
  for (uint64_t round = 0; round < rounds; round++) {
    contribute(from, to);
    if (uses_near_memory()) {
      // Writes contributions back to far memory and drops copies of sums that are about to change.
      nm_flush_all(contributions + from, bytes);
      nm_flush_all(sums + from, bytes);
    }
    nm_barrier_wait(&barrier);
    if (!uses_near_memory()) {
      sum_neighbours(from, to, method == HINTS ? prefetch_distance : 0);
    } else {
      send_nodes(core);
      uint64_t word;
      for (uint64_t mcc = 0; core == 0 && mcc < mccs; mcc++)
        require(nm_receive_word(nm_registers_of(mcc, ROUND_DONE_REGISTER), &word), "a core ends too early");
    }
    nm_barrier_wait(&barrier);
  }
  if (uses_near_memory()) send_mark(core, ALL_ENDS);
}

// Sets the scores before the first round: all equal.
static void begin(void) {
  for (uint64_t n = 0; n < graph.nodes; n++) sums[n] = 1.0f / graph.nodes, contributions[n] = 0;
  if (method == LOCAL) return;
  nm_flush_all(sums, graph.nodes * sizeof *sums);
  nm_flush_all(contributions, graph.nodes * sizeof *contributions);
}

// Starts the program on all near-memory cores.
static void start_near_memory(void) {
  memset(line_outputs, 0, sizeof line_outputs);
  memset(words, 0, sizeof words);
  uint64_t bytes = (graph.nodes + BLOCK - 1) / BLOCK * NM_LINE;
  for (uint64_t mcc = 0; mcc < mccs; mcc++) {
    nm_give(mcc, contributions, bytes);
    nm_give(mcc, sums, bytes);
    uint64_t arguments[4] = {(uintptr_t)contributions, (uintptr_t)sums, method == LINES ? cores : 0};
    require(nm_spawn(mcc, "pagerank", arguments) == 0, "a core does not start");
    // Drops the scratchpad lines of the binary from the host's caches.
    nm_flush_all(nm_line_of(mcc, 0), NM_BINARY);
  }
}

// Runs all rounds with one method; prints the time, and the traffic on the link and at far memory.
static void measure(void) {
  struct nm_thread threads[PIPES];
  begin();
  if (uses_near_memory()) start_near_memory();
  uint64_t before[NM_COUNTERS], start;
  for (int i = 0; i < NM_COUNTERS; i++) before[i] = nm_counter(i);
  start = cycles();
  for (uint64_t i = 1; i < cores; i++)
    require(nm_thread_start(&threads[i], i, work, (void *)i) == 0, "the host has not so many cores");
  work(NULL);
  for (uint64_t i = 1; i < cores; i++) nm_thread_join(&threads[i]);
  uint64_t duration = cycles() - start;
  for (int i = 0; i < NM_COUNTERS; i++) before[i] = nm_counter(i) - before[i];
  uint64_t link = before[NM_BYTES_TO_DEVICE] + before[NM_BYTES_TO_HOST];
  uint64_t dram = (before[NM_LINES_READ] + before[NM_LINES_WRITTEN]) * NM_LINE;
  print_duration(names[method], duration / rounds);
  if (method != LOCAL)
    printf("%s, link: %lu bytes\n%s, DRAM: %lu bytes\n", names[method], link / rounds, names[method], dram / rounds);
  if (method == FAR) printf("for 1000 scores: %lu lines\n", before[NM_LINES_READ] * 1000 / rounds / graph.edges);
  for (uint64_t mcc = 0; uses_near_memory() && mcc < mccs; mcc++)
    require(nm_wait(mcc, NULL) == NM_EXITED, "a core ends wrongly");
}

// Selects the prefetch distance with the shortest time for the first 1/32 of the edges.
static void find_prefetch_distance(void) {
  uint64_t best_duration = UINT64_MAX, nodes = 0;
  while (nodes < graph.nodes && graph.first[nodes] < graph.edges / 32) nodes++;
  for (unsigned i = 0; i < NM_PREFETCH_DISTANCES; i++) {
    nm_flush_all(contributions, graph.nodes * sizeof *contributions);
    uint64_t start = cycles();
    sum_neighbours(0, nodes, nm_prefetch_candidate(i));
    uint64_t duration = cycles() - start;
    if (duration < best_duration) best_duration = duration, prefetch_distance = nm_prefetch_candidate(i);
  }
}

// Returns 1 if the same rounds in double precision have these sums up to rounding: the absolute differences add up to
// less than 1e-4, where all scores add up to 1.
static int match_double_precision(const float *scores) {
  double *before = malloc(graph.nodes * sizeof *before), *now = malloc(graph.nodes * sizeof *now), error = 0;
  require(before && now, "no memory");
  for (uint64_t n = 0; n < graph.nodes; n++) now[n] = 1.0 / graph.nodes;
  for (uint64_t round = 0; round < rounds; round++) {
    for (uint64_t n = 0; n < graph.nodes; n++)
      before[n] = graph.degrees[n] ? (0.15 / graph.nodes + 0.85 * now[n]) / graph.degrees[n] : 0;
    for (uint64_t n = 0; n < graph.nodes; n++) {
      now[n] = 0;
      for (uint64_t i = graph.first[n]; i < graph.first[n + 1]; i++) now[n] += before[graph.neighbours[i]];
    }
  }
  for (uint64_t n = 0; n < graph.nodes; n++) error += now[n] > scores[n] ? now[n] - scores[n] : scores[n] - now[n];
  free(before);
  free(now);
  return error < 1e-4;
}

// Partitions the nodes into whole blocks with equal numbers of edges.
static void partition(void) {
  for (uint64_t core = 0; core <= cores; core++) {
    uint64_t n = core ? bounds[core - 1] : 0;
    while (n < graph.nodes && graph.first[n] < graph.edges * core / cores) n++;
    n = (n + BLOCK - 1) / BLOCK * BLOCK;
    bounds[core] = core == cores || n > graph.nodes ? graph.nodes : n;
  }
  barrier.cores = cores;
}

int main(int argc, char **argv) {
  uint64_t methods = argument(argc, argv, 7);
  cores = argument(argc, argv, 5);
  mccs = argument(argc, argv, 6);
  rounds = argument(argc, argv, 8);
  require(cores >= 1 && cores <= PIPES && mccs >= 1 && mccs <= MCCS && mccs <= nm_open(), "1 to 4 cores on either side");
  require(rounds > 0, "there are rounds");
  require(!(methods >> REGISTERS & 1) || cores == 1, "one core of the host has the registers");
  graph = graph_make(argument(argc, argv, 1), argument(argc, argv, 2), argument(argc, argv, 3), argument(argc, argv, 4));
  uint64_t room = (graph.nodes + NM_MAX_PREFETCHES * BLOCK) / BLOCK * NM_LINE;
  partition();
  printf("all: %lu edges\nmost: %lu edges\n", graph.edges, graph_max_degree(&graph));
  printf("of 1000 scores: %lu lines\n", graph_new_lines(&graph));
  float *expected = aligned_alloc(NM_LINE, room), *local = aligned_alloc(NM_LINE, room);
  float *far = nm_far_alloc(room), *far_sums = nm_far_alloc(room);
  require(expected && local && far && far_sums, "no memory");
  for (method = LOCAL; method <= REGISTERS; method++) {
    if (method != LOCAL && !(methods >> method & 1)) continue;
    contributions = method == LOCAL ? local : far;
    sums = method == LOCAL ? expected : far_sums;
    if (method == HINTS) find_prefetch_distance();
    measure();
    if (method == LOCAL) {
      require(match_double_precision(expected), "scores in the host's memory");
      continue;
    }
    uint64_t differs = 0;
    for (uint64_t n = 0; n < graph.nodes; n++) differs += memcmp(&sums[n], &expected[n], sizeof *sums) != 0;
    require(differs == 0, names[method]);
    nm_flush_all(sums, room);
  }
  return 0;
}
