//! Replay of counterexamples: a trace is compared with the model's behaviour, and its last state is judged.

use crate::compile::{compile_with_loop_checks, Notes};
use crate::explore::Explorer;
use crate::interpret::Fault;
use crate::model::{Deadlock, Model, Number, Violation};
use crate::program::{Program, RuleSelection};
use crate::report::{deadlock_message, reported_property, Property};
use crate::search::Path;
use crate::trace::{replay_path, ReplayedTrace, Trace};
use crate::view::View;

/// Verdict on a trace's last state or step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FinalVerdict {
    /// The last state or step violates a property.
    Violated {
        /// The violated property.
        property: Property,
        /// Description of the violation, as a clause.
        message: String,
    },
    /// The last step exceeds a limit of the model ([`Violation::limit`]), as a clause.
    LimitExceeded(String),
    /// The last state has no violation.
    NoViolation,
    /// The states reachable from the last one are too many to decide drain or liveness.
    Undecided,
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
pub fn replay_trace(
    model: &Model,
    recorded: &Trace,
    claim: Option<&Property>,
) -> Result<(Trace, FinalVerdict), String> {
    if let Some(error) = model.validate().first() {
        return Err(error.to_string());
    }
    let loop_checks = match recorded.loops_checked {
        true => crate::symmetry_check::asymmetric_uses(model).1,
        false => Default::default(),
    };
    // Checks that a search gives up, with the symmetry of the loop, end no trace.
    let loop_checks = crate::report::without_dependences(loop_checks);
    let program = compile_with_loop_checks(model, Notes::Compiled, loop_checks);
    let path = Path {
        start: recorded.start_index,
        rules: recorded.steps.iter().map(|step| step.rule_index).collect(),
    };
    // Replays only as far as names agree, so that the earlier of two mismatches is reported.
    let name_check = check_names(model, &program, recorded);
    let agreeing_path = Path {
        start: path.start,
        rules: path.rules[..name_check
            .as_ref()
            .map_or_else(|(steps, _)| *steps, |()| path.rules.len())]
            .to_vec(),
    };
    let mut replayed = replay_path(model, &program, &agreeing_path)?;
    compare(recorded, &replayed.trace)?;
    name_check.map_err(|(_, reason)| reason)?;
    let final_verdict = judge(model, &program, &mut replayed, claim);
    Ok((replayed.trace, final_verdict))
}

/// Compares the names of the start state and rules with those of a trace. The error holds the number of steps that
/// agree, and a description of the next one.
fn check_names(model: &Model, program: &Program, recorded: &Trace) -> Result<(), (usize, String)> {
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
            // The replay reports this error.
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
fn compare(recorded: &Trace, replayed: &Trace) -> Result<(), String> {
    if recorded.initial != replayed.initial {
        let entries = |trace: &Trace| {
            trace
                .initial
                .iter()
                .map(|s| (s.variable.clone(), s.value.clone()))
                .collect()
        };
        let mismatch = difference(entries(recorded), entries(replayed));
        return Err(format!("start state `{}`: {mismatch}", replayed.start));
    }
    for (i, (recorded, replayed)) in recorded.steps.iter().zip(&replayed.steps).enumerate() {
        if recorded.changes != replayed.changes {
            let entries = |trace: &crate::trace::TraceStep| {
                let changes = trace.changes.iter();
                changes
                    .map(|c| (c.variable.clone(), format!("{} -> {}", c.from, c.to)))
                    .collect()
            };
            let mismatch = difference(entries(recorded), entries(replayed));
            return Err(format!("step {}: `{}`: {mismatch}", i + 1, replayed.rule));
        }
    }
    Ok(())
}

/// Description of the first entry in which two lists differ.
fn difference(recorded: Vec<(String, String)>, replayed: Vec<(String, String)>) -> String {
    let length = recorded.len().max(replayed.len());
    let differ = (0..length).find(|&i| recorded.get(i) != replayed.get(i));
    let entry = |entries: &[(String, String)]| match differ.and_then(|i| entries.get(i)) {
        Some((variable, value)) => format!("`{variable}` {value}"),
        None => "nothing more".into(),
    };
    format!(
        "the model has {}, but the trace says {}",
        entry(&replayed),
        entry(&recorded)
    )
}

/// Judges the state or step in which a trace ends.
fn judge(
    model: &Model,
    program: &Program,
    replayed: &mut ReplayedTrace,
    claim: Option<&Property>,
) -> FinalVerdict {
    if let Some(fault) = replayed.fault {
        return fault_verdict(model, program, replayed, fault);
    }
    let mut violation = None;
    for invariant in &program.properties.invariants {
        match replayed.machine.run(invariant.entry) {
            Ok(true) => {}
            Ok(false) => {
                let invariant = &model.invariants[invariant.invariant as usize];
                let report = Violation::new(&invariant.name, &invariant.reason);
                let property = Property::Invariant(invariant.name.clone());
                let is_claimed = claim == Some(&property);
                let final_verdict = FinalVerdict::Violated {
                    property,
                    message: report.to_string(),
                };
                if is_claimed {
                    return final_verdict;
                }
                violation.get_or_insert(final_verdict);
            }
            Err(fault) => return fault_verdict(model, program, replayed, fault),
        }
    }
    if let Some(violation) = violation {
        return violation;
    }
    judge_reachability(model, program, replayed, claim)
}

/// Verdict on a last state or step with a fault.
fn fault_verdict(
    model: &Model,
    program: &Program,
    replayed: &ReplayedTrace,
    fault: Fault,
) -> FinalVerdict {
    match program.explain(model, fault) {
        Ok(Violation { reason, limit, .. }) if limit => {
            // The trace describes the orders of loops whose results differ.
            FinalVerdict::LimitExceeded(replayed.trace.fault.clone().unwrap_or(reason))
        }
        Ok(violation) => FinalVerdict::Violated {
            property: reported_property(model, &violation),
            message: violation.to_string(),
        },
        Err(message) => FinalVerdict::Violated {
            property: Property::WellDefined,
            message,
        },
    }
}

/// Judges deadlock, drain and liveness in the last state.
fn judge_reachability(
    model: &Model,
    program: &Program,
    replayed: &ReplayedTrace,
    claim: Option<&Property>,
) -> FinalVerdict {
    let view = View::whole(program, model.deadlock);
    let last_state = replayed.machine.frame[..program.slots.len()].to_vec();
    let claims_drain = claim == Some(&Property::Drain);
    let claims_liveness = matches!(claim, Some(Property::Liveness(_)));
    if !claims_drain && !claims_liveness && model.deadlock != Deadlock::Off {
        if let Some(verdict) = judge_deadlock(model, program, replayed, &view, &last_state) {
            return verdict;
        }
    }
    if let (Some(conjuncts), false) = (&program.properties.quiescent, claims_liveness) {
        let selection = RuleSelection::NonSpontaneous;
        match reachability(program, &view, &last_state, conjuncts, selection) {
            Reachability::Unreachable { moves } => {
                return FinalVerdict::Violated {
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
            Reachability::Unknown => return FinalVerdict::Undecided,
            Reachability::Reachable => {}
        }
    }
    for (property, conjuncts) in &program.properties.liveness {
        let name = &model.liveness[*property as usize].name;
        if claims_liveness && claim != Some(&Property::Liveness(name.clone())) {
            continue;
        }
        match reachability(program, &view, &last_state, conjuncts, RuleSelection::All) {
            Reachability::Unreachable { .. } => {
                return FinalVerdict::Violated {
                    property: Property::Liveness(name.clone()),
                    message: format!("`{name}` is no longer reachable"),
                }
            }
            Reachability::Unknown => return FinalVerdict::Undecided,
            Reachability::Reachable => {}
        }
    }
    FinalVerdict::NoViolation
}

/// Verdict on a deadlock in the last state; `None` if it is no deadlock.
fn judge_deadlock(
    model: &Model,
    program: &Program,
    replayed: &ReplayedTrace,
    view: &View,
    last_state: &[Number],
) -> Option<FinalVerdict> {
    let mut explorer = explorer_at(program, view, last_state);
    let mut conjuncts = program.properties.quiescent.iter().flatten().copied();
    let is_excepted = model.deadlock == Deadlock::ExceptQuiescent
        && conjuncts.all(|entry| explorer.machine.run(entry) == Ok(true));
    let (mut moves, mut order_fault) = (false, None);
    let complete = explorer.expand(0, RuleSelection::All, |step, machine| {
        order_fault = order_fault.or(machine.move_by_order);
        moves |= match machine.move_by_order {
            None => step.to != Some(0) || model.deadlock == Deadlock::Stuck,
            Some(_) => model.deadlock == Deadlock::Stuck,
        };
        true
    });
    if let (Some(fault), false, false) = (order_fault, moves, is_excepted) {
        // One state of the orbit has a move, and another has none.
        return Some(fault_verdict(model, program, replayed, fault));
    }
    let is_deadlock = complete.is_ok() && !moves && !is_excepted;
    is_deadlock.then(|| FinalVerdict::Violated {
        property: Property::NoDeadlock,
        message: deadlock_message(model).into(),
    })
}

/// Creates an explorer with this state only.
fn explorer_at<'a>(program: &'a Program, view: &'a View, state: &[Number]) -> Explorer<'a> {
    let mut explorer = Explorer::new(program, view);
    explorer.machine.frame[..state.len()].copy_from_slice(state);
    explorer.enter();
    explorer
}

/// Reachability of a state in which a condition holds.
enum Reachability {
    /// Such a state is reachable.
    Reachable,
    /// No such state is reachable.
    Unreachable {
        /// True if one of the states has a step to a different one.
        moves: bool,
    },
    /// Undecided: too many states, or a rule or condition faults.
    Unknown,
}

/// Decides whether rules lead from a state to one in which all conjuncts hold.
fn reachability(
    program: &Program,
    view: &View,
    start_state: &[Number],
    conjuncts: &[u32],
    selection: RuleSelection,
) -> Reachability {
    let mut explorer = explorer_at(program, view, start_state);
    let (mut state, mut moves) = (0, false);
    while (state as usize) < explorer.len() {
        if explorer.len() > MAX_STATES {
            return Reachability::Unknown;
        }
        explorer.load(state);
        let holds = |&entry: &u32| explorer.machine.run(entry);
        match conjuncts.iter().map(holds).collect::<Result<Vec<_>, _>>() {
            Ok(results) if results.iter().all(|&holds| holds) => return Reachability::Reachable,
            Ok(_) => {}
            Err(_) => return Reachability::Unknown,
        }
        let expanded = explorer.expand(state, selection, |step, _| {
            moves |= step.to != Some(state);
            true
        });
        if expanded.is_err() {
            return Reachability::Unknown;
        }
        state += 1;
    }
    Reachability::Unreachable { moves }
}
