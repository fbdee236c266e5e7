//! Traces, judged: did what is told happen as the tables of a protocol say, and was memory coherent?
//!
//! A trace is a message sequence as charts draw it: who sent, took and did what, and the states they came to. Models,
//! simulations and hardware in lockstep tell of themselves in this one form, and [`judge`] reads all of them.
//! It knows nothing of who made a trace and shares no code with them but the parsed text: [`table`] reads rows anew.
//!
//! What is judged:
//!
//! * each message was sent before it is taken, once, by the agent and to the agent of which it is told, and comes in the order
//!   that its channel promises;
//! * each agent does what its table says, and nothing else: what it sends, to whom, with which fields, and where it goes;
//! * a right to write excludes all others, and a device's lock what it says;
//! * who may read has what the last write left; what ends a read was no older when the read began; a trace that tells the
//!   values of words tells of each read the value of the last write;
//! * where copies may be old (`guarantee none`), what is read in one copy has the value that it had where the copy comes from,
//!   or that was written in it; and if the text promises a memory model, and the home performs all writes, nobody sees less of
//!   a line than it has seen or written before;
//! * a trace that says it ends at rest leaves nothing under way.

mod bytes;
mod judge;
pub mod table;

pub use judge::{judge, remotes, Refused, Summary};

use cohkit_base::sequence::Sequence;
use serde_json::Value;

/// A trace in a file.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What is told.
    pub sequence: Sequence,
    /// Whether it goes on until everything has come to rest.
    pub at_rest: bool,
}

impl Trace {
    /// The trace as JSON, as [`traces`] finds it.
    ///
    /// # Panics
    /// Never: its keys are text.
    pub fn json(&self) -> Value {
        let mut value = serde_json::to_value(&self.sequence).expect("the keys are text");
        value["at_rest"] = self.at_rest.into();
        value
    }
}

/// All traces in a JSON text, wherever they stand in it: whatever has `agents` and `steps`, and agents that are named.
///
/// # Errors
/// If the text is no JSON, or a trace in it cannot be read.
pub fn traces(text: &str) -> Result<Vec<Trace>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    find(value, &mut found)?;
    Ok(found)
}

fn find(value: Value, found: &mut Vec<Trace>) -> Result<(), String> {
    match value {
        Value::Array(values) => values.into_iter().try_for_each(|value| find(value, found)),
        Value::Object(entries)
            if entries.contains_key("agents") && entries.contains_key("steps") =>
        {
            let at_rest = entries.get("at_rest") == Some(&Value::Bool(true));
            let sequence = serde_json::from_value::<Sequence>(Value::Object(entries));
            let sequence = sequence.map_err(|error| format!("a trace cannot be read: {error}"))?;
            // A search that found nothing to tell leaves an empty one.
            if !sequence.agents.is_empty() {
                found.push(Trace { sequence, at_rest });
            }
            Ok(())
        }
        Value::Object(entries) => entries
            .into_iter()
            .try_for_each(|(_, value)| find(value, found)),
        _ => Ok(()),
    }
}
