//! States expanded by machine code.
//!
//! Some states at a time: their successors are computed first, and the lines of the table
//! where they will be looked for are asked for; while these are on their way, successors that were computed before are
//! entered in order.
//! Where something goes wrong in a state (a fault, a broken invariant, no move, no room), none of its
//! successors from there on is entered, and the interpreter takes this state over.

use super::recent::Recent;
use super::*;
use crate::native::{exact, with_words, Kernel, Plain};
use std::ops::Range;

/// Successors to collect before they are entered.
pub(super) const BATCH: usize = 64;

/// Why machine code stopped before the end.
pub(super) enum Stop {
    /// There is none.
    NoMachineCode,
    /// This state has something for the interpreter.
    Plain(usize),
    /// The search is cancelled before this state is expanded.
    Interrupted(usize),
}

/// Which states are expanded, and where their successors go.
pub(super) trait Successors {
    /// How the store keeps states.
    type Kept: Keeping;
    fn store(&self) -> &Store;
    /// States in a row that are to be expanded next, when those before this one have been; `None` if there are no more.
    fn ahead(&mut self, from: usize) -> Option<Range<usize>>;
    /// Asks for the state that an entry of the table stands for.
    fn prefetch(&self, entry: u32);
    /// Takes a successor of a state; false if the interpreter has to take the state over.
    fn enter(&mut self, hash: u64, successor: &[u64], parent: usize) -> bool;
    /// All successors of this state were entered; so many rules had fired.
    fn done(&mut self, parent: usize, transitions: u64);
    /// Whether to stop.
    fn cancelled(&self) -> bool;
}

/// What one thread has at hand while it expands states.
#[derive(Default)]
pub(super) struct Workspace {
    pub scratch: Scratch,
    pub recent: Recent,
}

/// States expanded together, and their successors.
struct Batch<const W: usize> {
    states: Vec<[u64; W]>,
    hashes: Vec<u64>,
    parents: Vec<Parent>,
}

/// A state that was expanded.
struct Parent {
    state: usize,
    /// Where its successors end.
    end: usize,
    /// How many rules fired.
    transitions: u64,
}

/// Expands states from this one on.
pub(super) fn swift<S: Successors>(
    kernel: &Kernel,
    from: usize,
    view: &View,
    workspace: &mut Workspace,
    successors: &mut S,
) -> Result<(), Stop> {
    let done = match S::Kept::COMPACT {
        false => with_words!(
            view.packing.words,
            W,
            batches::<W, S>(kernel, from, view, workspace, successors)
        ),
        // Not worth code of its own for one thread and for several.
        true => {
            let successors: &mut dyn Successors<Kept = S::Kept> = successors;
            with_words!(
                view.packing.words,
                W,
                batches::<W, _>(kernel, from, view, workspace, successors)
            )
        }
    };
    done.unwrap_or(Err(Stop::NoMachineCode))
}

fn batches<const W: usize, S: Successors + ?Sized>(
    kernel: &Kernel,
    from: usize,
    view: &View,
    workspace: &mut Workspace,
    successors: &mut S,
) -> Result<(), Stop> {
    let words = exact::<W>(view.packing.words);
    let Some(states) = successors.ahead(from) else {
        return Ok(());
    };
    if workspace.recent.is_empty() {
        let mut known = [0; W];
        successors.store().read(states.start, &mut known[..words]);
        workspace.recent.start(&known[..words]);
    }
    let (mut front, mut back) = (Batch::<W>::new(), Batch::new());
    // The next state to be expanded, and whether it has something for the interpreter.
    let (mut next, mut plain) = (states.start, false);
    loop {
        if successors.cancelled() {
            // What is remembered of the states that were expanded last was not entered.
            workspace.recent.forget();
            let state = (front.parents.first()).map_or(next, |parent| parent.state);
            return Err(Stop::Interrupted(state));
        }
        // Lines of the table were asked for while the batch before was entered, and those of states that may be the
        // same are asked for while the batch behind is expanded: neither is waited for.
        let store = successors.store();
        for &hash in &front.hashes {
            if let Some(entry) = store.table.guess(hash) {
                successors.prefetch(entry);
            }
        }
        back.clear();
        while !plain && !back.is_full() {
            let Some(states) = successors.ahead(next) else {
                break;
            };
            let store = successors.store();
            (next, plain) = back.fill::<S::Kept>(kernel, states, view, workspace, store);
        }
        back.sift(view, workspace);
        let store = successors.store();
        for &hash in &back.hashes {
            store.table.prefetch(hash);
        }
        let mut child = 0;
        for parent in &front.parents {
            let own = child..parent.end;
            for (state, &hash) in front.states[own.clone()].iter().zip(&front.hashes[own]) {
                if !successors.enter(hash, &state[..words], parent.state) {
                    // What comes behind is not entered.
                    workspace.recent.forget();
                    return Err(Stop::Plain(parent.state));
                }
            }
            child = parent.end;
            successors.done(parent.state, parent.transitions);
        }
        std::mem::swap(&mut front, &mut back);
        if front.parents.is_empty() {
            return match plain {
                true => Err(Stop::Plain(next)),
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

    /// Whether there are enough successors, or parents.
    fn is_full(&self) -> bool {
        self.states.len() >= BATCH || self.parents.len() >= 4 * BATCH
    }

    /// Expands states in a row until there are enough successors. Gives the next state, and whether that has something
    /// for the interpreter.
    #[inline(always)]
    fn fill<K: Keeping>(
        &mut self,
        kernel: &Kernel,
        states: Range<usize>,
        view: &View,
        workspace: &Workspace,
        store: &Store,
    ) -> (usize, bool) {
        let words = exact::<W>(view.packing.words);
        // Words behind the state stay zero.
        let mut parent = [0; W];
        let end = states.end;
        for state in states {
            store.states.read::<K>(state, &mut parent[..words]);
            let before = self.states.len();
            let reach = |child: &[u64; W]| {
                let hash = hash(&child[..words]);
                workspace.recent.prefetch(hash, words);
                self.states.push(*child);
                self.hashes.push(hash);
            };
            match kernel.expand(&parent, true, reach) {
                Ok(fired) if fired.moves || view.deadlock == Deadlock::Off => {
                    self.parents.push(Parent {
                        state,
                        end: self.states.len(),
                        transitions: fired.transitions,
                    });
                }
                Ok(_) | Err(Plain) => {
                    self.states.truncate(before);
                    self.hashes.truncate(before);
                    return (state, true);
                }
            }
            if self.is_full() {
                return (state + 1, false);
            }
        }
        (end, false)
    }

    /// Leaves out what is known to have been entered lately, and makes canonical forms of the others.
    #[inline(always)]
    fn sift(&mut self, view: &View, workspace: &mut Workspace) {
        let words = exact::<W>(view.packing.words);
        let (mut child, mut kept) = (0, 0);
        for parent in &mut self.parents {
            let own = child..parent.end;
            child = parent.end;
            for i in own {
                let (mut state, mut place) = (self.states[i], self.hashes[i]);
                let known = workspace.recent.knows(place, &state, words);
                if view.symmetry.is_some() && !known {
                    view.canonicalise(&mut state[..words], &mut workspace.scratch);
                    place = hash(&state[..words]);
                }
                // Whether it is known cannot be foretold, so that nothing should wait for it.
                (self.states[kept], self.hashes[kept]) = (state, place);
                kept += !known as usize;
            }
            parent.end = kept;
        }
        self.states.truncate(kept);
        self.hashes.truncate(kept);
    }
}
