// Performs one access, some of which are forbidden; exit status 9 if it is permitted. Arguments: the access, one of the
// cases below, which the tests find by `case N:`; word 2 is the address of a page of far memory. Compile-time macro:
//   ELSEWHERE  claims a fixed range of far memory in the manifest instead of the range that the host gives

#include "nearmemory/channel.h"

// With ELSEWHERE, the program claims a fixed range of far memory instead of the range that the host gives.
#ifdef ELSEWHERE
NM_CHANNEL(4096, NM_FAR(0x4000100000, 4096))
#else
NM_CHANNEL(4096, NM_GIVEN, NM_REGISTER_PIPE(1))
#endif

static const uint64_t constants[] = {1, 2, 3};

// Converts an address. The compiler does not see it, so it emits the access as written.
__attribute__((noipa)) static volatile uint64_t *hidden(uint64_t at) { return (volatile uint64_t *)at; }

// `access` selects the access, `far` is the range that the host has given. Line 5 stays locked until the end or an
// exception, so the test sees held requests released.
int channel(uint64_t access, uint64_t unused_1, uint64_t far, uint64_t unused_3) {
  nm_words(5)[0] = 42;
  nm_lock(5, NM_READ);
  // The host's read has arrived by then.
  if (access) while (nm_notice() == NM_NO_NOTICE);
  uint64_t before = nm_write_stamp(0), stored = nm_read_stamp(0);
  switch (access) {
    case 0: break;
    case 1: *hidden(0x210000) = 1; break;       // a pipe that it did not request
    case 2: *hidden(0x4000000000) = 1; break;   // far memory, accessible only to the copy engine
    case 3: nm_fetch(0, far + 4096, 1); break;  // beyond the granted memory
    case 4: nm_fetch(0, far, 33); break;        // more than the granted memory
    case 5: *hidden((uint64_t)&channel) = 0; break;
    case 6: *hidden(0x220000) = 0; break;  // a FIFO
    case 7: nm_fetch(0, far + 8, 1); break;     // within a line
    case 9: nm_store(511, far, 2); break;       // lines that do not exist
    case 10: nm_store(0, far, 0); break;
    case 11: *hidden((uint64_t)constants) = 0; break;
    case 8:  // permitted accesses
      *hidden(0x210010) = 1;
      nm_fetch(0, far, 1);
      nm_fetched(0, before);
      nm_words(0)[0] *= 6;
      nm_store(0, far + 128, 1);
      nm_stored(0, stored);
      break;
  }
  nm_unlock(5, NM_READ);
  return 9;
}
