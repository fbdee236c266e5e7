// Host 0 stores in a line of far memory, and host 1 loads it after a notice. CASE selects the notice and the mistake,
// if any. Hosts have two cores.
//
//     STALE      core 0 of host 1 receives the notice, and core 1 loads an old copy
//     UNFLUSHED  core 0 of host 1 receives the notice of a store that is not written back, and core 1 loads
//     ANNOUNCED  core 1 of host 1 receives a notice of the store, and core 0 one of its arrival: correct
//     POLLED     host 1 polls a line of a scratchpad, which always misses: correct
//     IN_FLIGHT  host 1 requests the line and notifies host 0 before the line arrives, and host 0 stores

#include "nearmemory/cores.h"
#include "nearmemory/programs/bench.h"

enum { STALE, UNFLUSHED, ANNOUNCED, POLLED, IN_FLIGHT };

// Lines that a host requests before the loaded one, so that many requests are outstanding.
#define REQUESTED 90

static volatile uint64_t *far;
static volatile uint64_t loaded;
static int is_released;

// Register pipe N from host 0 to host 1, and N + 2 back.
static struct nm_registers *pipe_of(uint64_t number) { return nm_registers_of(0, number); }

static void receive(uint64_t number) {
  uint64_t word;
  nm_receive_word(pipe_of(number), &word);
}

static void load(void *argument) {
  (void)argument;
  if (CASE == ANNOUNCED) {
    receive(1);
    while (!__atomic_load_n(&is_released, __ATOMIC_ACQUIRE)) {
    }
  }
  loaded = far[0];  // loads
}

// Begins a load, and notifies the other host before the value arrives.
static void notify_early(void) {
  for (uint64_t i = 1; i <= REQUESTED; i++) nm_prefetch_far(far + 2 * i * (NM_LINE / 8));
  uint64_t value, copied;
  __asm__ volatile("ld %0, 0(%2)  # loads\n sd %3, 0(%4)\n sd %3, 8(%4)\n mv %1, %0\n"
                   : "=&r"(value), "=&r"(copied)
                   : "r"(far), "r"(1ul), "r"(pipe_of(2))
                   : "memory");
  loaded = copied;
}

static void store(volatile uint64_t *notice) {
  if (CASE == IN_FLIGHT) (void)far[0];
  if (CASE == STALE || CASE == IN_FLIGHT) receive(2);
  far[0] = 42;  // stores
  if (CASE == ANNOUNCED) nm_send_word(pipe_of(1), 1);
  if (CASE == UNFLUSHED) nm_send_word(pipe_of(0), 1);
  if (CASE == UNFLUSHED) receive(2);
  nm_flush_all(far, NM_LINE);
  if (CASE == STALE || CASE == ANNOUNCED) nm_send_word(pipe_of(0), 1);
  if (CASE == POLLED) notice[0] = 1;
  if (CASE == POLLED) nm_flush_all(notice, NM_LINE);
}

int main(void) {
  far = nm_far_alloc(4 * REQUESTED * NM_LINE);
  volatile uint64_t *notice = nm_line_of(0, 0);
  struct nm_thread thread;
  if (nm_host() == 0) {
    store(notice);
    return 0;
  }
  if (CASE == IN_FLIGHT) {
    notify_early();
    return 0;
  }
  if (CASE == POLLED) {
    do nm_flush(notice);
    while (!notice[0]);
    load(NULL);
    return 0;
  }
  if (CASE == STALE) {
    loaded = far[0];  // before the store
    nm_send_word(pipe_of(2), 1);
  }
  if (CASE == ANNOUNCED) nm_thread_start(&thread, 1, load, NULL);
  receive(0);
  __atomic_store_n(&is_released, 1, __ATOMIC_RELEASE);
  if (CASE != ANNOUNCED) nm_thread_start(&thread, 1, load, NULL);
  nm_thread_join(&thread);
  if (CASE == UNFLUSHED) nm_send_word(pipe_of(2), 1);
  return 0;
}
