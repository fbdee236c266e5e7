//! Effects of a controller's rows on channels, memory, locks and accesses, and executable systems without time.
//!
//! [`cohkit_protocol::execute`] evaluates a row: the new state of its agent, and the messages that it sends. This crate
//! defines the effects of the row on the agent's environment, once for all executors:
//!
//! * [`plan`]: static analysis of single rows: whether a row performs a store in place, which access its `done`
//!   completes, whether it abandons a write;
//! * [`agent`]: effects of a row: the bytes of each message, the copy in which a write is performed, the copy that is
//!   kept. Each executor implements [`agent::RemoteContext`] and [`agent::HomeContext`];
//! * [`data`]: abstractions of a line's bytes: all bytes, or one bit that says whether they are those of the last
//!   write;
//! * [`stores`]: stores between a remote and memory: each is performed once, in the program order of its line;
//! * [`hierarchy`]: the rules between a home and the cache of another protocol that holds its memory;
//! * [`ports`]: processor ports of a memory system that is implemented elsewhere, such as in hardware;
//! * [`state`]: the state of a whole system without time, its possible steps and their successors;
//! * [`starvation`]: transactions that never end although all messages are treated fairly.
//!
//! The checker's models are made from the same plans, and tests compare them with [`state::SystemState`] state by
//! state. The crate does not know time, links and their capacity (those of `sim`), or packed states (those of `check`
//! and `engine`).
//!
//! ```
//! use cohkit_protocol::{controller::Access, protocol::Home, text::parse};
//! use cohkit_system::data::Current;
//! use cohkit_system::state::{Step, System, SystemState};
//!
//! let msi = parse(include_str!("../../../protocols/msi.coh")).expect("the file has no errors");
//! let Home::Controller(home) = &msi.home else { panic!("the home is a policy") };
//! let system = System::new(&msi, home, 2, 1, 7); // two caches, one line
//! let possible = |system_state: &SystemState<Current>| -> Vec<Step> {
//!     let steps = system_state.steps(&system).into_iter();
//!     steps.filter(|&step| system_state.clone().take(&system, step) == Ok(true)).collect()
//! };
//! let mut system_state = SystemState::new(&system);
//! assert_eq!(possible(&system_state).len(), 4); // a load or a store of either cache
//!
//! assert_eq!(system_state.take(&system, Step::Access(0, 0, Access::Load)), Ok(true));
//! for _ in ["GetS", "Data"] {
//!     let steps = possible(&system_state);
//!     assert_eq!(steps.len(), 3); // the arrival of the message, and a load or a store of the other cache
//!     let arrival = steps.into_iter().find(|step| matches!(step, Step::Deliver(_))).unwrap();
//!     assert_eq!(system_state.take(&system, arrival), Ok(true));
//! }
//! assert!(system_state.quiescent(&system));
//! let state = system_state.lines[0].remotes[0].configuration.state;
//! assert_eq!(msi.remote.states[usize::from(state)].name, "S");
//! ```

pub mod agent;
pub mod data;
pub mod hierarchy;
pub mod plan;
pub mod ports;
pub mod starvation;
pub mod state;
pub mod stores;
mod violation;
