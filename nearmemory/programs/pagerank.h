// What the two sides of PageRank send each other.
//
// Nodes are dealt to cores beside far memory in blocks whose scores are a line, so that each line has one writer. A message has a
// node and some of its neighbours, whose contributions the core adds up; a node without room for all of them has several, one
// behind the other.

#ifndef NEARMEMORY_PAGERANK_H
#define NEARMEMORY_PAGERANK_H

#include <stdint.h>

// Nodes of a block, and neighbours of a message, both as many as a line has numbers of 32 bits, less those of its head.
#define BLOCK 32
#define NEIGHBOURS 30

// Each core of the host has a pipe of lines to each core beside far memory: so many lines, those behind them for the scores of
// blocks on their way to far memory, and two registers of which the first one tells how many lines were taken.
#define PIPE_LINES 32
#define SUM_LINES 4
#define PIPES 4
#define FIRST_LINE(pipe) ((pipe) * (PIPE_LINES + SUM_LINES))
#define TAKEN(pipe) (2 * (pipe))
// The other registers carry words to the core, as many of its pipes as come from one core of the host.
#define WORDS_FIRST PIPES
#define WORDS 11
// And one tells that a round is over.
#define DONE 15

// A message fills a whole line. Its mark is written last, and says with its number since the beginning, from one on, how many
// neighbours it has, so that a line that was evicted half written is none.
struct message {
  uint32_t node, neighbours[NEIGHBOURS], mark;
};
// What is no node: the end of a round, and of the program.
#define ROUND_ENDS UINT32_MAX
#define ALL_ENDS (UINT32_MAX - 1)
#define MARK(number, count) ((uint32_t)(number) << 8 | (uint32_t)(count))

// By registers a message is a word with the node and how many neighbours it has, then words with two of them each.

#endif
