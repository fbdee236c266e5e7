//! Message sequence charts: a [`Sequence`] as text for a terminal, as SVG, and as JSON.
//!
//! A chart has one named lifeline per agent; time runs downwards. A message that is received before any other step is a
//! single arrow. A message that other steps overtake leaves its sender in one row and reaches its receiver in a later
//! one, connected by a line. Steps that the home cannot observe are drawn with a dot.
//!
//! The crate does not know `protocol` or any engine: names and states are plain text. The caller decides whether the
//! terminal supports Unicode.
//!
//! ```
//! use cohkit_chart::{text, Text};
//! use cohkit_base::sequence::{Action, Sequence, Step};
//!
//! let step = |agent, visible, action| Step { agent, action, line: None, visible };
//! let message = || "ReadShared".to_string();
//! let sequence = Sequence {
//!     agents: vec!["cpu".to_string(), "home".to_string()],
//!     steps: vec![
//!         step(0, false, Action::Does { what: "load".to_string() }),
//!         step(0, false, Action::Send { message: message(), to: 1, flight: 0 }),
//!         step(1, true, Action::Receive { message: message(), from: 0, flight: 0 }),
//!     ],
//! };
//! let chart = "
//! cpu             home
//!  │               │
//!  • load          │
//!  •─ ReadShared ─▶│
//!  │               │
//! ";
//! assert_eq!(text(&sequence, &Text::default()), chart.trim_start_matches('\n'));
//! ```

mod layout;
mod svg;
mod text;

use cohkit_base::sequence::Sequence;

pub use svg::svg;
pub use text::{text, Text};

/// Returns the sequence as a JSON object.
///
/// - `agents`: names of the agents, in the order of their lifelines;
/// - `steps`: the steps in time order, each an object with
///   - `agent`: index into `agents` of the acting agent;
///   - `action`: an object whose `kind` is one of
///     - `send` with `message`, `to` (index of the receiver) and `flight`;
///     - `receive` with `message`, `from` (index of the sender) and the `flight` of the sending step;
///     - `does` with `what`, a local action in the words of the protocol file;
///     - `becomes` with `state`;
///   - `line`: number of the cache line; absent if the sequence has only one;
///   - `visible`: true if the home can observe the step.
pub fn json(sequence: &Sequence) -> serde_json::Value {
    serde_json::to_value(sequence).expect("a sequence has only string keys")
}
