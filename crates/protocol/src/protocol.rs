//! Protocol files after names and types are resolved.
//!
//! A [`Protocol`] has two sorts of agent: *remotes* (caching agents, of one [`Kind`] or several, of which a system has
//! one or more) and the *home*. The rows of all remotes are one [`Controller`]. The home is either a controller written
//! by hand or a [`Policy`] from which [`crate::construct`] builds a controller.

use crate::controller::{Controller, Effect, Event, Statement};
use crate::orders::{Model, Orders};
use crate::policy::Policy;
use crate::remotes::{Kind, KindId, Remotes};
pub use crate::terms::{ChannelId, MessageId, Permission, StateId, Type, VariableId};
use cohkit_base::words::counted;
use cohkit_diagnostics::Span;
use std::sync::Arc;

/// One protocol file, resolved.
#[derive(Clone, PartialEq, Debug)]
pub struct Protocol {
    /// Name after the keyword `protocol`.
    pub name: String,
    /// The quoted title, or empty.
    pub title: String,
    /// Size of a cache line in bytes.
    pub line_bytes: u32,
    /// Virtual channels; a [`ChannelId`] is an index into this list.
    pub channels: Vec<Channel>,
    /// Sets of channels whose messages share one first-in first-out order per (sender, receiver) pair. A channel is in
    /// at most one set; a channel in none is unordered. A single ordered channel is a set of one.
    pub orders: Vec<Vec<ChannelId>>,
    /// For each of these sets, true if order holds only between messages about the same line.
    pub per_line: Vec<bool>,
    /// Networks: those of these sets whose messages share one input queue at each receiver, for all senders.
    pub networks: Vec<Network>,
    /// Message types; a [`MessageId`] is an index into this list.
    pub messages: Vec<Message>,
    /// Messages that stay behind earlier ones although their channels share no order.
    pub point_orders: Vec<PointOrder>,
    /// Kinds of caching agents, at least one.
    pub kinds: Vec<Kind>,
    /// Rows of all caching agents. A state belongs to the kinds whose initial state is the last one at or before it.
    pub remote: Controller,
    /// The home agent; all homes of a system have the same rows.
    pub home: Home,
    /// Assumed limits on messages in flight; part of every verdict.
    pub bounds: Bounds,
    /// Number of homes that share the lines. Line L belongs to home L mod this number.
    pub homes: u16,
    /// Program order that threads preserve among their accesses, if the file has a block for it.
    pub program_order: Option<Orders>,
    /// Guarantee to programs that read and write through the caches.
    pub guarantee: Guarantee,
    /// Systems to check, in the order of the file; may be empty.
    pub systems: Vec<System>,
    /// Invariants written in the file, besides the built-in ones.
    pub invariants: Vec<Invariant>,
}

/// Guarantee of a protocol to programs that read and write through its caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guarantee {
    /// True if the single-writer and data-value invariants hold: write permission is exclusive, and reads return the
    /// last write. Otherwise (`guarantee none`) a permission only says what the agent does by itself, and copies may be
    /// stale.
    pub coherent: bool,
    /// Memory model guaranteed to programs, if the file names one.
    pub model: Option<Model>,
}

impl Default for Guarantee {
    fn default() -> Guarantee {
        Guarantee {
            coherent: true,
            model: None,
        }
    }
}

/// Home agent of a protocol.
#[derive(Clone, PartialEq, Debug)]
pub enum Home {
    /// A controller written out by hand.
    Controller(Controller),
    /// Goals from which the controller is constructed.
    Policy(Policy),
}

/// Kind of agent at one end of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// A remote agent.
    Remote,
    /// The home agent.
    Home,
    /// Either a remote or the home.
    Any,
}

/// Purpose of a channel's messages. The construction of a home from a policy needs it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// Asks the home for a permission or an access; the only class that a home may stall.
    Request,
    /// Gives up a permission without having been asked to.
    Victim,
    /// A remote's response to a forward.
    Answer,
    /// Asks a remote to give up a permission.
    Forward,
    /// The home's response to a request.
    Grant,
    /// Confirms to the home that a grant has arrived.
    Acknowledgement,
}

/// A virtual network: channels of one order, whose messages to one receiver share one input queue. Messages of one
/// sender enter the queue in the order in which they were sent; senders interleave in any order. Only the head of the
/// queue can be taken.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// Name in the file.
    pub name: String,
    /// Index of its channels into [`Protocol::orders`].
    pub order: usize,
    /// Maximum number of messages in flight to one receiver, if the file states it. An agent whose row would exceed it
    /// waits.
    pub capacity: Option<u16>,
    /// Span of the network's name.
    pub span: Span,
}

impl Network {
    /// Largest capacity that a file may state.
    pub(crate) const MAX_CAPACITY: u16 = 64;

    /// Returns true if an input queue has room for one more message, besides those in flight to its receiver.
    pub fn has_room(&self, in_flight: usize) -> bool {
        self.capacity
            .is_none_or(|capacity| in_flight < usize::from(capacity))
    }
}

/// A message that stays behind others. It is delivered only when none of the others is in flight that its sender sent
/// earlier to the same agent about the same line. Messages sent later may be overtaken or overtake it.
#[derive(Clone, PartialEq, Debug)]
pub struct PointOrder {
    /// Message that stays behind.
    pub message: MessageId,
    /// Messages that go first. No message goes before two different ones.
    pub earlier: Vec<MessageId>,
}

/// A virtual channel.
#[derive(Clone, PartialEq, Debug)]
pub struct Channel {
    /// Name in the file.
    pub name: String,
    /// Sending agent.
    pub from: End,
    /// Receiving agent.
    pub to: End,
    /// For each end at remotes (sender, receiver), the only kind allowed; `None` if any kind is.
    pub kinds: [Option<KindId>; 2],
    /// Class, written `as request` or implied by a channel named after its class. `None` only if the home is written by
    /// hand.
    pub class: Option<Class>,
    /// Span of the channel's name.
    pub span: Span,
}

/// A message type.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// Name in the file.
    pub name: String,
    /// Channel it travels on.
    pub channel: ChannelId,
    /// Data that it carries.
    pub carries: Carries,
    /// True if the message is about a line. Otherwise rows about no line take it, and any home may send or receive it.
    pub about_line: bool,
    /// Further fields, for controllers written by hand.
    pub fields: Vec<Field>,
    /// Span of the message's name.
    pub span: Span,
}

/// Data carried by a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carries {
    /// No data.
    Nothing,
    /// A copy of the line, written `(line)`.
    Line,
    /// A copy of the line that must replace the one in memory, written `(line, dirty)`.
    DirtyLine,
    /// New bytes for the whole line, from a non-caching write, written `(store)`.
    Store,
    /// New bytes for part of the line, from a non-caching write, written `(partial store)`.
    PartialStore,
}

impl Carries {
    /// Returns true if the message carries a copy of the line as its sender held it.
    pub fn line(self) -> bool {
        matches!(self, Carries::Line | Carries::DirtyLine)
    }
    /// Returns true if the message carries new bytes that a home must write on its sender's behalf.
    pub fn store(self) -> bool {
        matches!(self, Carries::Store | Carries::PartialStore)
    }
}

/// A field of a message.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    /// Name in the file.
    pub name: String,
    /// Type of its values.
    pub ty: Type,
    /// Span of the field's name.
    pub span: Span,
}

/// Limits on messages in flight that the file assumes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bounds {
    /// Maximum number of messages in flight per remote and line in total, if the file states it.
    pub in_flight: Option<Bound>,
    /// Maximum number of messages of one type in flight per remote and line; an agent that would send another waits.
    /// Only for messages of class victim.
    pub per_message: Vec<(MessageId, Bound)>,
}

/// One stated bound of messages in flight.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bound {
    /// Largest number of messages allowed, at least 1.
    pub limit: u16,
    /// Span of the statement.
    pub span: Span,
}

impl Bounds {
    /// Returns true if an agent may start an access whose row sends the messages `sent`: none would exceed its bound.
    /// `in_flight` counts messages of a type in flight between the agent and the home, for the line.
    #[inline]
    pub fn can_start_access(
        &self,
        sent: impl Iterator<Item = MessageId> + Clone,
        in_flight: impl Fn(MessageId) -> usize,
    ) -> bool {
        self.per_message.iter().all(|&(kind, bound)| {
            let is_sent = sent.clone().any(|message| message == kind);
            !is_sent || in_flight(kind) < usize::from(bound.limit)
        })
    }

    /// Describes the violated bound if this many messages from or to one remote are in flight for one line.
    pub fn exceeded(&self, in_flight: usize) -> Option<String> {
        let bound = self.in_flight?;
        (in_flight > usize::from(bound.limit)).then(|| bound.violation_name())
    }
}

impl Bound {
    /// Name of a violation of [`Bounds::in_flight`], the same in every check that finds it.
    pub fn violation_name(&self) -> String {
        format!("more than {} in flight", counted(self.limit, "message"))
    }
}

/// A system to check: numbers of agents and lines.
#[derive(Clone, PartialEq, Debug)]
pub struct System {
    /// Name after the keyword `system`.
    pub name: String,
    /// Number of caching agents of each kind, 1 to [`System::MAX_REMOTES`] in total.
    pub remotes: Remotes,
    /// Number of lines, 1 to [`System::MAX_LINES`].
    pub lines: u8,
    /// True if the home's memory has a backing permission of an outer level (`parent any`). It changes over time, as
    /// if a cache backed the home.
    pub parent_any: bool,
    /// Sizes of the file that this system overrides, with their values.
    pub sizes: Vec<(String, u16)>,
    /// The protocol resolved with these sizes, if the system overrides any.
    pub resized_protocol: Option<Arc<Protocol>>,
    /// Span of the system's name.
    pub span: Span,
}

impl System {
    /// Maximum number of caching agents of any system, checked or simulated.
    pub const MAX_REMOTES: u8 = 8;
    /// Maximum number of lines of a checked system.
    pub const MAX_LINES: u8 = 4;

    /// Creates a system that overrides no size of the file.
    pub fn new(name: String, remotes: impl Into<Remotes>, lines: u8) -> System {
        System {
            name,
            remotes: remotes.into(),
            lines,
            parent_any: false,
            sizes: Vec::new(),
            resized_protocol: None,
            span: Span::default(),
        }
    }
}

/// An invariant of the file: `invariant NAME: EXPRESSION`.
#[derive(Clone, PartialEq, Debug)]
pub struct Invariant {
    /// Name of the invariant.
    pub name: String,
    /// Claim that must hold in every reachable state, for every line.
    pub claim: Claim,
    /// Span of the whole invariant.
    pub span: Span,
}

/// A statement about one line in one global state.
#[derive(Clone, PartialEq, Debug)]
pub enum Claim {
    /// Comparison of two amounts.
    Compare(Amount, Comparison, Amount),
    /// Both claims hold.
    And(Box<Claim>, Box<Claim>),
    /// At least one of the claims holds.
    Or(Box<Claim>, Box<Claim>),
    /// The claim does not hold.
    Not(Box<Claim>),
    /// If the first holds, so does the second.
    Implies(Box<Claim>, Box<Claim>),
    /// The device holds the line under a lock.
    Locked,
}

/// A number in a claim.
#[derive(Clone, PartialEq, Debug)]
pub enum Amount {
    /// A constant.
    Constant(u16),
    /// Number of remotes in one of these states: `count(M E)`.
    RemotesIn(Vec<StateId>),
    /// Number of messages of these types in flight: `in_flight(Inv Data)`.
    InFlight(Vec<MessageId>),
}

/// A comparison operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Protocol {
    /// Names a feature that couples lines, so that no line can be analysed alone. Returns `None` if lines are
    /// independent.
    pub fn joins_lines(&self) -> Option<&'static str> {
        let is_bulk_transition = |s: &Statement| matches!(s, Statement::BulkTransition { .. });
        let has_bulk_transition = self
            .remote
            .rules
            .iter()
            .any(|row| row.has_statement(&is_bulk_transition));
        let bulk_transitions = has_bulk_transition.then_some("rows that change every line");
        self.line_coupling().or(bulk_transitions)
    }

    /// As [`Protocol::joins_lines`], without rows that change every line: state, messages or networks that belong to no
    /// single line, or several homes.
    pub fn line_coupling(&self) -> Option<&'static str> {
        let home = match &self.home {
            Home::Controller(home) => Some(home),
            Home::Policy(_) => None,
        };
        let mut variables = home
            .into_iter()
            .chain([&self.remote])
            .flat_map(|c| &c.variables);
        if variables.any(|variable| variable.register) {
            return Some("registers");
        }
        if self.messages.iter().any(|message| !message.about_line) {
            return Some("messages about no line");
        }
        if !self.networks.is_empty() {
            return Some("shared networks");
        }
        (self.homes > 1).then_some("several homes")
    }

    /// Returns the reason why lines that are each free of deadlocks may block each other: [`Protocol::joins_lines`], or
    /// an order over all lines in which a message may wait for one of another line. Returns `None` if it suffices to
    /// check one line.
    pub fn blocks_across_lines(&self) -> Option<&'static str> {
        let mut orders = self.orders.iter().zip(&self.per_line);
        let has_stalls = orders.any(|(order, &per_line)| !per_line && self.can_stall(order));
        let stalls = has_stalls.then_some("orders over all lines, in which messages stall,");
        self.joins_lines().or(stalls)
    }

    /// Returns true if a message of an order may wait at its receiver: a row stalls it, a row sends a message whose
    /// number is bounded, or it stays behind a message of another order. A constructed home stalls messages that it
    /// cannot serve at once.
    fn can_stall(&self, order: &[ChannelId]) -> bool {
        let in_order = |message: MessageId| order.contains(&self.message(message).channel);
        let is_bounded = |statement: &Statement| match statement {
            Statement::Send { message, .. } => {
                let mut bounds = self.bounds.per_message.iter();
                bounds.any(|(bounded, _)| bounded == message)
            }
            _ => false,
        };
        let may_stall = |controller: &Controller| {
            controller.rules.iter().any(|row| {
                let is_taken = matches!(row.event, Event::Message(message) if in_order(message));
                is_taken && (row.effect == Effect::Stall || row.has_statement(&is_bounded))
            })
        };
        let stalls_at_home = match &self.home {
            Home::Controller(home) => may_stall(home),
            Home::Policy(_) => {
                let mut channels = self.channels.iter().enumerate();
                channels.any(|(number, channel)| {
                    channel.to == End::Home && order.contains(&ChannelId(number as u16))
                })
            }
        };
        stalls_at_home
            || may_stall(&self.remote)
            || self
                .point_orders
                .iter()
                .any(|order| in_order(order.message))
    }

    /// The message with this index.
    pub fn message(&self, id: MessageId) -> &Message {
        &self.messages[id.index()]
    }
    /// The channel a message travels on.
    pub fn channel_of(&self, id: MessageId) -> &Channel {
        &self.channels[self.message(id).channel.index()]
    }
    /// The class of a message, where its channel states one.
    pub fn class(&self, id: MessageId) -> Option<Class> {
        self.channel_of(id).class
    }
    /// Index into [`Protocol::orders`] of the order of a channel; `None` if the channel is unordered.
    pub fn order_of(&self, channel: ChannelId) -> Option<usize> {
        self.orders
            .iter()
            .position(|group| group.contains(&channel))
    }
    /// Network of an order, given as an index into [`Protocol::orders`].
    pub fn network_of(&self, order: usize) -> Option<&Network> {
        self.networks.iter().find(|network| network.order == order)
    }
    /// Returns true if a remote performs an access with the data of this message (`done`). Such data must be that of
    /// the last write when it is sent. That holds even if the remote also keeps the line: it may keep it without
    /// permission, and then no other check reads the data. Always false if the protocol allows stale copies.
    pub fn is_single_use(&self, id: MessageId) -> bool {
        self.guarantee.coherent
            && self.message(id).carries.line()
            && self.remote.rules.iter().any(|rule| {
                rule.event == Event::Message(id)
                    && matches!(&rule.effect, Effect::Take { body, .. } if body.contains(&Statement::Done))
            })
    }
    /// Messages that this one stays behind; empty if there are none.
    pub fn earlier_messages(&self, id: MessageId) -> &[MessageId] {
        let order = self.point_orders.iter().find(|order| order.message == id);
        order.map_or(&[], |order| &order.earlier)
    }
    /// Returns true if some message stays behind this one.
    pub fn has_ordered_followers(&self, id: MessageId) -> bool {
        self.point_orders
            .iter()
            .any(|order| order.earlier.contains(&id))
    }
    /// Kind to which a state of the remotes belongs; the first of those that share it.
    pub fn kind_of(&self, state: StateId) -> KindId {
        let last = self.kinds.iter().rev().find(|kind| kind.initial <= state);
        let initial = last.map_or(StateId(0), |kind| kind.initial);
        let first = self.kinds.iter().position(|kind| kind.initial == initial);
        KindId(first.unwrap_or(0) as u8)
    }
    /// Returns true if some kinds have rows of their own, so that an agent's state determines its kind.
    pub fn several_tables(&self) -> bool {
        let first = self.kinds.first().map(|kind| kind.initial);
        self.kinds.iter().any(|kind| Some(kind.initial) != first)
    }
    /// Name of the remote with this number.
    pub fn remote_name(&self, remotes: &Remotes, number: u16) -> String {
        if remotes.total() == 1 {
            return self.kinds[remotes.kind(number).0.index()].name.clone();
        }
        let (kind, position) = remotes.kind(number);
        let name = &self.kinds[kind.index()].name;
        match self.kinds.len() > 1 && remotes.count(kind) == 1 {
            true => name.clone(),
            false => format!("{name} {position}"),
        }
    }
    /// All message indices, in the order of the file.
    pub fn message_ids(&self) -> impl Iterator<Item = MessageId> {
        (0..self.messages.len() as u16).map(MessageId)
    }
}
