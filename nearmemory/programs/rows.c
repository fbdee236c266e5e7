// Sums the balances of a table in far memory, or selects the rows below a balance, which are copied to far memory or
// streamed to the host. A row is a 32-bit number, a 32-bit balance and padding; rows that are selected fill a line.
//
// A request is five words in register pipe 0:
//   word  SUM                           COPY                            STREAM
//   0     the operation, as numbered by the enum below
//   1     address of the table in far memory
//   2     number of lines of the table, a multiple of BUFFER_LINES
//   3     bytes of a row, 8 to 128      limit: selects lower balances   limit: selects lower balances
//   4     unused                        address for the selected rows   unused
// The response is one word in register pipe 1: the sum, or the number of selected rows. A stream is complete before its
// response; its last line has the row number UINT32_MAX.

#include "nearmemory/channel.h"
#include "nearmemory/stream.h"

NM_CHANNEL(4096, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1), NM_GIVEN)

// Operations, as in rows-host.c.
enum { SUM, COPY, STREAM };

// Lines per buffer, and number of buffers. While one buffer is read, the fetches of the others are outstanding.
#define BUFFER_LINES 64 // one per bit of a mask
#define BUFFERS 4
// First scratchpad line of the stream to the host.
#define FIRST_OF_STREAM 400

// Sequential reader of a table, in parts of BUFFER_LINES lines.
struct table {
  // Address in far memory.
  uint64_t far;
  // Number of parts: all, those whose fetch has begun, and those that `next_buffer` has returned.
  uint64_t parts, fetched, consumed;
  // Number of the last fetch into each buffer, as counted by `nm_fetches_begun`.
  uint64_t last_fetch[BUFFERS];
};

// Starts to fetch the next part, if there is one.
static void fetch_next(struct table *table) {
  if (table->fetched == table->parts) return;
  uint64_t buffer = table->fetched % BUFFERS;
  nm_fetch(buffer * BUFFER_LINES, table->far + table->fetched++ * BUFFER_LINES * NM_LINE, BUFFER_LINES);
  table->last_fetch[buffer] = nm_fetches_begun();
}

// Starts to read a table whose number of lines is a multiple of BUFFER_LINES.
static struct table start_reading(uint64_t far, uint64_t lines) {
  struct table table = {.far = far, .parts = lines / BUFFER_LINES};
  for (int i = 0; i < BUFFERS - 1; i++) fetch_next(&table);
  return table;
}

// Waits for the next buffer and returns its first line. The next fetch goes to the previous buffer.
static uint64_t next_buffer(struct table *table) {
  uint64_t buffer = table->consumed++ % BUFFERS;
  fetch_next(table);
  nm_await_fetches(table->last_fetch[buffer]);
  return buffer * BUFFER_LINES;
}

// Sums the balances of the rows of a buffer that begins at scratchpad line `line`. Eight are loaded before the first is
// used, because the in-order core stalls at the first use of each load.
static inline __attribute__((always_inline)) uint64_t sum_balances(uint64_t line, uint64_t width) {
  const volatile uint32_t *row = (const volatile uint32_t *)nm_words(line) + 1;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < BUFFER_LINES * NM_LINE / width; i += 8) {
    uint32_t balances[8];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++, row += width / 4) balances[j] = *row;
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) sum += balances[j];
  }
  return sum;
}

// Returns the sum of all balances. Constant widths let the compiler unroll the loop.
static uint64_t sum(uint64_t far, uint64_t lines, uint64_t width) {
  struct table table = start_reading(far, lines);
  uint64_t total = 0;
  while (table.consumed < table.parts) {
    uint64_t line = next_buffer(&table);
    switch (width) {
    case 8: total += sum_balances(line, 8); break;
    case 16: total += sum_balances(line, 16); break;
    case 32: total += sum_balances(line, 32); break;
    case 64: total += sum_balances(line, 64); break;
    default: total += sum_balances(line, 128);
    }
  }
  return total;
}

// Returns the bit mask of the rows of a buffer whose balance is below the limit. Eight are loaded before the first is
// used.
static uint64_t rows_below(uint64_t line, uint64_t limit) {
  uint64_t selected = 0;
  for (uint64_t i = 0; i < BUFFER_LINES; i += 8) {
    const volatile uint32_t *row = (const volatile uint32_t *)nm_words(line + i) + 1;
    uint32_t balances[8];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) balances[j] = row[j * NM_LINE / 4];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) selected |= (uint64_t)(balances[j] < limit) << (i + j);
  }
  return selected;
}

// Copies the selected rows to far memory, consecutive rows by one transfer, and returns their number.
static uint64_t copy(uint64_t far, uint64_t lines, uint64_t limit, uint64_t to) {
  struct table table = start_reading(far, lines);
  uint64_t total = 0, stores[BUFFERS] = {0};
  while (table.consumed < table.parts) {
    // The next fetch overwrites a buffer whose stores may be outstanding.
    nm_await_stores(stores[table.fetched % BUFFERS]);
    uint64_t line = next_buffer(&table), selected = rows_below(line, limit);
    for (uint64_t i = 0; i < BUFFER_LINES;) {
      if (!(selected >> i & 1)) {
        i++;
        continue;
      }
      uint64_t count = 1;
      while (i + count < BUFFER_LINES && selected >> (i + count) & 1) count++;
      nm_store(line + i, to + total * NM_LINE, count);
      total += count;
      i += count;
    }
    stores[line / BUFFER_LINES] = nm_stores_begun();
  }
  nm_await_stores(nm_stores_begun());
  return total;
}

// Streams the selected rows to the host, and then a row with the invalid number UINT32_MAX. Returns the number of
// selected rows.
static uint64_t stream(uint64_t far, uint64_t lines, uint64_t limit, struct nm_stream *out) {
  struct table table = start_reading(far, lines);
  uint64_t total = 0;
  while (table.consumed < table.parts) {
    uint64_t line = next_buffer(&table);
    nm_stream_look(out);
    for (uint64_t selected = rows_below(line, limit); selected != 0; line++, selected >>= 1) {
      if (!(selected & 1)) continue;
      volatile uint64_t *to = nm_stream_next(out), *from = nm_words(line);
      uint64_t words[16];
#pragma GCC unroll 16
      for (int j = 0; j < 16; j++) words[j] = from[j];
#pragma GCC unroll 16
      for (int j = 0; j < 16; j++) to[j] = words[j];
      nm_stream_send(out);
      total++;
    }
  }
  nm_stream_next(out)[0] = UINT32_MAX;
  nm_stream_send(out);
  return total;
}

int channel(uint64_t unused_0, uint64_t unused_1, uint64_t unused_2, uint64_t unused_3) {
  struct nm_registers *in = nm_register_pipe(0), *out = nm_register_pipe(1);
  struct nm_stream to_host = nm_stream(FIRST_OF_STREAM);
  for (;;) {
    uint64_t words[5], response;
    for (int i = 0; i < 5; i++)
      if (!nm_receive_word(in, &words[i])) return 0;
    switch (words[0]) {
    case SUM: response = sum(words[1], words[2], words[3]); break;
    case COPY: response = copy(words[1], words[2], words[3], words[4]); break;
    default:  // STREAM
      response = stream(words[1], words[2], words[3], &to_host);
      nm_stream_end(&to_host);
    }
    nm_send_word(out, response);
  }
}
