//! The bytes of lines: shared copies, which cost nothing until they are written.
//!
//! A [`Copy`] is a handle of one content of one line. Caches, messages and memory hold copies. Equal contents
//! are one entry with a count of holders, and a write makes its own entry first. The content of a line that was
//! never written is a function of its address and has no entry. Each entry records the number of the write that
//! created it, which the oracle compares.

use cohkit_base::memory::{prefetch, request_huge_pages};
pub use cohkit_base::random::mix;
use cohkit_base::random::SplitMix64;

/// Handle of one content of a line in [`Data`]. [`Copy::UNTOUCHED`] is the content before any write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copy(u32);

impl Copy {
    /// Content of a line that was never written.
    pub const UNTOUCHED: Copy = Copy(0);

    /// Returns the copy as a number, 0 for [`Copy::UNTOUCHED`].
    #[inline]
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// Returns the copy of a number from [`Copy::number`].
    #[inline]
    pub(crate) fn from_number(number: u32) -> Copy {
        Copy(number)
    }
}

/// Entries per chunk. Growth by chunks copies no entries and allocates little more than is used.
const CHUNK: usize = 4096;

/// Entries of contents. A [`Copy`] with number N is entry N mod [`CHUNK`] of chunk N / [`CHUNK`].
struct Chunk {
    /// Bytes of the entries, one line each.
    bytes: Box<[u8]>,
    /// Version and number of holders of each entry; 0 holders if it is free.
    version_and_holders: Box<[(u32, u32)]>,
}

/// A sparse array over all lines, in pages. Lines that were never set have the default value.
pub struct Paged<T> {
    /// Index of each page among the allocated ones, or [`ABSENT`].
    pages: Vec<u32>,
    /// Allocated pages, up to [`PAGES_PER_ALLOCATION`] per allocation, which the host can back with large pages.
    allocations: Vec<Vec<T>>,
    /// Value of all lines that were not set.
    default: T,
}

/// Number of lines per page.
const PAGE: usize = 4096;
/// Index of a page that is not allocated.
const ABSENT: u32 = u32::MAX;
/// Maximum number of pages per allocation.
const PAGES_PER_ALLOCATION: usize = 256;

impl<T: std::marker::Copy> Paged<T> {
    /// Creates an array in which every line has the value `default`.
    pub fn new(default: T) -> Self {
        Paged {
            pages: Vec::new(),
            allocations: Vec::new(),
            default,
        }
    }

    /// The value of a line.
    #[inline]
    pub fn get(&self, line: u32) -> T {
        self.position(line)
            .map_or(self.default, |(allocation, index)| {
                self.allocations[allocation][index]
            })
    }

    /// Prefetches the value of a line into the host's cache.
    #[inline]
    pub fn prefetch(&self, line: u32) {
        if let Some((allocation, index)) = self.position(line) {
            prefetch(&self.allocations[allocation][index]);
        }
    }

    /// Returns the allocation that holds a line's value, and the index in it, if the page is allocated.
    #[inline(always)]
    fn position(&self, line: u32) -> Option<(usize, usize)> {
        let page = *self.pages.get(line as usize / PAGE)? as usize;
        let index = page % PAGES_PER_ALLOCATION * PAGE + line as usize % PAGE;
        (page != ABSENT as usize).then_some((page / PAGES_PER_ALLOCATION, index))
    }

    /// Sets the value of a line.
    #[inline]
    pub fn set(&mut self, line: u32, value: T) {
        *self.value_mut(line) = value;
    }

    /// Returns the value of a line for modification. Allocates its page if necessary.
    #[inline]
    pub fn value_mut(&mut self, line: u32) -> &mut T {
        let (allocation, index) = match self.position(line) {
            Some(position) => position,
            None => self.allocate_page(line),
        };
        &mut self.allocations[allocation][index]
    }

    /// Values of all lines in allocated pages: the lines that were set, and their neighbours.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.allocations.iter().flatten().copied()
    }

    /// Allocates the page of a line, with default values. Returns the position of the line's value.
    #[cold]
    fn allocate_page(&mut self, line: u32) -> (usize, usize) {
        let page = line as usize / PAGE;
        if page >= self.pages.len() {
            self.pages.resize(page + 1, ABSENT);
        }
        let capacity = PAGES_PER_ALLOCATION * PAGE;
        if self
            .allocations
            .last()
            .is_none_or(|pages| pages.len() == capacity)
        {
            let mut pages = Vec::with_capacity(capacity);
            // Large pages would waste memory in small machines, which use only a part of the first allocation.
            if !self.allocations.is_empty() {
                request_huge_pages(&mut pages);
            }
            self.allocations.push(pages);
        }
        let allocation = self.allocations.len() - 1;
        let begin = self.allocations[allocation].len();
        self.pages[page] = (allocation * PAGES_PER_ALLOCATION + begin / PAGE) as u32;
        self.allocations[allocation].resize(begin + PAGE, self.default);
        (allocation, begin + line as usize % PAGE)
    }
}

/// Contents of all lines.
pub struct Data {
    /// Bytes of a line, a multiple of 8.
    line_bytes: usize,
    /// Entries, in chunks.
    chunks: Vec<Chunk>,
    /// Number of allocated entries, in use or free, including [`Copy::UNTOUCHED`].
    entry_count: u32,
    /// Numbers of free entries; the last one is used next.
    free: Vec<u32>,
    /// True if all lines begin with zeros.
    zeros: bool,
}

impl Data {
    /// Creates contents in which no line has been written. Initial words depend on their address.
    pub fn new(line_bytes: u32) -> Self {
        Data {
            line_bytes: line_bytes as usize,
            chunks: Vec::new(),
            entry_count: 1,
            free: Vec::new(),
            zeros: false,
        }
    }

    /// Creates contents in which no line has been written, and all lines are zero.
    pub fn zeroed(line_bytes: u32) -> Self {
        Data {
            zeros: true,
            ..Data::new(line_bytes)
        }
    }

    /// Number of 8-byte words in a line.
    pub fn words(&self) -> u16 {
        (self.line_bytes / 8) as u16
    }

    /// Initial value of a word, unless all lines begin with zeros.
    pub fn untouched_word(line: u32, word: u16) -> u64 {
        mix(u64::from(line) << 16 | u64::from(word))
    }

    /// Number of the write that created this content; 0 before any.
    #[inline]
    pub fn version(&self, copy: Copy) -> u32 {
        if copy == Copy::UNTOUCHED {
            return 0;
        }
        self.version_and_holders(copy).0
    }

    /// Adds a holder to this content. Returns the same handle.
    #[inline]
    pub fn share(&mut self, copy: Copy) -> Copy {
        if copy != Copy::UNTOUCHED {
            self.version_and_holders_mut(copy).1 += 1;
        }
        copy
    }

    /// Removes a holder from this content. The last one frees the entry.
    #[inline]
    pub fn release(&mut self, copy: Copy) {
        if copy != Copy::UNTOUCHED {
            let version_and_holders = self.version_and_holders_mut(copy);
            version_and_holders.1 -= 1;
            if version_and_holders.1 == 0 {
                self.free.push(copy.0);
            }
        }
    }

    /// Returns the 8-byte word `word` of a line's content. `line` determines the initial value.
    pub fn word(&self, line: u32, copy: Copy, word: u16) -> u64 {
        if copy == Copy::UNTOUCHED {
            return match self.zeros {
                true => 0,
                false => Data::untouched_word(line, word),
            };
        }
        let start = word as usize * 8;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.bytes(copy)[start..start + 8]);
        u64::from_le_bytes(bytes)
    }

    /// Writes an 8-byte word as part of write number `version`. Removes one holder from `copy` and returns a
    /// content that only the caller holds.
    pub fn write_word(
        &mut self,
        line: u32,
        copy: Copy,
        word: u16,
        value: u64,
        version: u32,
    ) -> Copy {
        let exclusive = self.make_exclusive(line, copy);
        let start = word as usize * 8;
        self.bytes_mut(exclusive)[start..start + 8].copy_from_slice(&value.to_le_bytes());
        self.version_and_holders_mut(exclusive).0 = version;
        exclusive
    }

    /// Creates a content in which every word is `value`. Its version is 0 until [`Data::stamp`] sets it.
    pub fn filled(&mut self, value: u64) -> Copy {
        let copy = self.allocate_entry();
        for word in self.bytes_mut(copy).chunks_exact_mut(8) {
            word.copy_from_slice(&value.to_le_bytes());
        }
        copy
    }

    /// Sets the version of `copy`, which only the caller holds, to write number `version`.
    pub fn stamp(&mut self, copy: Copy, version: u32) {
        if copy != Copy::UNTOUCHED {
            self.version_and_holders_mut(copy).0 = version;
        }
    }

    /// Returns a content equal to `copy` that only the caller holds, in exchange for one holder of `copy`.
    fn make_exclusive(&mut self, line: u32, copy: Copy) -> Copy {
        if copy != Copy::UNTOUCHED && self.version_and_holders(copy).1 == 1 {
            return copy;
        }
        let exclusive = self.allocate_entry();
        if copy == Copy::UNTOUCHED && self.zeros {
            self.bytes_mut(exclusive).fill(0);
        } else if copy == Copy::UNTOUCHED {
            for (word, bytes) in self.bytes_mut(exclusive).chunks_exact_mut(8).enumerate() {
                let value = Data::untouched_word(line, word as u16);
                bytes.copy_from_slice(&value.to_le_bytes());
            }
        } else {
            let source = self.chunk_and_entry(copy);
            let (source_start, destination) =
                (source.1 * self.line_bytes, self.chunk_and_entry(exclusive));
            let destination_start = destination.1 * self.line_bytes;
            if source.0 == destination.0 {
                let bytes = &mut self.chunks[destination.0].bytes;
                bytes.copy_within(
                    source_start..source_start + self.line_bytes,
                    destination_start,
                );
            } else {
                for offset in 0..self.line_bytes {
                    let byte = self.chunks[source.0].bytes[source_start + offset];
                    self.chunks[destination.0].bytes[destination_start + offset] = byte;
                }
            }
        }
        self.release(copy);
        exclusive
    }

    /// Allocates an entry with one holder and version 0. Its bytes are undefined.
    fn allocate_entry(&mut self) -> Copy {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = self.entry_count;
                self.entry_count += 1;
                if index as usize / CHUNK >= self.chunks.len() {
                    self.chunks.push(Chunk {
                        bytes: vec![0; CHUNK * self.line_bytes].into_boxed_slice(),
                        version_and_holders: vec![(0, 0); CHUNK].into_boxed_slice(),
                    });
                }
                index
            }
        };
        *self.version_and_holders_mut(Copy(index)) = (0, 1);
        Copy(index)
    }

    /// Returns the chunk of a content, and its index in the chunk.
    fn chunk_and_entry(&self, copy: Copy) -> (usize, usize) {
        (copy.0 as usize / CHUNK, copy.0 as usize % CHUNK)
    }

    /// Returns the version and the number of holders of a content other than `UNTOUCHED`.
    fn version_and_holders(&self, copy: Copy) -> (u32, u32) {
        let (chunk, entry) = self.chunk_and_entry(copy);
        self.chunks[chunk].version_and_holders[entry]
    }

    /// Returns the same for modification.
    fn version_and_holders_mut(&mut self, copy: Copy) -> &mut (u32, u32) {
        let (chunk, entry) = self.chunk_and_entry(copy);
        &mut self.chunks[chunk].version_and_holders[entry]
    }

    /// Returns the bytes of a content other than `UNTOUCHED`.
    fn bytes(&self, copy: Copy) -> &[u8] {
        let (chunk, entry) = self.chunk_and_entry(copy);
        &self.chunks[chunk].bytes[entry * self.line_bytes..][..self.line_bytes]
    }

    /// Returns the same for modification.
    fn bytes_mut(&mut self, copy: Copy) -> &mut [u8] {
        let (chunk, entry) = self.chunk_and_entry(copy);
        &mut self.chunks[chunk].bytes[entry * self.line_bytes..][..self.line_bytes]
    }
}

/// Pseudo-random number generator. Equal seeds give equal sequences, and similar seeds give unrelated ones.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = SplitMix64::new(mix(seed));
        // Records and statistics hold the sequences without this first number.
        random.next_u64();
        Random(random)
    }

    /// Returns a number below `bound`, or 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_leaves_other_holders_their_content() {
        let mut data = Data::new(64);
        let initial = Data::untouched_word(7, 3);
        assert_eq!(data.word(7, Copy::UNTOUCHED, 3), initial);
        let first = data.write_word(7, Copy::UNTOUCHED, 3, 42, 1);
        let shared = data.share(first);
        let second = data.write_word(7, first, 4, 43, 2);
        assert_eq!(data.word(7, shared, 3), 42);
        assert_eq!(data.word(7, shared, 4), Data::untouched_word(7, 4));
        assert_eq!((data.word(7, second, 3), data.word(7, second, 4)), (42, 43));
        assert_eq!((data.version(shared), data.version(second)), (1, 2));
    }

    #[test]
    fn places_are_used_again_and_contents_cross_chunks() {
        let mut data = Data::new(8);
        let copies: Vec<Copy> = (0..3 * CHUNK as u64).map(|n| data.filled(n)).collect();
        let last = data.share(copies[copies.len() - 1]);
        for &copy in &copies[..copies.len() - 1] {
            data.release(copy);
        }
        let entry_count = data.entry_count;
        let rewritten = data.write_word(0, last, 0, 5, 9);
        assert_eq!(data.word(0, rewritten, 0), 5);
        assert_eq!(data.word(0, last, 0), 3 * CHUNK as u64 - 1);
        assert_eq!(data.entry_count, entry_count);
    }
}
