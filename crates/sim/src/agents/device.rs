//! The device behind the home as traffic: local operations on random lines, and locks held for a while.

use crate::data::Random;
use crate::kernel::Time;
use crate::message::Line;

/// Workload of the device.
#[derive(Clone, Debug, Default)]
pub struct DeviceWorkload {
    /// Total number of local operations. Homes without local operations execute none.
    pub operations: u64,
    /// Number of lines that operations are drawn from, from line 0 on.
    pub lines: Line,
    /// Maximum time between two operations, and for which a lock is held, in picoseconds.
    pub pause: Time,
    /// Seed of the random choices.
    pub seed: u64,
}

/// State of the device. It has at most one operation at a time, from the request to the unlock.
pub struct Device {
    pub(crate) workload: DeviceWorkload,
    pub(crate) operations_left: u64,
    /// The outstanding operation.
    pub(crate) current: Option<Operation>,
    pub(crate) random: Random,
}

/// A local operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub line: Line,
    pub local: u8,
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
}
