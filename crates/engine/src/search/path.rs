//! Paths to states of a search, recovered by firing the rules again.

use super::*;

impl Search<'_> {
    /// Verdict on an event in a state, with the path to it.
    pub(super) fn broken(&self, state: usize, event: Event) -> Verdict {
        let (mut path, mut worker) = self.walk(state);
        let mut event = event;
        if self.view.symmetry.is_some() {
            // The path may end in another state of the orbit; there the same happens to other values.
            let there = worker.expand(true, |worker, _| match worker.broken_invariant() {
                Some(broken) => Err(broken),
                None => Ok(()),
            });
            event = there.err().unwrap_or(event);
        }
        path.rules.extend(event.rule);
        Verdict::FailedCheck(event.what, path)
    }

    /// The path on which a state was first found, or a path to another state of its orbit.
    pub(super) fn path(&self, state: usize) -> Path {
        self.walk(state).0
    }

    /// Path to a state, and an interpreter with the state loaded.
    fn walk(&self, state: usize) -> (Path, Worker<'_>) {
        let mut worker = Worker::new(self.program, self.view);
        let mut states = vec![state];
        while let Some(parent) = self.store.genealogy.parent(states[states.len() - 1]) {
            states.push(parent);
        }
        let states = self.stored(&states);
        let mut path = Path::default();
        let first = &states[states.len() - 1];
        for candidate in 0..self.program.start_count() {
            if worker.machine.start(candidate) == Ok(true) {
                worker.pack_child();
                if worker.child == *first {
                    path.start = candidate;
                    break;
                }
            }
        }
        for state in states.iter().rev().skip(1) {
            let packing = &self.view.packing;
            packing.pack(&worker.machine.frame, &mut worker.parent);
            let mut taken = None;
            let _ = worker.expand(true, |worker, rule| {
                if worker.child != *state {
                    return Ok(());
                }
                packing.pack(&worker.machine.frame, &mut worker.child);
                taken = Some(rule);
                // Found: any error ends the expansion.
                Err(FailedCheck::Deadlock)
            });
            path.rules.extend(taken);
            let child = std::mem::take(&mut worker.child);
            packing.unpack(&child, &mut worker.machine.frame);
            worker.child = child;
        }
        let packing = &self.view.packing;
        packing.pack(&worker.machine.frame, &mut worker.parent);
        (path, worker)
    }

    /// Packed states with these numbers. Each was found from the one after it.
    fn stored(&self, numbers: &[usize]) -> Vec<Vec<u64>> {
        let words = self.view.packing.words;
        if !self.store.states.compacted() {
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
                        let begun = worker.machine.start(start) == Ok(true);
                        if begun && worker.machine.satisfies_assumptions() == Ok(true) {
                            worker.pack_child();
                            if self.store.is(number, &worker.child) {
                                break;
                            }
                        }
                    }
                }
                Some(parent) => {
                    worker.parent.copy_from_slice(parent);
                    let packing = &self.view.packing;
                    packing.unpack(parent, &mut worker.machine.frame);
                    let _ = worker.expand(true, |worker, _| {
                        match self.store.is(number, &worker.child) {
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
