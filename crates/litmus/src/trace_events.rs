//! Sequence charts of the paths to outcomes.
//!
//! The chart compares the states before and after each step. Messages that disappear were received, and their receiver
//! sent the new messages. Changes of memory, of homes' registers and of threads are drawn too. The code that runs
//! programs therefore needs no instrumentation.

use cohkit_base::sequence::{Action, Sequence, Step};
use cohkit_protocol::value_text::{AgentNames, Contents};
use cohkit_system::state::{InFlightMessage, Payload, System, SystemState};
use cohkit_system::stores::Ticket;

use crate::cores::{Core, FenceKind, MemoryRequest};
use crate::program::{Location, Program, StoreVariant, Update};
use crate::values::{Values, WrittenValue};

/// Action of a thread in a step, by thread number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadStep {
    /// The thread begins an access.
    Begins(u8, MemoryRequest),
    /// The thread requests a fence or an acquire from its cache.
    Fence(u8, FenceKind),
    /// A load is forwarded from the thread's own stores.
    Forwards(u8),
    /// Step of caches or homes alone.
    Nothing,
}

/// States before and after a step.
pub struct Change<'s> {
    /// The system whose state changes.
    pub system: &'s System<'s>,
    /// Location of each line of the system, if any.
    pub locations: &'s [Option<Location>],
    /// System state before and after the step, if one changes.
    pub system_states: Option<[&'s SystemState<Values>; 2]>,
    /// Threads before and after the step.
    pub cores: [&'s [Core]; 2],
}

/// A message in flight, its number in the chart, and the lifeline of its sender.
type SentMessage = (InFlightMessage<Values>, u32, usize);

/// Sequence chart under construction.
pub struct ChartBuilder<'s> {
    /// Program whose locations name the lines.
    program: &'s Program,
    /// Thread of each remote; a thread's number is its lifeline.
    threads: Vec<usize>,
    /// Names of the agents; a remote has the name of its thread.
    names: AgentNames,
    /// The chart so far. Lifelines are threads, then homes.
    sequence: Sequence,
    /// Messages in flight, in the order in which they were sent.
    sent_messages: Vec<SentMessage>,
    /// Number of messages sent so far, which is the number of the next one.
    sent_count: u32,
}

impl<'s> ChartBuilder<'s> {
    /// Creates an empty chart of a program's threads and homes. `threads` gives the thread of each remote, and the pair
    /// gives the name of the homes and their number.
    pub fn new(
        program: &'s Program,
        (home, homes): (&str, usize),
        threads: Vec<usize>,
    ) -> ChartBuilder<'s> {
        let mut agents: Vec<String> = (0..program.threads.len())
            .map(|n| format!("P{n}"))
            .collect();
        let names = AgentNames {
            remotes: threads
                .iter()
                .map(|&thread| agents[thread].clone())
                .collect(),
            homes: cohkit_base::sequence::homes(home, homes as u16),
        };
        agents.extend_from_slice(&names.homes);
        ChartBuilder {
            program,
            names,
            threads,
            sequence: Sequence {
                agents,
                steps: Vec::new(),
            },
            sent_messages: Vec::new(),
            sent_count: 0,
        }
    }

    /// Returns the chart.
    pub fn sequence(self) -> Sequence {
        self.sequence
    }

    /// Appends a step of an agent, by its lifeline.
    fn push_step(&mut self, agent: usize, action: Action) {
        self.sequence.steps.push(Step {
            agent,
            action,
            line: None,
            visible: true,
        });
    }

    /// Appends a step that is neither a message nor a change of state.
    fn add_action(&mut self, agent: usize, description: String) {
        self.push_step(agent, Action::Does { what: description });
    }

    /// Adds a step to the chart.
    pub fn add_step(&mut self, thread_step: ThreadStep, change: &Change) {
        let name = |location: Location| &self.program.locations[usize::from(location)];
        let mut actor = match thread_step {
            ThreadStep::Begins(thread, _)
            | ThreadStep::Fence(thread, _)
            | ThreadStep::Forwards(thread) => Some(usize::from(thread)),
            ThreadStep::Nothing => None,
        };
        let action_text = match thread_step {
            ThreadStep::Begins(_, MemoryRequest::Read(location, acquire)) => Some(format!(
                "{} {}",
                if acquire { "acquires" } else { "loads" },
                name(location)
            )),
            ThreadStep::Begins(_, MemoryRequest::Write(location, value, release, via)) => {
                let verb = if release { "releases" } else { "stores" };
                let suffix = match via {
                    StoreVariant::ProtocolDefault => "",
                    StoreVariant::WriteBack => ", written back",
                    StoreVariant::Acknowledged => ", acknowledged",
                };
                Some(format!("{verb} {} = {value}{suffix}", name(location)))
            }
            ThreadStep::Begins(_, MemoryRequest::Update(location, ..)) => {
                Some(format!("changes {}", name(location)))
            }
            ThreadStep::Fence(_, FenceKind::Fence) => Some("fences".to_string()),
            ThreadStep::Fence(_, FenceKind::Acquire) => Some("has acquired".to_string()),
            ThreadStep::Forwards(_) => Some("reads its own store".to_string()),
            ThreadStep::Nothing => None,
        };
        if let (Some(agent), Some(text)) = (actor, action_text) {
            self.add_action(agent, text);
        }
        if let Some([before, after]) = change.system_states {
            let (received, sent) = multiset_difference(flights(before), flights(after));
            for flight in &received {
                actor = Some(self.add_receive(flight, change));
            }
            self.add_home_changes(change, [before, after]);
            for flight in sent {
                self.add_send(actor, flight, change);
            }
        }
        let [before, after] = change.cores;
        for (number, (before, after)) in before.iter().zip(after).enumerate() {
            let code = &self.program.threads[number].code;
            for (index, location) in before.active_instructions().filter(|access| {
                !after
                    .active_instructions()
                    .any(|candidate| candidate == *access)
            }) {
                if let (Some(location), Some(to)) = (location, code[index].destination()) {
                    let name = &self.program.locations[usize::from(location)];
                    let value = after.registers[to];
                    self.add_action(number, format!("finds {name} = {value}"));
                }
            }
        }
    }

    /// Adds the receipt of a message. Returns the receiver.
    fn add_receive(&mut self, flight: &InFlightMessage<Values>, change: &Change) -> usize {
        let index = self
            .sent_messages
            .iter()
            .position(|(other, ..)| other == flight);
        let (_, number, from) = self
            .sent_messages
            .remove(index.expect("a received message was sent"));
        let agent = self.receiver(flight, change);
        let message = self.format_message(flight, change);
        self.push_step(
            agent,
            Action::Receive {
                message,
                from,
                flight: number,
            },
        );
        agent
    }

    /// Adds the send of a message. `actor` is the lifeline that acts in the step, the sender of messages without a
    /// remote as sender; `None` stands for the home.
    fn add_send(&mut self, actor: Option<usize>, flight: InFlightMessage<Values>, change: &Change) {
        let from = match flight.from {
            Some(remote) => self.threads[usize::from(remote)],
            None => actor.unwrap_or_else(|| self.home(flight.line, change)),
        };
        let message = self.format_message(&flight, change);
        let to = self.receiver(&flight, change);
        let number = self.sent_count;
        self.sent_count += 1;
        self.push_step(
            from,
            Action::Send {
                message,
                to,
                flight: number,
            },
        );
        self.sent_messages.push((flight, number, from));
    }

    /// Returns the lifeline of a line's home.
    fn home(&self, line: u8, change: &Change) -> usize {
        let homes = usize::from(change.system.protocol.homes);
        self.program.threads.len() + usize::from(line) % homes
    }

    /// Returns the lifeline of the receiver of a message.
    fn receiver(&self, flight: &InFlightMessage<Values>, change: &Change) -> usize {
        match flight.to {
            Some(remote) => self.threads[usize::from(remote)],
            None => self.home(flight.line, change),
        }
    }

    /// Formats a message with its location, the value that it carries, and its fields: `Release(y=1, epoch=0)`.
    fn format_message(&self, flight: &InFlightMessage<Values>, change: &Change) -> String {
        let message = change.system.protocol.message(flight.message);
        let mut parts = Vec::new();
        let location = change.locations.get(usize::from(flight.line)).copied();
        if let (true, Some(location)) = (message.about_line, location.flatten()) {
            let name = &self.program.locations[usize::from(location)];
            parts.push(match &flight.carried {
                Payload::Line((_, value))
                | Payload::Write(WrittenValue(Some(Update::Exchange(value))), _) => {
                    format!("{name}={value}")
                }
                _ => name.clone(),
            });
        }
        parts.extend(self.names.fields(&message.fields, &flight.fields));
        match parts.is_empty() {
            true => message.name.clone(),
            false => format!("{}({})", message.name, parts.join(", ")),
        }
    }

    /// Adds the changes of memory and of the homes' registers.
    fn add_home_changes(&mut self, change: &Change, [before, after]: [&SystemState<Values>; 2]) {
        let system = change.system;
        for (line, (old, new)) in before.lines.iter().zip(&after.lines).enumerate() {
            let home = self.home(line as u8, change);
            let location = change.locations.get(line).copied().flatten();
            if let (true, Some(location)) = (old.memory != new.memory, location) {
                let name = &self.program.locations[usize::from(location)];
                self.add_action(home, format!("writes {name} = {}", new.memory.1));
            }
            // All lines of a home share its registers.
            if line >= usize::from(system.protocol.homes) {
                continue;
            }
            let registers = (0..).zip(&system.home.variables);
            for (number, variable) in registers.filter(|(_, variable)| variable.register) {
                let slots = system.slots_of_home(number);
                let [old, new] = [&old.home, &new.home]
                    .map(|home| Contents::of(variable.ty, &home.slots[slots.clone()]));
                for state in self.names.changes(variable, &old, &new) {
                    self.push_step(home, Action::Becomes { state });
                }
            }
        }
    }
}

/// Returns the messages in flight, sorted. Fields that change while a message stays in flight are reset: the order
/// among messages, and the rank of a posted store.
fn flights(system_state: &SystemState<Values>) -> Vec<InFlightMessage<Values>> {
    let flights = system_state.network.flights().cloned();
    let mut flights: Vec<_> = flights
        .map(|flight| InFlightMessage {
            early: false,
            first: false,
            carried: match flight.carried {
                Payload::Write(write, _) => Payload::Write(write, Ticket::VOID),
                other => other,
            },
            ..flight
        })
        .collect();
    flights.sort();
    flights
}

/// Returns the elements of the first list alone and those of the second alone (multiset difference), in their order.
fn multiset_difference<T: PartialEq>(before: Vec<T>, mut after: Vec<T>) -> (Vec<T>, Vec<T>) {
    let mut only_before = Vec::new();
    for element in before {
        match after.iter().position(|candidate| *candidate == element) {
            Some(index) => {
                after.remove(index);
            }
            None => only_before.push(element),
        }
    }
    (only_before, after)
}
