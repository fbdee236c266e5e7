//! Controllers laid out for fast execution.
//!
//! A [`Program`] is a table from (configuration, event) to a transition. Every entry is computed by
//! [`cohkit_protocol::execute::Machine`] when it is first needed and kept, so what runs is the
//! controller itself: the object that the checker explores. Configurations (a state and values of
//! variables) are numbered in the order in which a run meets them; the initial one is 0.
//!
//! Where there are more remotes than [`MOST_KEPT`], what variables and messages say of them hardly ever comes again.
//! Then only those are kept whose rules ask neither for a sender nor for the agent's own number: any other transition is
//! executed when it is asked for, and its acts are there until [`Program::forget`]. Configurations that say something of each remote, such as who shares a line, have a number for
//! each line, and numbers that no line has are used again after a [`Program::sweep`].

use cohkit_base::memory::prefetch;
use cohkit_protocol::controller::{
    Access, Controller, Effect, Event, Rule, State, Statement, Variable,
};
use cohkit_protocol::execute::{
    self, Changes, Configuration, Fault, Machine, Occasion, Outcome, Receiver,
};
use cohkit_protocol::protocol::{Class, Message, MessageId, Protocol, Right, Type};
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::rows::fault_words;
use cohkit_protocol::terms::{Over, StateId};
use cohkit_protocol::under_way::{Accesses, UnderWay};
use cohkit_protocol::value_text::AgentNames;
use cohkit_system::plan::{Done, Plan};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;

use crate::message::{Agent, FIELDS, HOME};

/// Number of a configuration of an agent for one line; 0 is the initial one.
pub type ConfigurationId = u32;

/// An event as a small number, from [`Program::code`].
pub type EventCode = u16;

/// An event with what comes with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Input {
    /// The event, from [`Program::code`].
    pub code: EventCode,
    /// The sender of a message: a remote's number, or [`HOME`].
    pub sender: Agent,
    /// The number of the agent itself: a remote's, or [`HOME`].
    pub own: Agent,
    /// The message's fields.
    pub fields: [u16; FIELDS],
}

impl Input {
    /// The same, whoever sends it to whom.
    fn of_anyone(self) -> Input {
        Input {
            sender: HOME,
            own: HOME,
            ..self
        }
    }
}

/// An act that is kept without a list of its own.
pub type Act = execute::Act<[u16; FIELDS]>;

/// Most remotes for which a program keeps the transitions that depend on them.
const MOST_KEPT: u16 = 16;

/// The bit of an act that is there for good.
const LASTS: u32 = 1 << 31;

/// Configurations that are made anew, at least, before it is looked for those that nobody has.
const SWEPT_AFTER: usize = 1 << 16;

/// The number by which messages know an agent.
#[inline]
pub fn number_of(receiver: Receiver) -> Agent {
    match receiver {
        Receiver::Home | Receiver::HomeAt(_) => HOME,
        Receiver::Remote(remote) => Agent(remote),
    }
}

/// What an agent does with an input.
#[derive(Clone, Copy, Debug)]
pub struct Transition {
    /// The configuration afterwards.
    pub next: ConfigurationId,
    first: u32,
    count: u16,
    /// Whether the input is taken.
    pub answer: Answer,
    /// What the configuration before gives.
    pub before: About,
    /// What the configuration afterwards gives.
    pub after: About,
    /// Whether the rule starts a memory read.
    pub reads: bool,
    /// Whether the rule starts a memory write.
    pub writes: bool,
    /// Whether the rule sends a forward.
    pub forwards: bool,
    /// Whether the rule performs a write in the cache's own copy.
    pub performs: bool,
    /// What its `done` ends.
    pub done: Done,
    /// Whether the write that its `done` performs keeps a part of the line as it was.
    pub keeps_a_part: bool,
    /// Whether the access is to be tried again.
    pub retries: bool,
    /// True if it gives up a store whose bytes have been sent.
    pub gives_up: bool,
    /// Number of the fault of an [`Answer::Fault`], whose acts are those of the whole rule, as far as it can be executed.
    fault: u16,
}

impl Transition {
    /// What it does, as indices for [`Program::act`].
    #[inline]
    pub fn acts(&self) -> std::ops::Range<u32> {
        self.first..self.first + u32::from(self.count)
    }
}

/// What becomes of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It is taken.
    Take,
    /// It waits where it is.
    Leave,
    /// A local operation is refused.
    Refuse,
    /// There is no rule for it.
    Unexpected,
    /// A rule could not be executed: a value out of its range, or no receiver.
    Fault,
    /// The machine has not been asked yet; never the answer of [`Program::step`].
    Unknown,
}

/// What a configuration gives its agent.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// What the agent may do.
    pub right: Right,
    /// Whether the agent has the line's bytes.
    pub holds: bool,
    /// Whether the state waits for nothing.
    pub stable: bool,
}

impl About {
    fn of(state: &State) -> About {
        About {
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
    done: Done::Absent,
    keeps_a_part: false,
    retries: false,
    gives_up: false,
    fault: 0,
};

const NOTHING: About = About {
    right: Right::None,
    holds: false,
    stable: false,
};

/// Whether these slots say nothing of each remote. There may be thousands, so they are looked at many at a time.
fn are_shared(of_each: &[Range<usize>], slots: &[u16]) -> bool {
    let zero = |some: &[u16]| some.iter().fold(0, |all, slot| all | slot) == 0;
    of_each
        .iter()
        .all(|of| slots[of.clone()].chunks(64).all(zero))
}

/// A controller with the transitions a run has met.
pub struct Program {
    machine: Machine<'static>,
    /// What follows from each of its rows.
    plans: Vec<Plan>,
    /// Whether caches send the bytes of stores to the home, which performs them.
    pub sends_stores: bool,
    /// True if an atomic fetches the line into the cache.
    pub atomics_fetch: bool,
    /// Whether a home keeps the bytes of every write until its memory takes them.
    pub stores_later: bool,
    messages: u16,
    /// The first code after those of messages, accesses and local operations.
    after_locals: u16,
    /// A row of the table has `1 << code_bits` entries.
    code_bits: u32,
    /// Alternatives of what may follow a memory read.
    choices: u8,
    /// Whether configuration and event alone decide; then `table` is used, otherwise `memo`.
    dense: bool,
    /// Whether transitions that depend on who sends, or on registers, are not kept.
    direct: bool,
    /// Slots that speak of each remote. Where one of them says anything, equal configurations need not have one number.
    of_each: Vec<Range<usize>>,
    /// The other slots that are kept.
    others: Vec<usize>,
    /// The configuration that is executed on.
    scratch: Configuration,
    /// Numbers that no line has, and how many lines had one, as of the last sweep.
    free: Vec<ConfigurationId>,
    had: usize,
    /// Rows of transitions, one for each configuration.
    table: Vec<Transition>,
    memo: FxHashMap<(ConfigurationId, Input), Transition>,
    /// Configurations, each as its state and its slots but for registers.
    configurations: Vec<u16>,
    /// How many of these numbers one takes.
    stride: usize,
    /// What each state gives.
    about: Vec<About>,
    numbers: FxHashMap<Vec<u16>, ConfigurationId>,
    /// The configuration that has been executed on as it is kept, while its number is looked for.
    key: Vec<u16>,
    /// The configurations in which the agents of each kind begin.
    begins: Vec<ConfigurationId>,
    /// The names of the remotes.
    names: Vec<String>,
    /// Whether each rule says to try again.
    retries: Vec<bool>,
    /// The slots of registers, which come last and are not kept.
    registers: Range<usize>,
    /// What the transition that was asked for last makes of registers.
    changes: Changes,
    /// The number of the home that is at hand.
    at_home: u16,
    /// Classes of the messages.
    classes: Vec<Option<Class>>,
    acts: Vec<Act>,
    /// Of a direct program the acts of transitions that are kept: their indices have the bit [`LASTS`].
    lasting: Vec<Act>,
    /// Whether each rule has been executed.
    executed: Vec<bool>,
    /// Reasons of the transitions that are [`Answer::Fault`].
    faults: Vec<Fault>,
}

impl Program {
    /// Lays out the controller of a system's remotes or of its home.
    ///
    /// # Errors
    /// A sentence, if a message has more fields than the simulator carries.
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
            let store = |under_way: &UnderWay| under_way.access == Access::Store;
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
        // What depends on registers hardly ever comes again.
        let direct = !dense && (remotes > MOST_KEPT || !machine.registers().is_empty());
        let of_each = |v: &Variable| {
            let over =
                |over: Over| matches!(v.ty, Type::Array { over: first, .. } if first == over);
            !v.register && (over(Over::Remotes) || v.ty == Type::RemoteSet)
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
            about: controller.states.iter().map(About::of).collect(),
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

    /// The configurations in which the agents of each kind begin.
    pub fn begins(&self) -> &[ConfigurationId] {
        &self.begins
    }

    /// The name of a remote.
    pub fn remote_name(&self, remote: Agent) -> String {
        self.names[remote.index()].clone()
    }

    /// Whether the agent has registers.
    pub fn has_registers(&self) -> bool {
        !self.registers.is_empty()
    }

    /// What the registers begin with.
    pub fn first_registers(&self) -> Vec<u16> {
        self.machine.initial().slots[self.registers.clone()].to_vec()
    }

    /// As [`Program::step`], of an agent with these registers, about a line of this home. They stay as they are;
    /// [`Program::change`] makes of them what becomes of them if the transition is taken.
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

    /// The registers become what the transition that was asked for last makes of them. Whether they differ from before.
    pub fn change(&mut self, registers: &mut [u16]) -> bool {
        self.changes.redo(registers)
    }

    /// Whether a row for an event in a configuration's state has a guard, so that it may be taken at another time.
    pub fn may_later(&self, configuration: ConfigurationId, event: Event) -> bool {
        let state = self.state(configuration);
        let mut rules = self.controller().rules.iter();
        rules.any(|rule| {
            usize::from(rule.state.0) == state && rule.event == event && rule.guard.is_some()
        })
    }

    /// The controller that is executed.
    pub fn controller(&self) -> &Controller {
        self.machine.controller()
    }

    /// Number of alternatives among which the agent is free to choose when memory has been read.
    pub fn choices(&self) -> u8 {
        self.choices
    }

    /// The number of an event.
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

    /// The event with this number.
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

    /// Asks memory for a configuration.
    #[inline]
    pub fn prefetch(&self, configuration: ConfigurationId) {
        let kept = self.kept(configuration);
        kept.iter().step_by(32).for_each(|part| prefetch(part));
    }

    /// The transition of a configuration on an input.
    #[inline]
    pub fn step(&mut self, configuration: ConfigurationId, input: &Input) -> Transition {
        // Empty unless the program is dense.
        match self.table.get(self.place(configuration, input.code)) {
            Some(known) if known.answer != Answer::Unknown => *known,
            _ => self.look_up(configuration, input),
        }
    }

    /// A configuration in which a home of which memory is lent knows whether it may be written.
    pub fn lent(&mut self, configuration: ConfigurationId, writes: bool) -> ConfigurationId {
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

    /// A configuration with another state.
    pub fn moved(&mut self, configuration: ConfigurationId, to: StateId) -> ConfigurationId {
        let kept = &self.configurations[configuration as usize * self.stride..][1..self.stride];
        self.scratch.slots.copy_from_slice(kept);
        self.scratch.state = to.0;
        self.number()
    }

    fn look_up(&mut self, configuration: ConfigurationId, input: &Input) -> Transition {
        let key = match self.direct {
            true => input.of_anyone(),
            false => *input,
        };
        if let Some(known) = self.memo.get(&(configuration, key)) {
            return *known;
        }
        // Without registers there are none to give.
        let mut transition = self.execute(configuration, input, &mut []);
        let kept = self.direct && !self.changes.asks_who();
        if kept
            && [configuration, transition.next]
                .iter()
                .all(|&of| self.is_shared(of))
        {
            if !transition.acts().is_empty() {
                let first = self.lasting.len() as u32 | LASTS;
                let acts = transition.acts().map(|act| self.acts[act as usize]);
                self.lasting.extend(acts);
                transition.first = first;
            }
            self.memo.insert((configuration, key), transition);
        }
        transition
    }

    /// Nobody asks for the acts of earlier transitions any more.
    #[inline]
    pub fn forget(&mut self) {
        if self.direct {
            self.acts.clear();
        }
    }

    /// Whether a number stays that of the same configuration.
    pub fn is_numbered(&self) -> bool {
        self.of_each.is_empty()
    }

    /// Whether so many configurations have been made that it is worth a [`Program::sweep`].
    pub fn is_full(&self) -> bool {
        let made = self.count() - self.free.len() - self.had;
        !self.is_numbered() && made > self.had.max(SWEPT_AFTER)
    }

    /// Numbers of configurations that are not among these, nor those in which agents begin, are used again.
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

    /// The act with this index.
    #[inline]
    pub fn act(&self, index: u32) -> Act {
        match index & LASTS {
            0 => self.acts[index as usize],
            _ => self.lasting[(index ^ LASTS) as usize],
        }
    }

    /// What a configuration gives.
    #[inline]
    pub fn about(&self, configuration: ConfigurationId) -> About {
        self.about[self.state(configuration)]
    }

    /// A configuration, in which registers are zero.
    pub fn configuration(&self, number: ConfigurationId) -> Configuration {
        let kept = self.kept(number);
        let (state, mut slots) = (kept[0], kept[1..].to_vec());
        slots.resize(self.registers.end, 0);
        Configuration { state, slots }
    }

    /// Numbers of configurations that have been given.
    fn count(&self) -> usize {
        self.configurations.len() / self.stride
    }

    /// A configuration, as its state and its slots but for registers.
    #[inline]
    fn kept(&self, number: ConfigurationId) -> &[u16] {
        &self.configurations[number as usize * self.stride..][..self.stride]
    }

    /// Whether a configuration is the one that has been executed on.
    fn is_scratch(&self, number: ConfigurationId) -> bool {
        let kept = self.kept(number);
        kept[0] == self.scratch.state && kept[1..] == self.scratch.slots[..]
    }

    /// Whether equal configurations have its number.
    fn is_shared(&self, number: ConfigurationId) -> bool {
        are_shared(&self.of_each, &self.kept(number)[1..])
    }

    /// Index of a configuration's state.
    pub fn state(&self, configuration: ConfigurationId) -> usize {
        self.configurations[configuration as usize * self.stride].into()
    }

    /// Text of a configuration, with these registers: `IM_A owed=1`.
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

    /// Indices of the controller's rules that this run has executed, in order.
    pub fn executed(&self) -> Vec<u32> {
        let rules = self.executed.iter().zip(0..);
        rules
            .filter_map(|(&executed, rule)| executed.then_some(rule))
            .collect()
    }

    /// The number of the configuration that has been executed on.
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

    /// Returns the sentence that says why a rule of `agent` could not be executed.
    pub fn fault(&self, agent: &str, messages: &[Message], transition: &Transition) -> String {
        let fault = &self.faults[usize::from(transition.fault)];
        fault_words(agent, messages, self.machine.controller(), fault)
    }

    /// Keeps the acts of a transition.
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

    /// Asks the machine, and keeps what it says.
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
        let occasion = Occasion {
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
                // A row that lacks room for what it sends waits, whatever else is wrong with it.
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
                transition.keeps_a_part = plan.keeps_a_part;
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
