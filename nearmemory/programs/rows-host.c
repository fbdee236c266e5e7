// Benchmark: sums the balances of a table of accounts, or selects the rows below a balance. Variants: the host in its
// own memory and in far memory, with and without prefetches; four host cores with prefetches; a near-memory core, with
// the program rows.c.
//
// Arguments: bytes of the table, a multiple of 64 lines; bytes of a row, a power of two from 8 to 128; and, for a
// selection, whose rows have 128 bytes, the selected rows per 1,000.

#include "nearmemory/programs/bench.h"
#include "nearmemory/programs/team.h"
#include "nearmemory/stream.h"

// Operations, as in rows.c.
enum { SUM, COPY, STREAM };

// First scratchpad line of the stream, as in rows.c.
#define FIRST_OF_STREAM 400
// Limit of balances, which are 0 to BALANCES - 1.
#define BALANCES 65536

// Bytes of a row, and number of rows.
static uint64_t width, rows;

// Balance of a row.
static uint64_t balance(uint64_t row) { return hash(row) % BALANCES; }

// First word of a row: its number in the lower half, its balance in the upper half.
static uint64_t word(uint64_t row) { return row | balance(row) << 32; }

// Returns a table of `bytes` bytes, in far memory if `far` is 1, otherwise in the host's own memory.
static uint32_t *make_table(uint64_t bytes, int far) {
  uint64_t *table = far ? nm_far_alloc(bytes + NM_MAX_PREFETCHES * NM_LINE) : malloc(bytes);
  require(table != NULL, "no memory");
  // The row's padding also follows from its number.
  for (uint64_t row = 0; row < rows; row++) {
    uint64_t *at = table + row * (width / 8);
    at[0] = word(row);
    for (uint64_t i = 1; i < width / 8; i++) at[i] = row ^ i << 32;
  }
  if (far) nm_flush_all(table, bytes);
  return (uint32_t *)table;
}

// Returns the sum of the balances below a limit in rows `from` to `to - 1`, and their number in `count`, with this
// prefetch distance in lines; 0: no prefetches. Eight rows are loaded before the first is used.
static uint64_t sum_below(const uint32_t *table, uint64_t from, uint64_t to, uint64_t below, uint64_t distance,
                          uint64_t *count) {
  uint64_t sum = 0, count_below = 0, prefetch_offset = distance * NM_LINE / 4, step = width / 4;
  for (uint64_t row = from; row < to; row += 8) {
    const volatile uint32_t *at = table + row * step;
    if (distance)
      for (uint64_t i = 0; i < 8 * step; i += NM_LINE / 4) nm_prefetch_far(at + prefetch_offset + i);
    uint32_t each[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) each[i] = at[i * step + 1];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      uint64_t is_selected = each[i] < below;
      count_below += is_selected;
      sum += is_selected ? each[i] : 0;
    }
  }
  *count = count_below;
  return sum;
}

// Expected sum of the selected balances, expected number of selected rows, and limit below which rows are selected.
static uint64_t expected, selected, limit = BALANCES;

// Measures the host with this prefetch distance in lines; 0: no prefetches.
static void by_host(const uint32_t *table, uint64_t distance, const char *label) {
  uint64_t count, start = cycles();
  uint64_t sum = sum_below(table, 0, rows, limit, distance, &count), duration = cycles() - start;
  require(sum == expected && count == selected, label);
  print_duration(label, duration);
}

// Results by core, each in a separate line.
static struct {
  uint64_t sum, count;
} __attribute__((aligned(NM_LINE))) parts[CORES];

// The table for all cores, and the prefetch distance of each.
static const uint32_t *shared;
static uint64_t shared_distance;

// Evaluates one core's part of the table.
static void work(uint64_t core) {
  // Parts are whole groups of eight rows.
  uint64_t each = (rows / 8 + CORES - 1) / CORES * 8, from = core * each, to = from + each < rows ? from + each : rows;
  parts[core].sum = sum_below(shared, from, to, limit, shared_distance, &parts[core].count);
}

// Measures all cores of the host.
static void by_cores(const uint32_t *table, const char *label) {
  uint64_t sum = 0, count = 0;
  shared = table, shared_distance = nm_prefetch_distance() / CORES;
  team_begin();
  uint64_t duration = team_run(work);
  team_end();
  for (int core = 0; core < CORES; core++) sum += parts[core].sum, count += parts[core].count;
  require(sum == expected && count == selected, label);
  print_duration(label, duration);
}

// Sends a request, in the format of rows.c, to the near-memory core and returns its start time.
static uint64_t send_request(const uint64_t words[5]) {
  uint64_t start = cycles();
  for (int i = 0; i < 5; i++) nm_send_word(nm_registers_of(0, 0), words[i]);
  return start;
}

// Returns the response of the near-memory core.
static uint64_t receive_response(void) {
  uint64_t word = 0;
  require(nm_receive_word(nm_registers_of(0, 1), &word), "the core has ended");
  return word;
}

// Returns 1 if a row's words are those of row number `row`.
static int is_row(const volatile uint64_t *at, uint64_t row) {
  uint64_t difference = at[0] ^ word(row);
  for (uint64_t i = 1; i < width / 8; i++) difference |= at[i] ^ (row ^ i << 32);
  return difference == 0;
}

// Measures the sum by the near-memory core.
static void sum(uint64_t table, uint64_t lines) {
  uint64_t start = send_request((uint64_t[5]){SUM, table, lines, width});
  require(receive_response() == expected, "the sum of the core");
  print_duration("core", cycles() - start);
}

// Measures the selection by the near-memory core into far memory, and verifies each row.
static void measure_copy(uint64_t table, uint64_t lines, uint64_t *to) {
  uint64_t start = send_request((uint64_t[5]){COPY, table, lines, limit, (uintptr_t)to});
  require(receive_response() == selected, "count of rows the core has copied");
  print_duration("core, copied", cycles() - start);
  int right = 1;
  for (uint64_t row = 0, at = 0; row < rows; row++)
    if (balance(row) < limit) {
      nm_prefetch_far(to + (at + 48) * 16);
      right &= is_row(to + at++ * 16, row);
    }
  require(right, "the rows that the core has copied");
}

// Measures the selection by the near-memory core as a stream, and verifies each row.
static void measure_stream(uint64_t table, uint64_t lines) {
  uint64_t start = send_request((uint64_t[5]){STREAM, table, lines, limit}), sum = 0, count = 0, words = 0;
  struct nm_stream_in in = nm_stream_from(0, FIRST_OF_STREAM);
  for (;;) {
    volatile uint64_t *line = nm_stream_take(&in);
    uint64_t first = line[0];
    if ((uint32_t)first == UINT32_MAX) break;
    // Verifies each word of a row; the padding must match the row's number, otherwise the result is not 0.
    uint32_t row = first;
    for (uint64_t i = 1; i < 16; i++) words |= line[i] ^ (row ^ i << 32);
    sum += first >> 32;
    count++;
  }
  uint64_t duration = cycles() - start;
  require(receive_response() == selected && count == selected && sum == expected && words == 0, "rows of the stream");
  print_duration("core, streamed", duration);
}

int main(int argc, char **argv) {
  uint64_t bytes = argument(argc, argv, 1);
  width = argument(argc, argv, 2);
  require(width >= 8 && width <= NM_LINE && (width & (width - 1)) == 0, "the bytes of a row");
  require(bytes > 0 && bytes % (64 * NM_LINE) == 0, "the bytes are a multiple of 64 lines");
  int selects = argc > 3;
  require(!selects || width == NM_LINE, "rows that are selected are lines");
  rows = bytes / width;
  if (selects) limit = argument(argc, argv, 3) * BALANCES / 1000;
  for (uint64_t row = 0; row < rows; row++)
    if (balance(row) < limit) expected += balance(row), selected++;
  uint32_t *local = make_table(bytes, 0), *far = make_table(bytes, 1);
  uint32_t *to = nm_far_alloc(bytes + NM_MAX_PREFETCHES * NM_LINE);
  require(to != NULL, "no memory");
  by_host(local, 0, "host, local");
  by_host(far, 0, "host, far");
  nm_flush_all(far, bytes);
  by_host(far, nm_prefetch_distance(), "host, far with hints");
  nm_flush_all(far, bytes + NM_MAX_PREFETCHES * NM_LINE);
  if (nm_cores() >= CORES) {
    by_cores(far, "host, far with hints, 4 cores");
    nm_flush_all(far, bytes + NM_MAX_PREFETCHES * NM_LINE);
  }
  nm_give(0, far, bytes);
  nm_give(0, to, bytes);
  require(nm_spawn(0, "rows", NULL) == 0, "the core does not start");
  uint64_t lines = bytes / NM_LINE;
  if (selects) {
    measure_copy((uintptr_t)far, lines, (uint64_t *)to);
    measure_stream((uintptr_t)far, lines);
  } else {
    sum((uintptr_t)far, lines);
  }
  nm_end_words(nm_registers_of(0, 0));
  return nm_wait(0, NULL) == NM_EXITED ? 0 : 1;
}
