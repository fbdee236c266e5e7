//! Hash table of state numbers.
//!
//! The table is an array of buckets of one cache line each: twelve entries, and one byte of each entry's hash.
//! If a bucket is full, an entry goes to the next one. Most look-ups therefore read one line of the table, and one line
//! of the states if the byte of the hash agrees.
//! The bits that an entry's number leaves free hold more of the hash.
//!
//! Any number of threads look up and insert entries in parallel ([`Table::claim`]), without a lock. Equal states probe
//! the same positions in the same order, so only one of them is inserted.
//! Growth requires exclusive access. The table grows in place. Buckets are in the order of hashes, so each entry moves
//! toward the end, where space is free. The old position and the stored bits of the hash almost always determine the
//! new position. The table is therefore processed in order, and few states are read.

use super::pages;
use crate::threads::Team;
use cohkit_base::memory::prefetch;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Marks an entry whose state has no number yet: the other bits are the number of a candidate.
pub(crate) const CANDIDATE: u32 = 1 << 31;

/// Number of entries in a bucket.
const LANES: usize = 12;

/// Number of the lowest bits of a hash that entries do not store. With fewer, the others would not fit beside the
/// number; with more, growth would read more states.
const UNSTORED_HASH_BITS: u32 = 6;

/// Saturated distance of an entry from its first bucket: entries at this distance or farther are not distinguished.
const MAX_STORED_DISTANCE: usize = 3;

/// Number of buckets whose states are prefetched together during growth.
const BUCKETS_PER_GROUP: usize = 16;

/// Number of buckets at the beginning that are moved last, together.
const FINAL_BUCKETS: usize = 64;

/// Minimum number of buckets per thread for which another thread pays off during growth.
const MIN_BUCKETS_PER_THREAD: usize = if cfg!(debug_assertions) { 8 } else { 1 << 10 };

/// Entries are stored with all bits inverted, so that a free lane is zero.
#[derive(Default)]
#[repr(C, align(64))]
struct Bucket {
    /// Tags and distances of the lanes. A tag is one byte of the entry's hash, 0 if the lane is free; a distance is that
    /// of this bucket from the entry's first bucket, saturated at [`MAX_STORED_DISTANCE`].
    ///
    /// | word | bits | contents |
    /// |---|---|---|
    /// | 0 | 0 to 63 | tags of lanes 0 to 7, one byte each |
    /// | 1 | 0 to 31 | tags of lanes 8 to 11, one byte each |
    /// | 1 | 32 to 55 | distances of lanes 0 to 11, two bits each |
    tags: [AtomicU64; 2],
    /// Entries of the lanes: number of a state or candidate, and bits of its hash.
    entries: [AtomicU32; LANES],
}

/// Hash of a packed state: each word is folded by a 128-bit product with a fixed odd constant. The same on every
/// machine.
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
    let h = fold(h, 0xa076_1d64_78bd_642f);
    #[cfg(test)]
    let h = super::signature::shortened(h);
    h
}

/// Tag of a hash; never 0, which marks a free lane.
#[inline(always)]
fn tag_of(hash: u64) -> u8 {
    ((hash >> 32) as u8).max(1)
}

/// Bit mask of the bytes, of sixteen, that equal `byte`.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn equal_bytes(bytes: [u64; 2], byte: u8) -> u32 {
    use std::arch::x86_64::*;
    // SAFETY: every x86-64 processor has these instructions (SSE2), which do not access memory.
    unsafe {
        let bytes = _mm_set_epi64x(bytes[1] as i64, bytes[0] as i64);
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8))) as u32
    }
}

/// Bit mask of the bytes, of sixteen, that equal `byte`.
#[cfg(not(target_arch = "x86_64"))]
fn equal_bytes(bytes: [u64; 2], byte: u8) -> u32 {
    let bit = |lane: usize| (((bytes[lane / 8] >> (8 * (lane % 8))) as u8 == byte) as u32) << lane;
    (0..16).fold(0, |bits, lane| bits | bit(lane))
}

impl Bucket {
    /// Both words of tags and distances.
    #[inline(always)]
    fn tags(&self) -> [u64; 2] {
        // Acquire: what a tag refers to was written before the tag.
        [0, 1].map(|half: usize| self.tags[half].load(Ordering::Acquire))
    }

    /// Entry of a lane, no longer inverted.
    #[inline(always)]
    fn entry(&self, lane: usize) -> u32 {
        !self.entries[lane].load(Ordering::Acquire)
    }

    /// Bits to set in the tags for a lane whose tag and distance are 0.
    #[inline(always)]
    fn marks(lane: usize, tag: u8, distance: usize) -> [u64; 2] {
        let tag = (tag as u64) << (8 * (lane % 8));
        let distance = (distance.min(MAX_STORED_DISTANCE) as u64) << (32 + 2 * lane);
        if lane < 8 {
            [tag, distance]
        } else {
            [0, tag | distance]
        }
    }

    /// First free lane. Later lanes are free too, unless threads claim entries concurrently.
    #[inline(always)]
    fn filled_lanes(&self) -> usize {
        (lanes_with_tag(self.tags(), 0) | 1 << LANES).trailing_zeros() as usize
    }

    /// Puts an entry in a free lane. Requires that no other thread writes to the bucket.
    #[inline(always)]
    fn put(&self, lane: usize, tag: u8, distance: usize, entry: u32) {
        self.entries[lane].store(!entry, Ordering::Relaxed);
        for (tags, mark) in self.tags.iter().zip(Bucket::marks(lane, tag, distance)) {
            tags.store(tags.load(Ordering::Relaxed) | mark, Ordering::Relaxed);
        }
    }
}

/// Bit mask of the lanes with this tag.
#[inline(always)]
fn lanes_with_tag(tags: [u64; 2], tag: u8) -> u32 {
    equal_bytes(tags, tag) & ((1 << LANES) - 1)
}

/// Position in the table; valid until the table grows.
#[derive(Clone, Copy)]
pub(crate) struct EntryPosition {
    /// Index of the bucket.
    bucket: u32,
    /// Lane in the bucket, below [`LANES`].
    lane: u32,
}

/// Result of [`Table::claim`].
pub(crate) enum ClaimResult {
    /// The entry was inserted at this position.
    New(EntryPosition),
    /// An equal entry exists, at this position.
    Known(u32, EntryPosition),
    /// No free lane is left.
    Full,
}

/// Hash table of state numbers.
pub(crate) struct Table {
    /// Buckets in the order of the hashes that begin there.
    buckets: Vec<Bucket>,
    /// Width of an entry's number in bits; the bits above, except [`CANDIDATE`], belong to its hash.
    bits: u32,
    /// Number of entries; candidates count once their stretch has succeeded.
    count: usize,
}

/// Width of entry numbers in bits, for a number of buckets.
fn number_width(buckets: usize) -> u32 {
    ((buckets * LANES).ilog2() + 1).min(CANDIDATE.ilog2())
}

/// Number of buckets after the next growth. Growth by a half keeps at least 62 % of the lanes in use: at most 8.6 bytes
/// per entry.
fn grown_size(buckets: usize) -> usize {
    buckets + (buckets / 2).max(1)
}

/// Maximum number of entries in this many buckets, a load of 15/16.
fn max_entries(buckets: usize) -> usize {
    buckets * LANES * 15 / 16
}

impl Default for Table {
    fn default() -> Self {
        Table {
            buckets: vec![Bucket::default()],
            bits: number_width(1),
            count: 0,
        }
    }
}

/// First bucket of a hash in a table of `buckets` buckets.
#[inline(always)]
fn first_bucket(hash: u64, buckets: usize) -> usize {
    (((hash & 0xffff_ffff) * buckets as u64) >> 32) as usize
}

/// Least lower half of the hashes whose first bucket this is.
#[inline(always)]
fn least_hash(bucket: usize, buckets: usize) -> u64 {
    ((bucket as u64) << 32).div_ceil(buckets as u64)
}

impl Table {
    /// Memory in bytes of a table that has grown only as far as its entries need. Independent of reserved space, so that
    /// it does not depend on the number of threads.
    pub fn memory(&self) -> u64 {
        let mut buckets = 1;
        while max_entries(buckets) < self.count {
            buckets = grown_size(buckets);
        }
        (buckets * size_of::<Bucket>()) as u64
    }

    /// First bucket of a hash in this table.
    #[inline(always)]
    fn first_bucket(&self, hash: u64) -> usize {
        first_bucket(hash, self.buckets.len())
    }

    /// Number of an entry, without its bits of the hash.
    #[inline(always)]
    fn entry_number(&self, stored: u32) -> u32 {
        stored & (CANDIDATE | ((1 << self.bits) - 1))
    }

    /// Bits of a hash that an entry stores.
    #[inline(always)]
    fn stored_hash_bits(&self, hash: u64) -> u32 {
        ((hash as u32 >> UNSTORED_HASH_BITS) << self.bits) & !CANDIDATE
    }

    /// Prefetches the first bucket of a hash.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        prefetch(self.buckets.as_ptr().wrapping_add(self.first_bucket(hash)));
    }

    /// First entry in the first bucket with the tag of this hash.
    #[inline(always)]
    pub fn likely_entry(&self, hash: u64) -> Option<u32> {
        let bucket = &self.buckets[self.first_bucket(hash)];
        let lane = lanes_with_tag(bucket.tags(), tag_of(hash)).trailing_zeros() as usize;
        (lane < LANES).then(|| self.entry_number(bucket.entry(lane)))
    }

    /// Searches for an entry that `is_equal` accepts; returns the free position for it otherwise.
    /// In a full table, the entry must exist, or the search does not end.
    #[inline(always)]
    pub fn find(
        &self,
        hash: u64,
        mut is_equal: impl FnMut(u32) -> bool,
    ) -> Result<u32, EntryPosition> {
        let tag = tag_of(hash);
        let mut bucket_index = self.first_bucket(hash);
        loop {
            let bucket = &self.buckets[bucket_index];
            let tags = bucket.tags();
            let mut likely = lanes_with_tag(tags, tag);
            while likely != 0 {
                let entry = self.entry_number(bucket.entry(likely.trailing_zeros() as usize));
                if is_equal(entry) {
                    return Ok(entry);
                }
                likely &= likely - 1;
            }
            let free = lanes_with_tag(tags, 0);
            if free != 0 {
                return Err(EntryPosition {
                    bucket: bucket_index as u32,
                    lane: free.trailing_zeros(),
                });
            }
            bucket_index += 1;
            if bucket_index == self.buckets.len() {
                bucket_index = 0;
            }
        }
    }

    /// Searches for an entry that `is_equal` accepts, and inserts `new` if none exists, concurrently with other
    /// threads.
    /// Calls `write` before other threads can see the entry. The caller reports insertions by [`Table::add_to_count`].
    #[inline(always)]
    pub fn claim(
        &self,
        hash: u64,
        new: u32,
        write: impl FnOnce(),
        mut is_equal: impl FnMut(u32) -> bool,
    ) -> ClaimResult {
        let mut write = Some(write);
        let tag = tag_of(hash);
        let first = self.first_bucket(hash);
        let mut bucket_index = first;
        for distance in 0..self.buckets.len() {
            let bucket = &self.buckets[bucket_index];
            let position = |lane| EntryPosition {
                bucket: bucket_index as u32,
                lane,
            };
            let tags = bucket.tags();
            let mut likely = lanes_with_tag(tags, tag);
            while likely != 0 {
                let lane = likely.trailing_zeros();
                let entry = self.entry_number(bucket.entry(lane as usize));
                if is_equal(entry) {
                    return ClaimResult::Known(entry, position(lane));
                }
                likely &= likely - 1;
            }
            let mut free = lanes_with_tag(tags, 0);
            while free != 0 {
                let lane = free.trailing_zeros() as usize;
                if let Some(write) = write.take() {
                    write();
                }
                // An entry's state is written before the entry is published, and read after the entry is read.
                let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
                let stored = !(new | self.stored_hash_bits(hash));
                match bucket.entries[lane].compare_exchange(0, stored, success, failure) {
                    Ok(_) => {
                        for (half, mark) in
                            Bucket::marks(lane, tag, distance).into_iter().enumerate()
                        {
                            if mark != 0 {
                                bucket.tags[half].fetch_or(mark, Ordering::Release);
                            }
                        }
                        return ClaimResult::New(position(lane as u32));
                    }
                    // Another thread has inserted an entry since the tags were read: compare it, whatever its tag.
                    Err(stored) => {
                        let entry = self.entry_number(!stored);
                        if is_equal(entry) {
                            return ClaimResult::Known(entry, position(lane as u32));
                        }
                        free &= free - 1;
                    }
                }
            }
            bucket_index += 1;
            if bucket_index == self.buckets.len() {
                bucket_index = 0;
            }
        }
        ClaimResult::Full
    }

    /// Prefetches the bucket of a position.
    #[inline(always)]
    pub fn prefetch_position(&self, position: EntryPosition) {
        prefetch(self.buckets.as_ptr().wrapping_add(position.bucket as usize));
    }

    /// Replaces the number of the entry at a position, concurrently with other threads at other positions.
    #[inline(always)]
    pub fn replace(&self, position: EntryPosition, number: u32) {
        let entry = &self.buckets[position.bucket as usize].entries[position.lane as usize];
        let stored = !entry.load(Ordering::Relaxed);
        entry.store(
            !(stored ^ self.entry_number(stored) ^ number),
            Ordering::Relaxed,
        );
    }

    /// Removes an entry. All entries inserted after it must be removed too, since a look-up stops at a free lane.
    pub fn remove(&mut self, position: EntryPosition) {
        let bucket = &mut self.buckets[position.bucket as usize];
        let lane = position.lane as usize;
        let marks = Bucket::marks(lane, u8::MAX, MAX_STORED_DISTANCE);
        for (tags, mark) in bucket.tags.iter_mut().zip(marks) {
            *tags.get_mut() &= !mark;
        }
        *bucket.entries[lane].get_mut() = 0;
    }

    /// Limit of the numbers of candidates.
    pub fn number_limit(&self) -> usize {
        // An entry with all bits set would look like a free lane.
        (1 << self.bits) - 1
    }

    /// Number of entries that fit before the table should grow.
    pub fn free_entries(&self) -> usize {
        max_entries(self.buckets.len()).saturating_sub(self.count)
    }

    /// Adds entries that [`Table::claim`] inserted to the count.
    pub fn add_to_count(&mut self, entries: usize) {
        self.count += entries;
    }

    /// True if the table must grow for `additional` entries.
    #[inline(always)]
    pub fn must_grow(&self, additional: usize) -> bool {
        self.count + additional > max_entries(self.buckets.len())
    }

    /// Number of buckets and of entries.
    pub fn sizes(&self) -> (usize, usize) {
        (self.buckets.len(), self.count)
    }

    /// An empty table with the size that one of these [`Table::sizes`] grows to, until `additional` entries fit.
    pub fn grown((mut buckets, entries): (usize, usize), additional: usize) -> Table {
        while entries + additional > max_entries(buckets) {
            buckets = grown_size(buckets);
        }
        let mut table = Table {
            buckets: Vec::new(),
            bits: number_width(buckets),
            count: 0,
        };
        pages::extend_pages(
            &mut table.buckets,
            buckets,
            Bucket::default,
            &Team::SINGLE_THREAD,
        );
        table
    }

    /// Puts an entry at a position from [`Table::find`]. Requires free space; see [`Table::reserve`].
    #[inline(always)]
    pub fn fill(&mut self, free: EntryPosition, hash: u64, entry: u32) {
        let (bucket_index, lane) = (free.bucket as usize, free.lane as usize);
        let distance = match bucket_index.checked_sub(self.first_bucket(hash)) {
            Some(distance) => distance,
            None => bucket_index + self.buckets.len() - self.first_bucket(hash),
        };
        self.buckets[bucket_index].put(
            lane,
            tag_of(hash),
            distance,
            entry | self.stored_hash_bits(hash),
        );
        self.count += 1;
    }

    /// Grows the table in place, until `additional` entries fit. Entries are moved on the threads of `team`.
    #[cold]
    pub fn grow(&mut self, additional: usize, states: &(impl StateHashes + Sync), team: &Team) {
        let old_bucket_count = self.buckets.len();
        let mut buckets = grown_size(old_bucket_count);
        while self.count + additional > max_entries(buckets) {
            buckets = grown_size(buckets);
        }
        pages::extend_pages(
            &mut self.buckets,
            buckets - old_bucket_count,
            Bucket::default,
            team,
        );
        let old_layout = OldLayout {
            buckets: old_bucket_count,
            bits: self.bits,
        };
        self.bits = number_width(buckets);
        // Buckets from `end` on are free at first, or completed.
        let mut end = old_bucket_count;
        let mut unplaced = Vec::new();
        while end > 0 {
            // Entries of these buckets belong at or after `end` in the larger table.
            let start = match end < FINAL_BUCKETS {
                true => 0,
                false => (end * old_bucket_count).div_ceil(buckets),
            };
            let threads = team
                .len()
                .min((end - start).div_ceil(MIN_BUCKETS_PER_THREAD));
            let chunk_size = (end - start).div_ceil(threads);
            let chunks = (start..end).step_by(chunk_size).map(|start| {
                let chunk = start..end.min(start + chunk_size);
                // Each chunk of the old buckets has a disjoint range of new ones.
                let [from, to] = [chunk.start, chunk.end]
                    .map(|i| first_bucket(least_hash(i, old_bucket_count), buckets));
                match chunk.end == end {
                    true => (chunk, from.max(end)..buckets),
                    false => (chunk, from.max(end)..to),
                }
            });
            let table = &*self;
            let still_unplaced =
                team.run_in_parallel(chunks.collect(), |(chunk, target_buckets)| {
                    table.move_entries(&old_layout, chunk, target_buckets, states)
                });
            unplaced.extend(still_unplaced.into_iter().flatten());
            end = start;
        }
        let count = self.count;
        for (entry, hash) in unplaced {
            if let Err(free) = self.find(hash, |_| false) {
                self.fill(free, hash, entry);
            }
        }
        self.count = count;
    }

    /// A hash with the same tag and new first bucket as that of an entry's state, if its old position determines these.
    #[inline(always)]
    fn recover_hash(
        &self,
        old: &OldLayout,
        range: &BucketHashRange,
        tag: u64,
        stored: u32,
    ) -> Option<u64> {
        // Hashes of the old bucket that agree with the stored bits.
        let mask = u64::from((CANDIDATE - 1) >> old.bits);
        let stored = u64::from(stored >> old.bits);
        let (low, high) = (
            range.low >> UNSTORED_HASH_BITS,
            range.high >> UNSTORED_HASH_BITS,
        );
        let middle = low + (stored.wrapping_sub(low) & mask);
        if middle + mask < high {
            return None;
        }
        let low_hash = range.low.max(middle << UNSTORED_HASH_BITS);
        let high_hash = range
            .high
            .min((middle << UNSTORED_HASH_BITS) | ((1 << UNSTORED_HASH_BITS) - 1));
        (self.first_bucket(low_hash) == self.first_bucket(high_hash))
            .then_some(tag << 32 | low_hash)
    }

    /// Moves entries from some buckets to their new positions. Returns, with their hashes, those that belong outside
    /// the range `target_buckets`, or find no free lane in it.
    fn move_entries(
        &self,
        old: &OldLayout,
        chunk: Range<usize>,
        target_buckets: Range<usize>,
        states: &impl StateHashes,
    ) -> Vec<(u32, u64)> {
        let mut unplaced = Vec::new();
        // Works in groups, so that the required states are prefetched together.
        let mut entries = Vec::with_capacity(BUCKETS_PER_GROUP * LANES);
        let mut target = TargetBuckets::default();
        for start in chunk.clone().step_by(BUCKETS_PER_GROUP) {
            entries.clear();
            for bucket_index in start..chunk.end.min(start + BUCKETS_PER_GROUP) {
                self.empty_bucket(old, bucket_index, states, &mut entries);
            }
            target.count_entries(
                self,
                first_bucket(old.hash_range(start).low, self.buckets.len()),
            );
            for &(entry, hash) in &entries {
                let hash = hash.unwrap_or_else(|| states.hash(entry));
                if !self.put(hash, entry, &target_buckets, &mut target) {
                    unplaced.push((entry, hash));
                }
            }
        }
        unplaced
    }

    /// Removes all entries of a bucket of the old layout, and appends them to `entries`. Each comes with an equivalent
    /// hash, or `None` if its state must be read; such a state is prefetched.
    #[inline(always)]
    fn empty_bucket(
        &self,
        old: &OldLayout,
        bucket_index: usize,
        states: &impl StateHashes,
        entries: &mut Vec<(u32, Option<u64>)>,
    ) {
        let bucket = &self.buckets[bucket_index];
        let [mut tags, mut distances] = bucket.tags();
        distances >>= 32;
        let home_range = old.hash_range(bucket_index);
        for (lane, entry) in bucket.entries.iter().enumerate() {
            let stored = !entry.load(Ordering::Relaxed);
            entry.store(0, Ordering::Relaxed);
            if lane == 8 {
                tags = bucket.tags[1].load(Ordering::Relaxed);
            }
            let (tag, distance) = (tags & 0xff, distances as usize % (MAX_STORED_DISTANCE + 1));
            tags >>= 8;
            distances >>= 2;
            // Later lanes are free too.
            if tag == 0 {
                break;
            }
            let hash = match distance {
                0 => self.recover_hash(old, &home_range, tag, stored),
                MAX_STORED_DISTANCE => None,
                _ => {
                    let range = old.range_before(bucket_index, distance);
                    self.recover_hash(old, &range, tag, stored)
                }
            };
            let number = stored & ((1 << old.bits) - 1);
            if hash.is_none() {
                states.prefetch(number);
            }
            entries.push((number, hash));
        }
        for tags in &bucket.tags {
            tags.store(0, Ordering::Relaxed);
        }
    }

    /// Puts a new entry in its first bucket or a later one. Returns false if there is no free lane in
    /// `target_buckets`, the buckets that only this thread uses.
    #[inline(always)]
    fn put(
        &self,
        hash: u64,
        entry: u32,
        target_buckets: &Range<usize>,
        target: &mut TargetBuckets,
    ) -> bool {
        let first = self.first_bucket(hash);
        if first < target_buckets.start {
            return false;
        }
        for bucket_index in first..target_buckets.end {
            let bucket = &self.buckets[bucket_index];
            let lane = match target
                .filled
                .get_mut(bucket_index.wrapping_sub(target.first_bucket))
            {
                Some(filled) => {
                    let lane = *filled as usize;
                    *filled += (lane < LANES) as u8;
                    lane
                }
                None => bucket.filled_lanes(),
            };
            if lane < LANES {
                bucket.put(
                    lane,
                    tag_of(hash),
                    bucket_index - first,
                    entry | self.stored_hash_bits(hash),
                );
                return true;
            }
        }
        false
    }
}

/// Hashes that belong to a bucket: range of their lower halves.
struct BucketHashRange {
    /// Least value.
    low: u64,
    /// Greatest value.
    high: u64,
}

/// Destination buckets: number of entries in each.
#[derive(Default)]
struct TargetBuckets {
    /// Index of the first of these buckets.
    first_bucket: usize,
    /// Number of entries in each of the buckets from there on.
    filled: [u8; 2 * BUCKETS_PER_GROUP],
}

impl TargetBuckets {
    /// Counts the entries of the buckets from `first` on.
    fn count_entries(&mut self, table: &Table, first: usize) {
        self.first_bucket = first;
        for (filled, bucket) in self.filled.iter_mut().zip(&table.buckets[first..]) {
            *filled = bucket.filled_lanes() as u8;
        }
    }
}

/// Parameters of a table before it grows.
struct OldLayout {
    /// Number of buckets.
    buckets: usize,
    /// Width of entry numbers in bits.
    bits: u32,
}

impl OldLayout {
    #[inline(always)]
    fn hash_range(&self, bucket: usize) -> BucketHashRange {
        BucketHashRange {
            low: least_hash(bucket, self.buckets),
            high: least_hash(bucket + 1, self.buckets) - 1,
        }
    }

    /// Hashes of the bucket `distance` buckets before another one, counted around the end of the table.
    fn range_before(&self, bucket_index: usize, distance: usize) -> BucketHashRange {
        self.hash_range(match bucket_index.checked_sub(distance) {
            Some(bucket) => bucket,
            None => bucket_index + self.buckets - distance,
        })
    }
}

/// Access to the hashes of the states that entries refer to.
pub(crate) trait StateHashes {
    /// Prefetches the data of the hash.
    fn prefetch(&self, entry: u32);
    /// Hash of an entry's state.
    fn hash(&self, entry: u32) -> u64;
}

#[cfg(test)]
impl Table {
    /// Grows the table, if necessary, for `additional` entries.
    fn reserve(&mut self, additional: usize, states: &(impl StateHashes + Sync), team: &Team) {
        if self.must_grow(additional) {
            self.grow(additional, states, team);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States that equal their entries.
    struct IdentityStates;

    impl StateHashes for IdentityStates {
        fn prefetch(&self, _: u32) {}

        fn hash(&self, entry: u32) -> u64 {
            hash(&[(entry & !CANDIDATE) as u64])
        }
    }

    fn contains(table: &Table, n: u32) -> bool {
        table
            .find(IdentityStates.hash(n), |entry| entry == n)
            .is_ok()
    }

    #[test]
    fn entries_are_found_while_a_table_grows() {
        let mut table = Table::default();
        let teams = [1, 2, 3, 4].map(Team::new);
        for n in 0..50_000 {
            let hash = IdentityStates.hash(n);
            table.reserve(1, &IdentityStates, &teams[n as usize % 4]);
            let lookup = table.find(hash, |entry| entry == n);
            table.fill(lookup.err().unwrap(), hash, n);
        }
        assert!((0..50_000).all(|n| contains(&table, n)) && !contains(&table, 50_000));
        assert_eq!(table.memory(), (table.buckets.len() * 64) as u64);
        assert_eq!(table.count, 50_000);
        let occupied = (table.buckets.iter().flat_map(|bucket| &bucket.entries))
            .filter(|entry| entry.load(Ordering::Relaxed) != 0);
        assert_eq!(occupied.count(), 50_000);
    }

    #[test]
    fn table_growth_reads_few_states() {
        /// Counts the states read.
        #[derive(Default)]
        struct CountingStates(AtomicU32);

        impl StateHashes for CountingStates {
            fn prefetch(&self, _: u32) {}

            fn hash(&self, entry: u32) -> u64 {
                self.0.fetch_add(1, Ordering::Relaxed);
                IdentityStates.hash(entry)
            }
        }
        let (mut table, read) = (Table::default(), CountingStates::default());
        let mut moved = 0;
        let team = Team::new(3);
        for n in 0..50_000 {
            let buckets = table.buckets.len();
            table.reserve(1, &read, &team);
            moved += if table.buckets.len() > buckets { n } else { 0 };
            let lookup = table.find(IdentityStates.hash(n), |entry| entry == n);
            table.fill(lookup.err().unwrap(), IdentityStates.hash(n), n);
        }
        let read = read.0.into_inner();
        assert!(0 < read && read < moved / 20, "{read} of {moved}");
    }

    #[test]
    fn threads_that_claim_the_same_states_get_each_of_them_once() {
        const COUNT: u32 = 40_000;
        let mut table = Table::default();
        for n in 0..100 {
            table.reserve(1, &IdentityStates, &Team::SINGLE_THREAD);
            let free = table.find(IdentityStates.hash(n), |entry| entry == n);
            table.fill(free.err().unwrap(), IdentityStates.hash(n), n);
        }
        table.reserve(COUNT as usize, &IdentityStates, &Team::new(3));
        let number_of = |entry: u32| entry & !CANDIDATE;
        let claim = |from: u32, step: u32| {
            let mut positions = Vec::new();
            for i in 0..COUNT {
                let n = (from + step * i) % COUNT;
                let hash = IdentityStates.hash(n);
                match table.claim(hash, n | CANDIDATE, || (), |entry| number_of(entry) == n) {
                    ClaimResult::New(position) => positions.push((n, position)),
                    ClaimResult::Known(entry, _) => assert_eq!(number_of(entry), n),
                    ClaimResult::Full => panic!("the table has room"),
                }
            }
            positions
        };
        // The steps and the count are coprime.
        let mut positions = std::thread::scope(|scope| {
            let claims = [(0, 1), (COUNT / 2, 1), (7, 3), (COUNT - 1, COUNT - 1)]
                .map(|(from, step)| scope.spawn(move || claim(from, step)));
            claims.map(|thread| thread.join().unwrap()).concat()
        });
        positions.sort_by_key(|&(n, _)| n);
        assert!(positions.iter().map(|&(n, _)| n).eq(100..COUNT));
        for &(n, position) in &positions {
            match n % 3 {
                0 => table.replace(position, n),
                1 => {
                    table.replace(position, 7);
                    table.replace(position, n);
                }
                _ => assert!(contains(&table, n | CANDIDATE)),
            }
        }
        assert!((0..COUNT).all(|n| contains(&table, n) == (n < 100 || n % 3 != 2)));
        table.add_to_count(positions.len());
        assert_eq!(table.count, COUNT as usize);
        // After their removal, the table is as before.
        for &(_, position) in &positions {
            table.remove(position);
        }
        assert!((0..COUNT).all(|n| contains(&table, n) == (n < 100)));
    }

    #[test]
    fn full_table_rejects_entries() {
        let mut table = Table::default();
        table.reserve(20, &IdentityStates, &Team::SINGLE_THREAD);
        let capacity = table.buckets.len() * LANES;
        let inserted = (0..3 * capacity as u32).filter(|&n| {
            matches!(
                table.claim(IdentityStates.hash(n), n, || (), |entry| entry == n),
                ClaimResult::New(_)
            )
        });
        assert_eq!(inserted.count(), capacity);
        assert!((0..capacity as u32).all(|n| contains(&table, n)));
    }
}
