//! Lockstep: a system in Verilator under random traffic, compared with the executor of rows.
//!
//! The test bench of `hardware/coherent/bench` drives the processor ports and memory, delays and reorders messages, and
//! prints a record of each step. [`records`] reads them. [`model`] executes the same steps with the rows of the
//! protocol, in the order in which the hardware executed them, and compares state, variables, messages, data,
//! completions and operations of memory. [`run`] builds the program and runs seeds.

pub mod model;
pub mod records;
pub mod run;
