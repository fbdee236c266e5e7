//! The hash table of state numbers.
//!
//! It is a row of buckets of one cache line each: twelve entries and a byte of each one's hash.
//! A state whose bucket is full goes to the next one. So most look-ups touch one line of the table,
//! and one of the states where the byte of the hash agrees.
//!
//! Any number of threads look entries up and put new ones in side by side ([`Table::claim`]), without a lock:
//! equal states are looked for in the same places in the same order, so only one of them gets in.
//! To grow, the table has to be had alone. It grows where it lies: buckets are in the order of hashes, so each entry
//! moves towards the end, and from the end on there is always room.

use super::pages;
use crate::threads::side_by_side;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Marks an entry whose state has no number yet: the rest is the number of a candidate.
pub(crate) const CANDIDATE: u32 = 1 << 31;

const LANES: usize = 12;

/// Buckets whose states are fetched side by side when the table grows.
const GROUP: usize = 16;

/// That many buckets at the beginning are moved at last, together.
const LAST: usize = 64;

/// Buckets that are worth a thread to move them.
const WORTH_A_THREAD: usize = if cfg!(debug_assertions) { 8 } else { 1 << 12 };

/// Entries are kept with all bits turned over, so that a free place is zero.
#[derive(Default)]
#[repr(C, align(64))]
struct Bucket {
    /// A byte of each entry's hash, 0 where free. The last four are never used.
    tags: [AtomicU64; 2],
    entries: [AtomicU32; LANES],
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

/// A bit for each of sixteen bytes that is this one.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn equal_bytes(bytes: [u64; 2], byte: u8) -> u32 {
    use std::arch::x86_64::*;
    // SAFETY: every processor of this kind has these instructions, which only compute.
    unsafe {
        let bytes = _mm_set_epi64x(bytes[1] as i64, bytes[0] as i64);
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8))) as u32
    }
}

/// A bit for each of sixteen bytes that is this one.
#[cfg(not(target_arch = "x86_64"))]
fn equal_bytes(bytes: [u64; 2], byte: u8) -> u32 {
    let bit = |lane: usize| (((bytes[lane / 8] >> (8 * (lane % 8))) as u8 == byte) as u32) << lane;
    (0..16).fold(0, |bits, lane| bits | bit(lane))
}

impl Bucket {
    #[inline(always)]
    fn tags(&self) -> [u64; 2] {
        // What a tag is for was written before it.
        [0, 1].map(|half: usize| self.tags[half].load(Ordering::Acquire))
    }

    #[inline(always)]
    fn entry(&self, lane: usize) -> u32 {
        !self.entries[lane].load(Ordering::Acquire)
    }

    /// Where a lane's tag lies.
    #[inline(always)]
    fn shift(lane: usize) -> (usize, usize) {
        (lane / 8, 8 * (lane % 8))
    }
}

/// A bit for each lane with this tag.
#[inline(always)]
fn lanes(tags: [u64; 2], tag: u8) -> u32 {
    equal_bytes(tags, tag) & ((1 << LANES) - 1)
}

/// A place in the table, until it grows.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    bucket: u32,
    lane: u32,
}

/// What [`Table::claim`] did.
pub(crate) enum Claimed {
    /// The entry was put at this place.
    New(Place),
    /// This entry is there, at this place.
    Known(u32, Place),
    /// No place is left.
    Full,
}

/// The table.
pub(crate) struct Table {
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

impl Default for Table {
    fn default() -> Self {
        Table {
            buckets: vec![Bucket::default()],
            count: 0,
        }
    }
}

impl Table {
    /// Bytes that a table with as many entries takes.
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
        let lane = lanes(bucket.tags(), tag_of(hash)).trailing_zeros() as usize;
        (lane < LANES).then(|| bucket.entry(lane))
    }

    /// Looks for an entry that `same` accepts; else gives the free place for it.
    /// A full table may be looked through only for what is there.
    #[inline(always)]
    pub fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Result<u32, Place> {
        let tag = tag_of(hash);
        let mut at = self.first(hash);
        loop {
            let bucket = &self.buckets[at];
            let tags = bucket.tags();
            let mut likely = lanes(tags, tag);
            while likely != 0 {
                let entry = bucket.entry(likely.trailing_zeros() as usize);
                if same(entry) {
                    return Ok(entry);
                }
                likely &= likely - 1;
            }
            let free = lanes(tags, 0);
            if free != 0 {
                return Err(Place {
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

    /// Looks for an entry that `same` accepts, and puts this one in if there is none, while others do the same.
    /// `write` is called before the entry can be seen. The table counts it only when [`Table::counted`] is told.
    #[inline(always)]
    pub fn claim(
        &self,
        hash: u64,
        new: u32,
        write: impl FnOnce(),
        mut same: impl FnMut(u32) -> bool,
    ) -> Claimed {
        let mut write = Some(write);
        let tag = tag_of(hash);
        let mut at = self.first(hash);
        for _ in 0..self.buckets.len() {
            let bucket = &self.buckets[at];
            let place = |lane| Place {
                bucket: at as u32,
                lane,
            };
            let tags = bucket.tags();
            let mut likely = lanes(tags, tag);
            while likely != 0 {
                let lane = likely.trailing_zeros();
                let entry = bucket.entry(lane as usize);
                if same(entry) {
                    return Claimed::Known(entry, place(lane));
                }
                likely &= likely - 1;
            }
            let mut free = lanes(tags, 0);
            while free != 0 {
                let lane = free.trailing_zeros();
                if let Some(write) = write.take() {
                    write();
                }
                // Another thread may have been here since the tags were read: then its entry is compared whatever its tag.
                match self.exchange(place(lane), None, new) {
                    Ok(()) => {
                        let (half, shift) = Bucket::shift(lane as usize);
                        bucket.tags[half].fetch_or((tag as u64) << shift, Ordering::Release);
                        return Claimed::New(place(lane));
                    }
                    Err(entry) if same(entry) => return Claimed::Known(entry, place(lane)),
                    Err(_) => free &= free - 1,
                }
            }
            at += 1;
            if at == self.buckets.len() {
                at = 0;
            }
        }
        Claimed::Full
    }

    /// Puts an entry in the place of another, or of none, unless that is no longer there: then gives what is.
    #[inline(always)]
    pub fn exchange(&self, place: Place, old: Option<u32>, new: u32) -> Result<(), u32> {
        let entry = &self.buckets[place.bucket as usize].entries[place.lane as usize];
        // What an entry stands for is written before it and read after it.
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        (entry.compare_exchange(old.map_or(0, |old| !old), !new, success, failure))
            .map(|_| ())
            .map_err(|there| !there)
    }

    /// Asks for the line of a place.
    #[inline(always)]
    pub fn prefetch_place(&self, place: Place) {
        prefetch(self.buckets.as_ptr().wrapping_add(place.bucket as usize));
    }

    /// Puts another entry in an entry's place, while others do the same at other places.
    #[inline(always)]
    pub fn replace(&self, place: Place, by: u32) {
        let entry = &self.buckets[place.bucket as usize].entries[place.lane as usize];
        entry.store(!by, Ordering::Relaxed);
    }

    /// Takes an entry out. Those that were put in after it, whatever their hash, have to be taken out as well.
    pub fn clear(&mut self, place: Place) {
        let bucket = &mut self.buckets[place.bucket as usize];
        let (half, shift) = Bucket::shift(place.lane as usize);
        *bucket.tags[half].get_mut() &= !(0xff << shift);
        *bucket.entries[place.lane as usize].get_mut() = 0;
    }

    /// How many more entries fit before the table should grow.
    pub fn left(&self) -> usize {
        room(self.buckets.len()).saturating_sub(self.count)
    }

    /// So many entries were put in by [`Table::claim`].
    pub fn counted(&mut self, entries: usize) {
        self.count += entries;
    }

    /// Makes room for more entries.
    #[inline(always)]
    pub fn reserve(&mut self, more: usize, states: &(impl Hashes + Sync), threads: usize) {
        if self.count + more > room(self.buckets.len()) {
            self.grow(more, states, threads);
        }
    }

    /// Puts an entry at a place that [`Table::find`] gave. There must be room; see [`Table::reserve`].
    #[inline(always)]
    pub fn fill(&mut self, free: Place, hash: u64, entry: u32) {
        let bucket = &mut self.buckets[free.bucket as usize];
        let (half, shift) = Bucket::shift(free.lane as usize);
        *bucket.tags[half].get_mut() |= (tag_of(hash) as u64) << shift;
        *bucket.entries[free.lane as usize].get_mut() = !entry;
        self.count += 1;
    }

    #[cold]
    fn grow(&mut self, more: usize, states: &(impl Hashes + Sync), threads: usize) {
        let before = self.buckets.len();
        let mut buckets = larger(before);
        while self.count + more > room(buckets) {
            buckets = larger(buckets);
        }
        pages::reserve(&mut self.buckets, buckets - before);
        self.buckets.resize_with(buckets, Bucket::default);
        // The buckets behind `end` are free at first, or done.
        let mut end = before;
        let mut late = Vec::new();
        while end > 0 {
            // What belongs here in the smaller table belongs behind the end in the larger one.
            let start = match end < LAST {
                true => 0,
                false => (end * before).div_ceil(buckets),
            };
            let threads = threads.min((end - start).div_ceil(WORTH_A_THREAD));
            let part = (end - start).div_ceil(threads);
            let parts = (start..end).step_by(part);
            let parts = parts.map(|start| start..end.min(start + part)).collect();
            let table = &*self;
            let left = match threads {
                1 => side_by_side(parts, |part| table.move_up::<true>(part, end, states)),
                _ => side_by_side(parts, |part| table.move_up::<false>(part, end, states)),
            };
            late.extend(left.into_iter().flatten());
            end = start;
        }
        let count = self.count;
        for entry in late {
            let hash = states.hash(entry);
            if let Err(free) = self.find(hash, |_| false) {
                self.fill(free, hash, entry);
            }
        }
        self.count = count;
    }

    /// Moves entries to where they belong now, but gives those that belong before `end`, or have no room behind.
    fn move_up<const ALONE: bool>(
        &self,
        part: Range<usize>,
        end: usize,
        states: &impl Hashes,
    ) -> Vec<u32> {
        let mut late = Vec::new();
        // In groups, so that the states are fetched side by side.
        let mut entries = Vec::with_capacity(GROUP * LANES);
        for group in self.buckets[part].chunks(GROUP) {
            entries.clear();
            for bucket in group {
                for entry in &bucket.entries {
                    let kept = entry.load(Ordering::Relaxed);
                    if kept != 0 {
                        states.prefetch(!kept);
                        entries.push(!kept);
                        entry.store(0, Ordering::Relaxed);
                    }
                }
                for tags in &bucket.tags {
                    tags.store(0, Ordering::Relaxed);
                }
            }
            for &entry in &entries {
                let hash = states.hash(entry);
                if self.first(hash) < end || !self.put::<ALONE>(hash, entry) {
                    late.push(entry);
                }
            }
        }
        late
    }

    /// Puts an entry that is not there where it belongs or behind; false if there is no room up to the end.
    #[inline(always)]
    fn put<const ALONE: bool>(&self, hash: u64, new: u32) -> bool {
        for bucket in &self.buckets[self.first(hash)..] {
            let mut free = lanes(bucket.tags(), 0);
            while free != 0 {
                let lane = free.trailing_zeros() as usize;
                let (entry, relaxed) = (&bucket.entries[lane], Ordering::Relaxed);
                let (half, shift) = Bucket::shift(lane);
                let (tags, tag) = (&bucket.tags[half], (tag_of(hash) as u64) << shift);
                if ALONE {
                    entry.store(!new, relaxed);
                    tags.store(tags.load(relaxed) | tag, relaxed);
                    return true;
                }
                if (entry.compare_exchange(0, !new, relaxed, relaxed)).is_ok() {
                    tags.fetch_or(tag, relaxed);
                    return true;
                }
                free &= free - 1;
            }
        }
        false
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

    fn has(table: &Table, n: u32) -> bool {
        table.find(Numbers.hash(n), |entry| entry == n).is_ok()
    }

    #[test]
    fn entries_are_found_while_a_table_grows() {
        let mut table = Table::default();
        for n in 0..50_000 {
            let hash = Numbers.hash(n);
            table.reserve(1, &Numbers, n as usize % 4 + 1);
            let found = table.find(hash, |entry| entry == n);
            table.fill(found.err().unwrap(), hash, n);
        }
        assert!((0..50_000).all(|n| has(&table, n)) && !has(&table, 50_000));
        assert_eq!(table.memory(), (table.buckets.len() * 64) as u64);
        assert_eq!(table.count, 50_000);
        let kept = (table.buckets.iter().flat_map(|bucket| &bucket.entries))
            .filter(|entry| entry.load(Ordering::Relaxed) != 0);
        assert_eq!(kept.count(), 50_000);
    }

    #[test]
    fn threads_that_claim_the_same_states_get_each_of_them_once() {
        const COUNT: u32 = 40_000;
        let mut table = Table::default();
        for n in 0..100 {
            table.reserve(1, &Numbers, 1);
            let free = table.find(Numbers.hash(n), |entry| entry == n);
            table.fill(free.err().unwrap(), Numbers.hash(n), n);
        }
        table.reserve(COUNT as usize, &Numbers, 3);
        let plain = |entry: u32| entry & !CANDIDATE;
        let claim = |from: u32, step: u32| {
            let mut places = Vec::new();
            for i in 0..COUNT {
                let n = (from + step * i) % COUNT;
                let hash = Numbers.hash(n);
                match table.claim(hash, n | CANDIDATE, || (), |entry| plain(entry) == n) {
                    Claimed::New(place) => places.push((n, place)),
                    Claimed::Known(entry, _) => assert_eq!(plain(entry), n),
                    Claimed::Full => panic!("the table has room"),
                }
            }
            places
        };
        // The steps have no divisor in common with the count.
        let mut places = std::thread::scope(|scope| {
            let others = [(0, 1), (COUNT / 2, 1), (7, 3), (COUNT - 1, COUNT - 1)]
                .map(|(from, step)| scope.spawn(move || claim(from, step)));
            others.map(|thread| thread.join().unwrap()).concat()
        });
        places.sort_by_key(|&(n, _)| n);
        assert!(places.iter().map(|&(n, _)| n).eq(100..COUNT));
        for &(n, place) in &places {
            match n % 3 {
                0 => table.replace(place, n),
                1 => {
                    assert_eq!(table.exchange(place, Some(7), n), Err(n | CANDIDATE));
                    assert_eq!(table.exchange(place, Some(n | CANDIDATE), n), Ok(()));
                }
                _ => assert!(has(&table, n | CANDIDATE)),
            }
        }
        assert!((0..COUNT).all(|n| has(&table, n) == (n < 100 || n % 3 != 2)));
        table.counted(places.len());
        assert_eq!(table.count, COUNT as usize);
        // Without them, the table is what it was before.
        for &(_, place) in &places {
            table.clear(place);
        }
        assert!((0..COUNT).all(|n| has(&table, n) == (n < 100)));
    }

    #[test]
    fn a_full_table_takes_no_more() {
        let mut table = Table::default();
        table.reserve(20, &Numbers, 1);
        let most = table.buckets.len() * LANES;
        let news = (0..3 * most as u32).filter(|&n| {
            matches!(
                table.claim(Numbers.hash(n), n, || (), |entry| entry == n),
                Claimed::New(_)
            )
        });
        assert_eq!(news.count(), most);
        assert!((0..most as u32).all(|n| has(&table, n)));
    }
}
