//! What the rows of a protocol's controllers do among channels, memory, locks and accesses.
//!
//! [`cohkit_protocol::execute`] says what a row does to its agent and what it sends; what that means around the agent is
//! decided here, once:
//!
//! * [`plan`]: what follows from a row alone: whether it performs a store in place, what its `done` ends, whether it gives
//!   a write up;
//! * [`agent`]: a row being carried out: which bytes each message takes, in which copy a write is performed, what is kept.
//!   Whoever plays a system stands [`agent::Around`] it;
//! * [`data`]: what stands for the bytes of a line: all of them, or only whether they are those of the last write;
//! * [`stores`]: stores between a remote and memory: each is performed once, in the program order of its line;
//! * [`over`]: what lies between a home and the cache of another protocol that it stands over;
//! * [`world`]: a whole system without time, which can be asked what may happen next and told to do it;
//! * [`numbered`]: how those who explore worlds keep what they have met.
//!
//! The checker's models are made from the same plans, and are compared with [`world::World`] state by state.
//! Not here: time, links and their capacity (the simulator's), packed states and symmetry (the checker's).

pub mod agent;
pub mod data;
pub mod numbered;
pub mod over;
pub mod plan;
pub mod stores;
mod violation;
pub mod world;
