//! Trace checker: tests whether a trace conforms to the tables of a protocol, and whether memory was coherent.
//!
//! A trace is a message sequence as drawn in charts: sends, receives, local actions and state changes. Models,
//! simulations and hardware in lockstep all write traces in this form. [`traces`] reads them from JSON, and [`judge()`]
//! checks each of them.
//!
//! The crate does not know `system`, `engine`, `check`, `sim` or `rtl`, the executors that write traces. It shares only
//! the parsed protocol with them: `table` interprets rows a second time.
//!
//! Properties that are checked:
//!
//! * Each message is received once, after it was sent, by the stated agents, and in the order that its channel
//!   guarantees.
//! * Each agent does exactly what its table requires: messages, receivers, fields and next state.
//! * Write permission excludes all other permissions, and a device's lock excludes what it declares.
//! * An agent with read permission has the result of the last write. The data that completes a read is no older than
//!   the last write before the read began. If the trace contains values of words, each read returns the value of the
//!   last write.
//! * If copies may be stale (`guarantee none`), a value read from a copy is the value at the copy's origin, or one
//!   written in the copy. If the protocol also promises a memory model, and the home performs all writes, no agent
//!   observes a line older than it has observed or written before.
//! * A trace that claims to end in a quiescent state leaves nothing outstanding.
//!
//! ```
//! use cohkit_protocol::{protocol::Home, text::parse};
//! use cohkit_trace::{judge, traces};
//!
//! let msi = parse(include_str!("../../../protocols/msi.coh")).expect("the file has no errors");
//! let Home::Controller(home) = &msi.home else { panic!("the home is a policy") };
//! // A load that misses: a request, and the line without acknowledgements to wait for.
//! let miss = r#"{"agents": ["cache", "directory"], "ends_quiescent": true, "steps": [
//!   {"agent": 0, "visible": false, "action": {"kind": "does", "what": "load"}},
//!   {"agent": 0, "visible": false, "action": {"kind": "send", "message": "GetS", "to": 1, "flight": 0}},
//!   {"agent": 0, "visible": false, "action": {"kind": "becomes", "state": "IS_D"}},
//!   {"agent": 1, "visible": true, "action": {"kind": "receive", "message": "GetS", "from": 0, "flight": 0}},
//!   {"agent": 1, "visible": true, "action": {"kind": "send", "message": "Data(acks=0)", "to": 0, "flight": 1}},
//!   {"agent": 1, "visible": true, "action": {"kind": "becomes", "state": "S sharers={cache}"}},
//!   {"agent": 0, "visible": false, "action": {"kind": "receive", "message": "Data(acks=0)", "from": 1, "flight": 1}},
//!   {"agent": 0, "visible": false, "action": {"kind": "becomes", "state": "S"}}
//! ]}"#;
//! let verdict = |text: &str| {
//!     let trace = &traces(text).expect("the trace is JSON")[0];
//!     judge(&msi, home, &trace.sequence, trace.ends_quiescent)
//! };
//! let summary = verdict(miss).expect("the trace conforms");
//! assert_eq!((summary.rows, summary.messages), (3, 2));
//! // A directory that announces an acknowledgement that no sharer will send: the fifth step is wrong.
//! assert_eq!(verdict(&miss.replace("acks=0", "acks=1")).unwrap_err().step, 5);
//! ```

mod judge;
mod line_data;
mod table;

pub use judge::{judge, remotes, Rejection, Summary};

use cohkit_base::sequence::Sequence;
use serde_json::Value;

/// A trace from a file.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Steps of the trace.
    pub sequence: Sequence,
    /// True if the trace claims to end in a quiescent state.
    pub ends_quiescent: bool,
}

impl Trace {
    /// Returns the trace as JSON, in the form that [`traces`] reads.
    ///
    /// # Panics
    /// Never: its keys are strings.
    pub fn json(&self) -> Value {
        let mut value = serde_json::to_value(&self.sequence).expect("the keys are text");
        value["ends_quiescent"] = self.ends_quiescent.into();
        value
    }
}

/// Extracts all traces from a JSON text, at any depth: all objects with `agents` and `steps`, unless `agents` is empty.
///
/// # Errors
/// The text is not JSON, or a trace in it is malformed.
pub fn traces(text: &str) -> Result<Vec<Trace>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut traces = Vec::new();
    collect_traces(value, &mut traces)?;
    Ok(traces)
}

/// Appends the traces in `value` and in all values nested in it.
fn collect_traces(value: Value, traces: &mut Vec<Trace>) -> Result<(), String> {
    match value {
        Value::Array(values) => values
            .into_iter()
            .try_for_each(|value| collect_traces(value, traces)),
        Value::Object(entries)
            if entries.contains_key("agents") && entries.contains_key("steps") =>
        {
            // Earlier versions wrote `at_rest`.
            let ends_quiescent = ["ends_quiescent", "at_rest"]
                .iter()
                .any(|key| entries.get(*key) == Some(&Value::Bool(true)));
            let sequence = serde_json::from_value::<Sequence>(Value::Object(entries));
            let sequence = sequence.map_err(|error| format!("a trace cannot be read: {error}"))?;
            // A search that found no trace writes an empty one.
            if !sequence.agents.is_empty() {
                traces.push(Trace {
                    sequence,
                    ends_quiescent,
                });
            }
            Ok(())
        }
        Value::Object(entries) => entries
            .into_iter()
            .try_for_each(|(_, value)| collect_traces(value, traces)),
        _ => Ok(()),
    }
}
