//! Wording of traces, which is that of charts.

use super::{CheckResult, TraceChecker};
use crate::table::{Agent, SentMessage, Table, Value};
use cohkit_base::sequence::Action;
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::KindId;
use cohkit_protocol::value_text::Contents;

/// True if a step can only be an effect of a row that an earlier step triggered.
pub(super) fn is_effect(action: &Action) -> bool {
    match action {
        Action::Send { .. } | Action::Becomes { .. } => true,
        Action::Does { what } => {
            what.starts_with("acknowledges ") || [WRITES, "is unlocked"].contains(&what.as_str())
        }
        Action::Receive { .. } => false,
    }
}

/// Report that a write is performed: by the home with the bytes that a remote has sent, or by the remote whose row
/// completes its access.
pub(super) const WRITES: &str = "performs the write";

/// Prefix of a report that an access is performed.
pub(super) const PERFORMS: &str = "performs a ";

/// A word of the current line and its value, as a trace reports them.
#[derive(Clone, Copy)]
pub(super) struct WordValue {
    /// Number of the word in the line.
    pub(super) word: u64,
    /// Value read or written.
    pub(super) value: u64,
}

/// Parses a report of an access, with any word and its value: `load`, `performs a store of word 3: 17`.
pub(super) fn parse_access_report(report: &str) -> Option<(Access, Option<WordValue>)> {
    let report = report.strip_prefix(PERFORMS).unwrap_or(report);
    let (name, value) = match report.split_once(" of word ") {
        Some((name, value)) => {
            let (word, value) = value.split_once(": ")?;
            let value = WordValue {
                word: word.parse().ok()?,
                value: value.parse().ok()?,
            };
            (name, Some(value))
        }
        None => (report, None),
    };
    let access = Access::ALL.iter().find(|(_, access)| *access == name)?.0;
    Some((access, value))
}

/// Kind of a remote with this name; the first kind if no name matches.
pub(super) fn kind_of(protocol: &Protocol, agent: &str) -> KindId {
    let has_name = |name: &str| {
        let suffix = agent.strip_prefix(name);
        suffix.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with(' '))
    };
    let kinds = (0..).map(KindId).zip(&protocol.kinds);
    // The longest match, since one name may be a prefix of another.
    let matching_kinds = kinds.filter(|(_, kind)| has_name(&kind.name));
    matching_kinds
        .max_by_key(|(_, kind)| kind.name.len())
        .map_or(KindId(0), |(number, _)| number)
}

impl TraceChecker<'_> {
    /// Checks that the trace names a message correctly, with or without its fields.
    pub(super) fn check_message_name(&self, sent: &SentMessage, message_text: &str) -> CheckResult {
        let message_type = self.protocol.message(sent.message);
        let values: Vec<u16> = sent.fields.iter().map(Value::code).collect();
        let full_text = self.names.message(message_type, &values);
        match message_text == full_text || message_text == message_type.name {
            true => Ok(()),
            false => Err(format!(
                "{message_text} is reported, but the message is {full_text}"
            )),
        }
    }

    /// Formats an agent's state, with the variables that the trace shows.
    pub(super) fn state_text(&self, table: &Table, agent: &Agent) -> String {
        let variables = table.controller.variables.iter().zip(&agent.values);
        let contents = variables.map(|(variable, value)| {
            match variable.register && !self.has_register_reports {
                true => Contents::Value(0),
                false => value.contents(variable.ty),
            }
        });
        self.names.state(table.controller, agent.state, contents)
    }
}
