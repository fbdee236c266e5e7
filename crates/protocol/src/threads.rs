//! Accesses by which threads read, write and fence on a protocol's caches.

use crate::controller::{Access, Event};
use crate::protocol::Protocol;
use crate::remotes::KindId;
use crate::terms::StateId;

/// Accesses by which threads on the caching agents read, write and fence; `None` where the caches have no such access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accesses {
    /// Plain read: `load` where some cache has it, otherwise `read_once`.
    pub read: Option<Access>,
    /// Plain write: `store` where some cache has it, otherwise a non-caching write.
    pub write: Option<Access>,
    /// Acquiring read, for which later accesses wait; the plain read if the protocol does not distinguish them.
    pub acquire: Option<Access>,
    /// Releasing write, which waits for earlier accesses; the plain write if the protocol does not distinguish them.
    pub release: Option<Access>,
    /// Fence, if caches take part in it; the acquire fence if the protocol has no rows for `fence`.
    pub fence: Option<Access>,
    /// Acquire fence after an acquiring read, if caches take part in it.
    pub acquire_fence: Option<Access>,
    /// Write performed in the agent's own copy, if the protocol distinguishes it from other writes.
    pub write_back: Option<Access>,
    /// Write that completes once the home has performed it, if the protocol distinguishes it from other writes.
    pub acknowledged_write: Option<Access>,
    /// Atomic read-modify-write: at the home if the protocol has rows for `atomic`, otherwise in the agent's own copy.
    pub atomic: Option<Access>,
}

impl Accesses {
    /// Returns the accesses that remotes of any kind offer.
    pub fn of(protocol: &Protocol) -> Accesses {
        Accesses::among(protocol, &|_| true)
    }

    /// Returns the accesses that remotes of one kind offer.
    pub fn of_kind(protocol: &Protocol, kind: KindId) -> Accesses {
        let kind_of = |state| protocol.kind_of(state);
        let this_kind = kind_of(protocol.kinds[kind.index()].initial);
        Accesses::among(protocol, &|state| kind_of(state) == this_kind)
    }

    /// Returns the accesses that have a row, or hit, in the selected states.
    fn among(protocol: &Protocol, is_selected: &dyn Fn(StateId) -> bool) -> Accesses {
        let remote = &protocol.remote;
        let is_offered = |access: Access| {
            let mut states_by_id = (0..).zip(&remote.states);
            // An atomic hits too, but without a row for it a store stands in its place.
            let hits = matches!(access, Access::Load | Access::Store)
                && states_by_id.any(|(index, s)| {
                    s.permission >= access.needs() && is_selected(StateId(index))
                });
            let mut rules = remote.rules.iter();
            hits || rules.any(|row| row.event == Event::Access(access) && is_selected(row.state))
        };
        let first_offered =
            |choices: &[Access]| choices.iter().copied().find(|&access| is_offered(access));
        let read = first_offered(&[Access::Load, Access::ReadOnce]);
        let write = first_offered(&[Access::Store, Access::WritePartial, Access::WriteLine]);
        Accesses {
            read,
            write,
            acquire: first_offered(&[Access::Acquire]).or(read),
            release: first_offered(&[Access::Release]).or(write),
            fence: first_offered(&[Access::Fence, Access::AcquireFence]),
            acquire_fence: first_offered(&[Access::AcquireFence]),
            write_back: first_offered(&[Access::WriteBack]),
            acknowledged_write: first_offered(&[Access::WritePartial])
                .filter(|_| write == Some(Access::Store)),
            atomic: first_offered(&[Access::Atomic, Access::WriteBack]).or(write),
        }
    }
}
