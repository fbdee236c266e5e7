//! Progress: every access or operation that begins can be performed, from every state in which it is outstanding.
//!
//! An access of a remote is outstanding from its first row until it is performed, and a local operation of the device
//! from its request. A rejected access (a Nack takes the remote back to its first state) and a refused operation remain
//! outstanding, as the requester tries again. From each of these states, some path must lead to a state in which the
//! access or operation is performed. All steps count for such a path, spontaneous steps and those of other agents too.
//! An access that need not be served, but always could be, satisfies the property.
//!
//! ## Consequences of drain
//!
//! From every state, drain leads without spontaneous steps to a state in which nothing is outstanding at any agent. An
//! access is therefore performed on the way there if its rows end it in no other way. [`unproven_kinds`] follows the
//! rows and lists the accesses that may end otherwise. An operation that a home may refuse is doubtful too, unless the
//! home refuses it only under its lock. A quiescent state has no lock, so an operation requested there is accepted, as
//! no other step could lead on. An accepted operation is acknowledged before the next quiescent state. A stable home is
//! locked where a row refuses if a row for unlock takes the same guard, or has none: an unlock without a lock is an
//! error, so no such state is reachable.
//!
//! ## Search
//!
//! The doubtful accesses and operations are searched, each on a model of its own: that of one line, with three more
//! variables. `watched` is the watched remote. It is chosen at the start and never changes. Permutations of the remotes
//! apply to it as to all values that name a remote, so symmetry loses nothing. The second variable says that the access
//! or operation is wanted: a row that begins it sets the variable, and a row that performs it clears it. The third says
//! that the outstanding access of the watched remote is the watched one. The search checks liveness: from everywhere, a
//! state is reachable in which the access is not wanted.
//!
//! One line for each home is enough if lines share nothing but the order of messages: every behaviour of one line among
//! several is also one of this line alone. If all lines can drain, the others come to rest first, and then do nothing
//! during the path of the watched line. Registers, messages about no line and rows that change every line couple the
//! lines of a home: one line may keep a resource that another never gets. Each home has two lines then ([`lines`]), of
//! which the first is watched.
//!
//! ## Accesses that never begin again
//!
//! A guard may prevent an access from beginning. That is no violation, but a line that a remote can never access again
//! is worth a note. So is a line that it can never store to again, or access in another way that it supports.
//! [`may_stop`] decides from the rows whether there may be such a line, and [`restarting`] is the model that shows it.

use cohkit_protocol::controller::{
    Access, Controller, Effect, Event, Expression, Initial, Operator, Rule as Row, State,
    Statement, Variable, MEMORY_WRITES,
};
use cohkit_protocol::pending_access::bulk_transitions;
use cohkit_protocol::protocol::{Protocol, Right, StateId};
use cohkit_protocol::remotes::Remotes;

use super::expressions::Context;
use super::layout::System;
pub use super::watch::Kind;
use super::watch::{Watch, WatchedRemote};
use super::{Modelled, Options, SystemError};
use cohkit_engine::build::when;
use cohkit_engine::model::{Expr, Invariant, Stmt};

/// All accesses that some row or permission begins, and the local operations of the home.
pub fn kinds(protocol: &Protocol, home: &Controller) -> Vec<Kind> {
    let remote = &protocol.remote;
    let locals = (0..home.locals.len()).map(|local| Kind::Local(local as u8));
    accesses(remote).map(Kind::Access).chain(locals).collect()
}

/// The accesses and operations whose progress does not follow from drain.
pub fn unproven_kinds(protocol: &Protocol, home: &Controller) -> Vec<Kind> {
    let mut kinds = kinds(protocol, home);
    kinds.retain(|&kind| match kind {
        Kind::Access(access) => AccessFlow::new(protocol, access).can_abandon(),
        Kind::Local(local) => refuses_at_rest(home, local),
    });
    kinds
}

/// The accesses that no row or permission of the initial state begins unconditionally.
pub fn conditional_accesses(protocol: &Protocol) -> Vec<Access> {
    let remote = &protocol.remote;
    let begins_unconditionally = |access: Access| {
        let row = rows(remote, access, 0).next();
        hits(access, &remote.states[0]) || row.is_some_and(|row| row.guard.is_none())
    };
    accesses(remote)
        .filter(|&access| !begins_unconditionally(access))
        .collect()
}

/// Accesses that every cache supports, and that no row or permission of this one begins. The others are optional in a
/// protocol: write-backs that keep the copy, and accesses that bypass the cache.
pub fn absent(protocol: &Protocol) -> Vec<Access> {
    let mut required = vec![Access::Load, Access::Store, Access::Evict];
    required.retain(|&access| accesses(&protocol.remote).all(|supported| supported != access));
    required
}

/// The accesses that some row or permission begins.
fn accesses(remote: &Controller) -> impl Iterator<Item = Access> + '_ {
    let accesses = Access::ALL.into_iter().map(|(access, _)| access);
    // An access about no line performs nothing by itself.
    accesses
        .filter(|access| access.about_line())
        .filter(|&access| {
            (0..remote.states.len()).any(|state| {
                // Atomics without a row are performed as stores.
                access != Access::Atomic && hits(access, &remote.states[state])
                    || rows(remote, access, state).next().is_some()
            })
        })
}

/// Number of lines on which progress has to be checked: one for each home, or two if lines are coupled.
pub fn lines(protocol: &Protocol) -> u8 {
    let lines_per_home = match protocol.joins_lines() {
        Some(_) => 2,
        None => 1,
    };
    protocol.homes as u8 * lines_per_home
}

/// Number of lines on which the progress of a system of `lines` lines is checked: [`lines`], or one for each home if it
/// has fewer.
pub fn lines_of(protocol: &Protocol, lines: u8) -> u8 {
    match self::lines(protocol) {
        needed if needed <= lines => needed,
        _ => protocol.homes as u8,
    }
}

/// Accesses of a core that some row or permission begins: loads, stores and their like.
pub fn core_accesses(remote: &Controller) -> impl Iterator<Item = Access> + '_ {
    accesses(remote).filter(|access| access.needs() != Right::None)
}

/// Returns true if a stable state begins none of these accesses without a guard, though its kind of remotes has some of
/// them.
pub fn may_stop(protocol: &Protocol, accesses: &[Access]) -> bool {
    let remote = &protocol.remote;
    let begins = |state: usize| {
        accesses.iter().any(|&access| {
            hits(access, &remote.states[state])
                || rows(remote, access, state).any(|row| row.guard.is_none())
        })
    };
    let mut at_rest = (0..remote.states.len()).filter(|&state| remote.states[state].is_stable());
    at_rest.any(|state| !begins(state) && can_begin_any(protocol, accesses, state))
}

/// Returns true if the kind of remotes that a state belongs to has some of these accesses.
fn can_begin_any(protocol: &Protocol, accesses: &[Access], state: usize) -> bool {
    let remote = &protocol.remote;
    let kind = protocol.kind_of(StateId(state as u16));
    let is_same_kind = |candidate: usize| protocol.kind_of(StateId(candidate as u16)) == kind;
    accesses.iter().any(|&access| {
        let mut states = (0..remote.states.len()).filter(|&candidate| is_same_kind(candidate));
        states.any(|candidate| {
            hits(access, &remote.states[candidate])
                || rows(remote, access, candidate).next().is_some()
        })
    })
}

/// The rows that take an access in a state.
fn rows(remote: &Controller, access: Access, state: usize) -> impl Iterator<Item = &Row> {
    remote.rules.iter().filter(move |row| {
        row.event == Event::Access(access)
            && row.state.index() == state
            && matches!(row.effect, Effect::Take { .. })
    })
}

/// True if an access needs no row in a state, because it is performed in place.
fn hits(access: Access, state: &State) -> bool {
    access.is_performed_in_place() && is_permitted(access, state.right)
}

/// True if the permission allows the access to be performed.
fn is_permitted(access: Access, right: Right) -> bool {
    match access {
        Access::Load | Access::ReadOnce | Access::Acquire => right >= Right::Read,
        Access::Store
        | Access::WriteLine
        | Access::WritePartial
        | Access::Release
        | Access::WriteBack
        | Access::Atomic => right == Right::Write,
        Access::Evict | Access::Demote | Access::Clean | Access::Fence | Access::AcquireFence => {
            false
        }
    }
}

fn has_done(body: &[Statement]) -> bool {
    let mut found = false;
    Statement::visit(body, &mut |s| found |= *s == Statement::Done);
    found
}

/// True if a home may refuse an operation that the device requests at quiescence. It may if, in a stable state, a row
/// refuses the operation under a guard that does not imply the lock.
fn refuses_at_rest(home: &Controller, local: u8) -> bool {
    let mut at_rest = (0..home.states.len()).filter(|&state| home.states[state].is_stable());
    at_rest.any(|state| {
        let rows_of = |event: Event| {
            let rows = home.rules.iter();
            rows.filter(move |row| row.event == event && row.state.index() == state)
        };
        let unlock = rows_of(Event::Unlock).next();
        let locked = |row: &Row| {
            unlock.is_some_and(|unlock| {
                let is_taken = matches!(unlock.effect, Effect::Take { .. });
                is_taken && (unlock.guard.is_none() || unlock.guard == row.guard)
            })
        };
        let mut is_last = false;
        let mut rows = rows_of(Event::Local(local)).take_while(|row| {
            let was_last = is_last;
            is_last = row.guard.is_none();
            !was_last
        });
        rows.any(|row| row.effect == Effect::Refuse && !locked(row) && !is_idle(home, row))
    })
}

/// True if a row's guard requires a value of a variable that neither begins with it nor is ever assigned.
fn is_idle(home: &Controller, row: &Row) -> bool {
    let Some(Expression::Binary(Operator::Equal, variable, value)) = &row.guard else {
        return false;
    };
    let (Expression::Variable(variable), Expression::Constant(value)) = (&**variable, &**value)
    else {
        return false;
    };
    let assigns = |s: &Statement| matches!(s, Statement::Assign(v, _) if v == variable);
    let Variable { name, initial, .. } = &home.variables[variable.index()];
    let is_external = name == MEMORY_WRITES;
    let begins = match initial {
        Initial::Number(number) => i64::from(*number) == i64::from(*value),
        Initial::All(_) => true,
    };
    !is_external && !begins && !home.rules.iter().any(|row| row.has_statement(&assigns))
}

/// Says whether an access is performed by reaching a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Goal {
    Not,
    /// If it is outstanding there.
    UnderWay,
    /// Also if it has been rejected: nothing more is needed.
    Always,
}

/// Result of a row for an outstanding access.
enum End {
    Performed,
    UnderWay(usize),
    GivenUp,
}

/// Control flow of one kind of access through the rows.
struct AccessFlow<'p> {
    protocol: &'p Protocol,
    access: Access,
    /// True if a write-back is complete wherever it comes to rest, because no row leads it to a clean state.
    never_clean: bool,
}

impl<'p> AccessFlow<'p> {
    fn new(protocol: &'p Protocol, access: Access) -> AccessFlow<'p> {
        let mut flow = AccessFlow {
            protocol,
            access,
            never_clean: false,
        };
        let is_performed = |end: &End| matches!(end, End::Performed);
        flow.never_clean = access == Access::Clean && !flow.ends().iter().any(is_performed);
        flow
    }

    fn goal(&self, state: usize) -> Goal {
        let remote = &self.protocol.remote;
        let definition = &remote.states[state];
        let is_performable = is_permitted(self.access, definition.right);
        match self.access {
            Access::Load | Access::Store | Access::Atomic if is_performable => Goal::Always,
            Access::Evict if definition.is_stable() && definition.right == Right::None => {
                Goal::Always
            }
            Access::Demote if definition.is_stable() && definition.right <= Right::Read => {
                Goal::Always
            }
            Access::Clean if definition.is_stable() && !definition.dirty => Goal::Always,
            Access::Clean if definition.is_stable() && self.never_clean => Goal::UnderWay,
            _ if is_performable && rows(remote, self.access, state).next().is_some() => {
                Goal::Always
            }
            _ if is_performable => Goal::UnderWay,
            _ => Goal::Not,
        }
    }

    /// True if a row sends the bytes of a write to the home. This completes the access if the row waits for nothing and
    /// does not retry.
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
        Some(if has_done(body) || self.goal(to) != Goal::Not {
            End::Performed
        } else if !self.protocol.remote.states[to].is_stable() {
            End::UnderWay(to)
        } else if posted {
            End::Performed
        } else {
            End::GivenUp
        })
    }

    /// Results of all rows that may begin the access or find it outstanding.
    fn ends(&self) -> Vec<End> {
        let remote = &self.protocol.remote;
        let mut visited = vec![false; remote.states.len()];
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
            if !std::mem::replace(&mut visited[state], true) {
                let successors = bulk_transitions(remote).into_iter();
                let successors = successors.filter(|(from, _)| from.index() == state);
                ends.extend(successors.map(|(_, to)| End::UnderWay(to.index())));
                let rows = remote.rules.iter();
                let rows = rows.filter(|row| row.state.index() == state);
                ends.extend(rows.filter_map(|row| self.end(row)));
            }
        }
        ends
    }

    /// True if some row ends the access without performing it.
    fn can_abandon(&self) -> bool {
        self.ends().iter().any(|end| matches!(end, End::GivenUp))
    }
}

/// The model of a system that watches one kind of access or operation on the first of its [`lines_of`] lines. Its one
/// property: rules can always lead to a state in which none is wanted.
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

/// The model that watches one remote. Its one property: rules can always lead to a state in which this remote can begin
/// one of these accesses on the first line.
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
    let watched = system.build.state("watched", system.remote_type);
    system.restarts = Some(watched);
    system.triggers()?;
    let remote_index = Expr::from(watched);
    let remote = &protocol.remote;
    let mut begins = Expr::Bool(false);
    for &access in accesses {
        begins = begins.or(system.can_begin(access, &remote_index));
    }
    let state = system.remote.state.at(0).at(remote_index);
    for number in
        (0..remote.states.len()).filter(|&state| !can_begin_any(protocol, accesses, state))
    {
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

/// Name of the property.
pub const PROGRESS: &str = "progress";

/// The model with one invariant: the access never begins.
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
                let flow = AccessFlow::new(self.protocol, access);
                let states = 0..self.protocol.remote.states.len();
                let goals = states.map(|state| match flow.goal(state) {
                    Goal::Not => 0,
                    Goal::UnderWay => 1,
                    Goal::Always => 2,
                });
                let goals: Vec<i32> = goals.collect();
                let degree = self.build.range("goal", 0, 2);
                Some(WatchedRemote {
                    remote: self.build.state("watched", self.remote_type),
                    outstanding: (self.build).state(
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

    /// Statements for the watched access at the end of a remote's row.
    pub fn watch_statements(
        &self,
        event: Event,
        context: &Context,
        body: &[Statement],
    ) -> Vec<Stmt> {
        let (Some(watch), Some(executing_remote), false) =
            (self.watch, &context.remote, context.home)
        else {
            return Vec::new();
        };
        let (Some(remote), Kind::Access(access)) = (watch.remote, watch.kind) else {
            return Vec::new();
        };
        let performed = || vec![watch.wanted.set(false), remote.outstanding.set(false)];
        let mut changes_every_line = false;
        Statement::visit(body, &mut |s| {
            changes_every_line |= matches!(s, Statement::BulkTransition { .. })
        });
        // A row that changes every line changes the watched line.
        let line = match changes_every_line {
            true => Expr::Int(0),
            false => context.line.clone(),
        };
        let state = self.remote.state.at(&line).at(executing_remote);
        let at_rest = self.remote.stable.of(state.clone());
        let mut effects = Vec::new();
        if watch.begins(event) {
            effects.extend([watch.wanted.set(true), remote.outstanding.set(true)]);
            if AccessFlow::new(self.protocol, access).posts(body) {
                effects.push(when(at_rest.clone(), performed()));
            }
        }
        if has_done(body) {
            effects.push(when(remote.outstanding, performed()));
        }
        let goal = remote.goal.of(state);
        let reaches_goal = goal.clone().is(2).or(goal.is(1).and(remote.outstanding));
        effects.push(when(reaches_goal, performed()));
        effects.push(when(at_rest, vec![remote.outstanding.set(false)]));
        let is_watched_remote = remote
            .remote
            .is(executing_remote)
            .and(self.is_watched(&line));
        vec![when(is_watched_remote, effects)]
    }

    /// True on the watched line: the first one, as the lines of all homes behave alike.
    fn is_watched(&self, line: &Expr) -> Expr {
        match self.lines {
            1 => Expr::Bool(true),
            _ => line.clone().is(0),
        }
    }

    /// Statement for the watched operation when the device requests one.
    pub fn watch_request(&self, local: usize, line: &Expr) -> Option<Stmt> {
        let watch = self.watch?;
        let is_same = watch.kind == Kind::Local(local as u8);
        is_same.then(|| when(self.is_watched(line), vec![watch.wanted.set(true)]))
    }

    /// Statement for the watched operation when the home has performed one.
    pub fn watch_acknowledgement(&self, local: u8, line: &Expr) -> Option<Stmt> {
        let watch = self.watch?;
        let is_same = watch.kind == Kind::Local(local);
        is_same.then(|| when(self.is_watched(line), vec![watch.wanted.set(false)]))
    }

    /// True if a remote can begin an access.
    fn can_begin(&mut self, access: Access, remote: &Expr) -> Expr {
        let controller = self.remote.controller;
        let context = Context {
            home: false,
            line: Expr::Int(0),
            remote: Some(remote.clone()),
            sender: None,
            fields: Vec::new(),
            each: None,
            chosen: None,
        };
        let state = context.part(self.remote.state);
        let mut begins = Expr::Bool(false);
        for number in 0..controller.states.len() {
            let mut can_begin = Expr::Bool(hits(access, &controller.states[number]));
            let rows = controller
                .rules
                .iter()
                .filter(|row| row.event == Event::Access(access) && row.state.index() == number);
            for row in rows.rev() {
                let takes = Expr::Bool(matches!(row.effect, Effect::Take { .. }));
                can_begin = match &row.guard {
                    Some(guard) => self.truth(&context, guard).then(takes, can_begin),
                    None => takes,
                };
            }
            if can_begin != Expr::Bool(false) {
                let in_state = state.clone().is(self.remote.states.nth(number as u32));
                begins = begins.or(in_state.and(can_begin));
            }
        }
        begins
    }
}
