//! Runs that explain a home's observations.
//!
//! A home observes a sequence of inputs and its own actions. Several runs of the remotes may be consistent with it.
//! [`explain`] finds a shortest one that ends with a given remote in a given configuration.

use super::environment::{ConfigurationId, Environment, Move, MoveError};
use crate::controller::Event;
use crate::execute::{Act, Receiver};
use crate::protocol::MessageId;
use cohkit_base::sequence::{lifeline, Action, Sequence, Step};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// An event at the home, with the sending remote if it is a message.
pub type Input = (Event, Option<u16>);

/// One input of the home, with its actions on it.
#[derive(Clone, Debug)]
pub struct ViewStep {
    /// Input of the home.
    pub input: Input,
    /// Actions of the home, in order.
    pub acts: Vec<Act>,
}

/// Inputs and actions of a home, in order.
pub type View = Vec<ViewStep>;

/// Effect of one step of the view on one remote's channels.
#[derive(Clone, Copy)]
enum Operation {
    /// The home took this message from the remote.
    Receive(MessageId),
    /// The home sent this message to the remote.
    Send(MessageId),
}

/// One remote's silent moves before each of its operations, and after the last.
type SilentMoves = Vec<Vec<(ConfigurationId, Move)>>;

/// Draws a run that is consistent with `view` and ends with `remote` in `configuration`. If `delivered` is given, that
/// message then reaches the remote, which has no rule for it.
pub fn explain(
    environment: &mut Environment,
    view: &[ViewStep],
    remotes: u16,
    remote: u16,
    configuration: ConfigurationId,
    delivered: Option<MessageId>,
) -> Sequence {
    let runs: Vec<SilentMoves> = (0..remotes)
        .map(|other| {
            let operations = operations(view, other);
            let target = (other == remote).then_some(configuration);
            find_run(environment, &operations, target)
                .unwrap_or_else(|| vec![Vec::new(); operations.len() + 1])
        })
        .collect();
    let mut drawing = Drawing::new(environment, remotes);
    let mut position = vec![0; remotes as usize];
    for step in view {
        for other in 0..remotes {
            if !operations(std::slice::from_ref(step), other).is_empty() {
                drawing.silent(other, &runs[other as usize][position[other as usize]]);
                position[other as usize] += operations(std::slice::from_ref(step), other).len();
            }
        }
        drawing.home(step.input, &step.acts);
    }
    for other in 0..remotes {
        let final_position = runs[other as usize].len() - 1;
        if position[other as usize] == final_position {
            drawing.silent(other, &runs[other as usize][final_position]);
        }
    }
    if let Some(message) = delivered {
        drawing.receive(remote as usize, message, drawing.home_agent(), false);
        drawing.push(
            remote as usize,
            Action::Does {
                what: "has no rule for it".into(),
            },
            false,
        );
    }
    drawing.sequence
}

/// Returns the operations of a view on one remote's channels.
fn operations(view: &[ViewStep], remote: u16) -> Vec<Operation> {
    let mut operations = Vec::new();
    for step in view {
        if let (Event::Message(message), Some(sender)) = step.input {
            if sender == remote {
                operations.push(Operation::Receive(message));
            }
        }
        operations.extend(step.acts.iter().filter_map(|act| match act {
            Act::Send {
                message,
                to: Receiver::Remote(to),
                ..
            } if *to == remote => Some(Operation::Send(*message)),
            _ => None,
        }));
    }
    operations
}

/// Finds a shortest run through all operations, to the target configuration if one is given.
fn find_run(
    environment: &mut Environment,
    operations: &[Operation],
    target: Option<ConfigurationId>,
) -> Option<SilentMoves> {
    /// Number of operations already performed, and the configuration.
    type Node = (usize, ConfigurationId);
    let start: Node = (0, environment.initial());
    let mut parents: FxHashMap<Node, Option<(Node, Option<Move>)>> = FxHashMap::default();
    parents.insert(start, None);
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        let (position, configuration) = node;
        if position == operations.len() && target.is_none_or(|target| target == configuration) {
            let mut run = vec![Vec::new(); operations.len() + 1];
            let mut current = node;
            while let Some((previous, step)) = &parents[&current] {
                if let Some(step) = step {
                    run[previous.0].push((previous.1, step.clone()));
                }
                current = *previous;
            }
            run.iter_mut().for_each(|moves| moves.reverse());
            return Some(run);
        }
        let mut enqueue = |next: Node, step: Option<Move>| {
            parents.entry(next).or_insert_with(|| {
                queue.push_back(next);
                Some((node, step))
            });
        };
        if let Some(operation) = operations.get(position) {
            let next_configuration = match *operation {
                Operation::Receive(message) => environment.receive(configuration, message),
                Operation::Send(message) => Some(environment.send(configuration, message)),
            };
            if let Some(next_configuration) = next_configuration {
                enqueue((position + 1, next_configuration), None);
            }
        }
        match &*environment.moves(configuration) {
            Ok(moves) => {
                for step in moves {
                    enqueue((position, step.to), Some(step.clone()));
                }
            }
            Err(MoveError::TooMany(step)) if Some(step.to) == target => {
                enqueue((position, step.to), Some(step.clone()))
            }
            Err(_) => {}
        }
    }
    None
}

/// A sequence being drawn: lifelines of the remotes, the home and the device.
pub struct Drawing<'e, 'a> {
    /// Configurations and names of the remote's states and messages.
    environment: &'e Environment<'a>,
    /// Number of remotes; the home's lifeline follows theirs.
    remotes: usize,
    /// Steps drawn so far.
    pub sequence: Sequence,
    /// Messages sent and not yet received: sender, receiver, message, flight.
    messages_in_flight: Vec<(usize, usize, MessageId, u32)>,
    /// Number of messages sent so far.
    flight_count: u32,
}

impl<'e, 'a> Drawing<'e, 'a> {
    /// Creates an empty sequence.
    pub fn new(environment: &'e Environment<'a>, remotes: u16) -> Self {
        let name = &environment.protocol.remote.name;
        let mut agents: Vec<String> = match remotes {
            1 => vec![lifeline(name, "remote")],
            _ => (0..remotes)
                .map(|remote| format!("{name} {remote}"))
                .collect(),
        };
        agents.push("home".into());
        if !environment.policy().locals.is_empty() {
            agents.push("device".into());
        }
        Drawing {
            environment,
            remotes: remotes as usize,
            sequence: Sequence {
                agents,
                steps: Vec::new(),
            },
            messages_in_flight: Vec::new(),
            flight_count: 0,
        }
    }

    /// Index of the home's lifeline.
    pub fn home_agent(&self) -> usize {
        self.remotes
    }

    /// Adds a step at the lifeline `agent`. Charts omit steps that are not `visible`.
    pub fn push(&mut self, agent: usize, action: Action, visible: bool) {
        self.sequence.steps.push(Step {
            agent,
            action,
            line: None,
            visible,
        });
    }

    /// Draws the sending of a message from one lifeline to another.
    fn send(&mut self, from: usize, to: usize, message: MessageId, visible: bool) {
        let flight = self.flight_count;
        self.flight_count += 1;
        self.messages_in_flight.push((from, to, message, flight));
        let message = self.environment.protocol.message(message).name.clone();
        self.push(
            from,
            Action::Send {
                message,
                to,
                flight,
            },
            visible,
        );
    }

    /// Adds the arrival of a message.
    pub fn receive(&mut self, agent: usize, message: MessageId, from: usize, visible: bool) {
        let index = self
            .messages_in_flight
            .iter()
            .position(|&(sender, receiver, other, _)| {
                (sender, receiver, other) == (from, agent, message)
            });
        let flight = match index {
            Some(index) => self.messages_in_flight.remove(index).3,
            None => {
                self.flight_count += 1;
                self.flight_count - 1
            }
        };
        let message = self.environment.protocol.message(message).name.clone();
        self.push(
            agent,
            Action::Receive {
                message,
                from,
                flight,
            },
            visible,
        );
    }

    /// Adds silent moves of a remote, each with the configuration it starts from.
    pub fn silent(&mut self, remote: u16, moves: &[(ConfigurationId, Move)]) {
        for (configuration, step) in moves {
            let agent = remote as usize;
            match step.event {
                Event::Message(message) => self.receive(agent, message, self.remotes, false),
                Event::Access(access) => self.push(
                    agent,
                    Action::Does {
                        what: access.name().into(),
                    },
                    false,
                ),
                _ => {}
            }
            for &message in &step.sends {
                self.send(agent, self.remotes, message, false);
            }
            let (from, to) = (
                self.environment.configuration(*configuration).state,
                self.environment.configuration(step.to).state,
            );
            if from != to {
                let state = self.environment.protocol.remote.states[to.index()]
                    .name
                    .clone();
                self.push(agent, Action::Becomes { state }, false);
            }
        }
    }

    /// Adds one step of the home.
    pub fn home(&mut self, input: Input, acts: &[Act]) {
        let home = self.remotes;
        let device = home + 1;
        let does = |what: String| Action::Does { what };
        let locals = &self.environment.policy().locals;
        match input {
            (Event::Message(message), Some(sender)) => {
                self.receive(home, message, sender as usize, true)
            }
            (Event::Local(local), _) => self.push(
                device,
                does(format!("requests {}", locals[local as usize].name)),
                true,
            ),
            (Event::Unlock, _) => self.push(device, does("unlocks".into()), true),
            (Event::MemoryData(_), _) => self.push(home, does("memory has been read".into()), true),
            (Event::MemoryDone, _) => self.push(home, does("memory has been written".into()), true),
            _ => {}
        }
        for act in acts {
            match act {
                Act::Send {
                    message,
                    to: Receiver::Remote(to),
                    ..
                } => self.send(home, *to as usize, *message, true),
                Act::Send { .. }
                | Act::WriteMemory
                | Act::DeferStore
                | Act::CommitDeferred
                | Act::Done
                | Act::BulkTransition { .. }
                | Act::AcknowledgeUnlock => {}
                Act::StartRead => self.push(home, does("reads memory".into()), true),
                Act::StartWrite => self.push(home, does("writes memory".into()), true),
                Act::StartStore { .. } => {
                    self.push(home, does("writes the bytes to memory".into()), true)
                }
                Act::Acknowledge(local) => {
                    self.push(
                        home,
                        does(format!("acknowledges {}", locals[*local as usize].name)),
                        true,
                    );
                }
            }
        }
    }
}
