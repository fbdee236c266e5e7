// Each host ends with the status that the argument of its number states, the first host first; a host with a negative
// status polls far memory forever. A host that ends leaves a dirty line in its cache.

#include "nearmemory/programs/bench.h"

int main(int argc, char **argv) {
  int host = (int)nm_host();
  require(host + 1 < argc, "too few arguments");
  long status = strtol(argv[host + 1], NULL, 0);
  volatile uint64_t *far = nm_far_alloc((1 + nm_hosts()) * NM_LINE);
  while (status < 0 && far[0] == 0) {
  }
  far[(1 + host) * (NM_LINE / 8)] = 1;
  uint64_t start = cycles();
  while (cycles() < start + 10000 * host) {
  }
  printf("host %d ends\n", host);
  return (int)status;
}
