// Scratchpad of a near-memory core: lines that the host reads and writes back. Each line has a lock for reads and a
// lock for write-backs.
//
// A read of a read-locked line is held until the core releases it; it returns the line's content at that time. A
// write-back to a write-locked line is stored, but its acknowledgement is held until the core releases it. Until then,
// no other write-back changes the line, and later reads are held too. Each held request produces one notice.

#ifndef NEARMEMORY_SCRATCHPAD_H
#define NEARMEMORY_SCRATCHPAD_H

#include <stdint.h>

// Kinds of host requests, and of their locks.
enum nm_kind { NM_READ, NM_WRITE_BACK };

// Result of nm_notice if no notice is pending; and accessors for the line and the kind of a notice.
#define NM_NO_NOTICE UINT64_MAX
static inline uint64_t nm_notice_line(uint64_t notice) { return notice / 2; }
static inline enum nm_kind nm_notice_kind(uint64_t notice) { return (enum nm_kind)(notice % 2); }

#ifdef __riscv

// Registers of the core: notice, lock, release, unlock, time; address, number of lines and commands of copies.
static volatile uint64_t *const nm_scratchpad_registers = (volatile uint64_t *)0x200000;

// Registers shared by host and core. The hardware cannot delay their accesses. Two registers form a register pipe
// (struct nm_registers of pipe.h).
#define NM_SHARED 32
static inline void *nm_shared(uint64_t number) { return (void *)(0x210000 + number * 8); }

// First of the 16 words of a line.
static inline volatile uint64_t *nm_words(uint64_t line) {
  return (volatile uint64_t *)(0x100000 + line * 128);
}

// Takes the oldest pending notice; NM_NO_NOTICE if there is none.
static inline uint64_t nm_notice(void) { return nm_scratchpad_registers[0]; }

// Holds later requests of this kind at this line.
static inline void nm_lock(uint64_t line, enum nm_kind kind) { nm_scratchpad_registers[1] = line * 2 + kind; }

// Releases the oldest held request; later ones stay held.
static inline void nm_release(uint64_t line, enum nm_kind kind) { nm_scratchpad_registers[2] = line * 2 + kind; }

// Releases all held requests, and removes the lock.
static inline void nm_unlock(uint64_t line, enum nm_kind kind) { nm_scratchpad_registers[3] = line * 2 + kind; }

// Current time in clock cycles of the core (natively: nanoseconds), the unit of the stamps. A stamp is the time of the
// last read or write of a line by the host or by copies.
static inline uint64_t nm_now(void) { return nm_scratchpad_registers[4]; }
// Begin to copy consecutive lines from and to far memory, or the host's own memory, without waiting. The core stalls
// while the maximum number of copies is outstanding. Lines are copied in any order: a fetched line has arrived when its
// write stamp has changed; a stored line is in far memory, and may be changed, when its read stamp has changed. A copy
// as a whole is complete when the count of complete copies has reached its number. The number of lines per copy is
// kept, so that repeated copies of one size set it once.
static inline void nm_copies(uint64_t lines) { nm_scratchpad_registers[6] = lines; }
static inline void nm_fetch_lines(uint64_t line, uint64_t far) {
  nm_scratchpad_registers[5] = far;
  nm_scratchpad_registers[7] = line;
}
static inline void nm_store_lines(uint64_t line, uint64_t far) {
  nm_scratchpad_registers[5] = far;
  nm_scratchpad_registers[8] = line;
}

// Numbers of fetches and of stores that this program has begun, and of those that are complete, in the order in which
// they were begun: a copy is counted as complete when all earlier ones of its kind are.
static inline uint64_t nm_fetches_begun(void) { return nm_scratchpad_registers[9]; }
static inline uint64_t nm_fetches_complete(void) { return nm_scratchpad_registers[10]; }
static inline uint64_t nm_stores_begun(void) { return nm_scratchpad_registers[11]; }
static inline uint64_t nm_stores_complete(void) { return nm_scratchpad_registers[12]; }

// Stamps of consecutive lines: for each line the last read and the last write.
static inline const volatile uint64_t *nm_stamps(uint64_t line) {
  return (const volatile uint64_t *)0x300000 + line * 2;
}

#else
#include "nearmemory/native-channel.h"
#endif

// Start to copy `lines` lines between the scratchpad, from line `line` on, and memory at address `far`, which is
// aligned to a line. Both must lie within memory that the program may copy; otherwise an exception stops it.
static inline void nm_fetch(uint64_t line, uint64_t far, uint64_t lines) {
  nm_copies(lines);
  nm_fetch_lines(line, far);
}
static inline void nm_store(uint64_t line, uint64_t far, uint64_t lines) {
  nm_copies(lines);
  nm_store_lines(line, far);
}
// Stamps of one line.
static inline uint64_t nm_read_stamp(uint64_t line) { return nm_stamps(line)[0]; }
static inline uint64_t nm_write_stamp(uint64_t line) { return nm_stamps(line)[1]; }

#endif
