// A near-memory program: declares its resources in a manifest, and averages numbers in far memory.

// Stack size in bytes, and demands of three words: pipe 2, and the page of far memory at 0x100000.
__attribute__((section(".channel"), used)) static const struct {
  char magic[8];
  unsigned long stack, needs[6];
} manifest = {{'C', 'H', 'A', 'N', 'N', 'E', 'L', '1'}, 4096, {1, 2, 0, 2, 0x100000, 0x1000}};

volatile float result;

// Mean of `count` numbers, weighted by 1, 2 and 3 in turn and divided by `count`.
__attribute__((noipa)) float mean(const int *numbers, int count) {
  // Use double precision on a core that has it.
  __typeof__(__builtin_choose_expr(__riscv_flen == 64, 1.0, 1.0f)) sum = 0;
  for (int i = 0; i < count; i++) sum += numbers[i] * (i % 3 + 1);
  return sum / count;
}

void _start(void) {
  result = mean((const int *)0x100000, 1024);
  for (;;) {}
}
