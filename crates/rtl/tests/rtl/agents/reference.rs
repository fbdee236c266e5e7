//! Reaction of an agent by the executor of rows, with symbols for data.

use super::values::Input;
use cohkit_protocol::controller::{Controller, Event};
use cohkit_protocol::execute::{Act, Machine, Outcome, Receiver, Trigger};
use cohkit_protocol::protocol::{MessageId, StateId};
use cohkit_rtl::agents::layout::{Agent, Agents};
use cohkit_system::agent::{
    home, remote, Bytes, HomeContext, HomeInput, MemoryOp, OutgoingMessage, RemoteContext,
    RowContext, RowProblem,
};
use cohkit_system::plan::{Plan, ProtocolFacts};

/// Origin of data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Origin {
    /// No data.
    #[default]
    None,
    /// The remote's copy, or memory.
    Own,
    /// The message, or data read from memory.
    Received,
    /// The bytes of the outstanding write.
    Store,
}

/// A symbol for data: its origin, and whether it includes the write that the row performs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Symbol {
    /// Origin of the data.
    pub origin: Origin,
    /// True if the row's write has been performed in it.
    pub written: bool,
}

/// Kind of completion of an access, in the order of the printed values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Completion {
    /// None.
    #[default]
    Not,
    /// A read.
    Read,
    /// A write in a copy.
    Write,
    /// A write that the home has performed.
    Sent,
}

/// A message to one receiver; `None` is the home.
pub type Sent = (MessageId, Option<u16>, Vec<u16>, Symbol);

/// Effect of an event on an agent and its environment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reaction {
    /// Number of the printed effect: no row, take, stall, refuse.
    pub effect: u16,
    /// State after the event.
    pub state: u16,
    /// Variables after the event.
    pub slots: Vec<u16>,
    /// Messages, in the order in which they are sent.
    pub sends: Vec<Sent>,
    /// Operations on memory: write, defer, commit, start read, start write, start store, whole line.
    pub memory: [bool; 7],
    /// Acknowledged operation of the device.
    pub acknowledged: Option<Event>,
    /// Copy of a remote after the row.
    pub copy: Origin,
    /// Completion of an access.
    pub done: Completion,
    /// True if a write is performed in the remote's copy, after the statements.
    pub performs: bool,
    /// True if a write whose bytes were sent is abandoned.
    pub abandons: bool,
    /// Bulk transitions of a remote.
    pub bulk: Vec<(StateId, StateId)>,
}

/// Executor of the rows of an agent.
pub struct Reference<'a> {
    /// Agents of the protocol.
    agents: &'a Agents<'a>,
    /// The agent.
    agent: &'a Agent,
    /// Its machine.
    pub machine: Machine<'a>,
    /// Its table.
    controller: &'a Controller,
    /// Analysis of the protocol.
    facts: ProtocolFacts,
    /// Analysis of each row, made for this test.
    plans: Vec<Plan>,
}

impl<'a> Reference<'a> {
    /// Prepares the executor.
    pub fn new(agents: &'a Agents<'a>, agent: &'a Agent) -> Reference<'a> {
        let controller = agents.controller(agent);
        let facts = ProtocolFacts::new(agents.protocol, agents.home);
        let accesses = (!agent.is_home).then_some(&facts.accesses);
        Reference {
            agents,
            agent,
            machine: Machine::new(controller, agents.remotes),
            controller,
            plans: Plan::of(controller, accesses),
            facts,
        }
    }

    /// Returns the reaction to an input, and the row that takes it; `None` if the row cannot be executed.
    pub fn react(&self, input: &Input) -> Option<(Reaction, Option<usize>)> {
        let index = |remote: u16| remote.checked_sub(1);
        let trigger = Trigger {
            event: input.event,
            sender: index(input.sender),
            executing_remote: index(input.executing),
            home: 0,
            fields: &input.fields,
        };
        let mut configuration = input.configuration.clone();
        let outcome = self
            .machine
            .step(&mut configuration, trigger, &mut &*self.controller);
        let (effect, taken) = match outcome.ok()? {
            Outcome::Unexpected => (0, None),
            Outcome::Taken { rule, acts } => (1, Some((rule, acts))),
            Outcome::Stall => (2, None),
            Outcome::Refuse => (3, None),
        };
        let mut recorder = Recorder {
            reaction: Reaction {
                effect,
                state: configuration.state,
                slots: configuration.slots,
                ..Reaction::default()
            },
            ..Recorder::default()
        };
        let Some((rule, acts)) = taken else {
            return Some((recorder.reaction, None));
        };
        recorder.acts = acts.into_iter();
        self.apply(&mut recorder, rule, input.event);
        Some((recorder.reaction, Some(rule)))
    }

    /// Applies the acts of a row.
    fn apply(&self, recorder: &mut Recorder, rule: usize, event: Event) {
        let symbol = |origin| Symbol {
            origin,
            written: false,
        };
        let message = match event {
            Event::Message(message) => Some(message),
            _ => None,
        };
        let has_line = message.is_some_and(|m| self.agents.protocol.message(m).carries.line());
        let received = symbol(Origin::Received);
        if self.agent.is_home {
            let has_data = has_line || matches!(event, Event::MemoryData(_));
            recorder.memory = symbol(Origin::Own);
            let input = HomeInput {
                message,
                carried_copy: has_data.then_some(&received),
            };
            home(&self.facts, input, recorder).expect("row that can be applied");
            return;
        }
        let effects = &self.plans[rule].effects;
        let carried = has_line.then_some(received);
        let copy = remote(&self.facts, effects, symbol(Origin::Own), carried, recorder);
        recorder.reaction.copy = copy.expect("row that can be applied").origin;
    }
}

/// Environment of a row that records its effects.
#[derive(Default)]
struct Recorder {
    /// Acts that are not applied yet.
    acts: std::vec::IntoIter<Act>,
    /// Effects so far.
    reaction: Reaction,
    /// Content of memory.
    memory: Symbol,
}

impl RowContext for Recorder {
    type Copy = Symbol;
    type Fields = Vec<u16>;
    type Error = String;

    fn next_act(&mut self) -> Option<Act> {
        self.acts.next()
    }

    fn is_current(&self, _: &Symbol) -> bool {
        true
    }

    fn report(&mut self, problem: RowProblem<Symbol>) -> Result<(), String> {
        Err(format!("{problem:?}"))
    }

    fn send(&mut self, outgoing: OutgoingMessage<Symbol>) -> Result<(), String> {
        let data = match outgoing.bytes {
            Bytes::None => Symbol::default(),
            Bytes::Line(symbol) => symbol,
            Bytes::Write => Symbol {
                origin: Origin::Store,
                written: false,
            },
        };
        let to = match outgoing.to {
            Receiver::Home => None,
            Receiver::HomeAt(_) => return Err("several homes".to_string()),
            Receiver::Remote(remote) => Some(remote),
        };
        let sent = (outgoing.message, to, outgoing.fields, data);
        self.reaction.sends.push(sent);
        Ok(())
    }
}

impl RemoteContext for Recorder {
    fn write(&mut self, copy: Symbol) -> Result<Symbol, String> {
        self.reaction.done = Completion::Write;
        Ok(Symbol {
            written: true,
            ..copy
        })
    }

    fn write_in_place(&mut self, copy: Symbol) -> Result<Symbol, String> {
        self.reaction.performs = true;
        Ok(Symbol {
            written: true,
            ..copy
        })
    }

    fn read(&mut self, _: &Symbol) -> Result<(), String> {
        self.reaction.done = Completion::Read;
        Ok(())
    }

    fn complete_sent_write(&mut self, _: Option<&Symbol>) -> Result<(), String> {
        self.reaction.done = Completion::Sent;
        Ok(())
    }

    fn abandon_write(&mut self) {
        self.reaction.abandons = true;
    }

    fn bulk_transition(&mut self, from: StateId, to: StateId) -> Result<(), String> {
        self.reaction.bulk.push((from, to));
        Ok(())
    }
}

impl HomeContext for Recorder {
    fn mark_stale(&self, copy: &Symbol) -> Symbol {
        *copy
    }

    fn memory(&mut self) -> Symbol {
        self.memory
    }

    fn may_read_memory(&self) -> bool {
        true
    }

    fn set_memory(&mut self, copy: Symbol) -> Result<(), String> {
        self.reaction.memory[0] = true;
        self.memory = copy;
        Ok(())
    }

    fn store(&mut self, _: bool) -> Result<(), String> {
        self.reaction.memory[0] = true;
        self.memory.written = true;
        Ok(())
    }

    fn defer_write(&mut self, _: bool) -> Result<(), String> {
        self.reaction.memory[1] = true;
        Ok(())
    }

    fn commit_deferred(&mut self) -> Result<(), String> {
        self.reaction.memory[2] = true;
        // Memory after all writes of the row.
        self.memory = Symbol {
            origin: Origin::Own,
            written: true,
        };
        Ok(())
    }

    fn start(&mut self, operation: MemoryOp<Symbol>) -> Result<(), String> {
        match operation {
            MemoryOp::Read => self.reaction.memory[3] = true,
            MemoryOp::Write(_) => self.reaction.memory[4] = true,
            MemoryOp::Store { whole } => {
                self.reaction.memory[5] = true;
                self.reaction.memory[6] = whole;
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, local: u8) -> Result<(), String> {
        self.reaction.acknowledged = Some(Event::Local(local));
        Ok(())
    }

    fn acknowledge_unlock(&mut self) {
        self.reaction.acknowledged = Some(Event::Unlock);
    }
}
