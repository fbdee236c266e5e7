//! Invariants and quiescence of a system.

use cohkit_engine::model::{Expr, Place, VariableId, Violation};
use cohkit_protocol::protocol::{Amount, Claim, Comparison, Permission};
use cohkit_system::state::EXCEEDS_BACKING_PERMISSION;

use super::agents::permission_code;
use super::device::{lock, Device};
use super::in_flight::sum;
use super::layout::Layout;
use super::memory::slot;

/// Adds invariants and quiescence.
pub(super) fn add_properties(layout: &Layout) {
    let frame = &layout.frame;
    let all_lines =
        |claim: &dyn Fn(&Layout, &Expr) -> Expr| frame.all_lines(|line| claim(layout, line));
    let add = |property: &str, description: &str, claim: Expr| {
        frame
            .scope
            .invariant(Violation::new(property, description), claim);
    };
    if frame.remotes > 1 && frame.facts.coherent {
        let description = "another agent still has read or write permission";
        add("single writer", description, all_lines(&single_writer));
    }
    if frame.facts.coherent {
        let description = "a readable copy is stale";
        add("data value", description, all_lines(&copies_are_current));
    }
    if let Some(device) = &layout.device {
        let excludes = all_lines(&|layout, line| locks_exclude(layout, device, line));
        let description = "a remote has a permission that the lock excludes";
        add("single writer", description, excludes);
        let current = all_lines(&|layout, line| {
            let has_permission = layout.backing_permission.is_any(line);
            let locked = device.holds_lock(line).and(has_permission);
            locked.implies(layout.copies.memory.current.at(line))
        });
        let description = "memory is stale while the device holds the lock";
        add("data value", description, current);
    }
    if layout.backing_permission.exists() {
        add(
            "inclusion",
            EXCEEDS_BACKING_PERMISSION,
            all_lines(&inclusion),
        );
    }
    for invariant in &frame.protocol.invariants {
        let claim = all_lines(&|layout, line| claim(layout, &invariant.claim, line));
        frame.scope.invariant(&invariant.name, claim);
    }
    if let Some(bound) = frame.protocol.bounds.in_flight {
        let limit = i32::from(bound.limit);
        let claim = all_lines(&|layout, line| {
            let counts = (0..frame.remotes)
                .map(|remote| layout.channels.in_flight_of(line, remote).le(limit));
            Expr::conjunction(counts.collect::<Vec<_>>())
        });
        frame.scope.invariant(bound.violation_name(), claim);
    }
    add_quiescence(layout);
}

/// Adds the condition of quiescence: all lines are idle, and all queues are empty.
fn add_quiescence(layout: &Layout) {
    let (frame, channels) = (&layout.frame, &layout.channels);
    let mut quiescent = frame.all_lines(|line| idle(layout, line));
    let is_nonempty = |place: Place| place.field("length").gt(0);
    for (index, queue) in channels.queues.iter().enumerate() {
        let is_empty = |line: &Expr| !channels.any_queue(index, line, &is_nonempty);
        let has_several_parts = queue.per_line || frame.protocol.homes > 1;
        quiescent = quiescent.and(match has_several_parts {
            true => frame.all_lines(is_empty),
            // All lines share the queue.
            false => is_empty(&Expr::Int(0)),
        });
    }
    (frame.scope).with_builder(|build| build.quiescent(quiescent));
}

/// Returns the condition that write permission of a remote excludes every permission of the
/// others.
fn single_writer(layout: &Layout, line: &Expr) -> Expr {
    let (frame, remote) = (&layout.frame, &layout.agents.remote);
    let permission_of = |index: VariableId| {
        let state = remote.state.at(line).at(index);
        remote.permission.of(state)
    };
    frame.all_remotes(|writer| {
        let others_have_none = frame.all_remotes(|other| {
            let has_none = permission_of(other).is(permission_code(Permission::None));
            other.is_not(writer).implies(has_none)
        });
        let writes = permission_of(writer).is(permission_code(Permission::Write));
        writes.implies(others_have_none)
    })
}

/// Returns the condition that each remote with read permission has a current copy.
fn copies_are_current(layout: &Layout, line: &Expr) -> Expr {
    let remote = &layout.agents.remote;
    let (state, current) = (remote.state.at(line), layout.copies.memory.copies.at(line));
    layout.frame.all_remotes(|index| {
        let permission = remote.permission.of(state.at(index));
        let reads = permission.gt(permission_code(Permission::None));
        reads.implies(current.at(index))
    })
}

/// Returns the condition that no remote has more permission than the home has to its memory.
fn inclusion(layout: &Layout, line: &Expr) -> Expr {
    let write = permission_code(Permission::Write);
    let backing_permission = layout.backing_permission.of(line);
    let backing_permission = backing_permission.unwrap_or(Expr::Int(write.into()));
    let remote = &layout.agents.remote;
    let state = remote.state.at(line);
    (layout.frame).all_remotes(|index| remote.permission.of(state.at(index)).le(backing_permission))
}

/// Returns the condition that no remote has a permission that the device's lock excludes.
fn locks_exclude(layout: &Layout, device: &Device, line: &Expr) -> Expr {
    let (frame, remote) = (&layout.frame, &layout.agents.remote);
    let permission_of = |index: VariableId| {
        let state = remote.state.at(line).at(index);
        remote.permission.of(state)
    };
    let none = permission_code(Permission::None);
    let no_permission = frame.all_remotes(|index| permission_of(index).is(none));
    let write = permission_code(Permission::Write);
    let no_writer = frame.all_remotes(|index| permission_of(index).lt(write));
    let write = device.is_lock(line, lock::WRITE).implies(no_permission);
    write.and(device.is_lock(line, lock::READ).implies(no_writer))
}

/// Returns the condition that a line is quiescent, without regard to queues.
fn idle(layout: &Layout, line: &Expr) -> Expr {
    let (frame, channels) = (&layout.frame, &layout.channels);
    let (remote, home) = (&layout.agents.remote, &layout.agents.home);
    let state = remote.state.at(line);
    let home_is_stable = home.stable.of(home.state.at(line));
    let mut idle = home_is_stable.and(frame.all_remotes(|index| remote.stable.of(state.at(index))));
    if let Some(deferred_store) = layout.stores.deferred_store {
        idle = idle.and(deferred_store.from.at(line).is(0));
    }
    if let Some(memory) = layout.copies.memory.slot {
        idle = idle.and(memory.state.at(line).is(memory.states.nth(slot::IDLE)));
    }
    if let Some(device) = &layout.device {
        idle = idle
            .and(device.requested.at(line).is(0))
            .and(device.accepted.at(line).is(0))
            .and(device.is_lock(line, lock::NONE));
    }
    for (index, flow) in channels.flows.iter().enumerate() {
        if let Some(variable) = flow.storage.counter() {
            let carries = channels.carries_line(index);
            let any_message = channels.any_cell(index, variable.at(line), &|place| {
                if carries {
                    let current = place.clone().at(true).gt(0);
                    place.at(false).gt(0).or(current)
                } else {
                    place.gt(0)
                }
            });
            idle = idle.and(!any_message);
        }
    }
    idle
}

/// Returns the condition of an invariant of the protocol file, on one line.
fn claim(layout: &Layout, claimed: &Claim, line: &Expr) -> Expr {
    let inner = |claimed: &Claim| claim(layout, claimed, line);
    match claimed {
        Claim::Compare(left, comparison, right) => {
            let (left, right) = (amount(layout, left, line), amount(layout, right, line));
            match comparison {
                Comparison::Equal => left.is(right),
                Comparison::NotEqual => left.is_not(right),
                Comparison::Less => left.lt(right),
                Comparison::LessOrEqual => left.le(right),
                Comparison::Greater => left.gt(right),
                Comparison::GreaterOrEqual => left.ge(right),
            }
        }
        Claim::And(left, right) => inner(left).and(inner(right)),
        Claim::Or(left, right) => inner(left).or(inner(right)),
        Claim::Implies(premise, conclusion) => inner(premise).implies(inner(conclusion)),
        Claim::Not(negated) => !inner(negated),
        Claim::Locked => match &layout.device {
            Some(device) => device.is_locked(line),
            None => Expr::Bool(false),
        },
    }
}

/// Returns the value of a number that an invariant of the protocol file counts, on one line.
fn amount(layout: &Layout, amount: &Amount, line: &Expr) -> Expr {
    let channels = &layout.channels;
    match amount {
        Amount::Constant(number) => Expr::Int((*number).into()),
        Amount::RemotesIn(states) => {
            let side = &layout.agents.remote;
            sum((0..layout.frame.remotes).map(|index| {
                let state = side.state.at(line).at(index);
                let in_states = states
                    .iter()
                    .map(|listed| state.clone().is(side.states.nth(listed.0.into())));
                Expr::disjunction(in_states).as_number()
            }))
        }
        Amount::InFlight(messages) => {
            let flows = channels.flows.iter().enumerate();
            sum(flows.map(|(index, flow)| {
                if messages.contains(&flow.message) {
                    channels.count_flow(index, line, None)
                } else {
                    Expr::Int(0)
                }
            }))
        }
    }
}
