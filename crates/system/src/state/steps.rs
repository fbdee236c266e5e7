//! Possible steps of a state, and their successors.

mod accesses;
mod candidates;
mod contexts;
mod home_events;
mod messages;
mod network_capacity;
mod row_owner;
mod rows;
mod store_checks;

use cohkit_protocol::controller::{Access, Event};
use cohkit_protocol::protocol::Permission;

use super::network::{Arrival, Order};
use super::{Line, Operation, StepError, System, SystemState};
use crate::data::Data;
use network_capacity::blocked_without_capacity;

/// A step. The first number is a line, where no other is named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A remote starts an access: line, remote, access.
    Access(u8, u8, Access),
    /// A store that needs no row is performed in a remote's copy: line, remote.
    Hit(u8, u8),
    /// A message arrives.
    Deliver(Arrival),
    /// A message arrives, and its row chooses a member of a set: the one with this index, in ascending order from 0.
    /// Index 0 is that of [`Step::Deliver`].
    DeliverChoosing(Arrival, u8),
    /// The first message of an order becomes the head of the input queue of its network, and stalls there.
    StallAtHead(Order),
    /// Memory performs the operation in progress for a line.
    MemoryOperation(u8),
    /// The home consumes the data of a memory read: line, and the number of the grant alternative, from 0.
    MemoryData(u8, u8),
    /// The home consumes the completion of a memory write to a line.
    MemoryDone(u8),
    /// The device requests a local operation: line, and an index into the home's local operations.
    RequestLocal(u8, u8),
    /// The home consumes the requested local operation of a line.
    Local(u8),
    /// The home consumes an unlock of a line.
    Unlock(u8),
    /// The device writes a line that it has locked.
    DeviceWrite(u8),
    /// The backing permission of a line rises to this.
    RaiseBacking(u8, Permission),
    /// The backing permission of a line falls to this.
    LowerBacking(u8, Permission),
    /// Others write a line without backing permission.
    ExternalWrite(u8),
}

impl Step {
    /// True if progress must not depend on the step.
    pub fn spontaneous(self) -> bool {
        matches!(
            self,
            Step::Access(..)
                | Step::Hit(..)
                | Step::RequestLocal(..)
                | Step::DeviceWrite(_)
                | Step::LowerBacking(..)
                | Step::ExternalWrite(_)
        )
    }
}

/// A completed access of a remote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompletedAccess<D: Data> {
    /// Number of the line.
    pub line: u8,
    /// Number of the remote.
    pub remote: u8,
    /// The copy before the access: the value of a read, and the old value of a write. `None` if the home has performed
    /// the access, or it has no value.
    pub old_copy: Option<D::Copy>,
}

impl<D: Data> SystemState<D> {
    /// Applies a step. Returns false if the step is blocked or a no-op; `self` is then unspecified.
    ///
    /// # Errors
    /// The step violates a property or exceeds a capacity.
    pub fn take(&mut self, system: &System, step: Step) -> Result<bool, StepError> {
        self.take_recording(system, step, &mut Vec::new())
    }

    /// Applies a step like [`SystemState::take`], and appends the accesses that it completes to `completed`.
    ///
    /// # Errors
    /// The step violates a property or exceeds a capacity.
    pub fn take_recording(
        &mut self,
        system: &System,
        step: Step,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        let count_before = completed.len();
        let result = blocked_without_capacity(self.apply_step(system, step, completed));
        if result == Ok(false) {
            completed.truncate(count_before);
        }
        result
    }

    /// Applies a step like [`SystemState::take_recording`]; a row whose messages exceed the capacity of a network is an
    /// error here.
    fn apply_step(
        &mut self,
        system: &System,
        step: Step,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        match step {
            Step::Access(line, remote, access) => {
                let value = D::Write::default();
                self.access(system, line, remote, access, value, completed)
            }
            Step::Hit(line, remote) => self.hit(system, line, remote),
            Step::Deliver(arrival) => self.receive(system, arrival, 0, completed),
            Step::DeliverChoosing(arrival, choice) => {
                self.receive(system, arrival, choice.into(), completed)
            }
            Step::StallAtHead(order) => {
                let arrival = Arrival::Ordered(order);
                let mut successor = self.clone();
                // A message that can be consumed, or violates a property, stalls nothing.
                if blocked_without_capacity(successor.receive(system, arrival, 0, &mut Vec::new()))
                    != Ok(false)
                {
                    return Ok(false);
                }
                self.network.block(order);
                Ok(true)
            }
            Step::MemoryOperation(line) => self.perform_memory_operation(system, line),
            Step::MemoryData(line, choice) => self.consume_read_data(system, line, choice),
            Step::MemoryDone(line) => {
                self.line(line).operation = Operation::Idle;
                self.apply_required_event(system, line, Event::MemoryDone, None)
            }
            Step::RequestLocal(line, local) => {
                self.line(line).requested = Some(local);
                Ok(true)
            }
            Step::Local(line) => self.consume_local_operation(system, line),
            Step::Unlock(line) => self.unlock(system, line),
            Step::DeviceWrite(line) => Ok(self.device_writes(system, line)),
            Step::RaiseBacking(line, permission) | Step::LowerBacking(line, permission) => {
                self.set_backing_permission(system, line, permission);
                Ok(true)
            }
            Step::ExternalWrite(line) => Ok(self.record_external_write(system, line)),
        }
    }

    /// State of a line, to be changed. It is cloned if another state shares it.
    pub(super) fn line(&mut self, line: u8) -> &mut Line<D> {
        &mut self.lines[usize::from(line)]
    }
}
