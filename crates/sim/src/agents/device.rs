//! The device behind the home as traffic: local operations at random lines, locks held for a while.

use crate::data::Random;
use crate::kernel::Time;
use crate::message::Line;

/// What the device does.
#[derive(Clone, Debug, Default)]
pub struct DeviceWorkload {
    /// Local operations in total; 0 for none. Homes without local operations do none.
    pub operations: u64,
    /// The lines they are drawn from, from line 0.
    pub lines: Line,
    /// Time between two operations, and for which a lock is held: at most this, picoseconds.
    pub pause: Time,
    /// Seed of what is drawn.
    pub seed: u64,
}

/// The state of the device: at most one operation at a time, from asking to unlocking.
pub struct Device {
    pub(crate) workload: DeviceWorkload,
    pub(crate) left: u64,
    /// The operation that is not ended.
    pub(crate) current: Option<Operation>,
    pub(crate) random: Random,
}

/// One local operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub line: Line,
    pub local: u8,
    /// Whether the device holds the line under a lock.
    pub locked: bool,
}

impl Device {
    /// A device that has not begun.
    pub fn new(workload: &DeviceWorkload) -> Device {
        Device {
            workload: workload.clone(),
            left: workload.operations,
            current: None,
            random: Random::new(workload.seed),
        }
    }

    /// Whether all operations have ended.
    pub fn done(&self) -> bool {
        self.left == 0 && self.current.is_none()
    }

    /// The line of the operation that is not ended.
    pub fn waiting_line(&self) -> Option<Line> {
        self.current.map(|operation| operation.line)
    }
}
