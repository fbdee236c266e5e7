//! Paths to states of a search, recovered by firing the rules again.

use super::worker::{ExpansionFailure, Worker};
use super::{FailedCheck, Path, Search, Verdict};
use crate::program::RuleSelection;

impl Search<'_> {
    /// Verdict on a failure in the state with this number, with the path to it.
    pub(super) fn violation_verdict(&self, state: usize, failure: ExpansionFailure) -> Verdict {
        let (mut path, mut worker) = self.replay_to(state);
        let mut failure = failure;
        if self.view.symmetry.is_some() {
            // The path may end in another state of the orbit, in which the same check fails for other scalarset values.
            let repeated = worker.expand(RuleSelection::All, |worker, _| {
                match worker.violated_invariant() {
                    Some(failed_check) => Err(failed_check),
                    None => Ok(()),
                }
            });
            failure = repeated.err().unwrap_or(failure);
        }
        path.rules.extend(failure.rule);
        Verdict::FailedCheck(failure.failed_check, path)
    }

    /// The path on which a state was first found, or a path to another state of its orbit.
    pub(super) fn path(&self, state: usize) -> Path {
        self.replay_to(state).0
    }

    /// Path to a state, and an interpreter with the state loaded.
    fn replay_to(&self, state: usize) -> (Path, Worker<'_>) {
        let mut worker = Worker::new(self.program, self.view);
        let mut states = vec![state];
        while let Some(parent) = self.store.parents.parent(states[states.len() - 1]) {
            states.push(parent);
        }
        let states = self.read_states(&states);
        let mut path = Path::default();
        let start_state = &states[states.len() - 1];
        for candidate in 0..self.program.start_count() {
            if worker.machine.start(candidate) == Ok(true) {
                worker.pack_child();
                if worker.child == *start_state {
                    path.start = candidate;
                    break;
                }
            }
        }
        for state in states.iter().rev().skip(1) {
            let packing = &self.view.packing;
            packing.pack(&worker.machine.frame, &mut worker.parent);
            let mut fired_rule = None;
            let _ = worker.expand(RuleSelection::All, |worker, rule| {
                if worker.child != *state {
                    return Ok(());
                }
                packing.pack(&worker.machine.frame, &mut worker.child);
                fired_rule = Some(rule);
                // Found: any error ends the expansion.
                Err(FailedCheck::Deadlock)
            });
            path.rules.extend(fired_rule);
            let child = std::mem::take(&mut worker.child);
            packing.unpack(&child, &mut worker.machine.frame);
            worker.child = child;
        }
        let packing = &self.view.packing;
        packing.pack(&worker.machine.frame, &mut worker.parent);
        (path, worker)
    }

    /// Packed states with these numbers. Each was found from the one after it.
    fn read_states(&self, numbers: &[usize]) -> Vec<Vec<u64>> {
        let words = self.view.packing.words;
        if !self.store.states.is_compacted() {
            let read = |&number: &usize| {
                let mut state = vec![0; words];
                self.store.read(number, &mut state);
                state
            };
            return numbers.iter().map(read).collect();
        }
        // Compacted states are recomputed. If several successors of a state have the signature, the first one was
        // stored.
        let mut worker = Worker::new(self.program, self.view);
        let mut states: Vec<Vec<u64>> = Vec::new();
        for &number in numbers.iter().rev() {
            match states.last() {
                None => {
                    for start in 0..self.program.start_count() {
                        let exists = worker.machine.start(start) == Ok(true);
                        if exists && worker.machine.satisfies_assumptions() == Ok(true) {
                            worker.pack_child();
                            if self.store.equals(number, &worker.child) {
                                break;
                            }
                        }
                    }
                }
                Some(parent) => {
                    worker.parent.copy_from_slice(parent);
                    let packing = &self.view.packing;
                    packing.unpack(parent, &mut worker.machine.frame);
                    let _ = worker.expand(RuleSelection::All, |worker, _| {
                        match self.store.equals(number, &worker.child) {
                            // Found: any error ends the expansion.
                            true => Err(FailedCheck::Deadlock),
                            false => Ok(()),
                        }
                    });
                }
            }
            states.push(worker.child.clone());
        }
        states.reverse();
        states
    }
}
