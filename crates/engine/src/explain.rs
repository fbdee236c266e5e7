//! Explanation of a counterexample's last state: waits between agents, blocked rules with the reason, and the rules
//! that can still fire.

use crate::compile::{compile, Notes};
use crate::explore::Explorer;
use crate::interpret::Machine;
use crate::model::{Expr, Model, Note, Number, Operator, Phrase, Rule, Stmt, VariableId};
use crate::program::{Program, RuleSelection};
use crate::report::Property;
use crate::search::Path;
use crate::trace::{note_event, replay_path, Trace};
use crate::view::View;
use rustc_hash::FxHashSet;
use serde::Serialize;

/// A sentence about every state that satisfies a condition, for each value of its parameters; for example, that an
/// agent waits.
#[derive(Clone, Debug)]
pub struct Remark {
    /// Bound variables; one sentence for each combination of their values.
    pub parameters: Vec<VariableId>,
    /// Condition under which the sentence is true.
    pub when: Expr,
    /// The sentence, which may contain the values of the parameters.
    pub phrase: Phrase,
}

/// Reason why no rule leads to another state.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Explanation {
    /// Waits between agents, as sentences; only for models with remarks.
    pub wait_for: Vec<String>,
    /// Rules of a deadlock, each with the reason why it is blocked, in the order of the model; only for models
    /// without remarks.
    pub blocked: Vec<Blocked>,
    /// Number of further rules, if they are too many to list.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// States still reachable, if a quiescence or liveness property is violated.
    pub reachable: Option<ReachableStates>,
}

/// A rule that does not lead to another state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Blocked {
    /// Name with the values of its parameters.
    pub rule: String,
    /// Conjuncts of its guard that are false, as `write` renders them. Conjuncts that cannot be evaluated are omitted.
    /// Empty if its guard holds.
    pub failed_conditions: Vec<String>,
    /// Reason why it leads to no other state although its guard holds, as a predicate of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// States reachable from the last state. For quiescence, spontaneous rules are excluded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ReachableStates {
    /// Number of states, including the last one.
    pub states: u64,
    /// True if there may be more states; the exploration stopped at its limit.
    #[serde(rename = "more")]
    pub is_partial: bool,
    /// Names of the rules that fire in them, with the values of their parameters, in the order of their first firing.
    pub rules: Vec<String>,
}

/// Number of explored states at which the exploration from the last state stops.
const MAX_STATES: usize = 1 << 16;

/// Maximum number of blocked rules listed.
const MAX_BLOCKED_RULES: usize = 1000;

/// Explains a counterexample to [`Property::NoDeadlock`], [`Property::Drain`], [`Property::Liveness`] or
/// [`Property::HigherLayer`].
/// Returns `None` for other properties, whose last step is the explanation, for a trace of another model, and for a
/// model that is [deeply nested](Model::deeply_nested).
/// `write` renders a condition of the model in the reader's notation.
pub fn explain(
    model: &Model,
    remarks: &[Remark],
    property: &Property,
    trace: &Trace,
    write: &dyn Fn(&Model, &Expr) -> String,
) -> Option<Explanation> {
    // A reader cannot use a condition that is nested so deeply.
    if model.deeply_nested {
        return None;
    }
    if !matches!(
        property,
        Property::NoDeadlock | Property::Drain | Property::Liveness(_) | Property::HigherLayer(_)
    ) {
        return None;
    }
    let program = compile(model, Notes::Compiled);
    let path = Path {
        start: trace.start_index,
        rules: trace.steps.iter().map(|step| step.rule_index).collect(),
    };
    let last = replay_path(model, &program, &path).ok()?.machine.frame;
    let last = &last[..program.slots.len()];
    let mut explanation = Explanation {
        wait_for: describe_waits(model, remarks, last),
        ..Explanation::default()
    };
    match property {
        Property::NoDeadlock if remarks.is_empty() => {
            (explanation.blocked, explanation.omitted) =
                blocked_rules(model, &program, last, write);
        }
        Property::NoDeadlock => {}
        _ => {
            explanation.reachable = Some(reachable_states(
                model,
                &program,
                last,
                match property {
                    Property::Drain => RuleSelection::NonSpontaneous,
                    _ => RuleSelection::All,
                },
            ))
        }
    }
    Some(explanation)
}

/// A model with the same variables but other rules, and without claims and start states.
fn with_rules(model: &Model, rules: Vec<Rule>) -> Model {
    let mut other = model.clone();
    other.rules = rules;
    other.starts.clear();
    other.invariants.clear();
    other.quiescent = None;
    other.covers.clear();
    other.liveness.clear();
    other.assumptions.clear();
    other
}

/// A rule without a name, with the default priority.
fn make_rule(parameters: &[VariableId], guard: Expr, body: Vec<Stmt>) -> Rule {
    Rule {
        name: String::new(),
        parameters: parameters.to_vec(),
        guard,
        body,
        spontaneous: false,
        priority: 0,
    }
}

/// Creates a machine in this state.
fn machine_in_state<'a>(program: &'a Program, state: &[Number]) -> Machine<'a> {
    let mut machine = Machine::new(program);
    machine.frame[..state.len()].copy_from_slice(state);
    machine
}

/// Returns the sentences of all remarks that are true in a state.
fn describe_waits(model: &Model, remarks: &[Remark], state: &[Number]) -> Vec<String> {
    let to_rule = |remark: &Remark| {
        let note = Stmt::Note(Note::Event {
            kind: 0,
            values: Vec::new(),
            phrase: remark.phrase.clone(),
        });
        make_rule(&remark.parameters, remark.when.clone(), vec![note])
    };
    let remark_model = with_rules(model, remarks.iter().map(to_rule).collect());
    let program = compile(&remark_model, Notes::Compiled);
    let mut machine = machine_in_state(&program, state);
    for instance in &program.rules {
        let mut numbers = instance.numbers();
        while let Some(from) = numbers.next() {
            let Ok(Some(number)) = machine.next_enabled(instance, from) else {
                break;
            };
            numbers.start = number + 1;
            let _ = machine.fire(instance, number);
        }
    }
    let mut sentences = Vec::new();
    for (note, values) in std::mem::take(&mut machine.notes) {
        let event = note_event(&remark_model, &program.notes[note as usize], &values);
        let sentence = event.map(|event| event.text).unwrap_or_default();
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}

/// Collects the conjuncts of a condition from left to right, each within the aliases and local values around it.
fn collect_conjuncts(e: &Expr, wrap: &dyn Fn(Expr) -> Expr, result: &mut Vec<Expr>) {
    match e.without_line() {
        Expr::Binary(Operator::And, a, b) => {
            collect_conjuncts(a, wrap, result);
            collect_conjuncts(b, wrap, result);
        }
        Expr::Alias(id, place, e) => {
            let named = |e| wrap(Expr::Alias(*id, place.clone(), Box::new(e)));
            collect_conjuncts(e, &named, result);
        }
        Expr::Let(id, value, e) => {
            let named = |e| wrap(Expr::Let(*id, value.clone(), Box::new(e)));
            collect_conjuncts(e, &named, result);
        }
        e => result.push(wrap(e.clone())),
    }
}

/// A model in which each conjunct of a guard is the guard of a separate rule.
struct ConjunctModel {
    /// The compiled model.
    program: Program,
    /// Per rule of the original model: index of its first conjunct among all. One more entry marks the end.
    first_conjunct: Vec<usize>,
    /// Per conjunct: its text.
    texts: Vec<String>,
    /// Per conjunct: number of its first instance; `None` if it has none. The instances of one conjunct are consecutive,
    /// and numbered in the order of the original rule's instances.
    first_instances: Vec<Option<u32>>,
}

impl ConjunctModel {
    /// Splits the guards of a model.
    fn new(model: &Model, write: &dyn Fn(&Model, &Expr) -> String) -> ConjunctModel {
        let mut conjunct_rules = Vec::new();
        let mut first_conjunct = Vec::new();
        for model_rule in &model.rules {
            first_conjunct.push(conjunct_rules.len());
            let mut guard_conjuncts = Vec::new();
            collect_conjuncts(&model_rule.guard, &|e| e, &mut guard_conjuncts);
            let rules = guard_conjuncts
                .into_iter()
                .map(|e| make_rule(&model_rule.parameters, e, Vec::new()));
            conjunct_rules.extend(rules);
        }
        first_conjunct.push(conjunct_rules.len());
        let texts: Vec<String> = (conjunct_rules.iter())
            .map(|rule| write(model, &rule.guard))
            .collect();
        let program = compile(&with_rules(model, conjunct_rules), Notes::Omitted);
        let mut first_instances = vec![None; texts.len()];
        for instance in &program.rules {
            first_instances[instance.source as usize].get_or_insert(instance.number);
        }
        ConjunctModel {
            program,
            first_conjunct,
            texts,
            first_instances,
        }
    }

    /// Texts of the conjuncts that are false in the state of a machine of this model. `rule` is the index of the original
    /// rule, and `offset` the position of the instance among those of this rule.
    fn failed_conditions(&self, machine: &mut Machine, rule: usize, offset: u32) -> Vec<String> {
        let mut failed_conditions = Vec::new();
        for conjunct in self.first_conjunct[rule]..self.first_conjunct[rule + 1] {
            let Some(number) = self.first_instances[conjunct].map(|first| first + offset) else {
                continue;
            };
            // A conjunct that cannot be evaluated is protected by an earlier one, which is false.
            let instance = self.program.rule(number);
            if instance.is_some_and(|instance| machine.is_enabled(instance, number) == Ok(false)) {
                failed_conditions.push(self.texts[conjunct].clone());
            }
        }
        failed_conditions
    }
}

/// Returns the rules of a deadlocked state with their reasons, and the number of further rules.
fn blocked_rules(
    model: &Model,
    program: &Program,
    state: &[Number],
    write: &dyn Fn(&Model, &Expr) -> String,
) -> (Vec<Blocked>, u64) {
    let conjuncts = ConjunctModel::new(model, write);
    let mut conjunct_machine = machine_in_state(&conjuncts.program, state);
    let mut machine = machine_in_state(program, state);
    let first_enabled = first_enabled_rule(program, &mut machine);
    let mut blocked = Vec::new();
    let mut omitted = 0;
    // Source of the current instance, and the number of the first instance with this source.
    let (mut current_source, mut first_number) = (u32::MAX, 0);
    for instance in &program.rules {
        let source = instance.source as usize;
        if current_source != instance.source {
            (current_source, first_number) = (instance.source, instance.number);
        }
        if instance.guard.is_none() {
            continue;
        }
        for number in instance.numbers() {
            if blocked.len() == MAX_BLOCKED_RULES {
                omitted += u64::from(instance.numbers().end - number);
                break;
            }
            let offset = number - first_number;
            let mut failed_conditions =
                conjuncts.failed_conditions(&mut conjunct_machine, source, offset);
            let enabled = machine.is_enabled(instance, number) != Ok(false);
            if failed_conditions.is_empty() && !enabled {
                failed_conditions.push(write(model, &model.rules[source].guard));
            }
            let reason = enabled.then(|| match first_enabled {
                Some((priority, first)) if priority < instance.priority => {
                    let first = program.rule_name(model, first);
                    format!("is held back by `{first}`, which has a smaller priority")
                }
                _ => {
                    let fired = machine.fire(instance, number);
                    machine.undo();
                    match fired {
                        Ok(false) => "does not fire, as an assumption in it does not hold".into(),
                        _ => "is enabled, but leads to no new state".into(),
                    }
                }
            });
            blocked.push(Blocked {
                rule: program.rule_name(model, number),
                failed_conditions,
                reason,
            });
        }
    }
    (blocked, omitted)
}

/// First enabled rule of the smallest priority in a machine's state, with that priority.
fn first_enabled_rule(program: &Program, machine: &mut Machine) -> Option<(i32, u32)> {
    let numbers = program.rules.iter().filter_map(|instance| {
        let number = machine.next_enabled(instance, instance.number).ok()??;
        Some((instance.priority, number))
    });
    numbers.min()
}

/// Explores the states that are reachable from `state`.
fn reachable_states(
    model: &Model,
    program: &Program,
    state: &[Number],
    selection: RuleSelection,
) -> ReachableStates {
    let view = View::whole(program, model.deadlock);
    let mut explorer = Explorer::new(program, &view);
    explorer.machine.frame[..state.len()].copy_from_slice(state);
    explorer.enter();
    let mut fired_rules = FxHashSet::default();
    let mut rules = Vec::new();
    let mut next = 0;
    while (next as usize) < explorer.len() && explorer.len() <= MAX_STATES {
        let _ = explorer.expand(next, selection, |step, _| {
            if fired_rules.insert(step.rule) {
                rules.push(program.rule_name(model, step.rule));
            }
            true
        });
        next += 1;
    }
    ReachableStates {
        states: explorer.len() as u64,
        is_partial: (next as usize) < explorer.len(),
        rules,
    }
}
