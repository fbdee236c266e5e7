// A program with the C library picolibc, which uses semihosting for input and output.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

// Compares two strings, for `qsort`.
static int upwards(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

// Prints its arguments and numbers, sorts lines that it wrote to a file, and fails to open another file.
int main(int argc, char **argv) {
  printf("%d arguments:", argc);
  for (int i = 0; i < argc; i++) printf(" %s", argv[i]);
  printf("\n%-6s|%6.3f|%08lx|%lld\n", "left", 2.0 / 3, 0xbeeful, -1234567890123456789ll);
  printf("sqrt %.17g, sin %.12g, third %.9g\n", sqrt(2), sin(1), (double)(1.0f / 3));

  FILE *file = fopen("words.txt", "w");
  if (!file) return 2;
  for (int i = 0; i < 100; i++) fprintf(file, "word%d\n", i * 37 % 100);
  fclose(file);
  file = fopen("words.txt", "r");
  char line[32], *words[100];
  int count = 0;
  while (count < 100 && fgets(line, sizeof line, file)) {
    words[count] = malloc(strlen(line) + 1);
    strcpy(words[count++], line);
  }
  fclose(file);
  qsort(words, count, sizeof *words, upwards);
  printf("%d words, the first %sthe last %s", count, words[0], words[count - 1]);
  errno = 0;
  printf("missing: %d\n", fopen("missing.txt", "r") == NULL);
  return 5;
}
