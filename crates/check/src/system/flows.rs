//! Messages in flight as state: one flow for each message type and direction, stored as a counter or in queues.

use cohkit_engine::model::{Expr, Place, TypeId, VariableId};
use cohkit_protocol::protocol::MessageId;

use super::tickets::Tickets;

/// Kinds of sender and receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    ToHome,
    ToRemote,
    Between,
    BetweenHomes,
}

impl Direction {
    pub const ALL: [Direction; 4] = [
        Direction::ToHome,
        Direction::ToRemote,
        Direction::Between,
        Direction::BetweenHomes,
    ];

    pub fn is_from_remote(self) -> bool {
        matches!(self, Direction::ToHome | Direction::Between)
    }

    pub fn is_to_remote(self) -> bool {
        matches!(self, Direction::ToRemote | Direction::Between)
    }

    /// Number of remotes among sender and receiver.
    pub fn remote_ends(self) -> usize {
        usize::from(self.is_from_remote()) + usize::from(self.is_to_remote())
    }

    /// End of the names of variables that hold messages in this direction.
    pub fn suffix(self) -> &'static str {
        match self {
            Direction::ToHome => "to_home",
            Direction::ToRemote => "to_remote",
            Direction::Between => "between",
            Direction::BetweenHomes => "between_homes",
        }
    }
}

/// One message type in one direction.
pub(super) struct Flow {
    pub message: MessageId,
    pub direction: Direction,
    /// Per field of the message, its value if every send gives the same constant. Such a field is not stored.
    pub constants: Vec<Option<u16>>,
    /// Types of the stored fields, in order, followed by that of the ticket if it is stored. The last one is the bit of
    /// [`Flow::has_ordered_followers`].
    pub stored: Vec<TypeId>,
    /// Tickets of the stores that it carries, if stores are tracked.
    pub tickets: Option<Tickets>,
    /// True if other messages stay behind these. Each message then has a bit: true if such a message has been sent
    /// later.
    pub has_ordered_followers: bool,
    pub storage: Storage,
    /// In a queue: the column of the entry that holds each stored field.
    pub columns: Vec<usize>,
    /// Maximum number in flight per sender and receiver (and line, if unordered).
    pub capacity: i32,
    /// The property that a further message violates, if the capacity is a bound declared in the protocol file.
    pub bound: Option<String>,
}

impl Flow {
    /// Values of all fields. Fields that are not stored have the constant that every send gives them.
    pub fn fields(&self, stored: Vec<Expr>) -> Vec<Expr> {
        let mut stored = stored.into_iter();
        let values = self.constants.iter().map(|constant| match constant {
            Some(constant) => Some(Expr::Int((*constant).into())),
            None => stored.next(),
        });
        values.flatten().collect()
    }
}

/// Storage of a flow's messages.
#[derive(Clone, Copy)]
pub(super) enum Storage {
    /// A counter, indexed by line, sender, receiver, stored values and current bit.
    Counted(VariableId),
    /// A queue by its index, and the label of the message type in it.
    Queued(usize, u32),
}

impl Storage {
    /// The counter, if there is one.
    pub fn counter(self) -> Option<VariableId> {
        match self {
            Storage::Counted(variable) => Some(variable),
            Storage::Queued(..) => None,
        }
    }
}

/// The queues of one ordered group in one direction.
pub(super) struct Queue {
    pub direction: Direction,
    /// Index of the order of its channels in the protocol.
    pub order: usize,
    pub variable: VariableId,
    /// The enumeration of message types; its first label is that of an empty slot.
    pub kinds: TypeId,
    pub positions: TypeId,
    pub capacity: i32,
    /// True if each line has its own queue; otherwise each home has one, and an entry holds the number of its line.
    pub per_line: bool,
    /// True if entries have the current bit of a copy of the line.
    pub carries_line: bool,
    /// True if entries hold the ticket of a store.
    pub tickets: bool,
    /// Between homes: the type of the sending home's number.
    pub senders: Option<TypeId>,
    /// Names of its channels.
    pub name: String,
}

impl Queue {
    /// True if an entry is about the line.
    pub fn about(&self, entry: &Place, line: &Expr) -> Expr {
        match self.per_line {
            true => Expr::Bool(true),
            false => entry.clone().field("line").is(line),
        }
    }

    /// True if an entry is a message of this label about the line.
    pub fn holds(&self, entry: &Place, label: u32, line: &Expr) -> Expr {
        let kind = entry.clone().field("kind").is(self.kinds.nth(label));
        kind.and(self.about(entry, line))
    }
}

/// Indexes a place by sender and receiver; the home needs no index.
pub(super) fn ends(place: Place, from: Option<&Expr>, to: Option<&Expr>) -> Place {
    [from, to]
        .into_iter()
        .flatten()
        .fold(place, |place, end| place.at(end))
}
