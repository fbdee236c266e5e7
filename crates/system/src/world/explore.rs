//! All worlds that a system can reach, breadth first.

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{Step, System, World, Wrong};
use crate::agent::Violation;
use crate::data::Data;
use std::hash::{BuildHasher, Hash};

/// What can be explored: a moment of something that does not change.
pub trait Explored<S>: Clone + Eq + Hash {
    /// What may happen.
    type Step: Copy + std::fmt::Debug;

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

/// What was found, of worlds and what may happen in them.
#[derive(Debug)]
pub enum Found<W, S> {
    /// Nothing is wrong in any world or step.
    Safe {
        /// All worlds, in the order in which they were met.
        worlds: Vec<W>,
        /// How many steps lead from them.
        transitions: u64,
        /// How many steps the farthest of them is away.
        depth: u64,
        /// The way to the first world, if any, from which quiescence cannot be reached by what must happen.
        lost: Option<Vec<S>>,
    },
    /// These things are wrong at the least distance at which anything is.
    Wrong {
        /// What is wrong, in the order in which it was met.
        what: Vec<Wrong>,
        /// The way to the first of them.
        way: Vec<S>,
    },
    /// There are more worlds than were to be visited, or nobody wants to know any more.
    TooMany {
        /// How many have been visited.
        worlds: usize,
    },
}

/// All worlds so far.
struct Met<W, S> {
    worlds: Vec<W>,
    /// The last world with each hash, and of each world the one before it with the same.
    last: FxHashMap<u64, u32>,
    before: Vec<u32>,
    /// From where and by what each was met; of the first it means nothing.
    from: Vec<(u32, Option<S>)>,
}

impl<W: Eq + Hash, S: Copy> Met<W, S> {
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

/// Visits at most so many worlds, from the one in which everything begins.
pub fn explore<S, W: Explored<S>>(system: &S, begin: W, most: usize) -> Found<W, W::Step> {
    let mut met = Met {
        worlds: Vec::new(),
        last: FxHashMap::default(),
        before: Vec::new(),
        from: Vec::new(),
    };
    met.number(begin, (0, None));
    // Steps that must happen, from their ends to their begins.
    let mut back: Vec<Vec<u32>> = vec![Vec::new()];
    let (mut first, mut depth, mut transitions) = (0, 0, 0);
    loop {
        // One level, so that all that is wrong at the same distance is known.
        let last = met.worlds.len();
        let mut wrong: Vec<(Wrong, usize, Option<W::Step>)> = Vec::new();
        let claims = |met: &Met<W, W::Step>, numbers: std::ops::Range<usize>| {
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
                // Claims that fail in the worlds of this distance are as near.
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
