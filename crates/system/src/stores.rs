//! Stores on their way from the remote that begins them to memory.
//!
//! # Every store is performed once
//!
//! A store is followed by identity, not by one bit per remote and line. Its bytes are in one place at a time: in a
//! message, or deferred at the home. Each of these places holds a [`Ticket`], and a home performs a store only against
//! its ticket:
//!
//! * A *posted* store ends for its core when its message is sent, so its message is the only carrier of its bytes. A
//!   home that takes the message either writes the bytes, once, or defers them. Anything else loses the store.
//! * An *awaited* store belongs to the access in progress, which may send its bytes again or give up. At most one of
//!   its messages is performed. All others are void from then on, also after the access has ended.
//! * A *void* ticket belongs to a store that has been performed or given up, or that an earlier message of its row has
//!   posted. Performing it would undo newer stores.
//!
//! Tickets need no numbers of stores: a ticket moves with its bytes, so two equal tickets are interchangeable. The
//! number of pending stores of a remote and line is the number of its tickets that are not void. In a protocol that
//! performs every store once, tickets follow from the rest of the state, and add no states.
//!
//! # Program order of one line
//!
//! In a coherent protocol every read finds the last performed store. Only posted stores that are still pending can
//! therefore break the program order of one line. An access comes after another one in program order if it begins after
//! the other one has ended. Therefore
//!
//! * a posted store has a *rank*: the number of earlier posted stores of its remote and line that are pending. A store
//!   is performed at rank 0 alone, and all other ranks of its remote and line then go down by one;
//! * as long as a posted store is pending, no copy of the line answers an access of its remote. No other store of the
//!   remote to the line is performed either. No store is posted during an access: a store that is sent then is the
//!   access in progress from then on.
//!
//! # Atomic accesses
//!
//! An atomic access that the home performs reads the copy that answers it, at the moment when that copy is sent.
//! Between this moment and the performing of its store no other store to the line is performed ([`AtomicRead`]).

use std::ops::RangeInclusive;

use crate::violation::Violation;

/// Maximum number of ranks that are distinguished.
const MAX_RANKS: u16 = 250;

/// Number of ranks of posted stores for a channel capacity. Without `line_order`, all posted stores have rank 0.
pub fn ranks(channel_capacity: u16, line_order: bool) -> u8 {
    match line_order {
        true => channel_capacity.min(MAX_RANKS) as u8,
        false => 1,
    }
}

/// State of the store that a message or a home carries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ticket(pub u8);

impl Ticket {
    /// The store has been performed or given up, or another message carries it.
    pub const VOID: Ticket = Ticket(0);
    /// The store belongs to the access in progress.
    pub const AWAITED: Ticket = Ticket(1);
    /// The store is posted, and has rank 0. Further ranks follow.
    pub const POSTED: Ticket = Ticket(2);

    /// The ticket of a posted store.
    pub fn posted(rank: u8) -> Ticket {
        Ticket(Ticket::POSTED.0 + rank)
    }

    /// True if the store is posted.
    pub fn is_posted(self) -> bool {
        self >= Ticket::POSTED
    }
}

/// Relation of the next message with a store's bytes to that store, within one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreSend {
    /// The access goes on after this row.
    Awaited,
    /// The access ends, and this message is the only carrier of the bytes.
    Posted,
    /// An earlier message of the row has posted the store. Performing it again would undo newer stores.
    Repeated,
}

impl StoreSend {
    /// The relation of the row's first message to the store. `posts` is true if the row posts it.
    pub fn first(posts: bool) -> StoreSend {
        match posts {
            true => StoreSend::Posted,
            false => StoreSend::Awaited,
        }
    }

    /// Returns this relation, and advances to that of the row's next message.
    pub fn take(&mut self) -> StoreSend {
        let next = match self {
            StoreSend::Awaited => StoreSend::Awaited,
            StoreSend::Posted | StoreSend::Repeated => StoreSend::Repeated,
        };
        std::mem::replace(self, next)
    }
}

/// Kinds of rows that send the stores of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Senders {
    /// True if some row posts them.
    pub post: bool,
    /// True if some row sends them for an access that continues or is abandoned, or after it has posted them by another
    /// message.
    pub wait: bool,
}

impl Senders {
    /// The tickets that such a message may carry, if there are `ranks` ranks.
    pub fn tickets(self, ranks: u8) -> RangeInclusive<u8> {
        let lowest = match self.wait {
            true => Ticket::VOID,
            false => Ticket::POSTED,
        };
        let highest = match self.post {
            true => Ticket::posted(ranks - 1),
            false => Ticket::AWAITED,
        };
        lowest.0..=highest.0
    }
}

/// The copy that an atomic access in progress reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum AtomicRead {
    /// No copy has been sent, or the store of the access has been performed since.
    #[default]
    None,
    /// A copy has been sent, and no store to the line has been performed since.
    Last,
    /// A copy has been sent, and another store has been performed since.
    Outdated,
}

/// Pending stores of one remote to one line, except those in messages and at the home.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stores {
    /// True if the home has performed the store of the access in progress.
    pub performed: bool,
    /// Number of posted stores that are pending, if the program order of one line is checked.
    pub posted: u8,
    /// State of the copy that the atomic access in progress reads.
    pub read: AtomicRead,
}

/// Name of the program-order property, for the accesses of one remote to one line.
pub const PROGRAM_ORDER: &str = "program order of one line";

/// Name of the atomicity property, for accesses that read and write.
pub const ATOMICITY: &str = "atomicity";

/// Violation: the home consumes a posted store and drops it.
pub const POSTED_STORE_DROPPED: &str =
    "a posted store is lost: its message is taken, and its bytes are neither written nor deferred";

/// Violation: the home performs a store whose ticket is void.
pub const PERFORMED_TWICE: &str = "a store is performed twice, or after it was cancelled";

/// Violation: a remote abandons a store that the home has performed.
pub const ABANDONED_AFTER_PERFORMED: &str =
    "a store is cancelled although the home has performed it";

/// Violation: a store is performed while an earlier one of its remote is pending.
pub const STORE_REORDERED: &str =
    "a store is performed before an earlier store of the same agent to the line";

/// Violation: a read does not find a store of its own remote.
pub const OWN_STORE_MISSED: &str =
    "a read does not find an earlier store of the same agent to the line";

/// Violation: another store is performed within an atomic access.
pub const ATOMIC_INTERRUPTED: &str =
    "another store to the line is performed between the read and the write of an atomic";

/// Violation: an atomic access gets a copy that contains its own store.
pub const ATOMIC_READS_OWN_STORE: &str =
    "an atomic is answered with a copy that contains its own store";

/// Violation: an atomic access gets a stale copy.
pub const ATOMIC_READS_STALE_COPY: &str = "an atomic is answered with a stale copy";

/// Creates a violation of the program order of one line.
pub fn program_order(description: &str) -> Violation {
    Violation::new(PROGRAM_ORDER, description)
}

/// Creates a violation of the atomicity of an access that reads and writes.
pub fn atomicity(description: &str) -> Violation {
    Violation::new(ATOMICITY, description)
}
