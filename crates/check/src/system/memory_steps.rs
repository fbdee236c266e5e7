//! Steps of memory operations: memory reads or writes, and answers the home.

use cohkit_engine::build::assert;
use cohkit_engine::model::{Rule, Stmt, TypeId, Violation};
use cohkit_protocol::controller::Event;

use super::context::Context;
use super::device::lock;
use super::layout::Layout;
use super::memory::{slot, Slot};
use super::options::SystemError;
use super::reactions::Reactions;
use super::trigger::Trigger;

/// Adds the steps of memory operations, if the home has split memory.
pub(super) fn add_memory_steps(reactions: &mut Reactions) -> Result<(), SystemError> {
    let Some(slot) = reactions.layout.copies.memory.slot else {
        return Ok(());
    };
    let frame = &reactions.layout.frame;
    let (line_parameter, line) = frame.line_parameter();
    for step in memory_steps(reactions.layout, slot) {
        let note = frame.note_action(frame.memory_agent, &line, step.action, true);
        frame.scope.rule(Rule {
            name: format!("memory {}", step.action),
            parameters: vec![line_parameter],
            guard: slot.state.at(&line).is(slot.states.nth(step.from)),
            body: [vec![note], step.effects].concat(),
            spontaneous: false,
            priority: 0,
        });
    }
    add_answers(reactions, slot)
}

/// A step of memory, in which it executes an operation.
struct MemoryStep {
    /// Words for charts.
    action: &'static str,
    /// State of the operation before the step, one of [`slot`].
    from: u32,
    /// Effects of the step.
    effects: Vec<Stmt>,
}

/// Returns the steps of memory, one for each kind of operation.
fn memory_steps(layout: &Layout, slot: Slot) -> [MemoryStep; 4] {
    let Layout { frame, copies, .. } = layout;
    let (_, line) = frame.line_parameter();
    let set_state = |label: u32| vec![slot.state.at(&line).set(slot.states.nth(label))];
    let (current, memory) = (slot.current.at(&line), copies.memory.current.at(&line));
    let read_only = "memory is read for a remote while the device may write it under its lock";
    let reads = layout.assert_unlocked(&line, &[lock::WRITE], read_only);
    let excluded = "a store reaches memory while the device holds the lock";
    let stores = layout.assert_unlocked(&line, &[lock::READ, lock::WRITE], excluded);
    let may_write = layout.backing_permission.may_write(&line);
    let is_current = assert(
        Violation::new("data value", "memory is read while it is stale"),
        memory.clone(),
    );
    let read = [is_current, current.clone().set(memory.clone())];
    let read = reads
        .into_iter()
        .chain(read)
        .chain(set_state(slot::SAMPLED));
    let write = [memory.clone().set(current.clone()), current.set(false)];
    let write = may_write
        .clone()
        .into_iter()
        .chain(write)
        .chain(set_state(slot::DONE));
    let store = |whole_line: bool| {
        let asserts = may_write.clone().into_iter().chain(stores.clone());
        asserts.chain(copies.mark_stale(&line, whole_line))
    };
    let (whole, partial) = (store(true), store(false));
    let whole = whole.chain([memory.set(true)]).chain(set_state(slot::DONE));
    let partial = partial.chain(set_state(slot::DONE));
    let step = |action, from, effects| MemoryStep {
        action,
        from,
        effects,
    };
    [
        step("is read", slot::READ, read.collect()),
        step("is written", slot::WRITE, write.collect()),
        step("takes the store", slot::STORE, whole.collect()),
        step("takes the partial store", slot::PARTIAL, partial.collect()),
    ]
}

/// Adds the rules by which the home consumes the data of a memory read, or the completion of a
/// memory write.
fn add_answers(reactions: &mut Reactions, slot: Slot) -> Result<(), SystemError> {
    let Layout { frame, agents, .. } = reactions.layout;
    let (line_parameter, line) = frame.line_parameter();
    let state = slot.state.at(&line);
    let is_in_state = |label: u32| state.clone().is(slot.states.nth(label));
    let set_state = |label: u32| state.clone().set(slot.states.nth(label));
    let current = slot.current.at(&line);
    let home = agents.home.controller;
    let trigger = |event: Event, name: &str| {
        let name = format!("{} {name}", home.name);
        Trigger::new(event, name, vec![line_parameter], Context::new(&line, None))
    };
    // Rows of a constructed home may differ in their alternative: each may take the data, in a rule of its own.
    let alternatives = home.rules.iter().filter_map(|row| match row.event {
        Event::MemoryData(alternative) => Some(alternative),
        _ => None,
    });
    let last_alternative = alternatives.max().unwrap_or(0);
    let incoming_copy = frame.scope.local("sampled", TypeId::BOOL);
    for alternative in 0..=last_alternative {
        let name = match last_alternative {
            0 => "takes the memory's data".to_string(),
            _ => format!("takes the memory's data, choice {alternative}"),
        };
        let trigger = Trigger {
            present: is_in_state(slot::SAMPLED),
            consume: vec![
                incoming_copy.begin(current.clone()),
                current.clone().set(false),
                set_state(slot::IDLE),
            ],
            incoming_copy: Some(incoming_copy.into()),
            is_required: alternative == 0,
            ..trigger(Event::MemoryData(alternative), &name)
        };
        reactions.react(trigger)?;
    }
    let trigger = Trigger {
        present: is_in_state(slot::DONE),
        consume: vec![set_state(slot::IDLE)],
        is_required: true,
        ..trigger(Event::MemoryDone, "hears that memory is done")
    };
    reactions.react(trigger).map(|_| ())
}
