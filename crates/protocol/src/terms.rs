//! Basic terms of controllers, policies and protocols: indices, permissions and types.

use std::fmt;

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

/// Access permission of an agent in a state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Permission {
    /// May neither read nor write.
    None,
    /// May read; other agents may read too.
    Read,
    /// May read and write, exclusively.
    Write,
}

/// Completes the phrase "the agent may ...".
impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Permission::None => "neither read nor write",
            Permission::Read => "read",
            Permission::Write => "read and write",
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
    /// `0 .. size - 1` with wrap-around, written `cycle size`.
    Cycle {
        /// Number of values.
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
        /// Number of homes.
        homes: u16,
    },
    /// Array with one or two indices, written `T per I` or `T per I per J`. Only variables have this type.
    Array {
        /// Type of the elements.
        of: Element,
        /// Type of the first index.
        first_domain: IndexDomain,
        /// Type of the second index, if any.
        second_domain: Option<IndexDomain>,
    },
}

/// Type of an array's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Element {
    /// `0 .. max` inclusive.
    Range {
        /// Largest value.
        max: u16,
    },
    /// `0 .. size - 1` with wrap-around.
    Cycle {
        /// Number of values.
        size: u16,
    },
    /// `0 .. number of remotes`.
    Count,
    /// Membership of the index's home in a `set of home`: 0 or 1.
    Member,
}

/// Index type of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IndexDomain {
    /// All remotes.
    Remotes,
    /// Numbers from 0 to one less than this.
    Numbers(u16),
    /// This number of homes.
    Homes(u16),
}

impl IndexDomain {
    /// Number of index values in a system with this many remotes.
    pub fn count(self, remotes: u16) -> u16 {
        match self {
            IndexDomain::Remotes => remotes,
            IndexDomain::Numbers(count) | IndexDomain::Homes(count) => count,
        }
    }
}

impl Element {
    /// The same type for a single variable.
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
    /// Array of one value `0 .. max` for each remote.
    pub const fn per_remote(max: u16) -> Type {
        Type::Array {
            of: Element::Range { max },
            first_domain: IndexDomain::Remotes,
            second_domain: None,
        }
    }

    /// Returns true if the type is an array.
    pub fn is_array(self) -> bool {
        matches!(self, Type::Array { .. })
    }

    /// Returns true if the type is `set of home`.
    pub fn is_home_set(self) -> bool {
        let member = Element::Member;
        matches!(self, Type::Array { of: element, .. } if element == member)
    }

    /// Type of a single value: the element type of an array, or the type itself.
    pub fn single(self) -> Type {
        match self {
            Type::Array { of, .. } => of.ty(),
            other => other,
        }
    }

    /// Number of values of each index of an array, in a system with this many remotes. A missing index counts as 1.
    pub fn extent(self, remotes: u16) -> [u16; 2] {
        match self {
            Type::Array {
                first_domain,
                second_domain,
                ..
            } => [
                first_domain.count(remotes),
                second_domain.map_or(1, |second_domain| second_domain.count(remotes)),
            ],
            _ => [1, 1],
        }
    }
}
