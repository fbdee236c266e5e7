//! Descriptions of values in differences.

use super::{ExpectedWrite, Flight, Model};
use crate::agents::layout::Agent;
use cohkit_protocol::execute::Configuration;

impl Model<'_> {
    /// Name of an agent.
    pub(super) fn name(&self, agent: usize) -> String {
        match agent < usize::from(self.agents.total()) {
            true => format!("cache {agent}"),
            false => "home".to_string(),
        }
    }

    /// Describes a message in flight.
    pub(super) fn flight_words(&self, flight: &Flight) -> String {
        let message = self.agents.protocol.message(flight.message);
        let fields = message.fields.iter().zip(&flight.fields);
        let fields: String = fields
            .map(|(field, value)| format!(", {} = {value}", field.name))
            .collect();
        let bytes = match message.carries.line() || message.carries.store() {
            true => format!(", data {}", flight.bytes),
            false => String::new(),
        };
        let (from, to) = (self.name(flight.from), self.name(flight.to));
        let (name, line) = (&message.name, flight.line);
        format!("{name} from {from} to {to} (line {line}{fields}{bytes})")
    }

    /// Describes messages in flight.
    pub(super) fn flights_words(&self, flights: &[Flight]) -> String {
        let words = flights.iter().map(|flight| self.flight_words(flight));
        list(words.collect())
    }

    /// Describes a state with the values of its variables.
    pub(super) fn configuration_words(
        &self,
        agent: &Agent,
        configuration: &Configuration,
    ) -> String {
        let table = self.agents.controller(agent);
        let machine = &self.machines[usize::from(agent.is_home)];
        let name = table
            .states
            .get(usize::from(configuration.state))
            .map_or("none", |state| &state.name);
        let variables = agent.variables.iter().map(|variable| {
            let values = machine.slots(variable.0);
            let values = values.map(|slot| configuration.slots[slot].to_string());
            let values = values.collect::<Vec<_>>().join(" ");
            format!(", {} = {values}", table.variables[variable.index()].name)
        });
        format!("{name}{}", variables.collect::<String>())
    }
}

/// Describes a copy of a line.
pub(super) fn copy_words(copy: Option<u64>) -> String {
    copy.map_or("none".to_string(), |data| format!("{data:x}"))
}

/// Describes writes that memory has to perform.
pub(super) fn writes_words<'w>(writes: impl IntoIterator<Item = &'w ExpectedWrite>) -> String {
    let words = |write: &ExpectedWrite| format!("{} to line {}", write.bytes, write.line);
    list(writes.into_iter().map(words).collect())
}

/// Joins the members of a list.
fn list(words: Vec<String>) -> String {
    match words.is_empty() {
        true => "nothing".to_string(),
        false => words.join("; "),
    }
}

/// Describes the end of an access.
pub(super) fn end_words(performs: bool, completes: bool) -> &'static str {
    match (performs, completes) {
        (false, false) => "ends no access",
        (true, false) => "performs its access",
        (false, true) => "completes its access",
        (true, true) => "performs and completes its access",
    }
}
