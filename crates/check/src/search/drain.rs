//! What stays within reach: whether rules can always lead to a state of some kind. For *drain* these are the
//! quiescent states and rules that are not spontaneous; for liveness all rules count.
//!
//! Only when everything that can be reached is known. Moves are found again by firing the rules
//! a second time, which needs no memory during the search, and then followed backward from the quiescent states.

use super::batch::BATCH;
use super::*;
use crate::native::{exact, with_words, Kernel, Plain};
use std::ops::Range;

impl Search<'_> {
    /// Looks for states from which rules that are not spontaneous never lead to a quiescent one.
    pub(super) fn drain(&mut self) -> Verdict {
        let view = self.view;
        match &view.quiescent {
            Some(conjuncts) if !conjuncts.is_empty() => self.reach(conjuncts, None),
            _ => Verdict::Holds,
        }
    }

    /// Looks for states from which rules never lead to one in which a liveness property holds.
    pub(super) fn liveness(&mut self) -> Verdict {
        let program = self.program;
        for (property, conjuncts) in &program.liveness {
            let verdict = self.reach(conjuncts, Some(*property));
            if verdict != Verdict::Holds {
                return verdict;
            }
        }
        Verdict::Holds
    }

    /// Looks for states from which no state is reached in which all claims hold.
    fn reach(&mut self, claims: &[u32], liveness: Option<u32>) -> Verdict {
        let count = self.store.len();
        // Edges backward: `found[first[s]..first[s + 1]]` are the states with a move to `s`.
        let Some((mut drained, forward)) = self.moves(claims, liveness.is_some()) else {
            return Verdict::Undecided(Reason::Interrupted);
        };
        if let Some((state, fault)) = forward.iter().find_map(|m| m.fault) {
            return Verdict::Broken(Broken::Fault(fault), self.path(state));
        }
        let edges: usize = forward.iter().map(|m| m.targets.len()).sum();
        let memory = self.store.memory() + (8 * edges + 14 * count) as u64;
        if self.options.max_memory.is_some_and(|max| memory > max) {
            return Verdict::Undecided(Reason::MaxMemory);
        }
        let mut first = vec![0u64; count + 1];
        forward
            .iter()
            .flat_map(|m| &m.targets)
            .for_each(|&t| first[t as usize + 1] += 1);
        for s in 0..count {
            first[s + 1] += first[s];
        }
        let mut found = vec![0u32; edges];
        let mut dead_ends = Vec::new();
        let mut state = 0;
        for moves in forward {
            let mut targets = moves.targets.iter();
            for &degree in &moves.degrees {
                if degree == 0 && !drained[state] {
                    dead_ends.push(state);
                }
                for &target in targets.by_ref().take(degree as usize) {
                    let at = &mut first[target as usize];
                    found[*at as usize] = state as u32;
                    *at += 1;
                }
                state += 1;
            }
        }
        // Filling has moved each state's first edge to where the next state's begin.
        let mut queue: Vec<u32> = (0..count as u32).filter(|&s| drained[s as usize]).collect();
        while let Some(state) = queue.pop() {
            let begin = if state == 0 {
                0
            } else {
                first[state as usize - 1]
            };
            for &from in &found[begin as usize..first[state as usize] as usize] {
                if !std::mem::replace(&mut drained[from as usize], true) {
                    queue.push(from);
                }
            }
        }
        let stuck = drained.iter().filter(|&&drained| !drained).count() as u64;
        let never = drained.iter().position(|drained| !drained);
        if let (Some(property), Some(state)) = (liveness, never) {
            return Verdict::Broken(Broken::OutOfReach(property, stuck), self.path(state));
        }
        // A dead end has no moves, so it was not drained behind our back.
        if let Some(&state) = dead_ends.first() {
            return Verdict::Broken(Broken::DeadEnd(stuck), self.path(state));
        }
        match drained.iter().position(|d| !d) {
            Some(state) => Verdict::Broken(Broken::Livelock(stuck), self.path(state)),
            None => Verdict::Holds,
        }
    }

    /// For each state whether the claims hold, and its moves, by spontaneous rules only if asked for;
    /// `None` if interrupted.
    fn moves(&mut self, claims: &[u32], spontaneous: bool) -> Option<(Vec<bool>, Vec<Moves>)> {
        let count = self.store.len();
        let threads = if count < WORTH_THREADS {
            1
        } else {
            self.options.threads.max(1)
        };
        let mut all = Vec::new();
        for start in (0..count).step_by(STRETCH * threads) {
            if self.cancelled() {
                return None;
            }
            let part = |i: usize| {
                let first = start + i * STRETCH;
                first.min(count)..count.min(first + STRETCH)
            };
            let this = &*self;
            all.extend(side_by_side((0..threads).collect(), |i| {
                this.moves_of(part(i), claims, spontaneous)
            }));
            self.next = start;
            self.tell(Phase::Drain);
        }
        self.next = count;
        let quiescent = all
            .iter()
            .flat_map(|m| m.quiescent.iter().copied())
            .collect();
        Some((quiescent, all))
    }

    fn moves_of(&self, states: Range<usize>, claims: &[u32], spontaneous: bool) -> Moves {
        let mut worker = Worker::new(self.program, self.view);
        let mut moves = Moves::default();
        let Some(kernel) = self.native.as_ref().map(|native| &native.kernel) else {
            for state in states {
                self.plain_moves(state, claims, spontaneous, &mut worker, &mut moves);
            }
            return moves;
        };
        let words = self.view.packing.words;
        let swift = with_words!(
            words,
            W,
            self.swift_moves::<W>(kernel, states, claims, spontaneous, &mut worker)
        );
        swift.unwrap_or(moves)
    }

    /// Appends whether the claims hold in a state, and its moves.
    fn plain_moves(
        &self,
        state: usize,
        claims: &[u32],
        spontaneous: bool,
        worker: &mut Worker,
        moves: &mut Moves,
    ) {
        worker.load(&self.store, state);
        moves.judge(state, claims, worker);
        let before = moves.targets.len();
        let _ = worker.expand(spontaneous, |worker, _| {
            let target = self.store.find(hash(&worker.child), &worker.child);
            moves.targets.extend(target);
            Ok(())
        });
        moves.degrees.push((moves.targets.len() - before) as u32);
    }

    /// The same by machine code, for some states at a time.
    fn swift_moves<const W: usize>(
        &self,
        kernel: &Kernel,
        states: Range<usize>,
        claims: &[u32],
        spontaneous: bool,
        worker: &mut Worker,
    ) -> Moves {
        let words = exact::<W>(self.view.packing.words);
        let is_drain = self.view.quiescent.as_deref() == Some(claims);
        let mut moves = Moves::default();
        let mut parent = [0; W];
        // With the place of the state from which each comes.
        let mut targets: Vec<([u64; W], u64, usize)> = Vec::new();
        let look_up = |targets: &mut Vec<([u64; W], u64, usize)>, moves: &mut Moves| {
            for &(_, hash, _) in targets.iter() {
                if let Some(state) = self.store.regions[region_of(hash)].guess(hash) {
                    self.store.states.prefetch(state);
                }
            }
            for (state, hash, from) in targets.drain(..) {
                // Where later priorities get their turn, moves may lead out of what is reached.
                if let Some(target) = self.store.find(hash, &state[..words]) {
                    moves.targets.push(target);
                    moves.degrees[from] += 1;
                }
            }
        };
        for state in states {
            self.store.states.read(state, &mut parent[..words]);
            let (before, from) = (targets.len(), moves.degrees.len());
            let reach = |child: &[u64; W]| {
                let mut child = *child;
                let stored = &mut child[..words];
                (self.view).canonicalise(stored, &mut worker.scratch);
                let hash = hash(stored);
                self.store.regions[region_of(hash)].prefetch(hash);
                targets.push((child, hash, from));
            };
            let done = kernel.expand(&parent, spontaneous, reach);
            let quiescent = match is_drain {
                true => kernel.quiescent(&parent).map(Some),
                false => Ok(None),
            };
            match done.and(quiescent) {
                Ok(quiescent) => {
                    match quiescent {
                        Some(quiescent) => moves.quiescent.push(quiescent),
                        None => {
                            worker.load(&self.store, state);
                            moves.judge(state, claims, worker);
                        }
                    }
                    moves.degrees.push(0);
                }
                Err(Plain) => {
                    targets.truncate(before);
                    look_up(&mut targets, &mut moves);
                    self.plain_moves(state, claims, spontaneous, worker, &mut moves);
                }
            }
            if targets.len() >= BATCH {
                look_up(&mut targets, &mut moves);
            }
        }
        look_up(&mut targets, &mut moves);
        moves
    }
}

/// Moves of some states in a row.
#[derive(Default)]
struct Moves {
    /// The first state in which the quiescent condition could not be evaluated.
    fault: Option<(usize, Fault)>,
    quiescent: Vec<bool>,
    degrees: Vec<u32>,
    targets: Vec<u32>,
}

impl Moves {
    /// Notes whether the claims hold in the state that the worker has loaded.
    fn judge(&mut self, state: usize, claims: &[u32], worker: &mut Worker) {
        let holds = worker.holds(claims).unwrap_or_else(|fault| {
            self.fault.get_or_insert((state, fault));
            false
        });
        self.quiescent.push(holds);
    }
}
