// Prints some lines and part of a line, and then ends by itself, causes an exception, or never ends. Argument: number
// of the core, which selects the end.

#include "nearmemory/channel.h"

#include <stdio.h>

NM_CHANNEL(4096, NM_REGISTER_PIPE(0))

// Core 1 causes an exception, by an access beyond the scratchpad; core 2 tells the host by register pipe 0 and never
// ends; the others end by themselves.
int channel(uint64_t core, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  for (int i = 0; i < 5; i++) printf("core %d says %d\n", (int)core, i);
  printf("core %d ends", (int)core);
  if (core == 1) *nm_words(512) = 1;
  if (core == 2) nm_send_word(nm_register_pipe(0), 1);
  while (core == 2) nm_now();
  return 0;
}
