//! Lockstep: comparison of the Verilated home with the checked controllers.
//!
//! [`build`] compiles the RTL to a library, and [`model`] loads it; [`words`] has the bit layouts at its ports.
//! [`bench`] connects it to a remote, a device and a memory with random delays, reordering and back-pressure, and
//! compares every step and message with the controllers. [`reachability`] finds the rows that can be used and paths to
//! them; lines are directed to the rare ones. [`changes`] is the reference model of the reported permission changes.
//! [`setup`] is the configuration of a run. [`shapes`] lists the parameters of homes over which seeds are distributed.
//! [`campaign`] runs many seeds, and mutated ROMs that must be detected. [`measure`] lets the same agents act without
//! random delays, and counts cycles.

pub mod bench;
pub mod build;
pub mod campaign;
pub mod changes;
pub mod measure;
pub mod model;
mod random;
pub mod reachability;
pub mod setup;
pub mod shapes;
pub mod words;
