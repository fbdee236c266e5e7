//! Memory events of an execution, with their dependencies.

use crate::program::{Acquire, Location};

/// Kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Read of a location.
    Read,
    /// Write of a location.
    Write,
}

/// A memory event. An atomic access has two, its read directly before its write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Number of the thread.
    pub thread: usize,
    /// Index of the instruction in the thread.
    pub instruction_index: usize,
    /// Read or write.
    pub kind: Kind,
    /// Location accessed.
    pub at: Location,
    /// Value read or written.
    pub value: i64,
    /// Acquire ordering.
    pub acquire: Acquire,
    /// True if ordered after all earlier events of the thread.
    pub release: bool,
    /// True for events of an atomic access.
    pub atomic: bool,
    /// True for events of a load-reserved or store-conditional instruction.
    pub exclusive: bool,
    /// True unless the event is the read of an atomic access that returns no value.
    pub returns: bool,
    /// True for events of an atomic access that both acquires and releases.
    pub acquire_release: bool,
    /// For a write: number in the thread of the read with which it forms an atomic access, or a pair of load-reserved
    /// and store-conditional.
    pub(super) paired_read: Option<usize>,
    /// Data dependencies: bit set of the earlier reads of the thread, by their numbers in it.
    pub(super) data: u64,
    /// Address dependencies, in the same form.
    pub(super) address: u64,
    /// Events that only selected among values or locations (herd's *pick* dependency), in the same form.
    pub(super) pick: u64,
    /// Control dependencies, in the same form.
    pub(super) control: u64,
    /// Control dependencies, and address dependencies of earlier events, that an instruction-synchronisation fence
    /// (ISB, `fence.i`) follows.
    pub(super) synchronised: u64,
}
