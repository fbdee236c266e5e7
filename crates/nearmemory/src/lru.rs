//! Set-associative arrays with LRU replacement; each set is in order of use, the most recent first.

/// An entry of a set.
pub(crate) trait Entry {
    /// Number that identifies the entry and selects its set, such as an address.
    fn key(&self) -> u64;
}

/// Sets of entries. A hash of the key selects the set.
#[derive(Clone, Debug)]
pub(crate) struct LruSets<E> {
    /// Entries of each set, the most recently used first.
    sets: Vec<Vec<E>>,
    /// Maximum number of entries of a set.
    ways: usize,
    /// Number of low bits of a key that do not select the set.
    low_bits: u32,
}

impl<E: Entry> LruSets<E> {
    /// Creates empty sets, a power of two, of `ways` entries each.
    pub(crate) fn new(sets: u64, ways: u64, low_bits: u32) -> LruSets<E> {
        LruSets {
            sets: (0..sets).map(|_| Vec::new()).collect(),
            ways: ways as usize,
            low_bits,
        }
    }

    /// Returns the index of the set of a key.
    #[inline(always)]
    fn set_index(&self, key: u64) -> usize {
        let number = key >> self.low_bits;
        (number ^ number >> 13 ^ number >> 26) as usize & (self.sets.len() - 1)
    }

    /// Finds an entry and makes it the most recently used one of its set.
    #[inline(always)]
    pub(crate) fn find(&mut self, key: u64) -> Option<&mut E> {
        let set = self.set_index(key);
        let set = &mut self.sets[set];
        let position = set.iter().position(|entry| entry.key() == key)?;
        if position > 0 {
            set[..=position].rotate_right(1);
        }
        set.first_mut()
    }

    /// Returns an entry. Does not change the order of use.
    pub(crate) fn get(&self, key: u64) -> Option<&E> {
        let set = &self.sets[self.set_index(key)];
        set.iter().find(|entry| entry.key() == key)
    }

    /// Returns an entry for a change that is not a use.
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut E> {
        let set = self.set_index(key);
        self.sets[set].iter_mut().find(|entry| entry.key() == key)
    }

    /// Inserts an entry that is absent. Returns the evicted entry, if any.
    pub(crate) fn put(&mut self, entry: E) -> Option<E> {
        let set = self.set_index(entry.key());
        let set = &mut self.sets[set];
        let victim = if set.len() >= self.ways {
            set.pop()
        } else {
            None
        };
        set.insert(0, entry);
        victim
    }

    /// Removes an entry and returns it, if present.
    pub(crate) fn remove(&mut self, key: u64) -> Option<E> {
        let set = self.set_index(key);
        let set = &mut self.sets[set];
        let position = set.iter().position(|entry| entry.key() == key)?;
        Some(set.remove(position))
    }

    /// Returns all entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        self.sets.iter().flatten()
    }
}
