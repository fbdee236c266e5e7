//! Interners: each distinct value is stored once and identified by an index.

use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash};

/// Open-addressing hash index of an interner. It stores indices only; the interner compares the values.
struct Slots {
    /// Per slot an index plus 1, or 0 if the slot is free. The number of slots is a power of two.
    slots: Vec<u32>,
}

impl Slots {
    fn new() -> Slots {
        Slots {
            slots: vec![0; 1 << 10],
        }
    }

    /// Returns the index with this hash for which `is_match` returns true, or the free slot where it belongs.
    fn find(&self, hash: u64, is_match: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mut slot = hash as usize;
        loop {
            slot &= self.slots.len() - 1;
            match self.slots[slot] {
                0 => return Err(slot),
                number if is_match(number - 1) => return Ok(number - 1),
                _ => slot += 1,
            }
        }
    }

    /// Doubles the table if it is half full. `hash` returns the hash of each of the `count` stored values.
    fn grow_if_half_full(&mut self, count: usize, hash: impl Fn(u32) -> u64) {
        if count * 2 < self.slots.len() {
            return;
        }
        self.slots = vec![0; self.slots.len() * 2];
        for number in 0..count as u32 {
            if let Err(slot) = self.find(hash(number), |_| false) {
                self.slots[slot] = number + 1;
            }
        }
    }
}

/// Interned values, indexed from 0 in the order of their insertion.
pub struct Interner<T> {
    values: Vec<T>,
    slots: Slots,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            values: Vec::new(),
            slots: Slots::new(),
        }
    }
}

impl<T: Eq + Hash> Interner<T> {
    /// Interns a value. Returns its index, and true if it is new.
    pub fn number(&mut self, value: &T) -> (u32, bool)
    where
        T: Clone,
    {
        let values = &self.values;
        let hash = |value: &T| FxBuildHasher.hash_one(value);
        (self.slots).grow_if_half_full(values.len(), |number| hash(&values[number as usize]));
        let slot = (self.slots).find(hash(value), |number| values[number as usize] == *value);
        match slot {
            Ok(number) => (number, false),
            Err(free_slot) => {
                self.values.push(value.clone());
                self.slots.slots[free_slot] = self.values.len() as u32;
                (self.values.len() as u32 - 1, true)
            }
        }
    }

    /// Number of distinct values.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The value of an index.
    pub fn thing(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}

/// Interned rows of `u32`, stored one behind the other.
pub struct Rows {
    values: Vec<u32>,
    /// End of each row in `values`.
    ends: Vec<u32>,
    slots: Slots,
}

impl Default for Rows {
    fn default() -> Self {
        Rows {
            values: Vec::new(),
            ends: Vec::new(),
            slots: Slots::new(),
        }
    }
}

impl Rows {
    /// Number of distinct rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if no row has been added.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The row of an index.
    pub fn row(&self, number: usize) -> &[u32] {
        row(&self.values, &self.ends, number)
    }

    /// Interns a row. Returns its index, and true if it is new.
    ///
    /// # Panics
    /// If the lengths of all rows add up to 2³² or more.
    pub fn add(&mut self, added: &[u32]) -> (usize, bool) {
        let Rows {
            values,
            ends,
            slots,
        } = self;
        let hash = |row: &[u32]| FxBuildHasher.hash_one(row);
        slots.grow_if_half_full(ends.len(), |number| {
            hash(row(values, ends, number as usize))
        });
        match slots.find(hash(added), |number| {
            row(values, ends, number as usize) == added
        }) {
            Ok(number) => (number as usize, false),
            Err(slot) => {
                values.extend_from_slice(added);
                let end = u32::try_from(values.len()).expect("fewer than 2³² numbers are kept");
                ends.push(end);
                slots.slots[slot] = ends.len() as u32;
                (ends.len() - 1, true)
            }
        }
    }
}

fn row<'r>(values: &'r [u32], ends: &[u32], number: usize) -> &'r [u32] {
    let start = number.checked_sub(1).map_or(0, |previous| ends[previous]);
    &values[start as usize..ends[number] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_interner_assigns_stable_numbers() {
        let mut rows = Rows::default();
        // Lengths from 0 to 6. All rows but the empty one begin with 0.
        let row = |number: u32| -> Vec<u32> { (0..number % 7).map(|at| at * number).collect() };
        for round in 0..2 {
            for number in 0..5000 {
                let (found, new) = rows.add(&row(number));
                assert_eq!(rows.row(found), row(number));
                assert!(round == 0 || !new);
            }
        }
        // All rows of length 0 are equal, and all of length 1.
        let values: std::collections::BTreeSet<Vec<u32>> = (0..5000).map(row).collect();
        assert_eq!(rows.len(), values.len());
    }

    #[test]
    fn interner_assigns_stable_numbers() {
        let mut things = Interner::default();
        for round in 0..2 {
            for number in 0..5000u32 {
                assert_eq!(things.number(&number.to_string()), (number, round == 0));
            }
        }
        assert_eq!(
            (things.count(), things.thing(4321).as_str()),
            (5000, "4321")
        );
    }
}
