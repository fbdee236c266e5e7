//! Controllers laid out for fast execution.
//!
//! A [`Program`] is a table from (configuration, event) to a transition. [`cohkit_protocol::execute::Machine`] computes
//! an entry when it is first needed, and the entry is kept. The simulator therefore executes the controller itself, the
//! object that the checker explores. Configurations (a state and values of variables) are numbered in the order in
//! which a run reaches them; the initial one is 0.
//!
//! With more than [`MOST_KEPT`] remotes, variables and messages that name a remote hardly ever recur. Then only
//! transitions of rules that read neither the sender nor the agent's own number are kept. All others are executed on
//! each request, and their acts are valid until [`Program::forget`]. A configuration with a value for each remote, such
//! as a sharer set, gets one number per line. Numbers that no line uses are reused after a [`Program::sweep`].

use cohkit_base::memory::prefetch;
use cohkit_protocol::controller::{
    Access, Controller, Effect, Event, Rule, State, Statement, Variable,
};
use cohkit_protocol::execute::{
    self, Changes, Configuration, Fault, Machine, Outcome, Receiver, Trigger,
};
use cohkit_protocol::pending_access::{Accesses, PendingAccess};
use cohkit_protocol::protocol::{Class, Message, MessageId, Protocol, Right, Type};
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::rows::fault_words;
use cohkit_protocol::terms::{IndexDomain, StateId};
use cohkit_protocol::value_text::AgentNames;
use cohkit_system::plan::{CompletionEffect, Plan};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;

use crate::message::{Agent, FIELDS, HOME};

/// Number of a configuration of an agent for one line; 0 is the initial one.
pub type ConfigurationId = u32;

/// Compact number of an event, from [`Program::code`].
pub type EventCode = u16;

/// An event with its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Input {
    /// The event, from [`Program::code`].
    pub code: EventCode,
    /// Sender of a message: a remote's number, or [`HOME`].
    pub sender: Agent,
    /// The executing agent: a remote's number, or [`HOME`].
    pub own: Agent,
    /// Fields of the message.
    pub fields: [u16; FIELDS],
}

impl Input {
    /// Returns the input without its sender and its receiver.
    fn without_endpoints(self) -> Input {
        Input {
            sender: HOME,
            own: HOME,
            ..self
        }
    }
}

/// An act with its fields inline, so that it needs no allocation of its own.
pub type Act = execute::Act<[u16; FIELDS]>;

/// Maximum number of remotes for which a program keeps the transitions that depend on them.
const MOST_KEPT: u16 = 16;

/// Bit of an act index that marks an act of a kept transition, in `Program::lasting`.
const LASTING_BIT: u32 = 1 << 31;

/// Minimum number of new configurations before a sweep for unused ones.
const MIN_NEW_BEFORE_SWEEP: usize = 1 << 16;

/// Returns the number of a receiver in messages.
#[inline]
pub fn number_of(receiver: Receiver) -> Agent {
    match receiver {
        Receiver::Home | Receiver::HomeAt(_) => HOME,
        Receiver::Remote(remote) => Agent(remote),
    }
}

/// Reaction of an agent to an input.
#[derive(Clone, Copy, Debug)]
pub struct Transition {
    /// Configuration after the transition.
    pub next: ConfigurationId,
    first: u32,
    count: u16,
    /// Result of the input.
    pub answer: Answer,
    /// Properties of the configuration before the transition.
    pub before: ConfigProperties,
    /// Properties of the configuration after the transition.
    pub after: ConfigProperties,
    /// True if the rule starts a memory read.
    pub reads: bool,
    /// True if the rule starts a memory write.
    pub writes: bool,
    /// True if the rule sends a forward.
    pub forwards: bool,
    /// True if the rule performs a write in the cache's own copy.
    pub performs: bool,
    /// Effect of the rule's `done`.
    pub done: CompletionEffect,
    /// True if `done` performs a write that leaves part of the line unchanged.
    pub is_partial_write: bool,
    /// True if the access is to be retried.
    pub retries: bool,
    /// True if the rule abandons a store whose bytes have been sent.
    pub gives_up: bool,
    /// Index of the fault of an [`Answer::Fault`]. The transition then has the acts of the whole rule, as far as it can
    /// be executed.
    fault: u16,
}

impl Transition {
    /// Returns the indices of the transition's acts, for [`Program::act`].
    #[inline]
    pub fn acts(&self) -> std::ops::Range<u32> {
        self.first..self.first + u32::from(self.count)
    }
}

/// Result of presenting an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The input is taken.
    Take,
    /// The input is stalled.
    Leave,
    /// The input, a local operation, is refused.
    Refuse,
    /// No rule matches the input.
    Unexpected,
    /// A rule failed: a value out of its range, or no receiver.
    Fault,
    /// Not computed yet; never the answer of [`Program::step`].
    Unknown,
}

/// Properties of a configuration for its agent.
#[derive(Clone, Copy, Debug)]
pub struct ConfigProperties {
    /// Permission of the agent.
    pub right: Right,
    /// True if the agent holds the line's bytes.
    pub holds: bool,
    /// True if the state is stable: it waits for no message.
    pub stable: bool,
}

impl ConfigProperties {
    fn of(state: &State) -> ConfigProperties {
        ConfigProperties {
            right: state.right,
            holds: state.holds_line,
            stable: state.stable(),
        }
    }
}

const UNKNOWN: Transition = Transition {
    next: 0,
    first: 0,
    count: 0,
    answer: Answer::Unknown,
    before: NOTHING,
    after: NOTHING,
    reads: false,
    writes: false,
    forwards: false,
    performs: false,
    done: CompletionEffect::Absent,
    is_partial_write: false,
    retries: false,
    gives_up: false,
    fault: 0,
};

const NOTHING: ConfigProperties = ConfigProperties {
    right: Right::None,
    holds: false,
    stable: false,
};

/// True if all slots with values for each remote are zero. There may be thousands of slots, so they are tested in
/// chunks.
fn are_shared(of_each: &[Range<usize>], slots: &[u16]) -> bool {
    let zero = |some: &[u16]| some.iter().fold(0, |all, slot| all | slot) == 0;
    of_each
        .iter()
        .all(|of| slots[of.clone()].chunks(64).all(zero))
}

/// A controller with the transitions that a run has needed so far.
pub struct Program {
    machine: Machine<'static>,
    /// Static analysis of each row.
    plans: Vec<Plan>,
    /// True if caches send the bytes of stores to the home, which performs them.
    pub sends_stores: bool,
    /// True if an atomic fetches the line into the cache.
    pub atomics_fetch: bool,
    /// True if a home keeps the bytes of every write until its memory accepts them.
    pub stores_later: bool,
    messages: u16,
    /// First code after those of messages, accesses and local operations.
    after_locals: u16,
    /// Logarithm of the number of table entries per configuration.
    code_bits: u32,
    /// Number of alternatives after a memory read.
    choices: u8,
    /// True if configuration and event alone determine the transition: then `table` is used, otherwise `memo`.
    dense: bool,
    /// True if transitions that depend on the sender or on registers are not kept.
    direct: bool,
    /// Slots with a value for each remote. Equal configurations may have different numbers where one of these is not
    /// zero.
    of_each: Vec<Range<usize>>,
    /// All other kept slots.
    others: Vec<usize>,
    /// The configuration on which a rule executes.
    scratch: Configuration,
    /// Unused configuration numbers, and the number of used ones at the last sweep.
    free: Vec<ConfigurationId>,
    had: usize,
    /// Transitions: one row per configuration.
    table: Vec<Transition>,
    memo: FxHashMap<(ConfigurationId, Input), Transition>,
    /// Configurations: for each its state and its slots, without registers.
    configurations: Vec<u16>,
    /// Length of one entry of `configurations`.
    stride: usize,
    /// Properties of each state.
    about: Vec<ConfigProperties>,
    numbers: FxHashMap<Vec<u16>, ConfigurationId>,
    /// Lookup key of the executed configuration.
    key: Vec<u16>,
    /// Initial configurations of the agents of each kind.
    begins: Vec<ConfigurationId>,
    /// Names of the remotes.
    names: Vec<String>,
    /// For each rule, true if it executes `retry`.
    retries: Vec<bool>,
    /// Slots of registers. They come last and are not part of a kept configuration.
    registers: Range<usize>,
    /// Register changes of the last executed transition.
    changes: Changes,
    /// Number of the home that the current line belongs to.
    at_home: u16,
    /// Channel class of each message.
    classes: Vec<Option<Class>>,
    acts: Vec<Act>,
    /// Acts of the kept transitions of a direct program: their indices have the bit [`LASTING_BIT`].
    lasting: Vec<Act>,
    /// For each rule, true if it has been executed.
    executed: Vec<bool>,
    /// Reasons of the transitions that are [`Answer::Fault`].
    faults: Vec<Fault>,
}

impl Program {
    /// Prepares the controller of a system's remotes or of its home for execution.
    ///
    /// # Errors
    /// A sentence, if a message carries more fields, or a larger set of remotes, than the simulator supports.
    pub fn new(
        protocol: &Protocol,
        controller: &Controller,
        all: Remotes,
        home: bool,
    ) -> Result<Program, String> {
        let remotes = all.total();
        let carries_set = |m: &&Message| m.fields.iter().any(|field| field.ty == Type::RemoteSet);
        if let (true, Some(message)) = (
            remotes > MOST_KEPT,
            protocol.messages.iter().find(carries_set),
        ) {
            return Err(format!(
                "message `{}` carries a set of remotes, which has room for {MOST_KEPT}, and there are {remotes}",
                message.name
            ));
        }
        if let Some(message) = protocol.messages.iter().find(|m| m.fields.len() > FIELDS) {
            return Err(format!(
                "message `{}` has {} fields; the simulator carries at most {FIELDS}",
                message.name,
                message.fields.len()
            ));
        }
        let messages = protocol.messages.len() as u16;
        let choices = controller.rules.iter().map(|rule| match rule.event {
            Event::MemoryData(choice) => choice + 1,
            _ => 1,
        });
        let choices = choices.max().unwrap_or(1);
        let after_locals = messages + (Access::ALL.len() + controller.locals.len()) as u16;
        let codes = usize::from(after_locals) + 2 + usize::from(choices);
        let bare = protocol.messages.iter().all(|m| m.fields.is_empty());
        let alone = remotes == 1 || (!home && controller.variables.is_empty());
        let accesses = Accesses::new(&protocol.remote, &protocol.messages);
        let sends_stores = protocol.remote.rules.iter().any(|rule| {
            let store = |under_way: &PendingAccess| under_way.access == Access::Store;
            let about = match rule.event {
                Event::Access(access) => access == Access::Store,
                _ => accesses.within(rule.state).iter().any(store),
            };
            about && matches!(&rule.effect, Effect::Take { body, .. } if accesses.sends_bytes(body))
        });
        let stores = |rule: &Rule| rule.says(&|s| matches!(s, Statement::StartStore { .. }));
        let dense = bare && alone;
        let machine = Machine::of(Cow::Owned(controller.clone()), all);
        let dense = dense && machine.registers().is_empty();
        // Transitions that depend on registers hardly ever recur.
        let direct = !dense && (remotes > MOST_KEPT || !machine.registers().is_empty());
        let of_each = |v: &Variable| {
            let over = |over: IndexDomain| matches!(v.ty, Type::Array { over: first, .. } if first == over);
            !v.register && (over(IndexDomain::Remotes) || v.ty == Type::RemoteSet)
        };
        let variables = controller.variables.iter().enumerate();
        let apart = variables.filter(|(_, variable)| direct && of_each(variable));
        let apart = apart.map(|(index, _)| machine.slots(index as u16));
        let apart: Vec<Range<usize>> = apart.collect();
        let others = 0..machine.registers().start;
        let others = others.filter(|slot| !apart.iter().any(|of| of.contains(slot)));
        let mut program = Program {
            sends_stores,
            atomics_fetch: accesses.fetches(&protocol.remote, Access::Atomic),
            stores_later: controller.rules.iter().any(stores),
            plans: Plan::of(controller, (!home).then_some(&accesses)),
            scratch: machine.initial(),
            messages,
            after_locals,
            code_bits: codes.next_power_of_two().trailing_zeros(),
            choices,
            dense,
            direct,
            others: others.collect(),
            of_each: apart,
            free: Vec::new(),
            had: 0,
            table: Vec::new(),
            memo: FxHashMap::default(),
            configurations: Vec::new(),
            stride: 1 + machine.registers().start,
            about: controller.states.iter().map(ConfigProperties::of).collect(),
            begins: Vec::new(),
            names: Vec::new(),
            retries: (controller.rules.iter())
                .map(|rule| rule.says(&|s| *s == Statement::Retry))
                .collect(),
            registers: machine.registers(),
            changes: Changes::default(),
            at_home: 0,
            numbers: FxHashMap::default(),
            key: Vec::new(),
            classes: protocol
                .message_ids()
                .map(|id| protocol.class(id))
                .collect(),
            acts: Vec::new(),
            lasting: Vec::new(),
            executed: vec![false; controller.rules.len()],
            faults: Vec::new(),
            machine,
        };
        let kinds: Vec<StateId> = match home {
            false => protocol.kinds.iter().map(|kind| kind.initial).collect(),
            true => vec![StateId(0)],
        };
        for &state in kinds.iter().take(all.kinds()) {
            let mut initial = program.machine.initial_in(state);
            initial.slots.truncate(program.registers.start);
            program.scratch = initial;
            let mut begun = program.begins.iter().copied();
            let begun = begun.find(|&number| program.is_scratch(number));
            let number = begun.unwrap_or_else(|| program.number());
            program.begins.push(number);
        }
        program.names = match home {
            false => (0..remotes)
                .map(|remote| protocol.remote_name(&all, remote))
                .collect(),
            true => Vec::new(),
        };
        Ok(program)
    }

    /// Returns the initial configurations of the agents of each kind.
    pub fn begins(&self) -> &[ConfigurationId] {
        &self.begins
    }

    /// Returns the name of a remote.
    pub fn remote_name(&self, remote: Agent) -> String {
        self.names[remote.index()].clone()
    }

    /// True if the agent has registers.
    pub fn has_registers(&self) -> bool {
        !self.registers.is_empty()
    }

    /// Returns the initial values of the registers.
    pub fn initial_registers(&self) -> Vec<u16> {
        self.machine.initial().slots[self.registers.clone()].to_vec()
    }

    /// As [`Program::step`], for an agent with these registers and a line of the home `home`. The registers are
    /// unchanged; [`Program::change`] applies the transition's changes once it is taken.
    pub fn step_with(
        &mut self,
        registers: &mut [u16],
        home: u16,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        self.at_home = home;
        self.execute(configuration, input, registers)
    }

    /// Applies the register changes of the last transition. Returns true if a register has changed.
    pub fn change(&mut self, registers: &mut [u16]) -> bool {
        self.changes.redo(registers)
    }

    /// True if a row for the event in the configuration's state has a guard: the event may become possible later.
    pub fn has_guarded_row(&self, configuration: ConfigurationId, event: Event) -> bool {
        let state = self.state(configuration);
        let mut rules = self.controller().rules.iter();
        rules.any(|rule| {
            usize::from(rule.state.0) == state && rule.event == event && rule.guard.is_some()
        })
    }

    /// Returns the controller.
    pub fn controller(&self) -> &Controller {
        self.machine.controller()
    }

    /// Number of alternatives among which the agent may choose freely after a memory read.
    pub fn choices(&self) -> u8 {
        self.choices
    }

    /// Returns the code of an event.
    #[inline]
    pub fn code(&self, event: Event) -> EventCode {
        match event {
            Event::Message(message) => message.0,
            Event::Access(access) => self.messages + access as u16,
            Event::Local(local) => self.messages + Access::ALL.len() as u16 + u16::from(local),
            Event::Unlock => self.after_locals,
            Event::MemoryDone => self.after_locals + 1,
            Event::MemoryData(choice) => self.after_locals + 2 + u16::from(choice),
        }
    }

    /// Returns the event of a code.
    pub fn event(&self, code: EventCode) -> Event {
        let after = self.messages + Access::ALL.len() as u16;
        if code < self.messages {
            Event::Message(MessageId(code))
        } else if code < after {
            Event::Access(Access::ALL[usize::from(code - self.messages)].0)
        } else if code < self.after_locals {
            Event::Local((code - after) as u8)
        } else {
            match code - self.after_locals {
                0 => Event::Unlock,
                1 => Event::MemoryDone,
                choice => Event::MemoryData((choice - 2) as u8),
            }
        }
    }

    /// Prefetches a configuration into the host's caches.
    #[inline]
    pub fn prefetch(&self, configuration: ConfigurationId) {
        let kept = self.kept(configuration);
        kept.iter().step_by(32).for_each(|part| prefetch(part));
    }

    /// Returns the transition of a configuration on an input.
    #[inline]
    pub fn step(&mut self, configuration: ConfigurationId, input: &Input) -> Transition {
        // The table is empty unless the program is dense.
        match self.table.get(self.place(configuration, input.code)) {
            Some(known) if known.answer != Answer::Unknown => *known,
            _ => self.look_up(configuration, input),
        }
    }

    /// Returns a configuration with the backing permission set: a home with lent memory knows if it may write that
    /// memory.
    pub fn with_backing_permission(
        &mut self,
        configuration: ConfigurationId,
        writes: bool,
    ) -> ConfigurationId {
        let Some(slot) = self.machine.memory_writes() else {
            return configuration;
        };
        let kept = &self.configurations[configuration as usize * self.stride..][..self.stride];
        if kept[1 + slot] == u16::from(writes) {
            return configuration;
        }
        self.scratch.state = kept[0];
        self.scratch.slots.copy_from_slice(&kept[1..]);
        self.scratch.slots[slot] = writes.into();
        self.number()
    }

    /// Returns a configuration with the same slots in the state `to`.
    pub fn in_state(&mut self, configuration: ConfigurationId, to: StateId) -> ConfigurationId {
        let kept = &self.configurations[configuration as usize * self.stride..][1..self.stride];
        self.scratch.slots.copy_from_slice(kept);
        self.scratch.state = to.0;
        self.number()
    }

    fn look_up(&mut self, configuration: ConfigurationId, input: &Input) -> Transition {
        let key = match self.direct {
            true => input.without_endpoints(),
            false => *input,
        };
        if let Some(known) = self.memo.get(&(configuration, key)) {
            return *known;
        }
        // Called only for programs without registers.
        let mut transition = self.execute(configuration, input, &mut []);
        let kept = self.direct && !self.changes.is_identity_dependent();
        if kept
            && [configuration, transition.next]
                .iter()
                .all(|&of| self.is_shared(of))
        {
            if !transition.acts().is_empty() {
                let first = self.lasting.len() as u32 | LASTING_BIT;
                let acts = transition.acts().map(|act| self.acts[act as usize]);
                self.lasting.extend(acts);
                transition.first = first;
            }
            self.memo.insert((configuration, key), transition);
        }
        transition
    }

    /// Discards the acts of earlier transitions that are not kept.
    #[inline]
    pub fn forget(&mut self) {
        if self.direct {
            self.acts.clear();
        }
    }

    /// True if a configuration keeps its number for the whole run.
    pub fn is_numbered(&self) -> bool {
        self.of_each.is_empty()
    }

    /// True if enough configurations have been created since the last [`Program::sweep`] to make another worthwhile.
    pub fn is_full(&self) -> bool {
        let made = self.count() - self.free.len() - self.had;
        !self.is_numbered() && made > self.had.max(MIN_NEW_BEFORE_SWEEP)
    }

    /// Frees the numbers of all configurations that are neither in `had` nor initial.
    pub fn sweep(&mut self, had: impl Iterator<Item = ConfigurationId>) {
        let mut free = vec![true; self.count()];
        self.begins
            .iter()
            .for_each(|&number| free[number as usize] = false);
        had.for_each(|number| free[number as usize] = false);
        self.numbers.retain(|_, number| !free[*number as usize]);
        self.memo.clear();
        self.lasting.clear();
        let numbers = 0..self.count() as ConfigurationId;
        self.free = numbers.filter(|&number| free[number as usize]).collect();
        self.had = self.count() - self.free.len();
    }

    #[inline]
    fn place(&self, configuration: ConfigurationId, code: EventCode) -> usize {
        ((configuration as usize) << self.code_bits) + usize::from(code)
    }

    /// Returns the act with this index.
    #[inline]
    pub fn act(&self, index: u32) -> Act {
        match index & LASTING_BIT {
            0 => self.acts[index as usize],
            _ => self.lasting[(index ^ LASTING_BIT) as usize],
        }
    }

    /// Returns the properties of a configuration's state.
    #[inline]
    pub fn about(&self, configuration: ConfigurationId) -> ConfigProperties {
        self.about[self.state(configuration)]
    }

    /// Returns a configuration with all registers zero.
    pub fn configuration(&self, number: ConfigurationId) -> Configuration {
        let kept = self.kept(number);
        let (state, mut slots) = (kept[0], kept[1..].to_vec());
        slots.resize(self.registers.end, 0);
        Configuration { state, slots }
    }

    /// Number of configurations, unused ones included.
    fn count(&self) -> usize {
        self.configurations.len() / self.stride
    }

    /// Returns a kept configuration: its state and its slots without registers.
    #[inline]
    fn kept(&self, number: ConfigurationId) -> &[u16] {
        &self.configurations[number as usize * self.stride..][..self.stride]
    }

    /// True if the configuration equals the executed one.
    fn is_scratch(&self, number: ConfigurationId) -> bool {
        let kept = self.kept(number);
        kept[0] == self.scratch.state && kept[1..] == self.scratch.slots[..]
    }

    /// True if all configurations equal to this one share its number.
    fn is_shared(&self, number: ConfigurationId) -> bool {
        are_shared(&self.of_each, &self.kept(number)[1..])
    }

    /// Returns the index of a configuration's state.
    pub fn state(&self, configuration: ConfigurationId) -> usize {
        self.configurations[configuration as usize * self.stride].into()
    }

    /// Formats a configuration with these registers, such as `IM_A owed=1`.
    pub fn text(
        &self,
        configuration: ConfigurationId,
        registers: &[u16],
        names: &AgentNames,
    ) -> String {
        let kept = self.kept(configuration);
        let slots = [&kept[1..], registers].concat();
        names.configuration(&self.machine, kept[0], &slots)
    }

    /// Returns the indices of the rules that this run has executed, in order.
    pub fn executed(&self) -> Vec<u32> {
        let rules = self.executed.iter().zip(0..);
        rules
            .filter_map(|(&executed, rule)| executed.then_some(rule))
            .collect()
    }

    /// Returns the number of the executed configuration, a new one if necessary.
    fn number(&mut self) -> ConfigurationId {
        let next = self.count() as ConfigurationId;
        let slots = &self.scratch.slots[..];
        if are_shared(&self.of_each, slots) {
            self.key.clear();
            self.key.push(self.scratch.state);
            self.key.extend(self.others.iter().map(|&slot| slots[slot]));
            if let Some(&number) = self.numbers.get(&self.key) {
                return number;
            }
            self.numbers.insert(self.key.clone(), next);
        } else if let Some(&number) = self.begins.iter().find(|&&n| self.is_scratch(n)) {
            return number;
        } else if let Some(number) = self.free.pop() {
            let kept = &mut self.configurations[number as usize * self.stride..][..self.stride];
            kept[0] = self.scratch.state;
            kept[1..].copy_from_slice(slots);
            return number;
        }
        self.configurations.push(self.scratch.state);
        self.configurations.extend_from_slice(slots);
        if self.dense {
            let end = self.place(next + 1, 0);
            self.table.resize(end, UNKNOWN);
        }
        next
    }

    /// Describes why a rule of `agent` could not be executed.
    pub fn fault(&self, agent: &str, messages: &[Message], transition: &Transition) -> String {
        let fault = &self.faults[usize::from(transition.fault)];
        fault_words(agent, messages, self.machine.controller(), fault)
    }

    /// Stores the acts of a transition.
    fn keep_acts(&mut self, transition: &mut Transition, acts: &[execute::Act]) {
        transition.first = self.acts.len() as u32;
        transition.count = acts.len() as u16;
        let kept = acts.iter().map(|act| {
            act.with_fields(|fields| {
                let mut kept = [0; FIELDS];
                kept[..fields.len()].copy_from_slice(fields);
                kept
            })
        });
        self.acts.extend(kept);
    }

    /// Executes the controller on an input and keeps the transition where possible.
    fn execute(
        &mut self,
        from: ConfigurationId,
        input: &Input,
        registers: &mut [u16],
    ) -> Transition {
        let kept = &self.configurations[from as usize * self.stride..][..self.stride];
        self.scratch.state = kept[0];
        self.scratch.slots.copy_from_slice(&kept[1..]);
        let remote = |number: Agent| (number != HOME).then_some(number.0);
        let occasion = Trigger {
            home: self.at_home,
            event: self.event(input.code),
            sender: remote(input.sender),
            own: remote(input.own),
            fields: &input.fields,
        };
        let mut tables = self.machine.controller();
        self.changes.clear();
        let apart = (&mut *registers, &mut self.changes);
        let result = (self.machine).step_with(&mut self.scratch, apart, occasion, &mut tables);
        self.changes.undo(registers);
        let mut transition = Transition {
            answer: Answer::Fault,
            next: from,
            ..UNKNOWN
        };
        match result {
            Err(interrupted) => {
                transition.fault = self.faults.len() as u16;
                self.faults.push(interrupted.fault);
                // A row that lacks room for its messages waits, even if it has other faults. The caller needs all its
                // acts to decide that.
                let acts = [interrupted.acts, interrupted.later].concat();
                self.keep_acts(&mut transition, &acts);
            }
            Ok(Outcome::Unexpected) => transition.answer = Answer::Unexpected,
            Ok(Outcome::Leave) => transition.answer = Answer::Leave,
            Ok(Outcome::Refuse) => transition.answer = Answer::Refuse,
            Ok(Outcome::Taken { rule, acts }) => {
                let plan = self.plans[rule];
                transition.answer = Answer::Take;
                transition.performs = plan.performs;
                transition.done = plan.done;
                transition.is_partial_write = plan.is_partial_write;
                transition.retries = self.retries[rule];
                transition.gives_up = plan.gives_up;
                self.executed[rule] = true;
                self.keep_acts(&mut transition, &acts);
                for act in &acts {
                    match act {
                        execute::Act::StartRead => transition.reads = true,
                        execute::Act::StartWrite | execute::Act::StartStore { .. } => {
                            transition.writes = true;
                        }
                        execute::Act::Send { message, .. } => {
                            let class = self.classes[message.index()];
                            transition.forwards |= class == Some(Class::Forward);
                        }
                        _ => {}
                    }
                }
                if !self.is_scratch(from) {
                    transition.next = self.number();
                }
            }
        }
        transition.before = self.about(from);
        transition.after = self.about(transition.next);
        if self.dense {
            let place = self.place(from, input.code);
            self.table[place] = transition;
        } else if !self.direct {
            self.memo.insert((from, *input), transition);
        }
        transition
    }
}
