//! Everything that can be reached, once more and plainly: breadth first, by the interpreter, on one thread.
//!
//! [`crate::search`] is for verdicts, and keeps no more than it needs for them.
//! Reports need every move, of no more states than a report is worth making for; they walk again.
//! Where a view has symmetry one state of each orbit is found for all, as in the search.
//! States are numbered in the order in which the search finds them.

use crate::interpret::{Fault, Machine};
use crate::program::Program;
use crate::symmetry::Scratch;
use crate::view::View;
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Packed states with the machine that finds more of them.
pub(crate) struct Explorer<'a> {
    pub program: &'a Program,
    view: &'a View,
    /// Its frame is in the state that was loaded or entered last.
    pub machine: Machine<'a>,
    /// All states, one behind the other.
    packed: Vec<u64>,
    count: usize,
    /// Numbers of states plus one, by hash; 0 where there is none. Its length is a power of two.
    table: Vec<u32>,
    /// The state at hand.
    key: Vec<u64>,
    scratch: Scratch,
}

/// A rule that fires in a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Move {
    /// Its number.
    pub rule: u32,
    /// The place of its instance in the view.
    pub place: usize,
    /// The state it leads to, which may be the same; `None` if an assumption leaves that out.
    pub to: Option<u32>,
    /// Whether that state was not known before.
    pub new: bool,
}

/// A rule that could not be completed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Failed {
    pub rule: u32,
    pub fault: Fault,
}

impl<'a> Explorer<'a> {
    /// No states yet. A part is explored with all else as the first start state has it.
    pub fn new(program: &'a Program, view: &'a View) -> Explorer<'a> {
        let mut machine = Machine::new(program);
        let _ = machine.start(0);
        machine.notes.clear();
        Explorer {
            program,
            view,
            machine,
            packed: Vec::new(),
            count: 0,
            table: vec![0; 1 << 10],
            key: vec![0; view.packing.words],
            scratch: Scratch::default(),
        }
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Enters the start states. One that cannot be evaluated ends this.
    pub fn start(&mut self) -> Result<(), Fault> {
        for start in 0..self.program.start_count() {
            if self.machine.start(start)? && self.machine.assumed()? {
                self.enter();
            }
        }
        self.machine.notes.clear();
        Ok(())
    }

    /// The number of the frame's state, and whether it was not known before.
    pub fn enter(&mut self) -> (u32, bool) {
        let mut key = std::mem::take(&mut self.key);
        self.pack(&mut key);
        let mut at = self.place(&key);
        let known = self.table[at];
        if known != 0 {
            self.key = key;
            return (known - 1, false);
        }
        if 2 * (self.count + 1) > self.table.len() {
            self.grow();
            at = self.place(&key);
        }
        self.packed.extend_from_slice(&key);
        self.count += 1;
        self.table[at] = self.count as u32;
        self.key = key;
        (self.count as u32 - 1, true)
    }

    /// The number of the frame's state, if it is known.
    pub fn find(&mut self) -> Option<u32> {
        let mut key = std::mem::take(&mut self.key);
        self.pack(&mut key);
        let known = self.table[self.place(&key)];
        self.key = key;
        known.checked_sub(1)
    }

    /// Packs the frame's state, or the one that stands for its orbit.
    fn pack(&mut self, key: &mut [u64]) {
        let packing = &self.view.packing;
        packing.pack(&self.machine.frame, key);
        if let Some(symmetry) = &self.view.symmetry {
            symmetry.canonicalise(key, &mut self.scratch);
        }
    }

    /// Puts the frame into a state.
    pub fn load(&mut self, state: u32) {
        let words = self.view.packing.words;
        let first = state as usize * words;
        let packed = &self.packed[first..first + words];
        self.view.packing.unpack(packed, &mut self.machine.frame);
    }

    /// Where a state stands in the table, or would.
    fn place(&self, key: &[u64]) -> usize {
        let mut hasher = FxHasher::default();
        key.iter().for_each(|&word| hasher.write_u64(word));
        let hash = hasher.finish();
        let mask = self.table.len() - 1;
        let mut at = (hash ^ (hash >> 29)) as usize & mask;
        let words = key.len();
        while let Some(state) = (self.table[at] as usize).checked_sub(1) {
            if self.packed[state * words..(state + 1) * words] == *key {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        self.table = vec![0; 2 * self.table.len()];
        let words = self.view.packing.words;
        for state in 0..self.count {
            let at = self.place(&self.packed[state * words..(state + 1) * words]);
            self.table[at] = state as u32 + 1;
        }
    }

    /// Fires every rule that may fire in a state, and enters where they lead; `spontaneous` says whether
    /// spontaneous rules count. `each` sees every move, with the machine's notes on it; false ends the expansion.
    pub fn expand(
        &mut self,
        state: u32,
        spontaneous: bool,
        mut each: impl FnMut(Move, &mut Machine) -> bool,
    ) -> Result<(), Failed> {
        self.load(state);
        let (program, view) = (self.program, self.view);
        let mut priority = None;
        for (place, &instance) in view.rules.iter().enumerate() {
            let rule = &program.rules[instance as usize];
            if rule.spontaneous && !spontaneous {
                continue;
            }
            if priority.is_some_and(|first| rule.priority > first) {
                break;
            }
            let mut numbers = rule.numbers();
            while let Some(from) = numbers.next() {
                let next = self.machine.next(rule, from);
                let next = next.map_err(|(rule, fault)| Failed { rule, fault })?;
                let Some(number) = next else {
                    break;
                };
                numbers.start = number + 1;
                let failed = |fault| Failed {
                    rule: number,
                    fault,
                };
                priority = Some(rule.priority);
                self.machine.notes.clear();
                let fired = self.machine.fire(rule, number).map_err(failed)?;
                let mut go_on = true;
                if fired {
                    let (to, new) = match self.machine.assumed().map_err(failed)? {
                        true => {
                            let (to, new) = self.enter();
                            (Some(to), new)
                        }
                        false => (None, false),
                    };
                    let one = Move {
                        rule: number,
                        place,
                        to,
                        new,
                    };
                    go_on = each(one, &mut self.machine);
                }
                self.machine.undo();
                if !go_on {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
