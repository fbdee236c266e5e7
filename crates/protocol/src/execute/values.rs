//! What rules read and write, and what they have changed of registers.

use super::members::Members;

/// Registers that are looked at together.
const TOGETHER: usize = 32;

/// What a rule has changed of registers: which slots, each time it did, and what was there before.
#[derive(Default, Debug)]
pub struct Changes {
    of: Vec<(u32, u16)>,
    /// Whether a rule or its guard has asked who sent the message, or who the agent is.
    pub(super) asks_who: bool,
}

impl Changes {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.of.clear();
        self.asks_who = false;
    }

    /// Whether what came of the event may be something else for another sender or another agent.
    pub fn asks_who(&self) -> bool {
        self.asks_who
    }

    /// The registers become what they were before.
    pub fn undo(&mut self, registers: &mut [u16]) {
        for (slot, value) in self.of.iter_mut().rev() {
            std::mem::swap(&mut registers[*slot as usize], value);
        }
    }

    /// After [`Changes::undo`], they become again what the rule has made of them. Whether they differ from before.
    pub fn redo(&mut self, registers: &mut [u16]) -> bool {
        for (slot, value) in &mut self.of {
            std::mem::swap(&mut registers[*slot as usize], value);
        }
        // Of several changes of a slot the first one tells what was there.
        let differs = |&(place, (slot, before)): &(usize, &(u32, u16))| {
            registers[*slot as usize] != *before
                && self.of[..place].iter().all(|(other, _)| other != slot)
        };
        self.of.iter().enumerate().any(|change| differs(&change))
    }
}

/// The registers of an agent, and where changes of them are noted.
pub(super) struct Registers<'s> {
    pub(super) slots: &'s mut [u16],
    pub(super) changes: Option<&'s mut Changes>,
}

/// The values that rules read and write: those of the line at hand, and registers, whose slots come after them.
pub(super) struct Values<'s> {
    pub(super) of_line: &'s mut [u16],
    pub(super) registers: Registers<'s>,
}

impl Values<'_> {
    pub(super) fn get(&self, slot: usize) -> u16 {
        match slot.checked_sub(self.of_line.len()) {
            None => self.of_line[slot],
            Some(register) => self.registers.slots[register],
        }
    }

    pub(super) fn set(&mut self, slot: usize, value: u16) {
        match slot.checked_sub(self.of_line.len()) {
            None => self.of_line[slot] = value,
            Some(register) => {
                let before = std::mem::replace(&mut self.registers.slots[register], value);
                let changes = self.registers.changes.as_mut();
                if let Some(changes) = changes.filter(|_| before != value) {
                    changes.of.push((register as u32, before));
                }
            }
        }
    }

    /// The slots of one variable.
    pub(super) fn of(&self, first: usize, count: usize) -> &[u16] {
        match first.checked_sub(self.of_line.len()) {
            None => &self.of_line[first..][..count],
            Some(register) => &self.registers.slots[register..][..count],
        }
    }

    /// These slots of one variable all become this value. Of many registers most have it already, so they are looked at
    /// together.
    pub(super) fn fill(&mut self, first: usize, count: usize, value: u16) {
        if first < self.of_line.len() {
            return self.of_line[first..][..count].fill(value);
        }
        for from in (first..first + count).step_by(TOGETHER) {
            let count = TOGETHER.min(first + count - from);
            let others = self.of(from, count).iter();
            if others.fold(0, |differs, slot| differs | (slot ^ value)) != 0 {
                (from..from + count).for_each(|slot| self.set(slot, value));
            }
        }
    }

    /// The slots of one variable become a set.
    pub(super) fn put(&mut self, first: usize, count: usize, set: &Members) {
        match self.of_line.get_mut(first..first + count) {
            Some(slots) => set.put(slots),
            None => {
                let words = set.words().chain(std::iter::repeat(0));
                (first..first + count)
                    .zip(words)
                    .for_each(|(slot, word)| self.set(slot, word));
            }
        }
    }
}
