// Two cores with a pipe between them: core 0 sends the words, core 1 exits with 0, or with the kind of error that it found.

#include "nearmemory/pipe.h"

enum kind { BATCHES, POLLED, REGISTERS };

__attribute__((naked)) void _start(void) {
  // Arguments: core, kind, words and lines in a0 to a3. Each core has a stack of 4 KiB.
  __asm__(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n"
          "la sp, stacks\n addi t0, a0, 1\n slli t0, t0, 12\n add sp, sp, t0\n j work");
}

__attribute__((aligned(16), used)) char stacks[2 << 12];

static struct nm_pipe *const pipe = (void *)0x100000;
static struct nm_registers *const registers = (void *)0x200000;

static uint64_t word(uint64_t i) { return (i + 1) * 0x9e3779b97f4a7c15; }

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
