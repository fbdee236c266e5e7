//! Parents of states, in a quarter of a byte per state.

/// Parents of all states. States are numbered in the order in which their parents are expanded. One bit per parent and
/// one per child therefore suffice: a one advances to the next parent, a zero is a child.
#[derive(Default)]
pub(crate) struct ParentMap {
    /// Bits of all parents in order, lowest bit of each word first.
    bits: Vec<u64>,
    /// Number of bits.
    len: usize,
    /// Number of parents so far, each with its bit: the parent of the next child.
    parent: u64,
}

impl ParentMap {
    /// Memory in bytes.
    pub fn memory(&self) -> u64 {
        self.bits.len() as u64 * 8
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Words that hold the bits from `bit` on.
    pub fn words_from(&self, bit: usize) -> &[u64] {
        &self.bits[bit / 64..]
    }

    /// Restores the words of [`ParentMap::words_from`], which hold the bits from `from` to `to`. `children` is the
    /// total number of children afterwards.
    /// Returns false if no search can produce these parents.
    pub fn restore(&mut self, from: usize, words: &[u64], to: usize, children: u64) -> bool {
        if self.len != from || words.len() != to.div_ceil(64) - from / 64 {
            return false;
        }
        // Earlier bits must not change.
        let shared_words = self.words_from(from).first().zip(words.first());
        if shared_words.is_some_and(|(&old, &new)| (old ^ new) & ((1 << (from % 64)) - 1) != 0) {
            return false;
        }
        self.bits.truncate(from / 64);
        self.bits.extend(words);
        let mut child = self.len as u64 - self.parent;
        for bit in from..to {
            match self.bits[bit / 64] >> (bit % 64) & 1 {
                0 => {
                    // A child has a larger number than its parent.
                    if self.parent > child {
                        return false;
                    }
                    child += 1;
                }
                _ => self.parent += 1,
            }
        }
        self.len = to;
        let has_no_excess_bits = to.is_multiple_of(64) || self.bits[to / 64] >> (to % 64) == 0;
        has_no_excess_bits && child == children
    }

    /// Appends bits, at least one and fewer than 64; the higher bits of the word must be zero.
    #[inline(always)]
    fn push(&mut self, bits: u64, count: usize) {
        let shift = self.len % 64;
        match self.bits.last_mut() {
            Some(last) if shift > 0 => {
                *last |= bits << shift;
                if shift + count > 64 {
                    self.bits.push(bits >> (64 - shift));
                }
            }
            _ => self.bits.push(bits),
        }
        self.len += count;
    }

    /// Ends the children of all parents before `parent`.
    #[inline(always)]
    fn advance_to(&mut self, parent: u64) {
        while self.parent < parent {
            let ones = (parent - self.parent).min(63);
            self.push((1 << ones) - 1, ones as usize);
            self.parent += ones;
        }
    }

    /// Appends a child of this parent: 0 for start states, else the parent's number plus one.
    #[inline(always)]
    pub fn append_child(&mut self, parent: u64) {
        self.advance_to(parent);
        self.push(0, 1);
    }

    /// An empty map to append later. Its first children belong to `parent` or a later parent.
    pub fn new_fragment(&self, parent: u64) -> ParentMap {
        ParentMap {
            // Some of this parent's children may be recorded already.
            parent: parent.max(self.parent),
            ..ParentMap::default()
        }
    }

    /// Appends `fragment`, equivalent to pushing each entry.
    pub fn append(&mut self, fragment: &ParentMap) {
        if fragment.len == 0 {
            return;
        }
        let ones: u64 = fragment
            .bits
            .iter()
            .map(|word| word.count_ones() as u64)
            .sum();
        self.advance_to(fragment.parent - ones);
        let shift = self.len % 64;
        for &word in &fragment.bits {
            if shift == 0 {
                self.bits.push(word);
            } else {
                if let Some(last) = self.bits.last_mut() {
                    *last |= word << shift;
                }
                self.bits.push(word >> (64 - shift));
            }
        }
        self.len += fragment.len;
        self.bits.truncate(self.len.div_ceil(64));
        self.parent = fragment.parent;
    }

    /// Number of start states and of children of the states before number `parent`.
    pub fn children_before(&self, parent: u64) -> u64 {
        let mut ones = self.parent;
        let mut end = self.len;
        // Counts from the end, which is close.
        while end > 0 && ones > parent {
            end -= 1;
            ones -= self.bits[end / 64] >> (end % 64) & 1;
        }
        end as u64 - ones
    }

    /// Parent of a state; `None` for a start state.
    pub fn parent(&self, state: usize) -> Option<usize> {
        let mut zeros = 0;
        for (i, &word) in self.bits.iter().enumerate() {
            let zeros_in_word = word.count_zeros() as usize;
            if zeros + zeros_in_word <= state {
                zeros += zeros_in_word;
                continue;
            }
            // The state's zero is in this word; the number of earlier ones is its parent.
            let mut remaining_bits = word;
            for bit in 0..64 {
                if remaining_bits & 1 == 0 {
                    if zeros == state {
                        let ones = i * 64 + bit - state;
                        return ones.checked_sub(1);
                    }
                    zeros += 1;
                }
                remaining_bits >>= 1;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_map_restores_valid_pieces_only() {
        let (mut map, mut copy) = (ParentMap::default(), ParentMap::default());
        let parent = |child: u64| {
            if child < 3 {
                0
            } else {
                child * child / 600 + 1
            }
        };
        let mut child = 0;
        for end in [3, 3, 64, 70, 71, 500] {
            while child < end {
                map.append_child(parent(child));
                child += 1;
            }
            let (from, to) = (copy.len(), map.len());
            let words = map.words_from(from).to_vec();
            assert!(copy.restore(from, &words, to, child));
        }
        assert_eq!(
            (&copy.bits, copy.len, copy.parent),
            (&map.bits, map.len, map.parent)
        );
        // A state that is its own parent; too many children; bits beyond the end; a missing word.
        for (words, to, children) in [
            (vec![0b01], 2, 1),
            (vec![0b0], 1, 2),
            (vec![0b10], 1, 1),
            (vec![], 1, 1),
        ] {
            assert!(
                !ParentMap::default().restore(0, &words, to, children),
                "{words:?}"
            );
        }
        // Different earlier bits.
        let mut words = map.words_from(copy.len()).to_vec();
        words[0] ^= 1;
        assert!(!copy.restore(map.len(), &words, map.len(), child));
    }

    #[test]
    fn parent_map_pieces_equal_one_map() {
        // Children per parent, with parents that have none, in pieces of `piece` parents.
        let children = |parent: u64| (parent * parent / 7 + parent) % 5;
        for piece in [1, 3, 17, 64, 200] {
            let (mut undivided, mut joined) = (ParentMap::default(), ParentMap::default());
            undivided.append_child(0);
            joined.append_child(0);
            // A child that is recorded before the others of its parent.
            undivided.append_child(1);
            joined.append_child(1);
            for first in (1..=400u64).step_by(piece) {
                let mut fragment = joined.new_fragment(first - 1);
                for parent in first..(first + piece as u64).min(401) {
                    for _ in 0..children(parent) {
                        undivided.append_child(parent);
                        fragment.append_child(parent);
                    }
                }
                joined.append(&fragment);
                let joined_contents = (&joined.bits, joined.len, joined.parent);
                assert_eq!(
                    joined_contents,
                    (&undivided.bits, undivided.len, undivided.parent)
                );
            }
        }
    }

    #[test]
    fn parent_map_remembers_every_parent() {
        let mut map = ParentMap::default();
        let parents: Vec<u64> = (0..1000u64)
            .map(|i| if i < 3 { 0 } else { i * i / 1500 + 1 })
            .collect();
        parents.iter().for_each(|&p| map.append_child(p));
        for parent in 0..map.parent + 2 {
            let children = parents.iter().filter(|&&p| p <= parent).count();
            assert_eq!(map.children_before(parent), children as u64);
        }
        for (child, &parent) in parents.iter().enumerate() {
            assert_eq!(map.parent(child), (parent as usize).checked_sub(1));
        }
    }
}
