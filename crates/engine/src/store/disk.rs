//! States on disk.
//!
//! A search whose states take more memory than it may use keeps the last ones in memory. The others are read from its
//! checkpoints. For each of them, the memory has its entry in the table and a signature.
//!
//! Most successors are known states, so that reading each from disk at once would take one random access per transition.
//! A successor with the signature of a state on disk therefore counts as equal, and the assumption is *confirmed* later,
//! together with many others in the order of the states. If one is wrong, the search returns to its last checkpoint. From
//! then on, this state on disk is *distrusted*: it is read whenever a successor has its signature. Wrong assumptions are
//! rare: the table compares the bucket and 8 bits of a hash, and the signature has 32 further bits.

use super::{hash, States};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::LocalKey;

/// A stored checkpoint, of which any part can be read by any thread.
pub trait ReadAt: Send + Sync {
    /// Fills `bytes` with the contents from a position on.
    ///
    /// # Errors
    /// They cannot be read, or are too short.
    fn read_at(&self, position: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// Consecutive states in a checkpoint.
pub(crate) struct Segment {
    /// Number of the checkpoint in its component.
    pub checkpoint: u64,
    /// Numbers of the states.
    pub states: Range<usize>,
    /// Position of the first state in the checkpoint.
    pub position: u64,
    /// Contents of the checkpoint.
    pub contents: Box<dyn ReadAt>,
    /// Checksum of each block of states.
    pub checksums: Vec<u64>,
}

/// Error that occurred when states of a checkpoint were read.
#[derive(Debug)]
pub(crate) struct ReadError {
    /// Number of the checkpoint.
    pub checkpoint: u64,
    /// Reason; `None` if the contents are not what was stored.
    pub error: Option<io::Error>,
}

/// Number of parts of the unconfirmed assumptions, each with a lock of its own.
const SHARDS: usize = 64;

/// Approximate number of bytes that are read together.
const BLOCK_BYTES: usize = 1 << 16;

/// Bytes of an unconfirmed assumption beside its state.
pub(crate) const ASSUMPTION_BYTES: usize = 16;

/// Bytes of a state on disk that stay in memory beside its entry in the table.
pub(crate) const SIGNATURE_BYTES: usize = 4;

/// Number of states in a block: a multiple of 8, so that a block has whole words.
pub(crate) fn states_per_block(stride: usize) -> usize {
    (BLOCK_BYTES / stride.max(1)).next_multiple_of(8).max(8)
}

/// Checksum of a block of states.
pub(crate) fn block_checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut checksum = bytes.len() as u64;
    for word in words.iter().chain([&last]) {
        checksum = hash(&[checksum, u64::from_le_bytes(*word)]);
    }
    checksum
}

/// States on disk, as a part of [`States`].
pub(super) struct Disk {
    /// Distinguishes the disks of a process.
    id: usize,
    /// Contents of the checkpoints, in the order of their states.
    segments: Vec<Segment>,
    /// Signature of each state on disk.
    pub signatures: Vec<u32>,
    /// True if every state with an equal signature is read at once.
    reads_every_state: bool,
    /// States that are read at once, since an assumption about them was wrong.
    distrusted: FxHashSet<u32>,
    /// Assumptions that are not confirmed.
    assumptions: Vec<Mutex<Assumptions>>,
    /// Number of these assumptions.
    assumption_count: AtomicU64,
    /// First error.
    error: Mutex<Option<ReadError>>,
}

/// Successors that count as equal to a state on disk.
#[derive(Default)]
struct Assumptions {
    /// Position of the words of each of these states in `words`.
    positions: FxHashMap<u32, u32>,
    /// Words of the successors.
    words: Vec<u64>,
    /// States with two different successors, of which one is not equal.
    contradicted: Vec<u32>,
}

/// Number of the next disk.
static NEXT_ID: AtomicUsize = AtomicUsize::new(0);

/// A block that a thread has read.
#[derive(Default)]
struct Block {
    /// Disk of the block.
    id: Option<usize>,
    /// Numbers of its states.
    states: Range<usize>,
    bytes: Vec<u8>,
}

thread_local! {
    /// The last block of states that are read in order or backward.
    static SWEPT_BLOCK: RefCell<Block> = RefCell::default();
    /// The last block of states that are compared, which are in no order.
    static COMPARED_BLOCK: RefCell<Block> = RefCell::default();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Signature of a packed state, independent of its hash.
fn signature(words: &[u64]) -> u32 {
    let mut signature = 0x1656_67b1_9e37_79f9_u64;
    for &word in words {
        signature = (signature ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
        signature ^= signature >> 29;
    }
    let signature = (signature.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 32) as u32;
    #[cfg(test)]
    let signature = super::signature::shortened_signature(signature);
    signature
}

impl Disk {
    fn new(distrusted: FxHashSet<u32>) -> Disk {
        Disk {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            segments: Vec::new(),
            signatures: Vec::new(),
            reads_every_state: false,
            distrusted,
            assumptions: (0..SHARDS).map(|_| Mutex::default()).collect(),
            assumption_count: AtomicU64::new(0),
            error: Mutex::new(None),
        }
    }

    fn note_error(&self, checkpoint: u64, error: Option<io::Error>) {
        lock(&self.error).get_or_insert(ReadError { checkpoint, error });
    }

    /// Reads the block of a state. After an error, its bytes are zero.
    fn read_block(&self, state: usize, stride: usize, block: &mut Block) {
        let index = self.segments.partition_point(|one| one.states.end <= state);
        let Some(segment) = self.segments.get(index) else {
            let error = io::Error::other("no checkpoint has the state");
            self.note_error(self.segments.len() as u64, Some(error));
            block.states = state..state + 1;
            block.bytes.clear();
            return block.bytes.resize(stride, 0);
        };
        let per_block = states_per_block(stride);
        let number = (state - segment.states.start) / per_block;
        let first = segment.states.start + number * per_block;
        let count = per_block.min(segment.states.end - first);
        block.id = Some(self.id);
        block.states = first..first + count;
        block.bytes.resize(count * stride, 0);
        let position = segment.position + ((first - segment.states.start) * stride) as u64;
        let result = segment.contents.read_at(position, &mut block.bytes);
        let expected = segment.checksums.get(number);
        match result {
            Ok(()) if expected == Some(&block_checksum(&block.bytes)) => {}
            result => {
                self.note_error(segment.checkpoint, result.err());
                block.bytes.fill(0);
            }
        }
    }

    /// Calls a function with the bytes of a state. The thread keeps its block.
    fn with_bytes<T>(
        &self,
        block: &'static LocalKey<RefCell<Block>>,
        (state, stride): (usize, usize),
        work: impl FnOnce(&[u8]) -> T,
    ) -> T {
        block.with_borrow_mut(|block| {
            if block.id != Some(self.id) || !block.states.contains(&state) {
                self.read_block(state, stride, block);
            }
            let offset = (state - block.states.start) * stride;
            work(&block.bytes[offset..offset + stride])
        })
    }

    /// Assumes that a state is the one on disk with the same signature.
    fn assume(&self, state: usize, words: &[u64]) {
        let mut assumptions = lock(&self.assumptions[state % SHARDS]);
        let end = (assumptions.words.len() / words.len().max(1)) as u32;
        let position = *assumptions.positions.entry(state as u32).or_insert(end);
        if position == end {
            assumptions.words.extend(words);
            self.assumption_count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let start = position as usize * words.len();
        if assumptions.words[start..start + words.len()] != *words {
            assumptions.contradicted.push(state as u32);
        }
    }
}

/// True if the bytes of a stored state are those of packed words.
fn has_bytes(bytes: &[u8], words: &[u64]) -> bool {
    let mut chunks = bytes.chunks(8).zip(words);
    chunks.all(|(bytes, word)| *bytes == word.to_le_bytes()[..bytes.len()])
}

/// Packs the bytes of a stored state into words.
fn read_words(bytes: &[u8], words: &mut [u64]) {
    for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
}

/// States on disk.
impl States {
    /// Allows states on disk. Those that are `distrusted` are read whenever a successor has their signature.
    pub fn use_disk(&mut self, distrusted: FxHashSet<u32>) {
        self.disk = Some(Box::new(Disk::new(distrusted)));
    }

    /// Returns the distrusted states.
    pub fn take_distrusted(&mut self) -> FxHashSet<u32> {
        let disk = self.disk.as_mut();
        disk.map_or_else(FxHashSet::default, |disk| {
            std::mem::take(&mut disk.distrusted)
        })
    }

    /// Adds a checkpoint from which states can be read.
    pub fn add_segment(&mut self, segment: Segment) {
        if let Some(disk) = &mut self.disk {
            disk.segments.push(segment);
        }
    }

    /// Gives the last segment the checksum of its next block.
    pub fn add_checksum(&mut self, checksum: u64) {
        let segments = self.disk.as_mut().map(|disk| &mut disk.segments);
        if let Some(segment) = segments.and_then(|segments| segments.last_mut()) {
            segment.checksums.push(checksum);
        }
    }

    /// Removes states before `end` from memory; a checkpoint has them.
    pub fn drop_before(&mut self, end: usize) {
        let Some(disk) = &mut self.disk else {
            return;
        };
        let bytes = (end - self.base) * self.stride;
        let mut words = vec![0_u64; self.words];
        for state in self.bytes[..bytes].chunks_exact(self.stride) {
            read_words(state, &mut words);
            disk.signatures.push(signature(&words));
        }
        self.bytes.drain(..bytes);
        self.base = end;
    }

    /// Bytes of the states in memory.
    pub fn bytes_in_memory(&self) -> u64 {
        ((self.count - self.base) * self.stride) as u64
    }

    /// Bytes of all states.
    pub fn bytes_of_all(&self) -> u64 {
        (self.count * self.stride) as u64
    }

    /// Number of bytes per state.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Memory of assumptions that are not confirmed, in bytes.
    pub fn unconfirmed_bytes(&self) -> u64 {
        let count =
            (self.disk.as_ref()).map_or(0, |disk| disk.assumption_count.load(Ordering::Relaxed));
        count * (8 * self.words + ASSUMPTION_BYTES) as u64
    }

    /// Selects whether every state on disk with an equal signature is read at once.
    pub fn read_every_state(&mut self, reads_every_state: bool) {
        if let Some(disk) = &mut self.disk {
            disk.reads_every_state = reads_every_state;
        }
    }

    /// First error in reading states, if any. States that were read after it are invalid.
    pub fn take_read_error(&mut self) -> Option<ReadError> {
        let disk = self.disk.as_mut()?;
        disk.error
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Reads a state from disk.
    #[cold]
    pub(super) fn read_from_disk(&self, state: usize, words: &mut [u64]) {
        if let Some(disk) = &self.disk {
            disk.with_bytes(&SWEPT_BLOCK, (state, self.stride), |bytes| {
                read_words(bytes, words)
            });
        }
    }

    /// True if a state has the signature of one on disk.
    pub(super) fn resembles(&self, state: usize, words: &[u64]) -> bool {
        (self.disk.as_ref()).is_some_and(|disk| disk.signatures[state] == signature(words))
    }

    /// True if a state is the one on disk, which is read.
    #[cold]
    pub(super) fn is_on_disk_as(&self, state: usize, words: &[u64]) -> bool {
        self.disk.as_ref().is_some_and(|disk| {
            disk.with_bytes(&COMPARED_BLOCK, (state, self.stride), |bytes| {
                has_bytes(bytes, words)
            })
        })
    }

    /// True if a state is the one on disk, or is assumed to be.
    #[inline(never)]
    pub(super) fn equals_on_disk(&self, state: usize, words: &[u64]) -> bool {
        let Some(disk) = self.disk.as_ref().filter(|_| self.resembles(state, words)) else {
            return false;
        };
        if disk.reads_every_state || disk.distrusted.contains(&(state as u32)) {
            return self.is_on_disk_as(state, words);
        }
        disk.assume(state, words);
        true
    }

    /// Compares all successors that count as equal to states on disk with these. Returns false if one differs; its state
    /// is then distrusted.
    pub fn confirm(&mut self) -> bool {
        let (stride, word_count) = (self.stride, self.words);
        let Some(disk) = &mut self.disk else {
            return true;
        };
        let shards: Vec<Assumptions> = (disk.assumptions.iter())
            .map(|shard| std::mem::take(&mut *lock(shard)))
            .collect();
        disk.assumption_count.store(0, Ordering::Relaxed);
        let mut states: Vec<(u32, u32)> = Vec::new();
        let mut wrong: Vec<u32> = Vec::new();
        for shard in &shards {
            states.extend(shard.positions.iter().map(|(&state, &at)| (state, at)));
            wrong.extend(&shard.contradicted);
        }
        states.sort_unstable();
        for (state, position) in states {
            let start = position as usize * word_count;
            let words = &shards[state as usize % SHARDS].words[start..start + word_count];
            let is_equal = disk.with_bytes(&COMPARED_BLOCK, (state as usize, stride), |bytes| {
                has_bytes(bytes, words)
            });
            if !is_equal {
                wrong.push(state);
            }
        }
        disk.distrusted.extend(&wrong);
        wrong.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FullStates, Store};
    use super::*;
    use crate::program::Packing;
    use std::sync::Arc;

    /// Words that differ in one bit have different signatures, in all but about one of 2^32 cases.
    #[test]
    fn signatures_depend_on_every_bit() {
        let words = [0x0123_4567_89ab_cdef, 0, u64::MAX];
        let mut found = std::collections::BTreeSet::from([signature(&words)]);
        for bit in 0..192 {
            let mut other = words;
            other[bit / 64] ^= 1 << (bit % 64);
            found.insert(signature(&other));
        }
        assert_eq!(found.len(), 193);
        assert_ne!(signature(&[1, 2]), signature(&[2, 1]));
    }

    /// Contents in memory, which count how often they are read.
    struct Counted {
        bytes: Vec<u8>,
        reads: Arc<AtomicUsize>,
    }

    impl ReadAt for Counted {
        fn read_at(&self, position: u64, bytes: &mut [u8]) -> io::Result<()> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            bytes.copy_from_slice(&self.bytes[position as usize..][..bytes.len()]);
            Ok(())
        }
    }

    /// States that are read forward or backward take one read per block, and a changed byte is noticed.
    #[test]
    fn blocks_are_read_once_in_either_direction_and_checked() {
        const COUNT: usize = 50_000;
        let reads = Arc::new(AtomicUsize::new(0));
        let packing = Packing::of_bytes(11);
        let mut store = Store::new(&packing, false);
        for state in 0..COUNT as u64 {
            store.enter(hash(&[state, 7]), &[state, 7], 0, || true);
        }
        store.states.use_disk(FxHashSet::default());
        let mut bytes = store.states.bytes_from(0).to_vec();
        let per_block = states_per_block(11);
        let checksums = bytes.chunks(11 * per_block).map(block_checksum).collect();
        let blocks = COUNT.div_ceil(per_block);
        bytes[11 * 7] ^= 1;
        let contents = Box::new(Counted {
            bytes,
            reads: Arc::clone(&reads),
        });
        store.states.add_segment(Segment {
            checkpoint: 3,
            states: 0..COUNT,
            position: 0,
            contents,
            checksums,
        });
        store.states.drop_before(COUNT);
        let mut words = [0; 2];
        let mut read = |store: &Store, state: usize| {
            store.states.read::<FullStates>(state, &mut words);
            words
        };
        for state in per_block..COUNT {
            assert_eq!(read(&store, state), [state as u64, 7]);
        }
        assert_eq!(reads.swap(0, Ordering::Relaxed), blocks - 1);
        for state in (per_block..COUNT).rev() {
            assert_eq!(read(&store, state), [state as u64, 7]);
        }
        assert_eq!(reads.swap(0, Ordering::Relaxed), blocks - 2);
        assert!(store.states.take_read_error().is_none());
        // The block with the changed byte.
        read(&store, 0);
        let error = store.states.take_read_error().expect("an error");
        assert!(error.error.is_none() && error.checkpoint == 3);
    }
}
