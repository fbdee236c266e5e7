//! Effects of a controller's rows on channels, memory, locks and accesses, and executable systems without time.
//!
//! [`cohkit_protocol::execute`] evaluates a row: the new state of its agent, and the messages that it sends. This crate
//! defines the effects of the row on the agent's environment, once for all executors:
//!
//! * [`plan`]: static analysis of single rows: whether a row performs a store in place, which access its `done`
//!   completes, whether it abandons a write;
//! * [`agent`]: effects of a row: the bytes of each message, the copy in which a write is performed, the copy that is
//!   kept. Each executor implements [`agent::RemoteContext`];
//! * [`data`]: abstractions of a line's bytes: all bytes, or one bit that says whether they are those of the last
//!   write;
//! * [`stores`]: stores between a remote and memory: each is performed once, in the program order of its line;
//! * [`over`]: the rules between a home and the cache of another protocol that holds its memory;
//! * [`world`]: the state of a whole system without time, its possible steps and their successors;
//! * [`numbered`]: interners for explored states.
//!
//! The checker's models are made from the same plans, and tests compare them with [`world::World`] state by state.
//! Outside this crate: time, links and their capacity (the simulator's), packed states (the checker's).

pub mod agent;
pub mod data;
pub mod hierarchy;
pub mod interner;
pub mod plan;
pub mod stores;
mod violation;
pub mod world;
