//! What controllers, policies and protocols speak of: places in a text, numbers of things, rights and types.

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

impl Type {
    /// Whether it has several values, each with an index.
    pub fn array(self) -> bool {
        matches!(self, Type::PerRemote { .. } | Type::PerNumber { .. })
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
    /// One value `0 .. max` per remote, written `0..max per remote`. Only variables have it.
    PerRemote {
        /// Largest value.
        max: u16,
    },
    /// One value `0 .. max` for each of the numbers `0 .. size - 1`, written `0..max per size`. Only variables have it.
    PerNumber {
        /// How many values there are.
        size: u16,
        /// Largest value.
        max: u16,
    },
}
