//! Global state of an exploration, and its transitions: threads, caches, the home's units, memory and the
//! application.

mod application;
mod caches;
mod home;

use cohkit_application::contract::Contract;
use cohkit_application::interface::{
    Application, Contents, Event, Line, Placement, Scenario, Step, Update, Words,
};
use cohkit_base::exploration::TransitionSystem;
use cohkit_protocol::controller::{Access, Controller, Event as Cause};
use cohkit_protocol::execute::{Act, Configuration, Machine, Outcome, Trigger};
use cohkit_protocol::protocol::{Class, MessageId, Permission, Protocol};
use cohkit_protocol::rows::fault_words;
use cohkit_system::plan::{Plan, ProtocolFacts};
use std::collections::BTreeMap;
use std::hash::Hash;

use super::ExplorationModel;

/// Maximum number of consecutive steps of a thread without an access: a longer sequence is taken for an endless loop.
const MAX_STEPS: usize = 1000;

/// Outside the model: the home accesses memory without latency. Only homes with split memory operations are modelled.
const ZERO_LATENCY_MEMORY: &str = "homes with zero-latency memory cannot be explored";

/// Outside the model: a cache sends the bytes of a store. Threads' accesses are performed in caches only.
const SENT_STORES: &str = "writes that caches send to the home cannot be explored";

/// Outside the model: messages travel only between a cache and the home.
const PEER_MESSAGES: &str = "caches that send messages to each other cannot be explored";

/// Outside the model: registers and host memory take no part in coherence.
const UNSUPPORTED_BUS: &str = "registers and the CPU's own memory cannot be explored here";

/// Outside the model: the state does not include the caches of a second line space.
const UNSUPPORTED_HOST: &str = "accesses to the host's memory cannot be explored";

/// A global state. `A` is the type of the application and `T` that of a thread.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct State<A, T> {
    /// Lines of the home, by number.
    lines: Vec<LineState>,
    /// Units of the home; line L belongs to unit L modulo their number.
    units: Vec<Unit>,
    /// The application.
    application: A,
    /// Checks of the application's actions, with its open obligations.
    contract: Contract,
    /// Events in flight to the application, sorted by channel. Events of one channel are in order.
    pending_events: Vec<(MemoryChannel, Event)>,
    /// Pending operations of the application's memory, executed in any order.
    memory: Vec<Job>,
    /// Contents of lines that only the application's memory holds: those beyond the home's lines, and those that the
    /// application serves. A line that is absent is zero.
    application_lines: BTreeMap<Line, Words>,
    /// Tags of running timers. Each may expire at any time.
    timers: Vec<u32>,
    /// Lines that the application has locked, with the highest permission that the lock leaves to caches.
    locks: BTreeMap<Line, Permission>,
    /// Lines with an outstanding local operation; true if the line was written back meanwhile.
    outstanding_operations: BTreeMap<Line, bool>,
    /// Threads, by number.
    threads: Vec<RunningThread<T>>,
}

/// State of one line of the home.
#[derive(Clone, PartialEq, Eq, Hash)]
struct LineState {
    /// State and variables of the home.
    home: Configuration,
    /// Caches, by number.
    remotes: Vec<Remote>,
    /// Contents in memory.
    memory: Words,
    /// Contents after the last write.
    latest: Words,
    /// Messages in flight: first those of unordered channels, sorted; then those of ordered channels in send order.
    flights: Vec<InFlightMessage>,
    /// The home's read of memory.
    reading: Progress,
    /// The home's write of memory.
    writing: Progress,
}

/// Progress of a memory operation of the home.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Progress {
    /// No operation.
    Idle,
    /// The application must answer.
    Waiting,
    /// Memory is executing the operation.
    Busy,
    /// Complete: the unit may start another operation, but the home has not consumed the completion yet.
    Ready,
}

/// State of a cache for one line.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Remote {
    /// State and variables of the controller.
    configuration: Configuration,
    /// The cache's copy; `None` if it has none.
    words: Option<Words>,
}

/// A message in flight.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct InFlightMessage {
    /// Message type.
    message: MessageId,
    /// Number of the cache that is the sender or receiver.
    remote: u8,
    /// True if the home is the receiver, false if it is the sender.
    to_home: bool,
    /// Values of the fields, in the order of their declaration.
    fields: Vec<u16>,
    /// Copy of the line that the message carries, if any.
    words: Option<Words>,
}

/// State of one of the home's units.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Unit {
    /// Number of forwards of the coherence transaction that are not answered yet; always 0 if no message is an
    /// answer.
    forwards: u32,
    /// Line of these forwards; 0 without forwards.
    forwarding: Line,
    /// Deferred requests, sorted. The home may consume them in any order.
    deferred: Vec<(Line, InFlightMessage)>,
    /// Request that stalls the unit's request channel, because the unit already defers its maximum number of requests.
    stalled: Option<(Line, InFlightMessage)>,
    /// Pending local operations and unlocks (`None`) of the application, in order per line.
    locals: Vec<(Line, Option<u8>)>,
}

/// Channel of events to the application. Events of one channel are delivered in order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum MemoryChannel {
    /// Reads of a line that the application serves.
    Read(Line),
    /// Writes of a line that the application serves.
    Write(Line),
    /// All other events about a line: changes of permissions, completions of local operations.
    Notification(Line),
}

/// Pending operation of the application's memory. `tag` is the number by which the application recognises the
/// completion.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Job {
    /// Read of consecutive lines, one event for each.
    Fetch {
        /// Tag of the fetch.
        tag: u32,
        /// Line to be read next.
        next: Line,
        /// Line after the last one.
        end: Line,
    },
    /// Write of a whole line.
    Store {
        /// Tag of the store.
        tag: u32,
        /// Line to be written.
        line: Line,
        /// New contents.
        words: Words,
    },
    /// Operation on words of a line.
    Words {
        /// Tag of the operation.
        tag: u32,
        /// Line of the words.
        line: Line,
        /// Index of the first word in the line.
        word: u16,
        /// Operation on the words from `word`.
        operation: WordOperation,
    },
}

/// Operation on words of a line.
#[derive(Clone, PartialEq, Eq, Hash)]
enum WordOperation {
    /// Reads this number of words.
    Read(u16),
    /// Writes these words.
    Write(Words),
    /// Updates a word atomically, and returns its old value.
    Update(Update),
}

/// A thread and its access.
#[derive(Clone, PartialEq, Eq, Hash)]
struct RunningThread<T> {
    /// The thread.
    thread: T,
    /// The access that the thread waits for; `None` once the thread has stopped.
    pending_step: Option<Step>,
}

/// A transition. Indices refer to the state that it leaves.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    /// The thread with this number attempts its access.
    Access(usize),
    /// The cache with this number evicts a line or gives up write permission.
    ReducePermission(Line, u8, Access),
    /// A message of a line, by its index in [`LineState::flights`], reaches a cache, or as a request or response the
    /// home.
    Deliver(Line, usize),
    /// The unit with this number retries the deferred request with this index, or (`None`) the request that stalls
    /// its channel.
    Retry(usize, Option<usize>),
    /// The unit with this number consumes a local operation or an unlock, by its index in [`Unit::locals`].
    Local(usize, usize),
    /// The home's read of a line completes, with this alternative of the controller.
    Read(Line, u8),
    /// The home's write of a line completes.
    CompleteWrite(Line),
    /// The application receives a pending event, by its index.
    Event(usize),
    /// The application's memory executes a pending operation, by its index.
    Job(usize),
    /// A timer of the application expires, by its index.
    Timer(usize),
}

/// Reason why a step has no successor, as a sentence without a full stop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum StepError {
    /// The step violates this property.
    Violation(String),
    /// The step is outside the model.
    Unsupported(String),
}

impl StepError {
    /// Returns the error of a step outside the model.
    fn unsupported(reason: &str) -> StepError {
        StepError::Unsupported(reason.to_string())
    }
}

/// The constant part of the model.
pub(super) struct StaticModel<'a, S> {
    /// The explored model.
    model: &'a ExplorationModel<'a, S>,
    /// Executor of the caches' controller.
    remote: Machine<'a>,
    /// Executor of the home's controller.
    home: Machine<'a>,
    /// Static analysis of all rows.
    facts: ProtocolFacts,
    /// Static analysis of each row of the caches, by its index in the controller.
    plans: Vec<Plan>,
    /// Lines that the application serves itself.
    placement: Placement,
    /// Name of the application, which begins messages about it.
    name: String,
    /// True if some message is an answer, so that answers signal the completion of forwards.
    answers: bool,
}

impl<A, T> State<A, T> {
    /// True if the state is final: no agent has anything left to do.
    pub fn is_final(&self) -> bool {
        let is_quiescent = |line: &LineState| {
            line.flights.is_empty()
                && line.reading == Progress::Idle
                && line.writing == Progress::Idle
        };
        let is_idle = |unit: &Unit| {
            unit.deferred.is_empty() && unit.stalled.is_none() && unit.locals.is_empty()
        };
        self.threads
            .iter()
            .all(|thread| thread.pending_step.is_none())
            && self.lines.iter().all(is_quiescent)
            && self.units.iter().all(is_idle)
            && self.pending_events.is_empty()
            && self.memory.is_empty()
            && self.outstanding_operations.is_empty()
            && self.contract.obligations().next().is_none()
    }
}

/// Contents of memory in a state: the copy of a cache with permission, or memory. Lines are initialised to zeros.
struct CoherentContents<'a, 'b, S: Scenario> {
    /// Constant part of the model.
    static_model: &'a StaticModel<'b, S>,
    /// The state.
    state: &'a State<S::Application, S::Thread>,
}

impl<S: Scenario> Contents for CoherentContents<'_, '_, S> {
    fn word(&self, line: Line, word: u16) -> u64 {
        let Some(line) = self.state.lines.get(line as usize) else {
            return 0;
        };
        let mut remotes = line.remotes.iter();
        let valid_words = remotes.find_map(|remote| {
            let permission = self.static_model.permission_of(&remote.configuration);
            remote
                .words
                .as_ref()
                .filter(|_| permission > Permission::None)
        });
        let words = valid_words.unwrap_or(&line.memory);
        words.get(usize::from(word)).copied().unwrap_or(0)
    }

    fn initial(&self, _line: Line, _word: u16) -> u64 {
        0
    }
}

impl<'a, S: Scenario> StaticModel<'a, S> {
    /// Prepares the constant part of a model.
    pub fn new(model: &'a ExplorationModel<'a, S>) -> Self {
        let application = model.scenario.application();
        let facts = ProtocolFacts::new(model.protocol, model.home);
        let mut ids = model.protocol.message_ids();
        StaticModel {
            remote: Machine::new(&model.protocol.remote, model.remotes),
            home: Machine::new(model.home, model.remotes),
            placement: application.placement(),
            name: application.name().to_string(),
            answers: ids.any(|id| model.protocol.class(id) == Some(Class::Answer)),
            plans: Plan::of(&model.protocol.remote, Some(&facts.accesses)),
            facts,
            model,
        }
    }

    /// Returns the permission of a cache in this configuration.
    fn permission_of(&self, remote: &Configuration) -> Permission {
        self.model.protocol.remote.states[usize::from(remote.state)].permission
    }

    /// Returns the highest permission that some cache has, according to the home's state.
    fn known_permission(&self, home: &Configuration) -> Permission {
        let ExplorationModel {
            permissions,
            home: controller,
            remotes,
            ..
        } = self.model;
        permissions.highest(controller, *remotes, home)
    }

    /// Returns the order group of a message's channel; `None` if its channel is unordered.
    fn channel_order(&self, message: MessageId) -> Option<usize> {
        let protocol = self.model.protocol;
        protocol.order_of(protocol.message(message).channel)
    }

    /// Returns the initial contents of a line.
    fn zeros(&self) -> Words {
        vec![0; self.model.words.into()].into()
    }

    /// Returns the number of the unit that a line belongs to.
    fn unit(&self, line: Line) -> usize {
        (line % self.model.units) as usize
    }

    /// Returns the name of a cache, with its number if there are several.
    fn remote_name(&self, remote: u8) -> String {
        let name = &self.model.protocol.remote.name;
        match self.model.remotes {
            1 => name.clone(),
            _ => format!("{name} {remote}"),
        }
    }

    /// Returns the name of a message type.
    fn message_name(&self, message: MessageId) -> &str {
        &self.model.protocol.message(message).name
    }

    /// Checks the scenario's own properties in a final state. The error is the violation.
    pub fn verify(&self, state: &State<S::Application, S::Thread>) -> Result<(), StepError>
    where
        S::Thread: Clone,
    {
        let threads: Vec<S::Thread> = state
            .threads
            .iter()
            .map(|running| running.thread.clone())
            .collect();
        let data = CoherentContents {
            static_model: self,
            state,
        };
        let scenario = self.model.scenario;
        let verdict = scenario.verify(&state.application, &threads, &data);
        verdict.map_err(|reason| StepError::Violation(format!("{}: {reason}", self.name)))
    }

    /// Describes what may prevent a state from reaching the end: threads that wait, open obligations, and the home's
    /// states.
    pub fn describe_obstacles(&self, state: &State<S::Application, S::Thread>) -> String {
        let mut obstacles = vec!["the end is unreachable from here".to_string()];
        for (number, thread) in state.threads.iter().enumerate() {
            if let Some(step) = thread.pending_step {
                obstacles.push(format!("thread {number} waits for {step:?}"));
            }
        }
        let open = state.contract.obligations();
        obstacles.extend(
            open.map(|open| format!("{} {} of line {}", self.name, open.description, open.line)),
        );
        for (number, line) in state.lines.iter().enumerate() {
            let home = &self.model.home.states[usize::from(line.home.state)].name;
            obstacles.push(format!("line {number}: home in {home}"));
        }
        obstacles.join("; ")
    }
}

impl<S: Scenario> TransitionSystem<State<S::Application, S::Thread>> for StaticModel<'_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    type Step = Choice;
    type Error = StepError;

    fn successors(
        &mut self,
        state: &State<S::Application, S::Thread>,
        visit: &mut dyn FnMut(Choice, Result<State<S::Application, S::Thread>, StepError>),
    ) {
        for choice in self.choices(state) {
            let mut next_state = state.clone();
            let mut transition = Transition {
                static_model: self,
                state: &mut next_state,
            };
            match transition.take(choice) {
                // A blocked choice is not a step.
                Ok(false) => {}
                Ok(true) => visit(choice, Ok(next_state)),
                Err(violation) => visit(choice, Err(violation)),
            }
        }
    }
    fn spontaneous(choice: &Choice) -> bool {
        matches!(choice, Choice::ReducePermission(..))
    }
    fn quiescent(&self, state: &State<S::Application, S::Thread>) -> bool {
        state.is_final()
    }
}

impl<S: Scenario> StaticModel<'_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    /// Returns the initial state: the application has handled its start, and each thread is at its first access.
    ///
    /// # Errors
    /// The application breaks its contract at its start, or a thread's first steps are outside the model.
    pub fn initial(&self) -> Result<State<S::Application, S::Thread>, StepError> {
        let words = self.zeros();
        let remote = Remote {
            configuration: self.remote.initial(),
            words: None,
        };
        let line = LineState {
            home: self.home.initial(),
            remotes: vec![remote; usize::from(self.model.remotes)],
            memory: words.clone(),
            latest: words,
            flights: Vec::new(),
            reading: Progress::Idle,
            writing: Progress::Idle,
        };
        let threads = self.model.scenario.threads().into_iter();
        let threads = threads.map(|thread| RunningThread {
            thread,
            pending_step: None,
        });
        let mut state = State {
            lines: vec![line; self.model.lines as usize],
            units: vec![Unit::default(); self.model.units as usize],
            application: self.model.scenario.application(),
            contract: Contract::new(self.placement.clone(), self.model.lines),
            pending_events: Vec::new(),
            memory: Vec::new(),
            application_lines: BTreeMap::new(),
            timers: Vec::new(),
            locks: BTreeMap::new(),
            outstanding_operations: BTreeMap::new(),
            threads: threads.collect(),
        };
        let mut transition = Transition {
            static_model: self,
            state: &mut state,
        };
        transition.deliver_event(Event::Start {
            words: self.model.words,
        })?;
        for thread in 0..transition.state.threads.len() {
            transition.advance(thread, 0)?;
        }
        Ok(state)
    }

    /// Returns the candidate transitions of a state. Some may be blocked: [`Transition::take`] decides. Of equal
    /// messages in flight only the first is a candidate.
    fn choices(&self, state: &State<S::Application, S::Thread>) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (number, thread) in state.threads.iter().enumerate() {
            if thread.pending_step.is_some() {
                choices.push(Choice::Access(number));
            }
        }
        for (number, line) in state.lines.iter().enumerate() {
            let number = number as Line;
            for (index, flight) in line.flights.iter().enumerate() {
                let order = self.channel_order(flight.message);
                let is_ahead = |other: &InFlightMessage| {
                    (other.remote, other.to_home) == (flight.remote, flight.to_home)
                        && order.is_some()
                        && self.channel_order(other.message) == order
                };
                let has_equal_ahead = line.flights[..index].iter().any(|other| other == flight);
                if !line.flights[..index].iter().any(is_ahead) && !has_equal_ahead {
                    choices.push(Choice::Deliver(number, index));
                }
            }
            if matches!(line.reading, Progress::Busy | Progress::Ready) {
                choices.extend((0..self.facts.choices).map(|choice| Choice::Read(number, choice)));
            }
            if matches!(line.writing, Progress::Busy | Progress::Ready) {
                choices.push(Choice::CompleteWrite(number));
            }
            for remote in 0..self.model.remotes as u8 {
                choices.push(Choice::ReducePermission(number, remote, Access::Evict));
                choices.push(Choice::ReducePermission(number, remote, Access::Demote));
            }
        }
        for (number, unit) in state.units.iter().enumerate() {
            choices
                .extend((0..unit.deferred.len()).map(|index| Choice::Retry(number, Some(index))));
            if unit.stalled.is_some() {
                choices.push(Choice::Retry(number, None));
            }
            for (index, (line, _)) in unit.locals.iter().enumerate() {
                if !unit.locals[..index].iter().any(|(other, _)| other == line) {
                    choices.push(Choice::Local(number, index));
                }
            }
        }
        for (index, (channel, _)) in state.pending_events.iter().enumerate() {
            if !state.pending_events[..index]
                .iter()
                .any(|(other, _)| other == channel)
            {
                choices.push(Choice::Event(index));
            }
        }
        choices.extend((0..state.memory.len()).map(Choice::Job));
        choices.extend((0..state.timers.len()).map(Choice::Timer));
        choices
    }

    /// Describes a step in words. `state` is the state that the step leaves.
    pub fn label(&self, state: &State<S::Application, S::Thread>, choice: Choice) -> String {
        let message_label = |line: Line, flight: &InFlightMessage, suffix: &str| {
            let remote = self.remote_name(flight.remote);
            let message = self.message_name(flight.message);
            match flight.to_home {
                true => format!("line {line}: the home takes {message} from {remote}{suffix}"),
                false => format!("line {line}: {remote} takes {message}"),
            }
        };
        match choice {
            Choice::Access(thread) => match state.threads[thread].pending_step {
                Some(step) => format!("thread {thread}: {step:?}"),
                None => String::new(),
            },
            Choice::ReducePermission(line, remote, access) => {
                format!(
                    "line {line}: {} does {}",
                    self.remote_name(remote),
                    access.name()
                )
            }
            Choice::Deliver(line, index) => {
                message_label(line, &state.lines[line as usize].flights[index], "")
            }
            Choice::Retry(unit, index) => {
                let unit = &state.units[unit];
                let request = index.map(|index| &unit.deferred[index]);
                match request.or(unit.stalled.as_ref()) {
                    Some((line, request)) => message_label(*line, request, ", which waited"),
                    None => String::new(),
                }
            }
            Choice::Local(unit, index) => match state.units[unit].locals[index] {
                (line, None) => format!("line {line}: the home takes the unlock"),
                (line, Some(local)) => {
                    let name = &self.model.home.locals[usize::from(local)].name;
                    format!("line {line}: the home takes {name}")
                }
            },
            Choice::Read(line, _) => format!("line {line}: the home's read ends"),
            Choice::CompleteWrite(line) => format!("line {line}: the home's write ends"),
            Choice::Event(index) => {
                format!("{} hears {:?}", self.name, state.pending_events[index].1)
            }
            Choice::Job(index) => match &state.memory[index] {
                Job::Fetch { next, .. } => format!("{} fetches line {next}", self.name),
                Job::Store { line, .. } => format!("{} stores line {line}", self.name),
                Job::Words {
                    line, operation, ..
                } => {
                    let verb = match operation {
                        WordOperation::Read(_) => "reads",
                        WordOperation::Write(_) => "writes",
                        WordOperation::Update(_) => "changes",
                    };
                    format!("{} {verb} words of line {line}", self.name)
                }
            },
            Choice::Timer(index) => format!("timer {} fires", state.timers[index]),
        }
    }
}

/// A state during a transition. If the transition is blocked or violates a property, the state is unspecified.
struct Transition<'m, 'a, S: Scenario> {
    /// Constant part of the model.
    static_model: &'m StaticModel<'a, S>,
    /// State that the transition changes.
    state: &'m mut State<S::Application, S::Thread>,
}

/// Reaction of an agent to an event that it consumes.
struct Reaction {
    /// Index of the row in the agent's controller.
    rule: usize,
    /// Actions of the row, in order.
    acts: Vec<Act>,
    /// State and variables after the row.
    next: Configuration,
}

impl<S: Scenario> Transition<'_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    /// Executes a step. Returns false if its first event is blocked: then the state is unspecified.
    fn take(&mut self, choice: Choice) -> Result<bool, StepError> {
        match choice {
            Choice::Access(thread) => self.attempt_access(thread),
            Choice::ReducePermission(line, remote, access) => {
                let Some(reaction) = self.remote_reaction(line, remote, Cause::Access(access))?
                else {
                    return Ok(false);
                };
                if !self.within_bounds(line, remote, &reaction) {
                    return Ok(false);
                }
                self.apply_reaction(line, remote, reaction, None)?;
                Ok(true)
            }
            Choice::Deliver(line, index) => self.deliver_message(line, index),
            Choice::Retry(unit, index) => {
                let queues = &mut self.state.units[unit];
                let request = match index {
                    Some(index) => queues.deferred.remove(index),
                    None => match queues.stalled.take() {
                        Some(request) => request,
                        None => return Ok(false),
                    },
                };
                if !self.offer_message(request.0, &request.1)? {
                    return Ok(false);
                }
                let unit = &mut self.state.units[unit];
                // The unit may defer one more request: the one that stalls its channel.
                if unit.deferred.len() < self.static_model.model.max_deferred {
                    unit.deferred.extend(unit.stalled.take());
                    unit.deferred.sort();
                }
                Ok(true)
            }
            Choice::Local(unit, index) => self.consume_operation(unit, index),
            Choice::Read(line, choice) => self.offer_completion(line, Cause::MemoryData(choice)),
            Choice::CompleteWrite(line) => self.offer_completion(line, Cause::MemoryDone),
            Choice::Event(index) => {
                let (_, event) = self.state.pending_events.remove(index);
                self.deliver_event(event)?;
                Ok(true)
            }
            Choice::Job(index) => {
                self.execute_job(index)?;
                Ok(true)
            }
            Choice::Timer(index) => {
                let tag = self.state.timers.remove(index);
                self.deliver_event(Event::Timer { tag })?;
                Ok(true)
            }
        }
    }
}

/// Returns line and kind of a step's access: a load or a store. `None` for a step without a cached access.
fn access_of(step: Step) -> Option<(Line, Access)> {
    match step {
        Step::Load { line, .. } | Step::Acquire { line, .. } => Some((line, Access::Load)),
        Step::LoadExclusive { line, .. }
        | Step::Store { line, .. }
        | Step::StoreWords { line, .. }
        | Step::Release { line, .. }
        | Step::Update { line, .. } => Some((line, Access::Store)),
        _ => None,
    }
}

/// Offers an event to a controller. Returns the outcome, and the reaction if the controller consumes the event. The
/// configuration is unchanged.
///
/// # Errors
/// The row cannot be executed.
fn reaction(
    protocol: &Protocol,
    machine: &Machine,
    controller: &Controller,
    configuration: &Configuration,
    trigger: Trigger,
) -> Result<(Outcome, Option<Reaction>), StepError> {
    let mut next = configuration.clone();
    let mut tables = controller;
    match machine.step(&mut next, trigger, &mut tables) {
        Ok(Outcome::Taken { rule, acts }) => {
            let reaction = Reaction {
                rule,
                acts: acts.clone(),
                next,
            };
            Ok((Outcome::Taken { rule, acts }, Some(reaction)))
        }
        Ok(outcome) => Ok((outcome, None)),
        Err(row_error) => Err(StepError::Violation(fault_words(
            &controller.name,
            &protocol.messages,
            controller,
            &row_error.fault,
        ))),
    }
}
