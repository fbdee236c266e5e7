// Each host of a machine executes a script, the argument of its number: operations of a letter and a digit each, which
// is a line of far memory or a host.
//
//     s  stores in the first word of a line      c  begins to clean a line         o  fence, which waits for these
//     w  stores in another word of a line        f  begins to flush a line
//     l  loads the words of a line               t  notifies a host, without a fence
//     p  prefetches a line                       r  waits for a notice of a host
//                                                n  notifies a host by a line of a scratchpad, without a fence
//                                                q  waits for such a notice
//
// Core 1 of the host executes operations with a capital letter, and core 0 the others, one after the other. Store N of
// host H has the value 1000 * (H + 1) + N. The loaded values are printed at the end, with the host before them.

#include "nearmemory/cores.h"
#include "nearmemory/programs/bench.h"

// Loaded values of a script, and hosts, at most.
#define LOADS 256
#define HOSTS 10

// Error of nm_thread_start on a core that runs.
#define CORE_IS_STARTED -6

// Number of the host, number of hosts, and shared memory.
static uint64_t host, hosts;
static volatile uint64_t *far;
static uint64_t loaded[LOADS], loads, stores;
// Notices to and from each host by lines of a scratchpad.
static uint64_t sent[HOSTS], received[HOSTS];

// The registers by which a host notifies another one, and the line of a scratchpad.
static struct nm_registers *notices(uint64_t from, uint64_t to) { return nm_registers_of(0, from * hosts + to); }
static volatile uint64_t *notice_line(uint64_t from, uint64_t to) { return nm_line_of(0, from * hosts + to); }

// Notifies a host. The functions of the library have a fence.
static void notify(struct nm_registers *to) {
  while (to->flag != NM_TAKEN) {
  }
  to->flag = NM_FULL;
}

// Waits for notices by a line of a scratchpad: the line has their number.
static void wait_for_line(volatile uint64_t *line, uint64_t number) {
  do nm_flush_now(line);
  while (*line < number);
  nm_order();
}

static uint64_t next_value(void) { return 1000 * (host + 1) + stores++; }

static void execute(void *operation) {
  uint64_t number = ((const char *)operation)[1] - '0', word;
  volatile uint64_t *line = far + number * (NM_LINE / 8);
  switch (*(const char *)operation | 0x20) {
  case 's': *line = next_value(); break;
  case 'w': line[host + 1] = next_value(); break;
  case 'l':
    require(loads + hosts < LOADS, "too many loads");
    for (uint64_t i = 0; i <= hosts; i++) loaded[loads++] = line[i];
    break;
  case 'p': nm_prefetch(line); break;
  case 'c': nm_clean_now(line); break;
  case 'f': nm_flush_now(line); break;
  case 'o': nm_order(); break;
  case 't': notify(notices(host, number)); break;
  case 'r': nm_receive_word(notices(number, host), &word); break;
  case 'n':
    *notice_line(host, number) = ++sent[number];
    nm_flush_now(notice_line(host, number));
    break;
  case 'q': wait_for_line(notice_line(number, host), ++received[number]); break;
  default: require(0, "unknown operation");
  }
}

int main(int argc, char **argv) {
  host = nm_host(), hosts = nm_hosts();
  require(hosts <= HOSTS && (int)host + 1 < argc, "too few scripts");
  far = nm_far_alloc(10 * NM_LINE);
  for (char *operation = argv[host + 1]; *operation; operation += 2) {
    struct nm_thread thread;
    if (*operation >= 'a') {
      execute(operation);
      continue;
    }
    // The core may still be stopping.
    int error;
    do error = nm_thread_start(&thread, 1, execute, operation);
    while (error == CORE_IS_STARTED);
    require(error == 0, "no second core");
    nm_thread_join(&thread);
  }
  for (uint64_t i = 0; i < loads; i++) printf("%lu %lu\n", (unsigned long)host, (unsigned long)loaded[i]);
  return 0;
}
