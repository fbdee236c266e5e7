//! Replay of counterexamples: a trace is compared with the model's behaviour, and its last state is judged.

use crate::compile::compile_with_loop_checks;
use crate::explore::Explorer;
use crate::interpret::Fault;
use crate::model::{Deadlock, Model, Number, Violation};
use crate::program::Program;
use crate::report::{asserted, stuck, Property};
use crate::search::Path;
use crate::trace::{tell, ReplayedTrace, Trace};
use crate::view::View;

/// Judgement of a trace's last state or step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The last state or step violates a property.
    Violated {
        /// The violated property.
        property: Property,
        /// Description of the violation, as a clause.
        message: String,
    },
    /// The last step exceeds a limit of the model ([`Violation::limit`]), as a clause.
    Exceeded(String),
    /// The last state has no violation.
    Sound,
    /// The states reachable from the last one are too many to decide drain or liveness.
    Open,
}

/// Maximum number of states explored from the last one. Beyond it, reachability is undecided.
const MAX_STATES: usize = 1 << 20;

/// Replays a trace, and judges its last state. `claim` is the property that the trace is said to violate, if known; it
/// is preferred among several violations.
///
/// Covers that no run reaches are not judged, since they do not depend on a single state.
///
/// # Errors
/// The first step at which the trace does not fit the model, with the reason: an invalid index, a different name, a
/// rule that is not enabled, or different values. Errors of the model itself are returned unchanged.
pub fn again(
    model: &Model,
    recorded: &Trace,
    claim: Option<&Property>,
) -> Result<(Trace, Ending), String> {
    if let Some(error) = model.validate().first() {
        return Err(error.to_string());
    }
    let settled = match recorded.watched {
        true => crate::symmetry_check::asymmetric_uses(model).1,
        false => Default::default(),
    };
    let program = compile_with_loop_checks(model, true, settled);
    let path = Path {
        start: recorded.start_index,
        rules: recorded.steps.iter().map(|step| step.rule_index).collect(),
    };
    // Walks only as far as names agree, so that the earlier of two mismatches is reported.
    let named = agreeing(model, &program, recorded);
    let walked = Path {
        start: path.start,
        rules: path.rules[..named
            .as_ref()
            .map_or_else(|(steps, _)| *steps, |()| path.rules.len())]
            .to_vec(),
    };
    let mut told = tell(model, &program, &walked)?;
    compare(recorded, &told.trace)?;
    named.map_err(|(_, why)| why)?;
    let ending = judge(model, &program, &mut told, claim);
    Ok((told.trace, ending))
}

/// Compares the names of the start state and rules with those of a trace. The error holds the number of steps that
/// agree, and a description of the next one.
fn agreeing(model: &Model, program: &Program, recorded: &Trace) -> Result<(), (usize, String)> {
    if recorded.start_index < program.start_count() {
        let name = program.start_name(model, recorded.start_index);
        if name != recorded.start {
            return Err((
                0,
                format!(
                    "start state {} is `{name}`, but the trace begins in `{}`",
                    recorded.start_index, recorded.start
                ),
            ));
        }
    }
    for (i, step) in recorded.steps.iter().enumerate() {
        if step.rule_index >= program.rule_count() {
            // The walk reports this error.
            return Ok(());
        }
        let name = program.rule_name(model, step.rule_index);
        if name != step.rule {
            return Err((
                i,
                format!(
                    "step {}: rule {} is `{name}`, but the trace says `{}`",
                    i + 1,
                    step.rule_index,
                    step.rule
                ),
            ));
        }
    }
    Ok(())
}

/// Compares the values of a trace with those of the replay.
fn compare(recorded: &Trace, told: &Trace) -> Result<(), String> {
    if recorded.initial != told.initial {
        let here = |of: &Trace| {
            of.initial
                .iter()
                .map(|s| (s.variable.clone(), s.value.clone()))
                .collect()
        };
        let said = difference(here(recorded), here(told));
        return Err(format!("start state `{}`: {said}", told.start));
    }
    for (i, (recorded, told)) in recorded.steps.iter().zip(&told.steps).enumerate() {
        if recorded.changes != told.changes {
            let here = |of: &crate::trace::TraceStep| {
                let changes = of.changes.iter();
                changes
                    .map(|c| (c.variable.clone(), format!("{} -> {}", c.from, c.to)))
                    .collect()
            };
            let said = difference(here(recorded), here(told));
            return Err(format!("step {}: `{}`: {said}", i + 1, told.rule));
        }
    }
    Ok(())
}

/// Description of the first entry in which two lists differ.
fn difference(recorded: Vec<(String, String)>, told: Vec<(String, String)>) -> String {
    let longer = recorded.len().max(told.len());
    let differ = (0..longer).find(|&i| recorded.get(i) != told.get(i));
    let entry = |of: &[(String, String)]| match differ.and_then(|i| of.get(i)) {
        Some((variable, value)) => format!("`{variable}` {value}"),
        None => "nothing more".into(),
    };
    format!(
        "the model has {}, but the trace says {}",
        entry(&told),
        entry(&recorded)
    )
}

/// Judges the state or step in which a trace ends.
fn judge(
    model: &Model,
    program: &Program,
    told: &mut ReplayedTrace,
    claim: Option<&Property>,
) -> Ending {
    if let Some(fault) = told.fault {
        return fault_ending(model, program, told, fault);
    }
    let mut broken = None;
    for invariant in &program.invariants {
        match told.machine.run(invariant.entry) {
            Ok(true) => {}
            Ok(false) => {
                let invariant = &model.invariants[invariant.invariant as usize];
                let said = Violation::new(&invariant.name, &invariant.why);
                let property = Property::Invariant(invariant.name.clone());
                let this = claim == Some(&property);
                let ending = Ending::Violated {
                    property,
                    message: said.to_string(),
                };
                if this {
                    return ending;
                }
                broken.get_or_insert(ending);
            }
            Err(fault) => return fault_ending(model, program, told, fault),
        }
    }
    if let Some(broken) = broken {
        return broken;
    }
    reach(model, program, told, claim)
}

/// Judgement of a last state or step with a fault.
fn fault_ending(model: &Model, program: &Program, told: &ReplayedTrace, fault: Fault) -> Ending {
    match program.explain(model, fault) {
        Ok(Violation { why, limit, .. }) if limit => {
            // The trace describes the orders of loops whose results differ.
            Ending::Exceeded(told.trace.fault.clone().unwrap_or(why))
        }
        Ok(violation) => Ending::Violated {
            property: asserted(model, &violation),
            message: violation.to_string(),
        },
        Err(message) => Ending::Violated {
            property: Property::WellDefined,
            message,
        },
    }
}

/// Judges deadlock, drain and liveness in the last state.
fn reach(
    model: &Model,
    program: &Program,
    told: &ReplayedTrace,
    claim: Option<&Property>,
) -> Ending {
    let view = View::whole(program, model.deadlock);
    let from = told.machine.frame[..program.slots.len()].to_vec();
    let quiescent = |explorer: &mut Explorer| {
        let conjuncts = program.quiescent.iter().flatten();
        conjuncts
            .copied()
            .all(|entry| explorer.machine.run(entry) == Ok(true))
    };
    let claims_drain = claim == Some(&Property::Drain);
    let claims_more = matches!(claim, Some(Property::Liveness(_)));
    if !claims_drain && !claims_more && model.deadlock != Deadlock::Off {
        let mut explorer = begin(program, &view, &from);
        let excepted = model.deadlock == Deadlock::ExceptQuiescent && quiescent(&mut explorer);
        let (mut moves, mut by_order) = (false, None);
        let complete = explorer.expand(0, true, |one, machine| {
            by_order = by_order.or(machine.move_by_order);
            moves |= match machine.move_by_order {
                None => one.to != Some(0) || model.deadlock == Deadlock::Stuck,
                Some(_) => model.deadlock == Deadlock::Stuck,
            };
            true
        });
        if let (Some(fault), false, false) = (by_order, moves, excepted) {
            // One state of the orbit has a move, and another has none.
            return fault_ending(model, program, told, fault);
        }
        if complete.is_ok() && !moves && !excepted {
            return Ending::Violated {
                property: Property::NoDeadlock,
                message: stuck(model).into(),
            };
        }
    }
    if let (Some(conjuncts), false) = (&program.quiescent, claims_more) {
        match out_of_reach(program, &view, &from, conjuncts, false) {
            Reach::Never { moves } => {
                return Ending::Violated {
                    property: Property::Drain,
                    message: match moves {
                        false => "dead end: only spontaneous events lead to other states".into(),
                        true => {
                            "livelock: without spontaneous events, no quiescent state is reachable"
                                .into()
                        }
                    },
                }
            }
            Reach::Unknown => return Ending::Open,
            Reach::Within => {}
        }
    }
    for (property, conjuncts) in &program.liveness {
        let name = &model.liveness[*property as usize].name;
        if claims_more && claim != Some(&Property::Liveness(name.clone())) {
            continue;
        }
        match out_of_reach(program, &view, &from, conjuncts, true) {
            Reach::Never { .. } => {
                return Ending::Violated {
                    property: Property::Liveness(name.clone()),
                    message: format!("`{name}` is no longer reachable"),
                }
            }
            Reach::Unknown => return Ending::Open,
            Reach::Within => {}
        }
    }
    Ending::Sound
}

/// Creates an explorer with this state only.
fn begin<'a>(program: &'a Program, view: &'a View, from: &[Number]) -> Explorer<'a> {
    let mut explorer = Explorer::new(program, view);
    explorer.machine.frame[..from.len()].copy_from_slice(from);
    explorer.enter();
    explorer
}

enum Reach {
    Within,
    /// True if the state has any move.
    Never {
        moves: bool,
    },
    Unknown,
}

/// Decides whether rules lead from a state to one in which all conjuncts hold.
fn out_of_reach(
    program: &Program,
    view: &View,
    from: &[Number],
    conjuncts: &[u32],
    spontaneous: bool,
) -> Reach {
    let mut explorer = begin(program, view, from);
    let (mut state, mut moves) = (0, false);
    while (state as usize) < explorer.len() {
        if explorer.len() > MAX_STATES {
            return Reach::Unknown;
        }
        explorer.load(state);
        let holds = |&entry: &u32| explorer.machine.run(entry);
        match conjuncts.iter().map(holds).collect::<Result<Vec<_>, _>>() {
            Ok(all) if all.iter().all(|&holds| holds) => return Reach::Within,
            Ok(_) => {}
            Err(_) => return Reach::Unknown,
        }
        let expanded = explorer.expand(state, spontaneous, |one, _| {
            moves |= one.to != Some(state);
            true
        });
        if expanded.is_err() {
            return Reach::Unknown;
        }
        state += 1;
    }
    Reach::Never { moves }
}
