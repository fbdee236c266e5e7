// Generator of graphs of five shapes as adjacency lists. Shape and sizes determine the graph.
//
// Two are random graphs with undirected edges: recursive matrices (Kronecker) with randomly permuted node numbers, and
// uniform ones. The others have the degree distribution of a social network, of web pages with clustered neighbours,
// and of roads, and the same share of neighbours whose score is in the same line as the previous neighbour's.

#ifndef NEARMEMORY_GRAPH_H
#define NEARMEMORY_GRAPH_H

#include "nearmemory/programs/bench.h"

// Shapes of graphs, by the number that programs take as their argument, from 0.
enum shape { KRONECKER, SOCIAL, CLUSTERED, ROADS, UNIFORM };

// A graph as adjacency lists. `degrees[n]` is the number of lists that contain node n.
struct graph {
  // Number of nodes, and of entries of all lists: an undirected edge has two.
  uint64_t nodes, edges;
  // Neighbours of node n are neighbours[first[n]] to neighbours[first[n + 1] - 1].
  uint32_t *first, *neighbours, *degrees;
};

// State of the random generator, the same at each start: graphs are reproducible.
static uint64_t graph_random = 0x9e3779b97f4a7c15;
static inline uint64_t random_word(void) { return hash(graph_random += 0x9e3779b97f4a7c15); }
// Random number below a 32-bit limit.
static inline uint32_t random_below(uint64_t limit) { return (random_word() >> 32) * limit >> 32; }

// Draws an edge of a recursive matrix of 2^levels nodes, with the probabilities of Graph 500: 57, 19, 19 and 5 per cent
// for the quadrants (0, 0), (0, 1), (1, 0) and (1, 1). The limits below are their sums, in units of 1/65536.
static void kronecker_edge(int levels, uint32_t *from, uint32_t *to) {
  uint32_t a = 0, b = 0;
  for (int i = 0; i < levels; i += 4) {
    uint64_t bits = random_word();
    for (int j = i; j < i + 4 && j < levels; j++, bits >>= 16) {
      uint32_t digit = bits & 65535;
      a = a << 1 | (digit >= 49807);
      b = b << 1 | (digit >= 62259 || (digit >= 37356 && digit < 49807));
    }
  }
  *from = a;
  *to = b;
}

// Builds adjacency lists from undirected edges.
static void graph_of_edges(struct graph *graph, const uint32_t (*ends)[2], uint64_t count) {
  for (uint64_t i = 0; i < count; i++) graph->first[ends[i][0] + 1]++, graph->first[ends[i][1] + 1]++;
  for (uint64_t n = 0; n < graph->nodes; n++) graph->first[n + 1] += graph->first[n];
  uint32_t *next = malloc(graph->nodes * sizeof *next);
  require(next != NULL, "no memory for a graph");
  memcpy(next, graph->first, graph->nodes * sizeof *next);
  for (uint64_t i = 0; i < count; i++) {
    graph->neighbours[next[ends[i][0]]++] = ends[i][1];
    graph->neighbours[next[ends[i][1]]++] = ends[i][0];
  }
  free(next);
}

// Builds a random graph with undirected edges; each is in the lists of both of its nodes.
static void make_undirected(struct graph *graph, enum shape shape) {
  uint64_t count = graph->edges / 2;
  uint32_t(*ends)[2] = malloc(count * sizeof *ends), *permutation = malloc(graph->nodes * sizeof *permutation);
  require(ends && permutation, "no memory for a graph");
  int levels = 63 - __builtin_clzll(graph->nodes);
  for (uint64_t n = 0; n < graph->nodes; n++) {
    uint64_t other = random_below(n + 1);
    permutation[n] = permutation[other];
    permutation[other] = n;
  }
  for (uint64_t i = 0; i < count; i++) {
    uint32_t from = random_below(graph->nodes), to = random_below(graph->nodes);
    if (shape == KRONECKER) kronecker_edge(levels, &from, &to);
    ends[i][0] = permutation[from];
    ends[i][1] = permutation[to];
  }
  graph_of_edges(graph, (const uint32_t(*)[2])ends, count);
  free(ends);
  free(permutation);
}

// Draws the degree of a node: from a power law with this mean and maximum, or of a road network, mostly 2 or 3.
static uint32_t degree_of(enum shape shape, uint32_t mean, uint32_t max_degree) {
  if (shape == ROADS) {
    static const uint8_t degrees[16] = {1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4};
    return random_below(4096) == 0 ? 9 : degrees[random_below(16)];
  }
  // Power law by inversion: degree = minimum / sqrt(uniform share); the minimum is then half of the mean.
  uint32_t share = random_below(1 << 30) + 1;
  double degree = mean / 2.0 / __builtin_sqrt(share / (double)(1 << 30));
  return degree < max_degree ? (uint32_t)degree : max_degree;
}

// Builds adjacency lists in which `in_order` per 1,000 neighbours are the successor of the previous neighbour.
static void make_directed(struct graph *graph, enum shape shape, uint32_t max_degree, uint32_t in_order) {
  uint64_t count = 0, mean = graph->edges / graph->nodes;
  // One node has the maximum degree.
  uint32_t hub = shape == ROADS ? UINT32_MAX : random_below(graph->nodes), neighbour = 0;
  for (uint64_t n = 0; n < graph->nodes; n++) {
    uint64_t degree = n == hub ? max_degree : degree_of(shape, mean, max_degree);
    if (degree > graph->edges - count) degree = graph->edges - count;
    for (uint64_t i = 0; i < degree; i++) {
      int is_next = random_below(1000) < in_order;
      neighbour = is_next ? (neighbour + 1) % graph->nodes : random_below(graph->nodes);
      graph->neighbours[count++] = neighbour;
    }
    graph->first[n + 1] = count;
  }
  graph->edges = count;
}

// Returns a graph with at most `edges` edges. The maximum degree applies to shapes that are defined by degrees.
static struct graph graph_make(enum shape shape, uint64_t nodes, uint64_t edges, uint64_t max_degree) {
  struct graph graph = {nodes, edges / 2 * 2};
  graph.first = calloc(nodes + 1, sizeof *graph.first);
  // Prefetches look at entries beyond the last one.
  graph.neighbours = calloc(graph.edges + NM_MAX_PREFETCHES, sizeof *graph.neighbours);
  graph.degrees = calloc(nodes, sizeof *graph.degrees);
  require(graph.first && graph.neighbours && graph.degrees, "no memory for a graph");
  switch (shape) {
  case KRONECKER:
  case UNIFORM: make_undirected(&graph, shape); break;
  case SOCIAL: make_directed(&graph, shape, max_degree, 75); break;
  case CLUSTERED: make_directed(&graph, shape, max_degree, 903); break;
  case ROADS: make_directed(&graph, shape, max_degree, 157);
  }
  for (uint64_t i = 0; i < graph.edges; i++) graph.degrees[graph.neighbours[i]]++;
  return graph;
}

// Returns the number of neighbours, per 1,000, whose score is in another line than the previous neighbour's.
static inline uint64_t graph_new_lines(const struct graph *graph) {
  uint64_t lines = graph->edges > 0;
  for (uint64_t i = 1; i < graph->edges; i++)
    lines += graph->neighbours[i] / (NM_LINE / 4) != graph->neighbours[i - 1] / (NM_LINE / 4);
  return graph->edges ? lines * 1000 / graph->edges : 0;
}

// Returns the length of the longest adjacency list.
static inline uint64_t graph_max_degree(const struct graph *graph) {
  uint64_t max_degree = 0;
  for (uint64_t n = 0; n < graph->nodes; n++)
    if (graph->first[n + 1] - graph->first[n] > max_degree) max_degree = graph->first[n + 1] - graph->first[n];
  return max_degree;
}

#endif
