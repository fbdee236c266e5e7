//! Interpreter of one thread: loads a state, tries all rules, and judges the successors.

use super::FailedCheck;
use crate::interpret::{Fault, Machine};
use crate::model::Deadlock;
use crate::native::Guards;
use crate::program::{Instance, Program, RuleSelection};
use crate::store::Store;
use crate::symmetry::Scratch;
use crate::view::View;

/// A violation found during the expansion of a state.
pub(super) struct ExpansionFailure {
    /// The rule that was tried; `None` for the state itself.
    pub rule: Option<u32>,
    /// Check that failed.
    pub failed_check: FailedCheck,
}

/// Result of the expansion of a state.
pub(super) struct Expansion {
    /// Rules fired.
    pub transitions: u64,
    /// True if a rule leads to a different state. With [`Deadlock::Stuck`], true if any rule fires.
    pub moves: bool,
    /// Rule that leads to a different state in some orders of a loop over a scalarset, but not in all.
    move_by_order: Option<(u32, Fault)>,
}

/// Machine of one thread, with buffers for two packed states.
pub(super) struct Worker<'a> {
    /// Executable form of the model.
    pub program: &'a Program,
    /// Component to explore.
    pub view: &'a View,
    /// Precomputed guards. If given, rules whose guards they refute are skipped.
    pub guards: Option<&'a Guards>,
    /// Interpreter; its frame holds the current state.
    pub machine: Machine<'a>,
    /// Packed state that is being expanded.
    pub parent: Vec<u64>,
    /// Packed successor, or the state packed last.
    pub child: Vec<u64>,
    /// Working memory of canonicalisation.
    pub scratch: Scratch,
}

impl<'a> Worker<'a> {
    /// Creates a worker. Slots outside the view keep the values of the first start state.
    pub fn new(program: &'a Program, view: &'a View) -> Self {
        let words = view.packing.words;
        let mut machine = Machine::new(program);
        let _ = machine.start(0);
        Worker {
            program,
            view,
            guards: None,
            machine,
            parent: vec![0; words],
            child: vec![0; words],
            scratch: Scratch::default(),
        }
    }

    /// Replaces the child by the representative of its orbit.
    pub fn canonicalise_child(&mut self) {
        self.view.canonicalise(&mut self.child, &mut self.scratch);
    }

    /// Packs the representative of the frame's state into the child.
    pub fn pack_child(&mut self) {
        self.view.packing.pack(&self.machine.frame, &mut self.child);
        self.canonicalise_child();
    }

    /// Loads a stored state into the parent and the frame.
    pub fn load(&mut self, store: &Store, state: usize) {
        store.read(state, &mut self.parent);
        self.view
            .packing
            .unpack(&self.parent, &mut self.machine.frame);
    }

    /// First invariant that the frame's state violates, if any.
    pub fn violated_invariant(&mut self) -> Option<FailedCheck> {
        for claim in &self.view.invariants {
            match self.machine.run(claim.entry) {
                Ok(true) => {}
                Ok(false) => return Some(FailedCheck::Invariant(claim.invariant)),
                Err(fault) => return Some(FailedCheck::Fault(fault)),
            }
        }
        None
    }

    /// True if the frame's state is quiescent.
    pub fn is_quiescent(&mut self) -> Result<bool, Fault> {
        match &self.view.quiescent {
            Some(conjuncts) => self.holds(conjuncts),
            None => Ok(true),
        }
    }

    /// True if all conditions with these entries hold in the frame's state.
    pub fn holds(&mut self, conjuncts: &[u32]) -> Result<bool, Fault> {
        for &entry in conjuncts {
            if !self.machine.run(entry)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tries the selected rules on the loaded state, and passes each different successor to `reach`. There the machine's frame
    /// is the successor, and the child its stored form.
    pub fn expand(
        &mut self,
        selection: RuleSelection,
        mut reach: impl FnMut(&mut Self, u32) -> Result<(), FailedCheck>,
    ) -> Result<Expansion, ExpansionFailure> {
        let mut expansion = Expansion {
            transitions: 0,
            moves: false,
            move_by_order: None,
        };
        let (program, view) = (self.program, self.view);
        let mut priority = None;
        // Bit masks of the next 64 rules: those that the tables let through, and those whose guard the tables decide
        // only in part.
        let (mut possible, mut undecided) = (u64::MAX, u64::MAX);
        for (index, &instance) in view.rules.iter().enumerate() {
            if let Some(guards) = self.guards {
                if index % 64 == 0 {
                    (possible, undecided) = guards.enabled_rules(index / 64, &self.parent);
                }
                if possible >> (index % 64) & 1 == 0 {
                    continue;
                }
            }
            let rule = &program.rules[instance as usize];
            if !selection.includes(rule) {
                continue;
            }
            if priority.is_some_and(|enabled_priority| rule.priority > enabled_priority) {
                break;
            }
            let guard_decided = undecided >> (index % 64) & 1 == 0;
            let mut numbers = rule.numbers();
            while let Some(from) = numbers.next() {
                let next = match guard_decided {
                    true => Ok(Some(from)),
                    false => self.machine.next_enabled(rule, from),
                };
                let next = next.map_err(|(number, fault)| ExpansionFailure {
                    rule: Some(number),
                    failed_check: FailedCheck::Fault(fault),
                })?;
                let Some(number) = next else {
                    break;
                };
                numbers.start = number + 1;
                priority = Some(rule.priority);
                self.fire(rule, number, &mut expansion, &mut reach)?;
            }
        }
        let requires_move = matches!(
            view.deadlock,
            Deadlock::Stuttering | Deadlock::ExceptQuiescent
        );
        match expansion.move_by_order {
            // One state of the orbit has a move, and another has none.
            Some((rule, fault)) if !expansion.moves && requires_move => Err(ExpansionFailure {
                rule: Some(rule),
                failed_check: FailedCheck::Fault(fault),
            }),
            _ => Ok(expansion),
        }
    }

    /// Fires an enabled rule in the loaded state.
    #[inline(always)]
    fn fire(
        &mut self,
        rule: &Instance,
        number: u32,
        expansion: &mut Expansion,
        reach: &mut impl FnMut(&mut Self, u32) -> Result<(), FailedCheck>,
    ) -> Result<(), ExpansionFailure> {
        let view = self.view;
        let failure = |failed_check| ExpansionFailure {
            rule: Some(number),
            failed_check,
        };
        let fault = |fault| failure(FailedCheck::Fault(fault));
        if !self.machine.fire(rule, number).map_err(fault)? {
            self.machine.undo();
            return Ok(());
        }
        expansion.transitions += 1;
        expansion.moves |= view.deadlock == Deadlock::Stuck;
        self.child.copy_from_slice(&self.parent);
        for &(slot, _) in &self.machine.log {
            view.packing
                .patch(slot, self.machine.frame[slot as usize], &mut self.child);
        }
        if let Some(fault) = self.machine.move_by_order {
            expansion.move_by_order.get_or_insert((number, fault));
        }
        if self.child != self.parent {
            expansion.moves |= self.machine.move_by_order.is_none();
            if self.machine.satisfies_assumptions().map_err(fault)? {
                self.canonicalise_child();
                reach(self, number).map_err(failure)?;
            }
        }
        self.machine.undo();
        Ok(())
    }

    /// Deadlock judgement of a state without moves: `None` if it is no deadlock, else true if it is quiescent.
    pub fn judge_deadlock(&mut self) -> Result<Option<bool>, Fault> {
        Ok(match self.view.deadlock {
            Deadlock::Off => None,
            Deadlock::Stuttering | Deadlock::Stuck => Some(false),
            Deadlock::ExceptQuiescent => {
                let quiescent = self.is_quiescent()?;
                (!(quiescent && self.view.stop_at_deadlock)).then_some(quiescent)
            }
        })
    }
}
