//! States expanded by machine code, on one thread.
//!
//! Some states at a time: their successors are computed first, then the lines of the table
//! where they will be looked for are asked for all at once, and then they are entered in order.
//! Where something goes wrong in a state (a fault, a broken invariant, no move, no room), none of its
//! successors from there on is entered, and the interpreter takes this state over.

use super::*;
use crate::native::{Kernel, Plain};

/// Successors to collect before they are entered.
const BATCH: usize = 64;

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
#[derive(Default)]
struct Batch {
    words: Vec<u64>,
    hashes: Vec<u64>,
    /// For each parent: where its successors end, and how many rules fired.
    parents: Vec<(usize, u64)>,
    scratch: Scratch,
}

impl Search<'_> {
    /// Expands the states from `next` to `end`.
    pub(super) fn swift(&mut self, end: usize) -> Result<(), Stop> {
        let Some(native) = self.native.take() else {
            return Err(Stop::NoMachineCode);
        };
        let kernel = &native.kernel;
        // With the number of words known, copies and comparisons need no loops.
        let result = match kernel.words() {
            1 => self.batches(kernel, end, &mut [0; 1]),
            2 => self.batches(kernel, end, &mut [0; 2]),
            3 => self.batches(kernel, end, &mut [0; 3]),
            4 => self.batches(kernel, end, &mut [0; 4]),
            words => self.batches(kernel, end, &mut vec![0; words]),
        };
        self.native = Some(native);
        result
    }

    #[inline(always)]
    fn batches(&mut self, kernel: &Kernel, end: usize, parent: &mut [u64]) -> Result<(), Stop> {
        let words = parent.len();
        let most = self.most_states();
        let mut batch = Batch::default();
        while self.next < end {
            if self.cancelled() {
                return Err(Stop::Interrupted);
            }
            batch.words.clear();
            batch.hashes.clear();
            batch.parents.clear();
            let mut plain = false;
            for state in self.next..end {
                self.store.states.read(state, parent);
                let before = batch.words.len();
                match kernel.expand(parent, &mut batch.words) {
                    Ok(fired) if fired.moves || self.view.deadlock == Deadlock::Off => {
                        let successors = batch.words.len() / words.max(1);
                        batch.parents.push((successors, fired.transitions));
                    }
                    Ok(_) | Err(Plain) => {
                        batch.words.truncate(before);
                        plain = true;
                        break;
                    }
                }
                if batch.words.len() >= BATCH * words {
                    break;
                }
            }
            if let Some(symmetry) = &self.view.symmetry {
                for child in batch.words.chunks_exact_mut(words.max(1)) {
                    symmetry.canonicalise(
                        self.program,
                        &self.view.packing,
                        child,
                        &mut batch.scratch,
                    );
                }
            }
            for child in batch.words.chunks_exact(words.max(1)) {
                let hash = hash(child);
                self.store.regions[region_of(hash)].prefetch(hash);
                batch.hashes.push(hash);
            }
            for &hash in &batch.hashes {
                if let Some(state) = self.store.regions[region_of(hash)].guess(hash) {
                    self.store.states.prefetch(state as usize);
                }
            }
            let mut child = 0;
            for &(successors, transitions) in &batch.parents {
                for i in child..successors {
                    let state = &batch.words[i * words..(i + 1) * words];
                    let room = (self.store.len() as u64) < most;
                    let accept = || room && kernel.fine(state);
                    let parent = self.next as u64 + 1;
                    if !self.store.enter(batch.hashes[i], state, parent, accept) {
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
