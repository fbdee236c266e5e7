//! Tag arrays of set-associative caches: the line in each way, the entry of each line, and LRU replacement.

use crate::message::Line;
use cohkit_base::memory::{prefetch, request_huge_pages};

/// Maximum number of ways of a cache: the order of use of a set is one word of 16 nibbles.
pub const WAYS: usize = 16;

/// Index of a way among the ways of all sets of all caches: [`WAYS`] times the set, plus the way.
pub type Slot = usize;

/// Entry of the line in a way. The entry of a line that has just been inserted is all zeros.
pub type TagEntry = [u32; 4];

/// Shape of a number of equal caches.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Number of caches.
    pub caches: usize,
    /// Number of sets of each cache, a power of two; 0 only if there are no caches.
    pub sets: u32,
    /// Ways of each set, at most [`WAYS`]; 0 for a cache without any room.
    pub ways: u32,
    /// True if upper address bits are folded into the set index.
    pub hashed: bool,
}

/// First cache and set of a shape.
#[derive(Clone, Copy)]
struct ShapeStart {
    /// First cache of the shape.
    cache: usize,
    /// Its first set among the sets of all caches.
    set: usize,
    /// Shape of these caches.
    shape: Shape,
}

/// Tags of caches with LRU replacement; the caches of one shape are contiguous.
pub struct Tags {
    /// Shapes in descending order of their first cache.
    shapes: Vec<ShapeStart>,
    /// All sets, each contiguous because its parts are used together. A set has three parts. The first is the line plus
    /// 1 of each way, or 0 ([`Tags::tags`]). Then follow the order of use and the number of lines ([`USE_OFFSET`]), and the
    /// entry of each way's line, from [`ENTRIES`] on. Unused sets are all zeros and occupy no memory.
    storage: Vec<TagEntry>,
    /// Index of the first set, aligned to a cache line of the host.
    begin: usize,
    /// Length of a set, in whole cache lines of the host; all sets have that of the shape with the most ways.
    stride: usize,
    /// Number of lines in all caches.
    lines: u64,
}

/// Offset of the order of use and the number of lines in a set. The order lists the ways from the most (lowest nibble)
/// to the least recently used, XORed with [`ORDER`], in two halves.
const USE_OFFSET: usize = WAYS / 4;
/// Offset of the entry of the first way in a set.
const ENTRIES: usize = USE_OFFSET + 1;

/// Order of the ways of an unused set.
const ORDER: u64 = 0xfedc_ba98_7654_3210;

/// Folds the upper bits of a line number into the lowest `bits`, which are the set index of a hashed cache. The
/// function is its own inverse.
#[inline(always)]
pub fn folded(line: Line, bits: u32) -> Line {
    let upper = line.checked_shr(bits).unwrap_or(0) ^ line.checked_shr(2 * bits).unwrap_or(0);
    line ^ upper & !u32::MAX.checked_shl(bits).unwrap_or(0)
}

impl Tags {
    /// Creates the empty caches of each shape, numbered in the order of the shapes.
    pub fn new(shapes: impl Iterator<Item = Shape>) -> Tags {
        let (mut cache, mut set, mut ways) = (0, 0, 0);
        let place_shape = |shape: Shape| {
            let start = ShapeStart { cache, set, shape };
            cache += shape.caches;
            set += shape.caches * shape.sets as usize;
            ways = ways.max(shape.ways as usize);
            start
        };
        let mut shapes: Vec<ShapeStart> = shapes.map(place_shape).collect();
        shapes.reverse();
        let stride = (ENTRIES + ways).next_multiple_of(4);
        let mut storage = vec![[0; 4]; set * stride + 3];
        request_huge_pages(&mut storage);
        let begin = storage.as_ptr().align_offset(64) % 4;
        Tags {
            shapes,
            storage,
            begin,
            stride,
            lines: 0,
        }
    }

    /// Returns the shape of a cache and its position. There is at least one shape.
    #[inline(always)]
    fn shape_of(&self, cache: usize) -> &ShapeStart {
        match &self.shapes[..] {
            [only] => only,
            shapes => {
                let start = shapes.iter().find(|start| start.cache <= cache);
                start.unwrap_or(&shapes[0])
            }
        }
    }

    /// Number of ways of each set of a cache.
    #[inline(always)]
    fn ways(&self, cache: usize) -> usize {
        self.shape_of(cache).shape.ways as usize
    }

    /// Returns the set of a line, as an index among the sets of all caches.
    #[inline(always)]
    fn set(&self, cache: usize, line: Line) -> usize {
        let start = self.shape_of(cache);
        let sets = start.shape.sets;
        let index = match start.shape.hashed {
            true => folded(line, sets.trailing_zeros().max(1)),
            false => line,
        };
        start.set + (cache - start.cache) * sets as usize + (index & (sets - 1)) as usize
    }

    /// Returns the index of a set's first word in `storage`.
    #[inline(always)]
    fn set_offset(&self, set: usize) -> usize {
        self.begin + set * self.stride
    }

    /// Returns the tags of a set: the line plus 1 of each way, or 0 for a free one.
    #[inline(always)]
    fn tags(&self, set: usize) -> &[u32] {
        self.storage[self.set_offset(set)..][..USE_OFFSET].as_flattened()
    }

    /// Returns the tag of a slot.
    #[inline(always)]
    fn tag(&mut self, slot: Slot) -> &mut u32 {
        let offset = self.set_offset(slot / WAYS);
        &mut self.storage[offset + slot % WAYS / 4][slot % 4]
    }

    /// Returns the ways of a set from the most (lowest nibble) to the least recently used.
    #[inline(always)]
    fn order(&self, set: usize) -> u64 {
        let [low, high, ..] = self.storage[self.set_offset(set) + USE_OFFSET];
        (u64::from(low) | u64::from(high) << 32) ^ ORDER
    }

    /// Number of lines in the set of a slot.
    #[inline(always)]
    fn line_count(&mut self, slot: Slot) -> &mut u32 {
        let offset = self.set_offset(slot / WAYS);
        &mut self.storage[offset + USE_OFFSET][2]
    }

    /// Returns the entry of the line in a slot. Meaningless if the slot is free.
    #[inline(always)]
    pub fn entry(&self, slot: Slot) -> TagEntry {
        self.storage[self.set_offset(slot / WAYS) + ENTRIES + slot % WAYS]
    }

    /// Sets the entry of the line in a slot.
    #[inline(always)]
    pub fn set_entry(&mut self, slot: Slot, entry: TagEntry) {
        let offset = self.set_offset(slot / WAYS);
        self.storage[offset + ENTRIES + slot % WAYS] = entry;
    }

    /// Prefetches the tags of a line's set into the host's caches.
    #[inline]
    pub fn prefetch_tags(&self, cache: usize, line: Line) {
        let offset = self.set_offset(self.set(cache, line));
        prefetch(&self.storage[offset]);
        prefetch(&self.storage[offset + USE_OFFSET]);
    }

    /// Prefetches the present or future entry of a line into the host's caches.
    #[inline]
    pub fn prefetch(&self, cache: usize, line: Line) {
        let slot = (self.find(cache, line)).or_else(|| self.vacancy(cache, line));
        if let Some(slot) = slot {
            prefetch(&self.storage[self.set_offset(slot / WAYS) + ENTRIES + slot % WAYS]);
        }
    }

    /// Returns the slot of a line in a cache, if the cache holds it.
    #[inline]
    pub fn find(&self, cache: usize, line: Line) -> Option<Slot> {
        let set = self.set(cache, line);
        // All ways are compared at once, so that the compiler vectorises the loop.
        let mut matches = 0u32;
        for (way, &tag) in self.tags(set).iter().enumerate() {
            matches |= u32::from(tag == line + 1) << way;
        }
        match matches {
            0 => None,
            matches => Some(set * WAYS + matches.trailing_zeros() as usize),
        }
    }

    /// Returns a free slot of a cache for a line, if there is one.
    #[inline(always)]
    pub fn vacancy(&self, cache: usize, line: Line) -> Option<Slot> {
        let set = self.set(cache, line);
        let ways = self.ways(cache);
        if self.storage[self.set_offset(set) + USE_OFFSET][2] as usize == ways {
            return None;
        }
        let way = self.tags(set)[..ways].iter().position(|&tag| tag == 0);
        way.map(|way| set * WAYS + way)
    }

    /// Iterates over the slots of a line's set, free or not, from the least recently used on.
    #[inline]
    pub fn candidates(&self, cache: usize, line: Line) -> impl Iterator<Item = Slot> {
        let set = self.set(cache, line);
        let (order, ways) = (self.order(set), self.ways(cache));
        let nibble = move |position: usize| (order >> (4 * position) & 15) as usize;
        let ways = (0..WAYS).rev().map(nibble).filter(move |&way| way < ways);
        ways.map(move |way| set * WAYS + way)
    }

    /// Iterates over the slots of all caches that hold a line.
    pub fn occupied_slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let sets = 0..(self.storage.len() - self.begin) / self.stride;
        let sets = sets.filter(|&set| self.storage[self.set_offset(set) + USE_OFFSET][2] > 0);
        let slots = sets.flat_map(|set| set * WAYS..(set + 1) * WAYS);
        slots.filter(|&slot| self.line(slot).is_some())
    }

    /// Iterates over the lines that a cache holds.
    pub fn lines_of(&self, cache: usize) -> impl Iterator<Item = Line> + '_ {
        let start = self.shape_of(cache);
        let sets = start.shape.sets as usize;
        let first = start.set + (cache - start.cache) * sets;
        let slots = (first..first + sets).flat_map(|set| set * WAYS..(set + 1) * WAYS);
        slots.filter_map(|slot| self.line(slot))
    }

    /// Returns the line in a slot, if it holds one.
    #[inline]
    pub fn line(&self, slot: Slot) -> Option<Line> {
        self.tags(slot / WAYS)[slot % WAYS].checked_sub(1)
    }

    /// Inserts a line into a free slot of its set, with an entry of zeros, as the most recently used of its set.
    /// The line must not be in the cache.
    #[inline(always)]
    pub fn insert(&mut self, slot: Slot, line: Line) {
        *self.tag(slot) = line + 1;
        *self.line_count(slot) += 1;
        self.set_entry(slot, [0; 4]);
        self.lines += 1;
        self.touch(slot);
    }

    /// Empties a slot that holds a line.
    #[inline(always)]
    pub fn clear(&mut self, slot: Slot) {
        *self.tag(slot) = 0;
        *self.line_count(slot) -= 1;
        self.lines -= 1;
    }

    /// Makes a slot the most recently used of its set.
    #[inline(always)]
    pub fn touch(&mut self, slot: Slot) {
        let set = slot / WAYS;
        let order = self.order(set);
        let way = (slot % WAYS) as u64;
        if order & 15 == way {
            return;
        }
        // Position of the nibble that equals `way`, which is the zero nibble of the difference.
        let difference = order ^ (way * 0x1111_1111_1111_1111);
        let zero_nibble =
            difference.wrapping_sub(0x1111_1111_1111_1111) & !difference & 0x8888_8888_8888_8888;
        let position = zero_nibble.trailing_zeros() / 4;
        let lower = (1u64 << (4 * position)) - 1;
        let upper = !(lower << 4 | 15);
        let order = ((order & upper) | (order & lower) << 4 | way) ^ ORDER;
        let offset = self.set_offset(set);
        let use_order = &mut self.storage[offset + USE_OFFSET];
        (use_order[0], use_order[1]) = (order as u32, (order >> 32) as u32);
    }

    /// Number of lines in all caches.
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Caches of a single shape.
    fn one_shape(caches: usize, sets: u32, ways: u32, hashed: bool) -> impl Iterator<Item = Shape> {
        std::iter::once(Shape {
            caches,
            sets,
            ways,
            hashed,
        })
    }

    use crate::data::Random;

    /// The packed order of use agrees with a list that moves each touched slot to its front.
    #[test]
    fn the_order_is_that_of_a_list() {
        let mut tags = Tags::new(one_shape(1, 1, 16, false));
        let mut list: Vec<Slot> = (0..16).collect();
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let slot = random.below(16) as Slot;
            tags.touch(slot);
            list.retain(|&listed| listed != slot);
            list.insert(0, slot);
            let order: Vec<Slot> = tags.candidates(0, 0).collect();
            assert!(order.iter().eq(list.iter().rev()));
        }
    }

    #[test]
    fn tag_lookup_finds_inserted_lines() {
        let mut tags = Tags::new(one_shape(2, 4, 2, true));
        for line in 0..8 {
            let slot = tags.vacancy(1, line).unwrap();
            tags.insert(slot, line);
            tags.set_entry(slot, [line; 4]);
        }
        assert!(tags.vacancy(1, 8).is_none() && tags.vacancy(0, 8).is_some());
        for line in 0..8 {
            let slot = tags.find(1, line).unwrap();
            assert_eq!((tags.line(slot), tags.entry(slot)), (Some(line), [line; 4]));
            assert_eq!(tags.find(0, line), None);
        }
        assert_eq!(tags.candidates(1, 0).count(), 2);
        tags.clear(tags.find(1, 3).unwrap());
        assert_eq!((tags.find(1, 3), tags.lines()), (None, 7));
        assert_eq!(tags.occupied_slots().count(), 7);
    }
}
