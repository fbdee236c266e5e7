//! Steps of the device: it requests local operations, uses the line under its lock, and unlocks.

use cohkit_engine::build::{assert, error};
use cohkit_engine::model::{Expr, Rule, Violation};
use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::Permission;

use super::agents::permission_code;
use super::context::Context;
use super::device::{lock, Device};
use super::layout::Layout;
use super::options::SystemError;
use super::reactions::Reactions;
use super::trigger::Trigger;

/// Adds the steps of the device, if the home has local operations.
pub(super) fn add_device_steps(reactions: &mut Reactions) -> Result<(), SystemError> {
    let Some(device) = &reactions.layout.device else {
        return Ok(());
    };
    add_requests(reactions, device)?;
    match device.can_lock() {
        true => add_locks(reactions, device),
        false => Ok(()),
    }
}

/// Returns a trigger of the home by the device. `name` completes the sentence that begins with the home's name.
fn home_trigger(layout: &Layout, event: Event, name: &str) -> Trigger {
    let (line_parameter, line) = layout.frame.line_parameter();
    let name = format!("{} {name}", layout.agents.home.controller.name);
    Trigger::new(event, name, vec![line_parameter], Context::new(&line, None))
}

/// Returns the condition that the device may request a local operation, an index into the device's operations. An
/// outer level does so only to revoke permission, one operation at a time.
fn may_request(layout: &Layout, device: &Device, local: usize, line: &Expr) -> Expr {
    let operation = &device.locals[local];
    let Some(permission) = layout.backing_permission.of(line) else {
        return Expr::Bool(true);
    };
    if !operation.locks {
        return Expr::Bool(false);
    }
    let open = device.is_lock(line, lock::NONE);
    let free = device.accepted.at(line).is(0).and(open);
    free.and(permission.gt(permission_code(operation.ensures)))
}

/// The device requests operations, which the home accepts or refuses.
fn add_requests(reactions: &mut Reactions, device: &Device) -> Result<(), SystemError> {
    let layout = reactions.layout;
    let frame = &layout.frame;
    let (line_parameter, line) = frame.line_parameter();
    let (requested, accepted) = (device.requested.at(&line), device.accepted.at(&line));
    let mut idle = requested.clone().is(0);
    if !frame.options.overlaps_requests {
        idle = idle.and(accepted.clone().is(0));
    }
    for (index, local) in device.locals.iter().enumerate() {
        let code = index as i32 + 1;
        let action = format!("asks for {}", local.name);
        let note = frame.note_action(device.agent, &line, &action, true);
        let mut body = vec![note, requested.clone().set(code)];
        if let Some(watch) = &layout.watch {
            body.extend(watch.operation_effect(index as u8, &line, true));
        }
        frame.scope.rule(Rule {
            name: format!("device {action}"),
            parameters: vec![line_parameter],
            guard: idle.clone().and(may_request(layout, device, index, &line)),
            body,
            spontaneous: true,
            priority: 0,
        });
        let takes = format!("takes {}", local.name);
        let refuses = format!("refuses {}", local.name);
        let is_first = assert(
            Violation::new(
                "one local operation at a time",
                "the home accepts a local operation while another one is in progress",
            ),
            accepted.clone().is(0),
        );
        let trigger = Trigger {
            present: requested.clone().is(code),
            consume: vec![
                frame.note_home_action(&line, &takes),
                requested.clone().set(0),
            ],
            accept_effects: vec![is_first, accepted.clone().set(code)],
            refuse_effects: Some(vec![frame.note_home_action(&line, &refuses)]),
            ..home_trigger(layout, Event::Local(index as u8), &takes)
        };
        reactions.react(trigger)?;
    }
    Ok(())
}

/// The device unlocks, and writes while its lock allows it.
fn add_locks(reactions: &mut Reactions, device: &Device) -> Result<(), SystemError> {
    let layout = reactions.layout;
    let Layout { frame, copies, .. } = layout;
    let (line_parameter, line) = frame.line_parameter();
    let note = |action: &str| frame.note_action(device.agent, &line, action, true);
    // A device may unlock a line that it has not locked. Refusing has no effect, so only a home that takes the unlock
    // matters.
    let trigger = Trigger {
        present: device.is_lock(&line, lock::NONE),
        consume: vec![note("unlocks a line that it has not locked")],
        accept_effects: vec![error(Violation::new(
            "lock",
            "the home takes an unlock of a line that is not locked",
        ))],
        ..home_trigger(layout, Event::Unlock, "takes a stray unlock")
    };
    reactions.react(trigger)?;
    let trigger = Trigger {
        present: device.holds_lock(&line),
        consume: vec![note("unlocks")],
        accept_effects: vec![device.set_lock(&line, lock::UNLOCKING)],
        refuse_effects: Some(vec![error(Violation::new(
            "lock",
            "the home refuses an unlock of a line that is locked",
        ))]),
        ..home_trigger(layout, Event::Unlock, "takes the unlock")
    };
    reactions.react(trigger)?;
    // An outer level writes lines whose permission it has revoked, in a rule of its own.
    let mut locals = device.locals.iter();
    let writes = locals.any(|local| local.locks && local.ensures == Permission::None);
    if writes && !layout.backing_permission.exists() {
        let changes = copies.has_other_current(&line, None);
        let mut body = vec![note("writes")];
        body.extend(copies.mark_stale(&line, true));
        body.push(copies.memory.current.at(&line).set(true));
        frame.scope.rule(Rule {
            name: "device writes under its lock".into(),
            parameters: vec![line_parameter],
            guard: device.is_lock(&line, lock::WRITE).and(changes),
            body,
            spontaneous: true,
            priority: 0,
        });
    }
    Ok(())
}
