//! Breadth-first exploration of all states that a system can reach.

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{Step, System, World, Wrong};
use crate::agent::Violation;
use crate::data::Data;
use std::hash::{BuildHasher, Hash};

/// A state of a fixed transition system.
pub trait SearchState<S>: Clone + Eq + Hash {
    /// A step between states.
    type Step: Copy + std::fmt::Debug;

    /// Candidate steps. Some of them may turn out to be blocked.
    fn steps(&self, system: &S) -> Vec<Self::Step>;
    /// Applies a step. Returns false if the step is blocked or a no-op; `self` is then unspecified.
    ///
    /// # Errors
    /// The step violates a property or exceeds a capacity.
    fn take(&mut self, system: &S, step: Self::Step) -> Result<bool, Wrong>;
    /// True if progress must not depend on the step.
    fn spontaneous(step: Self::Step) -> bool;
    /// Checks the properties of the state.
    ///
    /// # Errors
    /// The first violated property.
    fn claims(&self, system: &S) -> Result<(), Violation>;
    /// True if nothing is outstanding.
    fn quiescent(&self, system: &S) -> bool;
}

impl<'p, D: Data> SearchState<System<'p>> for World<D> {
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

/// Result of an exploration.
#[derive(Debug)]
pub enum Found<W, S> {
    /// No state and no step violates a property.
    Safe {
        /// All states, in the order of their discovery.
        worlds: Vec<W>,
        /// Number of transitions.
        transitions: u64,
        /// Distance of the farthest state from the initial state, in steps.
        depth: u64,
        /// A shortest path to a state from which steps that must happen cannot reach quiescence, if any.
        lost: Option<Vec<S>>,
    },
    /// Violations at the shortest distance from the initial state.
    Wrong {
        /// The violations, in the order of their discovery.
        what: Vec<Wrong>,
        /// A path to the first of them.
        way: Vec<S>,
    },
    /// State limit reached, or cancelled.
    TooMany {
        /// Number of states visited.
        worlds: usize,
    },
}

/// The states visited so far.
struct Visited<W, S> {
    worlds: Vec<W>,
    /// The last state with each hash, and per state the previous one with the same hash.
    last: FxHashMap<u64, u32>,
    before: Vec<u32>,
    /// Predecessor of each state, and the step from it. The initial state has no step, and its predecessor has no
    /// meaning.
    from: Vec<(u32, Option<S>)>,
}

impl<W: Eq + Hash, S: Copy> Visited<W, S> {
    fn number(&mut self, world: W, from: (u32, Option<S>)) -> usize {
        let hash = FxBuildHasher.hash_one(&world);
        let last = self.last.entry(hash).or_insert(u32::MAX);
        let mut at = *last;
        while at != u32::MAX {
            if self.worlds[at as usize] == world {
                return at as usize;
            }
            at = self.before[at as usize];
        }
        let new = self.worlds.len();
        self.before.push(std::mem::replace(last, new as u32));
        self.worlds.push(world);
        self.from.push(from);
        new
    }

    fn way(&self, mut number: usize, then: Option<S>) -> Vec<S> {
        let mut way: Vec<S> = then.into_iter().collect();
        while let (from, Some(step)) = self.from[number] {
            way.push(step);
            number = from as usize;
        }
        way.reverse();
        way
    }
}

/// Explores from `begin`, and stops when more than `most` states are found.
pub fn explore<S, W: SearchState<S>>(system: &S, begin: W, most: usize) -> Found<W, W::Step> {
    let mut met = Visited {
        worlds: Vec::new(),
        last: FxHashMap::default(),
        before: Vec::new(),
        from: Vec::new(),
    };
    met.number(begin, (0, None));
    // Reversed edges of steps that must happen: the predecessors of each state.
    let mut back: Vec<Vec<u32>> = vec![Vec::new()];
    let (mut first, mut depth, mut transitions) = (0, 0, 0);
    loop {
        // One level at a time, to collect all violations at the same distance.
        let last = met.worlds.len();
        let mut wrong: Vec<(Wrong, usize, Option<W::Step>)> = Vec::new();
        let claims = |met: &Visited<W, W::Step>, numbers: std::ops::Range<usize>| {
            let broken = numbers.filter_map(|number| {
                let broken = met.worlds[number].claims(system).err()?;
                Some((broken.into(), number, None))
            });
            broken.collect::<Vec<_>>()
        };
        wrong.extend(claims(&met, first..last));
        if wrong.is_empty() {
            for number in first..last {
                for step in met.worlds[number].steps(system) {
                    let mut next = met.worlds[number].clone();
                    match next.take(system, step) {
                        Ok(false) => continue,
                        Ok(true) => {}
                        Err(what) => {
                            wrong.push((what, number, Some(step)));
                            continue;
                        }
                    }
                    transitions += 1;
                    let to = met.number(next, (number as u32, Some(step)));
                    if to == back.len() {
                        back.push(Vec::new());
                    }
                    if !W::spontaneous(step) {
                        back[to].push(number as u32);
                    }
                }
                if met.worlds.len() > most {
                    let worlds = met.worlds.len();
                    return Found::TooMany { worlds };
                }
            }
            if !wrong.is_empty() {
                // Claims violated by states that were found before the level ended are at the same distance.
                wrong.extend(claims(&met, last..met.worlds.len()));
            }
        }
        if let Some((_, number, step)) = wrong.first() {
            let way = met.way(*number, *step);
            let what = wrong.into_iter().map(|(what, ..)| what).collect();
            return Found::Wrong { what, way };
        }
        if met.worlds.len() == last {
            break;
        }
        first = last;
        depth += 1;
    }
    let mut saved = vec![false; met.worlds.len()];
    let all = 0..met.worlds.len();
    let mut work: Vec<usize> = (all.clone())
        .filter(|&n| met.worlds[n].quiescent(system))
        .collect();
    while let Some(number) = work.pop() {
        if !std::mem::replace(&mut saved[number], true) {
            work.extend(back[number].iter().map(|&number| number as usize));
        }
    }
    let lost = saved.iter().position(|&saved| !saved);
    Found::Safe {
        lost: lost.map(|number| met.way(number, None)),
        worlds: met.worlds,
        transitions,
        depth,
    }
}
