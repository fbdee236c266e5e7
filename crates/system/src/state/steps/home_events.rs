//! Events of the home that are no messages: memory operations, local operations, and unlocks.

use cohkit_protocol::controller::Event;
use cohkit_protocol::execute::{Outcome, Trigger};
use cohkit_protocol::protocol::Permission;

use super::contexts::{ConsumedStore, SystemHomeContext};
use super::row_owner::{trigger, RowOwner};
use crate::agent::{self, read_under_lock, store_under_lock, HomeInput, Violation};
use crate::data::{Data, Extent};
use crate::state::{Lock, Operation, StepError, System, SystemState};
use crate::stores::{self, Ticket};

impl<D: Data> SystemState<D> {
    /// Performs the requested memory operation.
    pub(super) fn perform_memory_operation(
        &mut self,
        system: &System,
        line: u8,
    ) -> Result<bool, StepError> {
        let line_state = self.line(line);
        let lock = line_state.lock;
        match line_state.operation.clone() {
            Operation::Read => {
                let memory = line_state.memory.clone();
                if lock == Lock::Held(Permission::Write) {
                    return Err(read_under_lock().into());
                }
                if !self.data.is_current(line, &memory) {
                    return Err(Violation::data_value("memory is read while it is stale").into());
                }
                self.line(line).operation = Operation::Sampled(memory);
            }
            Operation::Write(copy) => {
                self.may_write(line)?;
                let line_state = self.line(line);
                line_state.memory = copy;
                line_state.operation = Operation::Done;
            }
            Operation::Store {
                whole: whole_line,
                value,
            } => {
                self.store_to_memory(system, line, whole_line, &value)?;
                self.line(line).operation = Operation::Done;
            }
            Operation::Idle | Operation::Sampled(_) | Operation::Done => return Ok(false),
        }
        Ok(true)
    }

    /// Performs a remote's write in memory.
    pub(super) fn store_to_memory(
        &mut self,
        system: &System,
        line: u8,
        whole_line: bool,
        value: &D::Write,
    ) -> Result<(), StepError> {
        self.may_write(line)?;
        let line_state = self.line(line);
        if matches!(line_state.lock, Lock::Held(_)) {
            return Err(store_under_lock().into());
        }
        let memory = line_state.memory.clone();
        let extent = match whole_line {
            true => Extent::Whole,
            false => Extent::Part,
        };
        let new_memory = self.data.write(line, &memory, extent, value);
        self.mark_copies_stale(system, line, whole_line);
        self.line(line).memory = new_memory;
        Ok(())
    }

    /// Lets the home take the data of a memory read, with the grant alternative `choice`. Only alternative 0
    /// must have a row.
    pub(super) fn consume_read_data(
        &mut self,
        system: &System,
        line: u8,
        choice: u8,
    ) -> Result<bool, StepError> {
        let operation = std::mem::replace(&mut self.line(line).operation, Operation::Idle);
        let Operation::Sampled(copy) = operation else {
            return Ok(false);
        };
        let event = Event::MemoryData(choice);
        if choice == 0 {
            return self.apply_required_event(system, line, event, Some(&copy));
        }
        let input = HomeInput {
            message: None,
            carried_copy: Some(&copy),
        };
        let reaction = self.apply_home_event(
            system,
            line,
            trigger(event, None, system.home_of(line)),
            input,
        )?;
        Ok(reaction == HomeReaction::Taken)
    }

    /// Applies an event that the home must handle.
    pub(super) fn apply_required_event(
        &mut self,
        system: &System,
        line: u8,
        event: Event,
        copy: Option<&D::Copy>,
    ) -> Result<bool, StepError> {
        let input = HomeInput {
            message: None,
            carried_copy: copy,
        };
        match self.apply_home_event(
            system,
            line,
            trigger(event, None, system.home_of(line)),
            input,
        )? {
            HomeReaction::Taken => Ok(true),
            HomeReaction::Stalled => Ok(false),
            HomeReaction::Rejected | HomeReaction::NoRow => {
                Err(RowOwner::Home.unexpected(system, event))
            }
        }
    }

    /// Lets the home take, refuse or stall the requested local operation. Returns false if it stalls.
    pub(super) fn consume_local_operation(
        &mut self,
        system: &System,
        line: u8,
    ) -> Result<bool, StepError> {
        let line_state = self.line(line);
        let Some(local) = line_state.requested.take() else {
            return Ok(false);
        };
        let busy = line_state.accepted.replace(local);
        let event = trigger(Event::Local(local), None, system.home_of(line));
        let reaction = self.apply_home_event(system, line, event, empty_input())?;
        match (reaction, busy) {
            (HomeReaction::Taken, Some(_)) => Err(Violation::new(
                "one local operation at a time",
                "the home accepts a local operation while another one is in progress",
            )
            .into()),
            (HomeReaction::Taken, None) => Ok(true),
            (HomeReaction::Rejected, _) => {
                self.line(line).accepted = busy;
                Ok(true)
            }
            (HomeReaction::Stalled | HomeReaction::NoRow, _) => Ok(false),
        }
    }

    /// Lets the home take an unlock by the device. Returns false if the unlock stalls, or if the line is not
    /// locked and the home refuses it.
    pub(super) fn unlock(&mut self, system: &System, line: u8) -> Result<bool, StepError> {
        let line_state = self.line(line);
        let was_locked = matches!(line_state.lock, Lock::Held(_));
        if was_locked {
            line_state.lock = Lock::Unlocking;
        }
        let reaction = self.apply_home_event(
            system,
            line,
            trigger(Event::Unlock, None, system.home_of(line)),
            empty_input(),
        )?;
        let violation = |description: &str| Err(Violation::new("lock", description).into());
        match (reaction, was_locked) {
            (HomeReaction::Taken, true) => Ok(true),
            (HomeReaction::Taken, false) => {
                violation("the home takes an unlock of a line that is not locked")
            }
            (HomeReaction::Rejected, true) => {
                violation("the home refuses an unlock of a line that is locked")
            }
            // A home that refuses an unlock of an unlocked line changes nothing.
            (HomeReaction::Rejected, false) | (HomeReaction::Stalled | HomeReaction::NoRow, _) => {
                Ok(false)
            }
        }
    }

    /// Writes a part of a locked line in memory, as the device. Returns false if the write would make no copy
    /// stale.
    pub(super) fn device_writes(&mut self, system: &System, line: u8) -> bool {
        if !self.has_other_current_copy(system, line, None) {
            return false;
        }
        let memory = self.lines[usize::from(line)].memory.clone();
        let memory = self.write(system, line, &memory, Extent::Part, &D::Write::default());
        self.line(line).memory = memory;
        true
    }

    /// Applies an event without a store to the home.
    fn apply_home_event(
        &mut self,
        system: &System,
        line: u8,
        trigger: Trigger,
        input: HomeInput<D::Copy>,
    ) -> Result<HomeReaction, StepError> {
        self.apply_home_event_with(system, line, trigger, input, (None, 0))
    }

    /// Like [`Self::apply_home_event`], with the ticket of the event's store, and the index of the member that a
    /// choosing row takes.
    pub(super) fn apply_home_event_with(
        &mut self,
        system: &System,
        line: u8,
        trigger: Trigger,
        input: HomeInput<D::Copy>,
        (ticket, choice): (Option<Ticket>, u16),
    ) -> Result<HomeReaction, StepError> {
        let mut next = self.lines[usize::from(line)].home.clone();
        let mut tables = system.home;
        let machine = system.home_machine();
        let outcome = machine.step_choosing(&mut next, trigger, &mut tables, choice);
        let acts = match outcome
            .map_err(|error| self.interrupted(system, line, RowOwner::Home, &error))?
        {
            Outcome::Taken { acts, .. } => {
                self.check_capacity(system, line, RowOwner::Home, &acts)?;
                acts
            }
            Outcome::Stall => return Ok(HomeReaction::Stalled),
            Outcome::Refuse => return Ok(HomeReaction::Rejected),
            Outcome::Unexpected => return Ok(HomeReaction::NoRow),
        };
        let mut context = SystemHomeContext {
            system_state: self,
            system,
            line,
            acts: acts.into_iter(),
            sender: trigger.sender.map(|sender| sender as u8),
            consumed_store: ticket.map(ConsumedStore::new),
            deferred: None,
        };
        agent::home(&system.facts, input, &mut context)?;
        if context
            .consumed_store
            .is_some_and(ConsumedStore::loses_store)
        {
            return Err(lost_store(system));
        }
        self.line(line).home = next;
        self.copy_home_registers(system, line);
        Ok(HomeReaction::Taken)
    }
}

/// Reaction of a home to an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HomeReaction {
    /// A row has taken the event.
    Taken,
    /// The event stalls.
    Stalled,
    /// The home rejects the event.
    Rejected,
    /// No row applies, or the row is `unreachable`.
    NoRow,
}

/// Violation: a posted store is lost.
pub(super) fn lost_store(system: &System) -> StepError {
    Violation::new(agent::stores(&system.facts), stores::POSTED_STORE_DROPPED).into()
}

/// Input of an event that is no message.
fn empty_input<'t, Copy>() -> HomeInput<'t, Copy> {
    HomeInput {
        message: None,
        carried_copy: None,
    }
}
