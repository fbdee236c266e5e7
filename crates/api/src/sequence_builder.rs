//! Message sequence along a path, and the state at its end, as text.
//!
//! A step is described by its kind and by its changes: messages sent, and agents in other states.

use cohkit_base::sequence::{homes, lifeline, Action, Sequence, Step as SequenceStep};
use cohkit_protocol::execute::{Configuration, Machine};
use cohkit_protocol::terms::MessageId;
use cohkit_protocol::value_text::AgentNames;
use cohkit_system::data::{Current, Data};
use cohkit_system::state::{
    Arrival, InFlightMessage, Line, Lock, Operation, Step, System, SystemState,
};
use serde_json::{json, Value};

/// The parts of a message that do not change while it is in flight.
#[derive(Clone, PartialEq)]
struct MessageHeader {
    /// Index of the line, counted from 0.
    line: u8,
    /// Message type.
    message: MessageId,
    /// Sender, as an index into the agents of the sequence.
    from: usize,
    /// Receiver, as an index into the agents of the sequence.
    to: usize,
    /// Values of the message's fields, in the order of its declaration.
    fields: Vec<u16>,
}

/// A message sequence under construction.
pub(crate) struct SequenceBuilder<'s> {
    /// System whose steps are described.
    system: &'s System<'s>,
    /// Controller of the remotes, then that of the home, to print configurations.
    machines: [Machine<'s>; 2],
    /// Names of remotes and homes in the sequence.
    names: AgentNames,
    /// Sequence so far. Its agents are the remotes, the homes, the memory and, if the home has local operations, the
    /// device, in this order.
    sequence: Sequence,
    /// Messages in flight, oldest first, with their numbers.
    in_flight: Vec<(MessageHeader, u32)>,
    /// Number of messages sent so far; it numbers the next message.
    sent_messages: u32,
}

impl<'s> SequenceBuilder<'s> {
    /// Creates an empty sequence for the system's agents.
    pub fn new(system: &'s System<'s>) -> SequenceBuilder<'s> {
        let protocol = system.protocol;
        let remotes = (0..u16::from(system.remotes)).map(|number| {
            let name = protocol.remote_name(&system.of_each, number);
            lifeline(&name, "remote")
        });
        let names = AgentNames {
            remotes: remotes.collect(),
            homes: homes(&system.home.name, protocol.homes),
        };
        let mut agents = [&names.remotes[..], &names.homes].concat();
        agents.push("memory".into());
        if !system.home.locals.is_empty() {
            agents.push("device".into());
        }
        SequenceBuilder {
            system,
            machines: [
                Machine::new(&protocol.remote, system.of_each),
                Machine::new(system.home, system.of_each),
            ],
            names,
            sequence: Sequence {
                agents,
                steps: Vec::new(),
            },
            in_flight: Vec::new(),
            sent_messages: 0,
        }
    }

    /// Returns the sequence so far.
    pub fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    /// Name of an agent, and the text of its state for a line. `agent` is a remote, or `None` for the home.
    pub fn agent_and_state<D: Data>(
        &self,
        agent: Option<u8>,
        number: u8,
        state: &SystemState<D>,
    ) -> (String, String) {
        let line = &state.lines[usize::from(number)];
        let (index, text) = match agent {
            Some(remote) => {
                let remote = usize::from(remote);
                (remote, self.state(0, &line.remotes[remote].configuration))
            }
            None => (self.home(number), self.state(1, &line.home)),
        };
        (self.sequence.agents[index].clone(), text)
    }

    /// Appends a remark about an agent that is a remote, or `None` for the home of the line.
    pub fn append_remark(&mut self, agent: Option<u8>, line: u8, text: &str) {
        let agent = agent.map_or(self.home(line), usize::from);
        self.record_action(agent, line, text);
    }

    /// Index of the home of a line among the agents of the sequence; lines are interleaved between homes.
    fn home(&self, line: u8) -> usize {
        usize::from(self.system.remotes) + usize::from(u16::from(line) % self.system.protocol.homes)
    }

    /// Index of the memory among the agents of the sequence; the device has the next index.
    fn memory(&self) -> usize {
        usize::from(self.system.remotes) + usize::from(self.system.protocol.homes)
    }

    /// Appends an action of an agent. The line is recorded only if the system has several. Remotes' steps are
    /// invisible to the home.
    fn step(&mut self, agent: usize, line: u8, action: Action) {
        self.sequence.steps.push(SequenceStep {
            agent,
            action,
            line: (self.system.lines > 1).then_some(line.into()),
            visible: agent >= usize::from(self.system.remotes),
        });
    }

    /// Appends an action that is only described by a text.
    fn record_action(&mut self, agent: usize, line: u8, description: impl Into<String>) {
        let description = description.into();
        self.step(agent, line, Action::Does { what: description });
    }

    /// Appends a step with its consequences: the messages that it sends, and the new states of agents. `before` and
    /// `after` are the states around the step.
    pub fn append_step<D: Data>(&mut self, step: Step, [before, after]: [&SystemState<D>; 2]) {
        let (memory, device) = (self.memory(), self.memory() + 1);
        let local = |number: u8| self.system.home.locals[usize::from(number)].name.clone();
        match step {
            Step::Access(line, remote, access) => {
                self.record_action(remote.into(), line, access.name());
            }
            Step::Hit(line, remote) => self.record_action(remote.into(), line, "store"),
            Step::Deliver(arrival) | Step::DeliverChoosing(arrival, _) => {
                if let Some(flight) = before.network.at(arrival) {
                    let message_header = self.message_header(flight);
                    self.record_receive(&message_header);
                }
            }
            Step::StallAtHead(order) => {
                if let Some(flight) = before.network.at(Arrival::Ordered(order)) {
                    let agent = flight.to.map_or(self.home(flight.line), usize::from);
                    let (line, description) = before.describe_step(self.system, step);
                    self.record_action(agent, line.unwrap_or(0), description);
                }
            }
            Step::MemoryOperation(line) => {
                let description = match before.lines[usize::from(line)].operation {
                    Operation::Read => "is read",
                    _ => "is written",
                };
                self.record_action(memory, line, description);
            }
            Step::MemoryData(line, _) => {
                self.record_action(self.home(line), line, "takes what memory has read");
            }
            Step::MemoryDone(line) => {
                self.record_action(self.home(line), line, "hears that memory is done");
            }
            Step::RequestLocal(line, number) => {
                let description = format!("asks for {}", local(number));
                self.record_action(device, line, description);
            }
            Step::Local(line) => {
                let requested = before.lines[usize::from(line)].requested;
                let description = requested.map_or("a local operation".into(), local);
                self.record_action(self.home(line), line, format!("takes {description}"));
            }
            Step::Unlock(line) => self.record_action(device, line, "unlocks"),
            Step::DeviceWrite(line) => self.record_action(device, line, "writes"),
            Step::RaiseBacking(line, _)
            | Step::LowerBacking(line, _)
            | Step::ExternalWrite(line) => {
                self.record_action(device, line, before.describe_step(self.system, step).1);
            }
        }
        self.record_sends(after);
        self.record_state_changes(before, after);
    }

    /// Returns the constant parts of a message in flight. An end without a number is the home of the line.
    fn message_header<D: Data>(&self, flight: &InFlightMessage<D>) -> MessageHeader {
        let agent_of = |end: Option<u8>| end.map_or(self.home(flight.line), usize::from);
        MessageHeader {
            line: flight.line,
            message: flight.message,
            from: agent_of(flight.from),
            to: agent_of(flight.to),
            fields: flight.fields.clone(),
        }
    }

    /// Records the receipt of a message; of equal messages, the oldest.
    fn record_receive(&mut self, message_header: &MessageHeader) {
        let Some(index) = self
            .in_flight
            .iter()
            .position(|(header, _)| header == message_header)
        else {
            return;
        };
        let (message_header, flight) = self.in_flight.remove(index);
        let action = Action::Receive {
            message: self.message_text(&message_header),
            from: message_header.from,
            flight,
        };
        self.step(message_header.to, message_header.line, action);
    }

    /// Records messages that are in flight now and were not before as sent.
    fn record_sends<D: Data>(&mut self, after: &SystemState<D>) {
        let mut known_headers: Vec<MessageHeader> = self
            .in_flight
            .iter()
            .map(|(header, _)| header.clone())
            .collect();
        for flight in after.network.flights() {
            let message_header = self.message_header(flight);
            if let Some(index) = known_headers
                .iter()
                .position(|header| *header == message_header)
            {
                known_headers.swap_remove(index);
                continue;
            }
            let action = Action::Send {
                message: self.message_text(&message_header),
                to: message_header.to,
                flight: self.sent_messages,
            };
            self.step(message_header.from, message_header.line, action);
            self.in_flight.push((message_header, self.sent_messages));
            self.sent_messages += 1;
        }
    }

    /// Records the new state of each agent whose state as text differs before and after the step.
    fn record_state_changes<D: Data>(&mut self, before: &SystemState<D>, after: &SystemState<D>) {
        for (line, (old, new)) in (0..).zip(before.lines.iter().zip(&after.lines)) {
            let (old, new) = (self.states(line, old), self.states(line, new));
            for ((agent, old), (_, state)) in old.into_iter().zip(new) {
                if old != state {
                    self.step(agent, line, Action::Becomes { state });
                }
            }
        }
    }

    /// Agents that have a state for this line, with the state as text.
    fn states<D: Data>(&self, number: u8, line: &Line<D>) -> Vec<(usize, String)> {
        let remotes = line
            .remotes
            .iter()
            .enumerate()
            .map(|(agent, remote)| (agent, self.state(0, &remote.configuration)));
        let home = self.state(1, &line.home);
        remotes.chain([(self.home(number), home)]).collect()
    }

    /// Text of a configuration: its state and slots. `machine` is 0 for a remote and 1 for a home.
    fn state(&self, machine: usize, configuration: &Configuration) -> String {
        let machine = &self.machines[machine];
        self.names
            .configuration(machine, configuration.state, &configuration.slots)
    }

    /// Text of a message with its fields.
    fn message_text(&self, message_header: &MessageHeader) -> String {
        let message = self.system.protocol.message(message_header.message);
        self.names.message(message, &message_header.fields)
    }

    /// Messages in flight, oldest first: `GetS: cache 0 to directory`.
    pub fn in_flight(&self) -> Vec<String> {
        let agents = &self.sequence.agents;
        let messages = self.in_flight.iter().map(|(message_header, _)| {
            let (from, to) = (&agents[message_header.from], &agents[message_header.to]);
            format!("{}: {from} to {to}", self.message_text(message_header))
        });
        messages.collect()
    }

    /// For each line: its agents with states, permissions and currency of copies, its memory, and the device's lock.
    pub fn lines(&self, system_state: &SystemState<Current>) -> Value {
        let lines = (0..).zip(&system_state.lines).map(|(number, line)| {
            let agents = self.states(number, line).into_iter().map(|(agent, state)| {
                let remote = line.remotes.get(agent);
                let permission = remote.map(|remote| {
                    let state = usize::from(remote.configuration.state);
                    self.system.protocol.remote.states[state].permission
                });
                json!({
                    "agent": self.sequence.agents[agent],
                    "state": state,
                    "permission": permission.map(|permission| format!("{permission:?}").to_lowercase()),
                    "current": remote.map(|remote| remote.copy),
                })
            });
            json!({
                "agents": agents.collect::<Vec<_>>(),
                "memory_current": line.memory,
                "operation": match &line.operation {
                    Operation::Idle => None,
                    Operation::Read => Some("read pending"),
                    Operation::Sampled(_) => Some("read done"),
                    Operation::Write(_) | Operation::Store { .. } => Some("write pending"),
                    Operation::Done => Some("write done"),
                },
                "lock": match line.lock {
                    Lock::Unlocked => None,
                    Lock::Held(_) => Some("held by the device"),
                    Lock::Unlocking => Some("released"),
                },
            })
        });
        Value::Array(lines.collect())
    }
}
