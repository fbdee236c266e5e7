//! Accesses under way: what a remote has begun and not ended, and what ends it.
//!
//! A remote's table says in which row an access begins and in which it ends, with states between them.
//! Which bytes a row sends and what `done` performs follows from the access that is under way there.
//! That is worked out once, here, by following every row from where an access begins;
//! the language refuses texts in which it is not the same for all ways that lead to a row.
//!
//! * A message with the bytes of a write (`(store)` or `(partial store)`) carries those of the write under way,
//!   whether the row that begins it sends them or a later one, as when the home has to be asked first.
//! * `done` ends what is under way: a read with the bytes at hand, a write whose bytes were sent without performing it
//!   again, and any other write in the remote's own copy.
//! * What comes to a stable state in any other way has been given up, and is tried again.

use crate::controller::{Access, Controller, Effect, Event, Rule, Statement};
use crate::protocol::{Message, Right, StateId};
use std::collections::BTreeSet;

/// An access that has begun and not ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UnderWay {
    /// Which one.
    pub access: Access,
    /// Whether the bytes that it writes have been sent.
    pub sent: bool,
}

impl UnderWay {
    fn begun(access: Access) -> UnderWay {
        UnderWay {
            access,
            sent: false,
        }
    }
}

/// The states that lines leave and go to together, whatever each is doing.
pub fn every(remote: &Controller) -> Vec<(StateId, StateId)> {
    let mut every = Vec::new();
    for row in &remote.rules {
        row.visit(&mut |statement| {
            if let Statement::Every { from, to } = *statement {
                every.push((from, to));
            }
        });
    }
    every.sort_unstable();
    every.dedup();
    every
}

/// What `done` does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ending {
    /// It ends a read, with the line that the message at hand brings or the state holds.
    Read,
    /// It performs a write in the remote's own copy.
    Write,
    /// It ends a write whose bytes were sent: the home has performed it.
    Sent,
}

/// What may be under way in each state of a remote.
#[derive(Clone, Debug)]
pub struct Accesses {
    states: Vec<BTreeSet<UnderWay>>,
    /// Whether each message carries the bytes of a write.
    stores: Vec<bool>,
}

impl Accesses {
    /// Follows every access of a remote.
    pub fn new(remote: &Controller, messages: &[Message]) -> Accesses {
        let mut accesses = Accesses {
            states: vec![BTreeSet::new(); remote.states.len()],
            stores: messages.iter().map(|m| m.carries.store()).collect(),
        };
        let mut work = Vec::new();
        for row in &remote.rules {
            if let Event::Access(access) = row.event {
                if access.needs() > Right::None {
                    work.extend(accesses.step(remote, row, UnderWay::begun(access)));
                }
            }
        }
        let every = every(remote);
        while let Some((state, under_way)) = work.pop() {
            if !accesses.states[state.index()].insert(under_way) {
                continue;
            }
            // What is under way in a line goes on when the line goes elsewhere with all others.
            let others = every.iter().filter(|(from, _)| *from == state);
            work.extend(others.map(|&(_, to)| (to, under_way)));
            let rows = remote.rules.iter().filter(|row| row.state == state);
            for row in rows.filter(|row| matches!(row.event, Event::Message(_))) {
                work.extend(accesses.step(remote, row, under_way));
            }
        }
        accesses
    }

    /// What may be under way in a state.
    pub fn within(&self, state: StateId) -> &BTreeSet<UnderWay> {
        &self.states[state.index()]
    }

    /// The access that a row begins, if it is under way after the row.
    pub fn begins(&self, remote: &Controller, row: &Rule) -> Option<Access> {
        let Event::Access(access) = row.event else {
            return None;
        };
        if access.needs() == Right::None {
            return None;
        }
        self.step(remote, row, UnderWay::begun(access))?;
        Some(access)
    }

    /// Where an access is under way after a row; `None` if it has ended or is to be tried again.
    fn step(
        &self,
        remote: &Controller,
        row: &Rule,
        under_way: UnderWay,
    ) -> Option<(StateId, UnderWay)> {
        let Effect::Take { body, next } = &row.effect else {
            return None;
        };
        let ends = |s: &Statement| matches!(s, Statement::Done | Statement::Retry);
        let to = next.unwrap_or(row.state);
        let state = &remote.states[to.index()];
        let performed = state.right >= under_way.access.needs();
        if body.iter().any(ends) || state.stable() || performed {
            return None;
        }
        let sent = under_way.sent || self.sends_bytes(body);
        Some((to, UnderWay { sent, ..under_way }))
    }

    /// Returns true if a row that takes a message while an access is under way leads to a stable state with permission to read.
    pub fn fetches(&self, remote: &Controller, access: Access) -> bool {
        let under_way = |row: &&Rule| {
            let within = self.within(row.state);
            matches!(row.event, Event::Message(_)) && within.iter().any(|u| u.access == access)
        };
        remote.rules.iter().filter(under_way).any(|row| {
            let Effect::Take { next, .. } = &row.effect else {
                return false;
            };
            let to = &remote.states[next.unwrap_or(row.state).index()];
            to.stable() && to.right >= Right::Read
        })
    }

    /// Whether statements send the bytes of a write.
    pub fn sends_bytes(&self, body: &[Statement]) -> bool {
        body.iter().any(|s| match s {
            Statement::Send { message, .. } => self.stores[message.index()],
            _ => false,
        })
    }

    /// What `done` may do in a row, for each access that may be under way there.
    pub fn endings<'a>(&'a self, row: &'a Rule) -> impl Iterator<Item = (UnderWay, Ending)> + 'a {
        let sends = match &row.effect {
            Effect::Take { body, .. } => {
                let done = body.iter().position(|s| *s == Statement::Done);
                self.sends_bytes(&body[..done.unwrap_or(0)])
            }
            _ => false,
        };
        self.within(row.state).iter().map(move |&under_way| {
            let ending = match under_way {
                UnderWay { access, .. } if !access.writes() => Ending::Read,
                UnderWay { sent, .. } if sent || sends => Ending::Sent,
                _ => Ending::Write,
            };
            (under_way, ending)
        })
    }

    /// Whether a row gives up a write whose bytes have been sent: it comes to a stable state without `done`, or says that the
    /// access that begins in it is tried again.
    pub fn gives_up(&self, remote: &Controller, row: &Rule) -> bool {
        let Effect::Take { body, next } = &row.effect else {
            return false;
        };
        let sends = self.sends_bytes(body);
        match row.event {
            Event::Message(_) => {
                let to = &remote.states[next.unwrap_or(row.state).index()];
                let sent = sends || self.within(row.state).iter().any(|u| u.sent);
                sent && to.stable() && !body.contains(&Statement::Done)
            }
            Event::Access(_) => sends && body.contains(&Statement::Retry),
            _ => false,
        }
    }

    /// Whether a row posts a write: it sends the bytes, and the write is not in progress after it.
    pub fn posts(&self, remote: &Controller, row: &Rule) -> bool {
        let (Event::Access(access), Effect::Take { body, .. }) = (row.event, &row.effect) else {
            return false;
        };
        access.writes()
            && self.sends_bytes(body)
            && !body.contains(&Statement::Retry)
            && self.begins(remote, row).is_none()
    }
}
