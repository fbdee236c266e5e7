//! New states that have no number yet, found by several threads at once.
//!
//! A thread writes a state here before it claims a place for it in the table, so that others can compare theirs with it.
//! Each candidate knows its parent, which is the first of those that have led to it, as in a search with one thread.

use crate::store::{hash, CANDIDATE};
use cohkit_base::memory::prefetch;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Candidates in a slab, which belongs to one thread.
pub(super) const SLAB: usize = 1 << 8;

/// Candidates at the most. No stretch should have as many.
const MOST: usize = 1 << 22;

struct Slab {
    parents: Box<[AtomicU32]>,
    words: Box<[AtomicU64]>,
}

/// All candidates of a stretch.
pub(super) struct Candidates {
    /// Words of a state.
    words: usize,
    slabs: Vec<OnceLock<Slab>>,
    /// Which slabs may be used.
    end: usize,
    /// How many slabs belong to somebody.
    taken: AtomicUsize,
}

/// Numbers of candidates that a thread may use next.
#[derive(Default)]
pub(super) struct Numbers {
    next: u32,
    end: u32,
    /// Slabs that belong to the thread, and how many of them it has used. It keeps them from stretch to stretch,
    /// since other threads' caches are farther away than its own.
    slabs: Vec<u32>,
    used: usize,
}

impl Numbers {
    /// All of the thread's candidates are forgotten.
    pub fn restart(&mut self) {
        (self.next, self.end, self.used) = (0, 0, 0);
    }

    /// Not even slabs belong to it any longer; see [`Candidates::clear`].
    pub fn forget(&mut self) {
        *self = Numbers::default();
    }
}

impl Candidates {
    pub fn new(words: usize) -> Candidates {
        Candidates {
            words,
            slabs: std::iter::repeat_with(OnceLock::new)
                .take(MOST / SLAB)
                .collect(),
            end: 0,
            taken: AtomicUsize::new(0),
        }
    }

    /// Forgets all of them. The numbers of new ones will be smaller than this. True if slabs belong to nobody
    /// any longer, because so many new ones would not have enough.
    pub fn clear(&mut self, numbers: usize, new: usize) -> bool {
        self.end = numbers.min(MOST) / SLAB;
        let taken = self.taken.get_mut();
        let scarce = *taken + new / SLAB > self.end;
        if scarce {
            *taken = 0;
        }
        scarce
    }

    /// The next entry that a thread may use; `None` if there are too many.
    #[inline(always)]
    pub fn next(&self, numbers: &mut Numbers) -> Option<u32> {
        if numbers.next == numbers.end && !self.take_slab(numbers) {
            return None;
        }
        Some(CANDIDATE | numbers.next)
    }

    #[cold]
    fn take_slab(&self, numbers: &mut Numbers) -> bool {
        if numbers.used == numbers.slabs.len() {
            let number = self.taken.fetch_add(1, Ordering::Relaxed);
            let Some(slab) = self.slabs[..self.end].get(number) else {
                return false;
            };
            slab.get_or_init(|| Slab {
                parents: (0..SLAB).map(|_| AtomicU32::new(0)).collect(),
                words: (0..SLAB * self.words).map(|_| AtomicU64::new(0)).collect(),
            });
            numbers.slabs.push(number as u32);
        }
        numbers.next = numbers.slabs[numbers.used] * SLAB as u32;
        numbers.used += 1;
        numbers.end = numbers.next + SLAB as u32;
        true
    }

    #[inline(always)]
    fn slab(&self, entry: u32) -> Option<(&Slab, usize)> {
        let number = (entry & !CANDIDATE) as usize;
        Some((self.slabs.get(number / SLAB)?.get()?, number % SLAB))
    }

    /// Asks for the state that an entry stands for.
    #[inline(always)]
    pub fn prefetch(&self, entry: u32) {
        if let Some((slab, i)) = self.slab(entry) {
            prefetch(slab.words.as_ptr().wrapping_add(i * self.words));
            prefetch(slab.parents.as_ptr().wrapping_add(i));
        }
    }

    /// Says what an entry stands for. Others see it once they see the entry in the table.
    #[inline(always)]
    pub fn write(&self, entry: u32, state: &[u64], parent: u32) {
        if let Some((slab, i)) = self.slab(entry) {
            slab.parents[i].store(parent, Ordering::Relaxed);
            for (place, &word) in slab.words[i * self.words..].iter().zip(state) {
                place.store(word, Ordering::Relaxed);
            }
        }
    }

    /// The entry is in the table; the thread goes on to the next one.
    #[inline(always)]
    pub fn used(&self, numbers: &mut Numbers) {
        numbers.next += 1;
    }

    #[inline(always)]
    pub fn is(&self, entry: u32, state: &[u64]) -> bool {
        self.slab(entry).is_some_and(|(slab, i)| {
            let words = &slab.words[i * self.words..(i + 1) * self.words];
            (words.iter().zip(state)).all(|(place, &word)| place.load(Ordering::Relaxed) == word)
        })
    }

    pub fn read(&self, entry: u32, state: &mut [u64]) {
        if let Some((slab, i)) = self.slab(entry) {
            for (place, word) in slab.words[i * self.words..].iter().zip(state) {
                *word = place.load(Ordering::Relaxed);
            }
        }
    }

    /// The hash of an entry's state.
    #[cold]
    pub fn hash(&self, entry: u32) -> u64 {
        let mut state = vec![0; self.words];
        self.read(entry, &mut state);
        hash(&state)
    }

    /// The parent of an entry's state: the first that has been found.
    #[inline(always)]
    pub fn parent(&self, entry: u32) -> u32 {
        (self.slab(entry)).map_or(0, |(slab, i)| slab.parents[i].load(Ordering::Relaxed))
    }

    /// An entry's state has another parent. If that is an earlier one than is known, it takes the place of the one
    /// that this gives.
    #[inline(always)]
    pub fn found_by(&self, entry: u32, parent: u32) -> Option<u32> {
        let (slab, i) = self.slab(entry)?;
        // Most are not; and who only reads a line leaves it to the others.
        if slab.parents[i].load(Ordering::Relaxed) <= parent {
            return None;
        }
        let before = slab.parents[i].fetch_min(parent, Ordering::Relaxed);
        (before > parent).then_some(before)
    }
}
