//! Expansion of states by machine code.
//!
//! States are processed in batches. The successors of a batch are computed first, and their lines of the table are
//! prefetched. Meanwhile, the successors of the previous batch are entered in order.
//! If a state has a fault, a violated invariant, no move, or no room in the store, its remaining successors are not
//! entered. The interpreter then repeats this state.

use super::recent_states::RecentStates;
use crate::model::Deadlock;
use crate::native::{with_words, word_count, Kernel, NeedsInterpreter};
use crate::program::RuleSelection;
use crate::store::{hash, Store, StorePolicy};
use crate::symmetry::Scratch;
use crate::view::View;
use std::ops::Range;

/// Number of successors in a batch.
pub(super) const BATCH: usize = 64;

/// Reason why machine code stopped before the end.
pub(super) enum Stop {
    /// No machine code exists.
    NoMachineCode,
    /// The interpreter has to expand this state.
    NeedsInterpreter(usize),
    /// The search was cancelled before the expansion of this state.
    Interrupted(usize),
}

/// Source of the states to expand, and sink of their successors.
pub(super) trait Successors {
    /// Storage policy of the store.
    type Policy: StorePolicy;
    /// Store of the states to expand.
    fn store(&self) -> &Store;
    /// Next consecutive states to expand, beginning at `from`; `None` at the end.
    fn next_states(&mut self, from: usize) -> Option<Range<usize>>;
    /// Prefetches the state that an entry of the table refers to.
    fn prefetch(&self, entry: u32);
    /// Enters a successor. Returns false if the interpreter has to repeat the parent.
    fn enter(&mut self, hash: u64, successor: &[u64], parent: usize) -> bool;
    /// Records that all successors of `parent` were entered; `transitions` is the number of rules fired.
    fn complete_parent(&mut self, parent: usize, transitions: u64);
    /// True if the search is cancelled.
    fn is_cancelled(&self) -> bool;
}

/// Reusable buffers of one thread's expansion.
#[derive(Default)]
pub(super) struct Workspace {
    /// Working memory of canonicalisation.
    pub scratch: Scratch,
    /// Successors found recently, which need no look-up in the table.
    pub recent: RecentStates,
}

/// States expanded together, and their successors.
struct Batch<const W: usize> {
    /// Successors, in the order of their parents.
    states: Vec<[u64; W]>,
    /// Hash of each successor.
    hashes: Vec<u64>,
    /// Expanded states, in order.
    parents: Vec<Parent>,
}

/// A state that was expanded.
struct Parent {
    /// Number of the state.
    state: usize,
    /// End of its successors in the batch.
    end: usize,
    /// Number of rules fired.
    transitions: u64,
}

/// Expands states from `from` on, until `successors` has no more.
/// Fails with the reason to stop and the first state that was not expanded completely.
pub(super) fn expand_native<S: Successors>(
    kernel: &Kernel,
    from: usize,
    view: &View,
    workspace: &mut Workspace,
    successors: &mut S,
) -> Result<(), Stop> {
    let result = match S::Policy::COMPACT {
        false => with_words!(
            view.packing.words,
            W,
            expand_batches::<W, S>(kernel, from, view, workspace, successors)
        ),
        // Compacted states use dynamic dispatch: separate code for one thread and for several is not worthwhile.
        true => {
            let successors: &mut dyn Successors<Policy = S::Policy> = successors;
            with_words!(
                view.packing.words,
                W,
                expand_batches::<W, _>(kernel, from, view, workspace, successors)
            )
        }
    };
    result.unwrap_or(Err(Stop::NoMachineCode))
}

/// As [`expand_native`], for states of at most `W` words.
fn expand_batches<const W: usize, S: Successors + ?Sized>(
    kernel: &Kernel,
    from: usize,
    view: &View,
    workspace: &mut Workspace,
    successors: &mut S,
) -> Result<(), Stop> {
    let words = word_count::<W>(view.packing.words);
    let Some(states) = successors.next_states(from) else {
        return Ok(());
    };
    if workspace.recent.is_empty() {
        let mut known_state = [0; W];
        successors
            .store()
            .read(states.start, &mut known_state[..words]);
        workspace.recent.start(&known_state[..words]);
    }
    let (mut front, mut back) = (Batch::<W>::new(), Batch::new());
    // Next state to expand, and whether the interpreter has to expand it.
    let (mut next, mut needs_interpreter) = (states.start, false);
    loop {
        if successors.is_cancelled() {
            // The memory of recent successors contains some that were not entered.
            workspace.recent.forget();
            let state = (front.parents.first()).map_or(next, |parent| parent.state);
            return Err(Stop::Interrupted(state));
        }
        // Prefetches overlap: table lines load while the previous batch is entered, and candidate states load while the
        // next batch is expanded.
        let store = successors.store();
        for &hash in &front.hashes {
            if let Some(entry) = store.table.likely_entry(hash) {
                successors.prefetch(entry);
            }
        }
        back.clear();
        while !needs_interpreter && !back.is_full() {
            let Some(states) = successors.next_states(next) else {
                break;
            };
            let store = successors.store();
            (next, needs_interpreter) =
                back.fill::<S::Policy>(kernel, states, view, workspace, store);
        }
        back.filter_recent(view, workspace);
        let store = successors.store();
        for &hash in &back.hashes {
            store.table.prefetch(hash);
        }
        let mut child = 0;
        for parent in &front.parents {
            let children = child..parent.end;
            for (state, &hash) in front.states[children.clone()]
                .iter()
                .zip(&front.hashes[children])
            {
                if !successors.enter(hash, &state[..words], parent.state) {
                    // Later successors are not entered.
                    workspace.recent.forget();
                    return Err(Stop::NeedsInterpreter(parent.state));
                }
            }
            child = parent.end;
            successors.complete_parent(parent.state, parent.transitions);
        }
        std::mem::swap(&mut front, &mut back);
        if front.parents.is_empty() {
            return match needs_interpreter {
                true => Err(Stop::NeedsInterpreter(next)),
                false => Ok(()),
            };
        }
    }
}

impl<const W: usize> Batch<W> {
    fn new() -> Self {
        Batch {
            states: Vec::with_capacity(4 * BATCH),
            hashes: Vec::with_capacity(4 * BATCH),
            parents: Vec::with_capacity(4 * BATCH),
        }
    }

    fn clear(&mut self) {
        self.states.clear();
        self.hashes.clear();
        self.parents.clear();
    }

    /// True if the batch has enough successors or parents.
    fn is_full(&self) -> bool {
        self.states.len() >= BATCH || self.parents.len() >= 4 * BATCH
    }

    /// Expands consecutive states until the batch is full. Returns the next state, and true if the interpreter has to
    /// expand it.
    #[inline(always)]
    fn fill<K: StorePolicy>(
        &mut self,
        kernel: &Kernel,
        states: Range<usize>,
        view: &View,
        workspace: &Workspace,
        store: &Store,
    ) -> (usize, bool) {
        let words = word_count::<W>(view.packing.words);
        // Words beyond the packed state stay zero.
        let mut parent = [0; W];
        let end = states.end;
        for state in states {
            store.states.read::<K>(state, &mut parent[..words]);
            let states_before = self.states.len();
            let reach = |child: &[u64; W]| {
                let hash = hash(&child[..words]);
                workspace.recent.prefetch(hash, words);
                self.states.push(*child);
                self.hashes.push(hash);
            };
            match kernel.expand(&parent, RuleSelection::All, reach) {
                Ok(fired) if fired.moves || view.deadlock == Deadlock::Off => {
                    self.parents.push(Parent {
                        state,
                        end: self.states.len(),
                        transitions: fired.transitions,
                    });
                }
                Ok(_) | Err(NeedsInterpreter) => {
                    self.states.truncate(states_before);
                    self.hashes.truncate(states_before);
                    return (state, true);
                }
            }
            if self.is_full() {
                return (state + 1, false);
            }
        }
        (end, false)
    }

    /// Drops successors that were entered recently, and canonicalises the others.
    #[inline(always)]
    fn filter_recent(&mut self, view: &View, workspace: &mut Workspace) {
        let words = word_count::<W>(view.packing.words);
        let (mut child, mut kept_count) = (0, 0);
        for parent in &mut self.parents {
            let children = child..parent.end;
            child = parent.end;
            for i in children {
                let (mut state, mut state_hash) = (self.states[i], self.hashes[i]);
                let is_known = workspace
                    .recent
                    .contains_or_insert(state_hash, &state, words);
                if view.symmetry.is_some() && !is_known {
                    view.canonicalise(&mut state[..words], &mut workspace.scratch);
                    state_hash = hash(&state[..words]);
                }
                // The outcome is unpredictable, so the loop has no branch on it.
                (self.states[kept_count], self.hashes[kept_count]) = (state, state_hash);
                kept_count += !is_known as usize;
            }
            parent.end = kept_count;
        }
        self.states.truncate(kept_count);
        self.hashes.truncate(kept_count);
    }
}
