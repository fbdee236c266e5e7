//! Lockstep: the Verilated home among the agents that are checked.
//!
//! [`build`] makes the RTL a library, [`model`] loads it, [`bench`] puts it among a remote, a device and a memory that
//! delay, reorder and push back by chance, and compares every step and message with the controllers.
//! [`ways`] tells which rows can be used and how; lines are guided to the rare ones.
//! [`setup`] is what a run is done with. [`shapes`] lists the sizes of homes over which seeds are spread.
//! [`campaign`] does so for many seeds, and with spoilt ROMs to see that it is noticed.
//! [`measure`] has the same agents act in order and on time, and counts cycles.

pub mod bench;
pub mod build;
pub mod campaign;
mod chance;
pub mod changes;
pub mod measure;
pub mod model;
pub mod setup;
pub mod shapes;
pub mod ways;
