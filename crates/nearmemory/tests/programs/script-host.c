// Each host of a machine executes a script, the argument of its number: operations of a letter and a digit each, which
// is a line of far memory or a host.
//
//     s  stores in the first word of a line      c  begins to clean a line         o  fence, which waits for these
//     w  stores in another word of a line        f  begins to flush a line
//     l  loads the first word of a line          t  notifies a host, without a fence
//     p  prefetches a line                       r  waits for a notice of a host
//
// Store N of host H has the value 1000 * (H + 1) + N. The loaded values are printed at the end, with the host before
// them.

#include "nearmemory/programs/bench.h"

// Loads of a script, at most.
#define LOADS 64

// The registers by which a host notifies another one.
static struct nm_registers *notices(uint64_t from, uint64_t to) { return nm_registers_of(0, from * nm_hosts() + to); }

// Notifies a host. The functions of the library have a fence.
static void notify(struct nm_registers *to) {
  while (to->flag != NM_TAKEN) {
  }
  to->flag = NM_FULL;
}

int main(int argc, char **argv) {
  uint64_t host = nm_host(), loaded[LOADS], loads = 0, stores = 0, word;
  require((int)host + 1 < argc, "too few scripts");
  volatile uint64_t *far = nm_far_alloc(10 * NM_LINE);
  for (const char *operation = argv[host + 1]; *operation; operation += 2) {
    uint64_t number = operation[1] - '0';
    volatile uint64_t *line = far + number * (NM_LINE / 8);
    switch (*operation) {
    case 's': *line = 1000 * (host + 1) + stores++; break;
    case 'w': line[host + 1] = 1000 * (host + 1) + stores++; break;
    case 'l':
      require(loads < LOADS, "too many loads");
      loaded[loads++] = *line;
      break;
    case 'p': nm_prefetch(line); break;
    case 'c': nm_clean_now(line); break;
    case 'f': nm_flush_now(line); break;
    case 'o': nm_order(); break;
    case 't': notify(notices(host, number)); break;
    case 'r': nm_receive_word(notices(number, host), &word); break;
    default: require(0, "unknown operation");
    }
  }
  for (uint64_t i = 0; i < loads; i++) printf("%lu %lu\n", (unsigned long)host, (unsigned long)loaded[i]);
  return 0;
}
