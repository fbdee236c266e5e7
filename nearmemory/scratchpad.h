// The scratchpad of a core beside far memory: lines that the host reads and writes back, with a lock for each of both.
//
// A read of a line that is locked for reads is held until it is released, and gets the line as it is then. A write-back to
// a line that is locked for write-backs is stored, and its acknowledgement is held until it is released; until then no other
// one changes the line, and a read behind that one waits, too. Each request that a lock holds makes one notice.

#ifndef NEARMEMORY_SCRATCHPAD_H
#define NEARMEMORY_SCRATCHPAD_H

#include <stdint.h>

enum nm_kind { NM_READ, NM_WRITE_BACK };

// What nm_notice gives if there is none, and the line and the kind of one.
#define NM_NO_NOTICE UINT64_MAX
static inline uint64_t nm_notice_line(uint64_t notice) { return notice / 2; }
static inline enum nm_kind nm_notice_kind(uint64_t notice) { return (enum nm_kind)(notice % 2); }

#ifdef __riscv

static volatile uint64_t *const nm_scratchpad_registers = (volatile uint64_t *)0x200000;

// One of the 32 registers that host and core share, and those behind it. Accesses to them cannot be held: two of them are a
// register pipe (struct nm_registers of pipe.h).
#define NM_SHARED 32
static inline void *nm_shared(uint64_t number) { return (void *)(0x210000 + number * 8); }

// The words of a line.
static inline volatile uint64_t *nm_words(uint64_t line) {
  return (volatile uint64_t *)(0x100000 + line * 128);
}

// The oldest notice that was not taken.
static inline uint64_t nm_notice(void) { return nm_scratchpad_registers[0]; }

// Holds requests of this kind at this line from now on.
static inline void nm_lock(uint64_t line, enum nm_kind kind) { nm_scratchpad_registers[1] = line * 2 + kind; }

// Lets the oldest request go that is held; those that come later are held still.
static inline void nm_release(uint64_t line, enum nm_kind kind) { nm_scratchpad_registers[2] = line * 2 + kind; }

// Lets all requests go that are held, and holds no others.
static inline void nm_unlock(uint64_t line, enum nm_kind kind) { nm_scratchpad_registers[3] = line * 2 + kind; }

// The time, and (nm_read_stamp, nm_write_stamp) when others last read and wrote the line.
static inline uint64_t nm_now(void) { return nm_scratchpad_registers[4]; }
// Begin to copy lines that lie one behind the other from and to far memory, or memory of the host's own, and go on; while as many
// copies are under way as there may be, the core waits. Of copies no order is promised, neither among them nor among their lines: a line that is
// fetched is there when its stamp of writes has changed, and one that is stored may be changed, and is in far memory,
// when its stamp of reads has.
// How many lines a copy has stays as it is, so who copies as many again and again says it once.
static inline void nm_copies(uint64_t lines) { nm_scratchpad_registers[6] = lines; }
static inline void nm_fetch_lines(uint64_t line, uint64_t far) {
  nm_scratchpad_registers[5] = far;
  nm_scratchpad_registers[7] = line;
}
static inline void nm_store_lines(uint64_t line, uint64_t far) {
  nm_scratchpad_registers[5] = far;
  nm_scratchpad_registers[8] = line;
}

// The stamps of a line and those behind it: of each the last read and the last write.
static inline const volatile uint64_t *nm_stamps(uint64_t line) { return (const volatile uint64_t *)0x300000 + line * 2; }

#else
#include "nearmemory/native-channel.h"
#endif

static inline void nm_fetch(uint64_t line, uint64_t far, uint64_t lines) {
  nm_copies(lines);
  nm_fetch_lines(line, far);
}
static inline void nm_store(uint64_t line, uint64_t far, uint64_t lines) {
  nm_copies(lines);
  nm_store_lines(line, far);
}
static inline uint64_t nm_read_stamp(uint64_t line) { return nm_stamps(line)[0]; }
static inline uint64_t nm_write_stamp(uint64_t line) { return nm_stamps(line)[1]; }

#endif
