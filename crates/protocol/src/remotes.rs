//! Kinds of caching agents, and how many of each a system has.
//!
//! Every remote of a system has a number. Those of the first kind come first, then those of the second, and so on.
//! A text has one table for all remotes: each kind has states and variables of its own in it, or shares those of another.

use crate::terms::{Span, StateId};

cohkit_base::index!(
    /// Index into [`crate::protocol::Protocol::kinds`].
    KindId(u8)
);

/// The most kinds of remotes that a text has.
pub const MOST_KINDS: usize = 8;

/// A kind of caching agent.
#[derive(Clone, PartialEq, Debug)]
pub struct Kind {
    /// Name after the keyword `remote`.
    pub name: String,
    /// The state in which its agents begin. The states of a kind follow it, up to those of the next.
    pub initial: StateId,
    /// The name in the text.
    pub span: Span,
}

/// How many remotes of each kind a system has, in the order of the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Remotes {
    counts: [u16; MOST_KINDS],
    kinds: u8,
}

impl Remotes {
    /// So many of each kind; `None` for more than [`MOST_KINDS`] kinds, or more than 65,535 remotes.
    pub fn new(of_each: &[u16]) -> Option<Remotes> {
        let mut counts = [0; MOST_KINDS];
        counts.get_mut(..of_each.len())?.copy_from_slice(of_each);
        of_each
            .iter()
            .try_fold(0u16, |sum, &n| sum.checked_add(n))?;
        Some(Remotes {
            counts,
            kinds: of_each.len() as u8,
        })
    }

    /// How many kinds it speaks of.
    pub fn kinds(&self) -> usize {
        usize::from(self.kinds)
    }

    /// All of them.
    pub fn total(&self) -> u16 {
        self.counts.iter().sum()
    }

    /// How many of a kind.
    pub fn of(&self, kind: KindId) -> u16 {
        self.counts[kind.index()]
    }

    /// The numbers of the remotes of a kind.
    pub fn numbers(&self, kind: KindId) -> std::ops::Range<u16> {
        let first = self.counts[..kind.index()].iter().sum();
        first..first + self.of(kind)
    }

    /// The kind of the remote with this number, and which of its kind it is; the last kind's for a number too large.
    pub fn kind(&self, remote: u16) -> (KindId, u16) {
        let mut left = remote;
        for kind in 0..self.kinds {
            let count = self.counts[usize::from(kind)];
            if left < count || kind + 1 == self.kinds {
                return (KindId(kind), left);
            }
            left -= count;
        }
        (KindId(0), left)
    }
}

/// So many of the only kind.
impl From<u16> for Remotes {
    fn from(count: u16) -> Remotes {
        let mut counts = [0; MOST_KINDS];
        counts[0] = count;
        Remotes { counts, kinds: 1 }
    }
}
