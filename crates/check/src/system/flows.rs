//! Messages in flight as state: one flow for each message type and direction, stored as a counter or in queues.

use cohkit_engine::model::{Expr, Place, TypeId, VariableId};
use cohkit_protocol::protocol::MessageId;

use super::tickets::Tickets;

/// Kinds of sender and receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    /// From a remote to the home of a line.
    ToHome,
    /// From a home to a remote.
    ToRemote,
    /// From a remote to another remote.
    Between,
    /// From a home to another home.
    BetweenHomes,
}

impl Direction {
    /// All directions, in the order in which channels are declared.
    pub const ALL: [Direction; 4] = [
        Direction::ToHome,
        Direction::ToRemote,
        Direction::Between,
        Direction::BetweenHomes,
    ];

    /// Returns true if the sender is a remote.
    pub fn is_from_remote(self) -> bool {
        matches!(self, Direction::ToHome | Direction::Between)
    }

    /// Returns true if the receiver is a remote.
    pub fn is_to_remote(self) -> bool {
        matches!(self, Direction::ToRemote | Direction::Between)
    }

    /// Returns the number of remotes among sender and receiver, 0 to 2: the number of indices that a counter or queue
    /// has for them.
    pub fn remote_ends(self) -> usize {
        usize::from(self.is_from_remote()) + usize::from(self.is_to_remote())
    }

    /// Returns the end of the names of variables that hold messages in this direction.
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
    /// Message type.
    pub message: MessageId,
    /// Kinds of sender and receiver.
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
    /// Counter or queue that holds the messages.
    pub storage: Storage,
    /// Column `field<N>` of the queue's entries that holds each stored field. Empty for a counted flow.
    pub columns: Vec<usize>,
    /// Maximum number of messages in flight per sender, receiver and line, for a counted flow. A queued flow is
    /// limited by [`Queue::capacity`].
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
    /// Kinds of sender and receiver.
    pub direction: Direction,
    /// Index of the group of ordered channels in `Protocol::orders`.
    pub order: usize,
    /// State variable: records of `length` and `slot`, indexed by line or home, then by sender and receiver.
    pub variable: VariableId,
    /// The enumeration of message types; its first label is that of an empty slot.
    pub kinds: TypeId,
    /// Index type of the slots, from 0 to `capacity` - 1. Slot 0 is the head.
    pub positions: TypeId,
    /// Maximum number of messages in one queue.
    pub capacity: i32,
    /// True if each line has its own queue; otherwise each home has one, and an entry holds the number of its line.
    pub per_line: bool,
    /// True if entries have the current bit of a copy of the line.
    pub carries_line: bool,
    /// True if entries hold the ticket of a store.
    pub tickets: bool,
    /// Between homes: the type of the sending home's number.
    pub senders: Option<TypeId>,
    /// Names of its channels, separated by commas, for messages to users.
    pub name: String,
}

impl Queue {
    /// Returns true if an entry is about the line. A queue of a single line needs no test.
    pub fn is_about(&self, entry: &Place, line: &Expr) -> Expr {
        match self.per_line {
            true => Expr::Bool(true),
            false => entry.clone().field("line").is(line),
        }
    }

    /// Returns true if an entry is a message of this label about the line. Label 0 is that of an empty slot.
    pub fn holds(&self, entry: &Place, label: u32, line: &Expr) -> Expr {
        let kind = entry.clone().field("kind").is(self.kinds.nth(label));
        kind.and(self.is_about(entry, line))
    }
}

/// Sender and receiver of a message: the index of a remote, or `None` for a home.
#[derive(Clone, Copy)]
pub(super) struct Endpoints<'e> {
    /// Sender.
    pub from: Option<&'e Expr>,
    /// Receiver.
    pub to: Option<&'e Expr>,
}

impl Endpoints<'_> {
    /// Indexes a counter or queue by sender and receiver; a home needs no index.
    pub fn index(self, place: Place) -> Place {
        let remotes = [self.from, self.to].into_iter().flatten();
        remotes.fold(place, |place, remote| place.at(remote))
    }
}
