//! States on disk.
//!
//! A search whose states take more memory than it may use keeps the last ones in memory. The others are read from its
//! checkpoints. For each of them, the memory has its entry in the table and a signature.
//!
//! Most successors are known states, so that reading each from disk at once would take one random access per transition.
//! A successor with the signature of a state on disk therefore counts as equal, and the assumption is *confirmed* later,
//! together with many others in the order of the states. If one is wrong, the search returns to its last checkpoint, and
//! compares states with those on disk at once for a while. Two states with equal signatures are rare: table and signature
//! together compare more than 60 bits of two hashes.

use super::States;
use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
}

/// Error that occurred when a checkpoint was read.
#[derive(Debug)]
pub(crate) struct ReadError {
    /// Number of the checkpoint.
    pub checkpoint: u64,
    /// Reason.
    pub error: io::Error,
}

/// Number of parts of the unconfirmed assumptions, each with a lock of its own.
const SHARDS: usize = 64;

/// Bytes that are read together.
const BLOCK_BYTES: usize = 1 << 16;

/// Bytes of an unconfirmed assumption beside its state.
const ASSUMPTION_BYTES: usize = 16;

/// States on disk, as a part of [`States`].
pub(super) struct Disk {
    /// Distinguishes the disks of a process.
    id: usize,
    /// Contents of the checkpoints, in the order of their states.
    segments: Vec<Segment>,
    /// Signature of each state on disk.
    signatures: Vec<u32>,
    /// True if states are compared with those on disk at once.
    is_careful: bool,
    /// Assumptions that are not confirmed.
    assumptions: Vec<Mutex<Assumptions>>,
    /// Number of these assumptions.
    assumption_count: AtomicU64,
    /// True if two assumptions contradict each other.
    is_contradictory: AtomicBool,
    /// First error.
    error: Mutex<Option<ReadError>>,
}

/// Successors that count as equal to a state on disk.
#[derive(Default)]
struct Assumptions {
    /// Position of the words of each of these states in `words`.
    positions: rustc_hash::FxHashMap<u32, u32>,
    /// Words of the successors.
    words: Vec<u64>,
}

/// Number of the next disk.
static NEXT_ID: AtomicUsize = AtomicUsize::new(0);

/// The last block that a thread has read.
#[derive(Default)]
struct Block {
    /// Disk of the block.
    id: Option<usize>,
    /// Numbers of its states.
    states: Range<usize>,
    bytes: Vec<u8>,
}

thread_local! {
    /// States are mostly read in their order, so each thread keeps the block of the last one.
    static LAST_BLOCK: RefCell<Block> = RefCell::default();
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
    fn new() -> Disk {
        Disk {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            segments: Vec::new(),
            signatures: Vec::new(),
            is_careful: false,
            assumptions: (0..SHARDS).map(|_| Mutex::default()).collect(),
            assumption_count: AtomicU64::new(0),
            is_contradictory: AtomicBool::new(false),
            error: Mutex::new(None),
        }
    }

    /// Reads the bytes of consecutive states from `state` on: as many as are in one block and one checkpoint. Returns
    /// their number.
    fn read_block(&self, state: usize, stride: usize, bytes: &mut Vec<u8>) -> usize {
        let index = self.segments.partition_point(|one| one.states.end <= state);
        let Some(segment) = self.segments.get(index) else {
            let error = io::Error::other("no checkpoint has the state");
            let checkpoint = self.segments.len() as u64;
            lock(&self.error).get_or_insert(ReadError { checkpoint, error });
            bytes.clear();
            bytes.resize(stride, 0);
            return 1;
        };
        let count = (BLOCK_BYTES / stride)
            .max(1)
            .min(segment.states.end - state);
        bytes.resize(count * stride, 0);
        let position = segment.position + ((state - segment.states.start) * stride) as u64;
        if let Err(error) = segment.contents.read_at(position, bytes) {
            let checkpoint = segment.checkpoint;
            lock(&self.error).get_or_insert(ReadError { checkpoint, error });
            bytes.fill(0);
        }
        count
    }

    /// Calls a function with the bytes of a state.
    fn with_bytes<T>(&self, state: usize, stride: usize, work: impl FnOnce(&[u8]) -> T) -> T {
        LAST_BLOCK.with_borrow_mut(|block| {
            if block.id != Some(self.id) || !block.states.contains(&state) {
                let count = self.read_block(state, stride, &mut block.bytes);
                (block.id, block.states) = (Some(self.id), state..state + count);
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
            self.is_contradictory.store(true, Ordering::Relaxed);
        }
    }
}

/// True if the bytes of a stored state are those of packed words.
fn has_bytes(bytes: &[u8], words: &[u64]) -> bool {
    let mut chunks = bytes.chunks(8).zip(words);
    chunks.all(|(bytes, word)| *bytes == word.to_le_bytes()[..bytes.len()])
}

/// States on disk.
impl States {
    /// Allows states on disk.
    pub fn use_disk(&mut self) {
        self.disk = Some(Box::new(Disk::new()));
    }

    /// Adds a checkpoint from which states can be read.
    pub fn add_segment(&mut self, segment: Segment) {
        if let Some(disk) = &mut self.disk {
            disk.segments.push(segment);
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
            for (word, bytes) in words.iter_mut().zip(state.chunks(8)) {
                let mut whole = [0; 8];
                whole[..bytes.len()].copy_from_slice(bytes);
                *word = u64::from_le_bytes(whole);
            }
            disk.signatures.push(signature(&words));
        }
        self.bytes.drain(..bytes);
        self.base = end;
    }

    /// Bytes of the states in memory.
    pub fn bytes_in_memory(&self) -> u64 {
        ((self.count - self.base) * self.stride) as u64
    }

    /// Number of bytes per state.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Number of states that are only on disk.
    pub fn count_on_disk(&self) -> usize {
        self.base
    }

    /// Memory of signatures and unconfirmed assumptions, in bytes.
    pub fn disk_memory(&self) -> u64 {
        let signatures = self.disk.as_ref().map_or(0, |disk| disk.signatures.len());
        4 * signatures as u64 + self.unconfirmed_bytes()
    }

    /// Memory of assumptions that are not confirmed, in bytes.
    pub fn unconfirmed_bytes(&self) -> u64 {
        let count =
            (self.disk.as_ref()).map_or(0, |disk| disk.assumption_count.load(Ordering::Relaxed));
        count * (8 * self.words + ASSUMPTION_BYTES) as u64
    }

    /// Selects whether states are compared with those on disk at once, so that nothing has to be confirmed.
    pub fn set_careful(&mut self, is_careful: bool) {
        if let Some(disk) = &mut self.disk {
            disk.is_careful = is_careful;
        }
    }

    /// First error in reading states, if any. All that was read since is meaningless.
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
        let Some(disk) = &self.disk else {
            return;
        };
        disk.with_bytes(state, self.stride, |bytes| {
            for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
                let mut whole = [0; 8];
                whole[..bytes.len()].copy_from_slice(bytes);
                *word = u64::from_le_bytes(whole);
            }
        });
    }

    /// True if a state has the signature of one on disk.
    pub(super) fn resembles(&self, state: usize, words: &[u64]) -> bool {
        (self.disk.as_ref()).is_some_and(|disk| disk.signatures[state] == signature(words))
    }

    /// True if a state is the one on disk, which is read.
    #[cold]
    pub(super) fn is_on_disk_as(&self, state: usize, words: &[u64]) -> bool {
        self.disk.as_ref().is_some_and(|disk| {
            disk.with_bytes(state, self.stride, |bytes| has_bytes(bytes, words))
        })
    }

    /// True if a state is the one on disk, or is assumed to be.
    #[inline(never)]
    pub(super) fn equals_on_disk(&self, state: usize, words: &[u64]) -> bool {
        if !self.resembles(state, words) {
            return false;
        }
        match &self.disk {
            Some(disk) if !disk.is_careful => {
                disk.assume(state, words);
                true
            }
            _ => self.is_on_disk_as(state, words),
        }
    }

    /// Compares all successors that count as equal to states on disk with these. Returns false if one differs.
    pub fn confirm(&mut self) -> bool {
        let (stride, word_count) = (self.stride, self.words);
        let Some(disk) = &mut self.disk else {
            return true;
        };
        let shards: Vec<Assumptions> = (disk.assumptions.iter())
            .map(|shard| std::mem::take(&mut *lock(shard)))
            .collect();
        disk.assumption_count.store(0, Ordering::Relaxed);
        let mut is_confirmed = !disk.is_contradictory.swap(false, Ordering::Relaxed);
        let mut states: Vec<(u32, u32)> = Vec::new();
        for shard in &shards {
            states.extend(shard.positions.iter().map(|(&state, &at)| (state, at)));
        }
        states.sort_unstable();
        for (state, position) in states {
            let start = position as usize * word_count;
            let words = &shards[state as usize % SHARDS].words[start..start + word_count];
            is_confirmed = is_confirmed
                && disk.with_bytes(state as usize, stride, |bytes| has_bytes(bytes, words));
        }
        is_confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::signature;

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
}
