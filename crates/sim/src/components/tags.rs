//! The tags of a set-associative cache: which line lies in which way, and which one has to go.

use crate::message::Line;

/// Most ways a cache may have: the order of use of a set is one word of 16 nibbles.
pub const WAYS: usize = 16;

/// Number of a way of a set, `set * ways + way`.
pub type Slot = u32;

/// Tags with least-recently-used order.
pub struct Tags {
    ways: usize,
    sets: u32,
    /// Whether upper address bits are folded into the set number.
    hashed: bool,
    /// Of each set, side by side as they are used together: of each way the line plus 1, or 0; the number of lines at
    /// [`USED`]; and from [`RECENT`] on the ways from the most (lowest nibble) to the least recently used, by exclusive
    /// or with [`ORDER`]. Sets that were never used are all zeros, which take no memory.
    kept: Vec<[u32; WAYS + 4]>,
    /// Number of all lines.
    lines: u64,
}

const USED: usize = WAYS;
const RECENT: usize = WAYS + 2;

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
    /// Empty tags. `sets` is a power of two and `ways` at most [`WAYS`].
    pub fn new(sets: u32, ways: u32, hashed: bool) -> Tags {
        Tags {
            ways: ways as usize,
            sets,
            hashed,
            kept: vec![[0; WAYS + 4]; sets as usize],
            lines: 0,
        }
    }

    /// Number of slots to provide for.
    pub fn slots(&self) -> usize {
        self.sets as usize * WAYS
    }

    #[inline(always)]
    fn set(&self, line: Line) -> usize {
        let index = match self.hashed {
            true => folded(line, self.sets.trailing_zeros().max(1)),
            false => line,
        };
        (index & (self.sets - 1)) as usize
    }

    #[inline(always)]
    fn order(&self, set: usize) -> u64 {
        let kept = &self.kept[set];
        (u64::from(kept[RECENT]) | u64::from(kept[RECENT + 1]) << 32) ^ ORDER
    }

    /// Where a line lies.
    #[inline]
    pub fn find(&self, line: Line) -> Option<Slot> {
        let set = self.set(line);
        // All ways are compared at once: the compiler makes vector code of it.
        let mut found = 0u32;
        for (way, &tag) in self.kept[set][..WAYS].iter().enumerate() {
            found |= u32::from(tag == line + 1) << way;
        }
        match found {
            0 => None,
            found => Some((set * WAYS) as Slot + found.trailing_zeros()),
        }
    }

    /// A free slot for a line.
    #[inline(always)]
    pub fn vacancy(&self, line: Line) -> Option<Slot> {
        let set = self.set(line);
        let kept = &self.kept[set];
        if kept[USED] as usize == self.ways {
            return None;
        }
        let way = kept[..self.ways].iter().position(|&tag| tag == 0);
        way.map(|way| (set * WAYS + way) as Slot)
    }

    /// The slots of a line's set, from the least recently used on.
    #[inline]
    pub fn candidates(&self, line: Line) -> impl Iterator<Item = Slot> {
        let set = self.set(line);
        let (order, ways) = (self.order(set), self.ways);
        let nibble = move |place: usize| (order >> (4 * place) & 15) as usize;
        let ways = (0..WAYS).rev().map(nibble).filter(move |&way| way < ways);
        ways.map(move |way| (set * WAYS + way) as Slot)
    }

    /// The slots that hold a line.
    pub fn taken(&self) -> impl Iterator<Item = Slot> + '_ {
        let sets = (0..self.sets).filter(|&set| self.kept[set as usize][USED] > 0);
        let slots = sets.flat_map(|set| set * WAYS as u32..(set + 1) * WAYS as u32);
        slots.filter(|&slot| self.line(slot).is_some())
    }

    /// The line in a slot.
    #[inline]
    pub fn line(&self, slot: Slot) -> Option<Line> {
        self.kept[slot as usize / WAYS][slot as usize % WAYS].checked_sub(1)
    }

    /// Puts a line into a free slot, as the most recently used of its set.
    #[inline(always)]
    pub fn put(&mut self, slot: Slot, line: Line) {
        let kept = &mut self.kept[slot as usize / WAYS];
        kept[slot as usize % WAYS] = line + 1;
        kept[USED] += 1;
        self.lines += 1;
        self.touch(slot);
    }

    /// Empties a slot that holds a line.
    #[inline(always)]
    pub fn clear(&mut self, slot: Slot) {
        let kept = &mut self.kept[slot as usize / WAYS];
        kept[slot as usize % WAYS] = 0;
        kept[USED] -= 1;
        self.lines -= 1;
    }

    /// Makes a slot the most recently used of its set.
    #[inline(always)]
    pub fn touch(&mut self, slot: Slot) {
        let set = slot as usize / WAYS;
        let order = self.order(set);
        let way = u64::from(slot) % WAYS as u64;
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
        let kept = &mut self.kept[set];
        (kept[RECENT], kept[RECENT + 1]) = (order as u32, (order >> 32) as u32);
    }

    /// Number of lines present.
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Random;

    #[test]
    fn the_order_is_that_of_a_list() {
        let mut tags = Tags::new(1, 16, false);
        let mut list: Vec<u32> = (0..16).collect();
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let slot = random.below(16) as u32;
            tags.touch(slot);
            list.retain(|&other| other != slot);
            list.insert(0, slot);
            let order: Vec<u32> = tags.candidates(0).collect();
            assert!(order.iter().eq(list.iter().rev()));
        }
    }

    #[test]
    fn lines_are_found_where_they_were_put() {
        let mut tags = Tags::new(4, 2, true);
        for line in 0..8 {
            let slot = tags.vacancy(line).unwrap();
            tags.put(slot, line);
        }
        assert!(tags.vacancy(8).is_none());
        for line in 0..8 {
            assert_eq!(tags.line(tags.find(line).unwrap()), Some(line));
        }
        assert_eq!(tags.candidates(0).count(), 2);
        tags.clear(tags.find(3).unwrap());
        assert_eq!((tags.find(3), tags.lines()), (None, 7));
    }
}
