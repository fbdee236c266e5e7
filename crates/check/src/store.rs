//! Where reached states are kept: packed bytes in the order of discovery, a hash table of their
//! numbers, and who found whom in a quarter of a byte per state.

use crate::program::Packing;

/// The table is cut into this many regions by the hash's highest bits; threads insert into different ones.
pub(crate) const REGIONS: usize = 64;

/// Marks a table entry whose state has no number yet: the rest is the number of a candidate.
pub(crate) const CANDIDATE: u32 = 1 << 31;

/// The most states that can be numbered.
pub(crate) const MOST_STATES: u64 = CANDIDATE as u64;

/// The hash of a packed state; the same on every machine.
#[inline]
pub(crate) fn hash(words: &[u64]) -> u64 {
    fn fold(a: u64, b: u64) -> u64 {
        let product = a as u128 * b as u128;
        product as u64 ^ (product >> 64) as u64
    }
    let mut h = 0x9e37_79b9_7f4a_7c15;
    for &word in words {
        h = fold(h ^ word, 0xd6e8_feb8_6659_fd93);
    }
    fold(h, 0xa076_1d64_78bd_642f)
}

/// The region of a hash.
#[inline]
pub(crate) fn region_of(hash: u64) -> usize {
    (hash >> 58) as usize
}

/// All states reached so far, numbered from 0 in the order in which a search with one thread finds them.
pub(crate) struct Store {
    /// Bytes per state.
    stride: usize,
    words: usize,
    arena: Vec<u8>,
    count: usize,
    pub genealogy: Genealogy,
    /// Entries per region.
    capacity: usize,
    /// One byte of each entry's hash, 0 where free.
    tags: Vec<u8>,
    entries: Vec<u32>,
    counts: Vec<usize>,
}

/// One region of the table, to be filled by one thread.
pub(crate) struct Region<'a> {
    pub tags: &'a mut [u8],
    pub entries: &'a mut [u32],
    pub count: &'a mut usize,
}

const FIRST_CAPACITY: usize = 16;

/// How many entries of a region may be in use.
fn room(capacity: usize) -> usize {
    capacity - capacity / 8
}

fn larger(capacity: usize) -> usize {
    capacity + capacity / 2
}

#[inline]
fn tag_of(hash: u64) -> u8 {
    ((hash >> 32) as u8).max(1)
}

/// Looks in one region for an entry that `same` accepts; else gives the free position for it.
#[inline]
pub(crate) fn probe(
    tags: &[u8],
    entries: &[u32],
    hash: u64,
    same: impl Fn(u32) -> bool,
) -> Result<u32, usize> {
    let capacity = tags.len();
    let tag = tag_of(hash);
    let mut at = (((hash & 0xffff_ffff) * capacity as u64) >> 32) as usize;
    loop {
        let found = tags[at];
        if found == 0 {
            return Err(at);
        }
        if found == tag && same(entries[at]) {
            return Ok(entries[at]);
        }
        at += 1;
        if at == capacity {
            at = 0;
        }
    }
}

impl Region<'_> {
    /// Puts an entry at a free position that [`probe`] gave.
    #[inline]
    pub fn fill(&mut self, at: usize, hash: u64, entry: u32) {
        self.tags[at] = tag_of(hash);
        self.entries[at] = entry;
        *self.count += 1;
    }
}

/// The stored bytes of packed words.
#[inline]
fn same_bytes(stored: &[u8], words: &[u64]) -> bool {
    let (whole, rest) = stored.as_chunks::<8>();
    whole
        .iter()
        .zip(words)
        .all(|(bytes, &word)| u64::from_le_bytes(*bytes) == word)
        && (rest.is_empty() || *rest == words[whole.len()].to_le_bytes()[..rest.len()])
}

impl Store {
    pub fn new(packing: &Packing) -> Store {
        Store {
            stride: packing.bytes,
            words: packing.words,
            arena: Vec::new(),
            count: 0,
            genealogy: Genealogy::default(),
            capacity: FIRST_CAPACITY,
            tags: vec![0; REGIONS * FIRST_CAPACITY],
            entries: vec![0; REGIONS * FIRST_CAPACITY],
            counts: vec![0; REGIONS],
        }
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Bytes that the states and their table take; depends on the number of states alone.
    pub fn memory(&self) -> u64 {
        let mut capacity = FIRST_CAPACITY;
        while room(capacity) * REGIONS < self.count {
            capacity = larger(capacity);
        }
        (self.arena.len() + capacity * REGIONS * 5 + self.genealogy.bits.len() * 8) as u64
    }

    fn bytes(&self, state: usize) -> &[u8] {
        &self.arena[state * self.stride..(state + 1) * self.stride]
    }

    /// Reads a state.
    #[inline]
    pub fn read(&self, state: usize, words: &mut [u64]) {
        let (whole, rest) = self.bytes(state).as_chunks::<8>();
        for (word, bytes) in words.iter_mut().zip(whole) {
            *word = u64::from_le_bytes(*bytes);
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            words[whole.len()] = u64::from_le_bytes(last);
        }
    }

    /// Whether a stored state is the packed one.
    #[inline]
    pub fn is(&self, state: usize, words: &[u64]) -> bool {
        same_bytes(self.bytes(state), words)
    }

    /// The number of a state, or the position in its region where it should stand.
    #[inline]
    pub fn find(&self, hash: u64, words: &[u64]) -> Result<u32, usize> {
        let first = region_of(hash) * self.capacity;
        let tags = &self.tags[first..first + self.capacity];
        let entries = &self.entries[first..first + self.capacity];
        probe(tags, entries, hash, |state| self.is(state as usize, words))
    }

    /// Adds a state at the position that [`Store::find`] gave.
    pub fn insert(&mut self, at: usize, hash: u64, words: &[u64], parent: u64) {
        let number = self.append(words, parent);
        let region = region_of(hash);
        let at = region * self.capacity + at;
        self.tags[at] = tag_of(hash);
        self.entries[at] = number;
        self.counts[region] += 1;
        if self.counts[region] >= room(self.capacity) {
            self.grow(larger(self.capacity));
        }
    }

    /// Adds a state without an entry in the table; gives its number.
    pub fn append(&mut self, words: &[u64], parent: u64) -> u32 {
        let end = self.arena.len() + self.stride;
        for word in words {
            let left = (end - self.arena.len()).min(8);
            self.arena.extend_from_slice(&word.to_le_bytes()[..left]);
        }
        self.genealogy.birth(parent);
        self.count += 1;
        self.count as u32 - 1
    }

    /// Makes room for this many more states in each region.
    pub fn reserve(&mut self, more: &[usize; REGIONS]) {
        let fits =
            |capacity: usize| (0..REGIONS).all(|r| self.counts[r] + more[r] < room(capacity));
        let mut capacity = self.capacity;
        while !fits(capacity) {
            capacity = larger(capacity);
        }
        if capacity != self.capacity {
            self.grow(capacity);
        }
    }

    fn grow(&mut self, capacity: usize) {
        self.capacity = capacity;
        // The old table is given back before the new one is touched.
        self.tags = Vec::new();
        self.entries = Vec::new();
        self.tags.resize(REGIONS * capacity, 0);
        self.entries.resize(REGIONS * capacity, 0);
        self.counts.fill(0);
        let mut words = vec![0; self.words];
        for state in 0..self.count {
            self.read(state, &mut words);
            let hash = hash(&words);
            let region = region_of(hash);
            let first = region * capacity;
            let tags = &self.tags[first..first + capacity];
            if let Err(at) = probe(tags, &self.entries[first..first + capacity], hash, |_| {
                false
            }) {
                self.tags[first + at] = tag_of(hash);
                self.entries[first + at] = state as u32;
            }
            self.counts[region] += 1;
        }
    }

    /// The regions, to be filled side by side, and a way to look at the states meanwhile.
    pub fn regions(&mut self) -> (Vec<Region<'_>>, Stored<'_>) {
        let tags = self.tags.chunks_exact_mut(self.capacity);
        let entries = self.entries.chunks_exact_mut(self.capacity);
        let regions = tags.zip(entries).zip(&mut self.counts);
        let regions = regions.map(|((tags, entries), count)| Region {
            tags,
            entries,
            count,
        });
        (
            regions.collect(),
            Stored {
                arena: &self.arena,
                stride: self.stride,
            },
        )
    }

    /// Takes an entry back. Only sound if all entries made after it are taken back as well.
    pub fn remove(&mut self, region: usize, at: usize) {
        self.tags[region * self.capacity + at] = 0;
        self.counts[region] -= 1;
    }

    /// Gives an entry that stands for a candidate its number.
    pub fn number(&mut self, region: usize, at: usize, state: u32) {
        self.entries[region * self.capacity + at] = state;
    }
}

/// The states themselves, without their table.
pub(crate) struct Stored<'a> {
    arena: &'a [u8],
    stride: usize,
}

impl Stored<'_> {
    pub fn is(&self, state: usize, words: &[u64]) -> bool {
        same_bytes(
            &self.arena[state * self.stride..(state + 1) * self.stride],
            words,
        )
    }
}

/// Who found whom. States are numbered in the order in which their parents are expanded,
/// so a bit per parent and a bit per child say it all: a one goes on to the next parent, a zero is a child.
#[derive(Default)]
pub(crate) struct Genealogy {
    bits: Vec<u64>,
    len: usize,
    parent: u64,
}

impl Genealogy {
    fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.bits.push(0);
        }
        self.bits[self.len / 64] |= (bit as u64) << (self.len % 64);
        self.len += 1;
    }

    /// The next child has this parent: 0 for start states, else the parent's number plus one.
    fn birth(&mut self, parent: u64) {
        while self.parent < parent {
            self.push(true);
            self.parent += 1;
        }
        self.push(false);
    }

    /// The parent of a state; `None` for a start state.
    pub fn parent(&self, state: usize) -> Option<usize> {
        let mut zeros = 0;
        for (i, &word) in self.bits.iter().enumerate() {
            let here = word.count_zeros() as usize;
            if zeros + here <= state {
                zeros += here;
                continue;
            }
            // The state's zero is in this word; ones before it count its parent.
            let mut rest = word;
            for bit in 0..64 {
                if rest & 1 == 0 {
                    if zeros == state {
                        let ones = i * 64 + bit - state;
                        return ones.checked_sub(1);
                    }
                    zeros += 1;
                }
                rest >>= 1;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn genealogy_remembers_every_parent() {
        let mut genealogy = Genealogy::default();
        let parents: Vec<u64> = (0..1000u64)
            .map(|i| if i < 3 { 0 } else { i * i / 1500 + 1 })
            .collect();
        parents.iter().for_each(|&p| genealogy.birth(p));
        for (child, &parent) in parents.iter().enumerate() {
            assert_eq!(genealogy.parent(child), (parent as usize).checked_sub(1));
        }
    }
}
