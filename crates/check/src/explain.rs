//! Why nothing leads on from where a counterexample ends: who waits for whom, which rules are blocked and by what,
//! and what rules can still do.

use crate::compile::compile;
use crate::explore::Explorer;
use crate::interpret::Machine;
use crate::model::*;
use crate::murphi;
use crate::program::Program;
use crate::report::Property;
use crate::search::{Path, View};
use crate::trace::{said, tell, Trace};
use serde::Serialize;

/// What can be said of states in which it holds, for each value of its parameters: somebody waits for something.
#[derive(Clone, Debug)]
pub struct Remark {
    /// Bound variables.
    pub parameters: Vec<VariableId>,
    /// When there is something to say.
    pub when: Expr,
    /// What there is to say.
    pub words: Phrase,
}

/// Why nothing leads on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Explanation {
    /// Who waits for whom, as sentences; only of models that come with remarks.
    pub waits: Vec<String>,
    /// Why each rule of a deadlock does not lead on, in the order of the model; only of models without remarks.
    pub blocked: Vec<Blocked>,
    /// What can still be reached, where something that should stay within reach is out of it.
    pub still: Option<Still>,
}

/// A rule that does not lead on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Blocked {
    /// Name with the values of its parameters.
    pub rule: String,
    /// The conditions of its guard that do not hold, as Murphi; those that can be evaluated.
    /// Empty if it may fire and yet does not lead on.
    pub fails: Vec<String>,
}

/// What can be reached from the last state. For drain, spontaneous rules do not count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Still {
    /// How many states, the last one included.
    pub states: u64,
    /// Whether there may be more, which were not looked for.
    pub more: bool,
    /// Names of the rules that fire in them, with the values of their parameters, in the order in which they are met.
    pub rules: Vec<String>,
}

/// Not more states than this are looked for from the last one.
const MOST_STATES: usize = 1 << 16;

/// Explains a counterexample to [`Property::NoDeadlock`], [`Property::Drain`] or [`Property::Liveness`];
/// `None` for other properties, whose last step says it all, and for a trace that is not of this model.
pub fn explain(
    model: &Model,
    remarks: &[Remark],
    property: &Property,
    trace: &Trace,
) -> Option<Explanation> {
    if !matches!(
        property,
        Property::NoDeadlock | Property::Drain | Property::Liveness(_)
    ) {
        return None;
    }
    let program = compile(model, true);
    let path = Path {
        start: trace.start_index,
        rules: trace.steps.iter().map(|step| step.rule_index).collect(),
    };
    let last = tell(model, &program, &path).ok()?.machine.frame;
    let last = &last[..program.slots.len()];
    let mut explanation = Explanation {
        waits: waits(model, remarks, last),
        ..Explanation::default()
    };
    match property {
        Property::NoDeadlock if remarks.is_empty() => {
            explanation.blocked = blocked(model, &program, last);
        }
        Property::NoDeadlock => {}
        _ => explanation.still = Some(still(model, &program, last, *property != Property::Drain)),
    }
    Some(explanation)
}

/// The same variables with other rules, and nothing else that needs code.
fn with_rules(model: &Model, rules: Vec<Rule>) -> Model {
    Model {
        rules,
        starts: Vec::new(),
        invariants: Vec::new(),
        quiescent: None,
        covers: Vec::new(),
        liveness: Vec::new(),
        assumptions: Vec::new(),
        ..model.clone()
    }
}

fn rule(parameters: &[VariableId], guard: Expr, body: Vec<Stmt>) -> Rule {
    Rule {
        name: String::new(),
        parameters: parameters.to_vec(),
        guard,
        body,
        spontaneous: false,
        priority: 0,
    }
}

/// A machine in this state.
fn machine<'a>(program: &'a Program, state: &[i32]) -> Machine<'a> {
    let mut machine = Machine::new(program);
    machine.frame[..state.len()].copy_from_slice(state);
    machine
}

fn waits(model: &Model, remarks: &[Remark], state: &[i32]) -> Vec<String> {
    let tells = |remark: &Remark| {
        let note = Stmt::Note(Note {
            agent: Expr::Int(0),
            action: NoteAction::Does(remark.words.clone()),
            line: None,
            visible: true,
        });
        rule(&remark.parameters, remark.when.clone(), vec![note])
    };
    let telling = with_rules(model, remarks.iter().map(tells).collect());
    let program = compile(&telling, true);
    let mut machine = machine(&program, state);
    for instance in &program.rules {
        if machine.enabled(instance) == Ok(true) {
            let _ = machine.fire(instance);
        }
    }
    let mut sentences = Vec::new();
    for (note, values) in std::mem::take(&mut machine.notes) {
        let sentence = said(&telling, &program.notes[note as usize], &values);
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}

/// The conjuncts of a condition, from left to right.
fn conjuncts<'e>(e: &'e Expr, all: &mut Vec<&'e Expr>) {
    match e.without_line() {
        Expr::Binary(Operator::And, a, b) => {
            conjuncts(a, all);
            conjuncts(b, all);
        }
        _ => all.push(e),
    }
}

fn blocked(model: &Model, program: &Program, state: &[i32]) -> Vec<Blocked> {
    // Each conjunct is the guard of a rule of its own.
    let mut split = Vec::new();
    let mut first = Vec::new();
    for one in &model.rules {
        first.push(split.len());
        let mut all = Vec::new();
        conjuncts(&one.guard, &mut all);
        let rules = all
            .into_iter()
            .map(|e| rule(&one.parameters, e.clone(), Vec::new()));
        split.extend(rules);
    }
    first.push(split.len());
    let texts: Vec<String> = (split.iter())
        .map(|rule| murphi::expression(model, &rule.guard))
        .collect();
    let split = with_rules(model, split);
    let conditions = compile(&split, false);
    let mut tests = machine(&conditions, state);
    let mut own = machine(program, state);
    let mut blocked = Vec::new();
    for (number, instance) in program.rules.iter().enumerate() {
        if instance.guard.is_none() {
            continue;
        }
        let source = instance.source as usize;
        let of = first[source] as u32..first[source + 1] as u32;
        let mut fails = Vec::new();
        let tested = conditions.rules.iter();
        let tested =
            tested.filter(|test| of.contains(&test.source) && test.arguments == instance.arguments);
        for test in tested {
            // What cannot be evaluated is guarded by a condition before it, which fails.
            if tests.enabled(test) == Ok(false) {
                fails.push(texts[test.source as usize].clone());
            }
        }
        if fails.is_empty() && own.enabled(instance) == Ok(false) {
            fails.push(murphi::expression(model, &model.rules[source].guard));
        }
        blocked.push(Blocked {
            rule: program.rule_name(model, number as u32),
            fails,
        });
    }
    blocked
}

fn still(model: &Model, program: &Program, state: &[i32], spontaneous: bool) -> Still {
    let view = View::whole(program, model.deadlock);
    let mut explorer = Explorer::new(program, &view);
    explorer.machine.frame[..state.len()].copy_from_slice(state);
    explorer.enter();
    let mut met = vec![false; program.rules.len()];
    let mut rules = Vec::new();
    let mut next = 0;
    while (next as usize) < explorer.len() && explorer.len() <= MOST_STATES {
        let _ = explorer.expand(next, spontaneous, |one, _| {
            if !std::mem::replace(&mut met[one.rule as usize], true) {
                rules.push(program.rule_name(model, one.rule));
            }
            true
        });
        next += 1;
    }
    Still {
        states: explorer.len() as u64,
        more: (next as usize) < explorer.len(),
        rules,
    }
}
