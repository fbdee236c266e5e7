//! Programs in the simulator: each run is one order of events, from random delays of messages and threads.

use cohkit_application::interface::{
    Actions, Application, Contents, Event, Placement, Step, Table, Update as WordUpdate,
};
use cohkit_protocol::controller::{Access, Controller};
use cohkit_protocol::protocol::{Permission, Protocol, StateId};
use cohkit_protocol::remotes::KindId;
use cohkit_protocol::threads::Accesses;
use cohkit_sim::data::{Data, Random};
use cohkit_sim::kernel::NANOSECOND;
use cohkit_sim::platform::Platform;
use cohkit_sim::scenario::{Playable, ScenarioRun};
use cohkit_sim::simulation::{play_while, LowerLevelSetup, RunError, Setup};
use cohkit_units::Quantity;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cores::{Core, CoreKind, FenceKind, FenceSupport, MemoryRequest};
use crate::kinds::{write_access, Kinds};
use crate::models::final_outcome;
use crate::program::{Change, Instruction, Outcome, Program, StoreVariant, Update};
use crate::store_variants::with_fences;

/// Observations of runs with consecutive seeds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SeedOutcomes {
    /// Outcomes, each with the number of runs that show it and the first seed of these runs.
    pub counts: BTreeMap<Outcome, (u64, u64)>,
    /// Number of completed runs.
    pub runs: u64,
    /// Number of messages sent in these runs, by name.
    pub messages: BTreeMap<String, u64>,
    /// First failure of the simulation, in words, with its seed. No runs follow it.
    pub failure: Option<(String, u64)>,
}

/// Reason why a program cannot be run in the simulator.
#[derive(Clone, PartialEq, Debug)]
pub enum ObserveError {
    /// A thread needs an access for which its cache has no row.
    Lacks(String),
    /// The protocol or the machine does not support the program.
    Cannot(String),
    /// Cancelled by the caller.
    Interrupted,
}

/// Options of simulated runs: `runs` runs with consecutive seeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Kind of core between threads and caches.
    pub cores: CoreKind,
    /// Number of runs.
    pub runs: u64,
    /// Seed of the first run; each further run has the next seed.
    pub seed: u64,
}

/// A level of caches.
#[derive(Clone, Debug)]
pub struct Level<'p> {
    /// Protocol of the level.
    pub protocol: &'p Protocol,
    /// Home of the protocol, for `caches` caches.
    pub home: Controller,
    /// Number of caches that the home serves, at least 1.
    pub caches: u16,
}

/// Machine that runs a program: one level of caches, or two, where threads use the caches of the lower level. There is
/// at least one such cache per thread.
#[derive(Clone, Debug)]
pub struct Machine<'p> {
    /// Upper level: the one next to memory, or the only one.
    pub upper: Level<'p>,
    /// Level below each cache of the upper level, if any.
    pub lower: Option<Level<'p>>,
}

impl Machine<'_> {
    /// Returns the number of caches that serve cores: those of the lower level, if there is one.
    fn caches(&self) -> u16 {
        let lower_caches = self.lower.as_ref().map_or(1, |lower| lower.caches);
        self.upper.caches * lower_caches
    }

    /// Sets up a run of a program on the machine, with small caches and with delays that provoke races.
    ///
    /// # Errors
    /// The platform has no quantity for the number of remotes of a kind.
    fn setup(&self, scenario: TimedProgram) -> Result<Setup, String> {
        let Level {
            protocol,
            home,
            caches,
        } = &self.upper;
        let remotes = scenario.kinds.remotes(protocol);
        let other_kinds = (1..protocol.kinds.len() as u8).map(KindId);
        let other_kinds = || other_kinds.clone().map(|kind| (kind, remotes.count(kind)));
        // If all threads run on the first kind, only it has caches, and there may be more of them than threads.
        let has_other_kinds =
            protocol.several_tables() || other_kinds().any(|(_, count)| count > 0);
        let first_count = match has_other_kinds {
            // Every machine has at least one remote of the first kind.
            true => remotes.count(KindId(0)).max(1),
            false => *caches,
        };
        let mut torture = Platform::torture(first_count);
        let ports = scenario.ports();
        let core_count = |count: u16| u32::from(count) * ports as u32;
        for (kind, count) in other_kinds().filter(|_| has_other_kinds) {
            let name = format!("agents.{}.remotes", protocol.kinds[kind.index()].name);
            torture.set(&name, &count.to_string())?;
        }
        let scenario = Arc::new(scenario);
        let homes = Quantity::given(protocol.homes.into(), "of the protocol file");
        torture.home.count = (protocol.homes > 1).then_some(homes);
        let mut setup = Setup::with_threads((*protocol).clone(), home.clone(), torture, scenario);
        let lower_level = self.lower.as_ref().map(|level| LowerLevelSetup {
            protocol: level.protocol.clone(),
            home: level.home.clone(),
            platform: Platform::torture(level.caches),
        });
        setup.below = lower_level.map(Box::new);
        if has_other_kinds {
            setup.workload.cores = core_count(first_count);
            let other_workloads = other_kinds().map(|(_, count)| {
                let mut workload = setup.workload.clone();
                workload.cores = core_count(count);
                workload
            });
            setup.others = other_workloads.collect();
        }
        Ok(setup)
    }
}

/// Returns distributions of threads over clusters: one cluster per thread, one per two threads, and one for all. Each
/// is a number of clusters and of caches per cluster.
pub fn clusters(threads: u16) -> Vec<[u16; 2]> {
    let mut distributions = vec![[threads, 1], [threads.div_ceil(2), 2], [1, threads]];
    distributions.dedup();
    distributions
}

/// Runs a program once per seed on small machines that provoke races. The seed selects the machine. The threads run on
/// caches of the first kind. Polls `should_continue` before each run, and stops when it returns false.
///
/// # Errors
/// The program cannot be run on these machines, or the caller cancelled.
pub fn observe(
    machines: &[Machine],
    program: &Program,
    options: &Options,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<SeedOutcomes, ObserveError> {
    let kinds = Kinds::from(program.threads.len() as u8);
    observe_on_kinds(machines, &kinds, program, options, should_continue)
}

/// As [`observe`], on caches of these kinds.
///
/// # Errors
/// The program cannot be run on these machines, or the caller cancelled.
pub fn observe_on_kinds(
    machines: &[Machine],
    kinds: &Kinds,
    program: &Program,
    options: &Options,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<SeedOutcomes, ObserveError> {
    let Some(first_machine) = machines.first() else {
        return Err(ObserveError::Cannot("there is no machine".into()));
    };
    let protocol = first_machine
        .lower
        .as_ref()
        .unwrap_or(&first_machine.upper)
        .protocol;
    if let Some(reason) = kinds.unsupported_access(protocol, program) {
        return Err(ObserveError::Lacks(reason));
    }
    let levels = [Some(&first_machine.upper), first_machine.lower.as_ref()];
    let mut levels = levels.into_iter().flatten();
    if first_machine.lower.is_some() && levels.any(|level| level.protocol.several_tables()) {
        let reason = "where there are two levels, caches are of one kind";
        return Err(ObserveError::Cannot(reason.into()));
    }
    check_atomics(protocol, kinds, program)?;
    let mut outcomes = SeedOutcomes::default();
    let accesses = kinds.accesses(protocol);
    // The simulator's threads request the acquire after an acquiring read themselves.
    let fence_support = accesses.iter().map(|cache_accesses| FenceSupport {
        acquired: false,
        ..FenceSupport::of(cache_accesses)
    });
    let fence_support: Vec<FenceSupport> = fence_support.collect();
    for run in 0..options.runs {
        if !should_continue() {
            return Err(ObserveError::Interrupted);
        }
        let seed = options.seed.wrapping_add(run);
        let machine = &machines[(seed % machines.len() as u64) as usize];
        let setup = machine.setup(TimedProgram {
            program: with_fences(protocol, kinds, program),
            cores: options.cores,
            kinds: kinds.clone(),
            fence_support: fence_support.clone(),
            accesses: accesses.clone(),
            caches: machine.caches().into(),
            seed,
        });
        let mut setup = setup.map_err(ObserveError::Cannot)?;
        setup.seed = seed;
        if let Some(play) = &mut setup.play {
            play.tables = true;
        }
        match play_while(&setup, &mut |_| true) {
            Ok(performance) => {
                let mut rows = performance.tables.into_iter().flat_map(|table| table.rows);
                if let Some(values) = rows.next() {
                    let values = values.into_iter().map(|value| value as i64);
                    let end = Outcome(program.observed().into_iter().zip(values).collect());
                    outcomes.counts.entry(end).or_insert((0, seed)).0 += 1;
                }
                outcomes.runs += 1;
                for (name, sent) in performance.statistics.messages {
                    *outcomes.messages.entry(name).or_default() += sent;
                }
            }
            Err(RunError::Failure(failure)) => {
                outcomes.failure = Some((failure.to_string(), seed));
                return Ok(outcomes);
            }
            Err(RunError::Setup(reason)) => return Err(ObserveError::Cannot(reason)),
            Err(RunError::Stopped) => return Err(ObserveError::Interrupted),
        }
    }
    Ok(outcomes)
}

/// Checks the atomic accesses of a program. The simulator performs them at homes that have rows for them, or in copies
/// of caches.
///
/// # Errors
/// A thread with atomic accesses has a cache without write permission, or an atomic access has an unsupported
/// operation.
fn check_atomics(
    protocol: &Protocol,
    kinds: &Kinds,
    program: &Program,
) -> Result<(), ObserveError> {
    let threads = program.threads.iter().zip(kinds.names(protocol));
    for ((thread, kind), accesses) in threads.zip(kinds.accesses(protocol)) {
        let mut code = thread.code.iter();
        let is_fetch_op = |instruction: &Instruction| {
            matches!(
                instruction,
                Instruction::Atomic {
                    change: Change::FetchOp(_),
                    ..
                }
            )
        };
        if code.clone().any(is_fetch_op) {
            let reason = "the simulator supports only atomic add, exchange and compare-and-swap";
            return Err(ObserveError::Cannot(reason.into()));
        }
        let atomic = code.any(|instruction| matches!(instruction, Instruction::Atomic { .. }));
        let is_of_kind =
            |state: StateId| protocol.kinds[protocol.kind_of(state).index()].name == kind;
        let mut states = (0..).zip(&protocol.remote.states);
        let has_writable_copy = states.any(|(index, state)| {
            state.permission >= Permission::Write && is_of_kind(StateId(index))
        });
        if atomic && !has_writable_copy && accesses.atomic != Some(Access::Atomic) {
            let name = &protocol.name;
            return Err(ObserveError::Cannot(format!(
                "simulated threads perform atomic accesses in the copies of their caches, and the caches of {name} have no writable copy"
            )));
        }
    }
    Ok(())
}

/// A program as a scenario of the simulator.
#[derive(Clone)]
struct TimedProgram {
    /// The program, with fences as the cores run it.
    program: Program,
    /// Kind of core.
    cores: CoreKind,
    /// Kinds of the threads' caches.
    kinds: Kinds,
    /// Fences and acquires that each thread's cache executes.
    fence_support: Vec<FenceSupport>,
    /// Accesses of each thread's cache, by thread.
    accesses: Vec<Accesses>,
    /// Number of caches that serve cores: at least one per thread.
    caches: usize,
    /// Seed of the lines, delays and choices of the run.
    seed: u64,
}

/// Number of lines in which locations are placed: few enough that some share a set of the small caches and evict each
/// other.
const LINES: u32 = 16;

impl TimedProgram {
    /// Returns the number of simulator cores per thread.
    fn ports(&self) -> usize {
        match self.cores {
            CoreKind::InOrder => 1,
            CoreKind::StoreBuffer => 2,
            CoreKind::Relaxed(_) => 3,
        }
    }

    /// Returns the assignment of each simulator core. Cores are numbered kind by kind; within a kind, first one core per
    /// cache, then the second ones, and so on.
    fn assignments(&self) -> Vec<CoreAssignment> {
        let ports = self.ports();
        let threads = self.program.threads.len();
        if self.kinds.all_on_first_kind() {
            // There may be more caches of the first kind than threads.
            let assignment = move |port, cache| CoreAssignment {
                port,
                thread: (cache < threads).then_some(cache),
            };
            let cores = (0..ports)
                .flat_map(|port| (0..self.caches).map(move |cache| assignment(port, cache)));
            return cores.collect();
        }
        let numbers = self.kinds.numbers();
        let thread = |remote: u8| numbers.iter().position(|number| *number == remote);
        let kinds = self.kinds.remotes_by_kind().into_iter();
        let cores = kinds.flat_map(|remotes| {
            (0..ports).flat_map(move |port| remotes.clone().map(move |remote| (port, remote)))
        });
        let cores = cores.filter_map(|(port, remote)| {
            let thread = Some(thread(remote)?);
            Some(CoreAssignment { port, thread })
        });
        // The machine has a cache of the first kind even if no thread runs on it.
        let idle = match self.kinds.any_on_first_kind() {
            true => 0,
            false => ports,
        };
        (0..idle)
            .map(|port| CoreAssignment { port, thread: None })
            .chain(cores)
            .collect()
    }

    /// Returns a distinct line for each location, chosen by the seed.
    fn lines(&self) -> Vec<u32> {
        let mut random = Random::new(self.seed);
        let mut lines: Vec<u32> = Vec::new();
        while lines.len() < self.program.locations.len() {
            let line = random.below(LINES.into()) as u32;
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }
}

impl Playable for TimedProgram {
    fn line_count(&self) -> u32 {
        LINES
    }

    fn words_used(&self) -> u64 {
        1
    }

    fn has_end(&self) -> bool {
        true
    }

    fn threads_only(&self) -> bool {
        true
    }

    fn begin(&self) -> Box<dyn ScenarioRun> {
        let mut cores = Core::all(&self.program);
        let threads = cores.iter_mut().zip(&self.program.threads);
        for ((core, thread), fence_support) in threads.zip(&self.fence_support) {
            core.fence_support = *fence_support;
            core.settle(&thread.code, self.cores);
        }
        let assignments = self.assignments();
        // Separate generator: only the delays and choices of threads use it.
        let random = Random::new(!self.seed);
        Box::new(TimedRun {
            lines: self.lines(),
            test: self.clone(),
            cores,
            activities: vec![ThreadActivity::Idle; assignments.len()],
            assignments,
            random,
            memory: RefCell::new(Vec::new()),
            application: NoApplication,
        })
    }
}

/// Thread that a simulator core serves.
#[derive(Clone, Copy, Debug)]
struct CoreAssignment {
    /// Index of the core among those of its thread.
    port: usize,
    /// The thread; `None` for a core without one.
    thread: Option<usize>,
}

/// State of a simulator core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ThreadActivity {
    /// Nothing is outstanding; a delay begins.
    Idle,
    /// The delay before the next step is over.
    DelayOver,
    /// Its access is outstanding.
    Access(MemoryRequest),
    /// Its fence or acquire is outstanding.
    Fence(FenceKind),
}

/// Threads in execution. Each uses several simulator cores before one cache: with a store buffer, the second core
/// performs the stores; with a window, any of three performs the next access.
struct TimedRun {
    /// The program and its machine.
    test: TimedProgram,
    /// Line of each location, by location.
    lines: Vec<u32>,
    /// Threads in execution, by thread.
    cores: Vec<Core>,
    /// Assignment of each simulator core.
    assignments: Vec<CoreAssignment>,
    /// Activity of each simulator core.
    activities: Vec<ThreadActivity>,
    /// Generator of delays and choices.
    random: Random,
    /// Final values of the locations; empty until the end of the run.
    memory: RefCell<Vec<i64>>,
    /// The simulator's device application, which the test does not use.
    application: NoApplication,
}

impl TimedRun {
    /// Returns the difference between a word of the simulator and the value of location `location`. The simulator
    /// chooses the initial words.
    fn difference(&self, location: u8) -> u64 {
        let line = self.lines[usize::from(location)];
        let initial = self.test.program.initial[usize::from(location)] as u64;
        Data::untouched_word(line, 0).wrapping_sub(initial)
    }

    /// Returns the simulator's step for a memory request.
    fn access_step(&self, request: MemoryRequest) -> Step {
        let (line, word) = (self.lines[usize::from(request.location())], 0);
        let shift = self.difference(request.location());
        let word_of = |value: i64| (value as u64).wrapping_add(shift);
        let update = match request {
            MemoryRequest::Read(_, false) => return Step::Load { line, word },
            MemoryRequest::Read(_, true) => return Step::Acquire { line, word },
            MemoryRequest::Write(_, value, false, _) => {
                let value = word_of(value);
                return Step::Store { line, word, value };
            }
            MemoryRequest::Write(_, value, true, _) => {
                let value = word_of(value);
                return Step::Release { line, word, value };
            }
            MemoryRequest::Update(_, Update::Exchange(value), _) => {
                WordUpdate::Swap(word_of(value))
            }
            MemoryRequest::Update(_, Update::FetchAdd(amount), _) => WordUpdate::Add(amount as u64),
            MemoryRequest::Update(_, Update::CompareAndSwap(old, new), _) => {
                WordUpdate::CompareSwap {
                    old: word_of(old),
                    new: word_of(new),
                }
            }
            MemoryRequest::Update(_, Update::FetchOp(..), _) => {
                unreachable!("`check_atomics` rejects it")
            }
        };
        Step::Update { line, word, update }
    }

    /// Returns a delay of up to `max_ns` nanoseconds; half of the delays are zero.
    fn random_delay(&mut self, max_ns: u64) -> Step {
        // A factor of 0 or 1.
        let is_nonzero = self.random.below(2);
        Step::Work(self.random.below(1 + is_nonzero * max_ns * NANOSECOND))
    }

    /// Returns a polling step: the thread retries after others have made progress.
    fn polling_step(&self, number: usize) -> Step {
        Step::LoadHost {
            word: number as u32,
        }
    }

    /// Returns the requests that a simulator core, by its index among the cores of its thread, may begin.
    fn ready_requests(&self, port: usize, thread: usize) -> Vec<MemoryRequest> {
        let code = &self.test.program.threads[thread].code;
        let is_own = |request: &MemoryRequest| match self.test.cores {
            CoreKind::InOrder => true,
            CoreKind::StoreBuffer => matches!(request, MemoryRequest::Write(..)) == (port == 1),
            // Skip requests that are outstanding at another core of the thread.
            CoreKind::Relaxed(_) => {
                let mut other_cores = self.assignments.iter().zip(&self.activities);
                !other_cores.any(|(assignment, activity)| {
                    assignment.thread == Some(thread)
                        && *activity == ThreadActivity::Access(*request)
                })
            }
        };
        let ready_requests = self.cores[thread].ready_requests(code, self.test.cores);
        ready_requests.filter(is_own).collect()
    }

    /// Returns the next step of the simulator core with this number, which serves `thread`.
    fn next_step(&mut self, number: usize, thread: usize) -> Step {
        let port = self.assignments[number].port;
        let ready_requests = self.ready_requests(port, thread);
        let chosen = match ready_requests.len() {
            0 | 1 => ready_requests.first(),
            count => ready_requests.get(self.random.below(count as u64) as usize),
        };
        if let Some(&request) = chosen {
            self.activities[number] = ThreadActivity::Access(request);
            return self.access_step(request);
        }
        let code = &self.test.program.threads[thread].code;
        let core = &mut self.cores[thread];
        let can_request = |fence: &FenceKind| core.requests_fence(code, self.test.cores, *fence);
        let fence = [FenceKind::Fence, FenceKind::Acquire]
            .into_iter()
            .find(can_request);
        if let (0, Some(fence)) = (port, fence) {
            self.activities[number] = ThreadActivity::Fence(fence);
            return Step::Fence;
        }
        if port == 0 {
            // Choose at random: forward from the thread's own store now, or read memory after the store.
            let reads = self.random.below(2) == 0;
            let forwarded = core.forwards(code, self.test.cores).next();
            if let (true, Some(position)) = (reads, forwarded) {
                core.forward(code, position);
                core.settle(code, self.test.cores);
                self.activities[number] = ThreadActivity::Idle;
                return self.random_delay(0);
            }
            if core.only_stores_left(code) && !matches!(self.test.cores, CoreKind::Relaxed(_)) {
                return Step::Stop;
            }
        }
        if core.stopped(code) {
            return Step::Stop;
        }
        if port > 0 {
            self.activities[number] = ThreadActivity::Idle;
        }
        self.polling_step(number)
    }
}

impl ScenarioRun for TimedRun {
    fn application(&mut self) -> &mut dyn Application {
        &mut self.application
    }

    fn threads(&self) -> usize {
        self.activities.len()
    }

    fn step(&mut self, number: usize, result: u64) -> Step {
        let Some(thread) = self.assignments[number].thread else {
            return Step::Stop;
        };
        if let ThreadActivity::Access(request) = self.activities[number] {
            let code = &self.test.program.threads[thread].code;
            let value = result.wrapping_sub(self.difference(request.location()));
            self.cores[thread].complete_access(code, request.location(), value as i64);
            self.cores[thread].settle(code, self.test.cores);
            self.activities[number] = ThreadActivity::Idle;
        }
        if let ThreadActivity::Fence(fence) = self.activities[number] {
            let code = &self.test.program.threads[thread].code;
            self.cores[thread].complete_fence(code, self.test.cores, fence);
            self.cores[thread].settle(code, self.test.cores);
            self.activities[number] = ThreadActivity::Idle;
        }
        // Delays between steps: up to 200 ns, about the latency of messages; in a quarter of the cases up to 1600 ns.
        if self.activities[number] == ThreadActivity::Idle {
            self.activities[number] = ThreadActivity::DelayOver;
            let max_ns = if self.random.below(4) == 0 { 1600 } else { 200 };
            return self.random_delay(max_ns);
        }
        self.next_step(number, thread)
    }

    fn write_access(&self, number: usize) -> Option<Access> {
        let thread = self.assignments[number].thread?;
        let (via, release) = match self.activities[number] {
            ThreadActivity::Access(MemoryRequest::Write(_, _, release, via)) => (via, release),
            ThreadActivity::Access(MemoryRequest::Update(_, _, via)) => (via, false),
            _ => return None,
        };
        match via {
            StoreVariant::ProtocolDefault => None,
            via => write_access(&self.test.accesses[thread], via, release),
        }
    }

    fn verify(&self, contents: &dyn Contents) -> Result<(), String> {
        let values = (0..).zip(&self.lines).map(|(at, &line)| {
            let word = contents.word(line, 0);
            word.wrapping_sub(self.difference(at)) as i64
        });
        self.memory.replace(values.collect());
        Ok(())
    }

    /// Returns a table with the observed values in their order, as one row. The table is empty if the test's filter
    /// excludes the outcome.
    fn tables(&self) -> Vec<Table> {
        let end = final_outcome(&self.test.program, &self.cores, &self.memory.borrow());
        let values =
            |Outcome(values): Outcome| values.into_values().map(|value| value as u64).collect();
        vec![Table {
            name: "end",
            rows: end.map(values).into_iter().collect(),
        }]
    }
}

/// Device application that does nothing.
struct NoApplication;

impl Application for NoApplication {
    fn name(&self) -> &str {
        "litmus"
    }

    fn placement(&self) -> Placement {
        Placement::Observer
    }

    fn handle(&mut self, _event: Event, _actions: &mut Actions) {}
}
