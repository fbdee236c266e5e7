//! Random walks, for models that are too large to be searched.
//!
//! A walk begins in a start state. It takes steps until none leads to a different state, or until it reaches its
//! maximum length. Each step to a different state is equally likely. All steps from a state on the path are judged, not
//! only the one taken.
//!
//! The path of a walk depends only on the seed and on the walk's number. Results of threads are merged in the order of
//! these numbers, so the report does not depend on the number of threads.

use super::machine_code::MIN_STATES_TO_OPTIMISE;
use super::worker::{ExpansionFailure, Worker};
use super::{Engine, FailedCheck, Options, Path, Phase, Progress, Reason, Verdict, NO_START};
use crate::native::{with_words, FiredRule, Kernel, Native, OptimisationLevel};
use crate::program::{Program, RuleSelection};
use crate::store::hash;
use crate::threads::run_in_parallel;
use crate::view::View;
use cohkit_base::random::SplitMix64;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of states stored for the count of distinct states; further ones are not counted.
const MAX_COUNTED_STATES: usize = 1 << 22;

/// Number of walks of each thread between two merges of results.
const WALKS_PER_BATCH: usize = 4;

/// Parameters of the walks.
#[derive(Clone, Copy)]
pub(crate) struct WalkParameters {
    /// Seed of all random choices.
    pub seed: u64,
    /// Steps of all walks together; the walk that reaches this total is the last.
    pub steps: u64,
    /// Maximum steps of one walk.
    pub length: u64,
}

/// Result of all walks.
pub(crate) struct WalkResults {
    /// Never [`Verdict::Holds`].
    pub verdict: Verdict,
    /// Number of walks.
    pub walks: u64,
    /// Steps of all walks together.
    pub steps: u64,
    /// Rules fired, including those that were only tried.
    pub transitions: u64,
    /// Steps of the longest walk.
    pub longest: u64,
    /// Distinct states visited.
    pub states: u64,
    /// True if `states` counts all of them; false if the table of known states was full.
    pub all_states_counted: bool,
    /// Numbers of the rules that led to a different state.
    pub fired_rules: FxHashSet<u32>,
    /// Memory of the states' hashes, in bytes.
    pub memory: u64,
}

/// Result of one walk.
struct Walk {
    /// Start state and rules of the walk.
    path: Path,
    /// Violation that ended the walk; `None` if it ended otherwise.
    violation: Option<ExpansionFailure>,
    /// Rules fired, including those that were only tried.
    transitions: u64,
    /// Hashes of the states on the path.
    hashes: Vec<u64>,
    /// Numbers of the rules that led from these states to different ones.
    fired_rules: FxHashSet<u32>,
}

/// A possible step from the current state.
struct PossibleStep {
    /// Number of the rule with its parameter values.
    rule: u32,
    /// Position of its state in [`Walker::states`], in words.
    state_offset: usize,
}

/// Walks until the total of steps is reached, or a violation is found.
pub(crate) fn walk(
    program: &Program,
    view: &View,
    parameters: &WalkParameters,
    options: &Options,
) -> WalkResults {
    let frame = Worker::new(program, view).machine.frame;
    let level = match parameters.steps < MIN_STATES_TO_OPTIMISE as u64 {
        true => OptimisationLevel::Quick,
        false => OptimisationLevel::Thorough,
    };
    let native = match options.engine {
        Engine::Interpreter => None,
        Engine::Adaptive | Engine::Native => Native::new(
            program,
            view,
            &frame,
            level,
            options.threads,
            &AtomicBool::new(false),
        ),
    };
    let threads = options.threads.max(1);
    let walkers = (0..threads).map(|_| Walker {
        worker: Worker::new(program, view),
        kernel: native.as_ref().map(|native| &native.kernel),
        parameters: *parameters,
        cancel: options.cancel,
        fired: FxHashSet::default(),
        possible_steps: Vec::new(),
        states: Vec::new(),
    });
    let mut walkers: Vec<Walker> = walkers.collect();
    let mut known_hashes: FxHashSet<u64> = FxHashSet::default();
    let mut results = WalkResults::default();
    let (start_time, mut last_report) = (Instant::now(), Instant::now());
    let mut counted_steps = 0;
    'batches: while counted_steps < parameters.steps {
        let batch = walk_batch(&mut walkers, results.walks);
        if options.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
            results.verdict = Verdict::Undecided(Reason::Interrupted);
            break;
        }
        for walk in batch {
            let steps = walk.path.rules.len() as u64;
            results.add(&walk, &mut known_hashes);
            if let Some(failure) = walk.violation {
                let path = walkers[0].shorten_path(walk.path, failure.rule);
                results.verdict = Verdict::FailedCheck(failure.failed_check, path);
                break 'batches;
            }
            // A walk without a start state counts as one step, so that the loop terminates.
            counted_steps += steps.max(1);
            if counted_steps >= parameters.steps {
                break;
            }
        }
        if let Some(progress) = options.progress {
            if last_report.elapsed() >= Duration::from_millis(100) {
                last_report = Instant::now();
                let remaining_steps = parameters.steps.saturating_sub(counted_steps);
                progress(&Progress {
                    phase: Phase::Walk,
                    states: known_hashes.len() as u64,
                    transitions: results.transitions,
                    depth: results.longest,
                    queue: remaining_steps,
                    ahead: Some(remaining_steps),
                    memory: memory(&known_hashes),
                    rate: results.steps as f64 / start_time.elapsed().as_secs_f64().max(1e-9),
                });
            }
        }
    }
    results.states = known_hashes.len() as u64;
    results.memory = memory(&known_hashes);
    results
}

/// Takes the next walks, [`WALKS_PER_BATCH`] with each walker, and returns them in the order of their numbers from
/// `first_number` on.
fn walk_batch(walkers: &mut [Walker], first_number: u64) -> impl Iterator<Item = Walk> {
    let threads = walkers.len();
    let shares: Vec<(usize, &mut Walker)> = walkers.iter_mut().enumerate().collect();
    let batch = run_in_parallel(shares, |(share, walker)| {
        let numbers = (0..WALKS_PER_BATCH).map(|i| first_number + (i * threads + share) as u64);
        numbers
            .map(|number| walker.walk(number))
            .collect::<Vec<_>>()
    });
    let mut batch: Vec<_> = batch.into_iter().map(Vec::into_iter).collect();
    (0..WALKS_PER_BATCH * threads).map_while(move |i| batch[i % threads].next())
}

impl Default for WalkResults {
    /// Results before the first walk.
    fn default() -> WalkResults {
        WalkResults {
            verdict: Verdict::Undecided(Reason::MaxSteps),
            walks: 0,
            steps: 0,
            transitions: 0,
            longest: 0,
            states: 0,
            all_states_counted: true,
            fired_rules: FxHashSet::default(),
            memory: 0,
        }
    }
}

impl WalkResults {
    /// Adds a walk, and the hashes of its states to those known, as long as there are at most [`MAX_COUNTED_STATES`].
    fn add(&mut self, walk: &Walk, known_hashes: &mut FxHashSet<u64>) {
        let steps = walk.path.rules.len() as u64;
        self.walks += 1;
        self.steps += steps;
        self.transitions += walk.transitions;
        self.longest = self.longest.max(steps);
        self.fired_rules.extend(&walk.fired_rules);
        for &hash in &walk.hashes {
            match known_hashes.len() < MAX_COUNTED_STATES {
                true => _ = known_hashes.insert(hash),
                false => self.all_states_counted &= known_hashes.contains(&hash),
            }
        }
    }
}

/// Memory of the hashes in bytes; independent of the machine.
fn memory(known_hashes: &FxHashSet<u64>) -> u64 {
    (known_hashes.len() * size_of::<u64>()) as u64
}

/// Creates the random numbers of the walk with this number.
fn random_of_walk(seed: u64, number: u64) -> SplitMix64 {
    SplitMix64::new(hash(&[seed, number]))
}

/// Walks of one thread.
struct Walker<'a> {
    /// Interpreter and buffers of the thread.
    worker: Worker<'a>,
    /// Machine code, if it exists.
    kernel: Option<&'a Kernel>,
    /// Seed and limits of the walks.
    parameters: WalkParameters,
    /// See [`Options::cancel`].
    cancel: Option<&'a AtomicBool>,
    /// Numbers of the rules that led to a different state in the current walk.
    fired: FxHashSet<u32>,
    /// Possible steps from the current state.
    possible_steps: Vec<PossibleStep>,
    /// Packed states that these steps lead to, concatenated.
    states: Vec<u64>,
}

impl Walker<'_> {
    /// Takes the walk with this number.
    fn walk(&mut self, number: u64) -> Walk {
        let mut walk = Walk {
            path: Path::default(),
            violation: None,
            transitions: 0,
            hashes: Vec::new(),
            fired_rules: FxHashSet::default(),
        };
        self.extend_walk(number, &mut walk);
        walk.fired_rules = std::mem::take(&mut self.fired);
        walk
    }

    /// Extends an empty walk to its end.
    fn extend_walk(&mut self, number: u64, walk: &mut Walk) {
        let mut random = random_of_walk(self.parameters.seed, number);
        match self.move_to_start(&mut random, walk) {
            Ok(true) => {}
            Ok(false) => return,
            Err(failure) => walk.violation = Some(failure),
        }
        while walk.violation.is_none() && (walk.path.rules.len() as u64) < self.parameters.length {
            if self.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
                break;
            }
            match self.expand(&mut walk.transitions) {
                Err(failure) => walk.violation = Some(failure),
                Ok(()) if self.possible_steps.is_empty() => break,
                Ok(()) => {
                    let step_count = self.possible_steps.len() as u64;
                    let next = &self.possible_steps[random.below(step_count) as usize];
                    let words = self.worker.parent.len();
                    let state = &self.states[next.state_offset..next.state_offset + words];
                    self.worker.parent.copy_from_slice(state);
                    walk.path.rules.push(next.rule);
                    walk.hashes.push(hash(state));
                }
            }
        }
    }

    /// Moves to a random start state. Returns false if no start state exists.
    fn move_to_start(
        &mut self,
        random: &mut SplitMix64,
        walk: &mut Walk,
    ) -> Result<bool, ExpansionFailure> {
        let starts = self.worker.program.start_count();
        let first = random.below(u64::from(starts.max(1))) as u32;
        self.possible_steps.clear();
        for start in (first..starts).chain(0..first) {
            let machine = &mut self.worker.machine;
            let exists = machine.start(start);
            let fault = |fault| ExpansionFailure {
                rule: None,
                failed_check: FailedCheck::Fault(fault),
            };
            walk.path.start = start;
            if !(exists.map_err(fault)? && machine.satisfies_assumptions().map_err(fault)?) {
                continue;
            }
            if let Some(failed_check) = self.worker.violated_invariant() {
                return Err(ExpansionFailure {
                    rule: None,
                    failed_check,
                });
            }
            self.worker.pack_child();
            self.worker.parent.copy_from_slice(&self.worker.child);
            walk.hashes.push(hash(&self.worker.parent));
            return Ok(true);
        }
        walk.path.start = NO_START;
        Ok(false)
    }

    /// Collects the possible steps from the current state. Fails if one of them, or the state, violates a property.
    fn expand(&mut self, transitions: &mut u64) -> Result<(), ExpansionFailure> {
        if let Some(kernel) = self.kernel {
            let words = self.worker.parent.len();
            let fired = with_words!(words, W, self.expand_native::<W>(kernel));
            if let Some(Some(fired)) = fired {
                *transitions += fired;
                return Ok(());
            }
        }
        self.expand_interpreted(transitions)
    }

    /// As [`Walker::expand`], by machine code. Returns `None` if the interpreter has to judge the state.
    fn expand_native<const W: usize>(&mut self, kernel: &Kernel) -> Option<u64> {
        let words = self.worker.parent.len();
        // Words beyond the packed state stay zero.
        let mut parent = [0; W];
        parent[..words].copy_from_slice(&self.worker.parent);
        self.possible_steps.clear();
        self.states.clear();
        let mut invariants_hold = true;
        let (program, view) = (self.worker.program, self.worker.view);
        let fired = kernel.expand_by_rule(
            &parent,
            RuleSelection::All,
            |fired: FiredRule, child: &[u64; W]| {
                invariants_hold &= kernel.satisfies_invariants(child);
                let instance = &program.rules[view.rules[fired.instance] as usize];
                let rule = instance.number + fired.offset;
                let state_offset = self.states.len();
                self.possible_steps
                    .push(PossibleStep { rule, state_offset });
                self.states.extend_from_slice(&child[..words]);
            },
        );
        match fired {
            Ok(fired) if invariants_hold && !self.possible_steps.is_empty() => {
                // If the interpreter repeats the state, it records the rules itself.
                self.fired
                    .extend(self.possible_steps.iter().map(|next| next.rule));
                Some(fired.transitions)
            }
            _ => None,
        }
    }

    /// As [`Walker::expand`], by the interpreter.
    fn expand_interpreted(&mut self, transitions: &mut u64) -> Result<(), ExpansionFailure> {
        let worker = &mut self.worker;
        worker
            .view
            .packing
            .unpack(&worker.parent, &mut worker.machine.frame);
        let (possible_steps, states, fired) =
            (&mut self.possible_steps, &mut self.states, &mut self.fired);
        possible_steps.clear();
        states.clear();
        let expansion = worker.expand(RuleSelection::All, |worker, rule| {
            fired.insert(rule);
            if let Some(failed_check) = worker.violated_invariant() {
                return Err(failed_check);
            }
            let state_offset = states.len();
            possible_steps.push(PossibleStep { rule, state_offset });
            states.extend_from_slice(&worker.child);
            Ok(())
        })?;
        *transitions += expansion.transitions;
        if expansion.moves {
            return Ok(());
        }
        let failed_check = match worker.judge_deadlock() {
            Err(fault) => FailedCheck::Fault(fault),
            Ok(Some(_)) => FailedCheck::Deadlock,
            Ok(None) => return Ok(()),
        };
        Err(ExpansionFailure {
            rule: None,
            failed_check,
        })
    }

    /// Shortest path from the start to the end of `path` through states of `path` only, followed by the rule `last`
    /// that violates a property.
    fn shorten_path(&mut self, path: Path, last: Option<u32>) -> Path {
        let rules = self.shortest_rule_sequence(&path).unwrap_or(path.rules);
        Path {
            start: path.start,
            rules: rules.into_iter().chain(last).collect(),
        }
    }

    /// Rules of a shortest path to the end of `path` through its states; `None` if the path cannot be replayed.
    fn shortest_rule_sequence(&mut self, path: &Path) -> Option<Vec<u32>> {
        let worker = &mut self.worker;
        let packing = &worker.view.packing;
        worker.machine.start(path.start).ok()?;
        let mut state = vec![0; packing.words];
        packing.pack(&worker.machine.frame, &mut state);
        // Predecessor of each state of the path, with the rule that leads from it.
        let mut predecessors: FxHashMap<Vec<u64>, Option<(Vec<u64>, u32)>> = FxHashMap::default();
        let start_state = state.clone();
        predecessors.insert(state.clone(), None);
        for &rule in &path.rules {
            packing.unpack(&state, &mut worker.machine.frame);
            let instance = worker.program.rule(rule)?;
            worker.machine.fire(instance, rule).ok()?;
            packing.pack(&worker.machine.frame, &mut state);
            predecessors.insert(state.clone(), None);
        }
        let mut queue = VecDeque::from([start_state.clone()]);
        while let Some(from) = queue.pop_front() {
            if from == state {
                break;
            }
            worker.parent.copy_from_slice(&from);
            packing.unpack(&from, &mut worker.machine.frame);
            let _ = worker.expand(RuleSelection::All, |worker, rule| {
                if worker.child == start_state {
                    return Ok(());
                }
                if let Some(predecessor @ None) = predecessors.get_mut(&worker.child) {
                    *predecessor = Some((from.clone(), rule));
                    queue.push_back(worker.child.clone());
                }
                Ok(())
            });
        }
        let mut rules = Vec::new();
        while state != start_state {
            let (from, rule) = predecessors.remove(&state)??;
            rules.push(rule);
            state = from;
        }
        rules.reverse();
        Some(rules)
    }
}
