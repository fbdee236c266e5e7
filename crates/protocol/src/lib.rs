//! The protocol language, the controllers of its agents, and the construction of homes from policies.
//!
//! [`text::parse`] reads a protocol file into a [`protocol::Protocol`], or returns a [`text::Diagnostic`] for every
//! error. A [`controller::Controller`] is the finite table of one kind of agent for one line, and [`execute::Machine`]
//! executes its rows. A home is written as rows, or as a policy, from which [`construct::construct`] makes the
//! controller. [`rows::rows`] prints a controller in the words of the language. A [`composition::Composition`] joins
//! several protocols.
//!
//! The crate does not know how a message travels, what memory holds or when a step happens: `system`, `check`, `sim`
//! and `rtl` give these meanings to the same controllers. It has no files and no terminal either.
//!
//! ```
//! use cohkit_protocol::{construct::construct, rows::rows, text};
//!
//! let file = "
//! protocol vi
//! line 64 bytes
//! channels { request remote -> home; victim remote -> home; answer remote -> home
//!            forward home -> remote; grant home -> remote; ordered forward, grant }
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
//! let protocol = text::parse(file).expect("the file has no errors");
//! assert_eq!(protocol.remote.states.len(), 3);
//!
//! // With a single cache, no copy has to be fetched: the home reads memory and sends the line.
//! let home = construct(&protocol).expect("there is a home").controller(1);
//! let rows = rows(&protocol, &home).rows;
//! assert_eq!((rows[0].event.as_str(), rows[0].actions.join(", ")), ("Get", "read memory".into()));
//! assert_eq!((rows[1].event.as_str(), rows[1].actions.join(", ")), ("memory data", "send Data".into()));
//!
//! let errors = text::parse(&file.replace("send Get ", "send Got ")).unwrap_err();
//! assert_eq!(errors[0].message, "unknown message `Got`");
//! ```

pub mod composition;
pub mod construct;
pub mod controller;
pub mod execute;
pub mod orders;
pub mod pending_access;
pub mod policy;
pub mod protocol;
pub mod remotes;
pub mod rows;
pub mod terms;
pub mod text;
pub mod threads;
pub mod unroll;
pub mod value_text;
