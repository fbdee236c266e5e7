// Included before all Verilated code: keeps the messages of assertions for the test bench.

#ifndef LOCKSTEP_H_
#define LOCKSTEP_H_

int lockstep_printf(const char* format, ...) __attribute__((format(printf, 1, 2)));
#define VL_PRINTF lockstep_printf

#endif  // LOCKSTEP_H_
