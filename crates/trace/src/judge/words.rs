//! The words of traces, which are those of charts.

use super::*;
use cohkit_protocol::value_text::Contents;

/// Whether a step can only be part of a row that something before it has set off.
pub(super) fn is_effect(action: &Action) -> bool {
    match action {
        Action::Send { .. } | Action::Becomes { .. } => true,
        Action::Does { what } => {
            what.starts_with("acknowledges ") || [WRITES, "is unlocked"].contains(&what.as_str())
        }
        Action::Receive { .. } => false,
    }
}

/// More alternatives of what may follow a memory read than any home has.
pub(super) const MOST_CHOICES: u8 = 16;

/// How a trace tells that a write is performed whose bytes were sent, or that `done` ends.
pub(super) const WRITES: &str = "performs the write";

/// How a trace tells that an access is performed.
pub(super) const PERFORMS: &str = "performs a ";

/// The access that is told of, with the word and its value if these are told: `load`, `performs a store of word 3: 17`.
pub(super) fn told_access(what: &str) -> Option<(Access, Option<(u64, u64)>)> {
    let what = what.strip_prefix(PERFORMS).unwrap_or(what);
    let (name, value) = match what.split_once(" of word ") {
        Some((name, value)) => {
            let (word, value) = value.split_once(": ")?;
            (name, Some((word.parse().ok()?, value.parse().ok()?)))
        }
        None => (what, None),
    };
    let access = Access::ALL.iter().find(|(_, access)| *access == name)?.0;
    Some((access, value))
}

/// The kind of a remote with this name; the first if it is called otherwise.
pub(super) fn kind_of(protocol: &Protocol, agent: &str) -> KindId {
    let named = |name: &str| {
        let rest = agent.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let kinds = (0..).map(KindId).zip(&protocol.kinds);
    // The longest name, should one begin with another.
    let fits = kinds.filter(|(_, kind)| named(&kind.name));
    fits.max_by_key(|(_, kind)| kind.name.len())
        .map_or(KindId(0), |(number, _)| number)
}

impl Judge<'_> {
    /// That a message is called this, with its fields or without.
    pub(super) fn is_called(&self, sent: &Sent, words: &str) -> Checked {
        let about = self.protocol.message(sent.message);
        let values: Vec<u16> = sent.fields.iter().map(Value::code).collect();
        let whole = self.names.message(about, &values);
        match words == whole || words == about.name {
            true => Ok(()),
            false => Err(format!("{words} is told of, and the message is {whole}")),
        }
    }

    /// Text of an agent's state, with those of its variables that a trace shows.
    pub(super) fn words(&self, table: &Table, agent: &Agent) -> String {
        let variables = table.controller.variables.iter().zip(&agent.values);
        let contents =
            variables.map(
                |(variable, value)| match variable.register && !self.tells_registers {
                    true => Contents::One(0),
                    false => value.contents(variable.ty),
                },
            );
        self.names.state(table.controller, agent.state, contents)
    }
}
