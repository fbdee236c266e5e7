// A near-memory core as a thread: implements scratchpad.h and channel.h over ordinary memory.

#ifndef NEARMEMORY_NATIVE_CHANNEL_H
#define NEARMEMORY_NATIVE_CHANNEL_H

#include "nearmemory/native.h"

// The core that this program runs on, shared by all of its source files. nm_native_run sets it.
__attribute__((weak)) struct nm_native_core *nm_native_self;

// The functions of scratchpad.h and channel.h, which describe them.
static inline volatile uint64_t *nm_words(uint64_t line) { return nm_native_self->lines[line]; }
static inline const volatile uint64_t *nm_stamps(uint64_t line) { return &nm_native_self->stamps[line * 2]; }
static inline void *nm_shared(uint64_t number) { return &nm_native_self->registers[number]; }

static inline uint64_t nm_now(void) { return nm_native_now(nm_native_self); }

// Between enter and leave the program holds the core's mutex and is not stopped. If the host has stopped it meanwhile,
// it ends at leave, by a jump to `stop_target` in nm_native_thread.
static inline void nm_native_enter(void) {
  nm_native_self->busy = 1;
  pthread_mutex_lock(&nm_native_self->mutex);
}
static inline void nm_native_leave(void) {
  pthread_mutex_unlock(&nm_native_self->mutex);
  nm_native_self->busy = 0;
  if (nm_native_self->stopping) siglongjmp(nm_native_self->stop_target, 1);
}

static inline uint64_t nm_notice(void) {
  uint64_t notice = NM_NO_NOTICE;
  nm_native_enter();
  struct nm_native_held *request = nm_native_self->held;
  while (request && (request->noticed || !request->stored)) request = request->next;
  if (request) {
    request->noticed = 1;
    // As nm_notice_line and nm_notice_kind decode it.
    notice = request->line * 2 + request->kind;
  }
  nm_native_leave();
  return notice;
}
static inline void nm_lock(uint64_t line, enum nm_kind kind) {
  nm_native_enter();
  nm_native_self->locks[line][kind] = 1;
  nm_native_leave();
}
static inline void nm_release(uint64_t line, enum nm_kind kind) {
  nm_native_enter();
  nm_native_release(nm_native_self, line, kind);
  nm_native_leave();
}
static inline void nm_unlock(uint64_t line, enum nm_kind kind) {
  nm_native_enter();
  nm_native_self->locks[line][kind] = 0;
  while (nm_native_release(nm_native_self, line, kind)) {
  }
  nm_native_leave();
}

// Copies complete immediately: as many are complete as were begun.
static inline uint64_t nm_fetches_begun(void) { return nm_native_self->fetches; }
static inline uint64_t nm_fetches_complete(void) { return nm_native_self->fetches; }
static inline uint64_t nm_stores_begun(void) { return nm_native_self->stores; }
static inline uint64_t nm_stores_complete(void) { return nm_native_self->stores; }
static inline void nm_copies(uint64_t lines) { nm_native_self->lines_per_copy = lines; }
// Sets the stamps of the lines of a copy, from scratchpad line `line` on: the read stamp (NM_READ) after a store, the
// write stamp (NM_WRITE_BACK) after a fetch.
static inline void nm_native_stamp_lines(uint64_t line, uint64_t kind) {
  uint64_t now = nm_now();
  for (uint64_t i = 0; i < nm_native_self->lines_per_copy; i++) nm_native_self->stamps[(line + i) * 2 + kind] = now;
}
static inline void nm_fetch_lines(uint64_t line, uint64_t far) {
  nm_native_self->fetches++;
  memcpy(nm_native_self->lines[line], (const void *)(uintptr_t)far, nm_native_self->lines_per_copy * NM_NATIVE_LINE);
  nm_native_stamp_lines(line, NM_WRITE_BACK);
}
static inline void nm_store_lines(uint64_t line, uint64_t far) {
  nm_native_self->stores++;
  memcpy((void *)(uintptr_t)far, nm_native_self->lines[line], nm_native_self->lines_per_copy * NM_NATIVE_LINE);
  nm_native_stamp_lines(line, NM_READ);
}

int channel(uint64_t, uint64_t, uint64_t, uint64_t);

// The library exports nm_native_run, which the host calls as the program's entry. The manifest is compiled but not
// enforced.
#define NM_CHANNEL(stack_bytes, ...)                                       \
  static const uint64_t nm_manifest[] = {stack_bytes, __VA_ARGS__};        \
  int nm_native_run(struct nm_native_core *core) {                         \
    (void)nm_manifest;                                                     \
    nm_native_self = core;                                                  \
    return channel(core->words[0], core->words[1], core->words[2], core->words[3]); \
  }

// FIFOs from and to another core. Each side changes its own count only, and reads that one plainly. It reads the other
// side's count, which is volatile, plainly where an old value only delays it: a sender overwrites no word before it has
// seen `taken` pass it. Loads of words are ordered after an acquiring load of `sent`.
static inline struct nm_native_fifo *nm_native_fifo_from(uint64_t core) { return &nm_native_self->from[core]; }
static inline struct nm_native_fifo *nm_native_fifo_to(uint64_t core) {
  return &nm_native_self->all[core].from[nm_native_self->number];
}

static inline uint64_t nm_fifo_words(uint64_t core) {
  struct nm_native_fifo *fifo = nm_native_fifo_from(core);
  uint64_t sent = fifo->sent;
  return (sent & ~NM_NATIVE_END) - fifo->taken + (sent >> 63);
}
static inline uint64_t nm_fifo_room(uint64_t core) {
  struct nm_native_fifo *fifo = nm_native_fifo_to(core);
  // An end mark must be taken before further words are sent.
  return fifo->sent & NM_NATIVE_END ? 0 : NM_NATIVE_FIFO - (fifo->sent - fifo->taken);
}
static inline void nm_fifo_send(uint64_t core, uint64_t word) {
  struct nm_native_fifo *fifo = nm_native_fifo_to(core);
  while (nm_fifo_room(core) == 0) nm_relax();
  fifo->words[fifo->sent % NM_NATIVE_FIFO] = word;
  __atomic_store_n(&fifo->sent, fifo->sent + 1, __ATOMIC_RELEASE);
}
static inline void nm_fifo_end(uint64_t core) {
  struct nm_native_fifo *fifo = nm_native_fifo_to(core);
  while (fifo->sent & NM_NATIVE_END) nm_relax();
  __atomic_store_n(&fifo->sent, fifo->sent | NM_NATIVE_END, __ATOMIC_RELEASE);
}
static inline uint64_t nm_fifo_take(uint64_t core) {
  struct nm_native_fifo *fifo = nm_native_fifo_from(core);
  while ((__atomic_load_n(&fifo->sent, __ATOMIC_ACQUIRE) & ~NM_NATIVE_END) == fifo->taken) nm_relax();
  uint64_t word = fifo->words[fifo->taken % NM_NATIVE_FIFO];
  __atomic_store_n(&fifo->taken, fifo->taken + 1, __ATOMIC_RELEASE);
  return word;
}
static inline int nm_fifo_ends(uint64_t core) {
  struct nm_native_fifo *fifo = nm_native_fifo_from(core);
  uint64_t sent = __atomic_load_n(&fifo->sent, __ATOMIC_ACQUIRE);
  if (sent != (fifo->taken | NM_NATIVE_END)) return 0;
  // The sender waits until the end mark is taken.
  __atomic_store_n(&fifo->sent, sent & ~NM_NATIVE_END, __ATOMIC_RELEASE);
  return 1;
}

#endif
