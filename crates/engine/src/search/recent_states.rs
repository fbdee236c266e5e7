//! Cache of recently entered successors.
//!
//! Most successors are known, and many of them were found from another parent shortly before. This cache recognises
//! these in fast memory, before a look-up in the large table and before canonicalisation.

use crate::native::word_count;
use cohkit_base::memory::prefetch;

/// Size of a thread's cache in bytes; a larger one would no longer fit the processor's caches.
const CACHE_BYTES: usize = if cfg!(debug_assertions) {
    1 << 10
} else {
    1 << 19
};

/// Direct-mapped cache of states. Each state was entered, or is about to be entered.
#[derive(Default)]
pub(super) struct RecentStates {
    /// Packed states of the slots, concatenated; their number is a power of two, or 0 before the start.
    words: Vec<u64>,
}

impl RecentStates {
    /// Empties the cache. Every slot then holds `filler`, a state that has been entered.
    pub fn start(&mut self, filler: &[u64]) {
        let slots = (CACHE_BYTES / 8 / filler.len().max(1)).max(1);
        // Round down to a power of two.
        let slots = 1 << slots.ilog2();
        self.words.clear();
        for _ in 0..slots {
            self.words.extend_from_slice(filler);
        }
    }

    /// Empties the cache; [`RecentStates::start`] must follow before the next use.
    pub fn forget(&mut self) {
        self.words.clear();
    }

    /// True if the cache has not been started.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Index of the slot of a state with this hash. Uses other bits of the hash than the first bucket and the tag of
    /// the table.
    #[inline(always)]
    fn slot_index(&self, hash: u64, words: usize) -> usize {
        let slots = self.words.len() / words.max(1);
        (hash >> 40) as usize & slots.wrapping_sub(1)
    }

    /// Prefetches the slot of a hash.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64, words: usize) {
        let offset = self.slot_index(hash, words) * words;
        prefetch(self.words.as_ptr().wrapping_add(offset));
    }

    /// True if the state is in the cache. Enters it otherwise.
    #[inline(always)]
    pub fn contains_or_insert<const W: usize>(
        &mut self,
        hash: u64,
        state: &[u64; W],
        words: usize,
    ) -> bool {
        let words = word_count::<W>(words);
        let slot = self.slot_index(hash, words);
        let Some(entry) = self.words.get_mut(slot * words..(slot + 1) * words) else {
            return false;
        };
        let is_equal = entry == &state[..words];
        entry.copy_from_slice(&state[..words]);
        is_equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::hash;

    #[test]
    fn cache_reports_only_inserted_states() {
        let mut recent = RecentStates::default();
        recent.start(&[7, 7]);
        assert!(recent.contains_or_insert(hash(&[7, 7]), &[7, 7], 2));
        let mut inserted = std::collections::BTreeSet::from([[7, 7]]);
        let mut hits = 0;
        for i in 0..10_000u64 {
            let state = [i * i % 41, i % 17];
            let is_cached = recent.contains_or_insert(hash(&state), &state, 2);
            assert!(!is_cached || inserted.contains(&state));
            hits += is_cached as u32;
            inserted.insert(state);
        }
        assert!(hits > 100, "{hits}");
        recent.forget();
        assert!(recent.is_empty() && !recent.contains_or_insert(hash(&[7, 7]), &[7, 7], 2));
        // A state without bits.
        recent.start(&[]);
        assert!(!recent.contains_or_insert(hash(&[]), &[0], 0));
    }
}
