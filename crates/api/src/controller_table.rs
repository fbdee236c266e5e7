//! Controllers as tables, and sizes of constructed homes.

use crate::named_value::{named_values, NamedValue};
use crate::source::Source;
use cohkit_base::sequence::lifeline;
use cohkit_diagnostics::line_column;
use cohkit_protocol::construct::fault::Fault;
use cohkit_protocol::construct::{construct_until, Construction, ConstructionError, Extent};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Home, Protocol, StateId};
use cohkit_protocol::rows::{rows, Rows};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

named_values! {
    /// The agents of a protocol.
    pub enum Agent {
        Home = "home": "The home agent",
        Remote = "remote": "The caching agent",
    }
}

/// Controller of an agent, as a table of text.
pub struct Table {
    /// Agent that the controller belongs to.
    pub agent: Agent,
    /// True if the home was constructed from a policy; the table is then that for one remote.
    pub constructed: bool,
    /// True if indistinguishable states of a constructed home are merged.
    pub merged: bool,
    /// Initial state of each agent, by its name in charts; for remotes, one entry per kind.
    pub initial: Vec<(String, String)>,
    /// Rows of the table.
    pub rows: Rows,
    /// Fault of the construction, if it found one; the table is complete nevertheless.
    pub fault: Option<Fault>,
}

impl Table {
    /// Title of the table, for headings.
    pub fn title(&self) -> &'static str {
        match (self.agent, self.constructed, self.merged) {
            (Agent::Remote, ..) => "remote",
            (Agent::Home, false, _) => "home",
            (Agent::Home, true, false) => "home for one remote, constructed",
            (Agent::Home, true, true) => "home for one remote, constructed and merged",
        }
    }

    /// JSON value, described in `docs/output.md`.
    pub fn json(&self, source: &Source) -> Value {
        let rows = self.rows.rows.iter().map(|row| {
            let mut value = json!(row);
            value["line"] = json!(line_column(&source.text, row.span.start).0);
            value
        });
        let rows: Vec<Value> = rows.collect();
        json!({
            "protocol": source.protocol.name,
            "agent": self.agent.name(),
            "constructed": self.constructed,
            "merged": self.merged,
            "initial": self.initial.iter().cloned().collect::<BTreeMap<_, _>>(),
            "states": self.rows.states,
            "transitions": self.rows.transitions,
            "events": self.rows.events,
            "rows": rows,
            "run": run_json(source),
        })
    }
}

/// Machine-dependent part of a result.
fn run_json(source: &Source) -> Value {
    json!({ "file": source.path.display().to_string(), "version": env!("CARGO_PKG_VERSION") })
}

/// Returns the table of an agent; a home that is a policy is constructed first. With `merged`, equivalent states
/// of a constructed home are merged. `None` if another thread set `cancel`.
///
/// # Errors
/// The home cannot be constructed.
pub fn tabulate(
    source: &Source,
    agent: Agent,
    merged: bool,
    cancel: &AtomicBool,
) -> Result<Option<Table>, ConstructionError> {
    let protocol = &source.protocol;
    let written_table = |controller: &Controller| {
        Some(Table {
            agent,
            constructed: false,
            merged: false,
            initial: initial_states(protocol, agent, controller),
            rows: rows(protocol, controller),
            fault: None,
        })
    };
    match (agent, &protocol.home) {
        (Agent::Remote, _) => Ok(written_table(&protocol.remote)),
        (Agent::Home, Home::Controller(home)) => Ok(written_table(home)),
        (Agent::Home, Home::Policy(_)) => {
            let construction = construct_until(protocol, Extent::default(), cancel)?;
            Ok(construction.map(|construction| {
                let home = construction.flat(merged);
                Table {
                    agent,
                    constructed: true,
                    merged,
                    initial: initial_states(protocol, agent, &home),
                    rows: rows(protocol, &home),
                    fault: construction.fault().cloned(),
                }
            }))
        }
    }
}

/// Returns the initial state of each agent, by its name in charts.
fn initial_states(
    protocol: &Protocol,
    agent: Agent,
    controller: &Controller,
) -> Vec<(String, String)> {
    let state = |state: StateId| controller.states[state.index()].name.clone();
    match agent {
        Agent::Home => vec![(
            lifeline(&controller.name, "home"),
            controller.states[0].name.clone(),
        )],
        Agent::Remote => (protocol.kinds.iter())
            .map(|kind| (lifeline(&kind.name, "remote"), state(kind.initial)))
            .collect(),
    }
}

/// Notes of a construction, without repetition.
pub(crate) fn notes(construction: &Construction) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in construction.notes() {
        if !notes.contains(&note.text) {
            notes.push(note.text.clone());
        }
    }
    notes
}

/// Sizes, notes and fault of a constructed home as JSON; `None` if the home is written by hand, or if cancelled.
///
/// # Errors
/// The home cannot be constructed.
pub fn construction_json(
    source: &Source,
    cancel: &AtomicBool,
) -> Result<Option<Value>, ConstructionError> {
    let protocol = &source.protocol;
    let Home::Policy(_) = protocol.home else {
        return Ok(None);
    };
    let Some(construction) = construct_until(protocol, Extent::default(), cancel)? else {
        return Ok(None);
    };
    let sizes = |merged| {
        let rows = rows(protocol, &construction.flat(merged));
        json!({ "states": rows.states, "transitions": rows.transitions, "events": rows.events })
    };
    Ok(Some(json!({
        "protocol": protocol.name,
        "home": sizes(false),
        "merged": sizes(true),
        "knowledge_sets": construction.knowledge.count(),
        "notes": notes(&construction),
        "fault": construction.fault().map(|fault| source.fault_json(fault)),
        "run": run_json(source),
    })))
}
