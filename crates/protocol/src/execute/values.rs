//! Values that rules read and write, and a log of their changes to registers.

use super::members::Members;

/// Number of registers compared at a time by [`Values::fill`].
const SLOTS_PER_BLOCK: usize = 32;

/// Log of a rule's changes to registers: slot and previous value of each change, in order.
#[derive(Default, Debug)]
pub struct Changes {
    /// Register (counted from the first register) and its value before the change; after an undo, its value after the
    /// change.
    log: Vec<(u32, u16)>,
    /// True if a rule or its guard has read the sender or the agent's own identity.
    pub(super) is_identity_dependent: bool,
}

impl Changes {
    /// Clears the log.
    pub fn clear(&mut self) {
        self.log.clear();
        self.is_identity_dependent = false;
    }

    /// Returns true if the result of the event may depend on its sender or on the executing agent.
    pub fn is_identity_dependent(&self) -> bool {
        self.is_identity_dependent
    }

    /// Restores the registers to their values before the rule.
    pub fn undo(&mut self, registers: &mut [u16]) {
        for (slot, value) in self.log.iter_mut().rev() {
            std::mem::swap(&mut registers[*slot as usize], value);
        }
    }

    /// Reapplies the rule's changes after [`Changes::undo`]. Returns true if any register differs from before the rule.
    pub fn redo(&mut self, registers: &mut [u16]) -> bool {
        for (slot, value) in &mut self.log {
            std::mem::swap(&mut registers[*slot as usize], value);
        }
        // The first of several changes of a slot has its original value.
        let differs = |&(position, (slot, old_value)): &(usize, &(u32, u16))| {
            registers[*slot as usize] != *old_value
                && self.log[..position]
                    .iter()
                    .all(|(changed, _)| changed != slot)
        };
        self.log.iter().enumerate().any(|change| differs(&change))
    }
}

/// Registers of an agent, and the log of their changes.
pub(super) struct Registers<'s> {
    /// One value per slot of the registers.
    pub(super) slots: &'s mut [u16],
    /// Log of changes; `None` if the caller needs none.
    pub(super) changes: Option<&'s mut Changes>,
}

/// Values that rules read and write: the slots of the current line, followed by those of registers.
pub(super) struct Values<'s> {
    /// Slots of the variables of the current line.
    pub(super) line_slots: &'s mut [u16],
    /// Slots after those of the line.
    pub(super) registers: Registers<'s>,
}

impl Values<'_> {
    /// Value of a slot, counted from the first slot of the line.
    pub(super) fn get(&self, slot: usize) -> u16 {
        match slot.checked_sub(self.line_slots.len()) {
            None => self.line_slots[slot],
            Some(register) => self.registers.slots[register],
        }
    }

    /// Sets a slot, counted from the first slot of the line. A register that changes is logged.
    pub(super) fn set(&mut self, slot: usize, value: u16) {
        match slot.checked_sub(self.line_slots.len()) {
            None => self.line_slots[slot] = value,
            Some(register) => {
                let old_value = std::mem::replace(&mut self.registers.slots[register], value);
                let changes = self.registers.changes.as_mut();
                if let Some(changes) = changes.filter(|_| old_value != value) {
                    changes.log.push((register as u32, old_value));
                }
            }
        }
    }

    /// Slots of one variable.
    pub(super) fn slots(&self, first: usize, count: usize) -> &[u16] {
        match first.checked_sub(self.line_slots.len()) {
            None => &self.line_slots[first..][..count],
            Some(register) => &self.registers.slots[register..][..count],
        }
    }

    /// Sets these slots of one variable to a value. Most of many registers already have it, so they are tested in
    /// blocks.
    pub(super) fn fill(&mut self, first: usize, count: usize, value: u16) {
        if first < self.line_slots.len() {
            return self.line_slots[first..][..count].fill(value);
        }
        for block_start in (first..first + count).step_by(SLOTS_PER_BLOCK) {
            let block_slots = SLOTS_PER_BLOCK.min(first + count - block_start);
            let block = self.slots(block_start, block_slots).iter();
            if block.fold(0, |differs, slot| differs | (slot ^ value)) != 0 {
                (block_start..block_start + block_slots).for_each(|slot| self.set(slot, value));
            }
        }
    }

    /// Stores a set in the slots of one variable.
    pub(super) fn store_set(&mut self, first: usize, count: usize, set: &Members) {
        match self.line_slots.get_mut(first..first + count) {
            Some(slots) => set.write_to(slots),
            None => {
                let words = set.words().chain(std::iter::repeat(0));
                (first..first + count)
                    .zip(words)
                    .for_each(|(slot, word)| self.set(slot, word));
            }
        }
    }
}
