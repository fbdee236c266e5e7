// Programs whose speed is measured: SORT sorts integers within any first cache; otherwise it is a mixture like that of
// Dhrystone, written anew because the licence of the original is not told: records that are copied and linked, strings that
// are copied and compared, calls with few arguments, choices by enumerated values, and arrays of one and two indices.
// Both end with 0 if they have computed what they have to.

#define DISTINCT __attribute__((noipa))

static void end(long code) {
  register long a0 asm("a0") = code, a7 asm("a7") = 93;
  asm volatile("ecall" ::"r"(a0), "r"(a7));
  __builtin_unreachable();
}

#ifdef SORT

#define NUMBERS 2048

static int numbers[NUMBERS];

DISTINCT static void sort(int *a, int n) {
  for (int root = n / 2, last = n; last > 1;) {
    int moved;
    if (root > 0) moved = a[--root];
    else moved = a[--last], a[last] = a[0];
    int hole = root;
    for (int child; (child = 2 * hole + 1) < last; hole = child) {
      if (child + 1 < last && a[child + 1] > a[child]) child++;
      if (a[child] <= moved) break;
      a[hole] = a[child];
    }
    a[hole] = moved;
  }
}

static long run(void) {
  unsigned long seed = 1;
  long wrong = 0;
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < NUMBERS; i++) numbers[i] = (int)((seed = seed * 6364136223846793005ul + 1442695040888963407ul) >> 32);
    sort(numbers, NUMBERS);
    for (int i = 1; i < NUMBERS; i++) wrong += numbers[i - 1] > numbers[i];
  }
  return wrong != 0;
}

#else

enum choice { FIRST, SECOND, THIRD };

struct record {
  struct record *next;
  enum choice choice;
  int number;
  char text[32];
};

static struct record ring[2];
static int sums[64], table[32][32];
static const char *const texts[] = {"one text of some thirty bytes..", "one text of other thirty bytes."};

DISTINCT static int compare(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a - *b;
}

DISTINCT static void copy(char *to, const char *from) {
  while ((*to++ = *from++)) {}
}

DISTINCT static enum choice choose(enum choice before, int number) {
  switch (before) {
    case FIRST: return number > 50 ? THIRD : SECOND;
    case SECOND: return number & 1 ? FIRST : THIRD;
    default: return FIRST;
  }
}

DISTINCT static void link(struct record *record, int number) {
  struct record *next = record->next;
  *next = *record;
  next->next = record;
  next->number = number + record->number % 7;
  next->choice = choose(record->choice, next->number);
}

DISTINCT static void tabulate(int row, int number) {
  sums[row] = number;
  sums[row + 1] = sums[row] * 3 - number;
  for (int column = row; column <= row + 1; column++) table[row][column & 31] += sums[column] / (number | 1);
}

static long run(void) {
  ring[0] = (struct record){&ring[1], FIRST, 0, ""};
  ring[1] = (struct record){&ring[0], SECOND, 0, ""};
  struct record *record = ring;
  long same = 0, chosen = 0;
  for (int round = 0; round < ROUNDS; round++) {
    copy(record->text, texts[round & 1]);
    link(record, round % 100);
    record = record->next;
    same += compare(record->text, texts[0]) == 0;
    chosen += record->choice == FIRST;
    tabulate(round & 31, round);
  }
  return same != (ROUNDS + 1) / 2 || chosen == 0;
}

#endif

void _start(void) {
  asm(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop");
  end(run());
}
