//! Pending operations of a line: checks the properties of rows on which the hardware relies without a check of its own.

use super::{refuse, Effect, Memory, Refusal, Rom, RomEvent, Row};
use cohkit_protocol::controller::{Controller, Effect as RuleEffect, Event, Rule, Statement};
use std::collections::VecDeque;

/// Operations of a line that are pending in a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct PendingOperations {
    /// Local operation that has been accepted and not acknowledged.
    local: Option<u8>,
    /// Memory operation that has started and not completed.
    memory: Memory,
}

/// Follows the pending operations of a line from the initial state. Checks that each state determines them, and that no
/// row needs more than the hardware has.
///
/// # Errors
/// The first row that violates a property.
pub(super) fn check_pending_operations(home: &Controller, rom: &Rom) -> Result<(), Refusal> {
    let mut pending: Vec<Option<PendingOperations>> = vec![None; rom.states.len()];
    pending[0] = Some(PendingOperations::default());
    let mut queue = VecDeque::from([0]);
    while let Some(state) = queue.pop_front() {
        let before = pending[state].expect("it was reached");
        for (number, event) in rom.events.iter().enumerate() {
            let row = rom.rows[state][number];
            let Some(rule) = rom.rules[state][number].filter(|_| row.effect == Effect::Take) else {
                continue;
            };
            let rule = &home.rules[rule];
            let after = before
                .after_row(event, rule, row)
                .and_then(|after| check_directory_entry(state, event, row, after).map(|()| after));
            let next = usize::from(row.next);
            let is_determined = after.and_then(|after| match pending[next] {
                None => {
                    pending[next] = Some(after);
                    queue.push_back(next);
                    Ok(())
                }
                Some(expected) if expected == after => Ok(()),
                Some(_) => Err("the next state does not determine the outstanding operation"),
            });
            is_determined.or_else(|violation| {
                let location = format!("on `{}` in `{}`", event.name, rom.states[state]);
                refuse(rule.span, format!("{location}, {violation}"))
            })?;
        }
    }
    Ok(())
}

/// Checks that a line has a directory entry while it needs one. The directory holds the lines that are not in the
/// initial state, number 0. The error names the violated property.
fn check_directory_entry(
    state: usize,
    event: &RomEvent,
    row: Row,
    after: PendingOperations,
) -> Result<(), &'static str> {
    let next = usize::from(row.next);
    if next == 0 && after != PendingOperations::default() {
        return Err("the directory drops a line with an outstanding transaction");
    }
    let can_stall = event.request || matches!(event.event, Event::Local(_));
    if state == 0 && next != 0 && !can_stall {
        return Err("the directory needs an entry at once, for an input that cannot stall");
    }
    Ok(())
}

impl PendingOperations {
    /// Returns the pending operations after an executed row. The error names the violated property.
    fn after_row(
        self,
        event: &RomEvent,
        rule: &Rule,
        row: Row,
    ) -> Result<PendingOperations, &'static str> {
        let mut after = self.after_event(event.event)?;
        let memory_event = matches!(event.event, Event::MemoryData(_) | Event::MemoryDone);
        if row.memory != Memory::None {
            if after.memory != Memory::None || memory_event {
                return Err("a second memory operation starts; the hardware supports one per line");
            }
            after.memory = row.memory;
        }
        let is_response = matches!(event.event, Event::Message(_)) && !event.request;
        if row.memory == Memory::Read && is_response {
            return Err("memory is read for a response; requests could occupy all read slots");
        }
        if row.grant.is_some() && !memory_event && !event.request {
            return Err("a grant is sent without a current request");
        }
        if row.forward.is_some() && after.local.is_none() {
            return Err(
                "a forward is sent without a local operation; the hardware supports one remote",
            );
        }
        if row.acknowledge && event.event != Event::Unlock {
            after.acknowledge_local(rule)?;
        }
        Ok(after)
    }

    /// Returns the pending operations after the event, before its row: a local operation is accepted, or a memory
    /// operation has completed.
    fn after_event(mut self, event: Event) -> Result<PendingOperations, &'static str> {
        match event {
            Event::Local(_) if self.local.is_some() => {
                return Err("a second local operation is accepted")
            }
            Event::Local(local) => self.local = Some(local),
            Event::MemoryData(_) if self.memory != Memory::Read => {
                return Err("memory was not read")
            }
            Event::MemoryDone if self.memory != Memory::Write => {
                return Err("memory was not written")
            }
            Event::MemoryData(_) | Event::MemoryDone => self.memory = Memory::None,
            _ => {}
        }
        Ok(self)
    }

    /// Ends the local operation, which must be the one that the rule acknowledges.
    fn acknowledge_local(&mut self, rule: &Rule) -> Result<(), &'static str> {
        let RuleEffect::Take { body, .. } = &rule.effect else {
            return Ok(());
        };
        let acknowledged = body.iter().find_map(|statement| match statement {
            Statement::Acknowledge(local) => Some(*local),
            _ => None,
        });
        if acknowledged.is_none() || acknowledged != self.local {
            return Err("the acknowledged operation is not the outstanding one");
        }
        self.local = None;
        Ok(())
    }
}
