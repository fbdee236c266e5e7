//! Litmus tests: programs of a few threads, and what they may show.
//!
//! * [`program`]: threads, their instructions, and the condition that a test asks about;
//! * [`herd`]: tests in the format of the herd tools, in AArch64 assembly;
//! * [`cores`]: threads as they run: in order, or with a buffer of stores;
//! * [`models`]: what a program may show under a memory model, by running it on memory that acts at once: sequential
//!   consistency where cores are in order, total store order where they buffer stores;
//! * [`lines`]: single lines of a protocol's caches, and what each leads to, worked out once;
//! * [`run`]: what it shows on a protocol, in every order in which messages arrive and caches give lines up;
//! * [`shapes`]: the classic programs, made from cycles of a few accesses.
//!
//! A location is a line of its own. [`numbered`] is how states are kept.

pub mod cores;
pub mod herd;
pub mod lines;
pub mod models;
pub mod numbered;
pub mod program;
pub mod run;
pub mod shapes;
