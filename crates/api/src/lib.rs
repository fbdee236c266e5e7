//! Functions of Cohkit that the command and the Python package call.
//!
//! A request names what to do ([`protocol_check::Request`], [`simulation::Request`], [`litmus::LitmusRequest`]). Its
//! result has text for people and JSON for programs, as `docs/output.md` describes. Long-running functions take an
//! `AtomicBool`, and end soon after another thread sets it.
//!
//! The crate does not know its callers: `cohkit`, the command, which parses options and writes to terminals, and
//! `cohkit-python`. So it links neither the command-line parser nor the types of the language server protocol.
//!
//! ```
//! use cohkit_api::controller_table::{tabulate, Agent};
//! use cohkit_api::shipped::PROTOCOLS;
//! use cohkit_api::Source;
//! use std::sync::atomic::AtomicBool;
//!
//! let msi = PROTOCOLS.iter().find(|(file, _)| *file == "protocols/msi.coh");
//! let (file, text) = msi.expect("msi is shipped");
//! let source = Source::parse(file.into(), (*text).to_string()).expect("msi is valid");
//! let table = tabulate(&source, Agent::Remote, false, &AtomicBool::new(false));
//! let table = table.expect("the home is written by hand").expect("not cancelled");
//! assert_eq!(table.json(&source)["states"], 11);
//! ```

pub mod any_number;
pub mod application_run;
pub mod bridge_table;
pub mod checkpoints;
pub mod composition;
mod concurrent_runs;
pub mod controller_table;
pub mod coverage;
pub mod explanation;
pub mod explorer;
pub mod files;
mod folder_lock;
pub mod guarantee;
mod joint_exploration;
pub mod latency_breakdown;
pub mod link_rates;
pub mod litmus;
pub mod model_check;
pub mod named_value;
pub mod outcome;
pub mod protocol_check;
mod sequence_builder;
pub mod shell_word;
pub mod shipped;
pub mod simulation;
pub mod size;
pub mod source;
pub mod start_error;
pub mod starvation;
pub mod verdict;
pub mod workload;

pub use any_number::AnyNumberVerdict;
pub use checkpoints::Checkpoints;
pub use coverage::SystemCoverage;
pub use guarantee::GuaranteeVerdict;
pub use joint_exploration::{JointOptions, JointVerdict};
pub use outcome::{ExitStatus, Failure};
pub use source::{diagnostics_json, platform_errors_json, InputError, Source};
pub use starvation::StarvationVerdict;
pub use verdict::Verdict;
