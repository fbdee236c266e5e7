//! Readable counterexamples: the rules that fired, the changes of each, and their chart.

use crate::compile::{compile, compile_with_loop_checks, Notes};
use crate::interpret::{Fault, Machine};
use crate::model::{Model, Note, Number, Piece};
use crate::program::Program;
use crate::search::{Path, NO_START};
use crate::symmetry_check::LoopChecks;
use crate::trace_events::{NoteEvent, TraceEvents};
use cohkit_base::sequence::Sequence;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A path through a model's states, from a start state on.
///
/// [`replay`] needs only `start_index` and each step's `rule_index` to repeat the path; [`crate::replay::replay_trace`]
/// compares the rest with the repeated run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trace {
    /// Name of the start state.
    pub start: String,
    /// Index of the start state, counted over all instances.
    pub start_index: u32,
    /// Values in the start state that differ from the initial values of variables.
    pub initial: Vec<VariableValue>,
    /// The rules that fire, in order.
    pub steps: Vec<TraceStep>,
    /// Chart made by the model's renderer; empty if it has none.
    #[serde(default)]
    pub sequence: Sequence,
    /// Fault of the last step, if it could not be completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// True if the replay checked that loops over scalarsets are independent of their order. Only such a trace can end
    /// at a loop whose iterations conflict.
    /// Earlier versions recorded it as `watched`.
    #[serde(default, alias = "watched", skip_serializing_if = "std::ops::Not::not")]
    pub loops_checked: bool,
}

/// Value of one scalar in the state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VariableValue {
    /// Name of the scalar, such as `cells[2].state`.
    pub variable: String,
    /// Value: a label, `true`, or a number.
    pub value: String,
}

/// One rule that fires.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TraceStep {
    /// Name with the values of its parameters.
    pub rule: String,
    /// Index of the rule, counted over all instances in the order of the model.
    pub rule_index: u32,
    /// Changed scalars of the state, in the order of the variables.
    pub changes: Vec<Change>,
}

/// Scalar of the state that changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// Name of the scalar, such as `cells[2].state`.
    pub variable: String,
    /// Value before the step, as in [`VariableValue::value`].
    pub from: String,
    /// Value after the step.
    pub to: String,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "start: {}", self.start)?;
        for VariableValue { variable, value } in &self.initial {
            writeln!(f, "     {variable} = {value}")?;
        }
        for (i, step) in self.steps.iter().enumerate() {
            writeln!(f, "{:>3}. {}", i + 1, step.rule)?;
            for Change { variable, from, to } in &step.changes {
                writeln!(f, "     {variable}: {from} -> {to}")?;
            }
        }
        match &self.fault {
            Some(fault) => writeln!(f, "     here {fault}"),
            None => Ok(()),
        }
    }
}

/// Replays a path, given as in [`Trace::start_index`] and [`TraceStep::rule_index`].
///
/// # Errors
/// An index that the model does not have, a rule that is not enabled when it should fire, or steps after one that
/// faults. Errors of the model itself are returned unchanged.
pub fn replay(model: &Model, start: u32, rules: &[u32]) -> Result<Trace, String> {
    if let Some(error) = model.validate().first() {
        return Err(error.to_string());
    }
    let program = compile(model, Notes::Compiled);
    let path = Path {
        start,
        rules: rules.to_vec(),
    };
    replay_path(model, &program, &path).map(|replayed| replayed.trace)
}

/// A trace, with the machine in its last state.
pub(crate) struct ReplayedTrace<'a> {
    /// Steps and states of the path.
    pub trace: Trace,
    /// Machine in the last state.
    pub machine: Machine<'a>,
    /// Fault of the last step, if it could not be completed.
    pub fault: Option<Fault>,
}

/// Replays a path on a program that was compiled with notes. Errors name the step, counted from 1.
pub(crate) fn replay_path<'a>(
    model: &Model,
    program: &'a Program,
    path: &Path,
) -> Result<ReplayedTrace<'a>, String> {
    if path.start >= program.start_count() {
        return Err(format!(
            "there is no start state {}; the model has {}, counted from 0",
            path.start,
            program.start_count()
        ));
    }
    let mut machine = Machine::new(program);
    let start = machine.start(path.start);
    if start == Ok(false) {
        return Err("an assumption excludes the start state".into());
    }
    let mut fault = start.err();
    let mut trace = Trace {
        start: program.start_name(model, path.start),
        start_index: path.start,
        initial: changed_slots(program, &program.frame, &machine.frame)
            .map(|slot| VariableValue {
                variable: program.slots[slot].name.clone(),
                value: show(model, program, slot, &machine.frame),
            })
            .collect(),
        steps: Vec::new(),
        sequence: Sequence {
            agents: model.agents.clone(),
            steps: Vec::new(),
        },
        fault: fault.map(|fault| describe_fault(model, program, fault)),
        loops_checked: false,
    };
    let slots = program.slots.len();
    let mut events = model
        .trace_renderer
        .and_then(|renderer| renderer.begin(model, &machine.frame[..slots]));
    append_notes(model, program, &mut machine, &mut events);
    for (i, &rule) in path.rules.iter().enumerate() {
        let step = i + 1;
        if let (Some(fault), Some(_)) = (&trace.fault, program.rule(rule)) {
            let name = program.rule_name(model, rule);
            return Err(format!(
                "step {step}: `{name}` cannot fire: {fault} before it"
            ));
        }
        let state_before = machine.frame[..slots].to_vec();
        fault = fire_step(model, program, &mut machine, step, rule)?;
        trace.fault = fault.map(|fault| describe_step_fault(model, program, &mut machine, fault));
        let name = program.rule_name(model, rule);
        if let Some(events) = &mut events {
            events.step(&name, &state_before, &machine.frame[..slots]);
        }
        let changes = changed_slots(program, &state_before, &machine.frame).map(|slot| Change {
            variable: program.slots[slot].name.clone(),
            from: show(model, program, slot, &state_before),
            to: show(model, program, slot, &machine.frame),
        });
        trace.steps.push(TraceStep {
            rule: name,
            rule_index: rule,
            changes: changes.collect(),
        });
        append_notes(model, program, &mut machine, &mut events);
    }
    if let Some(events) = events {
        trace.sequence = events.end();
    }
    Ok(ReplayedTrace {
        trace,
        machine,
        fault,
    })
}

/// Describes the fault of a step, with the orders of loops whose results differ, if these are the reason.
fn describe_step_fault(
    model: &Model,
    program: &Program,
    machine: &mut Machine,
    fault: Fault,
) -> String {
    let description = describe_fault(model, program, fault);
    match machine.conflict.take() {
        Some(conflict) => {
            let conflict = conflict.describe(model, program);
            let advice = match program.provisional_sets(fault.instruction).is_empty() {
                true => "; `--symmetry off` uses the order of the file and gives a verdict",
                false => "",
            };
            format!("{description}: {conflict}{advice}")
        }
        None => description,
    }
}

/// Fires the rule of a step, counted from 1. Returns the fault in which it ends, if any.
///
/// # Errors
/// The model has no such rule, the rule is not enabled, or an assumption excludes its result.
fn fire_step(
    model: &Model,
    program: &Program,
    machine: &mut Machine,
    step: usize,
    rule: u32,
) -> Result<Option<Fault>, String> {
    let Some(instance) = program.rule(rule) else {
        return Err(format!(
            "step {step}: there is no rule {rule}; the model has {}, counted from 0",
            program.rule_count()
        ));
    };
    let fired = match machine.is_enabled(instance, rule) {
        Ok(true) => machine.fire(instance, rule),
        Ok(false) => {
            let name = program.rule_name(model, rule);
            return Err(format!("step {step}: `{name}` is not enabled there"));
        }
        Err(fault) => Err(fault),
    };
    match fired {
        Ok(true) => Ok(None),
        Ok(false) => Err(format!(
            "step {step}: an assumption excludes the result of `{}`",
            program.rule_name(model, rule)
        )),
        Err(fault) => Ok(Some(fault)),
    }
}

/// Indices of the slots in which two frames differ.
fn changed_slots<'f>(
    program: &Program,
    before: &'f [Number],
    after: &'f [Number],
) -> impl Iterator<Item = usize> + 'f {
    (0..program.slots.len()).filter(|&slot| before[slot] != after[slot])
}

/// Text of a slot's value in a frame.
fn show(model: &Model, program: &Program, slot: usize, frame: &[Number]) -> String {
    model.show(program.slots[slot].ty, frame[slot])
}

/// Description of a fault as a clause.
fn describe_fault(model: &Model, program: &Program, fault: Fault) -> String {
    match program.explain(model, fault) {
        Ok(violation) => violation.to_string(),
        Err(message) => message,
    }
}

/// Appends the machine's notes to the trace events.
fn append_notes(
    model: &Model,
    program: &Program,
    machine: &mut Machine,
    events: &mut Option<Box<dyn TraceEvents + '_>>,
) {
    for (note, values) in std::mem::take(&mut machine.notes) {
        if let Some(events) = events {
            let event = note_event(model, &program.notes[note as usize], &values);
            event.into_iter().for_each(|event| events.add_event(event));
        }
    }
}

/// Returns the trace of a path that a search has found. With a non-empty `loop_checks`, the replay checks the orders
/// of loops as the search did.
pub(crate) fn trace_of_path(model: &Model, path: &Path, loop_checks: LoopChecks) -> Trace {
    if path.start == NO_START {
        return Trace {
            start: "none".into(),
            start_index: 0,
            initial: Vec::new(),
            steps: Vec::new(),
            sequence: Sequence {
                agents: model.agents.clone(),
                steps: Vec::new(),
            },
            fault: None,
            loops_checked: false,
        };
    }
    let loops_checked = !loop_checks.is_empty();
    let program = compile_with_loop_checks(model, Notes::Compiled, loop_checks);
    match replay_path(model, &program, path) {
        Ok(replayed) => Trace {
            loops_checked,
            ..replayed.trace
        },
        Err(reason) => panic!("a path of the search can be walked, but {reason}"),
    }
}

/// Returns the event of a note with these values; `None` for a note that is only a mark.
pub(crate) fn note_event(model: &Model, note: &Note, values: &[Number]) -> Option<NoteEvent> {
    let Note::Event {
        kind,
        values: own_values,
        phrase,
    } = note
    else {
        return None;
    };
    let (own_values, phrase_values) = values.split_at(own_values.len());
    let mut phrase_values = PhraseRenderer {
        model,
        values: phrase_values.iter(),
    };
    Some(NoteEvent {
        kind: *kind,
        values: own_values.to_vec(),
        text: phrase_values.render(phrase),
    })
}

/// Substitutes values in phrases.
struct PhraseRenderer<'a> {
    /// Model with the names of agents and types.
    model: &'a Model,
    /// Values of the phrase, in the order in which they were emitted.
    values: std::slice::Iter<'a, Number>,
}

impl PhraseRenderer<'_> {
    fn next(&mut self) -> Number {
        self.values.next().copied().unwrap_or(0)
    }

    /// Skips the values of a phrase that is not rendered.
    fn skip(&mut self, phrase: &[Piece]) {
        for _ in 0..phrase.iter().map(Piece::value_count).sum() {
            self.next();
        }
    }

    /// Text of a phrase. Consumes its values, also those of the branch that is not shown.
    fn render(&mut self, phrase: &[Piece]) -> String {
        let mut text = String::new();
        for piece in phrase {
            match piece {
                Piece::Text(words) => text.push_str(words),
                Piece::Value(e) => {
                    let value = self.next();
                    let ty = self.model.type_of(e);
                    text.push_str(&ty.map_or(value.to_string(), |ty| self.model.show(ty, value)));
                }
                Piece::Agent(_) => {
                    let index = self.next();
                    let name = self.model.agents.get(index as usize);
                    text.push_str(&name.cloned().unwrap_or_else(|| index.to_string()));
                }
                Piece::Choice(_, a, b) => {
                    if self.next() != 0 {
                        text.push_str(&self.render(a));
                        self.skip(b);
                    } else {
                        self.skip(a);
                        text.push_str(&self.render(b));
                    }
                }
            }
        }
        text
    }
}
