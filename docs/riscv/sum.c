// Adds up the numbers of standard input, or of files.

#include <stdio.h>
#include <string.h>

static int sum_of(FILE *file, const char *name) {
  long long number, sum = 0;
  int numbers = 0, found;
  while ((found = fscanf(file, "%lld", &number)) == 1) {
    sum += number;
    numbers++;
  }
  if (found == 0) {
    printf("%s: number %d is none\n", name, numbers + 1);
    return 1;
  }
  printf("%s: %d numbers, their sum is %lld\n", name, numbers, sum);
  return 0;
}

int main(int argc, char **argv) {
  // The C library's own stdin, which reads byte by byte, is told of no end.
  if (argc < 2) return sum_of(fopen(":tt", "r"), "standard input");
  for (int i = 1; i < argc; i++) {
    FILE *file = fopen(argv[i], "r");
    if (!file) {
      perror(argv[i]);
      return 2;
    }
    int code = sum_of(file, argv[i]);
    fclose(file);
    if (code) return code;
  }
  return 0;
}
