// An empty program padded with PAD bytes of unused data, a macro of the compiler's command line. The exit status is 1
// plus its argument, so that each start can be verified.

#include "nearmemory/channel.h"

NM_CHANNEL(1024)

#ifndef PAD
#define PAD 8
#endif

static const volatile char pad[PAD] = {[0 ... PAD - 1] = 1};

int channel(uint64_t a, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) { return pad[0] + a; }
