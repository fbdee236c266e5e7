//! Message sequences: output of the construction and the checker, before it is drawn.
//!
//! The chart crate turns a [`Sequence`] into text, SVG and JSON.

use serde::{Deserialize, Serialize};

/// A message sequence among named agents.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Sequence {
    /// Names of the agents, in the order of their lifelines.
    pub agents: Vec<String>,
    /// Steps in time order.
    pub steps: Vec<Step>,
}

/// Name of an agent's lifeline. If the name is reserved for a role other than the agent's, the agent's
/// role follows in parentheses.
///
/// ```
/// use cohkit_base::sequence::lifeline;
///
/// assert_eq!(lifeline("directory", "home"), "directory");
/// assert_eq!(lifeline("memory", "home"), "memory (home)");
/// ```
pub fn lifeline(name: &str, role: &str) -> String {
    match name {
        "memory" | "device" | "home" if name != role => format!("{name} ({role})"),
        _ => name.to_string(),
    }
}

/// Names of the lifelines of `count` homes: a single one as in [`lifeline`], several with their numbers.
///
/// ```
/// use cohkit_base::sequence::homes;
///
/// assert_eq!(homes("directory", 1), ["directory"]);
/// assert_eq!(homes("directory", 2), ["directory 0", "directory 1"]);
/// ```
pub fn homes(name: &str, count: u16) -> Vec<String> {
    let home = lifeline(name, "home");
    match count {
        1 => vec![home],
        _ => (0..count)
            .map(|number| format!("{home} {number}"))
            .collect(),
    }
}

/// One step of a sequence.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Step {
    /// Index of the acting agent in [`Sequence::agents`].
    pub agent: usize,
    /// Action of the agent.
    pub action: Action,
    /// Cache line, if the system has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// False for steps that the home cannot observe; they are drawn with a dot.
    pub visible: bool,
}

/// Action of an agent in one step.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Action {
    /// Sends a message into its channel.
    Send {
        /// Name with any field values: `Data(acks=1)`.
        message: String,
        /// Index of the receiver.
        to: usize,
        /// Number that identifies the message; its receiving step has the same.
        flight: u32,
    },
    /// Receives a message from its channel.
    Receive {
        /// Message, as in the sending step.
        message: String,
        /// Index of the sender.
        from: usize,
        /// Number of the message, as in the sending step.
        flight: u32,
    },
    /// A local action: an access, a memory operation, or a local operation.
    Does {
        /// Description in the words of the protocol file: `load`, `memory is read`, `clean acknowledged`.
        what: String,
    },
    /// Enters another state.
    Becomes {
        /// State name, and any variables shown: `M`, `S{n=2}`.
        state: String,
    },
}
