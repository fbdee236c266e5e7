// Included before all Verilated code: redirects assertion messages to the test bench.

#ifndef LOCKSTEP_H_
#define LOCKSTEP_H_

int lockstep_printf(const char* format, ...) __attribute__((format(printf, 1, 2)));
#define VL_PRINTF lockstep_printf

#endif  // LOCKSTEP_H_
