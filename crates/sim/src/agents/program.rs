//! Controllers laid out for fast execution.
//!
//! A [`Program`] is a table from (configuration, event) to a transition. [`cohkit_protocol::execute::Machine`] computes
//! an entry when it is first needed, and the entry is kept. The simulator therefore executes the controller itself, the
//! object that the checker explores. Configurations (a state and values of variables) are numbered in the order in
//! which a run reaches them; the initial one is 0.
//!
//! With more than [`MAX_KEPT_REMOTES`] remotes, variables and messages that name a remote hardly ever recur. Then only
//! transitions of rules that read neither the sender nor the agent's own number are kept. All others are executed on
//! each request, and their acts are valid until [`Program::discard_acts`]. A configuration with a value for each
//! remote, such as a sharer set, gets one number per line. Numbers that no line uses are reused after a
//! [`Program::sweep`].

mod codes;
mod configurations;

use cohkit_base::memory::prefetch;
use cohkit_protocol::controller::{
    Access, Controller, Effect, Event, Rule, State, Statement, Variable,
};
use cohkit_protocol::execute::{
    self, Changes, Configuration, Fault, Machine, Outcome, Receiver, Trigger,
};
use cohkit_protocol::pending_access::{Accesses, PendingAccess};
use cohkit_protocol::protocol::{Class, Message, MessageId, Permission, Protocol, Type};
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::rows::fault_words;
use cohkit_protocol::terms::{IndexDomain, StateId};
use cohkit_protocol::value_text::AgentNames;
use cohkit_system::plan::{Plan, RemoteEffects};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;

use self::codes::EventCodes;
use self::configurations::Configurations;
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
    pub agent: Agent,
    /// Fields of the message.
    pub fields: [u16; FIELDS],
}

impl Input {
    /// Returns a message as an input for its receiver.
    #[inline]
    pub fn from_message(message: &crate::message::Message) -> Input {
        Input {
            code: message.kind.0,
            sender: message.from,
            agent: message.to,
            fields: message.fields,
        }
    }

    /// Returns the input without its sender and its receiver.
    fn without_endpoints(self) -> Input {
        Input {
            sender: HOME,
            agent: HOME,
            ..self
        }
    }
}

/// An act with its fields inline, so that it needs no allocation of its own.
pub type Act = execute::Act<[u16; FIELDS]>;

/// Maximum number of remotes for which a program keeps the transitions that depend on them: with more, such transitions
/// hardly ever recur.
const MAX_KEPT_REMOTES: u16 = 16;

/// Bit of an act index that marks an act of a kept transition, in `ActStore::kept_acts`.
const KEPT_ACT_BIT: u32 = 1 << 31;

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
    /// Index of the first act; with [`KEPT_ACT_BIT`] an index into the kept acts.
    first_act: u32,
    /// Number of acts.
    act_count: u16,
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
    /// Effects of a cache's rule on copies and accesses.
    pub effects: RemoteEffects,
    /// True if the access is to be retried.
    pub retries: bool,
    /// Index of the fault of an [`Answer::Fault`]. The transition then has the acts of the whole rule, as far as it can
    /// be executed.
    fault: u16,
}

impl Transition {
    /// Returns the indices of the transition's acts, for [`Program::act`].
    #[inline]
    pub fn acts(&self) -> std::ops::Range<u32> {
        self.first_act..self.first_act + u32::from(self.act_count)
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
    pub permission: Permission,
    /// True if the agent holds the line's bytes.
    pub holds_line: bool,
    /// True if the state is stable: it waits for no message.
    pub stable: bool,
}

impl ConfigProperties {
    /// Returns the properties of a state.
    fn of(state: &State) -> ConfigProperties {
        ConfigProperties {
            permission: state.permission,
            holds_line: state.holds_line,
            stable: state.is_stable(),
        }
    }
}

/// Table entry that has not been computed.
const UNKNOWN: Transition = Transition {
    next: 0,
    first_act: 0,
    act_count: 0,
    answer: Answer::Unknown,
    before: NOTHING,
    after: NOTHING,
    reads: false,
    writes: false,
    forwards: false,
    effects: RemoteEffects::NONE,
    retries: false,
    fault: 0,
};

/// Properties before they are known.
const NOTHING: ConfigProperties = ConfigProperties {
    permission: Permission::None,
    holds_line: false,
    stable: false,
};

/// Rejects messages that carry more fields, or a larger set of remotes, than the simulator supports.
fn check_messages(protocol: &Protocol, remotes: u16) -> Result<(), String> {
    let carries_set = |m: &&Message| m.fields.iter().any(|field| field.ty == Type::RemoteSet);
    if let (true, Some(message)) = (
        remotes > MAX_KEPT_REMOTES,
        protocol.messages.iter().find(carries_set),
    ) {
        return Err(format!(
                "message `{}` carries a set of remotes, which has room for {MAX_KEPT_REMOTES}, and there are {remotes}",
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
    Ok(())
}

/// True if caches send the bytes of stores to the home, which performs them.
fn sends_stores(protocol: &Protocol, accesses: &Accesses) -> bool {
    protocol.remote.rules.iter().any(|rule| {
        let is_store = |pending: &PendingAccess| pending.access == Access::Store;
        let concerns_store = match rule.event {
            Event::Access(access) => access == Access::Store,
            _ => accesses.pending_in(rule.state).iter().any(is_store),
        };
        concerns_store
            && matches!(&rule.effect, Effect::Take { body, .. } if accesses.sends_bytes(body))
    })
}

/// Returns the slots of a controller with a value for each remote.
fn per_remote_slots(controller: &Controller, machine: &Machine) -> Vec<Range<usize>> {
    let is_per_remote = |v: &Variable| {
        let is_array = matches!(
            v.ty,
            Type::Array { first_domain, .. } if first_domain == IndexDomain::Remotes
        );
        !v.register && (is_array || v.ty == Type::RemoteSet)
    };
    let variables = controller.variables.iter().enumerate();
    let per_remote = variables.filter(|(_, variable)| is_per_remote(variable));
    per_remote
        .map(|(index, _)| machine.slots(index as u16))
        .collect()
}

/// Facts about the rules of a controller.
struct RuleFacts {
    /// Static analysis of each rule.
    plans: Vec<Plan>,
    /// For each rule, true if it executes `retry`.
    retries: Vec<bool>,
    /// For each rule, true if this run has executed it.
    executed: Vec<bool>,
    /// Channel class of each message.
    classes: Vec<Option<Class>>,
}

/// Acts of transitions.
#[derive(Default)]
struct ActStore {
    /// Acts of transitions; those of a direct program are valid until [`Program::discard_acts`].
    acts: Vec<Act>,
    /// Acts of the kept transitions of a direct program: their indices have the bit [`KEPT_ACT_BIT`].
    kept_acts: Vec<Act>,
}

impl ActStore {
    /// Returns the act with this index.
    #[inline]
    fn act(&self, index: u32) -> Act {
        match index & KEPT_ACT_BIT {
            0 => self.acts[index as usize],
            _ => self.kept_acts[(index ^ KEPT_ACT_BIT) as usize],
        }
    }

    /// Keeps the acts of a transition of a direct program.
    fn keep(&mut self, transition: &mut Transition) {
        if transition.acts().is_empty() {
            return;
        }
        let first_act = self.kept_acts.len() as u32 | KEPT_ACT_BIT;
        let acts = transition.acts().map(|act| self.acts[act as usize]);
        self.kept_acts.extend(acts);
        transition.first_act = first_act;
    }

    /// Stores the acts of a transition.
    fn store(&mut self, transition: &mut Transition, acts: &[execute::Act]) {
        transition.first_act = self.acts.len() as u32;
        transition.act_count = acts.len() as u16;
        let inline_acts = acts.iter().map(|act| {
            act.with_fields(|fields| {
                let mut inline_fields = [0; FIELDS];
                inline_fields[..fields.len()].copy_from_slice(fields);
                inline_fields
            })
        });
        self.acts.extend(inline_acts);
    }
}

/// A controller with the transitions that a run has needed so far.
pub struct Program {
    /// The controller, in executable form.
    machine: Machine<'static>,
    /// True if caches send the bytes of stores to the home, which performs them.
    pub sends_stores: bool,
    /// True if an atomic fetches the line into the cache.
    pub atomics_fetch: bool,
    /// True if a home keeps the bytes of every write until its memory accepts them.
    pub keeps_store_bytes: bool,
    /// Facts about the rules.
    rules: RuleFacts,
    /// Numbers of the events.
    codes: EventCodes,
    /// Logarithm of the number of table entries per configuration.
    code_bits: u32,
    /// True if configuration and event alone determine the transition: then `table` is used, otherwise `memo`.
    dense: bool,
    /// True if transitions that depend on the sender or on registers are not kept.
    direct: bool,
    /// The configuration on which a rule executes.
    scratch: Configuration,
    /// Configurations that the run has reached.
    configurations: Configurations,
    /// Properties of each state.
    state_properties: Vec<ConfigProperties>,
    /// Transitions: one row per configuration.
    table: Vec<Transition>,
    /// Kept transitions of a program that is not dense.
    memo: FxHashMap<(ConfigurationId, Input), Transition>,
    /// Slots of registers. They come last and are not part of a kept configuration.
    registers: Range<usize>,
    /// Register changes of the last executed transition.
    changes: Changes,
    /// Number of the home that the current line belongs to.
    current_home: u16,
    /// Acts of transitions.
    acts: ActStore,
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
        remotes_by_kind: Remotes,
        is_home: bool,
    ) -> Result<Program, String> {
        let remotes = remotes_by_kind.total();
        check_messages(protocol, remotes)?;
        let codes = EventCodes::new(protocol.messages.len() as u16, controller);
        let has_no_fields = protocol.messages.iter().all(|m| m.fields.is_empty());
        let independent_of_remote = remotes == 1 || (!is_home && controller.variables.is_empty());
        let accesses = Accesses::new(&protocol.remote, &protocol.messages);
        let starts_store =
            |rule: &Rule| rule.has_statement(&|s| matches!(s, Statement::StartStore { .. }));
        let machine = Machine::from_controller(Cow::Owned(controller.clone()), remotes_by_kind);
        let dense = has_no_fields && independent_of_remote && machine.registers().is_empty();
        // Transitions that depend on registers hardly ever recur.
        let direct = !dense && (remotes > MAX_KEPT_REMOTES || !machine.registers().is_empty());
        let per_remote_slots = match direct {
            true => per_remote_slots(controller, &machine),
            false => Vec::new(),
        };
        let mut program = Program {
            sends_stores: sends_stores(protocol, &accesses),
            atomics_fetch: accesses.fetches(&protocol.remote, Access::Atomic),
            keeps_store_bytes: controller.rules.iter().any(starts_store),
            rules: RuleFacts {
                plans: Plan::of(controller, (!is_home).then_some(&accesses)),
                retries: (controller.rules.iter())
                    .map(|rule| rule.has_statement(&|s| *s == Statement::Retry))
                    .collect(),
                executed: vec![false; controller.rules.len()],
                classes: (protocol.message_ids())
                    .map(|id| protocol.class(id))
                    .collect(),
            },
            code_bits: codes.bits(),
            codes,
            dense,
            direct,
            scratch: machine.initial(),
            configurations: Configurations::new(machine.registers().start, per_remote_slots),
            state_properties: controller.states.iter().map(ConfigProperties::of).collect(),
            table: Vec::new(),
            memo: FxHashMap::default(),
            registers: machine.registers(),
            changes: Changes::default(),
            current_home: 0,
            acts: ActStore::default(),
            faults: Vec::new(),
            machine,
        };
        let initial_states: Vec<StateId> = match is_home {
            false => protocol.kinds.iter().map(|kind| kind.initial).collect(),
            true => vec![StateId(0)],
        };
        let initial_states = initial_states.into_iter().take(remotes_by_kind.kinds());
        program.number_initial_configurations(initial_states);
        Ok(program)
    }

    /// Numbers the initial configurations, which are in these states.
    fn number_initial_configurations(&mut self, states: impl Iterator<Item = StateId>) {
        for state in states {
            let mut initial = self.machine.initial_in(state);
            initial.slots.truncate(self.registers.start);
            self.configurations.push_initial(&initial);
            self.scratch = initial;
        }
        self.extend_table();
    }

    /// Returns the initial configurations of the agents of each kind.
    pub fn initial_configurations(&self) -> &[ConfigurationId] {
        self.configurations.initial()
    }

    /// True if the agent has registers.
    pub fn has_registers(&self) -> bool {
        !self.registers.is_empty()
    }

    /// Returns the initial values of the registers.
    pub fn initial_registers(&self) -> Vec<u16> {
        self.machine.initial().slots[self.registers.clone()].to_vec()
    }

    /// As [`Program::step`], for an agent with these registers and a line of the home with number `home`. The
    /// registers are unchanged; [`Program::change`] applies the transition's changes once it is taken.
    pub fn step_with(
        &mut self,
        registers: &mut [u16],
        home: u16,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        self.current_home = home;
        self.execute(configuration, input, registers)
    }

    /// Applies the register changes of the last transition. Returns true if a register has changed.
    pub fn change(&mut self, registers: &mut [u16]) -> bool {
        self.changes.redo(registers)
    }

    /// True if [`Program::change`] would change a register.
    pub fn would_change(&mut self, registers: &mut [u16]) -> bool {
        let changes = self.changes.redo(registers);
        self.changes.undo(registers);
        changes
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
        self.codes.choices()
    }

    /// Returns the code of an event.
    #[inline]
    pub fn code(&self, event: Event) -> EventCode {
        self.codes.code(event)
    }

    /// Returns an input of an agent that is not a message.
    #[inline]
    pub fn input(&self, event: Event, agent: Agent) -> Input {
        Input {
            code: self.code(event),
            sender: HOME,
            agent,
            fields: [0; FIELDS],
        }
    }

    /// Returns the event of a code.
    pub fn event(&self, code: EventCode) -> Event {
        self.codes.event(code)
    }

    /// Prefetches a configuration into the host's caches.
    #[inline]
    pub fn prefetch(&self, configuration: ConfigurationId) {
        let encoded = self.configurations.encoded(configuration);
        encoded.iter().step_by(32).for_each(|part| prefetch(part));
    }

    /// Returns the transition of a configuration on an input.
    #[inline]
    pub fn step(&mut self, configuration: ConfigurationId, input: &Input) -> Transition {
        // The table is empty unless the program is dense.
        match self.table.get(self.table_index(configuration, input.code)) {
            Some(cached) if cached.answer != Answer::Unknown => *cached,
            _ => self.look_up(configuration, input),
        }
    }

    /// Returns a configuration with the backing permission set: a home whose memory is the copy of a cache above
    /// knows if it may write that copy. Returns the same configuration if the controller has no such variable.
    pub fn with_backing_permission(
        &mut self,
        configuration: ConfigurationId,
        writes: bool,
    ) -> ConfigurationId {
        let Some(slot) = self.machine.memory_writes() else {
            return configuration;
        };
        if self.configurations.encoded(configuration)[1 + slot] == u16::from(writes) {
            return configuration;
        }
        self.configurations
            .copy_to(configuration, &mut self.scratch);
        self.scratch.slots[slot] = writes.into();
        self.number_scratch()
    }

    /// Returns a configuration with the same slots in the state `to`.
    pub fn in_state(&mut self, configuration: ConfigurationId, to: StateId) -> ConfigurationId {
        self.configurations
            .copy_to(configuration, &mut self.scratch);
        self.scratch.state = to.0;
        self.number_scratch()
    }

    /// Returns a transition that is not in the table: a kept one, or a new one, which is kept if it may recur.
    fn look_up(&mut self, configuration: ConfigurationId, input: &Input) -> Transition {
        let key = match self.direct {
            true => input.without_endpoints(),
            false => *input,
        };
        if let Some(cached) = self.memo.get(&(configuration, key)) {
            return *cached;
        }
        // Called only for programs without registers.
        let mut transition = self.execute(configuration, input, &mut []);
        let is_kept = self.direct && !self.changes.is_identity_dependent();
        if is_kept
            && [configuration, transition.next]
                .iter()
                .all(|&id| self.configurations.is_shared(id))
        {
            self.acts.keep(&mut transition);
            self.memo.insert((configuration, key), transition);
        }
        transition
    }

    /// Discards the acts of earlier transitions that are not kept.
    #[inline]
    pub fn discard_acts(&mut self) {
        if self.direct {
            self.acts.acts.clear();
        }
    }

    /// True if a configuration keeps its number for the whole run.
    pub fn is_numbered(&self) -> bool {
        self.configurations.is_permanent()
    }

    /// True if enough configurations have been created since the last [`Program::sweep`] to make another worthwhile.
    pub fn is_full(&self) -> bool {
        self.configurations.is_full()
    }

    /// Frees the numbers of all configurations that are neither in `used` nor initial.
    pub fn sweep(&mut self, used: impl Iterator<Item = ConfigurationId>) {
        self.configurations.sweep(used);
        self.memo.clear();
        self.acts.kept_acts.clear();
    }

    /// Returns the index of a configuration and an event in `table`.
    #[inline]
    fn table_index(&self, configuration: ConfigurationId, code: EventCode) -> usize {
        ((configuration as usize) << self.code_bits) + usize::from(code)
    }

    /// Returns the act with this index.
    #[inline]
    pub fn act(&self, index: u32) -> Act {
        self.acts.act(index)
    }

    /// Returns the messages that a transition sends, in order.
    #[inline]
    pub fn sent_messages<'p>(
        &'p self,
        transition: &Transition,
    ) -> impl Iterator<Item = MessageId> + Clone + use<'p> {
        let acts = transition.acts();
        acts.filter_map(|act| self.act(act).sent_message())
    }

    /// Returns the properties of a configuration's state.
    #[inline]
    pub fn properties(&self, configuration: ConfigurationId) -> ConfigProperties {
        self.state_properties[self.state(configuration)]
    }

    /// Returns a configuration with all registers zero.
    pub fn configuration(&self, number: ConfigurationId) -> Configuration {
        let encoded = self.configurations.encoded(number);
        let (state, mut slots) = (encoded[0], encoded[1..].to_vec());
        slots.resize(self.registers.end, 0);
        Configuration { state, slots }
    }

    /// Returns the index of a configuration's state.
    pub fn state(&self, configuration: ConfigurationId) -> usize {
        self.configurations.state(configuration)
    }

    /// Formats a configuration with these registers, such as `IM_A owed=1`.
    pub fn configuration_text(
        &self,
        configuration: ConfigurationId,
        registers: &[u16],
        names: &AgentNames,
    ) -> String {
        let encoded = self.configurations.encoded(configuration);
        let slots = [&encoded[1..], registers].concat();
        names.configuration(&self.machine, encoded[0], &slots)
    }

    /// Returns the indices of the rules that this run has executed, in order.
    pub fn executed(&self) -> Vec<u32> {
        let rules = self.rules.executed.iter().zip(0..);
        rules
            .filter_map(|(&executed, rule)| executed.then_some(rule))
            .collect()
    }

    /// Returns the number of the executed configuration, a new one if necessary.
    fn number_scratch(&mut self) -> ConfigurationId {
        let number = self.configurations.number(&self.scratch);
        self.extend_table();
        number
    }

    /// Adds a row to the table of a dense program for each new configuration.
    fn extend_table(&mut self) {
        if self.dense {
            let end = self.configurations.count() << self.code_bits;
            self.table.resize(end, UNKNOWN);
        }
    }

    /// Returns the index of a fault. A waiting row is executed again and again, and has the same fault each time.
    fn fault_index(&mut self, fault: Fault) -> u16 {
        let known = self.faults.iter().position(|known| *known == fault);
        let index = known.unwrap_or_else(|| {
            self.faults.push(fault);
            self.faults.len() - 1
        });
        index as u16
    }

    /// Describes why a rule of `agent` could not be executed.
    pub fn fault(&self, agent: &str, messages: &[Message], transition: &Transition) -> String {
        let fault = &self.faults[usize::from(transition.fault)];
        fault_words(agent, messages, self.machine.controller(), fault)
    }

    /// Sets the properties of a taken transition that follow from its rule, and stores its acts.
    fn apply_rule(&mut self, transition: &mut Transition, rule: usize, acts: &[execute::Act]) {
        let plan = self.rules.plans[rule];
        transition.answer = Answer::Take;
        transition.effects = plan.effects;
        transition.retries = self.rules.retries[rule];
        self.rules.executed[rule] = true;
        self.acts.store(transition, acts);
        for act in acts {
            match act {
                execute::Act::StartRead => transition.reads = true,
                execute::Act::StartWrite | execute::Act::StartStore { .. } => {
                    transition.writes = true;
                }
                execute::Act::Send { message, .. } => {
                    let class = self.rules.classes[message.index()];
                    transition.forwards |= class == Some(Class::Forward);
                }
                _ => {}
            }
        }
    }

    /// Executes the controller on an input and keeps the transition where possible.
    fn execute(
        &mut self,
        from: ConfigurationId,
        input: &Input,
        registers: &mut [u16],
    ) -> Transition {
        self.configurations.copy_to(from, &mut self.scratch);
        let remote_number = |number: Agent| (number != HOME).then_some(number.0);
        let trigger = Trigger {
            home: self.current_home,
            event: self.event(input.code),
            sender: remote_number(input.sender),
            executing_remote: remote_number(input.agent),
            fields: &input.fields,
        };
        let mut tables = self.machine.controller();
        self.changes.clear();
        let registers_and_changes = (&mut *registers, &mut self.changes);
        let result = (self.machine).step_with(
            &mut self.scratch,
            registers_and_changes,
            trigger,
            &mut tables,
        );
        self.changes.undo(registers);
        let mut transition = Transition {
            answer: Answer::Fault,
            next: from,
            ..UNKNOWN
        };
        match result {
            Err(row_error) => {
                transition.fault = self.fault_index(row_error.fault);
                // A row that lacks room for its messages waits, even if it has other faults. The caller needs all its
                // acts to decide that.
                let acts = [row_error.acts, row_error.later].concat();
                self.acts.store(&mut transition, &acts);
            }
            Ok(Outcome::Unexpected) => transition.answer = Answer::Unexpected,
            Ok(Outcome::Stall) => transition.answer = Answer::Leave,
            Ok(Outcome::Refuse) => transition.answer = Answer::Refuse,
            Ok(Outcome::Taken { rule, acts }) => {
                self.apply_rule(&mut transition, rule, &acts);
                if !self.configurations.equals(from, &self.scratch) {
                    transition.next = self.number_scratch();
                }
            }
        }
        transition.before = self.properties(from);
        transition.after = self.properties(transition.next);
        if self.dense {
            let index = self.table_index(from, input.code);
            self.table[index] = transition;
        } else if !self.direct {
            self.memo.insert((from, *input), transition);
        }
        transition
    }
}
