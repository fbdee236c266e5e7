//! State of the device behind the home, if the home has local operations. With backing permission, the outer level
//! takes its place.

use cohkit_engine::build::assert;
use cohkit_engine::model::{Expr, Stmt, TypeId, VariableId, Violation};
use cohkit_protocol::controller::{Controller, Local};

use super::frame::Frame;

/// States of the device's lock, as indices into `LABELS`.
pub(super) mod lock {
    /// The line is not locked.
    pub const NONE: u32 = 0;
    /// The device may read.
    pub const READ: u32 = 1;
    /// The device may read and write.
    pub const WRITE: u32 = 2;
    /// The home has consumed the unlock and not yet acknowledged it.
    pub const UNLOCKING: u32 = 3;
    /// Labels of the enumeration, in the order of the constants.
    pub const LABELS: [&str; 4] = ["unlocked", "reading", "writing", "given_back"];
}

/// The device behind the home.
pub(super) struct Device<'p> {
    /// Local operations of the home.
    pub locals: &'p [Local],
    /// Requested operation, per line: 0, or its index plus 1.
    pub requested: VariableId,
    /// Operation accepted and not yet acknowledged, per line: 0, or its index plus 1.
    pub accepted: VariableId,
    /// Enumeration of the states in [`lock`].
    locks: TypeId,
    /// State of the lock, per line.
    lock: VariableId,
    /// Lifeline of the device, or of the outer level in its place.
    pub agent: i32,
}

impl<'p> Device<'p> {
    /// Declares the device, if the home has local operations.
    pub fn new(frame: &Frame, home: &'p Controller) -> Option<Device<'p>> {
        let (scope, line_type) = (&frame.scope, frame.line_type);
        if home.locals.is_empty() {
            return None;
        }
        let operations = scope.range("operation", 0, home.locals.len() as i32);
        let per_line = scope.array("operation", line_type, operations);
        let requested = scope.state("device_requested", per_line);
        let accepted = scope.state("device_accepted", per_line);
        let locks = scope.enumeration("lock", lock::LABELS);
        let per_line = scope.array("lock", line_type, locks);
        Some(Device {
            locals: &home.locals,
            requested,
            accepted,
            locks,
            lock: scope.state("device_lock", per_line),
            agent: scope.agent(match frame.options.parent_any {
                true => "outer_level",
                false => "device",
            }),
        })
    }

    /// True if some operation locks its line.
    pub fn can_lock(&self) -> bool {
        self.locals.iter().any(|local| local.locks)
    }

    /// Returns the condition that a line's lock has this state, one of [`lock`].
    pub fn is_lock(&self, line: &Expr, state: u32) -> Expr {
        self.lock.at(line).is(self.locks.nth(state))
    }

    /// Changes the state of a line's lock to one of [`lock`].
    pub fn set_lock(&self, line: &Expr, state: u32) -> Stmt {
        self.lock.at(line).set(self.locks.nth(state))
    }

    /// True if the device holds a lock of any level.
    pub fn holds_lock(&self, line: &Expr) -> Expr {
        self.is_lock(line, lock::READ)
            .or(self.is_lock(line, lock::WRITE))
    }

    /// True if a line has a lock, or had one whose unlock is not acknowledged yet.
    pub fn is_locked(&self, line: &Expr) -> Expr {
        self.lock.at(line).is_not(self.locks.nth(lock::NONE))
    }

    /// Asserts that the device's lock has none of these states of [`lock`]. `message` describes the violation of
    /// *single writer*. `None` if the device cannot lock lines.
    pub fn assert_unlocked(&self, line: &Expr, levels: &[u32], message: &str) -> Option<Stmt> {
        if !self.can_lock() {
            return None;
        }
        let is_locked = levels.iter().map(|&level| self.is_lock(line, level));
        let is_locked = Expr::disjunction(is_locked.collect::<Vec<_>>());
        Some(assert(Violation::new("single writer", message), !is_locked))
    }
}
