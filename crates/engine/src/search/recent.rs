//! Successors that were entered lately.
//!
//! Most successors are known already, and many of them were found by another parent not long ago.
//! Those are told here, from memory that is near, before they are looked for in the table, which is large,
//! and before a canonical form is made of them.

use crate::native::exact;
use cohkit_base::memory::prefetch;

/// Bytes that one thread has for them; more than that is no longer near.
const BYTES: usize = if cfg!(debug_assertions) {
    1 << 10
} else {
    1 << 19
};

/// States with a place for each by its hash, where the last one stays. Each was entered, or is about to be.
#[derive(Default)]
pub(super) struct Recent {
    words: Vec<u64>,
}

impl Recent {
    /// Forgets all, but for a state that is known.
    pub fn start(&mut self, known: &[u64]) {
        let places = (BYTES / 8 / known.len().max(1)).max(1);
        // The largest power of two that fits.
        let places = 1 << places.ilog2();
        self.words.clear();
        for _ in 0..places {
            self.words.extend_from_slice(known);
        }
    }

    /// Forgets all; has to be started again.
    pub fn forget(&mut self) {
        self.words.clear();
    }

    /// Whether it has not been started.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Where a state is that has this hash, if it is there: other bits of it than the table looks at first,
    /// as many as there are places.
    #[inline(always)]
    fn place(&self, hash: u64, words: usize) -> usize {
        let places = self.words.len() / words.max(1);
        (hash >> 40) as usize & places.wrapping_sub(1)
    }

    /// Asks for the place of a hash.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64, words: usize) {
        let at = self.place(hash, words) * words;
        prefetch(self.words.as_ptr().wrapping_add(at));
    }

    /// Whether the state is known, as far as is remembered; from now on it is.
    #[inline(always)]
    pub fn knows<const W: usize>(&mut self, hash: u64, state: &[u64; W], words: usize) -> bool {
        let words = exact::<W>(words);
        let place = self.place(hash, words);
        let Some(kept) = self.words.get_mut(place * words..(place + 1) * words) else {
            return false;
        };
        let same = kept == &state[..words];
        kept.copy_from_slice(&state[..words]);
        same
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::hash;

    #[test]
    fn only_what_was_told_is_known() {
        let mut recent = Recent::default();
        recent.start(&[7, 7]);
        assert!(recent.knows(hash(&[7, 7]), &[7, 7], 2));
        let mut told = std::collections::BTreeSet::from([[7, 7]]);
        let mut known = 0;
        for i in 0..10_000u64 {
            let state = [i * i % 41, i % 17];
            let here = recent.knows(hash(&state), &state, 2);
            assert!(!here || told.contains(&state));
            known += here as u32;
            told.insert(state);
        }
        assert!(known > 100, "{known}");
        recent.forget();
        assert!(recent.is_empty() && !recent.knows(hash(&[7, 7]), &[7, 7], 2));
        // A state of no bits.
        recent.start(&[]);
        assert!(!recent.knows(hash(&[]), &[0], 0));
    }
}
