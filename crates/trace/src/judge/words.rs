//! The words of traces, which are those of charts.

use super::*;
use cohkit_protocol::controller::MEMORY_WRITES;

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

/// A variable that is worth telling: its name, type and labels, and its value.
type Worth<'t> = (&'t str, Type, &'t [String], i64);

impl Judge<'_> {
    /// That a message is called this, with its fields or without.
    pub(super) fn is_called(&self, sent: &Sent, words: &str) -> Checked {
        let about = self.protocol.message(sent.message);
        let (name, fields) = match words.split_once('(') {
            Some((name, fields)) => (name, fields.strip_suffix(')')),
            None => (words, None),
        };
        let wrong = || {
            format!(
                "{words} is told of, and the message is {} {:?}",
                about.name, sent.fields
            )
        };
        if name != about.name || words.contains('(') && fields.is_none() {
            return Err(wrong());
        }
        let Some(fields) = fields else {
            return Ok(());
        };
        // Sets have commas of their own, and are told in the words of whoever tells.
        if about.fields.iter().any(|field| field.ty == Type::RemoteSet) {
            return Ok(());
        }
        let told: Vec<&str> = fields.split(", ").collect();
        let own = about.fields.iter().zip(&sent.fields);
        let fits = own.len() == told.len()
            && own.zip(told).all(|((field, value), told)| {
                let told = told.split_once('=');
                told.is_some_and(|(name, told)| {
                    name == field.name && self.is(field.ty, &[], value, told)
                })
            });
        fits.then_some(()).ok_or_else(wrong)
    }

    /// Whether a value is told in these words.
    pub(super) fn is(&self, ty: Type, labels: &[String], value: &Value, told: &str) -> bool {
        let Value::One(one) = *value else {
            return true;
        };
        let word = match ty {
            Type::Bool => Some(if one == 0 { "false" } else { "true" }),
            Type::Remote if one == 0 => Some("none"),
            Type::Remote => self
                .sequence
                .agents
                .get(one as usize - 1)
                .map(String::as_str),
            _ => labels.get(one as usize).map(String::as_str),
        };
        Some(told) == word || told == one.to_string()
    }

    /// An agent's state, and those of its variables that are told, with what they are if that is worth telling.
    pub(super) fn words<'t>(&self, table: &'t Table, agent: &Agent) -> (String, Vec<Worth<'t>>) {
        let controller = table.controller;
        let values = controller.variables.iter().zip(&agent.values);
        // What a home is lent is none of its own.
        let values = values.filter(|(variable, _)| variable.name != MEMORY_WRITES);
        let values = values.filter(|(variable, _)| self.tells_registers || !variable.register);
        let worth = values.filter_map(|(variable, value)| match value {
            Value::One(one) if *one != 0 => Some((
                variable.name.as_str(),
                variable.ty,
                &variable.labels[..],
                *one,
            )),
            _ => None,
        });
        (controller.states[agent.state].name.clone(), worth.collect())
    }

    pub(super) fn fits(&self, (name, values): &(String, Vec<Worth>), told: &str) -> bool {
        let Some(mut rest) = told.strip_prefix(name.as_str()) else {
            return false;
        };
        for (variable, ty, labels, value) in values {
            let Some(after) = rest.strip_prefix(&format!(" {variable}=")) else {
                return false;
            };
            let mut ends = after
                .match_indices(' ')
                .map(|(end, _)| end)
                .collect::<Vec<_>>();
            ends.push(after.len());
            // Names of agents and labels have spaces.
            let value = Value::One(*value);
            let Some(end) = ends
                .into_iter()
                .find(|&end| self.is(*ty, labels, &value, &after[..end]))
            else {
                return false;
            };
            rest = &after[end..];
        }
        rest.is_empty()
    }
}
