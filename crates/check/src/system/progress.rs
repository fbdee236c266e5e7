//! Progress: what begins can be performed, from every state in which it is under way.
//!
//! What begins is an access of a remote or a local operation of the device. It is *under way* from its first row, or from
//! the device's asking, until it is performed. What is turned away in between (a Nack takes the remote back to where it
//! began, the home refuses) is under way all the same, as whoever wants it tries again. From each of these states some
//! way must lead to one in which it is performed. All acts count for such a way, spontaneous ones and those of others
//! too: what need not be served for ever, but always could be, is fair enough.
//!
//! ## What follows from drain
//!
//! Drain leads from every state, without a spontaneous act, to one in which nothing is under way at any agent.
//! So an access whose rows end it in no other way than by performing it is performed on the way there:
//! [`doubtful`] follows the rows and names those that may end otherwise.
//! A home that refuses an operation is in doubt too, unless it refuses under its lock alone: at rest there is no
//! lock, so what is asked for then is taken, as nothing else could lead on, and what is taken is acknowledged
//! before the next rest. That a home at rest is locked where a row refuses shows in that an unlock would be taken
//! there, under the same guard or none: where there is no lock that is an error, so it is never met.
//!
//! ## The others
//!
//! They are searched, each on a model of its own: that of one line, with three variables more.
//! `watched` is the remote whose access is looked at; it is chosen at the start and never changes, so permutations of the
//! remotes move it like all that names a remote, and symmetry loses none of what is asked. The second says
//! that the access or operation is wanted; a row that begins it sets it and what performs it takes it back. The third says that what is
//! under way at the watched remote is that access and not another.
//! What is asked is liveness: the access can become not wanted, from everywhere.
//!
//! One line for each home is enough where lines share nothing but the order of messages: what happens on one line
//! of several happens on it alone as well. If all can drain, the others come to rest first, and then do nothing
//! while the one goes its way.
//! Registers, messages about no line and rows that change every line join the lines of a home: what one line keeps, another
//! may lack for ever. So each home has two lines then ([`lines`]), of which the first is watched.
//!
//! ## Accesses that never begin again
//!
//! A guard may keep accesses from beginning. That is no violation, but a line that a remote can never access again is
//! worth a note, and so is one that it can never store to again, or access in another way that it has: [`may_stop`] says by the
//! rows whether there may be one, and [`restarting`] is the model that shows it.

use cohkit_protocol::controller::{
    Access, Controller, Effect, Event, Expression, Operator, Rule as Row, State, Statement,
};
use cohkit_protocol::protocol::{Protocol, Right, StateId};
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::under_way::every;

use super::expressions::Context;
use super::layout::System;
pub use super::watch::Kind;
use super::watch::{Watch, Watched};
use super::{Modelled, Options, SystemError};
use cohkit_engine::build::when;
use cohkit_engine::model::{Expr, Invariant, Stmt};

/// What some row or right begins, and the local operations of the home.
pub fn kinds(protocol: &Protocol, home: &Controller) -> Vec<Kind> {
    let remote = &protocol.remote;
    let locals = (0..home.locals.len()).map(|local| Kind::Local(local as u8));
    accesses(remote).map(Kind::Access).chain(locals).collect()
}

/// The kinds of which drain does not say that they can be performed.
pub fn doubtful(protocol: &Protocol, home: &Controller) -> Vec<Kind> {
    let mut kinds = kinds(protocol, home);
    kinds.retain(|&kind| match kind {
        Kind::Access(access) => Ways::new(protocol, access).give_up(),
        Kind::Local(local) => refuses_at_rest(home, local),
    });
    kinds
}

/// The accesses of which the remote's table does not say that they begin: none begins in the initial state.
pub fn begun_later(protocol: &Protocol) -> Vec<Access> {
    let remote = &protocol.remote;
    let first = |access: Access| {
        let row = rows(remote, access, 0).next();
        hits(access, &remote.states[0]) || row.is_some_and(|row| row.guard.is_none())
    };
    accesses(remote).filter(|&access| !first(access)).collect()
}

/// What every cache does, and no row or right of this one's begins.
/// The others are a protocol's to offer or not: writing back what is kept, and what goes past the caches.
pub fn absent(protocol: &Protocol) -> Vec<Access> {
    let mut all = vec![Access::Load, Access::Store, Access::Evict];
    all.retain(|&access| accesses(&protocol.remote).all(|begun| begun != access));
    all
}

/// The accesses that some row or right begins.
fn accesses(remote: &Controller) -> impl Iterator<Item = Access> + '_ {
    let all = Access::ALL.into_iter().map(|(access, _)| access);
    // What is about no line performs nothing by itself.
    all.filter(|access| access.about_line()).filter(|&access| {
        (0..remote.states.len()).any(|state| {
            // Without a row for an atomic, a store stands for it.
            access != Access::Atomic && hits(access, &remote.states[state])
                || rows(remote, access, state).next().is_some()
        })
    })
}

/// Number of lines that progress has to be judged on: one for each home, or two where lines are joined.
pub fn lines(protocol: &Protocol) -> u8 {
    let each = match protocol.joins_lines() {
        Some(_) => 2,
        None => 1,
    };
    protocol.homes as u8 * each
}

/// Number of lines that the progress of a system of so many lines is judged on: [`lines`], or one for each home if it has
/// fewer.
pub fn lines_of(protocol: &Protocol, lines: u8) -> u8 {
    match self::lines(protocol) {
        most if most <= lines => most,
        _ => protocol.homes as u8,
    }
}

/// Loads, stores and their like that some row or right begins: what a core asks for.
pub fn asked_for(remote: &Controller) -> impl Iterator<Item = Access> + '_ {
    accesses(remote).filter(|access| access.needs() != Right::None)
}

/// Returns true if a stable state begins none of these accesses without a guard, though its kind of remotes has some of them.
pub fn may_stop(protocol: &Protocol, accesses: &[Access]) -> bool {
    let remote = &protocol.remote;
    let begins = |state: usize| {
        accesses.iter().any(|&access| {
            hits(access, &remote.states[state])
                || rows(remote, access, state).any(|row| row.guard.is_none())
        })
    };
    let mut at_rest = (0..remote.states.len()).filter(|&state| remote.states[state].stable());
    at_rest.any(|state| !begins(state) && begins_any(protocol, accesses, state))
}

/// Returns true if the kind of remotes that a state belongs to has some of these accesses.
fn begins_any(protocol: &Protocol, accesses: &[Access], state: usize) -> bool {
    let remote = &protocol.remote;
    let kind = protocol.kind_of(StateId(state as u16));
    let its = |other: usize| protocol.kind_of(StateId(other as u16)) == kind;
    accesses.iter().any(|&access| {
        let mut states = (0..remote.states.len()).filter(|&other| its(other));
        states.any(|other| {
            hits(access, &remote.states[other]) || rows(remote, access, other).next().is_some()
        })
    })
}

/// The rows that begin an access in a state.
fn rows(remote: &Controller, access: Access, state: usize) -> impl Iterator<Item = &Row> {
    remote.rules.iter().filter(move |row| {
        row.event == Event::Access(access)
            && row.state.index() == state
            && matches!(row.effect, Effect::Take { .. })
    })
}

/// Whether an access needs no row in a state, as it is performed in place.
fn hits(access: Access, state: &State) -> bool {
    access.is_performed_in_place() && suffices(access, state.right)
}

/// Whether an access that needs a right may be performed with this one.
fn suffices(access: Access, right: Right) -> bool {
    match access {
        Access::Load | Access::ReadOnce | Access::Acquire => right >= Right::Read,
        Access::Store
        | Access::WriteLine
        | Access::WritePartial
        | Access::Release
        | Access::WriteBack
        | Access::Atomic => right == Right::Write,
        Access::Evict | Access::Demote | Access::Clean | Access::Fence | Access::Acquired => false,
    }
}

fn says_done(body: &[Statement]) -> bool {
    let mut found = false;
    Statement::visit(body, &mut |s| found |= *s == Statement::Done);
    found
}

/// Whether a home may refuse an operation that the device asks for when everything is at rest: in a state at rest
/// that does not show that it is locked whenever a row refuses.
fn refuses_at_rest(home: &Controller, local: u8) -> bool {
    let mut at_rest = (0..home.states.len()).filter(|&state| home.states[state].stable());
    at_rest.any(|state| {
        let of = |event: Event| {
            let rows = home.rules.iter();
            rows.filter(move |row| row.event == event && row.state.index() == state)
        };
        let unlock = of(Event::Unlock).next();
        let locked = |row: &Row| {
            unlock.is_some_and(|unlock| {
                let taken = matches!(unlock.effect, Effect::Take { .. });
                taken && (unlock.guard.is_none() || unlock.guard == row.guard)
            })
        };
        let mut last = false;
        let mut met = of(Event::Local(local)).take_while(|row| {
            let before = last;
            last = row.guard.is_none();
            !before
        });
        met.any(|row| row.effect == Effect::Refuse && !locked(row) && !is_idle(home, row))
    })
}

/// Whether a row's guard asks for a value of a variable that no row ever gives it.
fn is_idle(home: &Controller, row: &Row) -> bool {
    let Some(Expression::Binary(Operator::Equal, variable, value)) = &row.guard else {
        return false;
    };
    let (Expression::Variable(variable), Expression::Constant(value)) = (&**variable, &**value)
    else {
        return false;
    };
    let assigns = |s: &Statement| matches!(s, Statement::Assign(v, _) if v == variable);
    *value != 0 && !home.rules.iter().any(|row| row.says(&assigns))
}

/// Where an access is performed by being in a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Goal {
    Not,
    /// If it is under way there.
    UnderWay,
    /// Also if it has been turned away: it needs nothing more.
    Always,
}

/// How a row leaves an access.
enum End {
    Performed,
    UnderWay(usize),
    GivenUp,
}

/// The ways that an access can go.
struct Ways<'p> {
    protocol: &'p Protocol,
    access: Access,
    /// Whether a write-back is done wherever it comes to rest, as no row leads it to a state that is clean.
    never_clean: bool,
}

impl<'p> Ways<'p> {
    fn new(protocol: &'p Protocol, access: Access) -> Ways<'p> {
        let mut ways = Ways {
            protocol,
            access,
            never_clean: false,
        };
        let performed = |end: &End| matches!(end, End::Performed);
        ways.never_clean = access == Access::Clean && !ways.ends().iter().any(performed);
        ways
    }

    fn goal(&self, state: usize) -> Goal {
        let remote = &self.protocol.remote;
        let at = &remote.states[state];
        let right = suffices(self.access, at.right);
        match self.access {
            Access::Load | Access::Store | Access::Atomic if right => Goal::Always,
            Access::Evict if at.stable() && at.right == Right::None => Goal::Always,
            Access::Demote if at.stable() && at.right <= Right::Read => Goal::Always,
            Access::Clean if at.stable() && !at.dirty => Goal::Always,
            Access::Clean if at.stable() && self.never_clean => Goal::UnderWay,
            _ if right && rows(remote, self.access, state).next().is_some() => Goal::Always,
            _ if right => Goal::UnderWay,
            _ => Goal::Not,
        }
    }

    /// Whether a row sends the bytes of a write to the home, which is all there is to do if nothing is waited for
    /// and it is not to be tried again.
    fn posts(&self, body: &[Statement]) -> bool {
        let mut found = false;
        Statement::visit(body, &mut |s| {
            found |= matches!(s, Statement::Send { message, .. } if self.protocol.message(*message).carries.store());
        });
        found && !body.contains(&Statement::Retry)
    }

    fn end(&self, row: &Row) -> Option<End> {
        let Effect::Take { body, next } = &row.effect else {
            return None;
        };
        let to = next.unwrap_or(row.state).index();
        let posted = row.event == Event::Access(self.access) && self.posts(body);
        Some(if says_done(body) || self.goal(to) != Goal::Not {
            End::Performed
        } else if !self.protocol.remote.states[to].stable() {
            End::UnderWay(to)
        } else if posted {
            End::Performed
        } else {
            End::GivenUp
        })
    }

    /// How all rows leave it that may begin it or find it under way.
    fn ends(&self) -> Vec<End> {
        let remote = &self.protocol.remote;
        let mut known = vec![false; remote.states.len()];
        let mut ends: Vec<End> = (0..remote.states.len())
            .flat_map(|state| rows(remote, self.access, state))
            .filter_map(|row| self.end(row))
            .collect();
        let mut next = 0;
        while let Some(end) = ends.get(next) {
            next += 1;
            let End::UnderWay(state) = *end else {
                continue;
            };
            if !std::mem::replace(&mut known[state], true) {
                let others = every(remote).into_iter();
                let others = others.filter(|(from, _)| from.index() == state);
                ends.extend(others.map(|(_, to)| End::UnderWay(to.index())));
                let rows = remote.rules.iter();
                let rows = rows.filter(|row| row.state.index() == state);
                ends.extend(rows.filter_map(|row| self.end(row)));
            }
        }
        ends
    }

    /// Whether some row ends it without performing it.
    fn give_up(&self) -> bool {
        self.ends().iter().any(|end| matches!(end, End::GivenUp))
    }
}

/// The model of [`lines_of`] a system, on the first of which one kind of access or operation is watched. Its one
/// property is that rules can always lead to a state in which none is wanted.
///
/// # Errors
/// As for [`super::model`].
pub fn watching(
    protocol: &Protocol,
    home: &Controller,
    (remotes, lines): (impl Into<Remotes>, u8),
    kind: Kind,
    options: &Options,
) -> Result<Modelled, SystemError> {
    let mut system = super::sized(protocol, home, remotes, lines, options)?;
    system.watch(kind);
    system.triggers()?;
    let wanted = system.watch.map(|watch| watch.wanted);
    let mut modelled = system.modelled()?;
    modelled
        .model
        .liveness
        .extend(wanted.map(|wanted| Invariant {
            name: PROGRESS.into(),
            why: String::new(),
            parameters: Vec::new(),
            holds: !Expr::from(wanted),
        }));
    Ok(modelled)
}

/// The model on which one remote is watched. Its one property is that rules can always lead to a state in which this remote
/// can begin one of these accesses on the first line.
///
/// # Errors
/// As for [`super::model`].
pub fn restarting(
    protocol: &Protocol,
    home: &Controller,
    (remotes, lines): (impl Into<Remotes>, u8),
    accesses: &[Access],
    options: &Options,
) -> Result<Modelled, SystemError> {
    let mut system = super::sized(protocol, home, remotes, lines, options)?;
    let which = system.build.state("watched", system.remote_type);
    system.restarts = Some(which);
    system.triggers()?;
    let own = Expr::from(which);
    let remote = &protocol.remote;
    let mut begins = Expr::Bool(false);
    for &access in accesses {
        begins = begins.or(system.can_begin(access, &own));
    }
    let state = system.remote.state.at(0).at(own);
    for number in (0..remote.states.len()).filter(|&state| !begins_any(protocol, accesses, state)) {
        begins = begins.or(state.clone().is(system.remote.states.nth(number as u32)));
    }
    let mut modelled = system.modelled()?;
    modelled.model.liveness.push(Invariant {
        name: PROGRESS.into(),
        why: String::new(),
        parameters: Vec::new(),
        holds: begins,
    });
    Ok(modelled)
}

/// The name of the property.
pub const PROGRESS: &str = "progress";

/// The model of one line whose one invariant says that an access never begins.
///
/// # Errors
/// As for [`super::model`].
pub fn beginning(
    protocol: &Protocol,
    home: &Controller,
    (remotes, lines): (impl Into<Remotes>, u8),
    access: Access,
    options: &Options,
) -> Result<Modelled, SystemError> {
    let mut system = super::sized(protocol, home, remotes, lines, options)?;
    system.triggers()?;
    let never = system.with_bound(system.remote_type, |system, r| {
        let begins = system.can_begin(access, &r.into());
        r.all(!begins)
    });
    system
        .build
        .invariant(format!("no {}", access.name()), never);
    system.modelled()
}

impl System<'_> {
    fn watch(&mut self, kind: Kind) {
        let name = kind.name(self.home.controller);
        let wanted = self.build.state(
            format!("{name}_is_wanted"),
            cohkit_engine::model::TypeId::BOOL,
        );
        let remote = match kind {
            Kind::Local(_) => None,
            Kind::Access(access) => {
                let ways = Ways::new(self.protocol, access);
                let states = 0..self.protocol.remote.states.len();
                let goals = states.map(|state| match ways.goal(state) {
                    Goal::Not => 0,
                    Goal::UnderWay => 1,
                    Goal::Always => 2,
                });
                let goals: Vec<i32> = goals.collect();
                let degree = self.build.range("goal", 0, 2);
                Some(Watched {
                    which: self.build.state("watched", self.remote_type),
                    under_way: (self.build).state(
                        format!("{name}_is_under_way"),
                        cohkit_engine::model::TypeId::BOOL,
                    ),
                    goal: self.build.table("goal", self.remote.states, degree, goals),
                })
            }
        };
        self.watch = Some(Watch {
            kind,
            wanted,
            remote,
        });
    }

    /// What a row of a remote means for the access that is watched; it stands behind all that the row does.
    pub fn watched(&self, event: Event, context: &Context, body: &[Statement]) -> Vec<Stmt> {
        let (Some(watch), Some(own), false) = (self.watch, &context.own, context.home) else {
            return Vec::new();
        };
        let (Some(remote), Kind::Access(access)) = (watch.remote, watch.kind) else {
            return Vec::new();
        };
        let performed = || vec![watch.wanted.set(false), remote.under_way.set(false)];
        let mut every = false;
        Statement::visit(body, &mut |s| every |= matches!(s, Statement::Every { .. }));
        // What changes every line changes the one that is watched.
        let line = match every {
            true => Expr::Int(0),
            false => context.line.clone(),
        };
        let state = self.remote.state.at(&line).at(own);
        let at_rest = self.remote.stable.of(state.clone());
        let mut does = Vec::new();
        if watch.begins(event) {
            does.extend([watch.wanted.set(true), remote.under_way.set(true)]);
            if Ways::new(self.protocol, access).posts(body) {
                does.push(when(at_rest.clone(), performed()));
            }
        }
        if says_done(body) {
            does.push(when(remote.under_way, performed()));
        }
        let goal = remote.goal.of(state);
        let there = goal.clone().is(2).or(goal.is(1).and(remote.under_way));
        does.push(when(there, performed()));
        does.push(when(at_rest, vec![remote.under_way.set(false)]));
        let this = remote.which.is(own).and(self.is_watched(&line));
        vec![when(this, does)]
    }

    /// Whether it is on this line that something is watched: each home has one, and all do the same.
    fn is_watched(&self, line: &Expr) -> Expr {
        match self.lines {
            1 => Expr::Bool(true),
            _ => line.clone().is(0),
        }
    }

    /// The device asks for an operation.
    pub fn asked(&self, local: usize, line: &Expr) -> Option<Stmt> {
        let watch = self.watch?;
        let its = watch.kind == Kind::Local(local as u8);
        its.then(|| when(self.is_watched(line), vec![watch.wanted.set(true)]))
    }

    /// The home has performed an operation.
    pub fn acknowledged(&self, local: u8, line: &Expr) -> Option<Stmt> {
        let watch = self.watch?;
        let its = watch.kind == Kind::Local(local);
        its.then(|| when(self.is_watched(line), vec![watch.wanted.set(false)]))
    }

    /// Whether an access can begin at a remote.
    fn can_begin(&mut self, access: Access, own: &Expr) -> Expr {
        let controller = self.remote.controller;
        let context = Context {
            home: false,
            line: Expr::Int(0),
            own: Some(own.clone()),
            sender: None,
            fields: Vec::new(),
            each: None,
            chosen: None,
        };
        let state = context.part(self.remote.state);
        let mut begins = Expr::Bool(false);
        for number in 0..controller.states.len() {
            let mut here = Expr::Bool(hits(access, &controller.states[number]));
            let all = controller
                .rules
                .iter()
                .filter(|row| row.event == Event::Access(access) && row.state.index() == number);
            for row in all.rev() {
                let takes = Expr::Bool(matches!(row.effect, Effect::Take { .. }));
                here = match &row.guard {
                    Some(guard) => self.truth(&context, guard).then(takes, here),
                    None => takes,
                };
            }
            if here != Expr::Bool(false) {
                let is = state.clone().is(self.remote.states.nth(number as u32));
                begins = begins.or(is.and(here));
            }
        }
        begins
    }
}
