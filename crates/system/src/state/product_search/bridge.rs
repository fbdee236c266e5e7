//! Tables of bridges: an outer cache together with the inner home over it, as one controller.
//!
//! No file states a bridge's rows, as they follow from the permissions of both protocols. A table lists the steps of
//! the two agents in all reachable states of both levels.

use std::collections::{BTreeMap, BTreeSet};

use cohkit_protocol::protocol::MessageId;

use super::{Move, Product, Search, SystemState};
use crate::agent::Violation;
use crate::state::explore::Found;
use crate::state::levels::{LevelStep, Levels, Shared};
use crate::state::{Endpoint, Lock, Network, Step, StepError, System};
use cohkit_protocol::protocol::Permission;

/// Protocol that a step or a message of a bridge belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// The outer protocol, of the cache.
    Outer,
    /// The inner protocol, of the home.
    Inner,
}

/// State of a bridge for a line.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BridgeState {
    /// State of the outer cache.
    pub cache: String,
    /// State of the home.
    pub home: String,
    /// Progress of the local operation that takes permission back from below, or its lock; empty if there is none.
    pub recall: String,
}

/// A row of a bridge's table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BridgeRow {
    /// State before the step.
    pub state: BridgeState,
    /// Agent that the event happens at.
    pub level: Level,
    /// Name of the consumed message, of the access that the cache begins, or of another event.
    pub event: String,
    /// Messages that the agents send, each with its number if it is not 1.
    pub sends: Vec<(Level, String)>,
    /// State after the step.
    pub next: BridgeState,
}

/// Reason why there is no table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoTable {
    /// A property is violated, so the rows are not those of a working bridge.
    Violated(Violation),
    /// The search did not visit all states, because of a limit or because it was interrupted.
    Incomplete(String),
}

/// Returns the table of the bridges of each kind of cluster. Explores all states of both levels, up to
/// `search.max_rows`, until `should_continue` returns false.
///
/// # Errors
/// The levels violate a property, or not all states were visited.
pub fn bridge_tables(
    levels: &Levels,
    search: Search,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<Vec<Vec<BridgeRow>>, NoTable> {
    let mut product = Product::new(levels, search.symmetry);
    match product.explore(search.max_rows, should_continue) {
        Found::Safe { .. } => Ok(product.bridges()),
        Found::Violated { errors, .. } => Err(no_table(&errors)),
        Found::LimitReached { states } => Err(NoTable::Incomplete(format!(
            "the search ended after {states} states"
        ))),
    }
}

/// Reason of the first violation, or else of the first exceeded limit.
fn no_table(errors: &[StepError]) -> NoTable {
    let violation = errors.iter().find_map(|error| match error {
        StepError::Violated(violation) => Some(violation.clone()),
        StepError::Exceeded(_) => None,
    });
    match (violation, errors.first()) {
        (Some(violation), _) => NoTable::Violated(violation),
        (None, Some(StepError::Exceeded(limit))) => NoTable::Incomplete(limit.clone()),
        (None, _) => NoTable::Incomplete("the search ended without a result".into()),
    }
}

impl Product<'_, '_> {
    /// Tables of the bridges that have been explored, by kind of cluster.
    fn bridges(&self) -> Vec<Vec<BridgeRow>> {
        let mut tables = vec![BTreeSet::new(); self.levels.kinds.len()];
        for (&(outer, inner, number), moves) in &self.at_cache {
            let table = &mut tables[self.levels.kind_of_cluster[usize::from(number)]];
            let rows = moves.steps.iter();
            table.extend(rows.filter_map(|step| self.bridge_row((outer, inner, number), step)));
        }
        let tables = tables.into_iter();
        tables.map(|table| table.into_iter().collect()).collect()
    }

    /// Row of a step at an outer cache or at the home over it; `None` for a step of a cache below.
    fn bridge_row(&self, (outer, inner, number): (u32, u32, u8), step: &Move) -> Option<BridgeRow> {
        let kind = self.levels.kind_of_cluster[usize::from(number)];
        let (system, states) = (self.inner[kind].system, &self.inner[kind].states.states);
        let outer_states = [outer, step.outer].map(|number| &*self.outer.states[number]);
        let inner_states = [inner, step.inner].map(|number| &*states[number]);
        let (level, line, event) = match step.step {
            LevelStep::Outer(step) => {
                let (line, event) = cache_event(&self.levels.outer, outer_states[0], step)?;
                (Level::Outer, line, event)
            }
            LevelStep::Inner(_, step) => {
                let (line, event) = home_event(system, inner_states[0], step)?;
                (Level::Inner, line, event)
            }
        };
        let state = |index: usize| {
            let line = usize::from(line);
            let cache = &outer_states[index].lines[line].remotes[usize::from(number)];
            let home = &inner_states[index].lines[line].home;
            let outer_controller = &self.levels.outer.protocol.remote;
            BridgeState {
                cache: outer_controller.states[usize::from(cache.configuration.state)]
                    .name
                    .clone(),
                home: system.home.states[usize::from(home.state)].name.clone(),
                recall: recall(system, inner_states[index], line),
            }
        };
        let sends = |level, system: &System, from, states: [&SystemState<Shared>; 2]| {
            let sent = sent_messages(from, states.map(|state| &state.network));
            let name = |(message, count): (MessageId, usize)| match count {
                1 => system.protocol.message(message).name.clone(),
                _ => format!("{count} {}", system.protocol.message(message).name),
            };
            let names = sent.into_iter().map(name);
            names.map(|name| (level, name)).collect::<Vec<_>>()
        };
        let from_cache = sends(Level::Outer, &self.levels.outer, Some(number), outer_states);
        let from_home = sends(Level::Inner, system, None, inner_states);
        Some(BridgeRow {
            state: state(0),
            level,
            event,
            sends: [from_cache, from_home].concat(),
            next: state(1),
        })
    }
}

/// Line and name of an event at an outer cache.
fn cache_event(system: &System, state: &SystemState<Shared>, step: Step) -> Option<(u8, String)> {
    match step {
        Step::Access(line, _, access) => Some((line, access.name().to_string())),
        Step::Deliver(arrival) | Step::DeliverChoosing(arrival, _) => {
            let flight = state.network.at(arrival)?;
            Some((
                flight.line,
                system.protocol.message(flight.message).name.clone(),
            ))
        }
        _ => None,
    }
}

/// Line and name of an event at an inner home; `None` for an event at a cache.
fn home_event(system: &System, state: &SystemState<Shared>, step: Step) -> Option<(u8, String)> {
    let local = |number: u8| &system.home.locals[usize::from(number)].name;
    match step {
        Step::Deliver(arrival) | Step::DeliverChoosing(arrival, _) => {
            let flight = state.network.at(arrival)?;
            let name = &system.protocol.message(flight.message).name;
            flight.to.is_none().then(|| (flight.line, name.clone()))
        }
        Step::RequestLocal(line, number) => Some((line, format!("{} is requested", local(number)))),
        Step::Local(line) => {
            let requested = state.lines[usize::from(line)].requested?;
            Some((line, local(requested).clone()))
        }
        Step::Unlock(line) => Some((line, "unlock".to_string())),
        Step::MemoryOperation(line) => Some((line, "memory operation".to_string())),
        Step::MemoryData(line, _) => Some((line, "memory data".to_string())),
        Step::MemoryDone(line) => Some((line, "memory done".to_string())),
        _ => None,
    }
}

/// Progress of the local operation of a line.
fn recall(system: &System, state: &SystemState<Shared>, line: usize) -> String {
    let line_state = &state.lines[line];
    let local = |number: u8| &system.home.locals[usize::from(number)].name;
    let operation = match (line_state.requested, line_state.accepted) {
        (Some(number), _) => format!("{} requested", local(number)),
        (None, Some(number)) => format!("{} in progress", local(number)),
        (None, None) => String::new(),
    };
    let lock = match line_state.lock {
        Lock::Unlocked => "",
        Lock::Held(Permission::Write) => "locked",
        Lock::Held(_) => "locked for writes",
        Lock::Unlocking => "unlocking",
    };
    let parts = [operation.as_str(), lock];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

/// Messages of an agent that are in flight after a step and were not before, with their number.
fn sent_messages(from: Endpoint, networks: [&Network<Shared>; 2]) -> BTreeMap<MessageId, usize> {
    let [before, mut after] = networks.map(|network| {
        let mut counts: BTreeMap<MessageId, usize> = BTreeMap::new();
        for flight in network.flights().filter(|flight| flight.from == from) {
            *counts.entry(flight.message).or_default() += 1;
        }
        counts
    });
    for (message, count) in before {
        let sent = after.entry(message).or_default();
        *sent = sent.saturating_sub(count);
    }
    after.retain(|_, count| *count > 0);
    after
}
