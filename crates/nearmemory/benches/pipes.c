// Two threads with one pipe in each direction, from the near-memory library; pipes.rs measures them.

#include "nearmemory/pipe.h"

#include <stdlib.h>
#include <string.h>

// Number of lines of each pipe.
#define LINES 16

// Pipes for the words and for their way back.
struct pair {
  struct nm_pipe *there, *back;
};

// Allocates an empty pipe.
static struct nm_pipe *pipe_new(void) {
  size_t bytes = (LINES + 1) * sizeof(struct nm_line);
  struct nm_pipe *pipe = aligned_alloc(NM_LINE, bytes);
  if (!pipe) abort();
  memset(pipe, 0, bytes);
  return pipe;
}

// Allocates both pipes; `pair_free` frees them.
struct pair *pair_new(void) {
  struct pair *pair = malloc(sizeof *pair);
  if (!pair) abort();
  *pair = (struct pair){pipe_new(), pipe_new()};
  return pair;
}

void pair_free(struct pair *pair) {
  free(pair->there);
  free(pair->back);
  free(pair);
}

// Receives `count` words and returns their sum.
static uint64_t take(struct nm_receiver *in, uint64_t count) {
  uint64_t words[NM_WORDS], sum = 0;
  while (count > 0) {
    int received = nm_receive(in, words);
    for (int i = 0; i < received; i++) sum += words[i];
    count -= received;
  }
  return sum;
}

// Sends `batch` words and receives as many, `times` times. Returns the sum of the received words.
uint64_t pair_ask(struct pair *pair, uint64_t times, uint64_t batch) {
  struct nm_sender out = nm_sender(pair->there, LINES);
  struct nm_receiver in = nm_receiver(pair->back, LINES);
  uint64_t words[64], sum = 0;
  for (uint64_t i = 0; i < times; i++) {
    for (uint64_t j = 0; j < batch; j++) words[j] = i * batch + j;
    nm_send(&out, words, batch);
    sum += take(&in, batch);
  }
  return sum;
}

// Sends all received words back, line by line.
void pair_answer(struct pair *pair, uint64_t words) {
  struct nm_receiver in = nm_receiver(pair->there, LINES);
  struct nm_sender out = nm_sender(pair->back, LINES);
  uint64_t line[NM_WORDS];
  for (uint64_t done = 0; done < words;) {
    int received = nm_receive(&in, line);
    nm_send(&out, line, received);
    done += received;
  }
}
