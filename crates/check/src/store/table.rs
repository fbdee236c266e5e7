//! The hash table of state numbers, in regions that threads fill side by side and that grow one by one.
//!
//! A region is a row of buckets of one cache line each: twelve entries and a byte of each one's hash.
//! A state whose bucket is full goes to the next one. So most look-ups touch one line of the table,
//! and one of the states where the byte of the hash agrees.

/// The table is cut into this many regions by the hash's highest bits.
pub(crate) const REGIONS: usize = 64;

/// Marks an entry whose state has no number yet: the rest is the number of a candidate.
pub(crate) const CANDIDATE: u32 = 1 << 31;

const LANES: usize = 12;

#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Bucket {
    /// A byte of each entry's hash, 0 where free. The last four are never used.
    tags: [u8; 16],
    entries: [u32; LANES],
}

/// The hash of a packed state; the same on every machine.
#[inline(always)]
pub(crate) fn hash(words: &[u64]) -> u64 {
    #[inline(always)]
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
#[inline(always)]
pub(crate) fn region_of(hash: u64) -> usize {
    (hash >> 58) as usize
}

#[inline(always)]
fn tag_of(hash: u64) -> u8 {
    ((hash >> 32) as u8).max(1)
}

/// Asks for the cache line at an address; where this cannot be asked for, nothing happens.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program can see, and any address will do.
    unsafe {
        std::arch::x86_64::_mm_prefetch(at.cast::<i8>(), std::arch::x86_64::_MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// A bit for each byte that is this one.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn equal_bytes(bytes: &[u8; 16], byte: u8) -> u32 {
    use std::arch::x86_64::*;
    // SAFETY: every processor of this kind has these instructions, and sixteen bytes are there to be read.
    unsafe {
        let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8))) as u32
    }
}

/// A bit for each byte that is this one.
#[cfg(not(target_arch = "x86_64"))]
fn equal_bytes(bytes: &[u8; 16], byte: u8) -> u32 {
    let bit = |lane: usize| ((bytes[lane] == byte) as u32) << lane;
    (0..16).fold(0, |bits, lane| bits | bit(lane))
}

impl Bucket {
    /// A bit for each lane with this tag.
    #[inline(always)]
    fn lanes(&self, tag: u8) -> u32 {
        equal_bytes(&self.tags, tag) & ((1 << LANES) - 1)
    }
}

/// A free place in a region, until the region grows.
#[derive(Clone, Copy)]
pub(crate) struct Free {
    bucket: u32,
    lane: u32,
}

/// One region of the table.
pub(crate) struct Region {
    buckets: Vec<Bucket>,
    count: usize,
}

/// Buckets after the next growth. Growing by a third keeps at least 58 % of the lanes in use.
fn larger(buckets: usize) -> usize {
    buckets + (buckets / 3).max(1)
}

/// How many entries this many buckets may hold.
fn room(buckets: usize) -> usize {
    buckets * LANES * 7 / 8
}

impl Default for Region {
    fn default() -> Self {
        Region {
            buckets: vec![Bucket::default()],
            count: 0,
        }
    }
}

impl Region {
    /// Bytes that a region with as many entries takes.
    pub fn memory(&self) -> u64 {
        let mut buckets = 1;
        while room(buckets) < self.count {
            buckets = larger(buckets);
        }
        (buckets * size_of::<Bucket>()) as u64
    }

    #[inline(always)]
    fn first(&self, hash: u64) -> usize {
        (((hash & 0xffff_ffff) * self.buckets.len() as u64) >> 32) as usize
    }

    /// Asks for the line where a hash is looked for.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        prefetch(self.buckets.as_ptr().wrapping_add(self.first(hash)));
    }

    /// The first entry that may be the one looked for.
    #[inline(always)]
    pub fn guess(&self, hash: u64) -> Option<u32> {
        let bucket = &self.buckets[self.first(hash)];
        let lanes = bucket.lanes(tag_of(hash));
        bucket.entries.get(lanes.trailing_zeros() as usize).copied()
    }

    /// Looks for an entry that `same` accepts; else gives the free place for it.
    #[inline(always)]
    pub fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Result<u32, Free> {
        let tag = tag_of(hash);
        let mut at = self.first(hash);
        loop {
            let bucket = &self.buckets[at];
            let mut lanes = bucket.lanes(tag);
            while lanes != 0 {
                let entry = bucket.entries[lanes.trailing_zeros() as usize];
                if same(entry) {
                    return Ok(entry);
                }
                lanes &= lanes - 1;
            }
            let free = bucket.lanes(0);
            if free != 0 {
                return Err(Free {
                    bucket: at as u32,
                    lane: free.trailing_zeros(),
                });
            }
            at += 1;
            if at == self.buckets.len() {
                at = 0;
            }
        }
    }

    /// Makes room for one more entry.
    #[inline(always)]
    pub fn reserve(&mut self, states: &impl Hashes) {
        if self.count >= room(self.buckets.len()) {
            self.rebuild(larger(self.buckets.len()), states, |_| true);
        }
    }

    /// Puts an entry at a place that [`Region::find`] gave. There must be room; see [`Region::reserve`].
    #[inline(always)]
    pub fn fill(&mut self, free: Free, hash: u64, entry: u32) {
        let bucket = &mut self.buckets[free.bucket as usize];
        bucket.tags[free.lane as usize] = tag_of(hash);
        bucket.entries[free.lane as usize] = entry;
        self.count += 1;
    }

    /// Puts another entry in an entry's place.
    pub fn replace(&mut self, hash: u64, entry: u32, by: u32) {
        let mut at = self.first(hash);
        loop {
            let bucket = &mut self.buckets[at];
            if let Some(found) = bucket.entries.iter_mut().find(|found| **found == entry) {
                *found = by;
                return;
            }
            at += 1;
            if at == self.buckets.len() {
                at = 0;
            }
        }
    }

    /// Takes all candidates out.
    pub fn forget_candidates(&mut self, states: &impl Hashes) {
        self.rebuild(self.buckets.len(), states, |entry| entry & CANDIDATE == 0);
    }

    #[cold]
    fn rebuild(&mut self, buckets: usize, states: &impl Hashes, keep: impl Fn(u32) -> bool) {
        let old = std::mem::replace(&mut self.buckets, vec![Bucket::default(); buckets]);
        self.count = 0;
        // In groups, so that the states are fetched side by side.
        let mut entries = Vec::with_capacity(16 * LANES);
        for group in old.chunks(16) {
            entries.clear();
            for bucket in group {
                for (&entry, &tag) in bucket.entries.iter().zip(&bucket.tags) {
                    if tag != 0 && keep(entry) {
                        states.prefetch(entry);
                        entries.push(entry);
                    }
                }
            }
            for &entry in &entries {
                let hash = states.hash(entry);
                if let Err(free) = self.find(hash, |_| false) {
                    self.fill(free, hash, entry);
                }
            }
        }
    }
}

/// Knows the hashes of the states that entries stand for.
pub(crate) trait Hashes {
    /// Asks for what the hash is made of.
    fn prefetch(&self, entry: u32);
    /// The hash of an entry's state.
    fn hash(&self, entry: u32) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries that are the states themselves.
    struct Numbers;

    impl Hashes for Numbers {
        fn prefetch(&self, _: u32) {}

        fn hash(&self, entry: u32) -> u64 {
            hash(&[(entry & !CANDIDATE) as u64])
        }
    }

    #[test]
    fn entries_are_found_while_a_region_grows_and_candidates_are_forgotten() {
        let mut region = Region::default();
        let mark = |n: u32| n | if n.is_multiple_of(3) { CANDIDATE } else { 0 };
        for n in 0..5000 {
            let hash = Numbers.hash(n);
            region.reserve(&Numbers);
            let found = region.find(hash, |entry| entry == mark(n));
            region.fill(found.err().unwrap(), hash, mark(n));
        }
        let has =
            |region: &Region, n: u32| region.find(Numbers.hash(n), |entry| entry == n).is_ok();
        assert!((0..5000).all(|n| has(&region, n) == (n % 3 != 0)));
        assert_eq!(region.memory(), (region.buckets.len() * 64) as u64);
        region.replace(Numbers.hash(3000), mark(3000), 3000);
        region.forget_candidates(&Numbers);
        assert!((0..5000).all(|n| has(&region, n) == (n % 3 != 0 || n == 3000)));
        assert_eq!(region.count, 3334);
    }
}
