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
mod disk_states;
mod frontier;
mod machine_code;
mod options;
mod parallel;
mod path;
mod reachability;
mod recent_states;
mod serial;
mod walks;
mod worker;

use crate::interpret::Fault;
use crate::native::Guards;
use crate::program::Program;
use crate::store::{hash, Store, MAX_STATES};
pub use crate::store::{omission_bound, ReadAt};
use crate::view::View;
use batch::Workspace;
use checkpoint::Checkpoints;
pub(crate) use checkpoint::{component_of_attempt, AttemptSink};
pub use checkpoint::{CheckpointError, CheckpointErrorKind, CheckpointSink};
use frontier::Frontier;
use machine_code::{MachineCode, Work};
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
        frontier: Frontier::default(),
        unfinished_transitions: 0,
        checkpoints: checkpoint_sink
            .map(|checkpoint_sink| Checkpoints::new(checkpoint_sink, component, program, view)),
        reporter: ProgressReporter::new(),
        deadlocks: [None; 2],
        machine_code: MachineCode::default(),
        parallel_expansion: None,
        workspace: Workspace::default(),
    };
    search_state.prepare_store();
    let verdict = search_state.explore()?;
    let deadlocks = search_state
        .deadlocks
        .map(|d| d.map(|state| search_state.path(state)));
    search_state.fail_if_unreadable()?;
    Ok(SearchResult {
        verdict,
        states: search_state.store.len() as u64,
        transitions: search_state.transitions,
        depth: search_state.frontier.depth,
        memory: search_state.resident_memory(),
        deadlocks,
    })
}

/// Times of the progress callback.
struct ProgressReporter {
    /// Time when the search began or was resumed.
    start_time: Instant,
    /// Time of the last call of the progress callback.
    last_report: Instant,
    /// Number of states loaded from a checkpoint.
    resumed_states: usize,
}

impl ProgressReporter {
    /// Starts the clock of a search.
    fn new() -> ProgressReporter {
        ProgressReporter {
            start_time: Instant::now(),
            last_report: Instant::now(),
            resumed_states: 0,
        }
    }

    /// Returns true if a report is due, at most ten times a second, and starts the time until the next one.
    fn begin_report(&mut self) -> bool {
        if self.last_report.elapsed() < Duration::from_millis(100) {
            return false;
        }
        self.last_report = Instant::now();
        true
    }

    /// States found per second by this search, out of `states` in all.
    fn rate(&self, states: u64) -> f64 {
        let found = states - self.resumed_states as u64;
        found as f64 / self.start_time.elapsed().as_secs_f64().max(1e-9)
    }
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
    /// Position among the states.
    frontier: Frontier,
    /// Rules fired from the next state, if its expansion was not completed.
    unfinished_transitions: u64,
    /// Checkpoints of this component; `None` if the caller has no storage, and with hash compaction.
    checkpoints: Option<Checkpoints<'a>>,
    /// Times of the progress callback.
    reporter: ProgressReporter,
    /// Numbers of the first deadlock state of any kind, and of the first that is not quiescent. Recorded only if
    /// deadlocks do not end the search.
    deadlocks: [Option<usize>; 2],
    /// Machine code of the rules.
    machine_code: MachineCode,
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
            self.frontier.level_end = self.store.len();
        }
        if let Some(verdict) = self.visit_confirmed_states()? {
            if let Verdict::Undecided(_) = verdict {
                self.save_checkpoint()?;
            }
            self.frontier.depth += (self.store.len() > self.frontier.level_end) as u64;
            return Ok(verdict);
        }
        if self.store.states.is_compacted() {
            let no_further_checks = self.view.quiescent.is_none()
                && self.program.properties.covers.is_empty()
                && self.program.properties.liveness.is_empty();
            return Ok(match no_further_checks {
                true => Verdict::Holds,
                false => Verdict::Undecided(Reason::HashCompaction),
            });
        }
        self.save_checkpoint()?;
        let covers_verdict = covers::check_covers(self);
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
        while self.frontier.next < self.store.len() {
            if self
                .options
                .max_depth
                .is_some_and(|max| self.frontier.depth >= max)
            {
                return Ok(Some(Verdict::Undecided(Reason::MaxDepth)));
            }
            while self.frontier.next < self.frontier.level_end {
                let work = Work {
                    states: self.store.len(),
                    transitions: self.transitions,
                    states_ahead: self.frontier.states_ahead(),
                };
                self.machine_code
                    .compile_if_due(self.program, self.view, self.options, work);
                // A stretch may extend into the next level, unless that level must not be expanded.
                let stretch_limit = match self.options.max_depth {
                    None => self.store.len(),
                    Some(_) => self.frontier.level_end,
                };
                if self.frontier.next >= self.frontier.stretch_end {
                    if let Some(reason) = self.exceeded_limit() {
                        return Ok(Some(Verdict::Undecided(reason)));
                    }
                    if self.move_states_to_disk()? {
                        continue;
                    }
                    self.frontier.stretch_end =
                        stretch_limit.min(self.frontier.next + self.stretch_size());
                    self.store.states.forget_before(self.frontier.next);
                }
                let end = stretch_limit.min(self.frontier.stretch_end);
                let use_threads = threads > 1 && end - self.frontier.next >= MIN_STATES_FOR_THREADS;
                let parallel = use_threads
                    .then(|| self.expand_parallel(end, threads))
                    .flatten();
                self.frontier.next = match parallel {
                    Some(next) => next,
                    None => {
                        let end = end.min(self.frontier.level_end);
                        match self.expand_serial(end) {
                            Some(verdict) => return Ok(Some(verdict)),
                            None => end,
                        }
                    }
                };
                if self.frontier.next > self.frontier.level_end {
                    // The next level ends with the children of this one.
                    let children = self
                        .store
                        .parents
                        .children_before(self.frontier.level_end as u64);
                    self.frontier.next_level(children as usize);
                }
                self.save_checkpoint_if_due()?;
                self.report_progress(Phase::Explore);
            }
            self.frontier.next_level(self.store.len());
        }
        Ok(None)
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
        let successors = self.transitions / self.frontier.next.max(1) as u64 + 1;
        STRETCH
            .min((8 * STRETCH as u64 / successors) as usize)
            .min(self.parents_within_budget(successors))
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
            .is_some_and(|max| self.resident_memory() > max);
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
        if !self.reporter.begin_report() {
            return;
        }
        let states = self.store.len() as u64;
        let queue = states - self.frontier.next as u64;
        progress(&Progress {
            phase,
            states,
            transitions: self.transitions,
            depth: self.frontier.depth,
            queue,
            ahead: match phase {
                Phase::Explore => self.frontier.states_ahead(),
                _ => Some(queue),
            },
            memory: self.resident_memory(),
            rate: self.reporter.rate(states),
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
