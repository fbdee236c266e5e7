//! Controllers laid out for fast execution.
//!
//! A [`Program`] is a table from (configuration, event) to a transition. Every entry is computed by
//! [`cohkit_protocol::execute::Machine`] when it is first needed and kept, so what runs is the
//! controller itself: the object that the checker explores. Configurations (a state and values of
//! variables) are numbered in the order in which a run meets them; the initial one is 0.

use cohkit_protocol::controller::{Access, Controller, Event};
use cohkit_protocol::execute::{Act, Configuration, Machine, Occasion, Outcome, Receiver};
use cohkit_protocol::protocol::{MessageId, Protocol, Right};
use rustc_hash::FxHashMap;

use crate::message::{FIELDS, HOME};

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
    pub sender: u8,
    /// The number of the agent itself: a remote's, or [`HOME`].
    pub own: u8,
    /// The message's fields.
    pub fields: [u16; FIELDS],
}

/// What an agent does with an input.
#[derive(Clone, Copy, Debug)]
pub struct Transition {
    /// Whether the input is taken.
    pub answer: Answer,
    /// The configuration afterwards.
    pub next: ConfigurationId,
    first: u32,
    count: u16,
    /// Whether the rule starts a memory read.
    pub reads: bool,
    /// Whether the rule starts a memory write.
    pub writes: bool,
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
#[repr(u8)]
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
}

/// One act of a transition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Deed {
    Send {
        kind: MessageId,
        to: u8,
        fields: [u16; FIELDS],
    },
    WriteMemory,
    Done,
    StartRead,
    StartWrite,
    StartStore {
        whole: bool,
    },
    Acknowledge(u8),
    Unlocked,
}

/// What a configuration gives its agent.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Index of the state.
    pub state: u16,
    /// What the agent may do.
    pub right: Right,
    /// Whether the agent has the line's bytes.
    pub holds: bool,
    /// Whether the state waits for nothing.
    pub stable: bool,
}

const UNKNOWN: u32 = u32::MAX;

/// A controller with the transitions a run has met.
pub struct Program {
    controller: Controller,
    remotes: u8,
    messages: u16,
    codes: usize,
    /// Alternatives of what may follow a memory read.
    choices: u8,
    /// Whether configuration and event alone decide; then `table` is used, otherwise `memo`.
    dense: bool,
    table: Vec<u32>,
    memo: FxHashMap<(ConfigurationId, Input), u32>,
    configurations: Vec<Configuration>,
    about: Vec<About>,
    numbers: FxHashMap<Configuration, ConfigurationId>,
    transitions: Vec<Transition>,
    deeds: Vec<Deed>,
    /// Rules of the transitions that take their input.
    rules: Vec<u32>,
}

impl Program {
    /// Lays out the controller of a system's remotes or of its home.
    ///
    /// # Errors
    /// A sentence, if a message has more fields than the simulator carries.
    pub fn new(
        protocol: &Protocol,
        controller: &Controller,
        remotes: u8,
        home: bool,
    ) -> Result<Program, String> {
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
        let codes = usize::from(messages)
            + Access::ALL.len()
            + controller.locals.len()
            + 2
            + usize::from(choices);
        let bare = protocol.messages.iter().all(|m| m.fields.is_empty());
        let alone = remotes == 1 || (!home && controller.variables.is_empty());
        let mut program = Program {
            controller: controller.clone(),
            remotes,
            messages,
            codes,
            choices,
            dense: bare && alone,
            table: Vec::new(),
            memo: FxHashMap::default(),
            configurations: Vec::new(),
            about: Vec::new(),
            numbers: FxHashMap::default(),
            transitions: Vec::new(),
            deeds: Vec::new(),
            rules: Vec::new(),
        };
        let initial = Machine::new(controller, remotes).initial();
        program.number(&initial);
        Ok(program)
    }

    /// The controller that is executed.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Number of alternatives among which the agent is free to choose when memory has been read.
    pub fn choices(&self) -> u8 {
        self.choices
    }

    /// The number of an event.
    #[inline]
    pub fn code(&self, event: Event) -> EventCode {
        let accesses = Access::ALL.len() as u16;
        let after = self.messages + accesses;
        let locals = self.controller.locals.len() as u16;
        match event {
            Event::Message(message) => message.0,
            Event::Access(access) => self.messages + access as u16,
            Event::Local(local) => after + u16::from(local),
            Event::Unlock => after + locals,
            Event::MemoryDone => after + locals + 1,
            Event::MemoryData(choice) => after + locals + 2 + u16::from(choice),
        }
    }

    /// The event with this number.
    pub fn event(&self, code: EventCode) -> Event {
        let after = self.messages + Access::ALL.len() as u16;
        let locals = self.controller.locals.len() as u16;
        if code < self.messages {
            Event::Message(MessageId(code))
        } else if code < after {
            Event::Access(Access::ALL[usize::from(code - self.messages)].0)
        } else if code < after + locals {
            Event::Local((code - after) as u8)
        } else {
            match code - after - locals {
                0 => Event::Unlock,
                1 => Event::MemoryDone,
                choice => Event::MemoryData((choice - 2) as u8),
            }
        }
    }

    /// The transition of a configuration on an input.
    #[inline]
    pub fn step(&mut self, configuration: ConfigurationId, input: &Input) -> Transition {
        let known = if self.dense {
            self.table[configuration as usize * self.codes + usize::from(input.code)]
        } else {
            *self.memo.get(&(configuration, *input)).unwrap_or(&UNKNOWN)
        };
        if known != UNKNOWN {
            return self.transitions[known as usize];
        }
        self.execute(configuration, input)
    }

    /// The act with this index.
    #[inline]
    pub fn act(&self, index: u32) -> Deed {
        self.deeds[index as usize]
    }

    /// What a configuration gives.
    #[inline]
    pub fn about(&self, configuration: ConfigurationId) -> About {
        self.about[configuration as usize]
    }

    /// A configuration in words: `IM_A owed=1`.
    pub fn words(&self, configuration: ConfigurationId) -> String {
        let configuration = &self.configurations[configuration as usize];
        let mut words = self.controller.states[configuration.state as usize]
            .name
            .clone();
        let machine = Machine::new(&self.controller, self.remotes);
        for (index, variable) in self.controller.variables.iter().enumerate() {
            use cohkit_protocol::protocol::Type;
            if matches!(variable.ty, Type::PerRemote { .. } | Type::RemoteSet) {
                continue;
            }
            let value = configuration.slots[machine.slot(index as u16)];
            if value != 0 {
                let label = variable.labels.get(value as usize);
                let value = label.cloned().unwrap_or_else(|| value.to_string());
                words.push_str(&format!(" {}={value}", variable.name));
            }
        }
        words
    }

    /// Indices of the controller's rules that this run has executed, in order.
    pub fn executed(&self) -> Vec<u32> {
        let mut rules = self.rules.clone();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    fn number(&mut self, configuration: &Configuration) -> ConfigurationId {
        if let Some(&number) = self.numbers.get(configuration) {
            return number;
        }
        let number = self.configurations.len() as ConfigurationId;
        let state = &self.controller.states[configuration.state as usize];
        self.about.push(About {
            state: configuration.state,
            right: state.right,
            holds: state.holds_line,
            stable: state.stable(),
        });
        self.configurations.push(configuration.clone());
        self.numbers.insert(configuration.clone(), number);
        if self.dense {
            self.table.resize(self.table.len() + self.codes, UNKNOWN);
        }
        number
    }

    /// Asks the machine, and keeps what it says.
    #[cold]
    fn execute(&mut self, from: ConfigurationId, input: &Input) -> Transition {
        let mut configuration = self.configurations[from as usize].clone();
        let remote = |number: u8| (number != HOME).then_some(number);
        let occasion = Occasion {
            event: self.event(input.code),
            sender: remote(input.sender),
            own: remote(input.own),
            fields: &input.fields,
        };
        let machine = Machine::new(&self.controller, self.remotes);
        let mut tables = &self.controller;
        let result = machine.step(&mut configuration, occasion, &mut tables);
        let mut transition = Transition {
            answer: Answer::Fault,
            next: from,
            first: 0,
            count: 0,
            reads: false,
            writes: false,
        };
        match result {
            Err(_) => {}
            Ok(Outcome::Unexpected) => transition.answer = Answer::Unexpected,
            Ok(Outcome::Leave) => transition.answer = Answer::Leave,
            Ok(Outcome::Refuse) => transition.answer = Answer::Refuse,
            Ok(Outcome::Taken { rule, acts }) => {
                transition.answer = Answer::Take;
                self.rules.push(rule as u32);
                let start = self.deeds.len() as u32;
                self.deeds.extend(acts.iter().map(deed));
                transition.first = start;
                transition.count = acts.len() as u16;
                let new = &self.deeds[start as usize..];
                transition.reads = new.contains(&Deed::StartRead);
                transition.writes = new
                    .iter()
                    .any(|deed| matches!(deed, Deed::StartWrite | Deed::StartStore { .. }));
                transition.next = self.number(&configuration);
            }
        }
        let index = self.transitions.len() as u32;
        self.transitions.push(transition);
        if self.dense {
            self.table[from as usize * self.codes + usize::from(input.code)] = index;
        } else {
            self.memo.insert((from, *input), index);
        }
        transition
    }
}

fn deed(act: &Act) -> Deed {
    match act {
        Act::Send {
            message,
            to,
            fields,
        } => {
            let mut values = [0; FIELDS];
            values[..fields.len()].copy_from_slice(fields);
            Deed::Send {
                kind: *message,
                to: match to {
                    Receiver::Home => HOME,
                    Receiver::Remote(remote) => *remote,
                },
                fields: values,
            }
        }
        Act::WriteMemory => Deed::WriteMemory,
        Act::Done => Deed::Done,
        Act::StartRead => Deed::StartRead,
        Act::StartWrite => Deed::StartWrite,
        Act::StartStore { whole } => Deed::StartStore { whole: *whole },
        Act::Acknowledge(local) => Deed::Acknowledge(*local),
        Act::Unlocked => Deed::Unlocked,
    }
}
