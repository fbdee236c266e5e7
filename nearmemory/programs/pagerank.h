// Message formats of PageRank between host and near-memory cores.
//
// Nodes are assigned to near-memory cores in blocks whose scores fill a line, so that each line has one writer. A
// message has a node and some of its neighbours, whose contributions the core sums; a node with more neighbours has
// several consecutive messages.

#ifndef NEARMEMORY_PAGERANK_H
#define NEARMEMORY_PAGERANK_H

#include <stdint.h>

// Nodes of a block: the 32-bit scores that fill a line. Neighbours of a message: the 32-bit numbers that fit into a
// line, without `node` and `mark`.
#define BLOCK 32
#define NEIGHBOURS 30

// Each of at most PIPES cores of the host has a line pipe to each near-memory core. It consists of PIPE_LINES
// scratchpad lines for messages, SUM_LINES lines for sums of blocks that are being stored to far memory, and two shared
// registers, of which the first has the number of message lines that the near-memory core has freed so far.
#define PIPE_LINES 32
#define SUM_LINES 4
#define PIPES 4
#define FIRST_LINE(pipe) ((pipe) * (PIPE_LINES + SUM_LINES))
#define TAKEN_REGISTER(pipe) (2 * (pipe))
// Register pipes, by their numbers, that deliver messages instead, from one core of the host. A register pipe has two
// shared registers, so the first ones overlap TAKEN_REGISTER and are not used.
#define FIRST_WORD_REGISTER PIPES
#define WORD_REGISTERS 11
// Register pipe by which the near-memory core reports the end of a round, as the word 1.
#define ROUND_DONE_REGISTER 15

// A message fills a line. Its mark has the sequence number, from 1, and the number of neighbours. The mark is written
// last, so that a partially written line is not a valid message.
struct message {
  uint32_t node, neighbours[NEIGHBOURS], mark;
};
// Special values of `node`: end of a round, and end of the program.
#define ROUND_ENDS UINT32_MAX
#define ALL_ENDS (UINT32_MAX - 1)
// Mark of a message: sequence number, of which 24 bits are kept, and number of neighbours.
#define MARK(number, count) ((uint32_t)(number) << 8 | (uint32_t)(count))

// In register pipes, a message is one word with the node in bits 63 to 32 and the number of neighbours in bits 7 to 0,
// and then words with two neighbours each, the first one in the upper half. The words go to the register pipes in turn.

#endif
