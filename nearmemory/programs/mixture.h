// A Dhrystone-like instruction mix, rewritten because the original's licence is unclear: records that are copied and
// linked, strings that are copied and compared, calls with few arguments, branches on enumerated values, and arrays of
// one and two indices. It needs no C library, so that every core runs it.

#ifndef NEARMEMORY_MIXTURE_H
#define NEARMEMORY_MIXTURE_H

// Prevents inlining, because calls are part of the mix.
#define MIXTURE_DISTINCT __attribute__((noipa))

// Enumerated values that branches depend on.
enum choice { FIRST, SECOND, THIRD };

// A record of the linked ring, which rounds copy and change.
struct record {
  struct record *next;
  enum choice choice;
  int number;
  char text[32];
};

static struct record ring[2];
static int sums[64], table[32][32];
static const char *const texts[] = {"one text of some thirty bytes..", "one text of other thirty bytes."};

MIXTURE_DISTINCT static int compare(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a - *b;
}

MIXTURE_DISTINCT static void copy(char *to, const char *from) {
  while ((*to++ = *from++)) {}
}

MIXTURE_DISTINCT static enum choice choose(enum choice before, int number) {
  switch (before) {
    case FIRST: return number > 50 ? THIRD : SECOND;
    case SECOND: return number & 1 ? FIRST : THIRD;
    default: return FIRST;
  }
}

MIXTURE_DISTINCT static void link_next(struct record *record, int number) {
  struct record *next = record->next;
  *next = *record;
  next->next = record;
  next->number = number + record->number % 7;
  next->choice = choose(record->choice, next->number);
}

MIXTURE_DISTINCT static void tabulate(int row, int number) {
  sums[row] = number;
  sums[row + 1] = sums[row] * 3 - number;
  for (int column = row; column <= row + 1; column++) table[row][column & 31] += sums[column] / (number | 1);
}

// Runs the given number of rounds and computes a checksum; returns 0 if strings and branches have the expected results.
static long mixture(long rounds, unsigned long *sum) {
  ring[0] = (struct record){&ring[1], FIRST, 0, ""};
  ring[1] = (struct record){&ring[0], SECOND, 0, ""};
  for (int i = 0; i < 1024; i++) sums[i & 63] = table[i >> 5][i & 31] = 0;
  struct record *record = ring;
  long same = 0, chosen = 0;
  for (long round = 0; round < rounds; round++) {
    copy(record->text, texts[round & 1]);
    link_next(record, round % 100);
    record = record->next;
    same += compare(record->text, texts[0]) == 0;
    chosen += record->choice == FIRST;
    tabulate(round & 31, round);
  }
  *sum = record->number;
  for (int i = 0; i < 1024; i++) *sum = *sum * 31 + sums[i & 63] + table[i >> 5][i & 31];
  return same != (rounds + 1) / 2 || (rounds > 2 && chosen == 0);
}

#endif
