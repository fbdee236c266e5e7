// Performs operations on arrays of many lengths, checks each element, and checks that invalid operations are rejected.

#include "nearmemory/programs/bench.h"

#include "nearmemory/arrays.h"

#include "crates/nearmemory/tests/programs/arrays.h"

static struct nm_arrays arrays;

// Map operations to wider and narrower elements, and a filter in place, on arrays of `length` numbers.
static void numbers(uint64_t length) {
  struct nm_array bytes = nm_array(&arrays, length, 1), words = nm_array(&arrays, length, 8);
  struct nm_array halves = nm_array(&arrays, length, 2);
  require(bytes.far && words.far && halves.far, "no memory for numbers");
  for (uint64_t i = 0; i < length; i++) {
    NM_ELEMENT(uint8_t, bytes, i) = hash(i);
    NM_ELEMENT(uint16_t, halves, i) = hash(i);
  }
  require(nm_do(&arrays, WIDE, bytes, &words) == (int64_t)length, "how many are mapped");
  for (uint64_t i = 0; i < length; i++)
    require(NM_ELEMENT(uint64_t, words, i) == (uint8_t)hash(i) * 3u + 1, "what is mapped to more bytes");
  // Operations must use the host's stores between them, and the host must read new results, not stale copies of earlier
  // ones.
  for (uint64_t round = 0; round < 2; round++) {
    for (uint64_t i = 0; i < length; i += 3) NM_ELEMENT(uint64_t, words, i) = i + round * 100;
    require(nm_do(&arrays, NARROW, words, &bytes) == (int64_t)length, "how many are mapped back");
    for (uint64_t i = 0; i < length; i++) {
      uint64_t word = i % 3 ? (uint8_t)hash(i) * 3u + 1 : i + round * 100;
      require(NM_ELEMENT(uint8_t, bytes, i) == (uint8_t)(word / 5), "what is mapped to fewer bytes");
    }
  }
  // The result overwrites the operand.
  uint64_t kept = 0, found = nm_do(&arrays, ODD, halves, &halves);
  for (uint64_t i = 0; i < length; i++)
    if (hash(i) & 1) require(NM_ELEMENT(uint16_t, halves, kept++) == (uint16_t)hash(i), "what is kept");
  require(kept == found, "how many are kept");
}

// The point of index `i`.
static struct point point(uint64_t i) { return (struct point){(int32_t)hash(i), (int32_t)i, {i}}; }

// Map and filter in place, and a reduction, on `length` structures of 32 bytes.
static void points(uint64_t length) {
  struct nm_array points = nm_array(&arrays, length, sizeof(struct point)), one = nm_array(&arrays, 1, 8);
  require(points.far && one.far, "no memory for points");
  for (uint64_t i = 0; i < length; i++) {
    volatile struct point *at = &NM_ELEMENT(struct point, points, i);
    at->x = point(i).x, at->y = point(i).y, at->rest[0] = i;
  }
  require(nm_do(&arrays, MOVE, points, &points) == (int64_t)length, "how many are moved");
  int64_t kept = nm_do(&arrays, RIGHT, points, &points), expected = 0;
  uint64_t value = 9;
  for (uint64_t i = 0; i < length; i++) {
    struct point moved = {point(i).x + 1, point(i).y * 2};
    if (moved.x % 3) continue;
    volatile struct point *at = &NM_ELEMENT(struct point, points, expected);
    require(at->x == moved.x && at->y == moved.y && at->rest[0] == (uint64_t)(int64_t)point(i).x, "a point");
    value = value * 31 + moved.x + moved.y;
    expected++;
  }
  require(kept == expected, "how many points are kept");
  require(nm_do(&arrays, JOIN, points, &one) == 1 && NM_ELEMENT(uint64_t, one, 0) == value, "what all are reduced to");
}

// Map to elements that fill a line, and a reduction of these, on `length` elements.
static void lines(uint64_t length) {
  struct nm_array words = nm_array(&arrays, length, 8), wide = nm_array(&arrays, length, sizeof(struct wide));
  struct nm_array one = nm_array(&arrays, 1, 8);
  uint64_t value = 0;
  require(words.far && wide.far && one.far, "no memory for lines");
  for (uint64_t i = 0; i < length; i++) {
    NM_ELEMENT(uint64_t, words, i) = hash(i);
    value = value * 7 + hash(i) - ~hash(i);
  }
  require(nm_do(&arrays, GROW, words, &wide) == (int64_t)length, "how many grow");
  require(nm_do(&arrays, MIX, wide, &one) == 1 && NM_ELEMENT(uint64_t, one, 0) == value, "what lines are reduced to");
}

// Sends values of a type through a pipe in the host's own memory, from which this core also receives, up to its
// capacity.
static void typed(uint64_t count) {
  static struct nm_line pipe[9];
  memset(pipe, 0, sizeof pipe);
  struct records_sender out = records_sender((struct nm_pipe *)pipe, 8);
  struct records_receiver in = records_receiver((struct nm_pipe *)pipe, 8);
  struct record record = {0};
  for (uint64_t i = 0; i < count; i++) {
    record.number = i;
    snprintf(record.name, sizeof record.name, "record %lu", (unsigned long)i);
    records_send(&out, record);
  }
  records_end(&out);
  for (uint64_t i = 0; i < count; i++) {
    char name[20];
    snprintf(name, sizeof name, "record %lu", (unsigned long)i);
    require(records_receive(&in, &record) && record.number == i && strcmp(record.name, name) == 0, "a record");
  }
  require(!records_receive(&in, &record) && !records_receive(&in, &record), "the end of records");
}

int main(void) {
  static const uint64_t lengths[] = {0, 1, 3, 31, 127, 128, 129, 512, 1000, 4097};
  require(nm_arrays_start(&arrays, 0, "arrays", 8 << 20) == 0, "the core does not start");
  for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) numbers(lengths[i]);
  for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) points(lengths[i] / 4);
  for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) lines(lengths[i] / 8);
  for (uint64_t count = 0; count < 20; count++) typed(count);
  struct nm_array words = nm_array(&arrays, 10, 8), few = nm_array(&arrays, 9, 1), bytes = nm_array(&arrays, 10, 1);
  require(nm_do(&arrays, NARROW, words, &few) == -1, "less room than is needed");
  require(nm_do(&arrays, NARROW, bytes, &bytes) == -1, "elements of another size");
  require(nm_do(&arrays, MIX + 1, words, &words) == -1, "an operation that is not there");
  require(nm_do(&arrays, NARROW, words, &bytes) == 10, "an operation behind those that are refused");
  require(nm_array(&arrays, 1 << 20, 8).far == NULL, "an array for which no memory is left");
  require(nm_arrays_end(&arrays) == 0, "the core does not end");
  require(nm_do(&arrays, NARROW, words, &bytes) == -1, "an operation behind the end");
  printf("all is right\n");
  return 0;
}
