// Hosts that share far memory add up an array. The first host writes the array, each host adds up a part of it, and the
// first one prints the sum.

#include "nearmemory/host.h"

// Words of a part, a number of whole lines.
#define PART 1024

int main(void) {
  uint64_t host = nm_host(), hosts = nm_hosts(), sum = 0, word = 0;
  // Every host gets the same address.
  volatile uint64_t *far = nm_far_alloc(hosts * PART * sizeof *far);
  // Register pipes from the first host to another one, and back, are those of cores 0 and 1.
  struct nm_registers *forth = nm_registers_of(0, host), *back = nm_registers_of(1, host);
  if (host == 0) {
    for (uint64_t i = 0; i < hosts * PART; i++) far[i] = i + 1;
    // Far memory has the words before another host is notified.
    nm_flush_all(far, hosts * PART * sizeof *far);
    for (uint64_t other = 1; other < hosts; other++) nm_send_word(nm_registers_of(0, other), PART);
  } else {
    nm_receive_word(forth, &word);
  }
  for (uint64_t i = host * PART; i < (host + 1) * PART; i++) sum += far[i];
  if (host > 0) {
    nm_send_word(back, sum);
    return 0;
  }
  for (uint64_t other = 1; other < hosts; other++) {
    nm_receive_word(nm_registers_of(1, other), &word);
    sum += word;
  }
  printf("%lu hosts: the sum is %lu\n", (unsigned long)hosts, (unsigned long)sum);
  return 0;
}
