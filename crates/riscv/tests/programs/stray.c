// A channel program that passes verification, and then makes the illegal access selected by a0.

// Stack size in bytes, and demands of three words: pipe 2, and the page of far memory at 0x100000.
__attribute__((section(".channel"), used)) static const struct {
  char magic[8];
  unsigned long stack, needs[6];
} manifest = {{'C', 'H', 'A', 'N', 'N', 'E', 'L', '1'}, 4096, {1, 2, 0, 2, 0x100000, 0x1000}};

static int data[4] = {1, 2, 3, 4};

// Needs at least 256 bytes of stack for each of `n` + 1 calls.
__attribute__((noipa)) static int deep(int n) {
  volatile char room[256];
  room[n & 255] = n;
  return n == 0 ? 0 : deep(n - 1) + room[n & 255];
}

// Pointer to an address that the verifier cannot see.
__attribute__((noipa)) static volatile int *hidden(unsigned long at) { return (volatile int *)at; }

// Case 0 makes permitted accesses only.
void _start(int where) {
  switch (where) {
    case 0:
      *hidden(0x100ffc) = *hidden(0x200000) + data[1];
      *hidden(0x3fff0) = deep(3);
      break;
    case 1: *hidden(0x101000) = 1; break;              // behind its far memory
    case 2: data[0] = *hidden(0xffffc); break;         // before its far memory
    case 3: *hidden((unsigned long)&_start) = 1; break;  // its own instructions
    case 4: *hidden(0x200080) = 1; break;              // the next pipe
    case 5: data[0] = *hidden(0x30000); break;         // private, and neither segment nor stack
    case 6: ((void (*)(void))hidden((unsigned long)data))(); break;
    case 7: deep(1000); break;
    case 8: data[0] = *hidden(0x100ffe); break;  // half inside
  }
  __asm__ volatile("ecall");
  __builtin_unreachable();
}
