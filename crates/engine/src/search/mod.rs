//! Breadth-first search over everything that can be reached.
//!
//! States are numbered in the order in which a search with one thread finds them, for any number
//! of threads: a stretch of the frontier is expanded side by side against the table as it stands,
//! and what is new gets its number when all are through, in the order of its parents.
//! A stretch that meets a violation or a limit is gone over again by one thread,
//! which stops exactly where a search with one thread stops.
//! So counts, verdicts and counterexamples do not depend on the number of threads.

mod batch;
mod candidates;
mod checkpoint;
mod drain;
mod goals;
mod parallel;
mod path;
mod recent;
mod walks;
mod worker;

use crate::compile::MOST_NODES;
use crate::interpret::{Fault, Machine};
use crate::model::Deadlock;
use crate::native::{Effort, Guards, Kernel, Native};
use crate::program::Program;
pub use crate::store::omission_bound;
use crate::store::*;
use crate::symmetry::Scratch;
use crate::threads::side_by_side;
use crate::view::View;
use batch::{Stop, Successors, Workspace};
use checkpoint::Checkpoints;
pub use checkpoint::{CheckpointError, CheckpointErrorKind, Keeper};
use parallel::Parallel;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
pub(crate) use walks::{walk, Plan, Walked};
use worker::{Event, Worker};

/// Parents per stretch at the most; threads wait for each other after each.
/// The development profile, in which tests run, has short ones so that small models meet every case.
const STRETCH: usize = if cfg!(debug_assertions) {
    1 << 9
} else {
    1 << 15
};

/// Stretches shorter than this are not worth starting threads for.
const WORTH_THREADS: usize = if cfg!(debug_assertions) { 4 } else { 512 };

/// States known before machine code is asked for.
const WORTH_COMPILING: usize = 1 << 11;

/// States known before better machine code is asked for. The development profile asks early, so that tests use it.
const WORTH_OPTIMISING: usize = if cfg!(debug_assertions) {
    1 << 8
} else {
    1 << 18
};

/// How a search runs and when it gives up. The default has one thread and no limits.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Threads to use; counts and counterexamples do not depend on it.
    pub threads: usize,
    /// Most states to store.
    pub max_states: Option<u64>,
    /// Most steps from a start state.
    pub max_depth: Option<u64>,
    /// Most bytes for states and their table. What a thread needs besides is small and not counted.
    pub max_memory: Option<u64>,
    /// Whether independent parts are explored apart; see [`crate::components`].
    pub decompose: bool,
    /// Whether states that differ only by a permutation of scalarset values are explored once. The search stores one
    /// of each orbit, and reports numbers of orbits. Such models are not decomposed.
    pub symmetry: bool,
    /// Whether of states that were expanded only a signature of 64 bits is kept. What is not visited because its
    /// signature is that of another state is not known; [`omission_bound`] says how probable that is at the most.
    /// Violations are as exact as without. What takes all states to judge is not judged, and there are no checkpoints.
    pub hash_compaction: bool,
    /// What fires the rules. All engines give the same report.
    pub engine: Engine,
    /// Rules that would have more nodes than this with code for each combination of their parameters' values, have one piece of
    /// code for all. The report depends on it in one thing: which parts are independent is seen only from code for each.
    pub most_nodes: usize,
    /// Set from outside to stop the search soon.
    pub cancel: Option<&'a AtomicBool>,
    /// Where the nanoseconds are added that compilation takes: all that is done once for a model before its states are
    /// looked at, and machine code when it proves to be worth it.
    pub compiling: Option<&'a AtomicU64>,
    /// Called about ten times a second.
    pub progress: Option<&'a (dyn Fn(&Progress) + Sync)>,
    /// Where the search goes on from, if something is kept there, and where it keeps what it finds:
    /// when the keeper asks for it, when it gives up, and when every state is known.
    /// A search that goes on gives the report of one that was never interrupted, on any number of threads;
    /// where it was kept beyond the limits on states or depth, it ends with what was kept.
    pub keeper: Option<&'a dyn Keeper>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            threads: 1,
            max_states: None,
            max_depth: None,
            max_memory: None,
            decompose: true,
            symmetry: true,
            hash_compaction: false,
            engine: Engine::Adaptive,
            most_nodes: MOST_NODES,
            cancel: None,
            compiling: None,
            progress: None,
            keeper: None,
        }
    }
}

impl Options<'_> {
    /// Does something that counts as compilation.
    pub(crate) fn compile<T>(&self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = work();
        if let Some(compiling) = self.compiling {
            compiling.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
        result
    }
}

/// What fires rules and judges states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// The interpreter at first, and machine code once a search proves to be large.
    #[default]
    Adaptive,
    /// The interpreter, which needs no time to begin.
    Interpreter,
    /// Machine code from the start, where the model and the machine allow it.
    Native,
}

/// How far a search has come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// What the search is doing.
    pub phase: Phase,
    /// States stored.
    pub states: u64,
    /// Rules fired.
    pub transitions: u64,
    /// Steps from a start state to the states being expanded.
    pub depth: u64,
    /// States not expanded yet; of random walks the steps that are left.
    pub queue: u64,
    /// How many are to be expanded still, those included that are not known yet, where there is something to go by:
    /// once all states are known; and while exploring if each of the last three levels (states as many steps from
    /// the start) was smaller than the one before, taking it that all to come shrink as the last ones did.
    pub ahead: Option<u64>,
    /// Bytes that states and table take.
    pub memory: u64,
    /// States per second since the search began; of random walks the steps.
    pub rate: f64,
}

/// What a search is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Exploring reachable states.
    Explore,
    /// Looking for states that cannot drain.
    Drain,
    /// Going random ways.
    Walk,
}

/// Why a search gave up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// [`Options::max_states`], or 2^31.
    MaxStates,
    /// [`Options::max_depth`].
    MaxDepth,
    /// [`Options::max_memory`].
    MaxMemory,
    /// Everything was visited, but with [`Options::hash_compaction`] not everything was judged.
    HashCompaction,
    /// The steps that random walks were to have.
    MaxSteps,
    /// [`Options::cancel`].
    Interrupted,
}

/// In place of a start state where none is left.
pub(crate) const NO_START: u32 = u32::MAX;

/// A way through the state space.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Path {
    /// Start state instance.
    pub start: u32,
    /// Rule instances in order; the last may be one that faults.
    pub rules: Vec<u32>,
}

/// What a search found.
pub(crate) struct Found {
    pub verdict: Verdict,
    pub states: u64,
    pub transitions: u64,
    pub depth: u64,
    pub memory: u64,
    /// Shortest path to a deadlock state of any kind, and to one that is not quiescent.
    /// Only where deadlocks are noted and do not end the search.
    pub deadlocks: [Option<Path>; 2],
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    Holds,
    Broken(Broken, Path),
    Undecided(Reason),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Broken {
    /// Index into the model's invariants.
    Invariant(u32),
    /// A rule, guard, invariant or start state could not be evaluated.
    Fault(Fault),
    Deadlock,
    /// No rule that is not spontaneous leads on, yet the state is not quiescent.
    /// With it, how many states there are from which no quiescent one is reached.
    DeadEnd(u64),
    /// Rules lead on, but never to a quiescent state; with the same number.
    Livelock(u64),
    /// The covers with these indices are not met.
    Uncovered(Vec<u32>),
    /// From the state, the liveness property with this index is out of reach; and from how many states there are.
    OutOfReach(u32, u64),
}

/// Explores everything that can be reached of a component.
///
/// # Errors
/// If a checkpoint cannot be kept, or one that is kept cannot be gone on from.
pub(crate) fn search(
    program: &Program,
    view: &View,
    component: usize,
    options: &Options,
) -> Result<Found, CheckpointError> {
    let keeper = options.keeper.filter(|_| !options.hash_compaction);
    let guards = match options.engine {
        // The oracle of the others looks at every guard itself.
        Engine::Interpreter => None,
        Engine::Adaptive | Engine::Native => {
            options.compile(|| Guards::of(program, view, &Worker::new(program, view).machine.frame))
        }
    };
    let mut s = Search {
        program,
        view,
        guards: guards.as_ref(),
        options,
        store: Store::new(&view.packing, options.hash_compaction),
        transitions: 0,
        depth: 0,
        next: 0,
        stretch_end: 0,
        level_end: 0,
        levels: [0; 4],
        unfinished: 0,
        resumed: 0,
        checkpoints: keeper.map(|keeper| Checkpoints::new(keeper, component, program, view)),
        began: Instant::now(),
        told: Instant::now(),
        deadlocks: [None; 2],
        native: None,
        asked: None,
        memory: None,
        workspace: Workspace::default(),
    };
    let verdict = s.explore()?;
    let deadlocks = s.deadlocks.map(|d| d.map(|state| s.path(state)));
    Ok(Found {
        verdict,
        states: s.store.len() as u64,
        transitions: s.transitions,
        depth: s.depth,
        memory: s.store.memory(),
        deadlocks,
    })
}

struct Search<'a> {
    program: &'a Program,
    view: &'a View,
    /// See [`Worker::guards`].
    guards: Option<&'a Guards>,
    options: &'a Options<'a>,
    store: Store,
    transitions: u64,
    /// Steps to the deepest states found.
    depth: u64,
    /// The next state to expand.
    next: usize,
    /// Where the stretch at hand ends; limits are looked at when it is done.
    stretch_end: usize,
    /// Where the states end that are as many steps from the start as the next one.
    level_end: usize,
    /// Sizes of the last levels that are whole, the last one in front; 0 for none.
    levels: [u64; 4],
    /// Rules fired from the next state, if it was left half done.
    unfinished: u64,
    /// States that were not found but kept.
    resumed: usize,
    checkpoints: Option<Checkpoints<'a>>,
    began: Instant,
    told: Instant,
    deadlocks: [Option<usize>; 2],
    native: Option<Native>,
    /// What machine code has been asked for.
    asked: Option<Effort>,
    /// Memory that several threads have used before.
    memory: Option<Parallel>,
    workspace: Workspace,
}

impl Search<'_> {
    fn explore(&mut self) -> Result<Verdict, CheckpointError> {
        if !self.resume()? {
            if let Some(verdict) = self.start() {
                return Ok(verdict);
            }
            self.level_end = self.store.len();
        }
        if let Some(verdict) = self.visit()? {
            if let Verdict::Undecided(_) = verdict {
                self.keep()?;
            }
            self.depth += (self.store.len() > self.level_end) as u64;
            return Ok(verdict);
        }
        if self.store.states.compacted() {
            let all = self.view.quiescent.is_none()
                && self.program.covers.is_empty()
                && self.program.liveness.is_empty();
            return Ok(match all {
                true => Verdict::Holds,
                false => Verdict::Undecided(Reason::HashCompaction),
            });
        }
        self.keep()?;
        let covered = self.covered();
        if covered != Verdict::Holds {
            return Ok(covered);
        }
        Ok(match self.drain() {
            Verdict::Holds => self.liveness(),
            verdict => verdict,
        })
    }

    /// Visits all states; gives a verdict if it does not come to their end.
    fn visit(&mut self) -> Result<Option<Verdict>, CheckpointError> {
        let threads = self.options.threads.max(1);
        if self.store.len() as u64 > self.most_states() {
            return Ok(Some(Verdict::Undecided(Reason::MaxStates)));
        }
        while self.next < self.store.len() {
            if self.options.max_depth.is_some_and(|max| self.depth >= max) {
                return Ok(Some(Verdict::Undecided(Reason::MaxDepth)));
            }
            while self.next < self.level_end {
                self.compile();
                // A stretch may reach into the next level, unless that is not to be expanded.
                let last = match self.options.max_depth {
                    None => self.store.len(),
                    Some(_) => self.level_end,
                };
                if self.next >= self.stretch_end {
                    if let Some(reason) = self.limit() {
                        return Ok(Some(Verdict::Undecided(reason)));
                    }
                    self.stretch_end = last.min(self.next + self.stretch());
                    self.store.states.forget_before(self.next);
                }
                let end = last.min(self.stretch_end);
                let worth = threads > 1 && end - self.next >= WORTH_THREADS;
                let parallel = worth.then(|| self.in_parallel(end, threads)).flatten();
                self.next = match parallel {
                    Some(next) => next,
                    None => {
                        let end = end.min(self.level_end);
                        match self.alone(end) {
                            Some(verdict) => return Ok(Some(verdict)),
                            None => end,
                        }
                    }
                };
                if self.next > self.level_end {
                    // The next level ends with the children of this one.
                    let children = self.store.genealogy.children_before(self.level_end as u64);
                    self.next_level(children as usize);
                }
                self.keep_if_due()?;
                self.tell(Phase::Explore);
            }
            self.next_level(self.store.len());
        }
        Ok(None)
    }

    /// A level is done; the next one ends here.
    fn next_level(&mut self, end: usize) {
        self.depth += (end > self.level_end) as u64;
        self.levels.rotate_right(1);
        self.levels[0] = (end - self.level_end) as u64;
        self.level_end = end;
    }

    /// Asks for machine code once it pays.
    fn compile(&mut self) {
        let from = match self.options.engine {
            Engine::Adaptive => WORTH_COMPILING,
            Engine::Interpreter => usize::MAX,
            Engine::Native => 0,
        };
        let effort = match self.store.len() {
            known if known < from => return,
            known if known < WORTH_OPTIMISING => Effort::Quick,
            _ => Effort::Thorough,
        };
        if self.asked < Some(effort) {
            // Where it cannot be had once, it cannot be had again.
            let first = self.asked.replace(effort).is_none();
            if first || self.native.is_some() {
                let (program, view, threads) = (self.program, self.view, self.options.threads);
                self.native = self.options.compile(|| {
                    let frame = Worker::new(program, view).machine.frame;
                    Native::new(program, view, &frame, effort, threads)
                });
            }
        }
    }

    /// Enters the start states.
    fn start(&mut self) -> Option<Verdict> {
        let mut worker = Worker::new(self.program, self.view);
        for start in 0..self.program.start_count() {
            let path = Path {
                start,
                rules: Vec::new(),
            };
            if start % 4096 == 4095 {
                let full = self.store.len() as u64 > self.most_states();
                let reason = full.then_some(Reason::MaxStates).or_else(|| self.limit());
                if let Some(reason) = reason {
                    return Some(Verdict::Undecided(reason));
                }
            }
            let begun = worker.machine.start(start);
            match begun.and_then(|begun| Ok(begun && worker.machine.assumed()?)) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(fault) => return Some(Verdict::Broken(Broken::Fault(fault), path)),
            }
            worker.pack_child();
            let hash = hash(&worker.child);
            let before = self.store.len();
            self.store.enter(hash, &worker.child, 0, || true);
            if self.store.len() > before {
                if let Some(broken) = worker.broken_invariant() {
                    return Some(Verdict::Broken(broken, path));
                }
            }
        }
        None
    }

    /// Parents in the next stretch: fewer where each has many successors, so that what is found
    /// between two looks at the limits stays small.
    fn stretch(&self) -> usize {
        let successors = self.transitions / self.next.max(1) as u64 + 1;
        STRETCH
            .min((8 * STRETCH as u64 / successors) as usize)
            .max(64)
    }

    fn limit(&self) -> Option<Reason> {
        if self.cancelled() {
            return Some(Reason::Interrupted);
        }
        let full = self
            .options
            .max_memory
            .is_some_and(|max| self.store.memory() > max);
        full.then_some(Reason::MaxMemory)
    }

    fn cancelled(&self) -> bool {
        self.options
            .cancel
            .is_some_and(|c| c.load(Ordering::Relaxed))
    }

    fn most_states(&self) -> u64 {
        self.options
            .max_states
            .unwrap_or(MOST_STATES)
            .min(MOST_STATES)
    }

    fn tell(&mut self, phase: Phase) {
        let Some(progress) = self.options.progress else {
            return;
        };
        if self.told.elapsed() < Duration::from_millis(100) {
            return;
        }
        self.told = Instant::now();
        let states = self.store.len() as u64;
        let queue = states - self.next as u64;
        progress(&Progress {
            phase,
            states,
            transitions: self.transitions,
            depth: self.depth,
            queue,
            ahead: match phase {
                Phase::Explore => {
                    let in_level = (self.level_end - self.next) as u64;
                    estimate(&self.levels).map(|behind| in_level + behind)
                }
                _ => Some(queue),
            },
            memory: self.store.memory(),
            rate: (states - self.resumed as u64) as f64
                / self.began.elapsed().as_secs_f64().max(1e-9),
        });
    }

    /// Expands the states from `next` to `end` one after the other.
    fn alone(&mut self, end: usize) -> Option<Verdict> {
        while self.next < end {
            let plain = match self.swift(end) {
                Ok(()) => return None,
                Err(Stop::Interrupted(state)) => {
                    self.next = state;
                    return Some(Verdict::Undecided(Reason::Interrupted));
                }
                Err(Stop::Plain(state)) => {
                    self.next = state;
                    state + 1
                }
                Err(Stop::NoMachineCode) => end,
            };
            let verdict = self.plain(plain);
            if verdict.is_some() {
                return verdict;
            }
            self.next = plain;
        }
        None
    }

    /// Expands the states from `next` to `end` by machine code.
    fn swift(&mut self, end: usize) -> Result<(), Stop> {
        match self.store.states.compacted() {
            true => self.swift_as::<Compact>(end),
            false => self.swift_as::<Whole>(end),
        }
    }

    fn swift_as<K: Keeping>(&mut self, end: usize) -> Result<(), Stop> {
        let Some(native) = &self.native else {
            return Err(Stop::NoMachineCode);
        };
        let most = self.most_states();
        let mut alone = Alone {
            kept: PhantomData::<K>,
            store: &mut self.store,
            end,
            most,
            kernel: &native.kernel,
            transitions: 0,
            cancel: self.options.cancel,
        };
        let result = batch::swift(
            &native.kernel,
            self.next,
            self.view,
            &mut self.workspace,
            &mut alone,
        );
        self.transitions += alone.transitions;
        result
    }

    /// Expands the states from `next` to `end` with the interpreter.
    fn plain(&mut self, end: usize) -> Option<Verdict> {
        let mut worker = Worker::new(self.program, self.view);
        worker.guards = self.guards;
        let most = self.most_states();
        for state in self.next..end {
            if state % 256 == 0 && self.cancelled() {
                self.next = state;
                return Some(Verdict::Undecided(Reason::Interrupted));
            }
            worker.load(&self.store, state);
            let store = &mut self.store;
            let mut full = false;
            let result = worker.expand(true, |worker, _| {
                let hash = hash(&worker.child);
                let before = store.len();
                let room = (before as u64) < most;
                full |= !store.enter(hash, &worker.child, state as u64 + 1, || room);
                if store.len() > before {
                    if let Some(broken) = worker.broken_invariant() {
                        return Err(broken);
                    }
                }
                Ok(())
            });
            let verdict = match result {
                Err(event) => Some(self.broken(state, event)),
                Ok(expansion) => {
                    self.transitions += expansion.transitions;
                    if full {
                        self.unfinished = expansion.transitions;
                        Some(Verdict::Undecided(Reason::MaxStates))
                    } else if !expansion.moves {
                        self.stuck(&mut worker, state)
                    } else {
                        None
                    }
                }
            };
            if verdict.is_some() {
                self.next = state;
                return verdict;
            }
        }
        None
    }

    /// A state without moves: notes it, or gives the verdict.
    fn stuck(&mut self, worker: &mut Worker, state: usize) -> Option<Verdict> {
        match worker.deadlock() {
            Err(fault) => Some(Verdict::Broken(Broken::Fault(fault), self.path(state))),
            Ok(None) => None,
            Ok(Some(_)) if self.view.stop_at_deadlock => {
                Some(Verdict::Broken(Broken::Deadlock, self.path(state)))
            }
            Ok(Some(quiescent)) => {
                self.note_deadlock(state, quiescent);
                None
            }
        }
    }

    fn note_deadlock(&mut self, state: usize, quiescent: bool) {
        self.deadlocks[0].get_or_insert(state);
        if !quiescent {
            self.deadlocks[1].get_or_insert(state);
        }
    }
}

/// How many states there may be behind the last level that is whole, if levels have been shrinking: a level as much smaller
/// than the last one as that is than those before it on average, and so on.
fn estimate(levels: &[u64; 4]) -> Option<u64> {
    let shrinking = levels
        .windows(2)
        .all(|pair| 0 < pair[0] && pair[0] < pair[1]);
    let ratio = (levels[0] as f64 / levels[3] as f64).cbrt();
    shrinking.then(|| (levels[0] as f64 * ratio / (1.0 - ratio)).round() as u64)
}

/// What one thread finds by machine code.
struct Alone<'a, K> {
    kept: PhantomData<K>,
    store: &'a mut Store,
    /// Where the states end that are to be expanded.
    end: usize,
    /// Most states to store.
    most: u64,
    kernel: &'a Kernel,
    transitions: u64,
    cancel: Option<&'a AtomicBool>,
}

impl<K: Keeping> Successors for Alone<'_, K> {
    type Kept = K;

    #[inline(always)]
    fn store(&self) -> &Store {
        self.store
    }

    #[inline(always)]
    fn ahead(&mut self, from: usize) -> Option<Range<usize>> {
        (from < self.end).then_some(from..self.end)
    }

    #[inline(always)]
    fn prefetch(&self, entry: u32) {
        self.store.states.prefetch(entry);
    }

    #[inline(always)]
    fn enter(&mut self, hash: u64, state: &[u64], parent: usize) -> bool {
        let room = (self.store.len() as u64) < self.most;
        let accept = || room && self.kernel.fine(state);
        self.store
            .enter_as::<K>(hash, state, parent as u64 + 1, accept)
    }

    #[inline(always)]
    fn done(&mut self, _: usize, transitions: u64) {
        self.transitions += transitions;
    }

    #[inline(always)]
    fn cancelled(&self) -> bool {
        self.cancel.is_some_and(|c| c.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::estimate;

    #[test]
    fn what_is_ahead_is_guessed_from_shrinking_levels_alone() {
        // Halves of halves of 100 are 100 in all.
        assert_eq!(estimate(&[100, 200, 400, 800]), Some(100));
        assert_eq!(estimate(&[100, 200, 400, 300]), None);
        assert_eq!(estimate(&[100, 200, 400, 0]), None);
        assert_eq!(estimate(&[0, 200, 400, 800]), None);
    }
}
