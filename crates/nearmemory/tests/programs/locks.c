// Uses locks of scratchpad lines in the modes of the enum below: adds up numbers of the host, releases held write-backs
// late, or never ends. Argument: the mode.
//
// Line NUMBERS is locked for write-backs: word 0 is the number of numbers, which follow, and word TAG is the number of
// the line, from 1, which the host writes last. Line SUM is locked for reads and returns the sum and the number of
// lines. Register pipe 0 tells the host that the locks are set; register pipe 1 ends LATE.

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1))

// Lines of the scratchpad: numbers, their sum, a line that is locked and unlocked, and one that is released late.
enum { NUMBERS, SUM, UNUSED, LATE_LINE };
// Index of a line's last word, which the host writes last.
#define TAG 15

// Modes, the same in locks-host.c. COMPUTE, LOCK and WAIT never end: they compute, lock and unlock, or wait for a word
// that is never sent.
enum { ADD_UP, COMPUTE, LOCK, WAIT, LATE };

// Returns the number of received lines, without the empty one that ends the stream.
static int add_up(void) {
  uint64_t sum = 0, lines = 0, count = 1;
  while (count > 0) {
    uint64_t notice = nm_notice();
    if (notice == NM_NO_NOTICE) {
      nm_relax();
      continue;
    }
    volatile uint64_t *line = nm_words(nm_notice_line(notice));
    if (nm_notice_kind(notice) == NM_READ) {
      line[0] = sum;
      line[1] = lines;
    } else if (line[TAG] == lines + 1) {
      count = line[0];
      for (uint64_t i = 1; i <= count; i++) sum += line[i];
      if (count) lines++;
    }
    nm_release(nm_notice_line(notice), nm_notice_kind(notice));
  }
  return (int)lines;
}

// Releases write-backs late, one by one, and returns the number of correct words.
static int late(void) {
  uint64_t word, right = 0;
  while (nm_try_receive_word(nm_register_pipe(1), &word) == 0) {
    uint64_t notice = nm_notice(), since = nm_now();
    while (nm_now() < since + 1000) nm_relax();
    if (notice != NM_NO_NOTICE) nm_release(nm_notice_line(notice), nm_notice_kind(notice));
  }
  for (uint64_t i = 0; i < TAG; i++) right += nm_words(LATE_LINE)[i] == i + 1;
  return (int)right;
}

int channel(uint64_t mode, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  nm_lock(NUMBERS, NM_WRITE_BACK);
  nm_lock(SUM, NM_READ);
  nm_lock(LATE_LINE, NM_WRITE_BACK);
  nm_send_word(nm_register_pipe(0), 1);
  volatile uint64_t steps = 0;
  uint64_t word = 0;
  switch (mode) {
  case ADD_UP: return add_up();
  case COMPUTE:
    for (;;) steps++;
  case LOCK:
    for (;;) nm_lock(UNUSED, NM_READ), nm_unlock(UNUSED, NM_READ);
  case LATE: return late();
  default: return nm_receive_word(nm_register_pipe(1), &word);
  }
}
