// Arrays in far memory, with map, filter and reduce operations by a near-memory core. The interface hides lines, cache
// maintenance, copies and stamps. While an operation is in progress, the host caches no element of its arrays; when the
// core responds, all elements of the result are in far memory.
//
// A channel program defines its operations from functions of elements, and lists them:
//
//     static int64_t square(int32_t x) { return (int64_t)x * x; }
//     NM_MAP(squares, int32_t, int64_t, square)
//     NM_ARRAYS(4096, squares)
//
// The host refers to an operation by its index in the list. Include this after host.h, or in a channel program after
// channel.h. The size of an element is a power of two, from 1 byte to the size of a line.

#ifndef NEARMEMORY_ARRAYS_H
#define NEARMEMORY_ARRAYS_H

#include "nearmemory/pipe.h"

#include <string.h>

// Words of a request: operation; address, length and element size (bytes) of the array; address, capacity (elements)
// and element size (bytes) of the result.
enum {
  NM_REQUEST_OPERATION,
  NM_REQUEST_IN,
  NM_REQUEST_LENGTH,
  NM_REQUEST_SIZE,
  NM_REQUEST_OUT,
  NM_REQUEST_CAPACITY,
  NM_REQUEST_OUT_SIZE,
  NM_REQUEST_WORDS
};
// Response if the operation is undefined, the element sizes do not match, or the result exceeds its capacity.
// Otherwise, the response is the length of the result in elements.
#define NM_NO_OPERATION UINT64_MAX

#ifdef NEARMEMORY_CHANNEL_H

// Lines per part, the unit of a copy. While a part is processed, the next one is fetched and the previous one is
// stored.
#define NM_PART 32
#define NM_PART_BYTES (NM_PART * NM_LINE)

// Sequential reader of elements, in the first two parts of the scratchpad: address of the array in far memory, number
// of parts, number of lines, number of parts requested so far, and number of the last fetch of each half.
struct nm_reader {
  uint64_t far, parts, lines, requested_parts, fetches[2];
};

// Number of lines of a part of an array with `lines` lines: fewer than NM_PART only in the last part.
static inline uint64_t nm_part_lines(uint64_t lines, uint64_t part) {
  return lines - part * NM_PART < NM_PART ? lines - part * NM_PART : NM_PART;
}

// Starts to fetch the next part, if there is one.
static inline void nm_reader_request(struct nm_reader *reader) {
  uint64_t part = reader->requested_parts++;
  if (part >= reader->parts) return;
  nm_fetch(part % 2 * NM_PART, reader->far + part * NM_PART_BYTES, nm_part_lines(reader->lines, part));
  reader->fetches[part % 2] = nm_fetches_begun();
}

// Starts to read `bytes` bytes at address `far`, which is aligned to a line.
static inline struct nm_reader nm_reader(uint64_t far, uint64_t bytes) {
  uint64_t lines = (bytes + NM_LINE - 1) / NM_LINE;
  struct nm_reader reader = {far, (lines + NM_PART - 1) / NM_PART, lines};
  nm_reader_request(&reader);
  return reader;
}

// Waits for a part and returns its first byte. Parts must be read in order: the call starts to overwrite the previous
// one.
static inline volatile void *nm_reader_part(struct nm_reader *reader, uint64_t part) {
  nm_reader_request(reader);
  nm_await_fetches(reader->fetches[part % 2]);
  return nm_words(part % 2 * NM_PART);
}

// Sequential writer of elements, in the two parts after those of the reader: address of the result in far memory,
// number of parts stored so far, bytes in the current part, and number of the last store of each half.
struct nm_writer {
  uint64_t far, part, bytes, stores[2];
};

static inline struct nm_writer nm_writer(uint64_t far) { return (struct nm_writer){.far = far}; }

// Returns the address of the next element.
static inline volatile void *nm_writer_address(struct nm_writer *writer) {
  return (volatile char *)nm_words((2 + writer->part % 2) * NM_PART) + writer->bytes;
}

// Starts to store the current part, and waits until the other half can be overwritten.
static inline void nm_writer_store(struct nm_writer *writer) {
  uint64_t side = writer->part % 2, lines = (writer->bytes + NM_LINE - 1) / NM_LINE;
  if (lines == 0) return;
  nm_store((2 + side) * NM_PART, writer->far + writer->part++ * NM_PART_BYTES, lines);
  writer->stores[side] = nm_stores_begun();
  writer->bytes = 0;
  nm_await_stores(writer->stores[writer->part % 2]);
}

// Completes an element of `size` bytes; stores the part if it is full.
static inline void nm_writer_next(struct nm_writer *writer, uint64_t size) {
  writer->bytes += size;
  if (writer->bytes == NM_PART_BYTES) nm_writer_store(writer);
}

// Flushes the writer: all elements are in far memory on return.
static inline void nm_writer_end(struct nm_writer *writer) {
  nm_writer_store(writer);
  nm_await_stores(nm_stores_begun());
}

// An operation: element sizes of array and result; true if the result is a single element; the function, which returns
// the length of the result.
struct nm_operation {
  uint64_t size, out_size;
  int reduces;
  uint64_t (*run)(uint64_t in, uint64_t length, uint64_t out);
};

// Requires that elements fill a line exactly, so that no element crosses the boundary of two parts.
#define NM_REQUIRE_ELEMENT_SIZE(type)                                                                             \
  _Static_assert(NM_LINE % sizeof(type) == 0, "the size of an element is a power of two, from 1 to 128 bytes")

// Loop over all elements of an array.
#define NM_EACH(type, element, in, length, ...)                                                                   \
  do {                                                                                                            \
    struct nm_reader nm_in = nm_reader(in, (length) * sizeof(type));                                              \
    for (uint64_t nm_part = 0, nm_left = length; nm_left > 0; nm_part++) {                                        \
      const volatile type *nm_at = nm_reader_part(&nm_in, nm_part);                                               \
      uint64_t nm_count = nm_left < NM_PART_BYTES / sizeof(type) ? nm_left : NM_PART_BYTES / sizeof(type);        \
      for (uint64_t nm_i = 0; nm_i < nm_count; nm_i++) {                                                          \
        type element = nm_at[nm_i];                                                                               \
        __VA_ARGS__                                                                                               \
      }                                                                                                           \
      nm_left -= nm_count;                                                                                        \
    }                                                                                                             \
  } while (0)

// Map: applies a function to each element.
#define NM_MAP(name, type, out_type, function)                                                                    \
  NM_REQUIRE_ELEMENT_SIZE(type);                                                                                  \
  NM_REQUIRE_ELEMENT_SIZE(out_type);                                                                              \
  static uint64_t name##_run(uint64_t in, uint64_t length, uint64_t out) {                                        \
    struct nm_writer to = nm_writer(out);                                                                         \
    NM_EACH(type, element, in, length, {                                                                          \
      *(volatile out_type *)nm_writer_address(&to) = function(element);                                           \
      nm_writer_next(&to, sizeof(out_type));                                                                      \
    });                                                                                                           \
    nm_writer_end(&to);                                                                                           \
    return length;                                                                                                \
  }                                                                                                               \
  static const struct nm_operation name = {sizeof(type), sizeof(out_type), 0, name##_run};

// Filter: elements for which a function returns non-zero, in order.
#define NM_FILTER(name, type, function)                                                                           \
  NM_REQUIRE_ELEMENT_SIZE(type);                                                                                  \
  static uint64_t name##_run(uint64_t in, uint64_t length, uint64_t out) {                                        \
    struct nm_writer to = nm_writer(out);                                                                         \
    uint64_t kept = 0;                                                                                            \
    NM_EACH(type, element, in, length, {                                                                          \
      if (!function(element)) continue;                                                                           \
      *(volatile type *)nm_writer_address(&to) = element;                                                         \
      nm_writer_next(&to, sizeof(type));                                                                          \
      kept++;                                                                                                     \
    });                                                                                                           \
    nm_writer_end(&to);                                                                                           \
    return kept;                                                                                                  \
  }                                                                                                               \
  static const struct nm_operation name = {sizeof(type), sizeof(type), 0, name##_run};

// Reduction in order: a function combines the accumulator, initially `first`, with each element. The accumulator
// is the first element of the result.
#define NM_REDUCE(name, type, value_type, first, function)                                                        \
  NM_REQUIRE_ELEMENT_SIZE(type);                                                                                  \
  static uint64_t name##_run(uint64_t in, uint64_t length, uint64_t out) {                                        \
    struct nm_writer to = nm_writer(out);                                                                         \
    value_type value = first;                                                                                     \
    NM_EACH(type, element, in, length, { value = function(value, element); });                                    \
    *(volatile value_type *)nm_writer_address(&to) = value;                                                       \
    nm_writer_next(&to, sizeof(value_type));                                                                      \
    nm_writer_end(&to);                                                                                           \
    return 1;                                                                                                     \
  }                                                                                                               \
  static const struct nm_operation name = {sizeof(type), sizeof(value_type), 1, name##_run};

// Main loop of a program that serves requests for operations.
#define NM_ARRAYS(stack_bytes, ...)                                                                               \
  NM_CHANNEL(stack_bytes, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1), NM_GIVEN)                                     \
  int channel(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {                                                   \
    const struct nm_operation operations[] = {__VA_ARGS__};                                                       \
    uint64_t request[NM_REQUEST_WORDS];                                                                           \
    for (;;) {                                                                                                    \
      for (int i = 0; i < NM_REQUEST_WORDS; i++)                                                                  \
        if (!nm_receive_word(nm_register_pipe(0), &request[i])) return 0;                                         \
      uint64_t index = request[NM_REQUEST_OPERATION], response = NM_NO_OPERATION;                                 \
      if (index < sizeof operations / sizeof *operations && operations[index].size == request[NM_REQUEST_SIZE] && \
          operations[index].out_size == request[NM_REQUEST_OUT_SIZE] &&                                           \
          request[NM_REQUEST_CAPACITY] >= (operations[index].reduces ? 1 : request[NM_REQUEST_LENGTH]))           \
        response = operations[index].run(request[NM_REQUEST_IN], request[NM_REQUEST_LENGTH], request[NM_REQUEST_OUT]); \
      nm_send_word(nm_register_pipe(1), response);                                                                \
    }                                                                                                             \
  }

#endif

#ifdef NEARMEMORY_HOST_H

// A core that runs a program of operations, and the far memory of its arrays: bytes allocated to arrays, bytes in
// total, and first address.
struct nm_arrays {
  uint64_t core, used, bytes;
  char *far;
};

// An array: first element, length in elements, element size in bytes, and capacity (`room`) in elements. Arrays are
// never freed.
struct nm_array {
  void *far;
  uint64_t length, size, room;
};

// Starts a program of operations with this many bytes of far memory for all arrays. Returns 0 or an enum nm_error.
static inline int nm_arrays_start(struct nm_arrays *arrays, uint64_t core, const char *name, uint64_t bytes) {
  *arrays = (struct nm_arrays){core, 0, bytes, nm_far_alloc(bytes)};
  if (!arrays->far) return NM_TOO_LONG;
  nm_give(core, arrays->far, bytes);
  return nm_spawn(core, name, NULL);
}

// Returns an array of `length` zeroes of `size` bytes each; `far` is NULL if memory is exhausted.
static inline struct nm_array nm_array(struct nm_arrays *arrays, uint64_t length, uint64_t size) {
  uint64_t left = arrays->bytes - arrays->used;
  // The product may overflow a word.
  if (size && length > left / size) return (struct nm_array){NULL, 0, size, 0};
  uint64_t bytes = (length * size + NM_LINE - 1) / NM_LINE * NM_LINE;
  if (bytes > left) return (struct nm_array){NULL, 0, size, 0};
  arrays->used += bytes;
  return (struct nm_array){arrays->far + arrays->used - bytes, length, size, length};
}

// Element of an array, as an lvalue.
#define NM_ELEMENT(type, array, index) (((volatile type *)(array).far)[index])

// Runs an operation on all elements and returns the length of the result. Returns -1 if the program lacks the operation
// for these element sizes, the capacity of the result is insufficient, or the program has ended. The result may
// overwrite elements of the array that are no longer needed.
static inline int64_t nm_do(struct nm_arrays *arrays, uint64_t operation, struct nm_array in, struct nm_array *out) {
  uint64_t request[NM_REQUEST_WORDS] = {operation,           (uintptr_t)in.far, in.length, in.size,
                                        (uintptr_t)out->far, out->room,         out->size};
  uint64_t response = NM_NO_OPERATION;
  // Write back dirty lines to far memory, and invalidate stale copies.
  nm_flush_all(in.far, in.room * in.size);
  nm_flush_all(out->far, out->room * out->size);
  if (!nm_runs(arrays->core)) return -1;
  for (int i = 0; i < NM_REQUEST_WORDS; i++) nm_send_word(nm_registers_of(arrays->core, 0), request[i]);
  int found;
  while ((found = nm_try_receive_word(nm_registers_of(arrays->core, 1), &response)) == 0) {
    if (!nm_runs(arrays->core)) return -1;
    nm_relax();
  }
  if (response == NM_NO_OPERATION) return -1;
  out->length = response;
  return (int64_t)response;
}

// Ends the program: returns 0 if it ended by itself, -1 otherwise.
static inline int nm_arrays_end(struct nm_arrays *arrays) {
  nm_end_words(nm_registers_of(arrays->core, 0));
  return nm_wait(arrays->core, NULL) == NM_EXITED ? 0 : -1;
}

#endif

#endif
