//! Things that are kept once, each under a number.

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// Things of a kind, numbered from 0 in the order in which they were met.
pub struct Numbered<T> {
    all: Vec<Rc<T>>,
    numbers: FxHashMap<Rc<T>, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered {
            all: Vec::new(),
            numbers: FxHashMap::default(),
        }
    }
}

impl<T: Eq + Hash> Numbered<T> {
    /// The number of a thing, and whether it is new.
    pub fn number(&mut self, thing: T) -> (u32, bool) {
        if let Some(&number) = self.numbers.get(&thing) {
            return (number, false);
        }
        let number = self.all.len() as u32;
        let thing = Rc::new(thing);
        self.all.push(Rc::clone(&thing));
        self.numbers.insert(thing, number);
        (number, true)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The thing of a number.
    pub fn thing(&self, number: u32) -> Rc<T> {
        Rc::clone(&self.all[number as usize])
    }
}

/// Rows of equally many numbers, each kept once, and one behind the other.
pub struct Rows {
    width: usize,
    all: Vec<u32>,
    /// For each hash the row of that hash, from 1; 0 where there is none.
    slots: Vec<u32>,
}

impl Rows {
    /// No rows of this width.
    pub fn new(width: usize) -> Rows {
        Rows {
            width,
            all: Vec::new(),
            slots: vec![0; 1 << 10],
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len() / self.width
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The row of a number.
    pub fn row(&self, number: u32) -> &[u32] {
        let start = number as usize * self.width;
        &self.all[start..start + self.width]
    }

    /// The number of a row, if it is new.
    pub fn add(&mut self, row: &[u32]) -> Option<u32> {
        if self.len() * 2 >= self.slots.len() {
            self.slots = vec![0; self.slots.len() * 2];
            for number in 0..self.len() as u32 {
                let slot = self.slot(self.row(number));
                self.slots[slot] = number + 1;
            }
        }
        let slot = self.slot(row);
        if self.slots[slot] != 0 {
            return None;
        }
        let number = self.len() as u32;
        self.all.extend_from_slice(row);
        self.slots[slot] = number + 1;
        Some(number)
    }

    /// Where a row stands, or would.
    fn slot(&self, row: &[u32]) -> usize {
        let mut hasher = FxHasher::default();
        row.hash(&mut hasher);
        let mut slot = hasher.finish() as usize;
        loop {
            slot &= self.slots.len() - 1;
            match self.slots[slot] {
                0 => return slot,
                number if self.row(number - 1) == row => return slot,
                _ => slot += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_new_once_and_found_by_its_number() {
        let mut rows = Rows::new(2);
        for round in 0..2 {
            for number in 0..5000u32 {
                let new = rows.add(&[number % 50, number / 50]);
                assert_eq!(new, (round == 0).then_some(number));
            }
        }
        assert_eq!(rows.len(), 5000);
        assert_eq!(rows.row(4321), [21, 86]);
    }
}
