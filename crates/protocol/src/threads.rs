//! The accesses of a text by which threads read, write and fence.

use crate::controller::{Access, Event};
use crate::protocol::Protocol;
use crate::remotes::KindId;
use crate::terms::StateId;

/// By what threads on the caching agents of a text read, write and fence; nothing where its caches have no such access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accesses {
    /// Reads.
    pub read: Option<Access>,
    /// Writes.
    pub write: Option<Access>,
    /// Reads what later accesses wait for: as others are read where the text does not tell them apart.
    pub acquire: Option<Access>,
    /// Writes after earlier accesses, likewise.
    pub release: Option<Access>,
    /// Fences, if caches take part in them: as what follows a read that acquires where the text has no rows for fences.
    pub fence: Option<Access>,
    /// What is asked for after a read that acquires, if caches take part in that.
    pub acquired: Option<Access>,
    /// Writes that are performed in the agent's own copy, where the text tells them apart from others.
    pub back: Option<Access>,
    /// Writes that end when the home has performed them, where the text tells them apart from others.
    pub acknowledged: Option<Access>,
    /// Reads and writes at once: at the home if the text has rows for that, and otherwise in the agent's own copy.
    pub update: Option<Access>,
}

impl Accesses {
    /// Those of a text, whatever the kind of remote.
    pub fn of(protocol: &Protocol) -> Accesses {
        Accesses::among(protocol, &|_| true)
    }

    /// Those of the remotes of one kind.
    pub fn of_kind(protocol: &Protocol, kind: KindId) -> Accesses {
        let of = |state| protocol.kind_of(state);
        let own = of(protocol.kinds[kind.index()].initial);
        Accesses::among(protocol, &|state| of(state) == own)
    }

    /// Those for which there are rows in these states.
    fn among(protocol: &Protocol, states: &dyn Fn(StateId) -> bool) -> Accesses {
        let remote = &protocol.remote;
        let has = |access: Access| {
            let mut rights = (0..).zip(&remote.states);
            let hits = matches!(access, Access::Load | Access::Store)
                && rights.any(|(at, s)| s.right >= access.needs() && states(StateId(at)));
            let mut rules = remote.rules.iter();
            hits || rules.any(|row| row.event == Event::Access(access) && states(row.state))
        };
        let first = |all: &[Access]| all.iter().copied().find(|&access| has(access));
        let read = first(&[Access::Load, Access::ReadOnce]);
        let write = first(&[Access::Store, Access::WritePartial, Access::WriteLine]);
        Accesses {
            read,
            write,
            acquire: first(&[Access::Acquire]).or(read),
            release: first(&[Access::Release]).or(write),
            fence: first(&[Access::Fence, Access::Acquired]),
            acquired: first(&[Access::Acquired]),
            back: first(&[Access::WriteBack]),
            acknowledged: first(&[Access::WritePartial]).filter(|_| write == Some(Access::Store)),
            update: first(&[Access::Atomic, Access::WriteBack]).or(write),
        }
    }
}
