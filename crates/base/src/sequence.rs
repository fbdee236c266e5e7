//! Message sequences: what the construction and the checker have to tell, before it is drawn.
//!
//! The chart crate turns a [`Sequence`] into text, SVG and JSON.

use serde::{Deserialize, Serialize};

/// A message sequence among named agents.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Sequence {
    /// Names of the agents, in the order of their lifelines.
    pub agents: Vec<String>,
    /// What happens, in time order.
    pub steps: Vec<Step>,
}

/// The name of an agent's lifeline. One that is called as another lifeline always is has its role behind its name.
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

/// The names of the lifelines of so many homes: of one as [`lifeline`] has it, of several with their numbers.
///
/// ```
/// use cohkit_base::sequence::homes;
///
/// assert_eq!(homes("directory", 1), ["directory"]);
/// assert_eq!(homes("directory", 2), ["directory 0", "directory 1"]);
/// ```
pub fn homes(name: &str, many: u16) -> Vec<String> {
    let home = lifeline(name, "home");
    match many {
        1 => vec![home],
        _ => (0..many).map(|number| format!("{home} {number}")).collect(),
    }
}

/// One step of a sequence.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Step {
    /// Index into [`Sequence::agents`] of the one that acts.
    pub agent: usize,
    /// What it does.
    pub action: Action,
    /// Cache line, where a system has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// False for what the home cannot see; drawn with a dot.
    pub visible: bool,
}

/// What an agent does in one step.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Action {
    /// Puts a message into its channel.
    Send {
        /// Name and, where it has them, field values: `Data(acks=1)`.
        message: String,
        /// Index of the receiver.
        to: usize,
        /// Matches the step that takes this same message.
        flight: u32,
    },
    /// Takes a message out of its channel.
    Receive {
        /// As in the sending step.
        message: String,
        /// Index of the sender.
        from: usize,
        /// As in the sending step.
        flight: u32,
    },
    /// Does something of its own: an access, a memory operation, a local operation.
    Does {
        /// In the words of the protocol text: `load`, `memory is read`, `clean acknowledged`.
        what: String,
    },
    /// Changes its state.
    Becomes {
        /// State name, and what else is worth showing: `M`, `S{n=2}`.
        state: String,
    },
}
