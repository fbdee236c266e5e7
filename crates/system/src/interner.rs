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

    /// Returns the index with this hash for which `is` returns true, or the free slot where it belongs.
    fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mut slot = hash as usize;
        loop {
            slot &= self.slots.len() - 1;
            match self.slots[slot] {
                0 => return Err(slot),
                number if is(number - 1) => return Ok(number - 1),
                _ => slot += 1,
            }
        }
    }

    /// Doubles the table if it is half full. `hash` returns the hash of each of the `count` stored values.
    fn room(&mut self, count: usize, hash: impl Fn(u32) -> u64) {
        if count * 2 < self.slots.len() {
            return;
        }
        self.slots = vec![0; self.slots.len() * 2];
        for number in 0..count as u32 {
            if let Err(free) = self.find(hash(number), |_| false) {
                self.slots[free] = number + 1;
            }
        }
    }
}

/// Interned values, indexed from 0 in the order of their insertion.
pub struct Interner<T> {
    all: Vec<T>,
    slots: Slots,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            all: Vec::new(),
            slots: Slots::new(),
        }
    }
}

impl<T: Eq + Hash> Interner<T> {
    /// Interns a value. Returns its index, and true if it is new.
    pub fn number(&mut self, thing: &T) -> (u32, bool)
    where
        T: Clone,
    {
        let all = &self.all;
        let hash = |thing: &T| FxBuildHasher.hash_one(thing);
        (self.slots).room(all.len(), |number| hash(&all[number as usize]));
        let found = (self.slots).find(hash(thing), |number| all[number as usize] == *thing);
        match found {
            Ok(number) => (number, false),
            Err(free) => {
                self.all.push(thing.clone());
                self.slots.slots[free] = self.all.len() as u32;
                (self.all.len() as u32 - 1, true)
            }
        }
    }

    /// Number of distinct values.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The value of an index.
    pub fn thing(&self, number: u32) -> &T {
        &self.all[number as usize]
    }
}

/// Interned rows of `u32`, stored one behind the other.
pub struct Rows {
    all: Vec<u32>,
    /// End of each row in `all`.
    ends: Vec<u32>,
    slots: Slots,
}

impl Default for Rows {
    fn default() -> Self {
        Rows {
            all: Vec::new(),
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
        row(&self.all, &self.ends, number)
    }

    /// Interns a row. Returns its index, and true if it is new.
    ///
    /// # Panics
    /// If the lengths of all rows add up to 2³² or more.
    pub fn add(&mut self, added: &[u32]) -> (usize, bool) {
        let Rows { all, ends, slots } = self;
        let hash = |row: &[u32]| FxBuildHasher.hash_one(row);
        slots.room(ends.len(), |number| hash(row(all, ends, number as usize)));
        match slots.find(hash(added), |number| {
            row(all, ends, number as usize) == added
        }) {
            Ok(number) => (number as usize, false),
            Err(free) => {
                all.extend_from_slice(added);
                let end = u32::try_from(all.len()).expect("fewer than 2³² numbers are kept");
                ends.push(end);
                slots.slots[free] = ends.len() as u32;
                (ends.len() - 1, true)
            }
        }
    }
}

fn row<'r>(all: &'r [u32], ends: &[u32], number: usize) -> &'r [u32] {
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    &all[start as usize..ends[number] as usize]
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
        let all: std::collections::BTreeSet<Vec<u32>> = (0..5000).map(row).collect();
        assert_eq!(rows.len(), all.len());
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
