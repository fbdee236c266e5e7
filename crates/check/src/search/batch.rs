//! States expanded by machine code.
//!
//! Some states at a time: their successors are computed first, then the lines of the table
//! where they will be looked for are asked for all at once, and then they are entered in order.
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
    // Words behind the state stay zero.
    let mut parent = [0; W];
    let mut batch = Batch {
        states: Vec::with_capacity(4 * BATCH),
        hashes: Vec::with_capacity(4 * BATCH),
        parents: Vec::with_capacity(4 * BATCH),
    };
    if near.recent.is_empty() && !states.is_empty() {
        successors.store().read(states.start, &mut parent[..words]);
        near.recent.start(&parent[..words]);
    }
    let mut next = states.start;
    while next < states.end {
        if successors.cancelled() {
            return Err(Stop::Interrupted(next));
        }
        batch.states.clear();
        batch.hashes.clear();
        batch.parents.clear();
        let mut plain = false;
        let store = successors.store();
        for state in next..states.end {
            store.states.read::<S::Kept>(state, &mut parent[..words]);
            let before = batch.states.len();
            let reach = |child: &[u64; W]| {
                let mut child = *child;
                let mut place = hash(&child[..words]);
                let known = near.recent.knows(place, &child, words);
                if view.symmetry.is_some() {
                    if known {
                        return;
                    }
                    view.canonicalise(&mut child[..words], &mut near.scratch);
                    place = hash(&child[..words]);
                }
                batch.states.push(child);
                batch.hashes.push(place);
                // Whether it is known cannot be foretold, so that nothing should wait for it.
                let count = batch.hashes.len() - known as usize;
                batch.states.truncate(count);
                batch.hashes.truncate(count);
            };
            let expanded = kernel.expand(&parent, true, reach);
            // The lines of the table are on their way while further states are expanded.
            for &place in &batch.hashes[before..] {
                store.table.prefetch(place);
            }
            match expanded {
                Ok(fired) if fired.moves || view.deadlock == Deadlock::Off => {
                    batch.parents.push((batch.states.len(), fired.transitions));
                }
                Ok(_) | Err(Plain) => {
                    batch.states.truncate(before);
                    batch.hashes.truncate(before);
                    plain = true;
                    break;
                }
            }
            if batch.states.len() >= BATCH || batch.parents.len() == 4 * BATCH {
                break;
            }
        }
        for &hash in &batch.hashes {
            if let Some(entry) = store.table.guess(hash) {
                successors.prefetch(entry);
            }
        }
        let mut child = 0;
        for &(end, transitions) in &batch.parents {
            let own = child..end;
            for (state, &hash) in batch.states[own.clone()].iter().zip(&batch.hashes[own]) {
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
        if plain {
            return Err(Stop::Plain(next));
        }
    }
    Ok(())
}
