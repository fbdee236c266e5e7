//! New states that have no number yet, found by several threads at once.
//!
//! A thread writes a state here before it claims a place for it in the table, so that others can compare theirs with it.
//! Each candidate knows its parent: of equal states the one with the first parent stays, as in a search with one thread.

use crate::store::{prefetch, CANDIDATE};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Candidates in a slab, which belongs to one thread.
const SLAB: usize = 1 << 10;

/// Slabs at the most, so that there are about four million candidates.
const MOST_SLABS: usize = 1 << 12;

/// In place of the parent of a candidate that gave way to an equal one.
const LOST: u32 = u32::MAX;

struct Slab {
    parents: Box<[AtomicU32]>,
    words: Box<[AtomicU64]>,
}

/// All candidates of a stretch.
pub(super) struct Candidates {
    /// Words of a state.
    words: usize,
    slabs: Vec<OnceLock<Slab>>,
    /// How many slabs belong to somebody.
    taken: AtomicUsize,
}

/// Numbers of candidates that a thread may use next.
#[derive(Default)]
pub(super) struct Numbers {
    next: u32,
    end: u32,
}

impl Candidates {
    pub fn new(words: usize) -> Candidates {
        Candidates {
            words,
            slabs: std::iter::repeat_with(OnceLock::new)
                .take(MOST_SLABS)
                .collect(),
            taken: AtomicUsize::new(0),
        }
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        *self.taken.get_mut() = 0;
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
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        let Some(slab) = self.slabs.get(number) else {
            return false;
        };
        slab.get_or_init(|| Slab {
            parents: (0..SLAB).map(|_| AtomicU32::new(0)).collect(),
            words: (0..SLAB * self.words).map(|_| AtomicU64::new(0)).collect(),
        });
        numbers.next = (number * SLAB) as u32;
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

    /// The parent with which the entry was written; greater than any if it gave way.
    #[inline(always)]
    pub fn parent(&self, entry: u32) -> u32 {
        self.slab(entry)
            .map_or(LOST, |(slab, i)| slab.parents[i].load(Ordering::Relaxed))
    }

    /// The entry gives way to an equal one. Gives its parent.
    pub fn lose(&self, entry: u32) -> u32 {
        self.slab(entry).map_or(LOST, |(slab, i)| {
            slab.parents[i].swap(LOST, Ordering::Relaxed)
        })
    }

    /// Whether the entry has not given way.
    pub fn stays(&self, entry: u32) -> bool {
        self.parent(entry) != LOST
    }
}
