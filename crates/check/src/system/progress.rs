//! Progress: every access or operation that begins can be performed, from every state in which it is outstanding.
//!
//! An access of a remote is outstanding from its first row until it is performed, and a local operation of the device
//! from its request. A rejected access (a Nack takes the remote back to its first state) and a refused operation remain
//! outstanding, as the requester tries again. From each of these states, some path must lead to a state in which the
//! access or operation is performed. All steps count for such a path, spontaneous steps and those of other agents too.
//! An access that need not be served, but always could be, satisfies the property.
//!
//! ## Consequences of quiescence
//!
//! If quiescence holds, every state leads without spontaneous steps to a state in which no agent has anything
//! outstanding. An access is therefore performed on the way there if its rows end it in no other way.
//! [`unproven_kinds`] follows the rows and lists the accesses that may end otherwise. An operation that a home may
//! refuse is doubtful too, unless the home refuses it only under its lock. A quiescent state has no lock, so an
//! operation requested there is accepted, as no other step is possible. An accepted operation is acknowledged before
//! the next quiescent state. A stable home is locked where a row refuses if a row for unlock takes the same guard, or
//! has none: an unlock without a lock is an error, so no such state is reachable.
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
//! [`may_stop`] decides from the rows whether there may be such a line, and [`restart_model`] is the model that shows
//! it.

use cohkit_engine::model::{Expr, Invariant};
use cohkit_protocol::controller::{Access, Controller, Effect, Event};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;

use super::access_flow::{can_begin_any, hits};
pub use super::access_flow::{
    conditional_accesses, core_accesses, kinds, lines, lines_of, may_stop, missing_accesses,
    unproven_kinds, Kind,
};
use super::assembly::{assemble, rules_of, sized_layout};
use super::context::Context;
use super::layout::Layout;
use super::options::{Options, SystemError};
use super::system_model::SystemModel;
use super::watch::Watch;

/// Name of the property, as reports show it.
pub const PROGRESS: &str = "progress";

/// Returns the model of a system that watches one kind of access or operation on the first of its lines. Its one
/// property: rules can always lead to a state in which the access or operation is not wanted. The caller chooses
/// `lines` with [`lines_of`].
///
/// # Errors
/// As for [`super::model`].
pub fn watch_model(
    protocol: &Protocol,
    home: &Controller,
    (remotes, lines): (impl Into<Remotes>, u8),
    kind: Kind,
    options: &Options,
) -> Result<SystemModel, SystemError> {
    let mut layout = sized_layout(protocol, home, remotes, lines, options)?;
    let watch = Watch::new(&layout.agents, kind);
    let not_wanted = !Expr::from(watch.wanted);
    layout.watch = Some(watch);
    let reports = rules_of(&layout)?;
    Ok(with_liveness(assemble(layout, reports)?, not_wanted))
}

/// Returns the model that watches one remote. Its one property: rules can always lead to a state in which this remote
/// can begin one of these accesses on the first line.
///
/// # Errors
/// As for [`super::model`].
pub fn restart_model(
    protocol: &Protocol,
    home: &Controller,
    (remotes, lines): (impl Into<Remotes>, u8),
    accesses: &[Access],
    options: &Options,
) -> Result<SystemModel, SystemError> {
    let mut layout = sized_layout(protocol, home, remotes, lines, options)?;
    let frame = &layout.frame;
    let watched = frame.scope.state("watched", frame.remote_type);
    layout.restarts = Some(watched);
    let reports = rules_of(&layout)?;
    let context = Context::new(&Expr::Int(0), Some(watched.into()));
    let mut begins = Expr::Bool(false);
    for &access in accesses {
        begins = begins.or(can_begin(&layout, access, &context));
    }
    for state in 0..protocol.remote.states.len() {
        if !can_begin_any(protocol, accesses, state) {
            begins = begins.or(layout.agents.is_in(&context, &[state]));
        }
    }
    Ok(with_liveness(assemble(layout, reports)?, begins))
}

/// Returns the model with the property that rules can always lead to a state in which the claim holds.
fn with_liveness(mut system_model: SystemModel, holds: Expr) -> SystemModel {
    system_model.model.liveness.push(Invariant {
        name: PROGRESS.into(),
        reason: String::new(),
        parameters: Vec::new(),
        holds,
    });
    system_model
}

/// Returns the model with one invariant: the access never begins on the first line.
///
/// # Errors
/// As for [`super::model`].
pub fn begin_model(
    protocol: &Protocol,
    home: &Controller,
    (remotes, lines): (impl Into<Remotes>, u8),
    access: Access,
    options: &Options,
) -> Result<SystemModel, SystemError> {
    let layout = sized_layout(protocol, home, remotes, lines, options)?;
    let reports = rules_of(&layout)?;
    let never = layout.frame.all_remotes(|r| {
        let context = Context::new(&Expr::Int(0), Some(r.into()));
        !can_begin(&layout, access, &context)
    });
    let name = format!("no {}", access.name());
    layout.frame.scope.invariant(name, never);
    assemble(layout, reports)
}

/// Returns the condition that the remote of a context can begin an access: a row takes it, or it hits.
fn can_begin(layout: &Layout, access: Access, context: &Context) -> Expr {
    let agents = &layout.agents;
    let controller = agents.remote.controller;
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
                Some(guard) => agents.condition(context, guard).then(takes, can_begin),
                None => takes,
            };
        }
        if can_begin != Expr::Bool(false) {
            let in_state = agents.is_in(context, &[number]);
            begins = begins.or(in_state.and(can_begin));
        }
    }
    begins
}
