// A program that uses only Linux system calls: files, the heap, and all kinds of arithmetic.

// Performs a system call with this number and returns its result.
static long call(long number, long a, long b, long c) {
  register long a0 asm("a0") = a, a1 asm("a1") = b, a2 asm("a2") = c, a7 asm("a7") = number;
  // These calls need at most a zero in the arguments beyond the third.
  register long a3 asm("a3") = 0;
  asm volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a7) : "memory");
  return a0;
}

// Writes a string to the standard output.
static void text(const char *s) {
  long n = 0;
  while (s[n]) n++;
  call(64, 1, (long)s, n);
}

// Writes a name and a number in one line.
static void number(const char *name, long value) {
  char digits[24];
  int n = 24;
  unsigned long rest = value < 0 ? -(unsigned long)value : value;
  digits[--n] = '\n';
  do digits[--n] = '0' + rest % 10; while (rest /= 10);
  if (value < 0) digits[--n] = '-';
  text(name);
  text(" ");
  call(64, 1, (long)(digits + n), 24 - n);
}

// Next number of a linear congruential generator.
static unsigned long next(unsigned long *seed) { return *seed = *seed * 6364136223846793005ul + 1442695040888963407ul; }

// Sorts numbers in ascending order (shell sort).
static void sort(int *a, int n) {
  for (int gap = n / 2; gap; gap /= 2)
    for (int i = gap; i < n; i++)
      for (int j = i; j >= gap && a[j - gap] > a[j]; j -= gap) {
        int other = a[j];
        a[j] = a[j - gap];
        a[j - gap] = other;
      }
}

static int numbers[5000];

// Prints a line for each result; the test compares them with those under QEMU. Ends with 7.
void _start(void) {
  unsigned long seed = 1;
  for (int i = 0; i < 5000; i++) numbers[i] = (int)(next(&seed) >> 32);
  sort(numbers, 5000);
  long sum = 0, wrong = 0;
  for (int i = 0; i < 5000; i++) sum = sum * 31 + numbers[i];
  for (int i = 1; i < 5000; i++) wrong += numbers[i - 1] > numbers[i];
  number("sorted", sum);
  number("wrong", wrong);

  double pi = 0;
  float series = 0;
  for (int i = 0; i < 20000; i++) {
    pi += (i % 2 ? -4.0 : 4.0) / (2 * i + 1);
    series += 1.0f / ((float)i * i + 1);
  }
  number("pi", (long)(pi * 1e12));
  number("series", (long)(series * 1e6f));

  // The heap grows from its start.
  char *start = (char *)call(214, 0, 0, 0);
  char *end = (char *)call(214, (long)start + 10000, 0, 0);
  number("heap", end - start);
  for (int i = 0; i < 10000; i++) start[i] = (char)i;
  long bytes = 0;
  for (int i = 0; i < 10000; i++) bytes += start[i];
  number("bytes", bytes);

  static const char path[] = "numbers.txt";
  register long a3 asm("a3") = 0644;
  register long a0 asm("a0") = -100, a1 asm("a1") = (long)path, a2 asm("a2") = 01101, a7 asm("a7") = 56;
  asm volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a7) : "memory");
  long file = a0;
  number("file", file);
  number("written", call(64, file, (long)"some text\n", 10));
  number("closed", call(57, file, 0, 0));
  number("again", call(57, file, 0, 0));
  char line[32];
  file = call(56, -100, (long)path, 0);
  number("place", call(62, file, -5, 2));
  number("read", call(63, file, (long)line, 32));
  call(64, 1, (long)line, 5);
  number("end", call(63, file, (long)line, 32));
  number("nothing", call(56, -100, (long)"no such file", 0));
  number("fault", call(64, 1, 8, 4));
  number("no call", call(9999, 0, 0, 0));
  long time[2] = {0, 0};
  number("clock", call(113, 0, (long)time, 0));
  number("later", time[0] > 1600000000 && time[1] < 1000000000);
  int count = 0, *counter = &count;
  for (int i = 0; i < 10; i++) __atomic_fetch_add(counter, i, __ATOMIC_SEQ_CST);
  number("counted", count);
  call(93, 7, 0, 0);
  for (;;) {}
}
