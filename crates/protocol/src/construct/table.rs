//! The home of one remote as a flat table: merged, named, and as a controller of plain rows.

use super::explain::Input;
use super::explore::{Cell, HomeGraph};
use super::knowledge::Knowledge;
use super::names::Namer;
use super::program::{locals, CURRENT_REQUEST, REQUESTER};
use crate::controller::{Controller, Effect, Event, Expression, Rule, State, Statement, Target};
use crate::execute::Act;
use crate::protocol::{Permission, StateId};
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Home for one remote: all states, and the reaction to every input that can occur there.
#[derive(Clone, Debug)]
pub struct HomeTable {
    /// States in breadth-first order.
    pub states: Vec<HomeState>,
    /// Rows by state, in a fixed order of inputs.
    pub rows: Vec<Vec<(Event, Cell)>>,
}

/// A state of a flat home.
#[derive(Clone, Debug)]
pub struct HomeState {
    /// Name, derived from its knowledge set.
    pub name: String,
    /// Configurations that are possible in this state, as `IS{ReadShared}`, for people.
    pub configurations: Vec<String>,
    /// Indices of the states merged into this one, before merging.
    pub members: Vec<u32>,
}

impl HomeTable {
    /// Builds the table of a graph for one remote. With `merge`, states with indistinguishable futures are merged.
    pub fn new(knowledge: &Knowledge, graph: &HomeGraph, merge: bool) -> Self {
        assert_eq!(graph.remotes, 1, "a flat table is for one remote");
        let class_of = if merge {
            classes(&graph.cells)
        } else {
            (0..graph.states().len() as u32).collect()
        };
        let count = class_of.iter().max().map_or(0, |&last| last as usize + 1);
        let mut members = vec![Vec::new(); count];
        for (state, &class) in class_of.iter().enumerate() {
            members[class as usize].push(state as u32);
        }
        let names = Namer::new(&knowledge.environment).names(knowledge, graph, &members);
        let states = members
            .iter()
            .zip(names)
            .map(|(members, name)| {
                let mut configurations: Vec<String> = members
                    .iter()
                    .flat_map(|&member| knowledge.configurations(graph.knowledge(member, 0)))
                    .map(|&configuration| knowledge.environment.configuration_text(configuration))
                    .collect();
                configurations.sort();
                configurations.dedup();
                HomeState {
                    name,
                    configurations,
                    members: members.clone(),
                }
            })
            .collect();
        let rows = members
            .iter()
            .map(|members| {
                let row = |((event, _), cell): &(Input, Cell)| {
                    let cell = match cell {
                        Cell::Take { acts, to } => Cell::Take {
                            acts: acts.clone(),
                            to: class_of[*to as usize],
                        },
                        other => other.clone(),
                    };
                    (*event, cell)
                };
                graph.cells[members[0] as usize].iter().map(row).collect()
            })
            .collect();
        HomeTable { states, rows }
    }

    /// Number of rows that take their input.
    pub fn transitions(&self) -> usize {
        self.rows
            .iter()
            .flatten()
            .filter(|row| matches!(row.1, Cell::Take { .. }))
            .count()
    }

    /// Events that occur, in order.
    pub fn events(&self) -> Vec<Event> {
        let mut events: Vec<Event> = self.rows.iter().flatten().map(|row| row.0).collect();
        events.sort();
        events.dedup();
        events
    }

    /// Converts the table to a controller of plain rows, for systems of one remote.
    pub fn controller(&self, knowledge: &Knowledge, graph: &HomeGraph) -> Controller {
        let policy = knowledge.environment.policy();
        let span = policy.span;
        let to_state = |state: &HomeState| State {
            name: state.name.clone(),
            permission: Permission::None,
            dirty: false,
            holds_line: false,
            waits: Vec::new(),
            span,
        };
        let mut rules = Vec::new();
        for (index, rows) in self.rows.iter().enumerate() {
            let slots = &graph.states()[self.states[index].members[0] as usize].slots;
            for (event, cell) in rows {
                let effect = match cell {
                    Cell::Stall => Effect::Stall,
                    Cell::Refuse => Effect::Refuse,
                    Cell::Take { acts, to } => Effect::Take {
                        body: acts.iter().map(to_statement).collect(),
                        next: (*to as usize != index).then_some(StateId(*to as u16)),
                    },
                };
                // The span of a row is that of its goal: its own request, or the request in progress. With one remote
                // the requester takes one slot, so slots and variables have the same index.
                let current_request = match slots[REQUESTER.index()] {
                    0 => 0,
                    _ => slots[CURRENT_REQUEST.index()],
                };
                let span = match event {
                    Event::Message(message) => policy
                        .requests
                        .iter()
                        .find(|request| request.message == *message)
                        .map_or(
                            knowledge.environment.protocol.message(*message).span,
                            |request| request.span,
                        ),
                    Event::Local(local) => policy.locals[*local as usize].span,
                    _ if current_request != 0 => policy.requests[current_request as usize - 1].span,
                    _ => span,
                };
                rules.push(Rule {
                    state: StateId(index as u16),
                    event: *event,
                    guard: None,
                    effect,
                    span,
                });
            }
        }
        Controller {
            name: "home".into(),
            states: self.states.iter().map(to_state).collect(),
            variables: Vec::new(),
            tables: Vec::new(),
            rules,
            locals: locals(policy),
            span,
        }
    }
}

/// Converts an action of a home with one remote to a statement.
fn to_statement(act: &Act) -> Statement {
    match act {
        Act::Send { message, .. } => Statement::Send {
            message: *message,
            to: Target::Remote(Expression::Constant(1)),
            fields: Vec::new(),
        },
        Act::WriteMemory => Statement::WriteMemory,
        Act::DeferStore => Statement::DeferStore,
        Act::CommitDeferred => Statement::CommitDeferred,
        Act::Done => Statement::Done,
        Act::BulkTransition { from, to } => Statement::BulkTransition {
            from: *from,
            to: *to,
        },
        Act::StartRead => Statement::StartRead,
        Act::StartWrite => Statement::StartWrite,
        Act::StartStore { whole } => Statement::StartStore { whole: *whole },
        Act::Acknowledge(local) => Statement::Acknowledge(*local),
        Act::AcknowledgeUnlock => Statement::AcknowledgeUnlock,
    }
}

/// Classes of states that no sequence of inputs distinguishes, numbered in order of their first member. An impossible
/// input differs from every other, so a table still detects impossible events.
pub fn classes(cells: &[Vec<(Input, Cell)>]) -> Vec<u32> {
    refine(cells.len(), |state, class| {
        let reaction = |(input, cell): &(Input, Cell)| match cell {
            Cell::Take { acts, to } => (*input, Some((acts.clone(), class[*to as usize])), false),
            Cell::Stall => (*input, None, false),
            Cell::Refuse => (*input, None, true),
        };
        cells[state].iter().map(reaction).collect::<Vec<_>>()
    })
}

/// Coarsest partition whose classes have equal signatures, where a signature may refer to the classes of other
/// elements. Classes are numbered in order of their first member.
pub fn refine<S: Eq + Hash>(count: usize, signature: impl Fn(usize, &[u32]) -> S) -> Vec<u32> {
    let mut class = vec![0u32; count];
    let mut classes = usize::from(count > 0);
    loop {
        let mut numbers = FxHashMap::default();
        let next: Vec<u32> = (0..count)
            .map(|element| {
                let number = numbers.len() as u32;
                *numbers
                    .entry((class[element], signature(element, &class)))
                    .or_insert(number)
            })
            .collect();
        class = next;
        if numbers.len() == classes {
            return class;
        }
        classes = numbers.len();
    }
}
