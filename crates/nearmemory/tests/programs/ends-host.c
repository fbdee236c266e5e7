// Each host ends with the status that the argument of its number states, the first host first; a host with a negative
// status polls far memory forever.

#include "nearmemory/programs/bench.h"

int main(int argc, char **argv) {
  int host = (int)nm_host();
  require(host + 1 < argc, "too few arguments");
  long status = strtol(argv[host + 1], NULL, 0);
  volatile uint64_t *far = nm_far_alloc(NM_LINE);
  while (status < 0 && far[0] == 0) {
  }
  uint64_t start = cycles();
  while (cycles() < start + 10000 * host) {
  }
  printf("host %d ends\n", host);
  return (int)status;
}
