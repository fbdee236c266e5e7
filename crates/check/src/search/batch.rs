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

/// Where the successors of states go.
pub(super) trait Successors {
    /// How the store keeps states.
    type Kept: Keeping;
    fn store(&self) -> &Store;
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
pub(super) struct Near {
    pub scratch: Scratch,
    pub recent: Recent,
}

/// States expanded together, and their successors.
struct Batch<const W: usize> {
    states: Vec<[u64; W]>,
    hashes: Vec<u64>,
    /// For each parent: where its successors end, and how many rules fired.
    parents: Vec<(usize, u64)>,
}

/// Expands states in a row.
pub(super) fn swift<S: Successors>(
    kernel: &Kernel,
    states: Range<usize>,
    view: &View,
    near: &mut Near,
    successors: &mut S,
) -> Result<(), Stop> {
    let done = match S::Kept::COMPACT {
        false => with_words!(
            view.packing.words,
            W,
            batches::<W, S>(kernel, states, view, near, successors)
        ),
        // Not worth code of its own for one thread and for several.
        true => {
            let successors: &mut dyn Successors<Kept = S::Kept> = successors;
            with_words!(
                view.packing.words,
                W,
                batches::<W, _>(kernel, states, view, near, successors)
            )
        }
    };
    done.unwrap_or(Err(Stop::NoMachineCode))
}

fn batches<const W: usize, S: Successors + ?Sized>(
    kernel: &Kernel,
    states: Range<usize>,
    view: &View,
    near: &mut Near,
    successors: &mut S,
) -> Result<(), Stop> {
    let words = exact::<W>(view.packing.words);
    if near.recent.is_empty() && !states.is_empty() {
        let mut known = [0; W];
        successors.store().read(states.start, &mut known[..words]);
        near.recent.start(&known[..words]);
    }
    let (mut front, mut back) = (Batch::<W>::new(), Batch::new());
    // The next state whose successors are to be entered, and the next one to be expanded.
    let (mut next, mut begun) = (states.start, states.start);
    let mut plain = false;
    loop {
        if successors.cancelled() {
            // What is remembered of the states between was not entered.
            near.recent.forget();
            return Err(Stop::Interrupted(next));
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
        if !plain {
            plain = back.fill::<S::Kept>(kernel, begun..states.end, view, near, store);
            begun += back.parents.len();
        }
        let mut child = 0;
        for &(end, transitions) in &front.parents {
            let own = child..end;
            for (state, &hash) in front.states[own.clone()].iter().zip(&front.hashes[own]) {
                if !successors.enter(hash, &state[..words], next) {
                    // What comes behind is not entered.
                    near.recent.forget();
                    return Err(Stop::Plain(next));
                }
            }
            child = end;
            successors.done(next, transitions);
            next += 1;
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

    /// Expands states in a row until there are enough successors. True if it stops before a state that has something
    /// for the interpreter.
    #[inline(always)]
    fn fill<K: Keeping>(
        &mut self,
        kernel: &Kernel,
        states: Range<usize>,
        view: &View,
        near: &mut Near,
        store: &Store,
    ) -> bool {
        let words = exact::<W>(view.packing.words);
        // Words behind the state stay zero.
        let mut parent = [0; W];
        let mut plain = false;
        for state in states {
            store.states.read::<K>(state, &mut parent[..words]);
            let before = self.states.len();
            let reach = |child: &[u64; W]| {
                let hash = hash(&child[..words]);
                near.recent.prefetch(hash, words);
                self.states.push(*child);
                self.hashes.push(hash);
            };
            match kernel.expand(&parent, true, reach) {
                Ok(fired) if fired.moves || view.deadlock == Deadlock::Off => {
                    self.parents.push((self.states.len(), fired.transitions));
                }
                Ok(_) | Err(Plain) => {
                    self.states.truncate(before);
                    self.hashes.truncate(before);
                    plain = true;
                    break;
                }
            }
            if self.states.len() >= BATCH || self.parents.len() == 4 * BATCH {
                break;
            }
        }
        self.sift(view, near);
        for &hash in &self.hashes {
            store.table.prefetch(hash);
        }
        plain
    }

    /// Leaves out what is known to have been entered lately, and makes canonical forms of the others.
    #[inline(always)]
    fn sift(&mut self, view: &View, near: &mut Near) {
        let words = exact::<W>(view.packing.words);
        let (mut child, mut kept) = (0, 0);
        for (end, _) in &mut self.parents {
            let own = child..*end;
            child = *end;
            for i in own {
                let (mut state, mut place) = (self.states[i], self.hashes[i]);
                let known = near.recent.knows(place, &state, words);
                if view.symmetry.is_some() && !known {
                    view.canonicalise(&mut state[..words], &mut near.scratch);
                    place = hash(&state[..words]);
                }
                // Whether it is known cannot be foretold, so that nothing should wait for it.
                (self.states[kept], self.hashes[kept]) = (state, place);
                kept += !known as usize;
            }
            *end = kept;
        }
        self.states.truncate(kept);
        self.hashes.truncate(kept);
    }
}
