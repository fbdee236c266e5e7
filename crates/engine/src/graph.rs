//! State graph of a small model: every reachable state and every rule that fires in it, as DOT and as JSON.
//!
//! States and edges are in the order in which the search finds them, so the same model gives the same bytes.
//! The graph is not reduced: independent parts are explored together, and a violation does not end the exploration.

use crate::compile::{compile, Notes};
use crate::explore::Explorer;
use crate::interpret::Fault;
use crate::model::{Model, Number};
use crate::program::{Program, RuleSelection};
use crate::trace::{Trace, VariableValue};
use crate::view::View;
use cohkit_base::words::counted;
use serde::Serialize;
use std::fmt::Write;

/// A state graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Graph {
    /// Name of the model.
    pub model: String,
    /// States; edges refer to them by index.
    pub states: Vec<State>,
    /// Rules that fire, by state; in a state, in the order in which they are tried.
    pub edges: Vec<Edge>,
    /// States of the marked counterexample, in its order; empty if there is none.
    pub path: Vec<u32>,
}

/// A reachable state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct State {
    /// True for a start state.
    pub start: bool,
    /// Values of scalars. The first state lists those that differ from the initial values of variables; every other
    /// state lists those that differ from the first state.
    pub values: Vec<VariableValue>,
}

/// A rule that fires in a state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Edge {
    /// State in which the rule fires.
    pub from: u32,
    /// Successor; `None` if the rule ends in a fault, or if an assumption excludes the successor.
    pub to: Option<u32>,
    /// Name of the rule with the values of its parameters.
    pub rule: String,
    /// Index of the rule, as in [`crate::trace::TraceStep::rule_index`].
    pub rule_index: u32,
    /// Description of the fault in which the rule ends, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// True if the edge is on the counterexample.
    pub marked: bool,
}

/// Computes the graph of a model with up to `max_states` states, and marks the steps of `trace`, a trace of this model.
///
/// # Errors
/// The model has more states or is invalid, or a start state ends in a fault; one sentence.
pub fn graph(model: &Model, max_states: usize, trace: Option<&Trace>) -> Result<Graph, String> {
    if let Some(error) = model.validate().first() {
        return Err(error.to_string());
    }
    let program = compile(model, Notes::Omitted);
    let view = View::whole(&program, model.deadlock);
    let mut explorer = Explorer::new(&program, &view);
    let explain = |fault| fault_text(model, &program, fault);
    if let Err(fault) = explorer.start() {
        return Err(explain(fault));
    }
    let start_count = explorer.len();
    let mut edges = Vec::new();
    let mut state = 0;
    while (state as usize) < explorer.len() {
        let edge = |rule, to, fault| Edge {
            from: state,
            to,
            rule: program.rule_name(model, rule),
            rule_index: rule,
            fault,
            marked: false,
        };
        let expanded = explorer.expand(state, RuleSelection::All, |fired, _| {
            edges.push(edge(fired.rule, fired.to, None));
            true
        });
        if let Err(failed) = expanded {
            edges.push(edge(failed.rule, None, Some(explain(failed.fault))));
        }
        if explorer.len() > max_states {
            return Err(too_many_states_error(max_states));
        }
        state += 1;
    }
    let path = match trace {
        Some(trace) => states_on_path(&mut explorer, trace),
        None => Vec::new(),
    };
    // Edges are sorted by the state in which they fire.
    for (&from, step) in path.iter().zip(trace.iter().flat_map(|trace| &trace.steps)) {
        let first_edge = edges.partition_point(|edge| edge.from < from);
        let candidates = edges[first_edge..].iter_mut();
        let mut candidates = candidates.take_while(|edge| edge.from == from);
        if let Some(edge) = candidates.find(|edge| edge.rule_index == step.rule_index) {
            edge.marked = true;
        }
    }
    let states = describe_states(model, &program, &mut explorer, start_count);
    Ok(Graph {
        model: model.name.clone(),
        states,
        edges,
        path,
    })
}

/// Describes all states that an explorer has found. The first `start_count` are start states.
fn describe_states(
    model: &Model,
    program: &Program,
    explorer: &mut Explorer,
    start_count: usize,
) -> Vec<State> {
    let mut first_state: Vec<Number> = Vec::new();
    let mut states = Vec::new();
    for state in 0..explorer.len() as u32 {
        explorer.load(state);
        let frame = &explorer.machine.frame[..program.slots.len()];
        let reference = match state {
            0 => &program.frame,
            _ => &first_state,
        };
        let slots = program.slots.iter().zip(frame).zip(reference);
        states.push(State {
            start: (state as usize) < start_count,
            values: slots
                .filter(|((_, value), reference)| value != reference)
                .map(|((slot, &value), _)| VariableValue {
                    variable: slot.name.clone(),
                    value: model.show(slot.ty, value),
                })
                .collect(),
        });
        if state == 0 {
            first_state = frame.to_vec();
        }
    }
    states
}

/// Computes the values of all scalars in each reachable state. The states are in the order in which the search finds
/// them.
///
/// # Errors
/// The model has more than `max_states` states or is invalid, or a start state or rule ends in a fault; one sentence.
pub fn states(model: &Model, max_states: usize) -> Result<Vec<Vec<Number>>, String> {
    if let Some(error) = model.validate().first() {
        return Err(error.to_string());
    }
    let program = compile(model, Notes::Omitted);
    let view = View::whole(&program, model.deadlock);
    let mut explorer = Explorer::new(&program, &view);
    explorer
        .start()
        .map_err(|fault| fault_text(model, &program, fault))?;
    let mut all_states = Vec::new();
    while all_states.len() < explorer.len() {
        let state = all_states.len() as u32;
        explorer.load(state);
        all_states.push(explorer.machine.frame[..program.slots.len()].to_vec());
        let expanded = explorer.expand(state, RuleSelection::All, |_, _| true);
        expanded.map_err(|failed| fault_text(model, &program, failed.fault))?;
        if explorer.len() > max_states {
            return Err(too_many_states_error(max_states));
        }
    }
    Ok(all_states)
}

/// Description of a fault, as a clause.
fn fault_text(model: &Model, program: &Program, fault: Fault) -> String {
    match program.explain(model, fault) {
        Ok(violation) => violation.to_string(),
        Err(message) => message,
    }
}

fn too_many_states_error(max_states: usize) -> String {
    let states = counted(max_states as u64, "state");
    format!("the state graph has more than {states}, too many to examine")
}

/// Returns the states on the path of a trace, from its start state. The path ends early where the trace does not fit
/// the model.
fn states_on_path(explorer: &mut Explorer, trace: &Trace) -> Vec<u32> {
    let mut path = Vec::new();
    if (trace.start_index as usize) < explorer.program.start_count() as usize
        && explorer.machine.start(trace.start_index) == Ok(true)
    {
        path.extend(explorer.find());
    }
    for step in &trace.steps {
        let rule = explorer.program.rule(step.rule_index);
        let (Some(rule), Some(&state)) = (rule, path.last()) else {
            break;
        };
        explorer.load(state);
        if explorer.machine.is_enabled(rule, step.rule_index) != Ok(true)
            || explorer.machine.fire(rule, step.rule_index) != Ok(true)
        {
            break;
        }
        path.extend(explorer.find());
    }
    path
}

impl Graph {
    /// Renders the graph in the DOT language of Graphviz. Start states have a double border; the counterexample is bold
    /// and red.
    pub fn dot(&self) -> String {
        let mut text = format!(
            "digraph {} {{\n  node [shape=box, fontname=\"monospace\"];\n  edge [fontname=\"monospace\"];\n",
            quote(&self.model)
        );
        // Attributes of nodes and edges on the counterexample.
        const MARKED: &str = ", color=red, penwidth=2";
        for (number, state) in self.states.iter().enumerate() {
            let values = state.values.iter();
            let mut lines = vec![number.to_string()];
            lines.extend(values.map(|s| format!("{} = {}", s.variable, s.value)));
            let border = if state.start { ", peripheries=2" } else { "" };
            let marked = match self.path.contains(&(number as u32)) {
                true => MARKED,
                false => "",
            };
            let label = quote(&lines.join("\n"));
            let _ = writeln!(text, "  s{number} [label={label}{border}{marked}];");
        }
        for (number, edge) in self.edges.iter().enumerate() {
            let marked = if edge.marked { MARKED } else { "" };
            let label = quote(&edge.rule);
            let from = edge.from;
            match (edge.to, &edge.fault) {
                (Some(to), _) => {
                    let _ = writeln!(text, "  s{from} -> s{to} [label={label}{marked}];");
                }
                (None, fault) => {
                    let reason = fault.as_deref().unwrap_or("left out by an assumption");
                    let reason = quote(reason);
                    let _ = writeln!(
                        text,
                        "  f{number} [label={reason}, shape=plaintext{marked}];"
                    );
                    let _ = writeln!(text, "  s{from} -> f{number} [label={label}{marked}];");
                }
            }
        }
        text + "}\n"
    }
}

/// Quotes a string for Graphviz.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
