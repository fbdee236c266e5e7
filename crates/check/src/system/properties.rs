//! Invariants and quiescence of a system.

use cohkit_engine::model::{Expr, Place, Violation};
use cohkit_protocol::protocol::{Amount, Claim, Comparison};
use cohkit_system::state::EXCEEDS_BACKING_PERMISSION;

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
            let remotes = 0..frame.remotes;
            let counts = remotes.map(|r| layout.channels.in_flight_of(line, r).le(limit));
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
        let several = queue.per_line || frame.protocol.homes > 1;
        quiescent = quiescent.and(match several {
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
    let permission_of = |r| {
        remote
            .permission
            .of(remote.state.at(line).at(Expr::from(r)))
    };
    frame.all_remotes(|r| {
        let others_have_none =
            frame.all_remotes(|other| other.is_not(r).implies(permission_of(other).is(0)));
        permission_of(r).is(2).implies(others_have_none)
    })
}

/// Returns the condition that each remote with read permission has a current copy.
fn copies_are_current(layout: &Layout, line: &Expr) -> Expr {
    let remote = &layout.agents.remote;
    let (state, current) = (remote.state.at(line), layout.copies.memory.copies.at(line));
    layout.frame.all_remotes(|r| {
        let reads = remote.permission.of(state.at(r)).gt(0);
        reads.implies(current.at(r))
    })
}

/// Returns the condition that no remote has more permission than the home has to its memory.
fn inclusion(layout: &Layout, line: &Expr) -> Expr {
    let backing_permission = layout.backing_permission.of(line).unwrap_or(Expr::Int(2));
    let remote = &layout.agents.remote;
    let state = remote.state.at(line);
    (layout.frame).all_remotes(|r| remote.permission.of(state.at(r)).le(backing_permission))
}

/// Returns the condition that no remote has a permission that the device's lock excludes.
fn locks_exclude(layout: &Layout, device: &Device, line: &Expr) -> Expr {
    let (frame, remote) = (&layout.frame, &layout.agents.remote);
    let permission_of = |r| {
        remote
            .permission
            .of(remote.state.at(line).at(Expr::from(r)))
    };
    let no_permission = frame.all_remotes(|r| permission_of(r).is(0));
    let no_writer = frame.all_remotes(|r| permission_of(r).lt(2));
    let write = device.is_lock(line, lock::WRITE).implies(no_permission);
    write.and(device.is_lock(line, lock::READ).implies(no_writer))
}

/// Returns the condition that a line is quiescent, without regard to queues.
fn idle(layout: &Layout, line: &Expr) -> Expr {
    let (frame, channels) = (&layout.frame, &layout.channels);
    let (remote, home) = (&layout.agents.remote, &layout.agents.home);
    let state = remote.state.at(line);
    let home_is_stable = home.stable.of(home.state.at(line));
    let mut idle = home_is_stable.and(frame.all_remotes(|r| remote.stable.of(state.at(r))));
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
        Claim::Compare(a, comparison, b) => {
            let (a, b) = (amount(layout, a, line), amount(layout, b, line));
            match comparison {
                Comparison::Equal => a.is(b),
                Comparison::NotEqual => a.is_not(b),
                Comparison::Less => a.lt(b),
                Comparison::LessOrEqual => a.le(b),
                Comparison::Greater => a.gt(b),
                Comparison::GreaterOrEqual => a.ge(b),
            }
        }
        Claim::And(a, b) => inner(a).and(inner(b)),
        Claim::Or(a, b) => inner(a).or(inner(b)),
        Claim::Implies(a, b) => inner(a).implies(inner(b)),
        Claim::Not(a) => !inner(a),
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
        Amount::Constant(c) => Expr::Int((*c).into()),
        Amount::RemotesIn(states) => {
            let side = &layout.agents.remote;
            sum((0..layout.frame.remotes).map(|r| {
                let state = side.state.at(line).at(r);
                let in_states = states
                    .iter()
                    .map(|s| state.clone().is(side.states.nth(s.0.into())));
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
