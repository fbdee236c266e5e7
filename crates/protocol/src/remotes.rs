//! Kinds of caching agents, and the number of each in a system.
//!
//! Every remote of a system has a number. Remotes of the first kind come first, then those of the second, and so on. A
//! protocol has one table for all remotes: each kind has its own states and variables in it, or shares those of another
//! kind.

use crate::terms::StateId;
use cohkit_diagnostics::Span;

cohkit_base::index!(
    /// Index into [`crate::protocol::Protocol::kinds`].
    KindId(u8)
);

/// Maximum number of kinds of remotes in a protocol.
pub const MAX_KINDS: usize = 8;

/// A kind of caching agent.
#[derive(Clone, PartialEq, Debug)]
pub struct Kind {
    /// Name after the keyword `remote`.
    pub name: String,
    /// Initial state of its agents. The states of a kind follow it, up to the initial state of the next kind.
    pub initial: StateId,
    /// Span of the kind's name.
    pub span: Span,
}

/// Number of remotes of each kind in a system, in the order of the file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Remotes {
    /// Number of remotes of each kind; 0 beyond `kinds`.
    counts: [u16; MAX_KINDS],
    /// Number of kinds, at most [`MAX_KINDS`].
    kinds: u8,
}

impl Remotes {
    /// Creates the numbers from one count per kind; `None` for more than [`MAX_KINDS`] kinds, or more than 65,535
    /// remotes.
    pub fn new(kind_counts: &[u16]) -> Option<Remotes> {
        let mut counts = [0; MAX_KINDS];
        counts
            .get_mut(..kind_counts.len())?
            .copy_from_slice(kind_counts);
        kind_counts
            .iter()
            .try_fold(0u16, |sum, &n| sum.checked_add(n))?;
        Some(Remotes {
            counts,
            kinds: kind_counts.len() as u8,
        })
    }

    /// Number of kinds.
    pub fn kinds(&self) -> usize {
        usize::from(self.kinds)
    }

    /// Number of remotes of all kinds.
    pub fn total(&self) -> u16 {
        self.counts.iter().sum()
    }

    /// Number of remotes of a kind.
    pub fn count(&self, kind: KindId) -> u16 {
        self.counts[kind.index()]
    }

    /// Numbers of the remotes of a kind, as a range.
    pub fn numbers(&self, kind: KindId) -> std::ops::Range<u16> {
        let first = self.counts[..kind.index()].iter().sum();
        first..first + self.count(kind)
    }

    /// Returns the kind of a remote and its position among the remotes of that kind. A number that is too large belongs
    /// to the last kind.
    pub fn kind(&self, remote: u16) -> (KindId, u16) {
        let mut position = remote;
        for kind in 0..self.kinds {
            let count = self.counts[usize::from(kind)];
            if position < count || kind + 1 == self.kinds {
                return (KindId(kind), position);
            }
            position -= count;
        }
        (KindId(0), position)
    }
}

/// Creates this many remotes of a single kind.
impl From<u16> for Remotes {
    fn from(count: u16) -> Remotes {
        let mut counts = [0; MAX_KINDS];
        counts[0] = count;
        Remotes { counts, kinds: 1 }
    }
}
