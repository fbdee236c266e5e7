//! The state graph of a small model: every reachable state and every rule that fires in it, as DOT and as JSON.
//!
//! States and edges are in the order in which the search finds them, so the same model gives the same bytes.
//! Nothing is reduced: parts that are independent are seen together, and a violation does not end the walk.

use crate::compile::compile;
use crate::explore::Explorer;
use crate::interpret::Fault;
use crate::model::{Model, Number};
use crate::program::Program;
use crate::trace::{Setting, Trace};
use crate::view::View;
use cohkit_base::words::counted;
use serde::Serialize;
use std::fmt::Write;

/// A state graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Graph {
    /// The model's name.
    pub model: String,
    /// The states; edges refer to them by their position.
    pub states: Vec<State>,
    /// The rules that fire.
    pub edges: Vec<Edge>,
    /// The states of the counterexample that was to be marked, in its order; empty if there was none.
    pub path: Vec<u32>,
}

/// A state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct State {
    /// Whether it is a start state.
    pub start: bool,
    /// For the first state, the values other than those with which variables begin;
    /// for each other one, those that differ from the first state.
    pub values: Vec<Setting>,
}

/// A rule that fires in a state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Edge {
    /// The state it fires in.
    pub from: u32,
    /// The state it leads to; `None` if it cannot be completed, or if an assumption leaves that state out.
    pub to: Option<u32>,
    /// Name with the values of its parameters.
    pub rule: String,
    /// Which rule, as in [`crate::trace::TraceStep::rule_index`].
    pub rule_index: u32,
    /// What goes wrong, if it cannot be completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Whether the counterexample takes it.
    pub marked: bool,
}

/// The graph of a model with up to `most` states; the steps of `trace`, a trace of this model, are marked in it.
///
/// # Errors
/// That there are more states, or what is wrong with the model, in one sentence.
pub fn graph(model: &Model, most: usize, trace: Option<&Trace>) -> Result<Graph, String> {
    if let Some(error) = model.validate().first() {
        return Err(error.to_string());
    }
    let program = compile(model, false);
    let view = View::whole(&program, model.deadlock);
    let mut explorer = Explorer::new(&program, &view);
    let explain = |fault| said(model, &program, fault);
    if let Err(fault) = explorer.start() {
        return Err(explain(fault));
    }
    let starts = explorer.len();
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
        let expanded = explorer.expand(state, true, |one, _| {
            edges.push(edge(one.rule, one.to, None));
            true
        });
        if let Err(failed) = expanded {
            edges.push(edge(failed.rule, None, Some(explain(failed.fault))));
        }
        if explorer.len() > most {
            return Err(too_many(most));
        }
        state += 1;
    }
    let path = match trace {
        Some(trace) => path(&mut explorer, trace),
        None => Vec::new(),
    };
    for (&from, step) in path.iter().zip(trace.iter().flat_map(|trace| &trace.steps)) {
        let here = edges.partition_point(|edge| edge.from < from);
        let taken = edges[here..].iter_mut();
        let mut taken = taken.take_while(|edge| edge.from == from);
        if let Some(edge) = taken.find(|edge| edge.rule_index == step.rule_index) {
            edge.marked = true;
        }
    }
    let mut first: Vec<Number> = Vec::new();
    let mut states = Vec::new();
    for state in 0..explorer.len() as u32 {
        explorer.load(state);
        let frame = &explorer.machine.frame[..program.slots.len()];
        let values = program.slots.iter().zip(frame).enumerate();
        let values = values.filter(|&(i, (_, &value))| match first.get(i) {
            Some(&first) => value != first,
            None => value != program.frame[i],
        });
        let setting = |(_, (slot, &value)): (usize, (&crate::program::Slot, &Number))| Setting {
            variable: slot.name.clone(),
            value: model.show(slot.ty, value),
        };
        states.push(State {
            start: (state as usize) < starts,
            values: values.map(setting).collect(),
        });
        if state == 0 {
            first = frame.to_vec();
        }
    }
    Ok(Graph {
        model: model.name.clone(),
        states,
        edges,
        path,
    })
}

/// The numbers of all simple parts in each state that a model reaches, in the order in which the search finds them; up to
/// about `most` states.
///
/// # Errors
/// That there are more states, or what is wrong with the model, in one sentence.
pub fn states(model: &Model, most: usize) -> Result<Vec<Vec<Number>>, String> {
    if let Some(error) = model.validate().first() {
        return Err(error.to_string());
    }
    let program = compile(model, false);
    let view = View::whole(&program, model.deadlock);
    let mut explorer = Explorer::new(&program, &view);
    explorer
        .start()
        .map_err(|fault| said(model, &program, fault))?;
    let mut all = Vec::new();
    while all.len() < explorer.len() {
        let state = all.len() as u32;
        explorer.load(state);
        all.push(explorer.machine.frame[..program.slots.len()].to_vec());
        let expanded = explorer.expand(state, true, |_, _| true);
        expanded.map_err(|failed| said(model, &program, failed.fault))?;
        if explorer.len() > most {
            return Err(too_many(most));
        }
    }
    Ok(all)
}

/// What goes wrong, as a clause.
fn said(model: &Model, program: &Program, fault: Fault) -> String {
    match program.explain(model, fault) {
        Ok(violation) => violation.to_string(),
        Err(message) => message,
    }
}

fn too_many(most: usize) -> String {
    let states = counted(most as u64, "state");
    format!("the state graph has more than {states}, too many to look at")
}

/// The states that a trace goes through.
fn path(explorer: &mut Explorer, trace: &Trace) -> Vec<u32> {
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
        if explorer.machine.enabled(rule, step.rule_index) != Ok(true)
            || explorer.machine.fire(rule, step.rule_index) != Ok(true)
        {
            break;
        }
        path.extend(explorer.find());
    }
    path
}

impl Graph {
    /// The graph in the language of Graphviz. Start states have a double border;
    /// the counterexample is bold and red.
    pub fn dot(&self) -> String {
        let mut text = format!(
            "digraph {} {{\n  node [shape=box, fontname=\"monospace\"];\n  edge [fontname=\"monospace\"];\n",
            quoted(&self.model)
        );
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
            let label = quoted(&lines.join("\n"));
            let _ = writeln!(text, "  s{number} [label={label}{border}{marked}];");
        }
        for (number, edge) in self.edges.iter().enumerate() {
            let marked = if edge.marked { MARKED } else { "" };
            let label = quoted(&edge.rule);
            let from = edge.from;
            match (edge.to, &edge.fault) {
                (Some(to), _) => {
                    let _ = writeln!(text, "  s{from} -> s{to} [label={label}{marked}];");
                }
                (None, fault) => {
                    let what = fault.as_deref().unwrap_or("left out by an assumption");
                    let what = quoted(what);
                    let _ = writeln!(text, "  f{number} [label={what}, shape=plaintext{marked}];");
                    let _ = writeln!(text, "  s{from} -> f{number} [label={label}{marked}];");
                }
            }
        }
        text + "}\n"
    }
}

/// A text as Graphviz reads it.
fn quoted(text: &str) -> String {
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
