//! Race detector for far memory, which is not coherent. It reports loads of stale lines, write-backs over newer data,
//! and lines that both sides write, each with the two program locations.
//!
//! A stale line is an error only if the write happens before the access: a chain of synchronisation leads from the
//! write to the accessing core, by a register, a scratchpad line, a FIFO word, or the end of a program. Each core
//! therefore has a vector clock, its *knowledge*, which synchronisation carries: words, lines, responses held by a
//! lock, notices, stamps, and copies to the host's own memory. Two accesses to a line of far memory, one of them a
//! store, race unless the completion of the first access happens before the second access.
//!
//! The cores of a host share their caches and observe each other. A message from one of them therefore carries the
//! knowledge of all. Several hosts have caches of their own, which are not coherent with each other: a store of one
//! host reaches another one only through far memory.

mod copy_engines;
mod detector;
mod far_memory;
mod host_accesses;
mod knowledge;
mod line_states;
mod race;
mod synchronisation;

pub(crate) use detector::RaceDetector;
pub(crate) use knowledge::SyncChannel;
pub use race::{Race, RaceKind, Site};

#[cfg(test)]
mod tests;
