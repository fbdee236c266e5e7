//! Environment of the home in a run: the remote, circuits that delay and reorder messages, the device, and memory.
//!
//! Remote and home follow the controllers that are checked. The RTL reports each step of its units, and the home's
//! controller executes the same step. All later outputs of the RTL must match the messages that the controller sent,
//! with the correct bytes. A false report is detected: a step on an absent event, or a message that no step has sent,
//! is a mismatch.
//!
//! ## Parts
//!
//! Each part uses only those above it in this list:
//!
//! - `run` (parameters and report), `reference` (the controllers), `line` (reference state of a line), and `context`,
//!   which all others share: time, random numbers, lines and report;
//! - components that own their state: `units` (resources), the `link` between remote and home, the ports of each slice
//!   (`link_ports`, `memory_ports`), the `device`, the `endpoint`, `illegal_traffic`, and the expected `counts`;
//! - `remote` and `home` execute rows of the controllers;
//! - `environment` joins the agents around the home, and `directed` steers lines to rare rows;
//! - `testbench` drives the RTL and checks its outputs, cycle by cycle;
//! - runs on a testbench: `random_run`, with the check of `registers` at its end; `traffic` for measurements,
//!   `application`, `endpoint_runs`.

mod application;
mod context;
mod counts;
mod device;
mod directed;
mod endpoint;
mod endpoint_runs;
mod environment;
mod error;
mod home;
mod illegal_traffic;
mod line;
mod link;
mod link_ports;
mod memory_ports;
mod port_events;
mod random_run;
mod reference;
mod registers;
mod remote;
mod run;
mod stalls;
mod testbench;
mod traffic;
mod units;

pub(super) use application::play_control_lines;
pub use application::{DelayedResponse, LINES};
pub(super) use endpoint_runs::{call_procedure, invalidate_range};
pub(super) use error::BenchError;
pub use port_events::{Crossing, PortEvent, Ports};
pub use run::{Pattern, Report, Run};
pub(super) use testbench::Bench;
pub(super) use traffic::{run_read_burst, run_single_operation, run_traffic};
pub use traffic::{LineOperation, Rate, Traffic};
