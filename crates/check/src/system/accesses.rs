//! Accesses of cores, and of the caches' replacement policies.

use cohkit_engine::model::{Expr, Rule};
use cohkit_protocol::controller::{Access, Event};
use cohkit_system::plan::{hits, write_hits};

use super::case_effects::performs;
use super::context::Context;
use super::layout::Layout;
use super::options::SystemError;
use super::reactions::Reactions;
use super::trigger::Trigger;

/// Adds the rules of all accesses.
pub(super) fn add_accesses(reactions: &mut Reactions) -> Result<(), SystemError> {
    for (access, name) in Access::ALL {
        add_access(reactions, access, name)?;
    }
    add_write_hits(reactions.layout);
    check_load_hit_order(reactions.layout);
    Ok(())
}

/// Adds the rules of an access that some row begins; none if no row does. `name` is the access in words.
fn add_access(reactions: &mut Reactions, access: Access, name: &str) -> Result<(), SystemError> {
    let Layout { frame, agents, .. } = reactions.layout;
    let (controller, event) = (agents.remote.controller, Event::Access(access));
    if !controller.rules.iter().any(|row| row.event == event) {
        return Ok(());
    }
    let (line_parameter, line) = frame.line_parameter();
    let remote_parameter = frame.remote_parameter();
    let (parameters, line) = match access.about_line() {
        true => (vec![line_parameter, remote_parameter], line),
        false => (vec![remote_parameter], Expr::Int(0)),
    };
    let context = Context::new(&line, Some(remote_parameter.into()));
    let trigger = Trigger {
        spontaneous: true,
        ..Trigger::new(
            event,
            format!("{} {name}", controller.name),
            parameters,
            context,
        )
    };
    reactions.react(trigger).map(|_| ())
}

/// Stores and atomics that hit without a row of their own. A write without effect, because no other copy is current, is
/// left out. Loads that hit never have an effect.
fn add_write_hits(layout: &Layout) {
    let Layout {
        frame,
        agents,
        stores,
        copies,
        ..
    } = layout;
    let controller = agents.remote.controller;
    let states = 0..controller.states.len();
    let states: Vec<usize> = states
        .filter(|&state| write_hits(controller, state))
        .collect();
    if states.is_empty() || !frame.facts.coherent {
        return;
    }
    let (line_parameter, line) = frame.line_parameter();
    let remote_parameter = frame.remote_parameter();
    let context = Context::new(&line, Some(remote_parameter.into()));
    let in_hit_state = agents.is_in(&context, &states);
    let changes = copies.has_other_current(&line, Some(&remote_parameter.into()));
    let changes = changes.or(stores.has_posted_stores(&context));
    let mut body =
        vec![frame.note_action(remote_parameter, &line, &performs(Access::Store), false)];
    body.extend(stores.assert_store_order(&context, true));
    body.extend(copies.mark_stale(&line, true));
    body.push(context.part(copies.memory.copies).set(true));
    frame.scope.rule(Rule {
        name: format!("{} store hits", controller.name),
        parameters: vec![line_parameter, remote_parameter],
        guard: in_hit_state.and(changes),
        body,
        spontaneous: true,
        priority: 0,
    });
}

/// Adds a rule for loads that hit without a row: they must find the remote's own stores.
fn check_load_hit_order(layout: &Layout) {
    let Layout {
        frame,
        agents,
        stores,
        ..
    } = layout;
    let controller = agents.remote.controller;
    let states = 0..controller.states.len();
    let is_hit = |&state: &usize| hits(controller, state, Access::Load);
    let states: Vec<usize> = states.filter(is_hit).collect();
    if states.is_empty() || !stores.are_posted() {
        return;
    }
    let (line_parameter, line) = frame.line_parameter();
    let remote_parameter = frame.remote_parameter();
    let context = Context::new(&line, Some(remote_parameter.into()));
    let in_hit_state = agents.is_in(&context, &states);
    let load = frame.note_action(remote_parameter, &line, &performs(Access::Load), false);
    let body = [Some(load), stores.assert_store_order(&context, false)];
    frame.scope.rule(Rule {
        name: format!("{} load hits", controller.name),
        parameters: vec![line_parameter, remote_parameter],
        guard: in_hit_state.and(stores.has_posted_stores(&context)),
        body: body.into_iter().flatten().collect(),
        spontaneous: true,
        priority: 0,
    });
}
