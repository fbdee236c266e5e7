//! New states without a number, found by several threads in parallel.
//!
//! A thread writes a state here before it claims a table entry for it, so that other threads can compare theirs with
//! it.
//! Each candidate records its parent: the first of those that lead to it, as in a search with one thread.

use crate::store::{hash, CANDIDATE};
use cohkit_base::memory::prefetch;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Number of candidates in a slab. A slab belongs to one thread.
pub(super) const SLAB_SIZE: usize = 1 << 8;

/// Maximum number of candidates; no stretch should need as many.
const MAX_CANDIDATES: usize = 1 << 22;

/// Memory of [`SLAB_SIZE`] candidates.
struct Slab {
    /// Parent of each candidate, counted from the first state of the stretch.
    parents: Box<[AtomicU32]>,
    /// Packed states, concatenated.
    words: Box<[AtomicU64]>,
}

/// All candidates of a stretch.
pub(super) struct Candidates {
    /// Words per state.
    words: usize,
    /// Slabs by number, allocated when a thread first takes them.
    slabs: Vec<OnceLock<Slab>>,
    /// Number of slabs that may be used.
    end: usize,
    /// Number of slabs assigned to threads.
    assigned_slabs: AtomicUsize,
}

/// Numbers of candidates that a thread may use next.
#[derive(Default)]
pub(super) struct CandidateNumbers {
    /// Next number to use.
    next: u32,
    /// End of the numbers in the current slab.
    end: u32,
    /// Slabs of the thread. A thread keeps its slabs from stretch to stretch, since they are in its own caches.
    slabs: Vec<u32>,
    /// Number of these slabs that are in use in this stretch.
    used: usize,
}

impl CandidateNumbers {
    /// Discards the thread's candidates, but keeps its slabs.
    pub fn restart(&mut self) {
        (self.next, self.end, self.used) = (0, 0, 0);
    }

    /// Discards the thread's slabs too; see [`Candidates::clear`].
    pub fn forget(&mut self) {
        *self = CandidateNumbers::default();
    }
}

impl Candidates {
    /// Creates an empty collection for states of `words` words.
    pub fn new(words: usize) -> Candidates {
        Candidates {
            words,
            slabs: std::iter::repeat_with(OnceLock::new)
                .take(MAX_CANDIDATES / SLAB_SIZE)
                .collect(),
            end: 0,
            assigned_slabs: AtomicUsize::new(0),
        }
    }

    /// Discards all candidates. Numbers of new ones will be below `numbers`. Returns true if all threads must give up
    /// their slabs, because the remaining ones are too few for `new` candidates.
    pub fn clear(&mut self, numbers: usize, new: usize) -> bool {
        self.end = numbers.min(MAX_CANDIDATES) / SLAB_SIZE;
        let assigned_slabs = self.assigned_slabs.get_mut();
        let scarce = *assigned_slabs + new / SLAB_SIZE > self.end;
        if scarce {
            *assigned_slabs = 0;
        }
        scarce
    }

    /// Next entry that a thread may use; `None` if none is left.
    #[inline(always)]
    pub fn next_entry(&self, numbers: &mut CandidateNumbers) -> Option<u32> {
        if numbers.next == numbers.end && !self.take_slab(numbers) {
            return None;
        }
        Some(CANDIDATE | numbers.next)
    }

    /// Continues with the thread's next slab, or a new one. Returns false if none is left.
    #[cold]
    fn take_slab(&self, numbers: &mut CandidateNumbers) -> bool {
        if numbers.used == numbers.slabs.len() {
            let number = self.assigned_slabs.fetch_add(1, Ordering::Relaxed);
            let Some(slab) = self.slabs[..self.end].get(number) else {
                return false;
            };
            slab.get_or_init(|| Slab {
                parents: (0..SLAB_SIZE).map(|_| AtomicU32::new(0)).collect(),
                words: (0..SLAB_SIZE * self.words)
                    .map(|_| AtomicU64::new(0))
                    .collect(),
            });
            numbers.slabs.push(number as u32);
        }
        numbers.next = numbers.slabs[numbers.used] * SLAB_SIZE as u32;
        numbers.used += 1;
        numbers.end = numbers.next + SLAB_SIZE as u32;
        true
    }

    /// Slab of an entry, and its position in the slab; `None` if the slab is not allocated.
    #[inline(always)]
    fn slab(&self, entry: u32) -> Option<(&Slab, usize)> {
        let number = (entry & !CANDIDATE) as usize;
        Some((
            self.slabs.get(number / SLAB_SIZE)?.get()?,
            number % SLAB_SIZE,
        ))
    }

    /// Prefetches the state of an entry.
    #[inline(always)]
    pub fn prefetch(&self, entry: u32) {
        if let Some((slab, i)) = self.slab(entry) {
            prefetch(slab.words.as_ptr().wrapping_add(i * self.words));
            prefetch(slab.parents.as_ptr().wrapping_add(i));
        }
    }

    /// Writes the state of an entry. Other threads see it once they see the entry in the table.
    #[inline(always)]
    pub fn write(&self, entry: u32, state: &[u64], parent: u32) {
        if let Some((slab, i)) = self.slab(entry) {
            slab.parents[i].store(parent, Ordering::Relaxed);
            for (cell, &word) in slab.words[i * self.words..].iter().zip(state) {
                cell.store(word, Ordering::Relaxed);
            }
        }
    }

    /// Marks the entry from [`Candidates::next_entry`] as used; the thread continues with the next one.
    #[inline(always)]
    pub fn mark_used(&self, numbers: &mut CandidateNumbers) {
        numbers.next += 1;
    }

    /// True if an entry holds this state.
    #[inline(always)]
    pub fn holds_state(&self, entry: u32, state: &[u64]) -> bool {
        self.slab(entry).is_some_and(|(slab, i)| {
            let words = &slab.words[i * self.words..(i + 1) * self.words];
            (words.iter().zip(state)).all(|(cell, &word)| cell.load(Ordering::Relaxed) == word)
        })
    }

    /// Copies the packed state of an entry.
    pub fn read(&self, entry: u32, state: &mut [u64]) {
        if let Some((slab, i)) = self.slab(entry) {
            for (cell, word) in slab.words[i * self.words..].iter().zip(state) {
                *word = cell.load(Ordering::Relaxed);
            }
        }
    }

    /// Hash of an entry's state.
    #[cold]
    pub fn hash(&self, entry: u32) -> u64 {
        let mut state = vec![0; self.words];
        self.read(entry, &mut state);
        hash(&state)
    }

    /// Parent of an entry's state: the first one found so far.
    #[inline(always)]
    pub fn parent(&self, entry: u32) -> u32 {
        (self.slab(entry)).map_or(0, |(slab, i)| slab.parents[i].load(Ordering::Relaxed))
    }

    /// Records another parent of an entry's state. If it is earlier than the recorded one, it replaces that one, which
    /// is returned.
    #[inline(always)]
    pub fn record_parent(&self, entry: u32, parent: u32) -> Option<u32> {
        let (slab, i) = self.slab(entry)?;
        // Most parents are not earlier. A plain read does not take the cache line from other threads.
        if slab.parents[i].load(Ordering::Relaxed) <= parent {
            return None;
        }
        let previous = slab.parents[i].fetch_min(parent, Ordering::Relaxed);
        (previous > parent).then_some(previous)
    }
}
