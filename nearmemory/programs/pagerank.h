// Message formats of PageRank between host and near-memory cores.
//
// Nodes are assigned to near-memory cores in blocks whose scores fill a line, so that each line has one writer. A message has a
// node and some of its neighbours, whose contributions the core sums; a node with more neighbours has several consecutive
// messages.

#ifndef NEARMEMORY_PAGERANK_H
#define NEARMEMORY_PAGERANK_H

#include <stdint.h>

// Nodes of a block, and neighbours of a message: the 32-bit numbers that fit into a line, minus those of the header.
#define BLOCK 32
#define NEIGHBOURS 30

// Each core of the host has a line pipe to each near-memory core: its lines, then lines for the scores of
// blocks on their way to far memory, and two registers, of which the first holds the number of taken lines.
#define PIPE_LINES 32
#define SUM_LINES 4
#define PIPES 4
#define FIRST_LINE(pipe) ((pipe) * (PIPE_LINES + SUM_LINES))
#define TAKEN_REGISTER(pipe) (2 * (pipe))
// The other registers deliver words to the core; each host core has as many register pipes.
#define FIRST_WORD_REGISTER PIPES
#define WORD_REGISTERS 11
// Register that reports the end of a round.
#define ROUND_DONE_REGISTER 15

// A message fills a line. Its mark has the sequence number, from 1, and the number of neighbours. The mark is written last,
// so that a partially written line is not a valid message.
struct message {
  uint32_t node, neighbours[NEIGHBOURS], mark;
};
// Special values of `node`: end of a round, and end of the program.
#define ROUND_ENDS UINT32_MAX
#define ALL_ENDS (UINT32_MAX - 1)
// Mark of a message: sequence number, of which 24 bits are kept, and number of neighbours.
#define MARK(number, count) ((uint32_t)(number) << 8 | (uint32_t)(count))

// In register pipes a message is a word with the node and the number of neighbours, then words with two neighbours each.

#endif
