//! Breadth-first exploration by the interpreter on one thread, for reports.
//!
//! [`crate::search`] is optimised for verdicts and stores only what they need.
//! Reports need every move, of a limited number of states; they repeat the exploration here.
//! With symmetry, one state of each orbit is explored, as in the search.
//! States are numbered in the order in which the search finds them.

use crate::interpret::{Fault, Machine};
use crate::program::{Program, RuleSelection};
use crate::symmetry::Scratch;
use crate::view::View;
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Packed states, with the machine that explores them.
pub(crate) struct Explorer<'a> {
    /// Program with notes, if the moves are to be reported with them.
    pub program: &'a Program,
    /// Component that is explored.
    view: &'a View,
    /// Machine; its frame holds the state loaded or entered last.
    pub machine: Machine<'a>,
    /// All states, concatenated.
    packed: Vec<u64>,
    /// Number of states.
    count: usize,
    /// Hash table of state numbers plus one; 0 for an empty entry. Its length is a power of two.
    table: Vec<u32>,
    /// Buffer for the current state.
    key: Vec<u64>,
    /// Working memory of canonicalisation.
    scratch: Scratch,
}

/// A rule that fires in a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Move {
    /// Number of the rule.
    pub rule: u32,
    /// Index of its instance in the view.
    pub view_index: usize,
    /// Successor, which may be the same state; `None` if an assumption excludes it.
    pub to: Option<u32>,
    /// True if the successor is a new state.
    pub is_new: bool,
}

/// Fault of a rule that could not be completed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RuleFault {
    /// Number of the rule.
    pub rule: u32,
    /// Instruction and value of the fault.
    pub fault: Fault,
}

impl<'a> Explorer<'a> {
    /// Creates an explorer without states. Slots outside the view keep their values of the first start state.
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

    /// Number of states found so far.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Enters the start states. Stops at the first that cannot be evaluated.
    pub fn start(&mut self) -> Result<(), Fault> {
        for start in 0..self.program.start_count() {
            if self.machine.start(start)? && self.machine.satisfies_assumptions()? {
                self.enter();
            }
        }
        self.machine.notes.clear();
        Ok(())
    }

    /// Enters the frame's state. Returns its number, and true if it is new.
    pub fn enter(&mut self) -> (u32, bool) {
        let mut key = std::mem::take(&mut self.key);
        self.pack(&mut key);
        let mut table_index = self.table_index(&key);
        let stored = self.table[table_index];
        if stored != 0 {
            self.key = key;
            return (stored - 1, false);
        }
        if 2 * (self.count + 1) > self.table.len() {
            self.grow();
            table_index = self.table_index(&key);
        }
        self.packed.extend_from_slice(&key);
        self.count += 1;
        self.table[table_index] = self.count as u32;
        self.key = key;
        (self.count as u32 - 1, true)
    }

    /// Number of the frame's state, if it is known.
    pub fn find(&mut self) -> Option<u32> {
        let mut key = std::mem::take(&mut self.key);
        self.pack(&mut key);
        let stored = self.table[self.table_index(&key)];
        self.key = key;
        stored.checked_sub(1)
    }

    /// Packs the representative of the frame's state.
    fn pack(&mut self, key: &mut [u64]) {
        let packing = &self.view.packing;
        packing.pack(&self.machine.frame, key);
        if let Some(symmetry) = &self.view.symmetry {
            symmetry.canonicalise(key, &mut self.scratch);
        }
    }

    /// Sets the frame to a state.
    pub fn load(&mut self, state: u32) {
        let words = self.view.packing.words;
        let first = state as usize * words;
        let packed = &self.packed[first..first + words];
        self.view.packing.unpack(packed, &mut self.machine.frame);
    }

    /// Index in the table of a state, or of the free entry for it.
    fn table_index(&self, key: &[u64]) -> usize {
        let mut hasher = FxHasher::default();
        key.iter().for_each(|&word| hasher.write_u64(word));
        let hash = hasher.finish();
        let mask = self.table.len() - 1;
        let mut table_index = (hash ^ (hash >> 29)) as usize & mask;
        let words = key.len();
        while let Some(state) = (self.table[table_index] as usize).checked_sub(1) {
            if self.packed[state * words..(state + 1) * words] == *key {
                break;
            }
            table_index = (table_index + 1) & mask;
        }
        table_index
    }

    /// Doubles the hash table, and enters all states again.
    fn grow(&mut self) {
        self.table = vec![0; 2 * self.table.len()];
        let words = self.view.packing.words;
        for state in 0..self.count {
            let table_index = self.table_index(&self.packed[state * words..(state + 1) * words]);
            self.table[table_index] = state as u32 + 1;
        }
    }

    /// Fires every enabled rule of the selection in a state, and enters the successors.
    /// `visit` receives every move, with the machine's notes; if it returns false, the expansion ends.
    pub fn expand(
        &mut self,
        state: u32,
        selection: RuleSelection,
        mut visit: impl FnMut(Move, &mut Machine) -> bool,
    ) -> Result<(), RuleFault> {
        self.load(state);
        let (program, view) = (self.program, self.view);
        let mut priority = None;
        for (view_index, &instance) in view.rules.iter().enumerate() {
            let rule = &program.rules[instance as usize];
            if !selection.includes(rule) {
                continue;
            }
            if priority.is_some_and(|enabled_priority| rule.priority > enabled_priority) {
                break;
            }
            let mut numbers = rule.numbers();
            while let Some(from) = numbers.next() {
                let next = self.machine.next_enabled(rule, from);
                let next = next.map_err(|(rule, fault)| RuleFault { rule, fault })?;
                let Some(number) = next else {
                    break;
                };
                numbers.start = number + 1;
                let failed = |fault| RuleFault {
                    rule: number,
                    fault,
                };
                priority = Some(rule.priority);
                self.machine.notes.clear();
                let fired = self.machine.fire(rule, number).map_err(failed)?;
                let mut should_continue = true;
                if fired {
                    let (to, is_new) = match self.machine.satisfies_assumptions().map_err(failed)? {
                        true => {
                            let (to, is_new) = self.enter();
                            (Some(to), is_new)
                        }
                        false => (None, false),
                    };
                    let step = Move {
                        rule: number,
                        view_index,
                        to,
                        is_new,
                    };
                    should_continue = visit(step, &mut self.machine);
                }
                self.machine.undo();
                if !should_continue {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
