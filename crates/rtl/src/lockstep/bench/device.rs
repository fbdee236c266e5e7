//! The device: it starts local operations, uses the lines that it has locked, and checks the home's answers.

use super::context::Context;
use super::error::{line_failure, Checked};
use super::line::{Answer, DEVICE};
use super::port_events::PortEvent;
use super::units::Units;
use crate::lockstep::model::{Inputs, SLICES};
use crate::lockstep::words::{LocalRequest, LocalResponse};
use cohkit_base::sequence::Action;
use cohkit_protocol::protocol::Permission;
use std::collections::VecDeque;

/// Maximum number of random local operations of a line that the home has not consumed.
const MAX_LINE_REQUESTS: usize = 3;
/// Maximum number of random local operations that wait at the port of a slice.
const MAX_SLICE_REQUESTS: usize = 4;

/// Ports of a slice for the device.
#[derive(Default)]
struct DevicePorts {
    /// Local operations that the home has not accepted, each as line and operation.
    requests: VecDeque<(usize, u8)>,
    /// True while a request is offered to the home, which must not be withdrawn.
    request_valid: bool,
    /// Lines of the unlocks that the home has not accepted.
    unlocks: VecDeque<usize>,
    /// True while an unlock is offered to the home, which must not be withdrawn.
    unlock_valid: bool,
}

/// A flag for each port of a slice for requests of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DevicePortFlags {
    /// Flag of the port for local operations.
    pub request: bool,
    /// Flag of the port for unlocks.
    pub unlock: bool,
}

/// The device, with its ports of both slices.
#[derive(Default)]
pub(super) struct Device {
    /// Ports of each slice.
    slices: [DevicePorts; SLICES],
}

impl Device {
    /// True if no request or unlock waits at a slice.
    pub fn is_idle(&self, slice: usize) -> bool {
        let ports = &self.slices[slice];
        ports.requests.is_empty() && ports.unlocks.is_empty()
    }

    /// True if a slice is offered a request.
    pub fn has_request(&self, slice: usize) -> bool {
        self.slices[slice].request_valid
    }

    /// True if a slice is offered an unlock.
    pub fn has_unlock(&self, slice: usize) -> bool {
        self.slices[slice].unlock_valid
    }

    /// Requests a local operation of a line, given by its index in the controller's `locals`.
    pub fn request(&mut self, context: &mut Context, line_index: usize, operation: u8) {
        let slice = context.slice(line_index);
        (context.lines[line_index].queued_locals).push_back(operation);
        (self.slices[slice].requests).push_back((line_index, operation));
    }

    /// Releases a line's lock.
    pub fn unlock(&mut self, context: &mut Context, line_index: usize) {
        context.lines[line_index].unlocks += 1;
        let slice = context.slice(line_index);
        self.slices[slice].unlocks.push_back(line_index);
    }

    /// Starts random operations, and uses and releases locked lines.
    pub fn start_operations(&mut self, context: &mut Context, starts_accesses: bool) -> Checked {
        let reference = context.reference.clone();
        let locals = reference.home.locals.len() as u64;
        let line_index = context.random_line();
        let slice = context.slice(line_index);
        let may_start = starts_accesses
            && context.random.below(16) < context.run.operation_rate
            && !context.lines[line_index].steering.is_directed;
        if may_start && locals > 0 {
            // In one of eight attempts, the device releases a lock that it may not hold, if the protocol has locks.
            let has_locks = reference.rom.locking.contains(&true);
            let line = &context.lines[line_index];
            if has_locks && context.random.below(8) == 0 && line.unlocks == 0 {
                self.unlock(context, line_index);
            } else if line.queued_locals.len() < MAX_LINE_REQUESTS
                && self.slices[slice].requests.len() < MAX_SLICE_REQUESTS
            {
                let operation = context.random.below(locals) as u8;
                self.request(context, line_index, operation);
            }
        }
        // The device uses and releases the lines that it has locked; at the end of the run, all of them at once.
        let first_line = context.random_line();
        let used_lines = match starts_accesses {
            true => first_line..first_line + 1,
            false => 0..context.lines.len(),
        };
        for line_index in used_lines {
            self.use_locked_line(context, line_index)?;
        }
        Ok(())
    }

    /// Uses and releases a line, if the device knows that it has locked it.
    fn use_locked_line(&mut self, context: &mut Context, line_index: usize) -> Checked {
        let permission = context.permission(line_index);
        let line = &mut context.lines[line_index];
        let Some(lock_limit) = line.lock_permission.filter(|_| {
            line.lock_reported && line.unlocks == 0 && !line.steering.is_holding_messages
        }) else {
            return Ok(());
        };
        if !line.is_current(&line.memory, context.reference.words) {
            return line_failure(
                line_index,
                format!(
                    "the device reads stale data of line {} under its lock",
                    line.number
                ),
            );
        }
        if permission > lock_limit {
            return line_failure(
                line_index,
                format!(
                    "the remote has the permission {permission:?} to line {} under the device's lock",
                    line.number
                ),
            );
        }
        // The device may write if the remote has no read permission.
        let has_memory = context.reference.shape.endpoint.has_memory();
        if lock_limit == Permission::None && !has_memory && context.random.below(2) == 0 {
            line.memory = context.random.bytes();
            line.latest = line.memory;
        }
        self.unlock(context, line_index);
        Ok(())
    }

    /// Drives the pins of a slice, except at ports with illegal traffic. `command` is a command to the invalidation
    /// engine, which replaces requests.
    pub fn drive(
        &mut self,
        context: &mut Context,
        inputs: &mut Inputs,
        slice: usize,
        has_illegal: DevicePortFlags,
        command: Option<u64>,
    ) {
        let ports = &mut self.slices[slice];
        ports.request_valid = !ports.requests.is_empty()
            && !has_illegal.request
            && (ports.request_valid || context.random_ready() != 0);
        inputs.local_req_valid[slice] = u64::from(ports.request_valid);
        if let Some(&(line_index, operation)) = ports.requests.front() {
            let line = context.lines[line_index].number;
            inputs.local_req[slice] = LocalRequest { operation, line }.encode();
        }
        if let Some(command) = command {
            inputs.local_req_valid[slice] = 1;
            inputs.local_req[slice] = command;
        }
        ports.unlock_valid = !ports.unlocks.is_empty()
            && !has_illegal.unlock
            && (ports.unlock_valid || context.random_ready() != 0);
        inputs.unlock_valid[slice] = u64::from(ports.unlock_valid);
        if let Some(&line_index) = ports.unlocks.front() {
            inputs.unlock_line[slice] = context.lines[line_index].number;
        }
        inputs.local_rsp_ready[slice] = context.random_ready();
    }

    /// Records that the home has accepted the first request of a slice.
    pub fn accept_request(&mut self, context: &mut Context, slice: usize) {
        let ports = &mut self.slices[slice];
        if let Some((line_index, _)) = ports.requests.pop_front() {
            context.record_port_event(PortEvent::LocalRequest(line_index));
        }
        ports.request_valid = false;
    }

    /// Records that the home has accepted the first unlock of a slice.
    pub fn accept_unlock(&mut self, slice: usize) {
        let ports = &mut self.slices[slice];
        ports.unlocks.pop_front();
        ports.unlock_valid = false;
    }
}

/// Checks a response of the home to the device ([`LocalResponse`]) against the answers that the controller has sent.
pub(super) fn check_answer(context: &mut Context, units: &mut Units, word: u64) -> Checked {
    let locals = &context.reference.clone().home.locals;
    context.record_operation_end();
    let response = LocalResponse::decode(word);
    let line_index = context.line_of(response.line, "an answer to the device")?;
    let answer = Answer {
        unlock: response.unlock,
        refused: response.refused,
        // The operation of the response to an unlock has no meaning.
        operation: if response.unlock {
            0
        } else {
            response.operation
        },
    };
    let line = &mut context.lines[line_index];
    let Some(position) = line.answers.iter().position(|&expected| expected == answer) else {
        return line_failure(
            line_index,
            format!(
                "the device receives {answer:?} of line {}; the controller said {:?}",
                line.number, line.answers
            ),
        );
    };
    line.answers.remove(position);
    if answer.unlock {
        line.unlocks -= 1;
    } else if !answer.refused && locals[usize::from(answer.operation)].locks {
        line.lock_reported = line.lock_permission.is_some();
    }
    if !answer.unlock {
        units.free_local(context, line_index);
    }
    context.record_port_event(PortEvent::LocalResponse(line_index));
    context.report.answers += 1;
    let what = match (answer.unlock, answer.refused) {
        (true, false) => "is unlocked".to_string(),
        (true, true) => "is refused its unlock".to_string(),
        (false, refused) => {
            let name = &locals[usize::from(answer.operation)].name;
            format!(
                "{} {name}",
                if refused { "is refused" } else { "is told of" }
            )
        }
    };
    context.record_action(line_index, DEVICE, Action::Does { what });
    Ok(())
}
