//! Interface of device applications and of CPU threads: the events they receive and the actions they take.
//!
//! Both are state machines without a clock: an event arrives, the state changes, actions leave.
//! The driver (the simulator, the checker, a test) supplies time, data and the protocol.

mod application;
mod scenario;
mod thread;

pub use application::{Action, Actions, Application, Event, Placement};
pub use scenario::{Contents, Scenario, Table};
pub use thread::{Step, Thread};

use cohkit_protocol::protocol::Permission;

/// Index of a line homed at the device: its address divided by the bytes of a line.
pub type Line = u32;

/// A duration in picoseconds.
pub type Time = u64;

/// The 64-bit words of a line, in address order.
pub type Words = Box<[u64]>;

/// Cache maintenance operation that an application requests from the home for the CPU's copies of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operation {
    /// Writes the CPU's modifications back to memory. The CPU may keep a read-only copy.
    Clean,
    /// Writes the CPU's modifications back to memory and invalidates the CPU's copy.
    CleanInvalidate,
}

impl Operation {
    /// Returns the highest permission that the CPU retains once the operation is complete.
    pub fn leaves(self) -> Permission {
        match self {
            Operation::Clean => Permission::Read,
            Operation::CleanInvalidate => Permission::None,
        }
    }

    /// Returns the operation's name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Clean => "clean",
            Operation::CleanInvalidate => "clean-invalidate",
        }
    }
}

/// A page fault: an access that the page table does not permit and that was not performed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PageFault {
    /// True for a write access.
    pub write: bool,
    /// Permission that the page table grants: `Permission::None` if the page is not mapped.
    pub permits: Permission,
}

impl std::fmt::Display for PageFault {
    /// Formats the predicate of a sentence; the caller prepends the initiator of the access as the subject.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match (self.write, self.permits) {
            (true, Permission::None) => "cannot write: the page is not mapped",
            (true, _) => "cannot write: the page is read-only",
            (false, _) => "cannot read: the page is not mapped",
        })
    }
}

/// An atomic read-modify-write of a word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Update {
    /// Adds the operand, wrapping on overflow.
    Add(u64),
    /// Replaces the word by `new` if it equals `old`.
    CompareSwap {
        /// Expected value.
        old: u64,
        /// Replacement value.
        new: u64,
    },
    /// Replaces the word unconditionally.
    Swap(u64),
}

impl Update {
    /// Returns the new value of a word that held `word`.
    pub fn apply(self, word: u64) -> u64 {
        match self {
            Update::Add(by) => word.wrapping_add(by),
            Update::CompareSwap { old, new } if word == old => new,
            Update::CompareSwap { .. } => word,
            Update::Swap(new) => new,
        }
    }
}
