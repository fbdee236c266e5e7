// Adds up the numbers that a host writes back to a line, and returns the sum in another line. Other modes release the
// pieces of a line late, or never end: computing, locking and unlocking, or waiting for a word that is never sent.

#include "nearmemory/channel.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1))

// Index of a line's last word, which the host writes last.
#define TAG 15

// Line 0 receives numbers, line 1 returns their sum and the number of lines. Returns the number of lines, without the
// empty one that ends the stream. Each number of words is in word 0.
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
  for (uint64_t i = 0; i < TAG; i++) right += nm_words(3)[i] == i + 1;
  return (int)right;
}

// Modes: 0 adds up, 4 releases late; 1, 2 and 3 never end: they compute, lock and unlock, or wait for a word.
int channel(uint64_t forever, uint64_t b, uint64_t c, uint64_t d) {
  nm_lock(0, NM_WRITE_BACK);
  nm_lock(1, NM_READ);
  nm_lock(3, NM_WRITE_BACK);
  nm_send_word(nm_register_pipe(0), 1);
  volatile uint64_t steps = 0;
  uint64_t word = 0;
  switch (forever) {
  case 0: return add_up();
  case 1:
    for (;;) steps++;
  case 2:
    for (;;) nm_lock(2, NM_READ), nm_unlock(2, NM_READ);
  case 4: return late();
  default: return nm_receive_word(nm_register_pipe(1), &word);
  }
}
