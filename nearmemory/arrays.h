// Arrays in far memory, which a core beside it maps, filters and reduces. Nothing is said of lines, caches, copies or stamps: the host
// has no element of an array while a core works on it, and the core has stored all of them when it answers.
//
// A channel program makes its operations of functions of elements, and lists them:
//
//     static int64_t square(int32_t x) { return (int64_t)x * x; }
//     NM_MAP(squares, int32_t, int64_t, square)
//     NM_ARRAYS(4096, squares)
//
// and the host names them by their place in the list. It includes this behind host.h, and a channel program behind channel.h.
// An element has 1, 2, 4 or as many bytes as are a power of two, up to those of a line.

#ifndef NEARMEMORY_ARRAYS_H
#define NEARMEMORY_ARRAYS_H

#include "nearmemory/pipe.h"

#include <string.h>

// What is asked of a core: the operation, where an array is, its length and the bytes of an element, and where the result goes, how
// many elements it has room for, and their bytes.
enum { NM_ASK_OPERATION, NM_ASK_IN, NM_ASK_LENGTH, NM_ASK_SIZE, NM_ASK_OUT, NM_ASK_ROOM, NM_ASK_OUT_SIZE, NM_ASK_WORDS };
// What is answered if the program has no such operation, or one of elements of other sizes, or there is no room for the result.
#define NM_NO_OPERATION UINT64_MAX

#ifdef NEARMEMORY_CHANNEL_H

// Lines of a part that is copied at once. While one is worked on, the next one is fetched, or the one before is stored.
#define NM_PART 32
#define NM_PART_BYTES (NM_PART * NM_LINE)

// Elements that are read one behind the other, from the first lines of the scratchpad.
struct nm_reader {
  uint64_t far, parts, lines, asked, since[2];
};

static inline uint64_t nm_part_lines(uint64_t lines, uint64_t part) {
  return lines - part * NM_PART < NM_PART ? lines - part * NM_PART : NM_PART;
}

static inline void nm_reader_ask(struct nm_reader *reader) {
  uint64_t part = reader->asked++;
  if (part >= reader->parts) return;
  reader->since[part % 2] = nm_now();
  nm_fetch(part % 2 * NM_PART, reader->far + part * NM_PART_BYTES, nm_part_lines(reader->lines, part));
}

static inline struct nm_reader nm_reader(uint64_t far, uint64_t bytes) {
  uint64_t lines = (bytes + NM_LINE - 1) / NM_LINE;
  struct nm_reader reader = {far, (lines + NM_PART - 1) / NM_PART, lines};
  nm_reader_ask(&reader);
  return reader;
}

// A part, which is there; that before it is used no more.
static inline volatile void *nm_reader_part(struct nm_reader *reader, uint64_t part) {
  nm_reader_ask(reader);
  nm_fetched_since(part % 2 * NM_PART, nm_part_lines(reader->lines, part), reader->since[part % 2]);
  return nm_words(part % 2 * NM_PART);
}

// Elements that are written one behind the other, into the lines behind.
struct nm_writer {
  uint64_t far, part, bytes, since[2], lines[2];
};

static inline struct nm_writer nm_writer(uint64_t far) { return (struct nm_writer){.far = far}; }

// Where the next element goes.
static inline volatile void *nm_writer_at(struct nm_writer *writer) {
  return (volatile char *)nm_words((2 + writer->part % 2) * NM_PART) + writer->bytes;
}

static inline void nm_writer_wait(struct nm_writer *writer, uint64_t side) {
  nm_stored_since((2 + side) * NM_PART, writer->lines[side], writer->since[side]);
  writer->lines[side] = 0;
}

static inline void nm_writer_store(struct nm_writer *writer) {
  uint64_t side = writer->part % 2, lines = (writer->bytes + NM_LINE - 1) / NM_LINE;
  if (lines == 0) return;
  writer->since[side] = nm_now();
  writer->lines[side] = lines;
  nm_store((2 + side) * NM_PART, writer->far + writer->part++ * NM_PART_BYTES, lines);
  writer->bytes = 0;
  nm_writer_wait(writer, writer->part % 2);
}

static inline void nm_writer_next(struct nm_writer *writer, uint64_t size) {
  writer->bytes += size;
  if (writer->bytes == NM_PART_BYTES) nm_writer_store(writer);
}

// All of it is in far memory.
static inline void nm_writer_end(struct nm_writer *writer) {
  nm_writer_store(writer);
  nm_writer_wait(writer, 0);
  nm_writer_wait(writer, 1);
}

// An operation: the sizes of elements it is for, whether its result is one element of however many, and what it does; the answer is
// how long the result is.
struct nm_operation {
  uint64_t size, out_size;
  int reduces;
  uint64_t (*run)(uint64_t in, uint64_t length, uint64_t out);
};

// Whether elements of a type fill a line, so that none lies in two parts.
#define NM_FILLS(type)                                                                                            \
  _Static_assert(NM_LINE % sizeof(type) == 0, "an element has 1, 2, 4 or as many bytes as are a power of two, up to 128")

// Goes over all elements of an array.
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

// Of each element another one, by a function.
#define NM_MAP(name, type, out_type, function)                                                                    \
  NM_FILLS(type);                                                                                                 \
  NM_FILLS(out_type);                                                                                             \
  static uint64_t name##_run(uint64_t in, uint64_t length, uint64_t out) {                                        \
    struct nm_writer to = nm_writer(out);                                                                         \
    NM_EACH(type, element, in, length, {                                                                          \
      *(volatile out_type *)nm_writer_at(&to) = function(element);                                                \
      nm_writer_next(&to, sizeof(out_type));                                                                      \
    });                                                                                                           \
    nm_writer_end(&to);                                                                                           \
    return length;                                                                                                \
  }                                                                                                               \
  static const struct nm_operation name = {sizeof(type), sizeof(out_type), 0, name##_run};

// Those elements for which a function is not 0, in their order.
#define NM_FILTER(name, type, function)                                                                           \
  NM_FILLS(type);                                                                                                 \
  static uint64_t name##_run(uint64_t in, uint64_t length, uint64_t out) {                                        \
    struct nm_writer to = nm_writer(out);                                                                         \
    uint64_t kept = 0;                                                                                            \
    NM_EACH(type, element, in, length, {                                                                          \
      if (!function(element)) continue;                                                                           \
      *(volatile type *)nm_writer_at(&to) = element;                                                              \
      nm_writer_next(&to, sizeof(type));                                                                          \
      kept++;                                                                                                     \
    });                                                                                                           \
    nm_writer_end(&to);                                                                                           \
    return kept;                                                                                                  \
  }                                                                                                               \
  static const struct nm_operation name = {sizeof(type), sizeof(type), 0, name##_run};

// One value of all elements, in their order: what a function makes of the value so far, which begins as `first`, and an element. It
// is the first element of the result.
#define NM_REDUCE(name, type, value_type, first, function)                                                        \
  NM_FILLS(type);                                                                                                 \
  static uint64_t name##_run(uint64_t in, uint64_t length, uint64_t out) {                                        \
    struct nm_writer to = nm_writer(out);                                                                         \
    value_type value = first;                                                                                     \
    NM_EACH(type, element, in, length, { value = function(value, element); });                                    \
    *(volatile value_type *)nm_writer_at(&to) = value;                                                            \
    nm_writer_next(&to, sizeof(value_type));                                                                      \
    nm_writer_end(&to);                                                                                           \
    return 1;                                                                                                     \
  }                                                                                                               \
  static const struct nm_operation name = {sizeof(type), sizeof(value_type), 1, name##_run};

// A program that does operations as it is asked.
#define NM_ARRAYS(stack_bytes, ...)                                                                               \
  NM_CHANNEL(stack_bytes, NM_REGISTER_PIPE(0), NM_REGISTER_PIPE(1), NM_GIVEN)                                     \
  int channel(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {                                                   \
    const struct nm_operation operations[] = {__VA_ARGS__};                                                       \
    uint64_t ask[NM_ASK_WORDS];                                                                                   \
    for (;;) {                                                                                                    \
      for (int i = 0; i < NM_ASK_WORDS; i++)                                                                      \
        if (!nm_receive_word(nm_register_pipe(0), &ask[i])) return 0;                                             \
      uint64_t which = ask[NM_ASK_OPERATION], answer = NM_NO_OPERATION;                                           \
      if (which < sizeof operations / sizeof *operations && operations[which].size == ask[NM_ASK_SIZE] &&         \
          operations[which].out_size == ask[NM_ASK_OUT_SIZE] &&                                                   \
          ask[NM_ASK_ROOM] >= (operations[which].reduces ? 1 : ask[NM_ASK_LENGTH]))                               \
        answer = operations[which].run(ask[NM_ASK_IN], ask[NM_ASK_LENGTH], ask[NM_ASK_OUT]);                      \
      nm_send_word(nm_register_pipe(1), answer);                                                                  \
    }                                                                                                             \
  }

#endif

#ifdef NEARMEMORY_HOST_H

// A core with a program of operations, and the far memory of its arrays.
struct nm_arrays {
  uint64_t core, used, bytes;
  char *far;
};

// An array of so many elements, each of so many bytes, with room for so many.
struct nm_array {
  void *far;
  uint64_t length, size, room;
};

// Starts a program of operations, whose arrays have so many bytes together: 0, or an enum nm_error.
static inline int nm_arrays_start(struct nm_arrays *arrays, uint64_t core, const char *name, uint64_t bytes) {
  *arrays = (struct nm_arrays){core, 0, bytes, nm_far_alloc(bytes)};
  if (!arrays->far) return NM_TOO_LONG;
  nm_give(core, arrays->far, bytes);
  return nm_spawn(core, name, NULL);
}

// An array of zeroes; without memory if there is none left.
static inline struct nm_array nm_array(struct nm_arrays *arrays, uint64_t length, uint64_t size) {
  uint64_t left = arrays->bytes - arrays->used;
  // Their product may be beyond what a word holds.
  if (size && length > left / size) return (struct nm_array){NULL, 0, size, 0};
  uint64_t bytes = (length * size + NM_LINE - 1) / NM_LINE * NM_LINE;
  if (bytes > left) return (struct nm_array){NULL, 0, size, 0};
  arrays->used += bytes;
  return (struct nm_array){arrays->far + arrays->used - bytes, length, size, length};
}

// An element, to be read or written.
#define NM_ELEMENT(type, array, index) (((volatile type *)(array).far)[index])

// Does an operation on all elements, and says how many the result has then: -1 if the program has no such operation of these
// elements, the result has less room than may come out, or the program has ended. The result may be in the place of the array itself where its elements are no longer.
static inline int64_t nm_do(struct nm_arrays *arrays, uint64_t operation, struct nm_array in, struct nm_array *out) {
  uint64_t ask[NM_ASK_WORDS] = {operation, (uintptr_t)in.far, in.length, in.size, (uintptr_t)out->far, out->room,
                                out->size};
  uint64_t answer = NM_NO_OPERATION;
  // Far memory gets what was written; what is old then is dropped.
  nm_flush_all(in.far, in.room * in.size);
  nm_flush_all(out->far, out->room * out->size);
  if (!nm_runs(arrays->core)) return -1;
  for (int i = 0; i < NM_ASK_WORDS; i++) nm_send_word(nm_registers_of(arrays->core, 0), ask[i]);
  int found;
  while ((found = nm_try_receive_word(nm_registers_of(arrays->core, 1), &answer)) == 0) {
    if (!nm_runs(arrays->core)) return -1;
    nm_relax();
  }
  if (answer == NM_NO_OPERATION) return -1;
  out->length = answer;
  return (int64_t)answer;
}

// Ends the program: 0 if it has done so by itself.
static inline int nm_arrays_end(struct nm_arrays *arrays) {
  nm_end_words(nm_registers_of(arrays->core, 0));
  return nm_wait(arrays->core, NULL) == NM_EXITED ? 0 : -1;
}

#endif

#endif
