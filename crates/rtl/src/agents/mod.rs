//! Step functions of a protocol's agents: combinational SystemVerilog, printed from the rows of their tables.
//!
//! An agent is the home, or one kind of caching agent. Its *step function* maps its state, its variables, an event, the
//! fields of the message and its sender to the next state, the next variables, the sent messages, the operations on
//! data, the completed access, and the effect on the event: taken, stalled or refused. The modules have no clock; units
//! that store lines and queues instantiate them.
//!
//! [`supported_agents`] numbers the agents of a protocol and their values, and rejects constructs without hardware.
//! [`package`] prints the types and constants that the modules share, and [`step`] prints a module.
//!
//! Numbers have the encoding of [`cohkit_protocol::execute::Configuration`]: a remote is its index plus 1, and 0 is
//! `none`.
//!
//! ```
//! use cohkit_protocol::{protocol::Home, text};
//! use cohkit_rtl::agents::{step::step, supported_agents};
//! use cohkit_rtl::print::Origin;
//!
//! let text = include_str!("../../../../protocols/msi.coh");
//! let protocol = text::parse(text).expect("the text is right");
//! let Home::Controller(home) = &protocol.home else { panic!("the home is a policy") };
//! let agents = supported_agents(&protocol, home, 3.into()).expect("every row has hardware");
//! let origin = Origin { file: "msi.coh", text, version: "1.0" };
//! let cache = agents.find("cache").expect("it is a kind of the file");
//! assert!(step(&agents, cache, &origin).contains("msi_cache_IM_AD: unique case (trigger)"));
//! ```

mod checks;
mod expression;
pub mod layout;
pub mod package;
mod statement;
pub mod step;

use crate::rom::Refusal;
pub use checks::check_count;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use layout::Agents;

/// Returns the agents of a protocol. `home` is the table of its home for this number of remotes.
///
/// # Errors
/// The first construct without hardware.
pub fn supported_agents<'a>(
    protocol: &'a Protocol,
    home: &'a Controller,
    remotes: Remotes,
) -> Result<Agents<'a>, Refusal> {
    let agents = Agents::new(protocol, home, remotes);
    checks::check(&agents)?;
    Ok(agents)
}
