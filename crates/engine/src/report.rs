//! Verdicts and statistics of a checked model.

use crate::compile::{compile_with_node_limit, Notes, MAX_INSTRUCTIONS};
use crate::components::{search_parts, split, Parts, Product};
use crate::model::{Deadlock, Invariant, Model, ModelError, NamedType, Type, TypeId, Violation};
use crate::program::{Op, Program};
use crate::search::{
    component_of_attempt, omission_bound, AttemptSink, CheckpointError, CheckpointSink,
    FailedCheck, Options, Path, Reason, Verdict,
};
use crate::symmetry::Symmetry;
use crate::symmetry_check::{scalarsets_in, LoopChecks};
use crate::trace::{trace_of_path, Trace};
use crate::view::View;
use cohkit_base::words::counted;
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The result of [`check`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The verdict.
    pub outcome: Outcome,
    /// Reachable states. If independent parts were explored separately, the number of states of their product; if the
    /// exploration is incomplete, the number of states visited.
    pub states: u128,
    /// True if states that differ only by a permutation of scalarset values were counted once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub symmetric: bool,
    /// Rules fired, including those that change nothing; counted like the states.
    pub transitions: u128,
    /// Lower bound of the distance, in steps, from a start state to the farthest state.
    pub depth: u64,
    /// Status of each property. A property without a violation so far is undecided until everything has been explored.
    pub properties: Vec<PropertyResult>,
    /// States visited in each independent part; one entry if the model was explored as a whole.
    pub components: Vec<u64>,
    /// Rules fired in each independent part.
    pub part_transitions: Vec<u64>,
    /// True if everything was explored, so that `states` and `transitions` are those of the product.
    pub complete: bool,
    /// Number of distinct parts. Equal parts are explored once.
    pub different: usize,
    /// Peak memory of the states and their table, in bytes. Independent of the machine.
    pub memory: u64,
    /// Upper bound of the probability that a state was omitted, if only signatures of states were kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omission_probability: Option<f64>,
    /// Statistics of random walks, if these replaced the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walks: Option<Box<Walks>>,
    /// Scalarsets whose symmetry was given up during the search, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_symmetry: Vec<LostSymmetry>,
}

/// Scalarsets whose values a step distinguishes by the order of a loop. The search then does not use their symmetry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LostSymmetry {
    /// The scalarsets.
    #[serde(skip)]
    pub sets: Vec<TypeId>,
    /// Names of the scalarsets.
    pub scalarsets: Vec<String>,
    /// Loop with its line, two orders of its iterations, and the results that differ.
    pub reason: String,
}

impl LostSymmetry {
    /// Names the scalarsets.
    fn new(model: &Model, sets: Vec<TypeId>, reason: String) -> LostSymmetry {
        let name = |set: &TypeId| model.types[set.index()].name.clone();
        LostSymmetry {
            scalarsets: sets.iter().map(name).collect(),
            sets,
            reason,
        }
    }
}

/// Statistics of random walks. In a [`Report`] with walks, `states` are the states visited, `transitions` the rules
/// fired, including those only tried, and `depth` is the length of the longest walk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Walks {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of walks.
    pub walks: u64,
    /// Steps of all walks together.
    pub steps: u64,
    /// True if `states` counts all states visited; the table of known states is limited to 2^22.
    pub states_counted: bool,
    /// Number of rule instances (rules with values of their parameters) by which a walk could reach a different state.
    pub rules_fired: u64,
    /// Number of rule instances.
    pub rules: u64,
    /// Names of rules without such an instance, in the order of the model.
    pub never_fired: Vec<String>,
}

/// The verdict on a model.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// All properties hold in all reachable states.
    Verified,
    /// A property does not hold.
    Violated {
        /// The violated property.
        property: Property,
        /// Description of the violation in the last state or step of the trace.
        message: String,
        /// A shortest path to a violation of this property.
        trace: Box<Trace>,
    },
    /// The search gave up.
    Undecided {
        /// Limit that was reached, or other cause.
        reason: Reason,
    },
    /// Undecided: the model's capacity was exceeded ([`Violation::limit`]).
    Exceeded {
        /// The exceeded limit, as a clause.
        limit: String,
        /// A shortest path to the excess.
        trace: Box<Trace>,
    },
}

/// A property of a model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum Property {
    /// An invariant, by name.
    Invariant(String),
    /// An assertion or an error statement, by name.
    Assertion(String),
    /// No value leaves its range, no index its array, nothing is divided by zero, and no undefined value is read.
    WellDefined,
    /// No reachable state is a deadlock, as [`Model::deadlock`] defines it.
    NoDeadlock,
    /// Rules that are not spontaneous can always lead to a quiescent state.
    Drain,
    /// A cover is reached at least once, by name.
    Cover(String),
    /// Rules can always lead to a state in which a claim holds, by name.
    Liveness(String),
    /// A property judged by a higher layer, on models of its own.
    #[serde(untagged)]
    HigherLayer(HigherLayerProperty),
}

/// A property of a higher layer, unknown to the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct HigherLayerProperty {
    /// Name of the property, in reports and JSON.
    pub kind: &'static str,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Property::Invariant(name)
            | Property::Assertion(name)
            | Property::Cover(name)
            | Property::Liveness(name) => f.write_str(name),
            Property::WellDefined => f.write_str(Violation::ILL_DEFINED),
            Property::NoDeadlock => f.write_str("no deadlock"),
            Property::Drain => f.write_str("every request can still complete"),
            Property::HigherLayer(property) => f.write_str(property.kind),
        }
    }
}

/// Status of one property.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PropertyResult {
    /// The property.
    pub property: Property,
    /// Its status.
    pub status: Status,
}

/// Status of a property.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The property holds.
    Holds,
    /// The property is violated.
    Violated,
    /// No violation found, but not everything was explored.
    Undecided,
}

/// Explores all reachable states of a model and judges its properties.
///
/// Not covered: fairness, and states beyond the first violation. A livelock among rules that could be left is therefore
/// no violation, unless the drain check is requested and fails.
///
/// # Errors
/// All errors that [`Model::validate`] finds, or the error of a checkpoint.
pub fn check(model: &Model, options: &Options) -> Result<Report, CheckError> {
    let mut lost_symmetry: Vec<LostSymmetry> = Vec::new();
    loop {
        let searched_model = without_symmetry(model, &lost_symmetry);
        let attempt = lost_symmetry.len();
        let sink = (options.checkpoint_sink).map(|sink| AttemptSink { sink, attempt });
        let attempt_options = Options {
            checkpoint_sink: sink.as_ref().map(|sink| sink as &dyn CheckpointSink),
            ..*options
        };
        let result =
            check_with_symmetry(&searched_model, &attempt_options).map_err(
                |error| match error {
                    CheckError::Checkpoint(error) => CheckError::Checkpoint(CheckpointError {
                        component: component_of_attempt(attempt, error.component),
                        ..error
                    }),
                    error => error,
                },
            )?;
        match result {
            Ok(report) => {
                return Ok(Report {
                    lost_symmetry,
                    ..report
                })
            }
            Err(lost) => lost_symmetry.push(lost),
        }
    }
}

/// A model in which scalarsets that have lost their symmetry are ordered.
pub(crate) fn without_symmetry<'m>(
    model: &'m Model,
    lost_symmetry: &[LostSymmetry],
) -> Cow<'m, Model> {
    let mut searched_model = Cow::Borrowed(model);
    if !lost_symmetry.is_empty() {
        let sets = lost_symmetry.iter().flat_map(|lost| &lost.sets);
        searched_model.to_mut().ordered.extend(sets);
    }
    searched_model
}

/// Scalarsets of loops whose order matters unless a search shows that it does not.
pub(crate) fn possibly_lost_symmetry(model: &Model, options: &Options) -> Vec<LostSymmetry> {
    let loop_checks = loops_to_check(model, options);
    let lost = loop_checks.iter().filter_map(|(&variable, check)| {
        let dependence = check.dependence.as_ref()?;
        let mut sets = Vec::new();
        scalarsets_in(model, model.variable(variable).ty, &mut sets);
        let reason = format!(
            "the order of a loop over a scalarset may matter: {}",
            dependence.reason
        );
        Some(LostSymmetry::new(model, sets, reason))
    });
    lost.collect()
}

/// As [`check`]. Returns the scalarsets whose values a step distinguishes, if the search finds such a step by a check
/// that a search without their symmetry does not need.
fn check_with_symmetry(
    model: &Model,
    options: &Options,
) -> Result<Result<Report, LostSymmetry>, CheckError> {
    let prepare = |loop_checks: LoopChecks| {
        let program =
            validate_and_compile(model, loop_checks.clone(), options).map_err(CheckError::Model)?;
        let parts = independent_parts(model, &program, options);
        Ok((loop_checks, program, parts))
    };
    let (mut loop_checks, mut program, mut parts) =
        options.compile(|| prepare(loops_to_check(model, options)))?;
    let symmetric = parts.views.iter().any(|view| view.symmetry.is_some());
    if !symmetric && !loop_checks.is_empty() {
        // Loops run in the order of the model.
        (loop_checks, program, parts) = options.compile(|| prepare(LoopChecks::new()))?;
    }
    let Product {
        verdict,
        states,
        transitions,
        depth,
        components,
        part_transitions,
        complete,
        memory,
    } = search_parts(&program, &parts, options).map_err(CheckError::Checkpoint)?;
    if let Verdict::FailedCheck(FailedCheck::Fault(fault), path) = &verdict {
        let sets = program.provisional_sets(fault.instruction);
        if !sets.is_empty() {
            // A trace has no step of a property.
            let reason = trace_of_path(model, path, loop_checks).fault;
            let reason = reason.unwrap_or_else(|| match program.explain(model, *fault) {
                Ok(violation) => violation.to_string(),
                Err(message) => message,
            });
            return Ok(Err(LostSymmetry::new(model, sets, reason)));
        }
    }
    let different = parts
        .representative
        .iter()
        .enumerate()
        .filter(|(i, r)| i == *r)
        .count();
    let search_size = SearchSize {
        states,
        depth,
        symmetric,
    };
    let outcome = outcome_of_verdict(model, &program, &verdict, search_size, loop_checks);
    let properties = property_results(model, &program, &outcome, &verdict);
    // Equal parts were explored once.
    let explored = (components.iter().zip(&parts.representative).enumerate())
        .filter(|(part, (_, representative))| part == *representative);
    let omission = explored.map(|(_, (&states, _))| omission_bound(states));
    let omission_probability = options
        .hash_compaction
        .then(|| omission.sum::<f64>().min(1.0));
    Ok(Ok(Report {
        omission_probability,
        outcome,
        states,
        symmetric,
        transitions,
        depth,
        properties,
        components,
        part_transitions,
        complete,
        different,
        memory,
        walks: None,
        lost_symmetry: Vec::new(),
    }))
}

/// Loops that a program checks at run time for dependence on the order of iterations; empty if symmetry is off.
pub(crate) fn loops_to_check(model: &Model, options: &Options) -> LoopChecks {
    match options.symmetry {
        true => crate::symmetry_check::asymmetric_uses(model).1,
        false => LoopChecks::new(),
    }
}

/// Loops that a program checks without giving up the symmetry of their scalarsets.
pub(crate) fn without_dependences(mut loop_checks: LoopChecks) -> LoopChecks {
    loop_checks
        .values_mut()
        .for_each(|check| check.dependence = None);
    loop_checks.retain(|_, check| !check.places.is_empty());
    loop_checks
}

/// Validates and compiles a model. The program compares all orders of a loop whose iterations store different values
/// in a place of `loop_checks`. If the results differ, it reports an exceeded limit.
///
/// # Errors
/// All errors that [`Model::validate`] finds, or that the code would be too large.
pub(crate) fn validate_and_compile(
    model: &Model,
    loop_checks: LoopChecks,
    options: &Options,
) -> Result<Program, Vec<ModelError>> {
    let errors = model.validate();
    if !errors.is_empty() {
        return Err(errors);
    }
    let program = compile_with_node_limit(model, Notes::Omitted, loop_checks, options.max_nodes);
    if program.code.len() > MAX_INSTRUCTIONS {
        return Err(vec![ModelError {
            location: format!("model `{}`", model.name),
            message: "with all its calls and instances it is too large".into(),
        }]);
    }
    Ok(program)
}

/// Size of the search behind a verdict.
#[derive(Clone, Copy)]
pub(crate) struct SearchSize {
    /// Number of states; of orbits if `symmetric`.
    pub states: u128,
    /// Steps from a start state to the deepest state found.
    pub depth: u64,
    /// True if one state of each orbit was counted.
    pub symmetric: bool,
}

impl SearchSize {
    /// Number of states, in words.
    fn describe_states(self) -> String {
        states_in_words(self.states, self.symmetric)
    }
}

/// Number of states in words. `symmetric`: states that differ only by a permutation were counted once.
pub fn states_in_words(states: u128, symmetric: bool) -> String {
    let up_to = if symmetric { " up to symmetry" } else { "" };
    format!("{}{up_to}", counted(states, "state"))
}

/// Outcome for the model that follows from a verdict of the search.
pub(crate) fn outcome_of_verdict(
    model: &Model,
    program: &Program,
    verdict: &Verdict,
    search_size: SearchSize,
    loop_checks: LoopChecks,
) -> Outcome {
    match verdict {
        Verdict::Holds => Outcome::Verified,
        Verdict::Undecided(reason) => Outcome::Undecided { reason: *reason },
        Verdict::FailedCheck(failed_check, path) => {
            violation_outcome(model, program, failed_check, path, search_size, loop_checks)
        }
    }
}

/// Status of each property that follows from an outcome.
pub(crate) fn property_results(
    model: &Model,
    program: &Program,
    outcome: &Outcome,
    verdict: &Verdict,
) -> Vec<PropertyResult> {
    let mut covers = 0..;
    let properties = properties(model, program).into_iter().map(|property| {
        // All covers are judged at the same time.
        if let (Property::Cover(_), Verdict::FailedCheck(FailedCheck::Uncovered(unmet), _)) =
            (&property, verdict)
        {
            let status = match covers.next().is_some_and(|cover| unmet.contains(&cover)) {
                true => Status::Violated,
                false => Status::Holds,
            };
            return PropertyResult { property, status };
        }
        let status = match outcome {
            Outcome::Violated {
                property: violated, ..
            } if *violated == property => Status::Violated,
            Outcome::Verified => Status::Holds,
            Outcome::Undecided {
                reason: Reason::HashCompaction,
            } if property.order() == 0 => Status::Holds,
            // Properties that need all states are judged in the order of [`Property::order`], each after the earlier
            // ones hold.
            Outcome::Violated {
                property: violated, ..
            } if violated.order() > property.order() => Status::Holds,
            _ => Status::Undecided,
        };
        PropertyResult { property, status }
    });
    properties.collect()
}

/// Independent parts for separate exploration. A model with symmetry is explored as a whole, unless each part contains
/// all the state that its permutations move together.
pub(crate) fn independent_parts(model: &Model, program: &Program, options: &Options) -> Parts {
    let mut whole = View::whole(program, model.deadlock);
    let interchangeable_names = model.interchangeable.as_ref().map(|range| range.names);
    // Reachability of a claim about one particular value of a scalarset can differ between states of an orbit.
    let concerns_one_value = |property: &Invariant| {
        property.parameters.iter().any(|&parameter| {
            let ty = model.variable(parameter).ty;
            Some(ty) == interchangeable_names
                || matches!(model.ty(ty), Type::Scalarset(_) | Type::Union(_))
        })
    };
    if options.symmetry && !model.liveness.iter().any(concerns_one_value) {
        whole.symmetry = Symmetry::of(model, program, &whole.packing).map(Arc::new);
    }
    let symmetric = whole.symmetry.is_some();
    let scalarset = |named: &NamedType| matches!(named.ty, Type::Scalarset(_));
    let whole = Parts {
        views: vec![whole],
        representative: vec![0],
    };
    if !options.decompose || symmetric && model.types.iter().any(scalarset) {
        return whole;
    }
    let mut parts = split(program, model.deadlock);
    if !symmetric {
        return parts;
    }
    let packings = parts.views.iter().map(|view| &view.packing);
    match Symmetry::of_parts(model, program, packings) {
        Ok(symmetries) if parts.views.len() > 1 => {
            for (view, symmetry) in parts.views.iter_mut().zip(symmetries) {
                view.symmetry = symmetry.map(Arc::new);
            }
            parts
        }
        _ => whole,
    }
}

/// Reason why a model cannot be checked.
#[derive(Debug)]
pub enum CheckError {
    /// Errors of the model.
    Model(Vec<ModelError>),
    /// Error of a checkpoint; only if [`Options::checkpoint_sink`] is given.
    Checkpoint(CheckpointError),
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckError::Model(errors) => {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                f.write_str(&errors.join("; "))
            }
            CheckError::Checkpoint(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CheckError {}

impl Property {
    /// Order in which properties are judged; those of order 0 are judged together, while states are visited.
    fn order(&self) -> u8 {
        match self {
            Property::Cover(_) => 1,
            Property::Drain => 2,
            Property::Liveness(_) => 3,
            Property::HigherLayer(_) => 4,
            _ => 0,
        }
    }
}

/// States that cannot become quiescent, as a sentence.
fn stuck_states_text(stuck: u64, search_size: SearchSize) -> String {
    format!(
        "{stuck} of {} cannot become quiescent",
        search_size.describe_states()
    )
}

/// First of the covers that no run reaches, and a sentence about all of them.
fn uncovered_message(model: &Model, unmet: &[u32], search_size: SearchSize) -> (Property, String) {
    let names = unmet
        .iter()
        .map(|&cover| &model.covers[cover as usize].name);
    let quoted: Vec<String> = names.clone().map(|name| format!("`{name}`")).collect();
    let subject = match quoted.split_last() {
        Some((last, [])) => format!("{last} is"),
        Some((last, front)) => format!("{} and {last} are", front.join(", ")),
        None => String::new(),
    };
    let states_text = search_size.describe_states();
    let steps = counted(u128::from(search_size.depth), "step");
    let message =
        format!("{subject} not covered in any of {states_text}, at most {steps} from a start");
    let first = names.into_iter().next().cloned().unwrap_or_default();
    (Property::Cover(first), message)
}

/// Outcome of a failed check: the violated property, a message and the trace. A fault that is an exceeded limit of the
/// engine gives [`Outcome::Exceeded`].
fn violation_outcome(
    model: &Model,
    program: &Program,
    failed_check: &FailedCheck,
    path: &Path,
    search_size: SearchSize,
    loop_checks: LoopChecks,
) -> Outcome {
    let (property, message) = match failed_check {
        FailedCheck::Invariant(index) => {
            let invariant = &model.invariants[*index as usize];
            let violation = Violation::new(&invariant.name, &invariant.reason);
            (
                Property::Invariant(invariant.name.clone()),
                violation.to_string(),
            )
        }
        FailedCheck::Fault(fault) => match program.explain(model, *fault) {
            Ok(Violation { reason, limit, .. }) if limit => {
                let trace = Box::new(trace_of_path(model, path, loop_checks));
                return Outcome::Exceeded {
                    limit: trace.fault.clone().unwrap_or(reason),
                    trace,
                };
            }
            Ok(violation) => (reported_property(model, &violation), violation.to_string()),
            Err(message) => (Property::WellDefined, message),
        },
        FailedCheck::Deadlock => (Property::NoDeadlock, deadlock_message(model).to_string()),
        FailedCheck::DeadEnd(stuck) => (
            Property::Drain,
            format!(
                "dead end: only spontaneous events lead to other states; {}",
                stuck_states_text(*stuck, search_size)
            ),
        ),
        FailedCheck::Livelock(stuck) => (
            Property::Drain,
            format!(
                "livelock: without spontaneous events, no quiescent state is reachable; {}",
                stuck_states_text(*stuck, search_size)
            ),
        ),
        FailedCheck::Uncovered(unmet) => uncovered_message(model, unmet, search_size),
        FailedCheck::OutOfReach(property, stuck) => {
            let name = model.liveness[*property as usize].name.clone();
            let states_text = search_size.describe_states();
            let message = format!(
                "`{name}` is no longer reachable; it is unreachable from {stuck} of {states_text}"
            );
            (Property::Liveness(name), message)
        }
    };
    Outcome::Violated {
        property,
        message,
        trace: Box::new(trace_of_path(model, path, LoopChecks::new())),
    }
}

/// Description of a deadlock, as a clause.
pub(crate) fn deadlock_message(model: &Model) -> &'static str {
    match model.deadlock {
        Deadlock::Stuck => "no rule is enabled",
        _ => "no rule leads to a different state",
    }
}

/// Property that an error or assertion reports: the invariant of that name, if one exists.
pub(crate) fn reported_property(model: &Model, violation: &Violation) -> Property {
    let name = violation.property.clone();
    if name == Violation::ILL_DEFINED {
        return Property::WellDefined;
    }
    match model.invariants.iter().any(|i| i.name == name) {
        true => Property::Invariant(name),
        false => Property::Assertion(name),
    }
}

/// All properties of a model: invariants, assertions other than limits in code order, then the properties that need no
/// declaration, covers, drain and liveness.
fn properties(model: &Model, program: &Program) -> Vec<Property> {
    let mut result = Vec::new();
    for invariant in &model.invariants {
        let property = Property::Invariant(invariant.name.clone());
        if !result.contains(&property) {
            result.push(property);
        }
    }
    let mut known = FxHashSet::default();
    let failing = program.code.iter().filter_map(|op| match op {
        Op::Fail { violation } => Some(*violation),
        _ => None,
    });
    for index in failing.filter(|index| known.insert(*index)) {
        let violation = &program.violations[index as usize];
        if violation.limit {
            continue;
        }
        let property = reported_property(model, violation);
        if property != Property::WellDefined && !result.contains(&property) {
            result.push(property);
        }
    }
    result.push(Property::WellDefined);
    if model.deadlock != Deadlock::Off {
        result.push(Property::NoDeadlock);
    }
    result.extend(model.covers.iter().map(|c| Property::Cover(c.name.clone())));
    if model.quiescent.is_some() {
        result.push(Property::Drain);
    }
    result.extend(
        model
            .liveness
            .iter()
            .map(|l| Property::Liveness(l.name.clone())),
    );
    result
}
