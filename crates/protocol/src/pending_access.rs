//! Pending accesses: accesses that a remote has started and not completed, and their completion.
//!
//! A remote's table says in which row an access starts and in which row it completes, with states between them. The
//! pending access in a state determines which bytes a row sends and what `done` performs. This analysis computes it
//! once, by following every row from the start of an access. The language rejects protocols in which two paths to a row
//! give different results.
//!
//! * A message with the bytes of a write (`(store)` or `(partial store)`) carries those of the pending write. The row
//!   that starts the write may send them, or a later one, such as a row that takes the home's permission to send.
//! * `done` completes the pending access. A read returns the bytes of the current message or of the copy. A write whose
//!   bytes were sent is not performed again. Any other write is performed in the remote's own copy.
//! * An access that reaches a stable state in any other way is abandoned, and is retried.

use crate::controller::{Access, Controller, Effect, Event, Rule, Statement};
use crate::protocol::{Message, Permission, StateId};
use std::collections::BTreeSet;

/// An access that has started and not completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PendingAccess {
    /// Type of the access.
    pub access: Access,
    /// True if the bytes that it writes have been sent.
    pub sent: bool,
}

impl PendingAccess {
    fn new(access: Access) -> PendingAccess {
        PendingAccess {
            access,
            sent: false,
        }
    }
}

/// State pairs (from, to) of bulk transitions, which move all lines of a remote in state `from`, whatever their
/// accesses.
pub fn bulk_transitions(remote: &Controller) -> Vec<(StateId, StateId)> {
    let mut transitions = Vec::new();
    for row in &remote.rules {
        row.visit(&mut |statement| {
            if let Statement::BulkTransition { from, to } = *statement {
                transitions.push((from, to));
            }
        });
    }
    transitions.sort_unstable();
    transitions.dedup();
    transitions
}

/// Effect of `done` on the pending access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CompletionKind {
    /// Completes a read, with the line of the current message or of the state's copy.
    Read,
    /// Performs a write in the remote's own copy.
    Write,
    /// Completes a write whose bytes were sent and which the home has performed.
    Sent,
}

/// Pending accesses that are possible in each state of a remote.
#[derive(Clone, Debug)]
pub struct Accesses {
    /// For each state, the accesses that may be pending.
    states: Vec<BTreeSet<PendingAccess>>,
    /// For each message, true if it carries the bytes of a write.
    carries_store: Vec<bool>,
}

impl Accesses {
    /// Analyses a remote by following every access from its first row.
    pub fn new(remote: &Controller, messages: &[Message]) -> Accesses {
        let mut accesses = Accesses {
            states: vec![BTreeSet::new(); remote.states.len()],
            carries_store: messages.iter().map(|m| m.carries.store()).collect(),
        };
        let mut work_list = Vec::new();
        for row in &remote.rules {
            if let Event::Access(access) = row.event {
                if access.needs() > Permission::None {
                    work_list.extend(accesses.step(remote, row, PendingAccess::new(access)));
                }
            }
        }
        let transitions = bulk_transitions(remote);
        while let Some((state, pending)) = work_list.pop() {
            if !accesses.states[state.index()].insert(pending) {
                continue;
            }
            // A bulk transition moves the line but not its pending access.
            let moved = transitions.iter().filter(|(from, _)| *from == state);
            work_list.extend(moved.map(|&(_, to)| (to, pending)));
            let rows = remote.rules.iter().filter(|row| row.state == state);
            for row in rows.filter(|row| matches!(row.event, Event::Message(_))) {
                work_list.extend(accesses.step(remote, row, pending));
            }
        }
        accesses
    }

    /// Returns the pending accesses that are possible in a state.
    pub fn pending_in(&self, state: StateId) -> &BTreeSet<PendingAccess> {
        &self.states[state.index()]
    }

    /// Returns the access that a row starts, if it is still pending after the row.
    pub fn started_access(&self, remote: &Controller, row: &Rule) -> Option<Access> {
        let Event::Access(access) = row.event else {
            return None;
        };
        if access.needs() == Permission::None {
            return None;
        }
        self.step(remote, row, PendingAccess::new(access))?;
        Some(access)
    }

    /// Returns the state and the pending access after a row; `None` if the access has completed or is to be retried.
    fn step(
        &self,
        remote: &Controller,
        row: &Rule,
        pending: PendingAccess,
    ) -> Option<(StateId, PendingAccess)> {
        let Effect::Take { body, next } = &row.effect else {
            return None;
        };
        let ends_access = |s: &Statement| matches!(s, Statement::Done | Statement::Retry);
        let next_state = next.unwrap_or(row.state);
        let state = &remote.states[next_state.index()];
        let is_performed = state.permission >= pending.access.needs();
        if body.iter().any(ends_access) || state.is_stable() || is_performed {
            return None;
        }
        let sent = pending.sent || self.sends_bytes(body);
        Some((next_state, PendingAccess { sent, ..pending }))
    }

    /// Returns true if a row that takes a message during an access leads to a stable state with read permission.
    pub fn fetches(&self, remote: &Controller, access: Access) -> bool {
        let takes_message_during = |row: &&Rule| {
            let pending = self.pending_in(row.state);
            matches!(row.event, Event::Message(_))
                && pending.iter().any(|pending| pending.access == access)
        };
        remote.rules.iter().filter(takes_message_during).any(|row| {
            let Effect::Take { next, .. } = &row.effect else {
                return false;
            };
            let to = &remote.states[next.unwrap_or(row.state).index()];
            to.is_stable() && to.permission >= Permission::Read
        })
    }

    /// Returns true if statements send the bytes of a write.
    pub fn sends_bytes(&self, body: &[Statement]) -> bool {
        body.iter().any(|s| match s {
            Statement::Send { message, .. } => self.carries_store[message.index()],
            _ => false,
        })
    }

    /// Returns the effects that `done` may have in a row: one pair for each access that may be pending there.
    pub fn completions<'a>(
        &'a self,
        row: &'a Rule,
    ) -> impl Iterator<Item = (PendingAccess, CompletionKind)> + 'a {
        let sends = match &row.effect {
            Effect::Take { body, .. } => {
                let done_position = body.iter().position(|s| *s == Statement::Done);
                self.sends_bytes(&body[..done_position.unwrap_or(0)])
            }
            _ => false,
        };
        self.pending_in(row.state).iter().map(move |&pending| {
            let kind = match pending {
                PendingAccess { access, .. } if !access.writes() => CompletionKind::Read,
                PendingAccess { sent, .. } if sent || sends => CompletionKind::Sent,
                _ => CompletionKind::Write,
            };
            (pending, kind)
        })
    }

    /// Returns true if a row abandons a write whose bytes have been sent: it reaches a stable state without `done`, or
    /// retries the access that starts in it.
    pub fn abandons_sent_write(&self, remote: &Controller, row: &Rule) -> bool {
        let Effect::Take { body, next } = &row.effect else {
            return false;
        };
        let sends = self.sends_bytes(body);
        match row.event {
            Event::Message(_) => {
                let to = &remote.states[next.unwrap_or(row.state).index()];
                let sent = sends
                    || self
                        .pending_in(row.state)
                        .iter()
                        .any(|pending| pending.sent);
                sent && to.is_stable() && !body.contains(&Statement::Done)
            }
            Event::Access(_) => sends && body.contains(&Statement::Retry),
            _ => false,
        }
    }

    /// Returns true if a row posts a write: it sends the bytes, and the write is not pending after it.
    pub fn posts(&self, remote: &Controller, row: &Rule) -> bool {
        let (Event::Access(access), Effect::Take { body, .. }) = (row.event, &row.effect) else {
            return false;
        };
        access.writes()
            && self.sends_bytes(body)
            && !body.contains(&Statement::Retry)
            && self.started_access(remote, row).is_none()
    }
}
