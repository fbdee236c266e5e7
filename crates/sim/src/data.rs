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

/// A content of a line. Most contents differ from the initial content of their line in one word, or consist of equal
/// words, and need no bytes of their own. One that differs in 2 to 8 words has a block of these words.
#[derive(Clone, Copy)]
struct Entry {
    /// Value of the word or words, or the number of a block: see [`Form`].
    value: u64,
    /// Number of the write that created the content.
    version: u32,
    /// Number of holders; 0 if the entry is free.
    holders: u32,
    /// Line of the initial content, in [`Form::OneWord`] and [`Form::FewWords`] only.
    line: u32,
    /// Representation of the content.
    form: Form,
}

/// Representation of a content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The initial content of the line, except for the value of this word.
    OneWord(u16),
    /// The initial content of the line, except for these words, as bits. The value is the number of a block with their
    /// values in ascending order, among the blocks of this [`capacity_class`].
    FewWords(u16),
    /// All words have the value.
    Filled,
    /// The value is the number of a block with the bytes.
    Bytes,
}

/// Number of words of each block of [`Form::FewWords`].
const CAPACITIES: [usize; 3] = [2, 4, 8];
/// Maximum number of these words.
const FEW: u32 = CAPACITIES[CAPACITIES.len() - 1] as u32;

/// Index among [`CAPACITIES`] of the smallest block for some words, at least one and at most [`FEW`].
fn capacity_class(words: u16) -> usize {
    (words
        .count_ones()
        .max(2)
        .next_power_of_two()
        .trailing_zeros()
        - 1) as usize
}

/// Position of a word among others in ascending order.
fn rank(words: u16, word: u16) -> usize {
    (words & ((1 << word) - 1)).count_ones() as usize
}

/// Items in chunks: number N is item N mod [`CHUNK`] of chunk N / [`CHUNK`]. Each has the same length. Growth copies
/// no items. Unused blocks of the last chunk, which are zero, occupy no memory.
struct Chunked<T> {
    chunks: Vec<Box<[T]>>,
    /// Number of allocated items, in use or free.
    count: u32,
    /// Numbers of free items; the last one is used next.
    free: Vec<u32>,
}

impl<T: std::marker::Copy> Chunked<T> {
    /// Creates a list of `count` unused items.
    fn new(count: u32) -> Chunked<T> {
        Chunked {
            chunks: Vec::new(),
            count,
            free: Vec::new(),
        }
    }

    /// Allocates an item of `length` elements, and returns its number. The elements are `initial` in a new item and
    /// undefined in a reused one.
    #[inline]
    fn allocate(&mut self, length: usize, initial: T) -> u32 {
        if let Some(number) = self.free.pop() {
            return number;
        }
        let number = self.count;
        self.count += 1;
        if number as usize / CHUNK >= self.chunks.len() {
            self.chunks.push(vec![initial; CHUNK * length].into());
        }
        number
    }

    /// Returns the elements of an item, of which there are `length`.
    #[inline(always)]
    fn item(&self, number: u32, length: usize) -> &[T] {
        let start = number as usize % CHUNK * length;
        &self.chunks[number as usize / CHUNK][start..start + length]
    }

    /// Returns the same for modification.
    #[inline(always)]
    fn item_mut(&mut self, number: u32, length: usize) -> &mut [T] {
        let start = number as usize % CHUNK * length;
        &mut self.chunks[number as usize / CHUNK][start..start + length]
    }
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
    /// Number of 8-byte words in a line.
    words: u16,
    /// Contents; number 0 stands for [`Copy::UNTOUCHED`].
    entries: Chunked<Entry>,
    /// Words of the contents in [`Form::Bytes`].
    blocks: Chunked<u64>,
    /// Words of the contents in [`Form::FewWords`], by [`capacity_class`].
    few: [Chunked<u64>; CAPACITIES.len()],
    /// True if all lines begin with zeros.
    zeros: bool,
}

impl Data {
    /// Creates contents in which no line has been written. Initial words depend on their address.
    pub fn new(line_bytes: u32) -> Self {
        Data {
            words: (line_bytes / 8) as u16,
            entries: Chunked::new(1),
            blocks: Chunked::new(0),
            few: std::array::from_fn(|_| Chunked::new(0)),
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
    #[inline]
    pub fn words(&self) -> u16 {
        self.words
    }

    /// Initial value of a word, unless all lines begin with zeros.
    #[inline]
    pub fn untouched_word(line: u32, word: u16) -> u64 {
        mix(u64::from(line) << 16 | u64::from(word))
    }

    /// Number of the write that created this content; 0 before any.
    #[inline]
    pub fn version(&self, copy: Copy) -> u32 {
        if copy == Copy::UNTOUCHED {
            return 0;
        }
        self.entry(copy).version
    }

    /// Adds a holder to this content. Returns the same handle.
    #[inline]
    pub fn share(&mut self, copy: Copy) -> Copy {
        if copy != Copy::UNTOUCHED {
            self.entry_mut(copy).holders += 1;
        }
        copy
    }

    /// Removes a holder from this content. The last one frees the entry.
    #[inline]
    pub fn release(&mut self, copy: Copy) {
        if copy == Copy::UNTOUCHED {
            return;
        }
        let entry = self.entry_mut(copy);
        entry.holders -= 1;
        if entry.holders == 0 {
            self.free_block(copy);
            self.entries.free.push(copy.0);
        }
    }

    /// Frees the block of a content, if it has one.
    #[inline]
    fn free_block(&mut self, copy: Copy) {
        let Entry { value, form, .. } = *self.entry(copy);
        match form {
            Form::Bytes => self.blocks.free.push(value as u32),
            Form::FewWords(words) => self.few[capacity_class(words)].free.push(value as u32),
            Form::OneWord(_) | Form::Filled => {}
        }
    }

    /// Returns the 8-byte word `word` of a line's content. `line` determines the initial value.
    #[inline]
    pub fn word(&self, line: u32, copy: Copy, word: u16) -> u64 {
        if copy == Copy::UNTOUCHED {
            return self.initial_word(line, word);
        }
        let entry = self.entry(copy);
        match entry.form {
            Form::OneWord(written) if written != word => self.initial_word(entry.line, word),
            Form::OneWord(_) | Form::Filled => entry.value,
            Form::FewWords(words) if words >> word & 1 == 0 => self.initial_word(entry.line, word),
            Form::FewWords(words) => {
                let class = capacity_class(words);
                let block = self.few[class].item(entry.value as u32, CAPACITIES[class]);
                block[rank(words, word)]
            }
            Form::Bytes => self.block(entry.value as u32)[usize::from(word)],
        }
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
        let (initial_line, is_one_word) = match copy {
            Copy::UNTOUCHED => (line, true),
            copy => {
                let entry = self.entry(copy);
                (entry.line, entry.form == Form::OneWord(word))
            }
        };
        if is_one_word {
            let exclusive = self.replace(copy);
            let entry = self.entry_mut(exclusive);
            (entry.value, entry.line, entry.form) = (value, initial_line, Form::OneWord(word));
            entry.version = version;
            return exclusive;
        }
        let written = match self.entry(copy).form {
            _ if self.words > u16::BITS as u16 => 0,
            Form::OneWord(other) => 1 << other,
            Form::FewWords(words) => words,
            Form::Filled | Form::Bytes => 0,
        };
        if written != 0 && (written | 1 << word).count_ones() <= FEW {
            let exclusive = self.write_few(copy, written, word, value);
            self.entry_mut(exclusive).version = version;
            return exclusive;
        }
        let exclusive = self.make_bytes(copy);
        let entry = self.entry_mut(exclusive);
        entry.version = version;
        let block = entry.value as u32;
        self.block_mut(block)[usize::from(word)] = value;
        exclusive
    }

    /// Creates a content in which every word is `value`. Its version is 0 until [`Data::stamp`] sets it.
    pub fn filled(&mut self, value: u64) -> Copy {
        let copy = self.allocate_entry();
        let entry = self.entry_mut(copy);
        (entry.value, entry.form) = (value, Form::Filled);
        copy
    }

    /// Sets the version of `copy`, which only the caller holds, to write number `version`.
    pub fn stamp(&mut self, copy: Copy, version: u32) {
        if copy != Copy::UNTOUCHED {
            self.entry_mut(copy).version = version;
        }
    }

    /// Writes a word of a content that differs from the initial one in the words `written`. Removes one holder from
    /// `copy` and returns a content that only the caller holds.
    fn write_few(&mut self, copy: Copy, written: u16, word: u16, value: u64) -> Copy {
        let entry = *self.entry(copy);
        let words = written | 1 << word;
        let class = capacity_class(words);
        if entry.holders == 1 && entry.form == Form::FewWords(words) {
            let block = self.few[class].item_mut(entry.value as u32, CAPACITIES[class]);
            block[rank(words, word)] = value;
            return copy;
        }
        let number = self.few[class].allocate(CAPACITIES[class], 0);
        let others = (0..self.words).filter(|other| written >> other & 1 == 1);
        for other in others {
            let other_value = self.word(entry.line, copy, other);
            let block = self.few[class].item_mut(number, CAPACITIES[class]);
            block[rank(words, other)] = other_value;
        }
        self.few[class].item_mut(number, CAPACITIES[class])[rank(words, word)] = value;
        let exclusive = self.replace(copy);
        let new_entry = self.entry_mut(exclusive);
        new_entry.value = number.into();
        (new_entry.line, new_entry.form) = (entry.line, Form::FewWords(words));
        exclusive
    }

    /// Returns an entry that only the caller holds, in exchange for one holder of `copy`. The caller sets its content,
    /// which has no block any more.
    fn replace(&mut self, copy: Copy) -> Copy {
        if copy != Copy::UNTOUCHED && self.entry(copy).holders == 1 {
            self.free_block(copy);
            return copy;
        }
        self.release(copy);
        self.allocate_entry()
    }

    /// Returns a content equal to `copy`, which has been written, with bytes of its own and held only by the caller. It
    /// takes one holder of `copy`.
    fn make_bytes(&mut self, copy: Copy) -> Copy {
        let entry = *self.entry(copy);
        if entry.holders == 1 && entry.form == Form::Bytes {
            return copy;
        }
        let block = self.blocks.allocate(self.words.into(), 0);
        for word in 0..self.words {
            self.block_mut(block)[usize::from(word)] = self.word(entry.line, copy, word);
        }
        let exclusive = self.replace(copy);
        let entry = self.entry_mut(exclusive);
        (entry.value, entry.form) = (block.into(), Form::Bytes);
        exclusive
    }

    /// Returns the initial value of a word.
    #[inline]
    fn initial_word(&self, line: u32, word: u16) -> u64 {
        match self.zeros {
            true => 0,
            false => Data::untouched_word(line, word),
        }
    }

    /// Allocates an entry with one holder and version 0. Its content is undefined.
    #[inline]
    fn allocate_entry(&mut self) -> Copy {
        let entry = Entry {
            value: 0,
            version: 0,
            holders: 0,
            line: 0,
            form: Form::Filled,
        };
        let copy = Copy(self.entries.allocate(1, entry));
        *self.entry_mut(copy) = Entry {
            holders: 1,
            ..entry
        };
        copy
    }

    /// Returns the entry of a content other than `UNTOUCHED`.
    #[inline(always)]
    fn entry(&self, copy: Copy) -> &Entry {
        &self.entries.item(copy.0, 1)[0]
    }

    /// Returns the same for modification.
    #[inline(always)]
    fn entry_mut(&mut self, copy: Copy) -> &mut Entry {
        &mut self.entries.item_mut(copy.0, 1)[0]
    }

    /// Returns the words of a block.
    #[inline(always)]
    fn block(&self, number: u32) -> &[u64] {
        self.blocks.item(number, self.words.into())
    }

    /// Returns the same for modification.
    #[inline(always)]
    fn block_mut(&mut self, number: u32) -> &mut [u64] {
        self.blocks.item_mut(number, self.words.into())
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

    /// Contents of all forms keep their words, versions and numbers of holders, like arrays of words.
    fn assert_contents_agree_with_arrays(word_count: u16, zeros: bool) {
        let mut data = match zeros {
            false => Data::new(8 * u32::from(word_count)),
            true => Data::zeroed(8 * u32::from(word_count)),
        };
        let words_of = |data: &Data, line, copy| -> Vec<u64> {
            (0..word_count)
                .map(|word| data.word(line, copy, word))
                .collect()
        };
        // Held copies, each with its line, words and version.
        let mut held: Vec<_> = (0..6)
            .map(|line| {
                (
                    line,
                    Copy::UNTOUCHED,
                    words_of(&data, line, Copy::UNTOUCHED),
                    0,
                )
            })
            .collect();
        let mut random = Random::new(7);
        let mut forms = [0; 4];
        for version in 1..4000 {
            let place = random.below(held.len() as u64) as usize;
            let (line, copy, mut words, _) = held[place].clone();
            match random.below(32) {
                0..4 if held.len() > 12 => {
                    data.release(held.swap_remove(place).1);
                }
                0..8 => held.push((line, data.share(copy), words, held[place].3)),
                8 => {
                    data.release(copy);
                    let filled = data.filled(version.into());
                    data.stamp(filled, version);
                    let words = vec![version.into(); word_count.into()];
                    held[place] = (line, filled, words, version);
                }
                9 => {
                    data.release(copy);
                    let words = words_of(&data, line, Copy::UNTOUCHED);
                    held[place] = (line, Copy::UNTOUCHED, words, 0);
                }
                _ => {
                    let word = random.below(word_count.into()) as u16;
                    words[usize::from(word)] = u64::from(version) << 32;
                    let value = words[usize::from(word)];
                    let written = data.write_word(line, copy, word, value, version);
                    held[place] = (line, written, words, version);
                }
            }
            for (line, copy, words, version) in &held {
                assert_eq!(words_of(&data, *line, *copy), *words);
                assert_eq!(data.version(*copy), *version);
                if *copy != Copy::UNTOUCHED {
                    forms[match data.entry(*copy).form {
                        Form::OneWord(_) => 0,
                        Form::FewWords(_) => 1,
                        Form::Filled => 2,
                        Form::Bytes => 3,
                    }] += 1;
                }
            }
        }
        let uses_few = word_count > 1 && word_count <= 16;
        assert_eq!(forms[1] > 0, uses_few, "{forms:?}");
        assert!(forms[0] > 0 && forms[2] > 0 && forms[3] > 0, "{forms:?}");
        // All entries and blocks are free once nothing holds them.
        held.iter().for_each(|content| data.release(content.1));
        assert_eq!(data.entries.free.len() as u32 + 1, data.entries.count);
        for blocks in data.few.iter().chain([&data.blocks]) {
            assert_eq!(blocks.free.len() as u32, blocks.count);
        }
    }

    #[test]
    fn contents_of_all_forms_agree_with_arrays() {
        for words in [4, 8, 16, 17, 32] {
            for zeros in [false, true] {
                assert_contents_agree_with_arrays(words, zeros);
            }
        }
    }

    #[test]
    fn places_are_used_again_and_contents_cross_chunks() {
        let mut data = Data::new(8);
        let copies: Vec<Copy> = (0..3 * CHUNK as u64).map(|n| data.filled(n)).collect();
        let last = data.share(copies[copies.len() - 1]);
        for &copy in &copies[..copies.len() - 1] {
            data.release(copy);
        }
        let entry_count = data.entries.count;
        let rewritten = data.write_word(0, last, 0, 5, 9);
        assert_eq!(data.word(0, rewritten, 0), 5);
        assert_eq!(data.word(0, last, 0), 3 * CHUNK as u64 - 1);
        assert_eq!(data.entries.count, entry_count);
    }
}
