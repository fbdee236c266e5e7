// Graphs of five shapes as lists of each node's neighbours, which follow from the shape and sizes alone.
//
// Two are random graphs whose edges go both ways: by recursive matrices (Kronecker), whose nodes are then numbered anew at random,
// and uniform ones. The others are made to have the degrees of a social network, of pages of the web, whose neighbours are
// clustered, and of roads; and as often a neighbour whose score is in the same line as that of the one before.

#ifndef NEARMEMORY_GRAPH_H
#define NEARMEMORY_GRAPH_H

#include "nearmemory/programs/bench.h"

enum shape { KRONECKER, SOCIAL, CLUSTERED, ROADS, UNIFORM };

struct graph {
  uint64_t nodes, edges;
  // Neighbours of node n are edges[first[n]] to edges[first[n + 1] - 1].
  uint32_t *first, *neighbours, *degrees;
};

static uint64_t graph_random = 0x9e3779b97f4a7c15;
static inline uint64_t draw(void) { return mixed(graph_random += 0x9e3779b97f4a7c15); }
// Below a limit of 32 bits.
static inline uint32_t draw_below(uint64_t limit) { return (draw() >> 32) * limit >> 32; }

// The two ends of an edge of a recursive matrix, with the shares of Graph 500: 57, 19, 19 and 5 of a hundred.
static void kronecker_edge(int levels, uint32_t *from, uint32_t *to) {
  uint32_t a = 0, b = 0;
  for (int i = 0; i < levels; i += 4) {
    uint64_t bits = draw();
    for (int j = i; j < i + 4 && j < levels; j++, bits >>= 16) {
      uint32_t part = bits & 65535;
      a = a << 1 | (part >= 49807);
      b = b << 1 | (part >= 62259 || (part >= 37356 && part < 49807));
    }
  }
  *from = a;
  *to = b;
}

// Lists from the ends of edges, each of which is a neighbour of the other.
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

static void symmetric(struct graph *graph, enum shape shape) {
  uint64_t count = graph->edges / 2;
  uint32_t(*ends)[2] = malloc(count * sizeof *ends), *names = malloc(graph->nodes * sizeof *names);
  require(ends && names, "no memory for a graph");
  int levels = 63 - __builtin_clzll(graph->nodes);
  for (uint64_t n = 0; n < graph->nodes; n++) {
    uint64_t other = draw_below(n + 1);
    names[n] = names[other];
    names[other] = n;
  }
  for (uint64_t i = 0; i < count; i++) {
    uint32_t from = draw_below(graph->nodes), to = draw_below(graph->nodes);
    if (shape == KRONECKER) kronecker_edge(levels, &from, &to);
    ends[i][0] = names[from];
    ends[i][1] = names[to];
  }
  graph_of_edges(graph, (const uint32_t(*)[2])ends, count);
  free(ends);
  free(names);
}

// Degrees by shape, of so many in all: those of a power law up to a limit, or those of roads, of which most are 2 or 3.
static uint32_t degree_of(enum shape shape, uint32_t mean, uint32_t most) {
  if (shape == ROADS) {
    static const uint8_t degrees[16] = {1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4};
    return draw_below(4096) == 0 ? 9 : degrees[draw_below(16)];
  }
  // The least degree by one over the root of a random share: then half of the mean is the least.
  uint32_t share = draw_below(1 << 30) + 1;
  double degree = mean / 2.0 / __builtin_sqrt(share / (double)(1 << 30));
  return degree < most ? (uint32_t)degree : most;
}

// Lists of neighbours, of which each is in the order behind the one before as often as so many of 1000.
static void listed(struct graph *graph, enum shape shape, uint32_t most, uint32_t in_order) {
  uint64_t made = 0, mean = graph->edges / graph->nodes;
  // One node has as many as there may be.
  uint32_t hub = shape == ROADS ? UINT32_MAX : draw_below(graph->nodes), last = 0;
  for (uint64_t n = 0; n < graph->nodes; n++) {
    uint64_t degree = n == hub ? most : degree_of(shape, mean, most);
    if (degree > graph->edges - made) degree = graph->edges - made;
    for (uint64_t i = 0; i < degree; i++) {
      int follows = draw_below(1000) < in_order;
      last = follows ? (last + 1) % graph->nodes : draw_below(graph->nodes);
      graph->neighbours[made++] = last;
    }
    graph->first[n + 1] = made;
  }
  graph->edges = made;
}

// A graph with so many nodes and at most so many edges, of which a node has at most so many where its shape is made by degrees.
static struct graph graph_make(enum shape shape, uint64_t nodes, uint64_t edges, uint64_t most) {
  struct graph graph = {nodes, edges / 2 * 2};
  graph.first = calloc(nodes + 1, sizeof *graph.first);
  graph.neighbours = malloc(graph.edges * sizeof *graph.neighbours);
  graph.degrees = calloc(nodes, sizeof *graph.degrees);
  require(graph.first && graph.neighbours && graph.degrees, "no memory for a graph");
  switch (shape) {
  case KRONECKER:
  case UNIFORM: symmetric(&graph, shape); break;
  case SOCIAL: listed(&graph, shape, most, 75); break;
  case CLUSTERED: listed(&graph, shape, most, 903); break;
  case ROADS: listed(&graph, shape, most, 157);
  }
  for (uint64_t i = 0; i < graph.edges; i++) graph.degrees[graph.neighbours[i]]++;
  return graph;
}

// How many of 1000 scores are not in the line of the one before.
static inline uint64_t graph_lines(const struct graph *graph) {
  uint64_t lines = graph->edges > 0;
  for (uint64_t i = 1; i < graph->edges; i++)
    lines += graph->neighbours[i] / (NM_LINE / 4) != graph->neighbours[i - 1] / (NM_LINE / 4);
  return graph->edges ? lines * 1000 / graph->edges : 0;
}

static inline uint64_t graph_most(const struct graph *graph) {
  uint64_t most = 0;
  for (uint64_t n = 0; n < graph->nodes; n++)
    if (graph->first[n + 1] - graph->first[n] > most) most = graph->first[n + 1] - graph->first[n];
  return most;
}

#endif
