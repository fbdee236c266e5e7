//! Coherent memory systems as hardware: caches, a home and the network between them, for the rows of one protocol.
//!
//! The units `cohkit_*` are written by hand and know no protocol. Printed are the package and the step functions of the
//! agents ([`crate::agents`]), and a flat top that connects the units ([`top()`]). A channel, or the channels of one
//! order, is a queue from each sender to each receiver ([`queues`]).
//!
//! [`check()`] rejects constructs that the units cannot serve. [`mod@build`] builds a system with a test bench:
//! [`lockstep`] compares each step under random traffic with the executor of rows, [`ports`] drives the processor ports
//! by a program, and [`timing`] measures accesses in cycles.

pub mod build;
mod checks;
pub mod directory;
pub mod lockstep;
pub mod operations;
pub mod ports;
pub mod queues;
mod recall;
pub mod sizes;
pub mod timing;
mod top;

pub use checks::check;
pub use top::{file_list, top};
