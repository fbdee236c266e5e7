//! Breadth-first exploration of all states that a system can reach.

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{Step, StepError, System, World};
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
    fn take(&mut self, system: &S, step: Self::Step) -> Result<bool, StepError>;
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
    fn take(&mut self, system: &System<'p>, step: Step) -> Result<bool, StepError> {
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
        errors: Vec<StepError>,
        /// A path to the first of them.
        path: Vec<S>,
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
    last_with_hash: FxHashMap<u64, u32>,
    previous_with_hash: Vec<u32>,
    /// Predecessor of each state, and the step from it. The initial state has no step, and its predecessor has no
    /// meaning.
    predecessors: Vec<(u32, Option<S>)>,
}

impl<W: Eq + Hash, S: Copy> Visited<W, S> {
    fn intern(&mut self, world: W, from: (u32, Option<S>)) -> usize {
        let hash = FxBuildHasher.hash_one(&world);
        let latest = self.last_with_hash.entry(hash).or_insert(u32::MAX);
        let mut index = *latest;
        while index != u32::MAX {
            if self.worlds[index as usize] == world {
                return index as usize;
            }
            index = self.previous_with_hash[index as usize];
        }
        let new = self.worlds.len();
        self.previous_with_hash
            .push(std::mem::replace(latest, new as u32));
        self.worlds.push(world);
        self.predecessors.push(from);
        new
    }

    fn path_to(&self, mut number: usize, final_step: Option<S>) -> Vec<S> {
        let mut path: Vec<S> = final_step.into_iter().collect();
        while let (from, Some(step)) = self.predecessors[number] {
            path.push(step);
            number = from as usize;
        }
        path.reverse();
        path
    }
}

/// Explores from `begin`, and stops when more than `max_states` states are found.
pub fn explore<S, W: SearchState<S>>(system: &S, begin: W, max_states: usize) -> Found<W, W::Step> {
    let mut visited = Visited {
        worlds: Vec::new(),
        last_with_hash: FxHashMap::default(),
        previous_with_hash: Vec::new(),
        predecessors: Vec::new(),
    };
    visited.intern(begin, (0, None));
    // Reversed edges of steps that must happen: the predecessors of each state.
    let mut reverse_edges: Vec<Vec<u32>> = vec![Vec::new()];
    let (mut level_start, mut depth, mut transitions) = (0, 0, 0);
    loop {
        // One level at a time, to collect all violations at the same distance.
        let level_end = visited.worlds.len();
        let mut violations: Vec<(StepError, usize, Option<W::Step>)> = Vec::new();
        let claims = |visited: &Visited<W, W::Step>, numbers: std::ops::Range<usize>| {
            let violation = numbers.filter_map(|number| {
                let violation = visited.worlds[number].claims(system).err()?;
                Some((violation.into(), number, None))
            });
            violation.collect::<Vec<_>>()
        };
        violations.extend(claims(&visited, level_start..level_end));
        if violations.is_empty() {
            for number in level_start..level_end {
                for step in visited.worlds[number].steps(system) {
                    let mut next = visited.worlds[number].clone();
                    match next.take(system, step) {
                        Ok(false) => continue,
                        Ok(true) => {}
                        Err(error) => {
                            violations.push((error, number, Some(step)));
                            continue;
                        }
                    }
                    transitions += 1;
                    let to = visited.intern(next, (number as u32, Some(step)));
                    if to == reverse_edges.len() {
                        reverse_edges.push(Vec::new());
                    }
                    if !W::spontaneous(step) {
                        reverse_edges[to].push(number as u32);
                    }
                }
                if visited.worlds.len() > max_states {
                    let worlds = visited.worlds.len();
                    return Found::TooMany { worlds };
                }
            }
            if !violations.is_empty() {
                // Claims violated by states that were found before the level ended are at the same distance.
                violations.extend(claims(&visited, level_end..visited.worlds.len()));
            }
        }
        if let Some((_, number, step)) = violations.first() {
            let path = visited.path_to(*number, *step);
            let errors = violations.into_iter().map(|(error, ..)| error).collect();
            return Found::Wrong { errors, path };
        }
        if visited.worlds.len() == level_end {
            break;
        }
        level_start = level_end;
        depth += 1;
    }
    let mut reaches_quiescence = vec![false; visited.worlds.len()];
    let all_states = 0..visited.worlds.len();
    let mut work: Vec<usize> = (all_states.clone())
        .filter(|&n| visited.worlds[n].quiescent(system))
        .collect();
    while let Some(number) = work.pop() {
        if !std::mem::replace(&mut reaches_quiescence[number], true) {
            work.extend(reverse_edges[number].iter().map(|&number| number as usize));
        }
    }
    let lost = reaches_quiescence
        .iter()
        .position(|&reaches_quiescence| !reaches_quiescence);
    Found::Safe {
        lost: lost.map(|number| visited.path_to(number, None)),
        worlds: visited.worlds,
        transitions,
        depth,
    }
}
