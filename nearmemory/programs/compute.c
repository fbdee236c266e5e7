// Runs the instruction mix of mixture.h. Register pipe 0 delivers one word, the number of rounds; register pipe 1
// returns one word, the checksum. Exit status 0 if the results are correct.

#include "nearmemory/channel.h"
#include "nearmemory/programs/mixture.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1))

int channel(uint64_t unused_0, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  uint64_t rounds = 0, sum = 0;
  if (!nm_receive_word(nm_register_pipe(0), &rounds)) return 1;
  long is_wrong = mixture(rounds, &sum);
  nm_send_word(nm_register_pipe(1), sum);
  return is_wrong;
}
