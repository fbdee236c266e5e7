//! Interner: each distinct value is stored once and identified by a number.

use hashbrown::hash_table::{Entry, HashTable};
use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash};
use std::ops::Index;

/// Distinct values, numbered from 0 in the order of their insertion.
pub struct Interner<T> {
    /// Values by number.
    values: Vec<T>,
    /// Numbers of the values, by the hashes of the values.
    numbers: HashTable<u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            values: Vec::new(),
            numbers: HashTable::new(),
        }
    }
}

/// Hash of a value, the same in every run.
fn hash(value: &impl Hash) -> u64 {
    FxBuildHasher.hash_one(value)
}

impl<T: Eq + Hash> Interner<T> {
    /// Adds a value. Returns its number, and true if it is new.
    ///
    /// # Panics
    /// If there are 2³² values.
    pub fn add(&mut self, value: T) -> (u32, bool) {
        let Interner { values, numbers } = self;
        let is_value = |&number: &u32| values[number as usize] == value;
        let hash_of = |&number: &u32| hash(&values[number as usize]);
        match numbers.entry(hash(&value), is_value, hash_of) {
            Entry::Occupied(entry) => (*entry.get(), false),
            Entry::Vacant(entry) => {
                let number = u32::try_from(values.len()).expect("fewer than 2³² values are kept");
                entry.insert(number);
                values.push(value);
                (number, true)
            }
        }
    }

    /// As [`Interner::add`], with a clone of the value if it is new.
    ///
    /// # Panics
    /// If there are 2³² values.
    pub fn add_clone(&mut self, value: &T) -> (u32, bool)
    where
        T: Clone,
    {
        match self.number(value) {
            Some(number) => (number, false),
            None => self.add(value.clone()),
        }
    }

    /// Returns the number of a value, if it was added.
    pub fn number(&self, value: &T) -> Option<u32> {
        let is_value = |&number: &u32| self.values[number as usize] == *value;
        self.numbers.find(hash(value), is_value).copied()
    }

    /// Number of distinct values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if no value was added.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All values, in the order of their numbers.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// As [`Interner::values`], by value.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }
}

impl<T> Index<u32> for Interner<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Interner;

    #[test]
    fn interner_assigns_stable_numbers() {
        let mut interner = Interner::default();
        for is_new in [true, false] {
            for number in 0..5000u32 {
                assert_eq!(interner.add_clone(&number.to_string()), (number, is_new));
                assert_eq!(interner.add(number.to_string()), (number, false));
            }
        }
        assert_eq!((interner.len(), interner[4321].as_str()), (5000, "4321"));
        assert_eq!(interner.number(&"4999".to_string()), Some(4999));
        assert_eq!(interner.number(&"5000".to_string()), None);
    }
}
