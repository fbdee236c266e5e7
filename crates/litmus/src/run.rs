//! Exhaustive runs of a litmus test on the caches of a protocol.

use cohkit_base::exploration::{Exploration, Limits, Stop, TransitionSystem};
use cohkit_base::interner::Interner;
use cohkit_base::sequence::Sequence;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_system::state::{Levels, StepError, System, DEFAULT_CHANNEL_CAPACITY};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::cores::{Core, CoreKind, FenceKind, MemoryRequest};
use crate::kinds::Kinds;
use crate::lines::{Completion, Lines, Move};
use crate::machine::{thread_placements, Queue};
use crate::models::final_outcome;
use crate::program::{Location, Outcome, Program};
use crate::trace_events::{Change, ChartBuilder, ThreadStep};

/// Options of an exhaustive run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Kind of core between threads and caches: the program order that it keeps.
    pub cores: CoreKind,
    /// Maximum number of spontaneous steps, such as evictions and downgrades, of all caches together, in one run.
    pub max_spontaneous_evictions: u8,
    /// Channel capacity per line: number of equal messages, and of messages of one order.
    pub channel_capacity: u16,
    /// Maximum number of states to visit per placement of the locations.
    pub max_states: usize,
    /// Placement of the locations at the homes. Has an effect only with several homes.
    pub placement: Placement,
}

/// Placement of a program's locations at the homes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Every placement.
    All,
    /// Round robin: each location at the next home.
    RoundRobin,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cores: CoreKind::InOrder,
            max_spontaneous_evictions: 1,
            channel_capacity: DEFAULT_CHANNEL_CAPACITY,
            max_states: 10_000_000,
            placement: Placement::All,
        }
    }
}

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunResult {
    /// All outcomes.
    Outcomes {
        /// All outcomes, over all placements.
        outcomes: BTreeSet<Outcome>,
        /// Number of states visited.
        states: usize,
    },
    /// The protocol violates a property.
    Error(StepError),
    /// No outcome is reachable from some reachable state.
    Stuck {
        /// Access that each thread waits for in that state, by thread; `None` if the thread has none to issue.
        waiting: Vec<Option<MemoryRequest>>,
        /// True if steps go on for ever from that state (livelock), false if no step is possible (deadlock).
        livelock: bool,
    },
    /// State limit reached.
    LimitReached,
    /// Cancelled by the caller.
    Interrupted,
    /// A thread needs an access for which its cache has no row.
    UnsupportedPlacement(String),
    /// The protocol has no access with which the program could be run.
    UnsupportedProgram(String),
}

/// Returns all outcomes of a program whose threads run on the caches of a protocol, each thread on its own cache of the
/// first kind. The run polls `should_continue` and stops when it returns false.
pub fn run(
    protocol: &Protocol,
    home: &Controller,
    program: &Program,
    options: &Options,
    should_continue: &mut dyn FnMut() -> bool,
) -> RunResult {
    let kinds = Kinds::from(program.threads.len() as u8);
    run_on_kinds((protocol, home), &kinds, program, options, should_continue)
}

/// As [`run`], on caches of these kinds.
pub fn run_on_kinds(
    (protocol, home): (&Protocol, &Controller),
    kinds: &Kinds,
    program: &Program,
    options: &Options,
    should_continue: &mut dyn FnMut() -> bool,
) -> RunResult {
    let locations = program.locations.len() as u8;
    let mut lines = Lines::new(
        protocol,
        home,
        kinds.clone(),
        locations,
        options.channel_capacity,
    );
    run_on(&mut lines, program, options, should_continue)
}

/// Clusters of one kind that threads run on.
pub struct ClusterKind<'p> {
    /// Protocol of the caches in such a cluster.
    pub protocol: &'p Protocol,
    /// Home of the protocol, over a cache of the upper level.
    pub home: &'p Controller,
    /// Maximum number of such clusters; `None` for as many as threads need.
    pub max_clusters: Option<u8>,
    /// Core of each thread in such a cluster, in place of that of the options.
    pub cores: Option<CoreKind>,
}

/// Returns all outcomes of each program on the lower of two cache levels. `levels` is the upper level, then the lower.
/// All programs have the same number of threads. Outcomes are the union over all assignments of threads to clusters and
/// caches.
pub fn run_on_two_levels(
    levels: [(&Protocol, &Controller); 2],
    programs: &[Program],
    options: &Options,
    should_continue: &mut dyn FnMut() -> bool,
) -> Vec<RunResult> {
    let [upper, (protocol, home)] = levels;
    let kind = ClusterKind {
        protocol,
        home,
        max_clusters: None,
        cores: None,
    };
    let threads = programs.first().map_or(0, |first| first.threads.len());
    run_on_clusters(
        upper,
        (&[kind], &vec![0; threads]),
        programs,
        options,
        should_continue,
    )
}

/// As [`run_on_two_levels`], with clusters of several kinds below the caches of the upper level. `kind_of_thread` is the
/// kind of each thread's cluster, an index into `kinds`. Outcomes are the union over all assignments of threads to
/// clusters of their kind.
pub fn run_on_clusters(
    upper: (&Protocol, &Controller),
    (kinds, kind_of_thread): (&[ClusterKind], &[usize]),
    programs: &[Program],
    options: &Options,
    should_continue: &mut dyn FnMut() -> bool,
) -> Vec<RunResult> {
    // Protocols without a thread have no caches.
    let used_kinds = kind_of_thread.iter().map(|&kind| kinds[kind].protocol);
    let is_joined = std::iter::once(upper.0)
        .chain(used_kinds)
        .any(|protocol| protocol.joins_lines().is_some());
    let locations = programs.iter().map(|program| program.locations.len()).max();
    let lines = match is_joined {
        true => locations.unwrap_or(1).max(1) as u8,
        false => 1,
    };
    let limits: Vec<Option<u8>> = kinds.iter().map(|kind| kind.max_clusters).collect();
    let no_outcomes = || RunResult::Outcomes {
        outcomes: BTreeSet::new(),
        states: 0,
    };
    let mut results: Vec<RunResult> = programs.iter().map(|_| no_outcomes()).collect();
    let system = |(protocol, home), remotes: u8| {
        System::new(
            protocol,
            home,
            u16::from(remotes),
            lines,
            options.channel_capacity,
        )
    };
    for placement in thread_placements(kind_of_thread, &limits) {
        let used = kinds
            .iter()
            .zip(&placement.sizes)
            .filter(|(_, &(clusters, _))| clusters > 0);
        let inner: Vec<_> = used
            .map(|(kind, &(clusters, caches))| {
                (system((kind.protocol, kind.home), caches), clusters)
            })
            .collect();
        let clusters = inner.iter().map(|(_, clusters)| clusters).sum();
        let levels = Levels::of_clusters(system(upper, clusters), inner);
        let cores = kind_of_thread
            .iter()
            .map(|&kind| kinds[kind].cores.unwrap_or(options.cores));
        let mut lines = match Lines::two_levels(levels, placement.caches) {
            Ok(lines) => lines.with_cores(cores.collect()),
            Err(reason) => {
                return programs
                    .iter()
                    .map(|_| RunResult::UnsupportedProgram(reason.clone()))
                    .collect()
            }
        };
        for (program, result) in programs.iter().zip(&mut results) {
            let RunResult::Outcomes { outcomes, states } = result else {
                continue;
            };
            match run_on(&mut lines, program, options, should_continue) {
                RunResult::Outcomes {
                    outcomes: new_outcomes,
                    states: new_states,
                } => {
                    outcomes.extend(new_outcomes);
                    *states += new_states;
                }
                failure => *result = failure,
            }
        }
    }
    results
}

/// Returns all outcomes of a program on `lines`, which keep states of earlier programs with the same number of threads.
/// The program has at most as many locations as `lines` was created for.
pub fn run_on(
    lines: &mut Lines,
    program: &Program,
    options: &Options,
    should_continue: &mut dyn FnMut() -> bool,
) -> RunResult {
    assert_eq!(usize::from(lines.threads()), program.threads.len());
    if let Some(reason) = lines.unsupported_access(program) {
        return RunResult::UnsupportedPlacement(reason);
    }
    lines.trim_cache();
    let program = &lines.with_fences(program);
    let mut runner = Runner::new(lines, program, options);
    // Outcomes are the union over all placements.
    let (mut outcomes, mut visited) = (BTreeSet::new(), 0);
    for placement in runner.placements(options) {
        runner.placement = placement;
        match runner.explore(options, &|_| false, should_continue) {
            Ok((
                RunResult::Outcomes {
                    outcomes: new_outcomes,
                    states,
                },
                _,
            )) => {
                outcomes.extend(new_outcomes);
                visited += states;
            }
            Ok((found, _)) => return found,
            Err(error) => return RunResult::Error(error),
        }
    }
    RunResult::Outcomes {
        outcomes,
        states: visited,
    }
}

/// A shortest path to an outcome.
#[derive(Clone, PartialEq, Debug)]
pub struct ShortestPath {
    /// Number of steps. A step is an access that a thread begins, a forwarded load, or a fence or acquire requested
    /// from a cache. It may also be a step of the protocol alone, such as the delivery of a message.
    pub steps: usize,
    /// Sequence chart of the path, with threads and homes.
    pub chart: Sequence,
}

/// Returns a shortest path to an outcome that satisfies `is_goal`, or to a state from which no outcome is reachable if
/// `is_goal(None)`. Returns `None` if there is no such path, or with two levels of caches.
pub fn shortest_path(
    lines: &mut Lines,
    program: &Program,
    options: &Options,
    is_goal: &dyn Fn(Option<&Outcome>) -> bool,
    should_continue: &mut dyn FnMut() -> bool,
) -> Option<ShortestPath> {
    let program = &lines.with_fences(program);
    let mut runner = Runner::new(lines, program, options);
    let mut best: Option<(Vec<u8>, StatePath)> = None;
    for placement in runner.placements(options) {
        runner.placement.clone_from(&placement);
        let Ok((_, Some(path))) = runner.explore(options, is_goal, should_continue) else {
            continue;
        };
        if best
            .as_ref()
            .is_none_or(|(_, best_path)| path.len() < best_path.len())
        {
            best = Some((placement, path));
        }
    }
    let (placement, path) = best?;
    runner.placement = placement;
    Some(ShortestPath {
        steps: path.len() - 1,
        chart: runner.sequence_chart(&path)?,
    })
}

/// A state as numbers: its lines (one for each location, or one for all), the state of each thread, its queues, and the
/// remaining number of spontaneous steps.
type PackedState = SmallVec<[u32; 8]>;

/// States of a path, each after the step that leads to it. No step leads to the initial state.
type StatePath = Vec<(Option<ThreadStep>, PackedState)>;

/// Queues of messages that are ordered across lines: the line of each message, oldest first.
type Queues = BTreeMap<Queue, Vec<u8>>;

/// Threads of one program on their caches, as a transition system.
struct Runner<'r, 'p> {
    /// System states and steps of the lines.
    lines: &'r mut Lines<'p>,
    /// The program, with fences as the cores run it.
    program: &'r Program,
    /// Threads, by number.
    threads: Vec<Thread<'r>>,
    /// Line of each location, by location; used if one system state contains all lines.
    placement: Vec<u8>,
    /// Queues of all states.
    queues: Interner<Queues>,
    /// True after an atomic access completed without returning the old value.
    lost_old_value: bool,
}

impl<'r, 'p> Runner<'r, 'p> {
    fn new(lines: &'r mut Lines<'p>, program: &'r Program, options: &Options) -> Runner<'r, 'p> {
        let cores = Core::all(program).into_iter().zip(0..);
        let threads = cores.map(|(mut core, number)| {
            core.fence_support = lines.fence_support(number);
            let cores = lines.core(number, options.cores);
            Thread::new(core, number, program, cores)
        });
        Runner {
            threads: threads.collect(),
            lines,
            program,
            placement: Vec::new(),
            queues: Interner::default(),
            lost_old_value: false,
        }
    }

    /// Returns the placements to explore, each as the line of every location.
    fn placements(&self, options: &Options) -> Vec<Vec<u8>> {
        let locations = self.program.locations.len();
        match options.placement {
            Placement::All => self.lines.placements(locations),
            Placement::RoundRobin => vec![(0..locations as u8).collect()],
        }
    }

    /// Explores all states in breadth-first order. Returns the result. If `is_goal` accepts an outcome, or a state
    /// from which none is reachable (`None`), the exploration ends there and the path to that state is returned too.
    fn explore(
        &mut self,
        options: &Options,
        is_goal: &dyn Fn(Option<&Outcome>) -> bool,
        should_continue: &mut dyn FnMut() -> bool,
    ) -> Result<(RunResult, Option<StatePath>), StepError> {
        let values = self.program.initial.iter();
        let values: Vec<(u8, i64)> = self
            .placement
            .iter()
            .copied()
            .zip(values.copied())
            .collect();
        let mut initial_state = PackedState::from_vec(self.lines.initial_lines(&values)?);
        initial_state.extend(self.threads.iter().map(|_| 0));
        initial_state.push(self.queues.add(Queues::new()).0);
        initial_state.push(u32::from(options.max_spontaneous_evictions));
        let mut exploration = Exploration::new(initial_state);
        let mut limits = Limits {
            max_states: options.max_states,
            should_continue,
        };
        let mut outcomes = BTreeSet::new();
        loop {
            let number = match exploration.next(&mut limits) {
                Ok(Some(number)) => number,
                Ok(None) => break,
                Err(Stop::StateLimit) => return Ok((RunResult::LimitReached, None)),
                Err(Stop::Cancelled) => return Ok((RunResult::Interrupted, None)),
            };
            let state = &exploration.states()[number];
            if self.quiescent(state) {
                let outcome = self.outcome(state);
                let reaches_goal = outcome.as_ref().is_some_and(|end| is_goal(Some(end)));
                outcomes.extend(outcome);
                if reaches_goal {
                    let states = exploration.states().len();
                    let path = self.path_to(&exploration, number);
                    return Ok((RunResult::Outcomes { outcomes, states }, Some(path)));
                }
                exploration.end_expansion();
                continue;
            }
            let mut failure = None;
            exploration.expand(self, |_, successor| {
                failure = failure.take().or(successor.err());
            });
            if let Some(failure) = failure {
                return Err(failure);
            }
            if self.lost_old_value {
                let name = &self.lines.protocol().name;
                let reason = format!("the home of {name} performs the stores of its caches and returns no old value, so no access can read and write atomically");
                return Ok((RunResult::UnsupportedProgram(reason), None));
            }
            if exploration.is_dead_end(number) {
                let livelock = false;
                return Ok(self.stuck(&exploration, number, livelock, is_goal));
            }
        }
        if let Some(&trapped) = exploration.lost(self).first() {
            let livelock = true;
            return Ok(self.stuck(&exploration, trapped, livelock, is_goal));
        }
        let states = exploration.states().len();
        Ok((RunResult::Outcomes { outcomes, states }, None))
    }

    /// Returns the result for a state from which no outcome is reachable, and a path to it if it is a goal.
    fn stuck(
        &mut self,
        exploration: &Exploration<PackedState>,
        number: u32,
        livelock: bool,
        is_goal: &dyn Fn(Option<&Outcome>) -> bool,
    ) -> (RunResult, Option<StatePath>) {
        let waiting = self.awaited_requests(&exploration.states()[number]);
        let path = is_goal(None).then(|| self.path_to(exploration, number));
        (RunResult::Stuck { waiting, livelock }, path)
    }

    /// Returns the states of a shortest path to a state, and the steps between them.
    fn path_to(&mut self, exploration: &Exploration<PackedState>, number: u32) -> StatePath {
        let steps = exploration.path_to(self, number).into_iter();
        let steps = steps.map(|(_, (step, _))| Some(step));
        let states = exploration.states_to(number).into_iter();
        let states = states.map(|number| exploration.states()[number].clone());
        std::iter::once(None).chain(steps).zip(states).collect()
    }

    /// Returns the sequence chart of a path, or `None` with two levels of caches.
    fn sequence_chart(&mut self, path: &StatePath) -> Option<Sequence> {
        let system = self.lines.system()?;
        let homes = usize::from(system.protocol.homes);
        let threads = self.lines.thread_of_each();
        let mut chart = ChartBuilder::new(self.program, (&system.home.name, homes), threads);
        for pair in path.windows(2) {
            let [(_, before), (step, after)] = [&pair[0], &pair[1]];
            let first_thread = self.first_thread();
            let changed =
                (0..first_thread).find(|&system_index| before[system_index] != after[system_index]);
            let system = self.lines.system()?;
            let locations: Vec<Option<Location>> = match (self.lines.joined(), changed) {
                (true, _) => {
                    let location = |line| self.placement.iter().position(|&place| place == line);
                    let lines = (0..system.lines).map(location);
                    lines
                        .map(|location| location.map(|location| location as Location))
                        .collect()
                }
                (false, system_index) => {
                    vec![system_index.map(|system_index| system_index as Location)]
                }
            };
            let states = changed.map(|system_index| {
                [before, after].map(|state| self.lines.state(state[system_index]))
            });
            let cores = [before, after].map(|state| {
                let cores = self.threads.iter().zip(&state[first_thread..]);
                let cores = cores.map(|(thread, &core)| Core::clone(&thread.cores[core]));
                cores.collect::<Vec<_>>()
            });
            let system_states = states.as_ref().map(|pair| {
                pair.each_ref()
                    .map(|state| state.system_states().next().expect("there is one"))
            });
            let change = Change {
                system,
                locations: &locations,
                system_states,
                cores: cores.each_ref().map(Vec::as_slice),
            };
            chart.add_step((*step)?, &change);
        }
        Some(chart.sequence())
    }

    /// Index of the first thread in a state.
    fn first_thread(&self) -> usize {
        match self.lines.joined() {
            true => 1,
            false => self.program.locations.len(),
        }
    }

    /// Returns the index of a location's system state in a state, and the location's line in that system state.
    fn system_and_line(&self, location: u8) -> (usize, u8) {
        match self.lines.joined() {
            true => (0, self.placement[usize::from(location)]),
            false => (location.into(), 0),
        }
    }

    /// Returns the cached properties of each thread in a state.
    fn cores<'s>(&'s self, state: &'s [u32]) -> impl Iterator<Item = &'s ThreadStateInfo> {
        let cores = self.threads.iter().zip(&state[self.first_thread()..]);
        cores.map(|(thread, &core)| thread.state_info(core))
    }

    /// Returns true if all threads have completed.
    fn stopped(&self, state: &[u32]) -> bool {
        self.cores(state).all(|core| core.stopped)
    }

    /// Returns the first request that each thread may issue, if any.
    fn awaited_requests(&self, state: &[u32]) -> Vec<Option<MemoryRequest>> {
        let cores = self.cores(state);
        cores
            .map(|core| core.ready_requests.first().copied())
            .collect()
    }

    /// Returns the outcome of a final state, or `None` if the program's filter excludes it.
    fn outcome(&self, state: &[u32]) -> Option<Outcome> {
        let (lines, rest) = state.split_at(self.first_thread());
        let memory = (0..self.program.locations.len() as u8).map(|location| {
            let (system_index, line_in_system) = self.system_and_line(location);
            self.lines.value(lines[system_index], line_in_system)
        });
        let memory: Vec<i64> = memory.collect();
        let cores = self.threads.iter().zip(rest);
        let cores = cores.map(|(thread, &core)| Core::clone(&thread.cores[core]));
        final_outcome(self.program, &cores.collect::<Vec<_>>(), &memory)
    }

    /// As [`TransitionSystem::successors`], but returns the error of a step.
    fn possible_successors(
        &mut self,
        state: &PackedState,
        visit: &mut dyn FnMut(Step, PackedState),
    ) -> Result<(), StepError> {
        for number in 0..self.threads.len() {
            let slot = self.first_thread() + number;
            for core in self.threads[number].forward(state[slot]).iter().copied() {
                let mut next = state.clone();
                next[slot] = core;
                visit((ThreadStep::Forwards(number as u8), false), next);
            }
            // A thread has at most one outstanding access per line.
            let ready_requests =
                Rc::clone(&self.threads[number].state_info(state[slot]).ready_requests);
            for &request in ready_requests.iter() {
                let (system_index, line_in_system) = self.system_and_line(request.location());
                let begun =
                    self.lines
                        .begin(state[system_index], line_in_system, number as u8, request)?;
                if let Some(next) =
                    begun.and_then(|begun| self.apply_move(state, system_index, &begun))
                {
                    visit((ThreadStep::Begins(number as u8, request), false), next);
                }
            }
            for fence in self.threads[number]
                .state_info(state[slot])
                .requested_fences
                .into_iter()
                .flatten()
            {
                let begun = self.lines.begin_fence(state[0], number as u8, fence)?;
                if let Some(next) = begun.and_then(|begun| self.apply_move(state, 0, &begun)) {
                    visit((ThreadStep::Fence(number as u8, fence), false), next);
                }
            }
        }
        let evictions = state.len() - 1;
        for line in 0..self.first_thread() {
            for step in self.lines.moves(state[line], state[evictions] > 0)?.iter() {
                if let Some(next) = self.apply_move(state, line, step) {
                    visit((ThreadStep::Nothing, step.is_spontaneous), next);
                }
            }
        }
        Ok(())
    }

    /// Returns the state after a step of a line, or `None` if an earlier message of another line, in the same order,
    /// must be delivered first.
    fn apply_move(&mut self, state: &PackedState, line: usize, step: &Move) -> Option<PackedState> {
        let mut next = state.clone();
        next[line] = step.to;
        let (queues, evictions) = (state.len() - 2, state.len() - 1);
        next[evictions] -= u32::from(step.is_spontaneous);
        if step.consumed_order.is_some() || !step.sent_orders.is_empty() {
            let mut order_queues = self.queues[state[queues]].clone();
            if let Some(order) = step.consumed_order {
                match order_queues.get_mut(&order) {
                    Some(queue) if usize::from(queue[0]) == line => {
                        queue.remove(0);
                        if queue.is_empty() {
                            order_queues.remove(&order);
                        }
                    }
                    _ => return None,
                }
            }
            for &order in &step.sent_orders {
                order_queues.entry(order).or_default().push(line as u8);
            }
            next[queues] = self.queues.add(order_queues).0;
        }
        // Complete the accesses of the threads, which then begin their next ones.
        let threads = self.first_thread();
        for &completion in &step.completions {
            let (thread, access) = match completion {
                Completion::Fence(thread, fence) => (thread, Err(fence)),
                Completion::Access(thread, line_in_system, value) => {
                    let joined = self.lines.joined();
                    let index = self
                        .placement
                        .iter()
                        .position(|&index| joined && index == line_in_system);
                    let location = index.unwrap_or(line) as u8;
                    (thread, Ok((location, value)))
                }
            };
            let slot = threads + usize::from(thread);
            let thread = &mut self.threads[usize::from(thread)];
            next[slot] = match access {
                Err(fence) => thread.complete_fence(next[slot], fence),
                Ok((location, value)) => {
                    let mut ready_requests = thread.state_info(next[slot]).ready_requests.iter();
                    let updates = ready_requests.any(
                        |request| matches!(request, MemoryRequest::Update(updated, ..) if *updated == location),
                    );
                    self.lost_old_value |= updates && value.is_none();
                    thread.complete_access(next[slot], location, value.unwrap_or_default())
                }
            };
        }
        Some(next)
    }
}

/// Step of a thread or of the protocol, and true if it is spontaneous. Spontaneous evictions and downgrades are
/// optional, so an outcome must be reachable without them.
type Step = (ThreadStep, bool);

impl TransitionSystem<PackedState> for Runner<'_, '_> {
    type Step = Step;
    type Error = StepError;

    fn successors(
        &mut self,
        state: &PackedState,
        visit: &mut dyn FnMut(Step, Result<PackedState, StepError>),
    ) {
        let result = self.possible_successors(state, &mut |step, next| visit(step, Ok(next)));
        if let Err(error) = result {
            visit((ThreadStep::Nothing, false), Err(error));
        }
    }
    fn spontaneous(&(_, is_spontaneous): &Step) -> bool {
        is_spontaneous
    }
    fn quiescent(&self, state: &PackedState) -> bool {
        let mut system_states = state[..self.first_thread()].iter();
        self.stopped(state) && system_states.all(|&line| self.lines.settled(line))
    }
}

/// Cached properties of one state of a thread.
struct ThreadStateInfo {
    /// Memory requests that the thread may issue now.
    ready_requests: Rc<[MemoryRequest]>,
    /// Fences and acquires that the thread may request now: a fence, and an acquire.
    requested_fences: [Option<FenceKind>; 2],
    /// True if all instructions have completed.
    stopped: bool,
    /// Numbers of the successors by store forwarding, computed on first use.
    forwards: Option<Rc<[u32]>>,
}

/// A thread with all of its states found so far. A state is referred to by its number.
struct Thread<'r> {
    /// The program.
    program: &'r Program,
    /// Number of the thread in the program.
    number: usize,
    /// Kind of core.
    core_kind: CoreKind,
    /// States of the thread, by number. Each is settled.
    cores: Interner<Core>,
    /// Properties of each state, by number.
    state_infos: Vec<ThreadStateInfo>,
    /// Number of the state after an access completes, by state, location and value.
    completed_accesses: FxHashMap<(u32, u8, i64), u32>,
}

impl<'r> Thread<'r> {
    fn new(core: Core, number: usize, program: &'r Program, core_kind: CoreKind) -> Thread<'r> {
        let mut thread = Thread {
            program,
            number,
            core_kind,
            cores: Interner::default(),
            state_infos: Vec::new(),
            completed_accesses: FxHashMap::default(),
        };
        thread.intern(core);
        thread
    }

    /// Returns the cached properties of a state.
    fn state_info(&self, core: u32) -> &ThreadStateInfo {
        &self.state_infos[core as usize]
    }

    /// Settles a core and returns the number of its state.
    fn intern(&mut self, mut core: Core) -> u32 {
        let code = &self.program.threads[self.number].code;
        core.settle(code, self.core_kind);
        let info = ThreadStateInfo {
            ready_requests: core.ready_requests(code, self.core_kind).collect(),
            requested_fences: [FenceKind::Fence, FenceKind::Acquire].map(|fence| {
                core.requests_fence(code, self.core_kind, fence)
                    .then_some(fence)
            }),
            stopped: core.stopped(code),
            forwards: None,
        };
        let (number, new) = self.cores.add(core);
        if new {
            self.state_infos.push(info);
        }
        number
    }

    /// Returns the successors of a state by store forwarding, one per load that can be forwarded.
    fn forward(&mut self, core: u32) -> Rc<[u32]> {
        if let Some(forwards) = &self.state_info(core).forwards {
            return Rc::clone(forwards);
        }
        let previous = self.cores[core].clone();
        let code = &self.program.threads[self.number].code;
        let mut successors = Vec::new();
        for at in previous.forwards(code, self.core_kind) {
            let mut next = previous.clone();
            next.forward(code, at);
            successors.push(self.intern(next));
        }
        let successors: Rc<[u32]> = successors.into();
        self.state_infos[core as usize].forwards = Some(Rc::clone(&successors));
        successors
    }

    /// Returns the state after the requested fence or acquire has completed.
    fn complete_fence(&mut self, core: u32, fence: FenceKind) -> u32 {
        let mut next = self.cores[core].clone();
        let code = &self.program.threads[self.number].code;
        next.complete_fence(code, self.core_kind, fence);
        self.intern(next)
    }

    /// Returns the state after the access to a location has completed with this value.
    fn complete_access(&mut self, core: u32, line: u8, value: i64) -> u32 {
        if let Some(&next) = self.completed_accesses.get(&(core, line, value)) {
            return next;
        }
        let mut next = self.cores[core].clone();
        next.complete_access(&self.program.threads[self.number].code, line, value);
        let number = self.intern(next);
        self.completed_accesses.insert((core, line, value), number);
        number
    }
}
