//! What a protocol text means, after names and types are resolved.
//!
//! A [`Protocol`] has two sorts of agent: *remotes* (caching agents, of one [`Kind`] or several,
//! of which a system has one or more) and the *home*.
//! The rows of all remotes are one [`Controller`].
//! The home is either a controller written by hand or a [`Policy`]
//! from which [`crate::construct`] builds a controller.

use crate::controller::{Controller, Effect, Event, Statement};
use crate::orders::{Model, Orders};
use crate::policy::Policy;
use crate::remotes::{Kind, KindId, Remotes};
use crate::terms::Span;
pub use crate::terms::{ChannelId, MessageId, Right, StateId, Type, VariableId};
use cohkit_base::words::counted;
use std::sync::Arc;

/// One protocol text, resolved.
#[derive(Clone, PartialEq, Debug)]
pub struct Protocol {
    /// Name after the keyword `protocol`.
    pub name: String,
    /// The quoted title, or empty.
    pub title: String,
    /// Size of a cache line in bytes.
    pub line_bytes: u32,
    /// Virtual channels.
    pub channels: Vec<Channel>,
    /// Sets of channels whose messages share one first-in first-out order per
    /// (sender, receiver) pair. A channel stands in at most one; a channel in
    /// none is unordered. A single ordered channel is a group of one.
    pub orders: Vec<Vec<ChannelId>>,
    /// Of each of these sets, whether only messages about one line are in order.
    pub per_line: Vec<bool>,
    /// Networks: those of these sets whose messages share one input queue at each receiver, whoever sends them.
    pub networks: Vec<Network>,
    /// Message kinds.
    pub messages: Vec<Message>,
    /// Messages that stay behind others which were sent before them, though no order of channels says so.
    pub behind: Vec<Behind>,
    /// The kinds of caching agents, at least one.
    pub kinds: Vec<Kind>,
    /// The rows of all caching agents. A state belongs to the kinds that begin before it and last.
    pub remote: Controller,
    /// The home agent.
    pub home: Home,
    /// Assumed limits on messages in flight; part of every verdict.
    pub bounds: Bounds,
    /// How many homes share the lines: line L is home L mod this one's.
    pub homes: u16,
    /// The orders that threads keep among their accesses, if the text has a block for them.
    pub kept: Option<Orders>,
    /// What it promises to those who read and write through its caches.
    pub guarantee: Guarantee,
    /// Systems to check.
    pub systems: Vec<System>,
    /// Invariants written in the text, besides those that come for free.
    pub invariants: Vec<Invariant>,
}

/// What a text promises to those who read and write through its caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guarantee {
    /// Whether it keeps single writer and data value: a right to write is alone, and what may be read is what was written
    /// last. Without (`guarantee none`) rights say only what an agent does by itself, and copies may be old.
    pub coherent: bool,
    /// The memory model that programs are to find, if the text names one.
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

/// The home agent of a protocol text.
#[derive(Clone, PartialEq, Debug)]
pub enum Home {
    /// A controller written out by hand.
    Controller(Controller),
    /// Goals; the controller is constructed.
    Policy(Policy),
}

/// Which agents a channel may start or end at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// A remote agent.
    Remote,
    /// The home agent.
    Home,
    /// Either.
    Any,
}

/// What the messages of a channel are for. A home policy needs to know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// Asks the home for a right or an access; the only class a home may stall.
    Request,
    /// Gives a right up unasked.
    Victim,
    /// Answers a forward.
    Answer,
    /// The home asks a remote to give up a right.
    Forward,
    /// The home answers a request.
    Grant,
    /// The remote confirms that a grant has arrived.
    Acknowledgement,
}

/// A virtual network: channels in one order, whose messages to one receiver share one input queue. Messages of one sender
/// enter it in the order in which they were sent, those of several senders in any order. Only the first one can be taken.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// Name in the text.
    pub name: String,
    /// Index of its channels into [`Protocol::orders`].
    pub order: usize,
    /// Most messages in flight to one receiver, if the text states it: an agent whose row would send more waits.
    pub capacity: Option<u16>,
    /// The name in the text.
    pub span: Span,
}

impl Network {
    /// The largest capacity that a text may state.
    pub const MOST_CAPACITY: u16 = 64;

    /// Returns true if an input queue has room for one more message beside those in flight to its receiver.
    pub fn has_room(&self, in_flight: usize) -> bool {
        self.capacity
            .is_none_or(|capacity| in_flight < usize::from(capacity))
    }
}

/// A message that stays behind others: it is delivered only when none of these is in flight that the same agent sent
/// earlier, to the same agent and about the same line. Otherwise they may overtake each other.
#[derive(Clone, PartialEq, Debug)]
pub struct Behind {
    /// The message that stays behind.
    pub message: MessageId,
    /// The messages that go before it. No message goes before two.
    pub earlier: Vec<MessageId>,
}

/// A virtual channel.
#[derive(Clone, PartialEq, Debug)]
pub struct Channel {
    /// Name in the text.
    pub name: String,
    /// Sender.
    pub from: End,
    /// Receiver.
    pub to: End,
    /// Of remotes that send, or receive, the only kind; `None` if any kind does.
    pub kinds: [Option<KindId>; 2],
    /// Written `as request`, or implied when the channel is named after its class.
    /// `None` only where the home is written by hand.
    pub class: Option<Class>,
    /// The name in the text.
    pub span: Span,
}

/// A message kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// Name in the text.
    pub name: String,
    /// The channel it travels on.
    pub channel: ChannelId,
    /// What bytes it carries.
    pub carries: Carries,
    /// Whether it is about a line; otherwise rows that are about no line take it, from and to any home.
    pub about_line: bool,
    /// Further fields, for controllers written by hand.
    pub fields: Vec<Field>,
    /// The name in the text.
    pub span: Span,
}

/// What bytes a message carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carries {
    /// None.
    Nothing,
    /// A copy of the line; written `(line)`.
    Line,
    /// A copy of the line that must replace the memory's; written `(line, dirty)`.
    DirtyLine,
    /// New bytes for the whole line, from a non-caching write; written `(store)`.
    Store,
    /// New bytes for a part of the line, from a non-caching write; written `(partial store)`.
    PartialStore,
}

impl Carries {
    /// Whether the message carries a copy of the line as its sender held it.
    pub fn line(self) -> bool {
        matches!(self, Carries::Line | Carries::DirtyLine)
    }
    /// Whether the message carries new bytes that a home must write on its sender's behalf.
    pub fn store(self) -> bool {
        matches!(self, Carries::Store | Carries::PartialStore)
    }
}

/// A field of a message.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    /// Name in the text.
    pub name: String,
    /// Its values.
    pub ty: Type,
    /// The name in the text.
    pub span: Span,
}

/// Limits on messages in flight that the text assumes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bounds {
    /// Most messages in flight per remote and line in total, if the text states it.
    pub in_flight: Option<Bound>,
    /// Most messages of one kind in flight per remote and line; sending another waits.
    /// Only for messages of class victim.
    pub per_message: Vec<(MessageId, Bound)>,
}

/// One stated bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bound {
    /// The largest number allowed.
    pub limit: u16,
    /// Where it stands.
    pub span: Span,
}

impl Bounds {
    /// Whether an agent may begin what sends these messages: not if one more of a kind would be too many.
    /// `in_flight` counts those of a kind under way between the agent and the home, for the line.
    pub fn let_begin(
        &self,
        sends: impl Fn(MessageId) -> bool,
        in_flight: impl Fn(MessageId) -> usize,
    ) -> bool {
        self.per_message
            .iter()
            .all(|&(kind, bound)| !sends(kind) || in_flight(kind) < usize::from(bound.limit))
    }

    /// What is wrong if so many messages from or to one remote are in flight for one line.
    pub fn exceeded(&self, in_flight: usize) -> Option<String> {
        let bound = self.in_flight?;
        (in_flight > usize::from(bound.limit)).then(|| bound.excess())
    }
}

impl Bound {
    /// The name of what is wrong when [`Bounds::in_flight`] does not hold, the same wherever it is found.
    pub fn excess(&self) -> String {
        format!("more than {} in flight", counted(self.limit, "message"))
    }
}

/// A system to check: how many agents and lines.
#[derive(Clone, PartialEq, Debug)]
pub struct System {
    /// Name after the keyword `system`.
    pub name: String,
    /// Number of caching agents of each kind, 1 to [`System::MOST_REMOTES`] in all.
    pub remotes: Remotes,
    /// Number of lines, 1 to [`System::MOST_LINES`].
    pub lines: u8,
    /// Whether the memory behind the home is lent: the right to it comes and goes, as where the home stands over a cache.
    pub lent: bool,
    /// The sizes of the text that are others here.
    pub sizes: Vec<(String, u16)>,
    /// What the text means with these sizes, where there are some.
    pub sized: Option<Arc<Protocol>>,
    /// The name in the text.
    pub span: Span,
}

impl System {
    /// The most caching agents of any system: of one that is checked, and of a machine that is simulated.
    pub const MOST_REMOTES: u8 = 8;
    /// The most lines of a system that is checked.
    pub const MOST_LINES: u8 = 4;

    /// A system that takes all sizes as the text states them.
    pub fn new(name: String, remotes: impl Into<Remotes>, lines: u8) -> System {
        System {
            name,
            remotes: remotes.into(),
            lines,
            lent: false,
            sizes: Vec::new(),
            sized: None,
            span: Span::default(),
        }
    }
}

/// An invariant written in the text: `invariant NAME: EXPRESSION`.
#[derive(Clone, PartialEq, Debug)]
pub struct Invariant {
    /// Its name.
    pub name: String,
    /// What must hold in every reachable state, for every line.
    pub holds: Claim,
    /// The whole invariant in the text.
    pub span: Span,
}

/// A statement about one line in one global state.
#[derive(Clone, PartialEq, Debug)]
pub enum Claim {
    /// Comparison of two amounts.
    Compare(Amount, Comparison, Amount),
    /// Both hold.
    And(Box<Claim>, Box<Claim>),
    /// One holds.
    Or(Box<Claim>, Box<Claim>),
    /// It does not hold.
    Not(Box<Claim>),
    /// If the first holds, so does the second.
    Implies(Box<Claim>, Box<Claim>),
    /// The device holds the line under a lock.
    Locked,
}

/// A number that a claim speaks of.
#[derive(Clone, PartialEq, Debug)]
pub enum Amount {
    /// A constant.
    Constant(u16),
    /// How many remotes are in one of these states: `count(M E)`.
    RemotesIn(Vec<StateId>),
    /// How many messages of these kinds are in flight: `in_flight(Inv Data)`.
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
    /// What a line has in common with others, so that no line can be looked at alone: `None` if nothing is.
    pub fn joins_lines(&self) -> Option<&'static str> {
        let every = |s: &Statement| matches!(s, Statement::Every { .. });
        let every = self.remote.rules.iter().any(|row| row.says(&every));
        let every = every.then_some("rows that change every line");
        self.has_in_common().or(every)
    }

    /// The same, but for rows that change every line: what is kept or sent that is of no line, or of several.
    pub fn has_in_common(&self) -> Option<&'static str> {
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

    /// Returns the reason why lines that are each free of deadlocks may block each other: [`Protocol::joins_lines`], or an
    /// order over all lines in which a message may wait for another that is not of its line. `None` if one line says it all.
    pub fn blocks_across_lines(&self) -> Option<&'static str> {
        let mut orders = self.orders.iter().zip(&self.per_line);
        let stalls = orders.any(|(order, &per_line)| !per_line && self.stalls_in(order));
        let stalls = stalls.then_some("orders over all lines, in which messages stall,");
        self.joins_lines().or(stalls)
    }

    /// Returns true if a message of an order may wait at its receiver: a row leaves it or sends a message whose number is
    /// bounded, or it stays behind a message of another order. A home that is constructed leaves what it cannot serve at once.
    fn stalls_in(&self, order: &[ChannelId]) -> bool {
        let in_order = |message: MessageId| order.contains(&self.message(message).channel);
        let bounded = |statement: &Statement| match statement {
            Statement::Send { message, .. } => {
                let mut bounds = self.bounds.per_message.iter();
                bounds.any(|(bounded, _)| bounded == message)
            }
            _ => false,
        };
        let stalls = |controller: &Controller| {
            controller.rules.iter().any(|row| {
                let taken = matches!(row.event, Event::Message(message) if in_order(message));
                taken && (row.effect == Effect::Leave || row.says(&bounded))
            })
        };
        let at_home = match &self.home {
            Home::Controller(home) => stalls(home),
            Home::Policy(_) => {
                let mut channels = self.channels.iter().enumerate();
                channels.any(|(number, channel)| {
                    channel.to == End::Home && order.contains(&ChannelId(number as u16))
                })
            }
        };
        at_home || stalls(&self.remote) || self.behind.iter().any(|behind| in_order(behind.message))
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
    /// The order group a channel stands in, as an index into [`Protocol::orders`];
    /// `None` if it is unordered.
    pub fn order_of(&self, channel: ChannelId) -> Option<usize> {
        self.orders
            .iter()
            .position(|group| group.contains(&channel))
    }
    /// The network of an order group, given as an index into [`Protocol::orders`].
    pub fn network_of(&self, order: usize) -> Option<&Network> {
        self.networks.iter().find(|network| network.order == order)
    }
    /// Whether a remote performs an access with the bytes that this message brings (`done`), so that they must be
    /// those of the last write when they are sent. Whether it keeps the line besides makes no difference:
    /// it may keep it without a right, and then nobody else would look at these bytes.
    /// Where copies may be old, so may these be.
    pub fn used_once(&self, id: MessageId) -> bool {
        self.guarantee.coherent
            && self.message(id).carries.line()
            && self.remote.rules.iter().any(|rule| {
                rule.event == Event::Message(id)
                    && matches!(&rule.effect, Effect::Take { body, .. } if body.contains(&Statement::Done))
            })
    }
    /// The messages that this one stays behind, and those that stay behind it.
    pub fn stays_behind(&self, id: MessageId) -> &[MessageId] {
        let behind = self.behind.iter().find(|behind| behind.message == id);
        behind.map_or(&[], |behind| &behind.earlier)
    }
    /// Whether some message stays behind this one.
    pub fn goes_before(&self, id: MessageId) -> bool {
        self.behind
            .iter()
            .any(|behind| behind.earlier.contains(&id))
    }
    /// The kind to which a state of the remotes belongs; the first of those that share it.
    pub fn kind_of(&self, state: StateId) -> KindId {
        let last = self.kinds.iter().rev().find(|kind| kind.initial <= state);
        let initial = last.map_or(StateId(0), |kind| kind.initial);
        let first = self.kinds.iter().position(|kind| kind.initial == initial);
        KindId(first.unwrap_or(0) as u8)
    }
    /// Whether some kinds have rows of their own, so that what an agent is follows from its state.
    pub fn several_tables(&self) -> bool {
        let first = self.kinds.first().map(|kind| kind.initial);
        self.kinds.iter().any(|kind| Some(kind.initial) != first)
    }
    /// The name of the remote with this number.
    pub fn remote_name(&self, remotes: &Remotes, number: u16) -> String {
        if remotes.total() == 1 {
            return self.kinds[remotes.kind(number).0.index()].name.clone();
        }
        let (kind, place) = remotes.kind(number);
        let name = &self.kinds[kind.index()].name;
        match self.kinds.len() > 1 && remotes.of(kind) == 1 {
            true => name.clone(),
            false => format!("{name} {place}"),
        }
    }
    /// All message indices, in the order of the text.
    pub fn message_ids(&self) -> impl Iterator<Item = MessageId> {
        (0..self.messages.len() as u16).map(MessageId)
    }
}
