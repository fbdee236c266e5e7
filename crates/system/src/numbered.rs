//! Things that are kept once, each under a number.

use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash};

/// Which number stands under which hash. Whoever numbers things knows what stands under a number.
struct Slots {
    /// For each hash a number of that hash, from 1; 0 where there is none. There are a power of two.
    slots: Vec<u32>,
}

impl Slots {
    fn new() -> Slots {
        Slots {
            slots: vec![0; 1 << 10],
        }
    }

    /// The number under a hash that `is` the one asked for, or the place where it would stand.
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

    /// Makes room for one more than so many, whose hashes these are.
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

/// Things of a kind, numbered from 0 in the order in which they were met.
pub struct Numbered<T> {
    all: Vec<T>,
    slots: Slots,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered {
            all: Vec::new(),
            slots: Slots::new(),
        }
    }
}

impl<T: Eq + Hash> Numbered<T> {
    /// The number of a thing, and whether it is new.
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

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The thing of a number.
    pub fn thing(&self, number: u32) -> &T {
        &self.all[number as usize]
    }
}

/// Rows of numbers, each kept once, and one behind the other.
pub struct Rows {
    all: Vec<u32>,
    /// Where each row ends.
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
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The row of a number.
    pub fn row(&self, number: usize) -> &[u32] {
        row(&self.all, &self.ends, number)
    }

    /// The number of a row, and whether it is new.
    ///
    /// # Panics
    /// If more than 2³² numbers are to be kept.
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
    fn a_row_is_new_once_and_found_by_its_number() {
        let mut rows = Rows::default();
        // Of every length from none to six, and equal where they begin.
        let row = |number: u32| -> Vec<u32> { (0..number % 7).map(|at| at * number).collect() };
        for round in 0..2 {
            for number in 0..5000 {
                let (found, new) = rows.add(&row(number));
                assert_eq!(rows.row(found), row(number));
                assert!(round == 0 || !new);
            }
        }
        // Those without numbers are one, as are those of one.
        let all: std::collections::BTreeSet<Vec<u32>> = (0..5000).map(row).collect();
        assert_eq!(rows.len(), all.len());
    }

    #[test]
    fn a_thing_is_new_once_and_found_by_its_number() {
        let mut things = Numbered::default();
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
