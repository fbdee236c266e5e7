// Two cores with a pipe between them: core 0 sends the words, core 1 exits with 0, or with the kind of error that it found.

#include "nearmemory/pipe.h"

// Kinds of transfer: blocking with batches of words, polling, and by register pipes.
enum kind { BATCHES, POLLED, REGISTERS };

__attribute__((naked)) void _start(void) {
  // Arguments: core, kind, words and lines in a0 to a3. Each core has a stack of 4 KiB.
  __asm__(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n"
          "la sp, stacks\n addi t0, a0, 1\n slli t0, t0, 12\n add sp, sp, t0\n j work");
}

__attribute__((aligned(16), used)) char stacks[2 << 12];

// The pipe in cached far memory, and the registers of the register pipe.
static struct nm_pipe *const pipe = (void *)0x100000;
static struct nm_registers *const registers = (void *)0x200000;

// Word with this number; all words of a pipe differ.
static uint64_t word(uint64_t i) { return (i + 1) * 0x9e3779b97f4a7c15; }

// Sends `all` words by a pipe with this number of lines, in batches of 1 to 40 words, and then ends the pipe.
static void send(enum kind kind, uint64_t all, uint64_t lines) {
  if (kind == REGISTERS) {
    for (uint64_t i = 0; i < all; i++) nm_send_word(registers, word(i));
    nm_end_words(registers);
    return;
  }
  struct nm_sender sender = nm_sender(pipe, lines);
  uint64_t words[40];
  for (uint64_t i = 0, count; i < all; i += count) {
    count = i % 40 + 1;
    if (count > all - i) count = all - i;
    for (uint64_t j = 0; j < count; j++) words[j] = word(i + j);
    if (kind == BATCHES) {
      nm_send(&sender, words, count);
    } else {
      // Regenerate the words that were not accepted.
      count = nm_try_send(&sender, words, count);
    }
  }
  nm_end(&sender);
}

// Receives all words. Returns 0, or 1 for a wrong word, 2 for a word after the end, and 3 for a wrong number of words.
static uint64_t receive(enum kind kind, uint64_t all, uint64_t lines) {
  struct nm_receiver receiver = nm_receiver(pipe, lines);
  uint64_t words[NM_WORDS], received = 0;
  int count;
  while (1) {
    if (kind == REGISTERS) {
      count = nm_receive_word(registers, words);
    } else if (kind == BATCHES) {
      count = nm_receive(&receiver, words);
    } else {
      count = nm_try_receive(&receiver, words);
      if (count == 0) continue;
    }
    if (count <= 0) break;
    for (int j = 0; j < count; j++, received++)
      if (words[j] != word(received)) return 1;
  }
  // The end of the stream is permanent.
  if (kind == REGISTERS ? nm_receive_word(registers, words) : nm_receive(&receiver, words)) return 2;
  return received == all ? 0 : 3;
}

// Part of one core; the other arguments are as in `send`. The exit code is that of `receive`, or 0 for the sender.
void work(uint64_t core, enum kind kind, uint64_t all, uint64_t lines) {
  uint64_t wrong = 0;
  if (core == 0)
    send(kind, all, lines);
  else
    wrong = receive(kind, all, lines);
  register uint64_t a0 __asm__("a0") = wrong, a7 __asm__("a7") = 93;
  __asm__ volatile("ecall" ::"r"(a0), "r"(a7));
  __builtin_unreachable();
}
