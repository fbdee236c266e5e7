// Host of relay.c: sends words to core 0, which forwards them to core 1, and checks that they return from there.
// Arguments: mode, as numbered by the enum below; number of words; lines per pipe. Exit codes: 0 all words have
// returned, 1 a word is wrong or missing, 2 arguments, 3 a core has ended, 4 no end of the stream.

#include "nearmemory/host.h"
#include "nearmemory/stream.h"

// Word `i` of the stream; no two are equal.
static uint64_t word(uint64_t i) { return (i + 1) * 0x9e3779b97f4a7c15; }

// Modes, the same in relay.c.
enum { LINES, REGISTERS, BATCHES, STREAM, FAR };

// Maximum number of words sent at once: part of a line, several lines, or the capacity of all pipes.
#define LINE_WORDS 40
#define BATCH_WORDS 200
#define STREAM_WORDS 900

// Mode, number of words to send, and number of words received so far.
static uint64_t kind, all, received;

// Checks that these words are the next ones. A negative `count`, which reports the end of the stream, is ignored.
static void arrive(const volatile uint64_t *words, int count) {
  for (int i = 0; i < count; i++, received++)
    if (words[i] != word(received)) {
      printf("word %lu is %#lx\n", (unsigned long)received, (unsigned long)words[i]);
      exit(1);
    }
}

// Generates the next words and returns their number, which varies with `sent`.
static uint64_t make_words(uint64_t *words, uint64_t sent, uint64_t max_count) {
  uint64_t count = sent % max_count + 1;
  if (count > all - sent) count = all - sent;
  for (uint64_t i = 0; i < count; i++) words[i] = word(sent + i);
  return count;
}

// Sends all words and receives them, without blocking, so that neither direction fills up.
static void by_pipes(struct nm_sender *out, struct nm_receiver *in) {
  struct nm_registers *to = nm_registers_of(0, 0), *from = nm_registers_of(1, 3);
  uint64_t sent = 0, words[BATCH_WORDS];
  int ended = 0, came = 0;
  while (came >= 0) {
    if (sent < all && kind == REGISTERS) {
      sent += nm_try_send_word(to, word(sent));
    } else if (sent < all) {
      // Words that were not accepted are generated again.
      uint64_t count = make_words(words, sent, kind == LINES ? LINE_WORDS : BATCH_WORDS);
      sent += kind == LINES ? nm_try_send(out, words, count) : nm_send_some(out, words, count);
    } else if (!ended && (kind == REGISTERS || nm_has_room(out))) {
      if (kind == REGISTERS)
        nm_end_words(to);
      else
        nm_end(out);
      ended = 1;
    }
    came = kind == REGISTERS ? nm_try_receive_word(from, words)
           : kind == BATCHES ? nm_receive_some(in, words, NM_WORDS + sent % (BATCH_WORDS - NM_WORDS + 1))
                             : nm_try_receive(in, words);
    arrive(words, came);
  }
}

// Sends some words and waits until all of them have returned, in lines as full as the core's.
static void by_stream(struct nm_sender *out) {
  static uint64_t words[STREAM_WORDS];
  uint64_t ready = 0;
  nm_receive_word(nm_registers_of(1, 3), &ready);
  struct nm_stream_in in = nm_stream_from(1, 0);
  for (uint64_t sent = 0, count; sent < all; sent += count) {
    count = make_words(words, sent, STREAM_WORDS);
    if (nm_send_to(0, out, words, count)) exit(3);
    while (received < sent + count) {
      volatile uint64_t *line = nm_stream_take(&in);
      arrive(line, line[15]);
    }
  }
  nm_end(out);
  if (nm_stream_take(&in)[15] != 0) exit(4);
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  uint64_t lines = strtoul(argv[3], 0, 0);
  kind = strtoul(argv[1], 0, 0), all = strtoul(argv[2], 0, 0);
  volatile char *far = nm_far_alloc(lines * NM_LINE);
  for (uint64_t core = 0; core < 2; core++) {
    nm_give(core, far, lines * NM_LINE);
    int error = nm_spawn(core, "relay", (uint64_t[4]){core, kind, lines, (uintptr_t)far});
    if (error) {
      printf("core %d: error %d\n", (int)core, error);
      return 1;
    }
  }
  struct nm_sender out = nm_sender(nm_pipe_of(0, 0), lines);
  struct nm_receiver in = nm_receiver(nm_pipe_of(1, 0), lines);
  if (kind == STREAM)
    by_stream(&out);
  else
    by_pipes(&out, &in);
  int status[2];
  for (int core = 0; core < 2; core++) nm_wait(core, &status[core]);
  printf("%lu words, with %d and %d\n", (unsigned long)received, status[0], status[1]);
  return received == all ? 0 : 1;
}
