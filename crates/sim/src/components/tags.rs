//! The ways of set-associative caches: which line lies in which way, what is kept of it, and which one has to go.

use crate::message::Line;
use cohkit_base::memory::{ask_for_large_pages, prefetch};

/// Most ways a cache may have: the order of use of a set is one word of 16 nibbles.
pub const WAYS: usize = 16;

/// Number of a way of a set of a cache.
pub type Slot = usize;

/// What is kept of the line in a way. All zeros is what is kept of a line that has just been put there.
pub type Kept = [u32; 4];

/// So many equal caches.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many there are.
    pub caches: usize,
    /// Sets of each, a power of two.
    pub sets: u32,
    /// Ways of each set, at most [`WAYS`]; with none there is room for nothing.
    pub ways: u32,
    /// Whether upper address bits are folded into the set number.
    pub hashed: bool,
}

/// Where the caches of a shape begin.
#[derive(Clone, Copy)]
struct Begin {
    /// The first of them.
    cache: usize,
    /// Its first set among those of all caches.
    set: usize,
    shape: Shape,
}

/// Caches with least-recently-used order, all those of a shape one behind the other.
pub struct Tags {
    /// The last shape first.
    shapes: Vec<Begin>,
    /// Of each set of each cache, side by side as they are used together: of each way the line plus 1, or 0
    /// ([`Tags::tags`]); the order of use and the number of lines ([`USE`]); and from [`ENTRIES`] on what is kept of each
    /// way's line. Sets that were never used are all zeros, which take no memory.
    kept: Vec<Kept>,
    /// Where the first set begins, which is where a line of the processor's caches does.
    begin: usize,
    /// What a set takes, in whole lines of the processor's caches; all take as much as that with the most ways.
    stride: usize,
    /// Number of all lines.
    lines: u64,
}

/// The ways from the most (lowest nibble) to the least recently used, by exclusive or with [`ORDER`], in two halves; and the
/// number of lines.
const USE: usize = WAYS / 4;
const ENTRIES: usize = USE + 1;

/// The order of the ways of a set that has not been used.
const ORDER: u64 = 0xfedc_ba98_7654_3210;

/// A line's number with its upper bits folded into so many of the lowest: a hashed cache has them as its number of a set.
/// Folded again it is the line's number.
#[inline(always)]
pub fn folded(line: Line, bits: u32) -> Line {
    let upper = line.checked_shr(bits).unwrap_or(0) ^ line.checked_shr(2 * bits).unwrap_or(0);
    line ^ upper & !u32::MAX.checked_shl(bits).unwrap_or(0)
}

impl Tags {
    /// The empty caches of each shape.
    pub fn new(shapes: impl Iterator<Item = Shape>) -> Tags {
        let (mut cache, mut set, mut ways) = (0, 0, 0);
        let from = |shape: Shape| {
            let from = Begin { cache, set, shape };
            cache += shape.caches;
            set += shape.caches * shape.sets as usize;
            ways = ways.max(shape.ways as usize);
            from
        };
        let mut shapes: Vec<Begin> = shapes.map(from).collect();
        shapes.reverse();
        let stride = (ENTRIES + ways).next_multiple_of(4);
        let mut kept = vec![[0; 4]; set * stride + 3];
        ask_for_large_pages(&mut kept);
        let begin = kept.as_ptr().align_offset(64) % 4;
        Tags {
            shapes,
            kept,
            begin,
            stride,
            lines: 0,
        }
    }

    /// What is true of a cache. There is at least one shape.
    #[inline(always)]
    fn from(&self, cache: usize) -> &Begin {
        match &self.shapes[..] {
            [only] => only,
            shapes => {
                let found = shapes.iter().find(|from| from.cache <= cache);
                found.unwrap_or(&shapes[0])
            }
        }
    }

    /// Ways of each set of a cache.
    #[inline(always)]
    fn ways(&self, cache: usize) -> usize {
        self.from(cache).shape.ways as usize
    }

    /// The set of a line, as its number among those of all caches.
    #[inline(always)]
    fn set(&self, cache: usize, line: Line) -> usize {
        let from = self.from(cache);
        let sets = from.shape.sets;
        let index = match from.shape.hashed {
            true => folded(line, sets.trailing_zeros().max(1)),
            false => line,
        };
        from.set + (cache - from.cache) * sets as usize + (index & (sets - 1)) as usize
    }

    #[inline(always)]
    fn place(&self, set: usize) -> usize {
        self.begin + set * self.stride
    }

    #[inline(always)]
    fn tags(&self, set: usize) -> &[u32] {
        self.kept[self.place(set)..][..USE].as_flattened()
    }

    #[inline(always)]
    fn tag(&mut self, slot: Slot) -> &mut u32 {
        let place = self.place(slot / WAYS);
        &mut self.kept[place + slot % WAYS / 4][slot % 4]
    }

    #[inline(always)]
    fn order(&self, set: usize) -> u64 {
        let [low, high, ..] = self.kept[self.place(set) + USE];
        (u64::from(low) | u64::from(high) << 32) ^ ORDER
    }

    /// How many lines a set holds.
    #[inline(always)]
    fn used(&mut self, slot: Slot) -> &mut u32 {
        let place = self.place(slot / WAYS);
        &mut self.kept[place + USE][2]
    }

    /// What is kept of the line in a slot.
    #[inline(always)]
    pub fn kept(&self, slot: Slot) -> Kept {
        self.kept[self.place(slot / WAYS) + ENTRIES + slot % WAYS]
    }

    /// Keeps this of the line in a slot.
    #[inline(always)]
    pub fn keep(&mut self, slot: Slot, kept: Kept) {
        let place = self.place(slot / WAYS);
        self.kept[place + ENTRIES + slot % WAYS] = kept;
    }

    /// Asks memory for the tags of the set of a line.
    #[inline]
    pub fn prefetch_tags(&self, cache: usize, line: Line) {
        let place = self.place(self.set(cache, line));
        prefetch(&self.kept[place]);
        prefetch(&self.kept[place + USE]);
    }

    /// Asks memory for what is kept of a line, or will be.
    #[inline]
    pub fn prefetch(&self, cache: usize, line: Line) {
        let slot = (self.find(cache, line)).or_else(|| self.vacancy(cache, line));
        if let Some(slot) = slot {
            prefetch(&self.kept[self.place(slot / WAYS) + ENTRIES + slot % WAYS]);
        }
    }

    /// Where a line lies in a cache.
    #[inline]
    pub fn find(&self, cache: usize, line: Line) -> Option<Slot> {
        let set = self.set(cache, line);
        // All ways are compared at once: the compiler makes vector code of it.
        let mut found = 0u32;
        for (way, &tag) in self.tags(set).iter().enumerate() {
            found |= u32::from(tag == line + 1) << way;
        }
        match found {
            0 => None,
            found => Some(set * WAYS + found.trailing_zeros() as usize),
        }
    }

    /// A free slot of a cache for a line.
    #[inline(always)]
    pub fn vacancy(&self, cache: usize, line: Line) -> Option<Slot> {
        let set = self.set(cache, line);
        let ways = self.ways(cache);
        if self.kept[self.place(set) + USE][2] as usize == ways {
            return None;
        }
        let way = self.tags(set)[..ways].iter().position(|&tag| tag == 0);
        way.map(|way| set * WAYS + way)
    }

    /// The slots of a line's set, from the least recently used on.
    #[inline]
    pub fn candidates(&self, cache: usize, line: Line) -> impl Iterator<Item = Slot> {
        let set = self.set(cache, line);
        let (order, ways) = (self.order(set), self.ways(cache));
        let nibble = move |place: usize| (order >> (4 * place) & 15) as usize;
        let ways = (0..WAYS).rev().map(nibble).filter(move |&way| way < ways);
        ways.map(move |way| set * WAYS + way)
    }

    /// The slots of all caches that hold a line.
    pub fn taken(&self) -> impl Iterator<Item = Slot> + '_ {
        let sets = 0..(self.kept.len() - self.begin) / self.stride;
        let sets = sets.filter(|&set| self.kept[self.place(set) + USE][2] > 0);
        let slots = sets.flat_map(|set| set * WAYS..(set + 1) * WAYS);
        slots.filter(|&slot| self.line(slot).is_some())
    }

    /// The lines that a cache holds.
    pub fn lines_of(&self, cache: usize) -> impl Iterator<Item = Line> + '_ {
        let from = self.from(cache);
        let sets = from.shape.sets as usize;
        let first = from.set + (cache - from.cache) * sets;
        let slots = (first..first + sets).flat_map(|set| set * WAYS..(set + 1) * WAYS);
        slots.filter_map(|slot| self.line(slot))
    }

    /// The line in a slot.
    #[inline]
    pub fn line(&self, slot: Slot) -> Option<Line> {
        self.tags(slot / WAYS)[slot % WAYS].checked_sub(1)
    }

    /// Puts a line into a free slot, as the most recently used of its set.
    #[inline(always)]
    pub fn put(&mut self, slot: Slot, line: Line) {
        *self.tag(slot) = line + 1;
        *self.used(slot) += 1;
        self.keep(slot, [0; 4]);
        self.lines += 1;
        self.touch(slot);
    }

    /// Empties a slot that holds a line.
    #[inline(always)]
    pub fn clear(&mut self, slot: Slot) {
        *self.tag(slot) = 0;
        *self.used(slot) -= 1;
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
        // The place of the nibble that equals `way`: the zero nibble of the difference.
        let difference = order ^ (way * 0x1111_1111_1111_1111);
        let zero =
            difference.wrapping_sub(0x1111_1111_1111_1111) & !difference & 0x8888_8888_8888_8888;
        let place = zero.trailing_zeros() / 4;
        let below = (1u64 << (4 * place)) - 1;
        let above = !(below << 4 | 15);
        let order = ((order & above) | (order & below) << 4 | way) ^ ORDER;
        let place = self.place(set);
        let kept = &mut self.kept[place + USE];
        (kept[0], kept[1]) = (order as u32, (order >> 32) as u32);
    }

    /// Number of lines in all caches.
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(caches: usize, sets: u32, ways: u32, hashed: bool) -> impl Iterator<Item = Shape> {
        std::iter::once(Shape {
            caches,
            sets,
            ways,
            hashed,
        })
    }

    use crate::data::Random;

    #[test]
    fn the_order_is_that_of_a_list() {
        let mut tags = Tags::new(of(1, 1, 16, false));
        let mut list: Vec<Slot> = (0..16).collect();
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let slot = random.below(16) as Slot;
            tags.touch(slot);
            list.retain(|&other| other != slot);
            list.insert(0, slot);
            let order: Vec<Slot> = tags.candidates(0, 0).collect();
            assert!(order.iter().eq(list.iter().rev()));
        }
    }

    #[test]
    fn lines_are_found_where_they_were_put() {
        let mut tags = Tags::new(of(2, 4, 2, true));
        for line in 0..8 {
            let slot = tags.vacancy(1, line).unwrap();
            tags.put(slot, line);
            tags.keep(slot, [line; 4]);
        }
        assert!(tags.vacancy(1, 8).is_none() && tags.vacancy(0, 8).is_some());
        for line in 0..8 {
            let slot = tags.find(1, line).unwrap();
            assert_eq!((tags.line(slot), tags.kept(slot)), (Some(line), [line; 4]));
            assert_eq!(tags.find(0, line), None);
        }
        assert_eq!(tags.candidates(1, 0).count(), 2);
        tags.clear(tags.find(1, 3).unwrap());
        assert_eq!((tags.find(1, 3), tags.lines()), (None, 7));
        assert_eq!(tags.taken().count(), 7);
    }
}
