//! States expanded by machine code, on one thread.
//!
//! Some states at a time: their successors are computed first, then the lines of the table
//! where they will be looked for are asked for all at once, and then they are entered in order.
//! Where something goes wrong in a state (a fault, a broken invariant, no move, no room), none of its
//! successors from there on is entered, and the interpreter takes this state over.

use super::*;
use crate::native::{exact, with_words, Kernel, Plain};

/// Successors to collect before they are entered.
pub(super) const BATCH: usize = 64;

/// Why machine code stopped before the end; [`Search::next`] is the state to go on with.
pub(super) enum Stop {
    /// There is none.
    NoMachineCode,
    /// This state has something for the interpreter.
    Plain,
    /// The search is cancelled.
    Interrupted,
}

/// States expanded together, and their successors.
struct Batch<const W: usize> {
    states: Vec<[u64; W]>,
    hashes: Vec<u64>,
    /// For each parent: where its successors end, and how many rules fired.
    parents: Vec<(usize, u64)>,
}

impl Search<'_> {
    /// Expands the states from `next` to `end`.
    pub(super) fn swift(&mut self, end: usize) -> Result<(), Stop> {
        let Some(native) = self.native.take() else {
            return Err(Stop::NoMachineCode);
        };
        let kernel = &native.kernel;
        let words = self.view.packing.words;
        let result = with_words!(words, W, self.batches::<W>(kernel, end));
        self.native = Some(native);
        result.unwrap_or(Err(Stop::NoMachineCode))
    }

    fn batches<const W: usize>(&mut self, kernel: &Kernel, end: usize) -> Result<(), Stop> {
        let words = exact::<W>(self.view.packing.words);
        // Words behind the state stay zero.
        let mut parent = [0; W];
        let most = self.most_states();
        let view = self.view;
        let mut scratch = Scratch::default();
        let mut batch = Batch {
            states: Vec::with_capacity(4 * BATCH),
            hashes: Vec::with_capacity(4 * BATCH),
            parents: Vec::with_capacity(BATCH),
        };
        while self.next < end {
            if self.cancelled() {
                return Err(Stop::Interrupted);
            }
            batch.states.clear();
            batch.hashes.clear();
            batch.parents.clear();
            let mut plain = false;
            for state in self.next..end {
                self.store.states.read(state, &mut parent[..words]);
                let before = batch.states.len();
                // The line of the table is on its way while further successors are computed.
                let reach = |child: &[u64; W]| {
                    let mut child = *child;
                    view.canonicalise(&mut child[..words], &mut scratch);
                    let hash = hash(&child[..words]);
                    self.store.regions[region_of(hash)].prefetch(hash);
                    batch.states.push(child);
                    batch.hashes.push(hash);
                };
                match kernel.expand(&parent, true, reach) {
                    Ok(fired) if fired.moves || self.view.deadlock == Deadlock::Off => {
                        batch.parents.push((batch.states.len(), fired.transitions));
                    }
                    Ok(_) | Err(Plain) => {
                        batch.states.truncate(before);
                        batch.hashes.truncate(before);
                        plain = true;
                        break;
                    }
                }
                if batch.states.len() >= BATCH || batch.parents.len() == BATCH {
                    break;
                }
            }
            for &hash in &batch.hashes {
                if let Some(state) = self.store.regions[region_of(hash)].guess(hash) {
                    self.store.states.prefetch(state);
                }
            }
            let mut child = 0;
            for &(successors, transitions) in &batch.parents {
                let parent = self.next as u64 + 1;
                let own = child..successors;
                for (state, &hash) in batch.states[own.clone()].iter().zip(&batch.hashes[own]) {
                    let room = (self.store.len() as u64) < most;
                    let accept = || room && kernel.fine(state);
                    if !self.store.enter(hash, &state[..words], parent, accept) {
                        return Err(Stop::Plain);
                    }
                }
                child = successors;
                self.transitions += transitions;
                self.next += 1;
            }
            if plain {
                return Err(Stop::Plain);
            }
        }
        Ok(())
    }
}
