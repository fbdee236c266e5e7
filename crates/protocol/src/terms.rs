//! What controllers, policies and protocols speak of: places in a text, numbers of things, rights and types.

use std::fmt;

/// A range of bytes in the text, `start .. end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// What stands there.
    pub fn of(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }

    /// From the start of this span to the end of another.
    pub fn to(self, last: Span) -> Span {
        Span {
            start: self.start,
            end: last.end.max(self.start),
        }
    }
}

cohkit_base::index!(
    /// Index into [`crate::protocol::Protocol::channels`].
    ChannelId(u16)
);
cohkit_base::index!(
    /// Index into [`crate::protocol::Protocol::messages`].
    MessageId(u16)
);
cohkit_base::index!(
    /// Index into [`crate::controller::Controller::states`].
    StateId(u16)
);
cohkit_base::index!(
    /// Index into [`crate::controller::Controller::variables`].
    VariableId(u16)
);

/// The access right a state gives its agent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Right {
    /// May neither read nor write.
    None,
    /// May read.
    Read,
    /// May read and write, alone.
    Write,
}

/// What an agent may do, after "may".
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Right::None => "neither read nor write",
            Right::Read => "read",
            Right::Write => "read and write",
        })
    }
}

/// Types of variables and fields.
///
/// Every type is finite once the number of remotes is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// `0 .. max` inclusive.
    Range {
        /// Largest value.
        max: u16,
    },
    /// `0 .. size - 1`, counted round, written `cycle size`.
    Cycle {
        /// How many values there are.
        size: u16,
    },
    /// `0 .. number of remotes`, written `count`.
    Count,
    /// `false` or `true`.
    Bool,
    /// A remote or `none`, written `remote`.
    Remote,
    /// A set of remotes, written `set of remote`.
    RemoteSet,
    /// The number of a home, written `home`.
    Home {
        /// How many there are.
        homes: u16,
    },
    /// Several values, each with an index or two, written `T per I` or `T per I per J`. Only variables have it.
    Array {
        /// What each of them is.
        of: Element,
        /// The first index.
        over: Over,
        /// The second one.
        then: Option<Over>,
    },
}

/// One value of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Element {
    /// `0 .. max` inclusive.
    Range {
        /// Largest value.
        max: u16,
    },
    /// `0 .. size - 1`, counted round.
    Cycle {
        /// How many values there are.
        size: u16,
    },
    /// `0 .. number of remotes`.
    Count,
    /// Whether this home is in a `set of home`: 0 or 1.
    Member,
}

/// What an array has a value for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Over {
    /// Each remote.
    Remotes,
    /// Each of the numbers from 0 to one less than this.
    Numbers(u16),
    /// Each home; so many.
    Homes(u16),
}

impl Over {
    /// How many that are in a system of so many remotes.
    pub fn count(self, remotes: u16) -> u16 {
        match self {
            Over::Remotes => remotes,
            Over::Numbers(count) | Over::Homes(count) => count,
        }
    }
}

impl Element {
    /// The type of what it is.
    pub fn ty(self) -> Type {
        match self {
            Element::Range { max } => Type::Range { max },
            Element::Cycle { size } => Type::Cycle { size },
            Element::Count => Type::Count,
            Element::Member => Type::Range { max: 1 },
        }
    }
}

impl Type {
    /// One value `0 .. max` for each remote.
    pub const fn per_remote(max: u16) -> Type {
        Type::Array {
            of: Element::Range { max },
            over: Over::Remotes,
            then: None,
        }
    }

    /// Whether it has several values, each with an index.
    pub fn array(self) -> bool {
        matches!(self, Type::Array { .. })
    }

    /// Whether it is a `set of home`.
    pub fn set_of_homes(self) -> bool {
        let of = Element::Member;
        matches!(self, Type::Array { of: found, .. } if found == of)
    }

    /// What one value of it is: itself, or what an array has several of.
    pub fn single(self) -> Type {
        match self {
            Type::Array { of, .. } => of.ty(),
            other => other,
        }
    }

    /// Of an array, how many values there are for each index, in a system of so many remotes; the second is 1 where
    /// there is one index.
    pub fn extent(self, remotes: u16) -> [u16; 2] {
        match self {
            Type::Array { over, then, .. } => [
                over.count(remotes),
                then.map_or(1, |then| then.count(remotes)),
            ],
            _ => [1, 1],
        }
    }
}
