//! Storage of reached states: packed bytes in the order of discovery, a hash table of their numbers, and their parents.
//!
//! With *hash compaction*, complete states are kept only until they are expanded. Of each state, a signature remains:
//! the hash of the packed state. States with equal signatures count as equal.
//!
//! A store may keep its first states on disk; see [`disk`].

mod disk;
mod pages;
mod parent_map;
mod signature;
mod table;

use crate::program::Packing;
use crate::threads::Team;
use cohkit_base::memory::prefetch;
use disk::Disk;
pub use disk::ReadAt;
pub(crate) use disk::{
    block_checksum, states_per_block, ReadError, Segment, ASSUMPTION_BYTES, SIGNATURE_BYTES,
};
pub(crate) use parent_map::ParentMap;
pub use signature::omission_bound;
pub(crate) use table::{hash, ClaimResult, EntryPosition, StateHashes, Table, CANDIDATE};

/// Maximum number of states that can be numbered.
pub(crate) const MAX_STATES: u64 = CANDIDATE as u64;

/// All states reached so far, numbered from 0 in the order in which a search with one thread finds them.
pub(crate) struct Store {
    /// Packed states, or their signatures.
    pub states: States,
    /// Parent of each state.
    pub parents: ParentMap,
    /// Numbers of the states by their hash.
    pub table: Table,
}

/// The stored states, without their table.
pub(crate) struct States {
    /// Bytes per state.
    stride: usize,
    /// Length of a complete packed state in 64-bit words.
    words: usize,
    /// Mask of the stored bits of a state's last word.
    last_word_mask: u64,
    /// Concatenated states from `base` on, and at least eight more bytes, so that all words can be read completely.
    bytes: Vec<u8>,
    /// Number of states, including those on disk.
    count: usize,
    /// Number of states that are on disk, and not in `bytes`.
    base: usize,
    /// States on disk, if there may be any.
    disk: Option<Box<Disk>>,
    /// Complete states that are not expanded yet, with hash compaction. The other fields except `words` then describe
    /// signatures.
    unexpanded: Option<Box<UnexpandedStates>>,
}

/// Storage policy as a type, so that code for each successor is specialised.
pub(crate) trait StorePolicy: Sync {
    /// True if only signatures of expanded states are kept.
    const COMPACT: bool;
}

/// Storage of complete states.
pub(crate) struct FullStates;

/// Storage of signatures (hash compaction).
pub(crate) struct CompactStates;

impl StorePolicy for FullStates {
    const COMPACT: bool = false;
}

impl StorePolicy for CompactStates {
    const COMPACT: bool = true;
}

/// Complete states that are not expanded yet.
struct UnexpandedStates {
    /// Number of the first state in `states`.
    first: usize,
    /// These states, without compaction.
    states: States,
    /// Maximum number of states so far.
    max_count: usize,
}

/// Team for growth by the calling thread alone.
static SINGLE_THREAD: Team = Team::SINGLE_THREAD;

/// Reserve of the buffer after growth, in bytes.
const GROWTH_BYTES: usize = 1 << 16;

impl States {
    /// Storage of complete states.
    fn new(packing: &Packing) -> States {
        let tail_bytes = packing.bytes % 8;
        States {
            stride: packing.bytes,
            words: packing.words,
            last_word_mask: match tail_bytes {
                0 => u64::MAX,
                tail_bytes => (1 << (8 * tail_bytes)) - 1,
            },
            bytes: vec![0; 8],
            count: 0,
            base: 0,
            disk: None,
            unexpanded: None,
        }
    }

    /// Storage of signatures, and of complete states until they are expanded.
    fn compact(packing: &Packing) -> States {
        States {
            stride: size_of::<u64>(),
            words: packing.words,
            last_word_mask: u64::MAX,
            bytes: vec![0; 8],
            count: 0,
            base: 0,
            disk: None,
            unexpanded: Some(Box::new(UnexpandedStates {
                first: 0,
                states: States::new(packing),
                max_count: 0,
            })),
        }
    }

    /// Allows the store to drop complete states before this one. No effect without hash compaction.
    pub fn forget_before(&mut self, state: usize) {
        if let Some(unexpanded) = &mut self.unexpanded {
            unexpanded.max_count = unexpanded.peak_count();
            let (dropped, states) = (state - unexpanded.first, &mut unexpanded.states);
            // The remaining states are moved only if they are shorter than the dropped part.
            if 2 * dropped > states.count {
                states.bytes.drain(..dropped * states.stride);
                states.count -= dropped;
                unexpanded.first = state;
            }
        }
    }

    /// True if states with equal signatures count as equal.
    #[inline(always)]
    pub fn is_compacted(&self) -> bool {
        self.unexpanded.is_some()
    }

    /// Eight bytes from a byte offset on, as a little-endian number.
    #[inline(always)]
    fn word(&self, offset: usize) -> u64 {
        match self.bytes[offset..].first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => 0,
        }
    }

    /// Reads a complete state into `words`. With compaction, only states that are not expanded yet can be read.
    #[inline(always)]
    pub fn read<K: StorePolicy>(&self, state: usize, words: &mut [u64]) {
        if K::COMPACT {
            if let Some(unexpanded) = &self.unexpanded {
                unexpanded
                    .states
                    .read::<FullStates>(state - unexpanded.first, words);
            }
            return;
        }
        if state < self.base {
            return self.read_from_disk(state, words);
        }
        let offset = (state - self.base) * self.stride;
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.word(offset + 8 * i);
        }
        if let Some(word) = words.last_mut() {
            *word &= self.last_word_mask;
        }
    }

    /// True if a stored state equals the packed one. For a state on disk, a positive answer may have to be confirmed; see
    /// [`Disk`].
    #[inline(always)]
    pub fn equals<K: StorePolicy>(&self, state: usize, words: &[u64]) -> bool {
        if K::COMPACT {
            return self.word(state * self.stride) == hash(words);
        }
        if state < self.base {
            return self.equals_on_disk(state, words);
        }
        let offset = (state - self.base) * self.stride;
        let Some((last_word, front_words)) = words.split_last() else {
            return true;
        };
        let tail = self.word(offset + 8 * front_words.len()) & self.last_word_mask == *last_word;
        tail && (front_words.iter().enumerate()).all(|(i, &word)| self.word(offset + 8 * i) == word)
    }

    /// Appends a state; returns its number.
    #[inline(always)]
    fn push<K: StorePolicy>(&mut self, words: &[u64]) -> u32 {
        if !K::COMPACT {
            return self.push_words(words);
        }
        if let Some(unexpanded) = &mut self.unexpanded {
            unexpanded.states.push_words(words);
        }
        self.push_words(&[hash(words)])
    }

    /// Appends packed words as they are; returns the number of the state.
    #[inline(always)]
    fn push_words(&mut self, words: &[u64]) -> u32 {
        let offset = (self.count - self.base) * self.stride;
        if offset + 8 * words.len() + 8 > self.bytes.len() {
            self.grow(offset + 8 * words.len() + GROWTH_BYTES, &SINGLE_THREAD);
        }
        for (i, word) in words.iter().enumerate() {
            if let Some(bytes) = self.bytes[offset + 8 * i..].first_chunk_mut() {
                *bytes = word.to_le_bytes();
            }
        }
        self.count += 1;
        self.count as u32 - 1
    }

    /// Packed states from this number on, concatenated; none of them is on disk only.
    pub fn bytes_from(&self, state: usize) -> &[u8] {
        let [start, end] = [state, self.count].map(|number| (number - self.base) * self.stride);
        &self.bytes[start..end]
    }

    /// Reserves space for consecutive groups of new states, one per count; returns the space of each.
    pub fn append(
        &mut self,
        counts: impl Iterator<Item = usize>,
        team: &Team,
    ) -> Vec<Reservation<'_>> {
        let counts: Vec<usize> = counts.collect();
        let first = (self.count - self.base) * self.stride;
        self.count += counts.iter().sum::<usize>();
        let end = (self.count - self.base) * self.stride + 8;
        if end > self.bytes.len() {
            self.grow(end + GROWTH_BYTES, team);
        }
        let mut free_bytes = &mut self.bytes[first..];
        let mut reservations = Vec::new();
        for &count in &counts {
            let (bytes, remaining) = free_bytes.split_at_mut(count * self.stride);
            free_bytes = remaining;
            reservations.push(Reservation {
                bytes,
                stride: self.stride,
                full_states: None,
            });
        }
        if let Some(unexpanded) = &mut self.unexpanded {
            let full_states = unexpanded.states.append(counts.into_iter(), team);
            for (reservation, full_states) in reservations.iter_mut().zip(full_states) {
                reservation.full_states = Some(Box::new(full_states));
            }
        }
        reservations
    }

    /// Extends the buffer to this length in bytes, on the threads of a team.
    #[cold]
    fn grow(&mut self, bytes: usize, team: &Team) {
        let additional = bytes - self.bytes.len();
        pages::extend_pages(&mut self.bytes, additional, || 0, team);
    }
}

impl StateHashes for States {
    #[inline(always)]
    fn prefetch(&self, state: u32) {
        match ((state as usize).checked_sub(self.base), &self.disk) {
            (Some(place), _) => prefetch(self.bytes.as_ptr().wrapping_add(place * self.stride)),
            (None, Some(disk)) => prefetch(disk.signatures.as_ptr().wrapping_add(state as usize)),
            (None, None) => {}
        }
    }

    #[inline(always)]
    fn hash(&self, state: u32) -> u64 {
        if self.is_compacted() {
            return self.word(state as usize * self.stride);
        }
        if self.words == 1 && self.base == 0 {
            return hash(&[self.word(state as usize * self.stride) & self.last_word_mask]);
        }
        let mut words = [0; 16];
        match words.get_mut(..self.words) {
            Some(words) => {
                self.read::<FullStates>(state as usize, words);
                hash(words)
            }
            None => {
                let mut words = vec![0; self.words];
                self.read::<FullStates>(state as usize, &mut words);
                hash(&words)
            }
        }
    }
}

/// Space for some consecutive states.
pub(crate) struct Reservation<'a> {
    /// Bytes of the states that are still to be stored.
    bytes: &'a mut [u8],
    /// Bytes per state.
    stride: usize,
    /// Space for the complete states, with hash compaction; `bytes` is then for signatures.
    full_states: Option<Box<Reservation<'a>>>,
}

impl Reservation<'_> {
    /// Stores the next state.
    #[inline(always)]
    pub fn push(&mut self, words: &[u64]) {
        if let Some(full_states) = &mut self.full_states {
            full_states.push_words(words);
            return self.push_words(&[hash(words)]);
        }
        self.push_words(words)
    }

    /// Stores packed words as they are.
    #[inline(always)]
    fn push_words(&mut self, words: &[u64]) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.len() >= 8 * words.len() {
            // The next state overwrites the excess bytes.
            for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        } else {
            for (bytes, word) in bytes[..self.stride].chunks_mut(8).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
            }
        }
        self.bytes = &mut bytes[self.stride..];
    }
}

impl UnexpandedStates {
    /// Maximum number of states held at a time so far.
    fn peak_count(&self) -> usize {
        self.max_count.max(self.states.count)
    }
}

impl Store {
    /// An empty store; `compact` selects hash compaction.
    pub fn new(packing: &Packing, compact: bool) -> Store {
        Store {
            states: match compact {
                true => States::compact(packing),
                false => States::new(packing),
            },
            parents: ParentMap::default(),
            table: Table::default(),
        }
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.states.count
    }

    /// Words of a packed state.
    pub fn words(&self) -> usize {
        self.states.words
    }

    /// Memory of the states, table and parents in bytes, with the peak number of unexpanded states. Depends only on the
    /// states.
    pub fn memory(&self) -> u64 {
        let states = (self.states.count * self.states.stride) as u64;
        let unexpanded = (self.states.unexpanded.as_ref()).map_or(0, |unexpanded| {
            (unexpanded.peak_count() * unexpanded.states.stride) as u64
        });
        states + unexpanded + self.table.memory() + self.parents.memory()
    }

    /// As [`Store::memory`], if at most `resident_limit` bytes of states are in memory: with the signatures of all states
    /// and as many bytes for unconfirmed assumptions. Depends only on the states.
    pub fn resident_memory(&self, resident_limit: Option<u64>) -> u64 {
        let states = self.states.bytes_of_all();
        match resident_limit {
            Some(limit) if states > limit => {
                let signatures = (SIGNATURE_BYTES * self.states.count) as u64;
                self.memory() - states + 2 * limit + signatures
            }
            _ => self.memory(),
        }
    }

    /// Reads a complete state into `words`.
    pub fn read(&self, state: usize, words: &mut [u64]) {
        match self.states.is_compacted() {
            true => self.states.read::<CompactStates>(state, words),
            false => self.states.read::<FullStates>(state, words),
        }
    }

    /// True if a stored state equals the packed one.
    pub fn equals(&self, state: usize, words: &[u64]) -> bool {
        match self.states.is_compacted() {
            true => self.states.equals::<CompactStates>(state, words),
            false if state < self.states.base => self.states.is_on_disk_as(state, words),
            false => self.states.equals::<FullStates>(state, words),
        }
    }

    /// Number of a state, if it is stored. Requires complete states. With `is_stored`, the state is known to be stored, so
    /// that the only one on disk with its signature need not be read.
    #[inline(always)]
    pub fn find(&self, hash: u64, words: &[u64], is_stored: bool) -> Option<u32> {
        if self.states.base > 0 {
            return self.find_with_disk(hash, words, is_stored);
        }
        let is_equal = |state| self.states.equals::<FullStates>(state as usize, words);
        self.table.find(hash, is_equal).ok()
    }

    /// As [`Store::find`], if some states are on disk.
    #[cold]
    fn find_with_disk(&self, hash: u64, words: &[u64], is_stored: bool) -> Option<u32> {
        let states = &self.states;
        let (mut similar, mut count) = (0, 0);
        let in_memory = self.table.find(hash, |state| {
            if state as usize >= states.base {
                return states.equals::<FullStates>(state as usize, words);
            }
            if states.resembles(state as usize, words) {
                (similar, count) = (state, count + 1);
            }
            false
        });
        match (in_memory, count) {
            (Ok(state), _) => Some(state),
            (Err(_), 0) => None,
            (Err(_), 1) if is_stored => Some(similar),
            _ => (self.table)
                .find(hash, |state| {
                    (state as usize) < states.base
                        && states.resembles(state as usize, words)
                        && states.is_on_disk_as(state as usize, words)
                })
                .ok(),
        }
    }

    /// Makes room in the table for `additional` entries.
    #[inline(always)]
    pub fn reserve(&mut self, additional: usize, team: &Team) {
        if self.table.must_grow(additional) {
            self.grow_table(additional, team);
        }
    }

    /// Grows the table. Growth in place reads states at random, so that with states on disk, the table is made again from
    /// all states in their order.
    #[cold]
    fn grow_table(&mut self, additional: usize, team: &Team) {
        if self.states.base == 0 {
            return self.table.grow(additional, &self.states, team);
        }
        let sizes = self.table.sizes();
        // The old table is freed first.
        self.table = Table::default();
        self.table = Table::grown(sizes, additional);
        let mut words = vec![0; self.states.words];
        for state in 0..self.states.count {
            self.states.read::<FullStates>(state, &mut words);
            let hash = hash(&words);
            if let Err(free) = self.table.find(hash, |_| false) {
                self.table.fill(free, hash, state as u32);
            }
        }
    }

    /// Appends a state whose parent [`ParentMap::restore`] has added. Returns false if the state is stored already.
    /// Requires complete states.
    pub fn restore(&mut self, words: &[u64]) -> bool {
        let hash = hash(words);
        self.reserve(1, &SINGLE_THREAD);
        let (states, table) = (&mut self.states, &mut self.table);
        let Err(free) = table.find(hash, |state| {
            states.equals::<FullStates>(state as usize, words)
        }) else {
            return false;
        };
        table.fill(free, hash, states.push::<FullStates>(words));
        true
    }

    /// Enters a state unless it is stored. For a new state, calls `accept`; if that returns false, the state is not
    /// entered, and the result is false.
    /// `parent` is as for [`ParentMap::append_child`].
    pub fn enter(
        &mut self,
        hash: u64,
        words: &[u64],
        parent: u64,
        accept: impl FnOnce() -> bool,
    ) -> bool {
        match self.states.is_compacted() {
            true => self.enter_as::<CompactStates>(hash, words, parent, accept),
            false => self.enter_as::<FullStates>(hash, words, parent, accept),
        }
    }

    /// As [`Store::enter`], for a known storage policy.
    #[inline(always)]
    pub fn enter_as<K: StorePolicy>(
        &mut self,
        hash: u64,
        words: &[u64],
        parent: u64,
        accept: impl FnOnce() -> bool,
    ) -> bool {
        self.reserve(1, &SINGLE_THREAD);
        let (states, table) = (&mut self.states, &mut self.table);
        if let Err(free) = table.find(hash, |state| states.equals::<K>(state as usize, words)) {
            if !accept() {
                return false;
            }
            table.fill(free, hash, states.push::<K>(words));
            self.parents.append_child(parent);
        }
        true
    }
}
