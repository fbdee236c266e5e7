//! All worlds that a system can reach, breadth first.

use rustc_hash::FxHashMap;

use super::{Step, System, World, Wrong};
use crate::agent::Violation;
use crate::data::Data;
use std::hash::Hash;

/// What can be explored: a moment of something that does not change.
pub trait Explored<S>: Clone + Eq + Hash {
    /// What may happen.
    type Step: Copy;

    /// What may happen next; some of it may turn out to have to wait.
    fn steps(&self, system: &S) -> Vec<Self::Step>;
    /// Lets something happen. False, with this as it was or spoilt, if it has to wait or would change nothing.
    ///
    /// # Errors
    /// What is wrong with it.
    fn take(&mut self, system: &S, step: Self::Step) -> Result<bool, Wrong>;
    /// Whether nothing may rely on it.
    fn spontaneous(step: Self::Step) -> bool;
    /// What must hold.
    ///
    /// # Errors
    /// The first that does not.
    fn claims(&self, system: &S) -> Result<(), Violation>;
    /// Whether nothing is under way.
    fn quiescent(&self, system: &S) -> bool;
}

impl<'p, D: Data> Explored<System<'p>> for World<D> {
    type Step = Step;

    fn steps(&self, system: &System<'p>) -> Vec<Step> {
        World::steps(self, system)
    }
    fn take(&mut self, system: &System<'p>, step: Step) -> Result<bool, Wrong> {
        World::take(self, system, step)
    }
    fn spontaneous(step: Step) -> bool {
        step.spontaneous()
    }
    fn claims(&self, system: &System<'p>) -> Result<(), Violation> {
        World::claims(self, system)
    }
    fn quiescent(&self, system: &System<'p>) -> bool {
        World::quiescent(self, system)
    }
}

/// What was found.
#[derive(Debug)]
pub enum Found<W> {
    /// Nothing is wrong in any world or step.
    Safe {
        /// All worlds, in the order in which they were met.
        worlds: Vec<W>,
        /// How many steps lead from them.
        transitions: u64,
        /// How many steps the farthest of them is away.
        depth: u64,
        /// Whether there is a world from which quiescence cannot be reached by what must happen.
        lost: bool,
    },
    /// These things are wrong at the least distance at which anything is.
    Wrong {
        /// What is wrong, in the order in which it was met.
        what: Vec<Wrong>,
        /// How many steps away.
        steps: u64,
    },
    /// There are more worlds than were to be visited.
    TooMany,
}

/// Visits at most so many worlds, from the one in which everything begins.
pub fn explore<S, W: Explored<S>>(system: &S, begin: W, most: usize) -> Found<W> {
    let mut worlds = vec![begin];
    let mut numbers = FxHashMap::from_iter([(worlds[0].clone(), 0)]);
    // Steps that must happen, from their ends to their begins.
    let mut back: Vec<Vec<usize>> = vec![Vec::new()];
    let (mut first, mut depth, mut transitions) = (0, 0, 0);
    loop {
        // One level, so that all that is wrong at the same distance is known.
        let last = worlds.len();
        let claims = worlds[first..].iter().map(|world| world.claims(system));
        let what: Vec<Wrong> = claims.filter_map(Result::err).map(Wrong::from).collect();
        if !what.is_empty() {
            let steps = depth;
            return Found::Wrong { what, steps };
        }
        let mut wrong = Vec::new();
        for number in first..last {
            for step in worlds[number].steps(system) {
                let mut next = worlds[number].clone();
                match next.take(system, step) {
                    Ok(false) => continue,
                    Ok(true) => {}
                    Err(what) => {
                        wrong.push(what);
                        continue;
                    }
                }
                transitions += 1;
                let new = worlds.len();
                let to = *numbers.entry(next.clone()).or_insert(new);
                if to == new {
                    worlds.push(next);
                    back.push(Vec::new());
                }
                if !W::spontaneous(step) {
                    back[to].push(number);
                }
            }
            if worlds.len() > most {
                return Found::TooMany;
            }
        }
        if !wrong.is_empty() {
            // Claims that fail in the worlds of this distance are as near.
            let claims = worlds[last..].iter().map(|world| world.claims(system));
            wrong.extend(claims.filter_map(Result::err).map(Wrong::from));
            let steps = depth + 1;
            return Found::Wrong { what: wrong, steps };
        }
        if worlds.len() == last {
            break;
        }
        first = last;
        depth += 1;
    }
    let mut saved = vec![false; worlds.len()];
    let all = 0..worlds.len();
    let mut work: Vec<usize> = all.filter(|&n| worlds[n].quiescent(system)).collect();
    while let Some(number) = work.pop() {
        if !std::mem::replace(&mut saved[number], true) {
            work.extend(&back[number]);
        }
    }
    Found::Safe {
        lost: saved.contains(&false),
        worlds,
        transitions,
        depth,
    }
}
