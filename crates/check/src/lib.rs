//! Lowering of protocol systems to finite models, and checks beyond a model's own properties.
//!
//! - [`system`] makes models of controllers: [`system::model`] composes remotes, a home, channels, memory and a device.
//!   `cohkit_system` plans the effects of every row, and this crate lowers them to an engine's [`Model`];
//! - [`progress`] checks, on models of its own, that accesses and operations can be performed.
//!
//! The crate does not know how a model is searched, and it knows neither `murphi` nor `sim`: `cohkit_engine` searches,
//! and the caller reads the files.
//!
//! ```
//! use cohkit_check::system::{model, Options};
//! use cohkit_engine::{check, Options as Search, Outcome};
//! use cohkit_protocol::{protocol::Home, text::parse};
//!
//! let outcome = |text: &str| {
//!     let protocol = parse(text).expect("the file has no errors");
//!     let Home::Controller(home) = &protocol.home else { panic!("the home is a policy") };
//!     let model = model(&protocol, home, 2, 1, &Options::default()).expect("the model is sound");
//!     check(&model, &Search::default()).expect("the search runs").outcome
//! };
//! let msi = include_str!("../../../protocols/msi.coh");
//! assert_eq!(outcome(msi), Outcome::Verified);
//!
//! // A cache that acknowledges an invalidation and keeps its copy.
//! let row = "| send InvAck to requestor                       | I\n";
//! let broken = msi.replace(row, "| send InvAck to requestor | stay\n");
//! let Outcome::Violated { property, .. } = outcome(&broken) else { panic!("no violation") };
//! assert_eq!(property.to_string(), "single writer");
//! ```
//!
//! [`Model`]: cohkit_engine::model::Model

pub mod progress;
pub mod system;
