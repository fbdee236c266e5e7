//! Breadth-first search of all reachable states.
//!
//! States are numbered in the order in which a search with one thread finds them, for any number of threads. Threads
//! expand a stretch of the frontier against the unchanged table; afterwards new states get their numbers in the order
//! of their parents.
//! If a stretch meets a violation or a limit, one thread repeats it, and stops exactly where a search with one thread
//! stops.
//! Counts, verdicts and counterexamples therefore do not depend on the number of threads.

mod batch;
mod candidates;
mod checkpoint;
mod covers;
mod options;
mod parallel;
mod path;
mod reachability;
mod recent_states;
mod serial;
mod walks;
mod worker;

use crate::interpret::Fault;
use crate::native::{Guards, Native, OptimisationLevel};
use crate::program::Program;
pub use crate::store::omission_bound;
use crate::store::{hash, Store, MAX_STATES};
use crate::view::View;
use batch::Workspace;
use checkpoint::Checkpoints;
pub use checkpoint::{CheckpointError, CheckpointErrorKind, CheckpointSink};
pub use options::{Engine, Options, Phase, Progress, Reason};
use parallel::ParallelExpansion;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
pub(crate) use walks::{walk, WalkParameters, WalkResults};
use worker::Worker;

/// Maximum parents per stretch; threads wait for each other after each stretch.
/// In the development profile, in which tests run, stretches are short so that small models exercise every case.
const STRETCH: usize = if cfg!(debug_assertions) {
    1 << 9
} else {
    1 << 15
};

/// Minimum number of states in a stretch for which starting threads pays off.
const MIN_STATES_FOR_THREADS: usize = if cfg!(debug_assertions) { 4 } else { 512 };

/// Number of known states from which machine code pays off.
const MIN_STATES_TO_COMPILE: usize = 1 << 11;

/// Number of known states from which optimised machine code pays off. Small in the development profile, so that tests
/// use it.
const MIN_STATES_TO_OPTIMISE: usize = if cfg!(debug_assertions) {
    1 << 8
} else {
    1 << 18
};

/// Placeholder for a start state if assumptions leave none.
pub(crate) const NO_START: u32 = u32::MAX;

/// A path through the state space.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Path {
    /// Number of the start state, counted over all instances.
    pub start: u32,
    /// Rule instances in order; the last one may fault.
    pub rules: Vec<u32>,
}

/// Result of a search.
pub(crate) struct SearchResult {
    /// Verdict, with a path to the violation if there is one.
    pub verdict: Verdict,
    /// States stored; orbits if the search uses symmetry.
    pub states: u64,
    /// Rules fired from all expanded states.
    pub transitions: u64,
    /// Steps from a start state to the deepest states found.
    pub depth: u64,
    /// Memory of states and table, in bytes.
    pub memory: u64,
    /// Shortest paths to a deadlock state of any kind, and to one that is not quiescent.
    /// Recorded only if deadlocks do not end the search.
    pub deadlocks: [Option<Path>; 2],
}

/// Verdict on a component.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// All checked properties hold in all reachable states.
    Holds,
    /// A check fails at the end of the path.
    FailedCheck(FailedCheck, Path),
    /// The search gave up, or the property cannot be judged.
    Undecided(Reason),
}

/// Check that failed in a state or step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FailedCheck {
    /// Index into the model's invariants.
    Invariant(u32),
    /// A rule, guard, invariant or start state could not be evaluated.
    Fault(Fault),
    /// A state without a step to a different state, or without an enabled rule; see
    /// [`Deadlock`](crate::model::Deadlock).
    Deadlock,
    /// Dead end: only spontaneous rules, or none, change the state, and the state is not quiescent.
    /// The number counts the states from which no quiescent state is reachable.
    DeadEnd(u64),
    /// Livelock: rules that are not spontaneous change the state, but never lead to a quiescent state. The number is
    /// that of [`FailedCheck::DeadEnd`].
    Livelock(u64),
    /// Indices of the covers that no run reaches.
    Uncovered(Vec<u32>),
    /// Index of a liveness property that is unreachable from the state, and the number of such states.
    OutOfReach(u32, u64),
}

/// Explores all reachable states of a component.
///
/// # Errors
/// A checkpoint cannot be written, or the stored one cannot be resumed.
pub(crate) fn search(
    program: &Program,
    view: &View,
    component: usize,
    options: &Options,
) -> Result<SearchResult, CheckpointError> {
    let checkpoint_sink = options.checkpoint_sink.filter(|_| !options.hash_compaction);
    let guards = match options.engine {
        // The interpreter, oracle of the other engines, evaluates every guard itself.
        Engine::Interpreter => None,
        Engine::Adaptive | Engine::Native => options
            .compile(|| Guards::for_view(program, view, &Worker::new(program, view).machine.frame)),
    };
    let mut search_state = Search {
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
        unfinished_transitions: 0,
        resumed_states: 0,
        checkpoints: checkpoint_sink
            .map(|checkpoint_sink| Checkpoints::new(checkpoint_sink, component, program, view)),
        start_time: Instant::now(),
        last_report: Instant::now(),
        deadlocks: [None; 2],
        native: None,
        requested_level: None,
        parallel_expansion: None,
        workspace: Workspace::default(),
    };
    let verdict = search_state.explore()?;
    let deadlocks = search_state
        .deadlocks
        .map(|d| d.map(|state| search_state.path(state)));
    Ok(SearchResult {
        verdict,
        states: search_state.store.len() as u64,
        transitions: search_state.transitions,
        depth: search_state.depth,
        memory: search_state.store.memory(),
        deadlocks,
    })
}

/// State of a search.
struct Search<'a> {
    /// Executable form of the model.
    program: &'a Program,
    /// Component to explore.
    view: &'a View,
    /// See [`Worker::guards`].
    guards: Option<&'a Guards>,
    /// Limits and callbacks of the caller.
    options: &'a Options<'a>,
    /// States found so far.
    store: Store,
    /// Rules fired so far.
    transitions: u64,
    /// Number of steps to the deepest states found.
    depth: u64,
    /// The next state to expand.
    next: usize,
    /// End of the current stretch; limits are checked when it is done.
    stretch_end: usize,
    /// End of the level of the next state. A level holds the states at equal distance from the start.
    level_end: usize,
    /// Sizes of the last complete levels, the latest first; 0 for none.
    levels: [u64; 4],
    /// Rules fired from the next state, if its expansion was not completed.
    unfinished_transitions: u64,
    /// Number of states loaded from a checkpoint.
    resumed_states: usize,
    /// Checkpoints of this component; `None` if the caller has no storage, and with hash compaction.
    checkpoints: Option<Checkpoints<'a>>,
    /// Time when the search began or was resumed.
    start_time: Instant,
    /// Time of the last call of the progress callback.
    last_report: Instant,
    /// Numbers of the first deadlock state of any kind, and of the first that is not quiescent. Recorded only if
    /// deadlocks do not end the search.
    deadlocks: [Option<usize>; 2],
    /// Machine code; `None` until it pays off, and if it cannot be compiled.
    native: Option<Native>,
    /// Optimisation level of the last request for machine code.
    requested_level: Option<OptimisationLevel>,
    /// Reusable memory of searches with several threads.
    parallel_expansion: Option<ParallelExpansion>,
    /// Reusable buffers of the expansion with one thread.
    workspace: Workspace,
}

impl Search<'_> {
    /// Runs the search to its verdict.
    fn explore(&mut self) -> Result<Verdict, CheckpointError> {
        if !self.resume()? {
            if let Some(verdict) = self.start() {
                return Ok(verdict);
            }
            self.level_end = self.store.len();
        }
        if let Some(verdict) = self.visit_states()? {
            if let Verdict::Undecided(_) = verdict {
                self.save_checkpoint()?;
            }
            self.depth += (self.store.len() > self.level_end) as u64;
            return Ok(verdict);
        }
        if self.store.states.is_compacted() {
            let no_further_checks = self.view.quiescent.is_none()
                && self.program.covers.is_empty()
                && self.program.liveness.is_empty();
            return Ok(match no_further_checks {
                true => Verdict::Holds,
                false => Verdict::Undecided(Reason::HashCompaction),
            });
        }
        self.save_checkpoint()?;
        let covers_verdict = self.check_covers();
        if covers_verdict != Verdict::Holds {
            return Ok(covers_verdict);
        }
        Ok(match self.check_quiescence() {
            Verdict::Holds => self.check_liveness(),
            verdict => verdict,
        })
    }

    /// Visits all states. Returns a verdict if it stops early.
    fn visit_states(&mut self) -> Result<Option<Verdict>, CheckpointError> {
        let threads = self.options.threads.max(1);
        if self.store.len() as u64 > self.state_limit() {
            return Ok(Some(Verdict::Undecided(Reason::MaxStates)));
        }
        while self.next < self.store.len() {
            if self.options.max_depth.is_some_and(|max| self.depth >= max) {
                return Ok(Some(Verdict::Undecided(Reason::MaxDepth)));
            }
            while self.next < self.level_end {
                self.compile();
                // A stretch may extend into the next level, unless that level must not be expanded.
                let stretch_limit = match self.options.max_depth {
                    None => self.store.len(),
                    Some(_) => self.level_end,
                };
                if self.next >= self.stretch_end {
                    if let Some(reason) = self.exceeded_limit() {
                        return Ok(Some(Verdict::Undecided(reason)));
                    }
                    self.stretch_end = stretch_limit.min(self.next + self.stretch_size());
                    self.store.states.forget_before(self.next);
                }
                let end = stretch_limit.min(self.stretch_end);
                let use_threads = threads > 1 && end - self.next >= MIN_STATES_FOR_THREADS;
                let parallel = use_threads
                    .then(|| self.expand_parallel(end, threads))
                    .flatten();
                self.next = match parallel {
                    Some(next) => next,
                    None => {
                        let end = end.min(self.level_end);
                        match self.expand_serial(end) {
                            Some(verdict) => return Ok(Some(verdict)),
                            None => end,
                        }
                    }
                };
                if self.next > self.level_end {
                    // The next level ends with the children of this one.
                    let children = self.store.parents.children_before(self.level_end as u64);
                    self.next_level(children as usize);
                }
                self.save_checkpoint_if_due()?;
                self.report_progress(Phase::Explore);
            }
            self.next_level(self.store.len());
        }
        Ok(None)
    }

    /// Completes a level; the next one ends at `end`.
    fn next_level(&mut self, end: usize) {
        self.depth += (end > self.level_end) as u64;
        self.levels.rotate_right(1);
        self.levels[0] = (end - self.level_end) as u64;
        self.level_end = end;
    }

    /// Requests machine code once it pays.
    fn compile(&mut self) {
        let threshold = match self.options.engine {
            Engine::Adaptive => MIN_STATES_TO_COMPILE,
            Engine::Interpreter => usize::MAX,
            Engine::Native => 0,
        };
        let level = match self.store.len() {
            known if known < threshold => return,
            known if known < MIN_STATES_TO_OPTIMISE => OptimisationLevel::Quick,
            _ => OptimisationLevel::Thorough,
        };
        if self.requested_level < Some(level) {
            // If compilation failed once, do not retry.
            let is_first = self.requested_level.replace(level).is_none();
            if is_first || self.native.is_some() {
                let (program, view, threads) = (self.program, self.view, self.options.threads);
                self.native = self.options.compile(|| {
                    let frame = Worker::new(program, view).machine.frame;
                    Native::new(program, view, &frame, level, threads)
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
                let full = self.store.len() as u64 > self.state_limit();
                let reason = full
                    .then_some(Reason::MaxStates)
                    .or_else(|| self.exceeded_limit());
                if let Some(reason) = reason {
                    return Some(Verdict::Undecided(reason));
                }
            }
            let exists = worker.machine.start(start);
            match exists.and_then(|exists| Ok(exists && worker.machine.satisfies_assumptions()?)) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(fault) => return Some(Verdict::FailedCheck(FailedCheck::Fault(fault), path)),
            }
            worker.pack_child();
            let hash = hash(&worker.child);
            let states_before = self.store.len();
            self.store.enter(hash, &worker.child, 0, || true);
            if self.store.len() > states_before {
                if let Some(failed_check) = worker.violated_invariant() {
                    return Some(Verdict::FailedCheck(failed_check, path));
                }
            }
        }
        None
    }

    /// Number of parents in the next stretch. Smaller if each has many successors, so that few states are found between
    /// two checks of the limits.
    fn stretch_size(&self) -> usize {
        let successors = self.transitions / self.next.max(1) as u64 + 1;
        STRETCH
            .min((8 * STRETCH as u64 / successors) as usize)
            .max(64)
    }

    /// Reason to give up now, other than the number of states or steps.
    fn exceeded_limit(&self) -> Option<Reason> {
        if self.is_cancelled() {
            return Some(Reason::Interrupted);
        }
        let full = self
            .options
            .max_memory
            .is_some_and(|max| self.store.memory() > max);
        full.then_some(Reason::MaxMemory)
    }

    fn is_cancelled(&self) -> bool {
        self.options
            .cancel
            .is_some_and(|c| c.load(Ordering::Relaxed))
    }

    /// Maximum number of states to store.
    fn state_limit(&self) -> u64 {
        self.options
            .max_states
            .unwrap_or(MAX_STATES)
            .min(MAX_STATES)
    }

    /// Calls the progress callback, at most ten times a second.
    fn report_progress(&mut self, phase: Phase) {
        let Some(progress) = self.options.progress else {
            return;
        };
        if self.last_report.elapsed() < Duration::from_millis(100) {
            return;
        }
        self.last_report = Instant::now();
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
                    estimate_remaining_states(&self.levels)
                        .map(|later_levels| in_level + later_levels)
                }
                _ => Some(queue),
            },
            memory: self.store.memory(),
            rate: (states - self.resumed_states as u64) as f64
                / self.start_time.elapsed().as_secs_f64().max(1e-9),
        });
    }

    /// Handles a state without moves: records it, or returns the verdict.
    fn handle_stuck_state(&mut self, worker: &mut Worker, state: usize) -> Option<Verdict> {
        match worker.judge_deadlock() {
            Err(fault) => Some(Verdict::FailedCheck(
                FailedCheck::Fault(fault),
                self.path(state),
            )),
            Ok(None) => None,
            Ok(Some(_)) if self.view.stop_at_deadlock => Some(Verdict::FailedCheck(
                FailedCheck::Deadlock,
                self.path(state),
            )),
            Ok(Some(quiescent)) => {
                self.record_deadlock(state, quiescent);
                None
            }
        }
    }

    /// Records the first deadlock, and the first that is not quiescent.
    fn record_deadlock(&mut self, state: usize, quiescent: bool) {
        self.deadlocks[0].get_or_insert(state);
        if !quiescent {
            self.deadlocks[1].get_or_insert(state);
        }
    }
}

/// Estimated number of states beyond the last complete level; `None` unless levels have been shrinking. Extrapolates
/// the average ratio of the last levels as a geometric series.
fn estimate_remaining_states(levels: &[u64; 4]) -> Option<u64> {
    let shrinking = levels
        .windows(2)
        .all(|pair| 0 < pair[0] && pair[0] < pair[1]);
    let ratio = (levels[0] as f64 / levels[3] as f64).cbrt();
    shrinking.then(|| (levels[0] as f64 * ratio / (1.0 - ratio)).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::estimate_remaining_states;

    #[test]
    fn only_shrinking_levels_give_an_estimate() {
        // The series 50 + 25 + ... is 100 in all.
        assert_eq!(estimate_remaining_states(&[100, 200, 400, 800]), Some(100));
        assert_eq!(estimate_remaining_states(&[100, 200, 400, 300]), None);
        assert_eq!(estimate_remaining_states(&[100, 200, 400, 0]), None);
        assert_eq!(estimate_remaining_states(&[0, 200, 400, 800]), None);
    }
}
