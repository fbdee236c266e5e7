//! Spontaneous behaviour of a remote, as seen from a home that sees only messages.
//!
//! A [`Setting`] is one remote's state and the messages in flight between it and the home, for one line. Spontaneous
//! actions of the remote and deliveries to it are silent to the home.

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

/// Index of an interned [`Setting`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SettingId(pub u32);

/// One remote's state and the messages in flight between it and the home.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Setting {
    /// State of the remote.
    pub state: StateId,
    /// Queue 0 holds all unordered messages, sorted; every further queue is first-in first-out.
    pub queues: Vec<Vec<MessageId>>,
}

impl Setting {
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
    /// Setting after the move.
    pub to: SettingId,
}

/// Reason why the silent moves of a setting cannot be determined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MoveError {
    /// This message is delivered in a state without a rule for it.
    Unexpected(MessageId),
    /// This move exceeds the bound of messages in flight.
    TooMany(Move),
}

/// Silent moves of one setting, or the reason why they cannot be determined.
type Moves = Rc<Result<Vec<Move>, MoveError>>;

/// The remote's rules and the channels, as an automaton over settings.
pub struct Environment<'a> {
    /// Protocol of the remote.
    pub protocol: &'a Protocol,
    /// Rules of the remote, for a system of one remote.
    remote: Machine<'a>,
    /// For each message, the index of its queue in [`Setting::queues`].
    queue_of: Vec<usize>,
    /// Number of queues of a setting, including the unordered one.
    queue_count: usize,
    /// Class of each message.
    classes: Vec<Class>,
    /// Maximum number of messages in flight between one remote and the home for one line.
    max_in_flight: u16,
    /// Settings found so far.
    settings: Interner<Rc<Setting>>,
    /// Silent moves of the settings for which they were determined.
    moves: FxHashMap<SettingId, Moves>,
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
            settings: Interner::default(),
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

    /// Setting at power-up: initial state, no message in flight.
    pub fn initial(&mut self) -> SettingId {
        let empty = Setting {
            state: StateId(0),
            queues: vec![Vec::new(); self.queue_count],
        };
        self.intern(empty)
    }

    /// The setting with this index.
    pub fn setting(&self, id: SettingId) -> &Rc<Setting> {
        &self.settings[id.0]
    }

    /// Returns the index of a setting.
    fn intern(&mut self, setting: Setting) -> SettingId {
        SettingId(self.settings.add(Rc::new(setting)).0)
    }

    /// Adds a message to its queue.
    fn enqueue(&self, setting: &mut Setting, message: MessageId) {
        let queue = self.queue_of[message.index()];
        let messages = &mut setting.queues[queue];
        if queue == 0 {
            let position = messages.partition_point(|&other| other <= message);
            messages.insert(position, message);
        } else {
            messages.push(message);
        }
    }

    /// Messages of a queue that may be delivered next: any of the unordered ones, the head of an ordered one.
    fn heads(setting: &Setting, queue: usize) -> Vec<MessageId> {
        let messages = &setting.queues[queue];
        if queue == 0 {
            let mut heads = messages.clone();
            heads.dedup();
            heads
        } else {
            messages.first().copied().into_iter().collect()
        }
    }

    /// Removes a message from its queue, which must contain it.
    fn dequeue(setting: &mut Setting, queue: usize, message: MessageId) {
        let messages = &mut setting.queues[queue];
        let position = messages
            .iter()
            .position(|&other| other == message)
            .expect("a head is in its queue");
        messages.remove(position);
    }

    /// Returns the setting after the home has sent a message.
    pub fn send(&mut self, id: SettingId, message: MessageId) -> SettingId {
        let mut setting = (**self.setting(id)).clone();
        self.enqueue(&mut setting, message);
        self.intern(setting)
    }

    /// Returns the setting after the home has taken a message, if the message can arrive in this setting.
    pub fn receive(&mut self, id: SettingId, message: MessageId) -> Option<SettingId> {
        let queue = self.queue_of[message.index()];
        let mut setting = (**self.setting(id)).clone();
        if !Self::heads(&setting, queue).contains(&message) {
            return None;
        }
        Self::dequeue(&mut setting, queue, message);
        Some(self.intern(setting))
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
                let sends = acts.into_iter().filter_map(|act| match act {
                    Act::Send { message, .. } => Some(message),
                    _ => None,
                });
                Some(Some((sends.collect(), StateId(configuration.state))))
            }
        }
    }

    /// Returns all spontaneous moves and deliveries of the remote in this setting.
    pub fn moves(&mut self, id: SettingId) -> Moves {
        if let Some(moves) = self.moves.get(&id) {
            return moves.clone();
        }
        let moves = Rc::new(self.find_moves(id));
        self.moves.insert(id, moves.clone());
        moves
    }

    /// Computes the moves from a setting.
    fn find_moves(&mut self, id: SettingId) -> Result<Vec<Move>, MoveError> {
        let setting = self.setting(id).clone();
        let mut moves = Vec::new();
        for (access, _) in Access::ALL {
            let event = Event::Access(access);
            let Some(Some((sends, next))) = self.react(setting.state, event) else {
                continue;
            };
            let in_flight_count = |message| setting.messages().filter(|&m| m == message).count();
            let can_start =
                (self.protocol.bounds).can_start_access(|m| sends.contains(&m), in_flight_count);
            if (sends.is_empty() && next == setting.state) || !can_start {
                continue;
            }
            let next_setting = Setting {
                state: next,
                queues: setting.queues.clone(),
            };
            moves.push(self.make_move(next_setting, event, sends)?);
        }
        for queue in 0..self.queue_count {
            for message in Self::heads(&setting, queue) {
                if self.to_home(message) {
                    continue;
                }
                let event = Event::Message(message);
                match self.react(setting.state, event) {
                    None => return Err(MoveError::Unexpected(message)),
                    Some(None) => {}
                    Some(Some((sends, next))) => {
                        let mut next_setting = Setting {
                            state: next,
                            queues: setting.queues.clone(),
                        };
                        Self::dequeue(&mut next_setting, queue, message);
                        moves.push(self.make_move(next_setting, event, sends)?);
                    }
                }
            }
        }
        Ok(moves)
    }

    /// Returns the move that sends these messages; an error if too many messages are then in flight.
    fn make_move(
        &mut self,
        mut setting: Setting,
        event: Event,
        sends: Vec<MessageId>,
    ) -> Result<Move, MoveError> {
        for &message in &sends {
            self.enqueue(&mut setting, message);
        }
        let exceeds_bound = setting.messages().count() > self.max_in_flight as usize;
        let to = self.intern(setting);
        let step = Move { event, sends, to };
        if exceeds_bound {
            return Err(MoveError::TooMany(step));
        }
        Ok(step)
    }

    /// Returns true if some message other than a request is sure to reach the home from this setting by deliveries
    /// alone. Messages behind a request stalled in the queue `blocked` do not count.
    pub fn must_answer(&mut self, id: SettingId, blocked: Option<usize>) -> bool {
        let setting = self.setting(id).clone();
        for queue in 0..self.queue_count {
            if Some(queue) == blocked {
                continue;
            }
            let mut heads = Self::heads(&setting, queue).into_iter();
            if heads.any(|message| self.to_home(message) && self.class(message) != Class::Request) {
                return true;
            }
        }
        for queue in 0..self.queue_count {
            for message in Self::heads(&setting, queue) {
                if self.to_home(message) {
                    continue;
                }
                let Some(Some((sends, next))) = self.react(setting.state, Event::Message(message))
                else {
                    continue;
                };
                let mut next_setting = Setting {
                    state: next,
                    queues: setting.queues.clone(),
                };
                Self::dequeue(&mut next_setting, queue, message);
                for &sent in &sends {
                    self.enqueue(&mut next_setting, sent);
                }
                let next_setting = self.intern(next_setting);
                if self.must_answer(next_setting, blocked) {
                    return true;
                }
            }
        }
        false
    }

    /// Text of a setting: `IS{ReadShared, VictimShared}`.
    pub fn setting_text(&self, id: SettingId) -> String {
        let setting = self.setting(id);
        let names: Vec<&str> = setting
            .messages()
            .map(|message| self.protocol.message(message).name.as_str())
            .collect();
        format!(
            "{}{{{}}}",
            self.protocol.remote.states[setting.state.index()].name,
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
