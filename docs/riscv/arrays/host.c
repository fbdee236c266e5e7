// Adds up the even squares of some numbers, beside far memory.

#include "nearmemory/host.h"

#include "nearmemory/arrays.h"

// As arrays.c lists them.
enum { SQUARES, EVEN, SUM };

#define NUMBERS 10000

int main(void) {
  struct nm_arrays arrays;
  if (nm_arrays_start(&arrays, 0, "arrays", 1 << 20)) return 1;
  struct nm_array numbers = nm_array(&arrays, NUMBERS, sizeof(int32_t));
  struct nm_array squares = nm_array(&arrays, NUMBERS, sizeof(int64_t)), sum = nm_array(&arrays, 1, sizeof(int64_t));
  for (int i = 0; i < NUMBERS; i++) NM_ELEMENT(int32_t, numbers, i) = i;
  nm_do(&arrays, SQUARES, numbers, &squares);
  int64_t even = nm_do(&arrays, EVEN, squares, &squares);
  nm_do(&arrays, SUM, squares, &sum);
  printf("%ld even squares, the last one is %ld, their sum %ld\n", (long)even,
         (long)NM_ELEMENT(int64_t, squares, even - 1), (long)NM_ELEMENT(int64_t, sum, 0));
  return nm_arrays_end(&arrays);
}
