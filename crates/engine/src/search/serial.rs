//! Expansion of a stretch of states by one thread: by machine code, or by the interpreter where that is needed.

use super::batch::{self, Stop, Successors};
use super::worker::Worker;
use super::{Reason, Search, Verdict};
use crate::native::Kernel;
use crate::program::RuleSelection;
use crate::store::{hash, CompactStates, FullStates, StateHashes, Store, StorePolicy};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

impl Search<'_> {
    /// Expands the states from `next` to `end` with one thread.
    pub(super) fn expand_serial(&mut self, end: usize) -> Option<Verdict> {
        while self.frontier.next < end {
            let interpreted_end = match self.expand_native(end) {
                Ok(()) => return None,
                Err(Stop::Interrupted(state)) => {
                    self.frontier.next = state;
                    return Some(Verdict::Undecided(Reason::Interrupted));
                }
                Err(Stop::NeedsInterpreter(state)) => {
                    self.frontier.next = state;
                    state + 1
                }
                Err(Stop::NoMachineCode) => end,
            };
            let verdict = self.expand_interpreted(interpreted_end);
            if verdict.is_some() {
                return verdict;
            }
            self.frontier.next = interpreted_end;
        }
        None
    }

    /// Expands the states from `next` to `end` by machine code.
    fn expand_native(&mut self, end: usize) -> Result<(), Stop> {
        match self.store.states.is_compacted() {
            true => self.expand_native_with::<CompactStates>(end),
            false => self.expand_native_with::<FullStates>(end),
        }
    }

    /// As [`Search::expand_native`], for one storage policy.
    fn expand_native_with<K: StorePolicy>(&mut self, end: usize) -> Result<(), Stop> {
        let Some(kernel) = self.machine_code.kernel() else {
            return Err(Stop::NoMachineCode);
        };
        let max_states = self.state_limit();
        let mut expansion = SerialExpansion {
            policy: PhantomData::<K>,
            store: &mut self.store,
            end,
            max_states,
            kernel,
            transitions: 0,
            cancel: self.options.cancel,
        };
        let result = batch::expand_native(
            kernel,
            self.frontier.next,
            self.view,
            &mut self.workspace,
            &mut expansion,
        );
        self.transitions += expansion.transitions;
        result
    }

    /// Expands the states from `next` to `end` with the interpreter.
    fn expand_interpreted(&mut self, end: usize) -> Option<Verdict> {
        let mut worker = Worker::new(self.program, self.view);
        worker.guards = self.guards;
        let max_states = self.state_limit();
        for state in self.frontier.next..end {
            if state % 256 == 0 && self.is_cancelled() {
                self.frontier.next = state;
                return Some(Verdict::Undecided(Reason::Interrupted));
            }
            worker.load(&self.store, state);
            let store = &mut self.store;
            let mut full = false;
            let result = worker.expand(RuleSelection::All, |worker, _| {
                let hash = hash(&worker.child);
                let states_before = store.len();
                let has_room = (states_before as u64) < max_states;
                full |= !store.enter(hash, &worker.child, state as u64 + 1, || has_room);
                if store.len() > states_before {
                    if let Some(failed_check) = worker.violated_invariant() {
                        return Err(failed_check);
                    }
                }
                Ok(())
            });
            let verdict = match result {
                Err(failure) => Some(self.violation_verdict(state, failure)),
                Ok(expansion) => {
                    self.transitions += expansion.transitions;
                    if full {
                        self.unfinished_transitions = expansion.transitions;
                        Some(Verdict::Undecided(Reason::MaxStates))
                    } else if !expansion.moves {
                        self.handle_stuck_state(&mut worker, state)
                    } else {
                        None
                    }
                }
            };
            if verdict.is_some() {
                self.frontier.next = state;
                return verdict;
            }
        }
        None
    }
}

/// Source and sink of states in a search with one thread and machine code.
struct SerialExpansion<'a, K> {
    /// Storage policy of the store.
    policy: PhantomData<K>,
    /// Store that receives the successors.
    store: &'a mut Store,
    /// End of the states to be expanded.
    end: usize,
    /// Maximum number of states to store.
    max_states: u64,
    /// Machine code that judges the successors.
    kernel: &'a Kernel,
    /// Rules fired by the parents that were completed.
    transitions: u64,
    /// See [`Options::cancel`].
    cancel: Option<&'a AtomicBool>,
}

impl<K: StorePolicy> Successors for SerialExpansion<'_, K> {
    /// Storage policy of the store.
    type Policy = K;

    #[inline(always)]
    fn store(&self) -> &Store {
        self.store
    }

    #[inline(always)]
    fn next_states(&mut self, from: usize) -> Option<Range<usize>> {
        (from < self.end).then_some(from..self.end)
    }

    #[inline(always)]
    fn prefetch(&self, entry: u32) {
        self.store.states.prefetch(entry);
    }

    #[inline(always)]
    fn enter(&mut self, hash: u64, state: &[u64], parent: usize) -> bool {
        let has_room = (self.store.len() as u64) < self.max_states;
        let accept = || has_room && self.kernel.satisfies_invariants(state);
        self.store
            .enter_as::<K>(hash, state, parent as u64 + 1, accept)
    }

    #[inline(always)]
    fn complete_parent(&mut self, _: usize, transitions: u64) {
        self.transitions += transitions;
    }

    #[inline(always)]
    fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|c| c.load(Ordering::Relaxed))
    }
}
