//! The device behind the home as traffic: local operations on random lines, and locks held for a while.

use cohkit_protocol::protocol::Permission;

use crate::data::Random;
use crate::kernel::Time;
use crate::message::{Line, Work};
use crate::simulation::{Context, Event, Locks, MainMemory};

/// Workload of the device.
#[derive(Clone, Debug, Default)]
pub struct DeviceWorkload {
    /// Total number of local operations. Homes without local operations execute none.
    pub operations: u64,
    /// Number of lines that operations are drawn from, from line 0 on.
    pub lines: Line,
    /// Maximum time between two operations, and maximum time for which a lock is held, in picoseconds.
    /// Both are drawn uniformly.
    pub pause: Time,
    /// Seed of the random choices.
    pub seed: u64,
}

/// State of the device. It has at most one operation at a time, from the request to the unlock.
pub struct Device {
    /// Parameters of the traffic.
    workload: DeviceWorkload,
    /// Number of operations that have not been issued.
    operations_left: u64,
    /// The outstanding operation.
    pub(crate) current: Option<Operation>,
    /// Source of lines, operations, pauses and values.
    random: Random,
}

/// A local operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    /// Line that the operation concerns.
    pub line: Line,
    /// True if the device holds the line under a lock.
    pub locked: bool,
}

impl Device {
    /// Creates a device that has not started.
    pub fn new(workload: &DeviceWorkload) -> Device {
        Device {
            workload: workload.clone(),
            operations_left: workload.operations,
            current: None,
            random: Random::new(workload.seed),
        }
    }

    /// True if all operations have ended.
    pub fn is_done(&self) -> bool {
        self.operations_left == 0 && self.current.is_none()
    }

    /// Returns the line of the outstanding operation, if any.
    pub fn waiting_line(&self) -> Option<Line> {
        self.current.map(|operation| operation.line)
    }

    /// Issues the next local operation. The caller presents it to the home at once. Returns `None` if
    /// no operation is left, or the home has no local operations.
    pub(crate) fn issue(&mut self, context: &Context) -> Option<(Work, Line)> {
        let locals = context.tables.locals.len() as u64;
        if locals == 0 || self.operations_left == 0 {
            self.operations_left = 0;
            return None;
        }
        self.operations_left -= 1;
        let line = self.random.below(self.workload.lines.max(1).into()) as Line;
        let local = self.random.below(locals) as u8;
        self.current = Some(Operation {
            line,
            locked: false,
        });
        Some((Work::Local(line, local), line))
    }

    /// Ends the outstanding operation, and schedules the next one.
    pub(crate) fn end_operation(&mut self, context: &mut Context) {
        self.current = None;
        context.tally.postpone_watchdog(context.local.now);
        let pause = self.random.below(self.workload.pause + 1);
        context.schedule(context.local.now + pause, Event::Ask);
    }

    /// Handles the refusal of the outstanding operation by the home.
    pub(crate) fn refuse(&mut self, context: &mut Context) {
        context.tally.counters.locals[1] += 1;
        self.end_operation(context);
    }

    /// Uses a line under the lock of the operation that the home has completed.
    pub(crate) fn use_line(&mut self, context: &mut Context, line: Line) {
        self.current = Some(Operation { line, locked: true });
        let lock_duration = self.random.below(self.workload.pause + 1);
        context.schedule(context.local.now + lock_duration, Event::Unlock(line));
    }

    /// Ends the use of a line: reads it, and writes it if the lock permits that.
    pub(crate) fn end_use(&mut self, context: &mut Context, memory: &mut MainMemory, line: Line) {
        context.check_memory(line, memory.copy(line), "is read under the device's lock");
        if context.local.locks.permission(line) == Permission::Write {
            let word = self.random.below(context.contents.data.words().into()) as u16;
            let value = self.random.below(u64::MAX);
            let old_copy = context.contents.data.share(memory.copy(line));
            let (copy, _) = context.write_words(line, old_copy, word..word + 1, value);
            memory.set_copy(&mut context.contents.data, line, copy);
        }
    }

    /// Releases the lock of a line, if the device holds it.
    pub(crate) fn release_lock(&mut self, line: Line, locks: &mut Locks) {
        if let Some(current) = &mut self.current {
            if current.locked && current.line == line {
                current.locked = false;
                locks.unlock(line);
            }
        }
    }
}
