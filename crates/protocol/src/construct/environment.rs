//! Spontaneous behaviour of a remote, as seen from a home that sees only messages.
//!
//! A [`RemoteConfiguration`] is one remote's state and the messages in flight between it and the home, for one line.
//! Spontaneous actions of the remote and deliveries to it are silent to the home.

use super::fault::Refusal;
use crate::controller::{Access, Effect, Event};
use crate::execute::{Act, Machine, Outcome, Trigger};
use crate::protocol::{Class, End, Home, MessageId, Permission, Protocol, StateId};
use cohkit_base::interner::Interner;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Number of messages in flight per remote and line above which growth counts as unbounded, unless the file states a
/// limit. The bounded variations of `tests/construction` stay at 5 and below.
const DEFAULT_IN_FLIGHT: u16 = 8;

/// Index of an interned [`RemoteConfiguration`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConfigurationId(pub u32);

/// One remote's state and the messages in flight between it and the home.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RemoteConfiguration {
    /// State of the remote.
    pub state: StateId,
    /// Queue 0 holds all unordered messages, sorted; every further queue is first-in first-out.
    pub queues: Vec<Vec<MessageId>>,
}

impl RemoteConfiguration {
    /// All messages in flight.
    pub fn messages(&self) -> impl Iterator<Item = MessageId> + '_ {
        self.queues.iter().flatten().copied()
    }
}

/// A silent move of the remote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Move {
    /// Cause: an access of the remote itself, or a delivery.
    pub event: Event,
    /// Messages sent, in order.
    pub sends: Vec<MessageId>,
    /// Configuration after the move.
    pub to: ConfigurationId,
}

/// Reason why the silent moves of a configuration cannot be determined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MoveError {
    /// This message is delivered in a state without a rule for it.
    Unexpected(MessageId),
    /// This move exceeds the bound of messages in flight.
    TooMany(Move),
}

/// Silent moves of one configuration, or the reason why they cannot be determined.
type Moves = Rc<Result<Vec<Move>, MoveError>>;

/// The remote's rules and the channels, as an automaton over configurations.
pub struct Environment<'a> {
    /// Protocol of the remote.
    pub protocol: &'a Protocol,
    /// Rules of the remote, for a system of one remote.
    remote: Machine<'a>,
    /// For each message, the index of its queue in [`RemoteConfiguration::queues`].
    queue_of: Vec<usize>,
    /// Number of queues of a configuration, including the unordered one.
    queue_count: usize,
    /// Class of each message.
    classes: Vec<Class>,
    /// Maximum number of messages in flight between one remote and the home for one line.
    max_in_flight: u16,
    /// Configurations found so far.
    configurations: Interner<Rc<RemoteConfiguration>>,
    /// Silent moves of the configurations for which they were determined.
    moves: FxHashMap<ConfigurationId, Moves>,
}

impl<'a> Environment<'a> {
    /// Prepares the environment of a policy home.
    ///
    /// # Errors
    /// A [`Refusal`] if knowledge does not factor per remote: the remote has variables or guards, or messages have
    /// fields or travel among remotes.
    pub fn new(protocol: &'a Protocol) -> Result<Self, Refusal> {
        let remote = &protocol.remote;
        if let Some(variable) = remote.variables.first() {
            return Err(Refusal {
                obstacle: format!("the remote has a variable, `{}`", variable.name),
                span: variable.span,
            });
        }
        if let Some(rule) = remote.rules.iter().find(|rule| rule.guard.is_some()) {
            return Err(Refusal {
                obstacle: "a rule of the remote has a guard".into(),
                span: rule.span,
            });
        }
        if let Some(message) = protocol
            .messages
            .iter()
            .find(|message| !message.fields.is_empty())
        {
            return Err(Refusal {
                obstacle: format!("message `{}` has fields", message.name),
                span: message.span,
            });
        }
        let mut classes = Vec::new();
        for message in &protocol.messages {
            let channel = &protocol.channels[message.channel.index()];
            match channel.class {
                Some(class)
                    if channel.from != End::Any
                        && channel.to != End::Any
                        && channel.from != channel.to =>
                {
                    classes.push(class);
                }
                _ => {
                    return Err(Refusal {
                        obstacle: format!("channel `{}` does not run between a remote and the home with a stated class", channel.name),
                        span: channel.span,
                    });
                }
            }
        }
        let is_from_home = |message: MessageId| protocol.channel_of(message).from == End::Home;
        let queue_of = protocol
            .message_ids()
            .map(
                |message| match protocol.order_of(protocol.message(message).channel) {
                    None => 0,
                    Some(group) => 1 + 2 * group + usize::from(is_from_home(message)),
                },
            )
            .collect();
        Ok(Environment {
            protocol,
            remote: Machine::new(remote, 1),
            queue_of,
            queue_count: 1 + 2 * protocol.orders.len(),
            classes,
            max_in_flight: protocol
                .bounds
                .in_flight
                .map_or(DEFAULT_IN_FLIGHT, |bound| bound.limit),
            configurations: Interner::default(),
            moves: FxHashMap::default(),
        })
    }

    /// The class of a message.
    pub fn class(&self, message: MessageId) -> Class {
        self.classes[message.index()]
    }

    /// Returns true if the message travels from a remote to the home.
    pub fn to_home(&self, message: MessageId) -> bool {
        !matches!(self.class(message), Class::Forward | Class::Grant)
    }

    /// Permission of a remote in a state.
    pub fn permission(&self, state: StateId) -> Permission {
        self.protocol.remote.states[state.index()].permission
    }

    /// The first-in first-out queue a message travels in, if it is ordered.
    pub fn ordered_queue(&self, message: MessageId) -> Option<usize> {
        Some(self.queue_of[message.index()]).filter(|&queue| queue != 0)
    }

    /// Maximum number of messages in flight that does not count as unbounded growth.
    pub fn in_flight_limit(&self) -> u16 {
        self.max_in_flight
    }

    /// Highest permission that a grant gives in any state.
    pub fn granted(&self, grant: MessageId) -> Permission {
        let grant_rules = self
            .protocol
            .remote
            .rules
            .iter()
            .filter(|rule| rule.event == Event::Message(grant));
        grant_rules
            .filter_map(|rule| match &rule.effect {
                Effect::Take { next, .. } => Some(self.permission(next.unwrap_or(rule.state))),
                _ => None,
            })
            .max()
            .unwrap_or(Permission::None)
    }

    /// First pair of states between which a message raises the remote's permission: before and after its delivery.
    pub fn raise_by(&self, message: MessageId) -> Option<(StateId, StateId)> {
        let rules = self.protocol.remote.rules.iter();
        let mut steps = rules.filter_map(|rule| match &rule.effect {
            Effect::Take {
                next: Some(next), ..
            } if rule.event == Event::Message(message) => Some((rule.state, *next)),
            _ => None,
        });
        steps.find(|&(from, to)| self.permission(to) > self.permission(from))
    }

    /// Configuration at power-up: initial state, no message in flight.
    pub fn initial(&mut self) -> ConfigurationId {
        let empty = RemoteConfiguration {
            state: StateId(0),
            queues: vec![Vec::new(); self.queue_count],
        };
        self.intern(empty)
    }

    /// The configuration with this index.
    pub fn configuration(&self, id: ConfigurationId) -> &Rc<RemoteConfiguration> {
        &self.configurations[id.0]
    }

    /// Returns the index of a configuration.
    fn intern(&mut self, configuration: RemoteConfiguration) -> ConfigurationId {
        ConfigurationId(self.configurations.add(Rc::new(configuration)).0)
    }

    /// Adds a message to its queue.
    fn enqueue(&self, configuration: &mut RemoteConfiguration, message: MessageId) {
        let queue = self.queue_of[message.index()];
        let messages = &mut configuration.queues[queue];
        if queue == 0 {
            let position = messages.partition_point(|&other| other <= message);
            messages.insert(position, message);
        } else {
            messages.push(message);
        }
    }

    /// Messages of a queue that may be delivered next: any of the unordered ones, the head of an ordered one.
    fn heads(configuration: &RemoteConfiguration, queue: usize) -> Vec<MessageId> {
        let messages = &configuration.queues[queue];
        if queue == 0 {
            let mut heads = messages.clone();
            heads.dedup();
            heads
        } else {
            messages.first().copied().into_iter().collect()
        }
    }

    /// Removes a message from its queue, which must contain it.
    fn dequeue(configuration: &mut RemoteConfiguration, queue: usize, message: MessageId) {
        let messages = &mut configuration.queues[queue];
        let position = messages
            .iter()
            .position(|&other| other == message)
            .expect("a head is in its queue");
        messages.remove(position);
    }

    /// Returns the configuration after the home has sent a message.
    pub fn send(&mut self, id: ConfigurationId, message: MessageId) -> ConfigurationId {
        let mut configuration = (**self.configuration(id)).clone();
        self.enqueue(&mut configuration, message);
        self.intern(configuration)
    }

    /// Returns the configuration after the home has taken a message, if the message can arrive in this configuration.
    pub fn receive(&mut self, id: ConfigurationId, message: MessageId) -> Option<ConfigurationId> {
        let queue = self.queue_of[message.index()];
        let mut configuration = (**self.configuration(id)).clone();
        if !Self::heads(&configuration, queue).contains(&message) {
            return None;
        }
        Self::dequeue(&mut configuration, queue, message);
        Some(self.intern(configuration))
    }

    /// Reaction of the remote to an event in a state: the messages it sends and its next state. Returns `None` if it
    /// has no rule for the event, and `Some(None)` if the event stalls.
    #[allow(clippy::type_complexity)]
    fn react(&self, state: StateId, event: Event) -> Option<Option<(Vec<MessageId>, StateId)>> {
        let (sender, executing_remote, fields) = (None, Some(0), &[][..]);
        let trigger = Trigger {
            home: 0,
            event,
            sender,
            executing_remote,
            fields,
        };
        let mut configuration = self.remote.initial_in(state);
        let mut tables = &self.protocol.remote;
        match self
            .remote
            .step(&mut configuration, trigger, &mut tables)
            .ok()?
        {
            Outcome::Unexpected => None,
            Outcome::Stall | Outcome::Refuse => Some(None),
            Outcome::Taken { acts, .. } => {
                let sends = acts.iter().filter_map(Act::sent_message);
                Some(Some((sends.collect(), StateId(configuration.state))))
            }
        }
    }

    /// Returns all spontaneous moves and deliveries of the remote in this configuration.
    pub fn moves(&mut self, id: ConfigurationId) -> Moves {
        if let Some(moves) = self.moves.get(&id) {
            return moves.clone();
        }
        let moves = Rc::new(self.find_moves(id));
        self.moves.insert(id, moves.clone());
        moves
    }

    /// Computes the moves from a configuration.
    fn find_moves(&mut self, id: ConfigurationId) -> Result<Vec<Move>, MoveError> {
        let configuration = self.configuration(id).clone();
        let mut moves = Vec::new();
        for (access, _) in Access::ALL {
            let event = Event::Access(access);
            let Some(Some((sends, next))) = self.react(configuration.state, event) else {
                continue;
            };
            let in_flight_count =
                |message| configuration.messages().filter(|&m| m == message).count();
            let can_start =
                (self.protocol.bounds).can_start_access(sends.iter().copied(), in_flight_count);
            if (sends.is_empty() && next == configuration.state) || !can_start {
                continue;
            }
            let next_configuration = RemoteConfiguration {
                state: next,
                queues: configuration.queues.clone(),
            };
            moves.push(self.make_move(next_configuration, event, sends)?);
        }
        for queue in 0..self.queue_count {
            for message in Self::heads(&configuration, queue) {
                if self.to_home(message) {
                    continue;
                }
                let event = Event::Message(message);
                match self.react(configuration.state, event) {
                    None => return Err(MoveError::Unexpected(message)),
                    Some(None) => {}
                    Some(Some((sends, next))) => {
                        let mut next_configuration = RemoteConfiguration {
                            state: next,
                            queues: configuration.queues.clone(),
                        };
                        Self::dequeue(&mut next_configuration, queue, message);
                        moves.push(self.make_move(next_configuration, event, sends)?);
                    }
                }
            }
        }
        Ok(moves)
    }

    /// Returns the move that sends these messages; an error if too many messages are then in flight.
    fn make_move(
        &mut self,
        mut configuration: RemoteConfiguration,
        event: Event,
        sends: Vec<MessageId>,
    ) -> Result<Move, MoveError> {
        for &message in &sends {
            self.enqueue(&mut configuration, message);
        }
        let exceeds_bound = configuration.messages().count() > self.max_in_flight as usize;
        let to = self.intern(configuration);
        let step = Move { event, sends, to };
        if exceeds_bound {
            return Err(MoveError::TooMany(step));
        }
        Ok(step)
    }

    /// Returns true if some message other than a request is sure to reach the home from this configuration by
    /// deliveries alone. Messages behind a request stalled in the queue `blocked` do not count.
    pub fn must_answer(&mut self, id: ConfigurationId, blocked: Option<usize>) -> bool {
        let configuration = self.configuration(id).clone();
        for queue in 0..self.queue_count {
            if Some(queue) == blocked {
                continue;
            }
            let mut heads = Self::heads(&configuration, queue).into_iter();
            if heads.any(|message| self.to_home(message) && self.class(message) != Class::Request) {
                return true;
            }
        }
        for queue in 0..self.queue_count {
            for message in Self::heads(&configuration, queue) {
                if self.to_home(message) {
                    continue;
                }
                let Some(Some((sends, next))) =
                    self.react(configuration.state, Event::Message(message))
                else {
                    continue;
                };
                let mut next_configuration = RemoteConfiguration {
                    state: next,
                    queues: configuration.queues.clone(),
                };
                Self::dequeue(&mut next_configuration, queue, message);
                for &sent in &sends {
                    self.enqueue(&mut next_configuration, sent);
                }
                let next_configuration = self.intern(next_configuration);
                if self.must_answer(next_configuration, blocked) {
                    return true;
                }
            }
        }
        false
    }

    /// Text of a configuration: `IS{ReadShared, VictimShared}`.
    pub fn configuration_text(&self, id: ConfigurationId) -> String {
        let configuration = self.configuration(id);
        let names: Vec<&str> = configuration
            .messages()
            .map(|message| self.protocol.message(message).name.as_str())
            .collect();
        format!(
            "{}{{{}}}",
            self.protocol.remote.states[configuration.state.index()].name,
            names.join(", ")
        )
    }

    /// Policy from which the home is constructed.
    pub fn policy(&self) -> &'a crate::policy::Policy {
        match &self.protocol.home {
            Home::Policy(policy) => policy,
            Home::Controller(_) => unreachable!("a construction starts from a policy"),
        }
    }
}
