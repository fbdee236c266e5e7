//! Steps of the outer level that owns the memory, as defined by [`cohkit_system::state`]: when it grants a backing
//! permission, and when it revokes one.

use cohkit_engine::model::{Expr, Rule, Stmt};
use cohkit_protocol::protocol::Permission;

use super::agents::permission_code;
use super::device::{lock, Device};
use super::flows::{Direction, Endpoints, Storage};
use super::layout::Layout;
use super::options::SystemError;

/// A step of the outer level on a line.
struct OuterStep {
    /// Verb phrase for charts, and for the name of the rule.
    action: &'static str,
    /// Condition of the step.
    guard: Expr,
    /// Effects of the step.
    effects: Vec<Stmt>,
    /// True if the step need not happen, as in [`Rule::spontaneous`].
    spontaneous: bool,
}

/// Adds the steps of the outer level, if there is one. The permission rises while a request waits for it, and falls
/// under a lock. Other agents write a line without permission.
///
/// # Errors
/// The home has no local operation.
pub(super) fn add_outer_level_steps(layout: &Layout) -> Result<(), SystemError> {
    if !layout.backing_permission.exists() {
        return Ok(());
    }
    let Some(device) = &layout.device else {
        let description = "the outer level owns the memory, but the home has no local operation that gives up the permission";
        return Err(SystemError::Invalid(description.into()));
    };
    add_grants(layout, device);
    add_revocations(layout, device);
    let (_, line) = layout.frame.line_parameter();
    let changes = layout.copies.has_other_current(&line, None);
    let guard = has_permission(layout, &line, Permission::None).and(changes);
    let effects = layout.copies.mark_stale(&line, true);
    let write = OuterStep {
        action: "another agent writes",
        guard,
        effects,
        spontaneous: true,
    };
    add_rule(layout, device, write);
    Ok(())
}

/// True if the backing permission of a line is this one.
fn has_permission(layout: &Layout, line: &Expr, permission: Permission) -> Expr {
    match layout.backing_permission.of(line) {
        Some(granted) => granted.is(permission_code(permission)),
        None => Expr::Bool(false),
    }
}

/// Adds the rules by which the outer level grants the permission that a request waits for, or a higher one.
fn add_grants(layout: &Layout, device: &Device) {
    let (_, line) = layout.frame.line_parameter();
    let has = |permission: Permission| has_permission(layout, &line, permission);
    let reads = any_request_needs(layout, &line, Permission::Read);
    let writes = any_request_needs(layout, &line, Permission::Write);
    let is_awaited = has(Permission::None)
        .and(reads)
        .or(has(Permission::Read).and(writes));
    for (action, to) in [
        ("grants read permission", Permission::Read),
        ("grants write permission", Permission::Write),
    ] {
        let Some(permission) = layout.backing_permission.of(&line) else {
            continue;
        };
        let guard = is_awaited.clone().and(permission.lt(permission_code(to)));
        let memory = layout.copies.memory.current.at(&line);
        let is_current = Expr::from(memory.clone()).or(has(Permission::None));
        let mut effects = vec![memory.set(is_current)];
        effects.extend(layout.backing_permission.set(&line, to));
        // A request waits for the grant, which therefore must happen.
        let grant = OuterStep {
            action,
            guard,
            effects,
            spontaneous: false,
        };
        add_rule(layout, device, grant);
    }
}

/// Adds the rules by which the outer level revokes a permission, under a lock that excludes its use.
fn add_revocations(layout: &Layout, device: &Device) {
    let (_, line) = layout.frame.line_parameter();
    let has = |permission: Permission| has_permission(layout, &line, permission);
    let locked = |label: u32| device.is_lock(&line, label);
    let revocations = [
        (
            "revokes the permission",
            Permission::None,
            (!has(Permission::None)).and(locked(lock::WRITE)),
        ),
        (
            "downgrades the permission to read",
            Permission::Read,
            has(Permission::Write).and(locked(lock::WRITE).or(locked(lock::READ))),
        ),
    ];
    for (action, to, guard) in revocations {
        let mut effects = Vec::new();
        if to == Permission::None {
            effects.push(layout.copies.memory.current.at(&line).set(false));
        }
        effects.extend(layout.backing_permission.set(&line, to));
        let revocation = OuterStep {
            action,
            guard,
            effects,
            spontaneous: true,
        };
        add_rule(layout, device, revocation);
    }
}

/// Returns the condition that a request that may arrive next needs this permission or a higher one.
fn any_request_needs(layout: &Layout, line: &Expr, permission: Permission) -> Expr {
    let (frame, channels) = (&layout.frame, &layout.channels);
    let mut is_needed = Expr::Bool(false);
    for (index, flow) in channels.flows.iter().enumerate() {
        let (message, direction) = (flow.message, flow.direction);
        let needs = layout.backing_permission.needs(message);
        if direction != Direction::ToHome || needs < permission {
            continue;
        }
        let in_flow = frame.any_remote(|from| {
            let sender = Expr::from(from);
            let endpoints = Endpoints {
                from: Some(&sender),
                to: None,
            };
            match flow.storage {
                Storage::Counted(variable) => {
                    let place = endpoints.index(variable.at(line));
                    let is_waiting = channels.count_cells(index, place).gt(0);
                    is_waiting.and(channels.has_no_predecessor(message, direction, line, endpoints))
                }
                Storage::Queued(queue, label) => {
                    let place = channels.queue_at(queue, line, endpoints);
                    let head = place.field("slot").at(0);
                    channels.queues[queue].holds(&head, label, line)
                }
            }
        });
        is_needed = is_needed.or(in_flow);
    }
    is_needed
}

/// Adds the rule of a step, with its note.
fn add_rule(layout: &Layout, device: &Device, step: OuterStep) {
    let (line_parameter, line) = layout.frame.line_parameter();
    let (frame, action) = (&layout.frame, step.action);
    let note = frame.note_action(device.agent, &line, action, true);
    frame.scope.rule(Rule {
        name: format!("outer_level {action}"),
        parameters: vec![line_parameter],
        guard: step.guard,
        body: [vec![note], step.effects].concat(),
        spontaneous: step.spontaneous,
        priority: 0,
    });
}
