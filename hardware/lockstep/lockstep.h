// Included before everything that Verilator makes: what assertions print is kept, for whoever drives the home.

#ifndef LOCKSTEP_H_
#define LOCKSTEP_H_

int lockstep_printf(const char* format, ...) __attribute__((format(printf, 1, 2)));
#define VL_PRINTF lockstep_printf

#endif  // LOCKSTEP_H_
