//! The simulator: time and real data for machines whose caches and homes execute checked controllers.
//!
//! An event kernel ([`kernel`]) drives cores as traffic, caches, links, a home of many serial units and its memory
//! ([`components`], [`agents`]). Caches and homes know no protocol: they execute the controllers of a protocol file
//! through [`agents::program`]. Lines carry bytes ([`data`]), and an oracle ([`oracle`]) compares every load with the
//! last write. Equal setups and seeds give equal results.
//!
//! The crate does not know `check` or `engine`, any protocol by name, files or terminals.
//!
//! ```
//! use cohkit_protocol::{controller::Access, text};
//! use cohkit_sim::components::traffic::{Pattern, Workload};
//! use cohkit_sim::platform::Platform;
//! use cohkit_sim::simulation::{run, Setup};
//!
//! let text = "
//! protocol vi
//! line 64 bytes
//! channels { request remote -> home; victim remote -> home; answer remote -> home
//!            forward home -> remote; grant home -> remote; ordered forward, grant; ordered request, victim }
//! messages { request: Get; victim: Put (line, dirty); answer: Gone (line, dirty), Nothing
//!            forward: Fetch; grant: Data (line) }
//! remote cache {
//!   states { I; V reads writes dirty; IV waits Data }
//!   I    | load store | send Get     | IV
//!   V    | evict      | send Put     | I
//!   IV   | Data       |              | V
//!   V    | Fetch      | send Gone    | I
//!   I IV | Fetch      | send Nothing | stay
//! }
//! home { on Get(r) { ensure others(r) == I; grant r V with Data }
//!        reach I with Fetch }
//! system one { remotes 1; lines 1 }
//! ";
//! let protocol = text::parse(text).expect("the text is right");
//! let workload = Workload::pass(Pattern::Sequential, Access::Load, 100, 1, 4);
//! let setup = Setup::new(protocol, Platform::torture(1), workload).expect("there is a home");
//! let statistics = run(&setup).expect("the protocol holds");
//! assert_eq!(statistics.sent("Get"), Some(100));
//! assert_eq!(statistics.sent("Put"), Some(100 - 4)); // four lines are still in the cache
//! ```

/// The application of the guide compiles and runs as printed.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/applications.md")]
struct Guide;

pub mod agents;
pub mod attribution;
pub mod bouncing;
pub mod combined_scenario;
pub mod components;
pub mod data;
pub mod explain;
pub mod kernel;
pub mod levels;
pub mod message;
pub mod oracle;
pub mod platform;
pub mod rate_sampler;
pub mod scenario;
pub mod simulation;
pub mod spaces;
pub mod statistics;
mod timeline;
