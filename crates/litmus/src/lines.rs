//! Steps of single lines, computed once and shared by all states that contain the line.
//!
//! Lines are independent, except for the order of messages in channels that are ordered across lines. Each state
//! of a line therefore has a number, and its successors are computed once. The exploration handles rows of
//! these numbers.
//!
//! Registers and several homes join lines: one system state then contains all lines, and a row has one number for it.
//! With two levels of caches, a number stands for a line's system states of both levels.

use cohkit_protocol::controller::{Access, Controller};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::threads::Accesses;
use cohkit_system::state::{CompletedAccess, Levels, Operation, Payload, StepError, System};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::cores::{CoreKind, FenceKind, FenceSupport, MemoryRequest};
use crate::kinds::{write_access, Kinds};
use crate::machine::{Machine, MachineState, Queue};
use crate::program::{Program, StoreVariant, Update};
use crate::state_table::StateTable;
use crate::store_variants;
use crate::values::{Values, WrittenValue};

/// Number of the system state of a line, or of the system state of all lines. Valid for one [`Lines`] until its
/// [`Lines::trim_cache`].
pub type Line = u32;

/// Completion that a thread is notified of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// Access of a thread (first number) to a line of the system state (second number), with the old value. `None` if
    /// the home has performed a write and returned no value.
    Access(u8, u8, Option<i64>),
    /// Fence or acquire of the thread with this number.
    Fence(u8, FenceKind),
}

/// Step of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Move {
    /// State of the line after the step.
    pub to: Line,
    /// Accesses, fences and acquires that complete in the step.
    pub completions: Vec<Completion>,
    /// True for a spontaneous step, such as an eviction or a downgrade.
    pub is_spontaneous: bool,
    /// Order across lines whose first message the step consumes. The step is possible only if that message is of this
    /// line.
    pub consumed_order: Option<Queue>,
    /// Orders across lines of the messages that the step sends, one entry per message.
    pub sent_orders: Vec<Queue>,
}

/// Maximum number of system states kept from one program to the next, of about 100 bytes each.
const MAX_CACHED_STATES: usize = 2_000_000;

/// Maximum number of lines whose steps are cached, and of accesses whose first step is, of some hundred bytes each.
/// States found close together have lines in common, so entries found long ago are rarely used again.
const MAX_CACHED_STEPS: usize = 200_000;

/// Key of a first step: system state, line within it, thread, written value, and access.
type FirstStepKey = (Line, u8, u8, Update, Access);

/// Cached system states and steps of a machine with one cache per thread.
pub struct Lines<'p> {
    /// The caches that run programs.
    machine: Machine<'p>,
    /// Kind of each thread's cache; the first kind with two levels of caches.
    kinds: Kinds,
    /// Protocol of each thread's cache, by thread.
    protocols: Vec<&'p Protocol>,
    /// Core of each thread, in place of that of a run's options.
    cores: Option<Vec<CoreKind>>,
    /// Accesses of each thread's cache, by thread.
    accesses: Vec<Accesses>,
    /// True if one system state contains all lines.
    joined: bool,
    /// System states of each number.
    state_table: StateTable,
    /// State that was last reconstructed from its number.
    last: Option<(Line, Rc<MachineState<Values>>)>,
    /// Steps of each line; the key is true with spontaneous evictions and downgrades, false without.
    moves: FxHashMap<(Line, bool), Rc<[Move]>>,
    /// First step of each access of a thread, if the cache accepts it.
    first_steps: FxHashMap<FirstStepKey, Option<Rc<Move>>>,
}

impl<'p> Lines<'p> {
    /// Creates an empty cache of steps, for programs whose threads run on caches of these kinds, with at most
    /// `locations` locations. `channel_capacity` applies per line, to equal messages and to messages of one order.
    pub fn new(
        protocol: &'p Protocol,
        home: &'p Controller,
        kinds: impl Into<Kinds>,
        locations: u8,
        channel_capacity: u16,
    ) -> Lines<'p> {
        let kinds = kinds.into();
        let lines = match protocol.joins_lines() {
            Some(_) => (locations.max(2) - 1) * protocol.homes as u8 + 1,
            None => 1,
        };
        let system = System::new(
            protocol,
            home,
            kinds.remotes(protocol),
            lines,
            channel_capacity,
        );
        Lines::with_machine(Machine::OneLevel(Box::new(system), kinds.numbers()), kinds)
    }

    /// As [`Lines::new`], for two levels. A placement is a thread's cluster and its lower-level cache in that cluster.
    /// If rows of a protocol change every line, the systems of `levels` have all lines, otherwise one.
    ///
    /// # Errors
    /// A protocol joins lines otherwise, or has several kinds of remotes.
    pub fn two_levels(levels: Levels<'p>, placements: Vec<(u8, u8)>) -> Result<Lines<'p>, String> {
        let kinds = levels.kinds.iter().map(|kind| kind.system.protocol);
        for protocol in std::iter::once(levels.outer.protocol).chain(kinds) {
            if let Some(feature) = protocol.line_coupling() {
                return Err(format!(
                    "{} has {feature}, which is not supported in a system of two levels",
                    protocol.name
                ));
            }
            if protocol.several_tables() {
                let message = "has several kinds of remotes, which is not supported in a system of two levels";
                return Err(format!("{} {message}", protocol.name));
            }
        }
        let kinds = Kinds::from(placements.len() as u8);
        Ok(Lines::with_machine(
            Machine::TwoLevels(Box::new(levels), placements),
            kinds,
        ))
    }

    /// Creates an empty cache of steps for a machine.
    fn with_machine(machine: Machine<'p>, kinds: Kinds) -> Lines<'p> {
        let protocols = machine.thread_protocols();
        let joined = machine
            .systems()
            .any(|system| system.protocol.joins_lines().is_some());
        Lines {
            accesses: kinds.accesses_of(&protocols),
            joined,
            protocols,
            cores: None,
            kinds,
            state_table: StateTable::default(),
            last: None,
            moves: FxHashMap::default(),
            first_steps: FxHashMap::default(),
            machine,
        }
    }

    /// Returns the same lines with a core for each thread, which replaces that of a run's options.
    pub fn with_cores(self, cores: Vec<CoreKind>) -> Lines<'p> {
        Lines {
            cores: Some(cores),
            ..self
        }
    }

    /// Returns the core of a thread; `default` is that of the options.
    pub fn core(&self, thread: usize, default: CoreKind) -> CoreKind {
        self.cores.as_ref().map_or(default, |cores| cores[thread])
    }

    /// Returns the protocol of the first thread's own cache.
    pub fn protocol(&self) -> &'p Protocol {
        self.machine.protocol()
    }

    /// Returns the number of threads, each with its own cache.
    pub fn threads(&self) -> u8 {
        self.kinds.threads()
    }

    /// Describes the first access that a program needs and for which the thread's cache has no row, if any.
    pub fn unsupported_access(&self, program: &Program) -> Option<String> {
        self.kinds.unsupported_access_of(&self.protocols, program)
    }

    /// Returns the program as the cores of these caches run it.
    pub fn with_fences(&self, program: &Program) -> Program {
        store_variants::with_fences_of(&self.protocols, &self.kinds, program)
    }

    /// Returns all placements of locations at the homes, up to permutations of homes. A placement gives the line of
    /// each location.
    pub fn placements(&self, locations: usize) -> Vec<Vec<u8>> {
        let homes = self.machine.protocol().homes as u8;
        // Home of each location. A new location is at a home in use, or at the first unused one.
        let mut assignments: Vec<Vec<u8>> = vec![Vec::new()];
        for _ in 0..locations {
            assignments = (assignments.into_iter())
                .flat_map(|prefix| {
                    let first_unused = prefix.iter().max().map_or(0, |last| last + 1);
                    (0..=first_unused.min(homes - 1))
                        .map(move |home| [&prefix[..], &[home]].concat())
                })
                .collect();
        }
        // Line L belongs to home L modulo the number of homes.
        let lines = |assignment: Vec<u8>| {
            let line = |(location, home): (usize, &u8)| {
                let earlier = assignment[..location]
                    .iter()
                    .filter(|other| *other == home)
                    .count();
                earlier as u8 * homes + home
            };
            assignment.iter().enumerate().map(line).collect()
        };
        assignments.into_iter().map(lines).collect()
    }

    /// Groups programs that can share cached steps: by number of threads and, if one system state contains all lines,
    /// by number of locations.
    pub fn groups(protocol: &Protocol, programs: Vec<Program>) -> Vec<Vec<Program>> {
        let joined = protocol.joins_lines().is_some();
        let mut groups: BTreeMap<(usize, usize), Vec<Program>> = BTreeMap::new();
        for program in programs {
            let locations = if joined { program.locations.len() } else { 0 };
            let group = groups.entry((program.threads.len(), locations));
            group.or_default().push(program);
        }
        groups.into_values().collect()
    }

    /// Returns true if one system state contains all lines.
    pub fn joined(&self) -> bool {
        self.joined
    }

    /// Reconstructs the system states of a line.
    pub(crate) fn state(&self, line: Line) -> MachineState<Values> {
        let system_states = self.state_table.system_states(line, self.machine.systems());
        self.machine.state(system_states.into_iter())
    }

    /// As [`Lines::state`], with the last result cached.
    fn cached_state(&mut self, line: Line) -> Rc<MachineState<Values>> {
        match &self.last {
            Some((last, state)) if *last == line => Rc::clone(state),
            _ => {
                let state = Rc::new(self.state(line));
                self.last = Some((line, Rc::clone(&state)));
                state
            }
        }
    }

    /// Returns the system of a machine with one level.
    pub(crate) fn system(&self) -> Option<&System<'p>> {
        match &self.machine {
            Machine::OneLevel(system, _) => Some(system),
            Machine::TwoLevels(..) => None,
        }
    }

    /// Returns the system of a machine with one level, and all system states that programs have reached.
    pub fn reached_states(
        &self,
    ) -> Option<(&System<'p>, impl Iterator<Item = MachineState<Values>> + '_)> {
        let all = 0..self.state_table.count() as Line;
        Some((self.system()?, all.map(|number| self.state(number))))
    }

    /// Clears the cache if it has more than 2,000,000 states, where it costs more memory than it saves
    /// time. This invalidates all [`Line`] numbers.
    pub fn trim_cache(&mut self) {
        if self.state_table.count() > MAX_CACHED_STATES {
            self.state_table = StateTable::default();
            self.last = None;
            self.moves.clear();
            self.first_steps.clear();
        }
    }

    /// Returns the thread of each remote of a machine with one level.
    pub(crate) fn thread_of_each(&self) -> Vec<usize> {
        let numbers = self.kinds.numbers();
        let thread = |remote| numbers.iter().position(|number| *number == remote);
        (0..self.threads()).filter_map(thread).collect()
    }

    /// Returns the fences and acquires that a thread's cache executes.
    pub fn fence_support(&self, thread: usize) -> FenceSupport {
        FenceSupport::of(&self.accesses[thread])
    }

    /// Returns the initial lines. `values` are the lines that hold a location, with the initial values in memory.
    ///
    /// # Errors
    /// The first property that the initial state violates.
    pub fn initial_lines(&mut self, values: &[(u8, i64)]) -> Result<Vec<Line>, StepError> {
        let system_states: Vec<Vec<(u8, i64)>> = match self.joined() {
            true => vec![values.to_vec()],
            false => values.iter().map(|&(_, value)| vec![(0, value)]).collect(),
        };
        let mut initial_lines = Vec::new();
        for values in system_states {
            let mut state: MachineState<Values> = self.machine.initial_state();
            for (line, value) in values {
                let line = usize::from(line);
                for system_state in state.system_states_mut() {
                    system_state.data.last[line].1 = value;
                }
                let upper_state = state.system_states_mut().next();
                upper_state
                    .expect("a state has at least one system state")
                    .lines[line]
                    .memory
                    .1 = value;
            }
            initial_lines.push(self.number(state)?);
        }
        Ok(initial_lines)
    }

    /// Returns the value of the last write performed on a line of a system state.
    pub fn value(&self, line: Line, within: u8) -> i64 {
        self.state_table.data(line).last[usize::from(within)].1
    }

    /// Returns true if no write is in flight, deferred, or in progress in memory.
    pub fn settled(&self, line: Line) -> bool {
        let system_states = self.state_table.system_states(line, self.machine.systems());
        system_states.iter().all(|system_state| {
            let mut flights = system_state.network.flights();
            let mut lines = system_state.lines.iter();
            !flights.any(|flight| matches!(flight.carried, Payload::Write(..)))
                && !lines.any(|line_state| {
                    line_state.deferred_store.is_some()
                        || matches!(line_state.operation, Operation::Store { .. })
                })
        })
    }

    /// Returns the number of a state. Checks the properties of all states when the state is new.
    fn number(&mut self, state: MachineState<Values>) -> Result<Line, StepError> {
        let (number, new) = self.state_table.number(state.system_states());
        if new {
            self.machine.claims(&state)?;
        }
        Ok(number)
    }

    /// Returns the steps of a line without those of its threads. `giving_up` includes spontaneous evictions and
    /// downgrades.
    ///
    /// # Errors
    /// The first violation, or an exceeded limit.
    pub fn moves(&mut self, line: Line, giving_up: bool) -> Result<Rc<[Move]>, StepError> {
        if let Some(moves) = self.moves.get(&(line, giving_up)) {
            return Ok(Rc::clone(moves));
        }
        let state = self.cached_state(line);
        let mut moves = Vec::new();
        for step in self.machine.steps(&state, giving_up) {
            let mut next = MachineState::clone(&state);
            let mut completions = Vec::new();
            if self.machine.take(&mut next, step, &mut completions)? {
                // Orders within a line do not affect other lines, and a system state of all lines keeps its orders
                // itself.
                let consumed_order = match self.joined() {
                    true => None,
                    false => self.machine.consumed_order(step),
                };
                let is_spontaneous = self.machine.is_spontaneous(&state, step);
                moves.push(self.make_move(
                    &state,
                    next,
                    completions,
                    consumed_order,
                    is_spontaneous,
                )?);
            }
        }
        let moves: Rc<[Move]> = moves.into();
        if self.moves.len() >= MAX_CACHED_STEPS {
            self.moves.clear();
        }
        self.moves.insert((line, giving_up), Rc::clone(&moves));
        Ok(moves)
    }

    /// Begins an access of a thread to a line of a system state, or performs it if it hits. Returns `None` if the cache
    /// cannot accept it now.
    ///
    /// # Errors
    /// The first violation, or an exceeded limit.
    pub fn begin(
        &mut self,
        line: Line,
        within: u8,
        thread: u8,
        request: MemoryRequest,
    ) -> Result<Option<Rc<Move>>, StepError> {
        let accesses = &self.accesses[usize::from(thread)];
        let (access, update) = match request {
            MemoryRequest::Read(_, true) => (accesses.acquire, Update::FetchAdd(0)),
            MemoryRequest::Read(_, false) => (accesses.read, Update::FetchAdd(0)),
            MemoryRequest::Write(_, value, release, via) => (
                write_access(accesses, via, release),
                Update::Exchange(value),
            ),
            MemoryRequest::Update(_, update, StoreVariant::ProtocolDefault) => {
                (accesses.atomic, update)
            }
            MemoryRequest::Update(_, atomic, via) => (write_access(accesses, via, false), atomic),
        };
        let access = access.expect("programs without a row for an access are rejected");
        self.begin_cached(line, within, thread, (access, update))
    }

    /// Begins a fence or an acquire of a thread. Returns `None` if the cache cannot accept it now.
    ///
    /// # Errors
    /// The first violation, or an exceeded limit.
    pub fn begin_fence(
        &mut self,
        line: Line,
        thread: u8,
        fence: FenceKind,
    ) -> Result<Option<Rc<Move>>, StepError> {
        let accesses = &self.accesses[usize::from(thread)];
        let access = match fence {
            FenceKind::Fence => accesses.fence,
            FenceKind::Acquire => accesses.acquire_fence,
        };
        let access = access.expect("threads request only fences that the cache executes");
        let begun = self.begin_cached(line, 0, thread, (access, Update::FetchAdd(0)))?;
        // A completion in this step is that of the fence or acquire, not of an access to the line.
        Ok(begun.map(|begun| {
            let completions = begun
                .completions
                .iter()
                .map(|completion| Completion::Fence(thread_of(*completion), fence));
            Rc::new(Move {
                completions: completions.collect(),
                ..Move::clone(&begun)
            })
        }))
    }

    /// Returns the cached first step of an access, or computes it. `update` is the change of the value; reads leave it
    /// as it is.
    fn begin_cached(
        &mut self,
        line: Line,
        within: u8,
        thread: u8,
        (access, update): (Access, Update),
    ) -> Result<Option<Rc<Move>>, StepError> {
        let key = (line, within, thread, update, access);
        if let Some(cached) = self.first_steps.get(&key) {
            return Ok(cached.clone());
        }
        let state = self.cached_state(line);
        let mut next = MachineState::clone(&state);
        let mut completions = Vec::new();
        let (position, operation) = ((within, thread), (access, WrittenValue(Some(update))));
        let begun = match self
            .machine
            .begin(&mut next, position, operation, &mut completions)?
        {
            true => Some(Rc::new(self.make_move(
                &state,
                next,
                completions,
                None,
                false,
            )?)),
            false => None,
        };
        if self.first_steps.len() >= MAX_CACHED_STEPS {
            self.first_steps.clear();
        }
        self.first_steps.insert(key, begun.clone());
        Ok(begun)
    }

    /// Returns the step that leads to `next`. `consumed_order` is the order across lines from which the step consumes a
    /// message.
    fn make_move(
        &mut self,
        state: &MachineState<Values>,
        next: MachineState<Values>,
        completions: Vec<CompletedAccess<Values>>,
        consumed_order: Option<Queue>,
        is_spontaneous: bool,
    ) -> Result<Move, StepError> {
        let completions = completions.into_iter();
        let completions = completions.map(|access| {
            Completion::Access(
                access.remote,
                access.line,
                access.old_copy.map(|copy| copy.1),
            )
        });
        let mut sent_orders = Vec::new();
        if !self.joined() {
            let queued_before: BTreeMap<Queue, usize> =
                self.machine.queued(state).into_iter().collect();
            for (queue, queued) in self.machine.queued(&next) {
                let queued_before = queued_before.get(&queue).copied().unwrap_or(0);
                let remaining = queued_before - usize::from(consumed_order == Some(queue));
                sent_orders.extend(std::iter::repeat_n(queue, queued - remaining));
            }
        }
        Ok(Move {
            to: self.number(next)?,
            completions: completions.collect(),
            is_spontaneous,
            consumed_order,
            sent_orders,
        })
    }
}

/// Returns the thread that is notified of a completion.
fn thread_of(completion: Completion) -> u8 {
    match completion {
        Completion::Access(thread, ..) | Completion::Fence(thread, _) => thread,
    }
}
