// Performs the action that its first argument names.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static void crash(void) { *(volatile int *)16 = 1; }

// Regression: the stack grew through heap, data and code down to the first address of memory.
__attribute__((noinline)) static int overflow(int depth) {
  volatile char bytes[4096];
  bytes[depth & 4095] = depth;
  return overflow(depth + 1) + bytes[0];
}

// The statement after the call prevents a tail call.
__attribute__((noinline)) static void jump(uintptr_t at) {
  ((void (*)(void))at)();
  puts("behind");
}

static int fail(void) {
  perror(NULL);
  return 2;
}

int main(int argc, char **argv) {
  const char *verb = argc > 1 ? argv[1] : "", *word = argc > 2 ? argv[2] : "";
  if (!strcmp(verb, "say")) {
    puts(word);
  } else if (!strcmp(verb, "code")) {
    FILE *errors = fopen(":tt", "a");
    if (!errors) return fail();
    fputs("on standard error\n", errors);
    fclose(errors);
    return atoi(word);
  } else if (!strcmp(verb, "crash")) {
    puts("before");
    crash();
  } else if (!strcmp(verb, "overflow")) {
    overflow(0);
  } else if (!strcmp(verb, "jump")) {
    jump(16);
  } else if (!strcmp(verb, "for-ever")) {
    puts("before");
    for (;;) __asm__ volatile("");
  } else if (!strcmp(verb, "echo")) {
    FILE *input = fopen(":tt", "r");
    if (!input) return fail();
    for (int byte; (byte = getc(input)) != EOF;) putchar(byte);
  } else if (!strcmp(verb, "read")) {
    FILE *file = fopen(word, "r");
    if (!file) return fail();
    for (int byte; (byte = getc(file)) != EOF;) putchar(byte);
    fclose(file);
  } else if (!strcmp(verb, "write")) {
    FILE *file = fopen(word, "w");
    if (!file || fputs("written\n", file) < 0 || fclose(file)) return fail();
  } else {
    return 3;
  }
  return 0;
}
