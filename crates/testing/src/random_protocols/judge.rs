//! Comparison of all engines on one protocol: execution of the controllers, the checker in all of its forms, litmus
//! programs, and the simulator.

use super::{programs, simulation};
use cohkit_check::progress::{progress, Progress};
use cohkit_check::system;
use cohkit_check::system::progress::unproven_kinds;
use cohkit_engine::graph::graph;
use cohkit_engine::model::{Deadlock, Model};
use cohkit_engine::search::Engine;
use cohkit_engine::{check, Options, Outcome, Property, Report};
use cohkit_murphi::{print, read, Dialect, Style};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::execute::Configuration;
use cohkit_protocol::protocol::{Home, Permission, Protocol, Type};
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::text::parse;
use cohkit_system::data::{Current, Words};
use cohkit_system::state::{explore, Step, StepError, System, SystemState};
use std::collections::{BTreeMap, HashMap};

/// Maximum number of states of a system to visit.
const MAX_STATES: usize = 3_000;

/// Result of the execution.
pub type Found = cohkit_system::state::Found<SystemState<Current>, Step>;

/// The verdict that all engines agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgreedVerdict {
    /// Verified, with this number of states.
    Verified(usize),
    /// A property is violated.
    Violated,
    /// The capacity for messages or states is exceeded.
    Undecided,
}

/// Reason why a protocol cannot be judged, or a disagreement.
#[derive(Debug)]
pub enum JudgeError {
    /// The front end rejects it.
    Rejected(String),
    /// Two engines disagree.
    Disagreement(String),
}

/// A protocol, and the result of executing its controllers.
pub struct Case {
    /// Parsed protocol; its first system is the one that is judged.
    pub protocol: Protocol,
    /// Remotes of the system.
    pub remotes: Remotes,
    /// Result of executing the controllers, over at most `MAX_STATES` states.
    pub found: Found,
}

/// Reads a protocol and executes its first system, over at most `MAX_STATES` states.
///
/// # Errors
/// The front end rejects the protocol.
pub fn case(text: &str) -> Result<Case, JudgeError> {
    let protocol = parse(text).map_err(|errors| {
        let messages = errors.iter().map(|e| e.render("random.coh", text, false));
        JudgeError::Rejected(messages.collect())
    })?;
    let (remotes, lines) = (protocol.systems[0].remotes, lines_of(&protocol));
    let capacity = system::Options::default().capacity;
    let system = System::new(&protocol, home(&protocol), remotes, lines, capacity);
    let found = explore(&system, SystemState::new(&system), MAX_STATES);
    Ok(Case {
        protocol,
        remotes,
        found,
    })
}

/// The model of a system, with safety properties alone.
pub fn safety(
    protocol: &Protocol,
    home: &Controller,
    remotes: Remotes,
) -> Result<Model, JudgeError> {
    let options = system::Options::default();
    let model = system::model(protocol, home, remotes, lines_of(protocol), &options);
    let mut model =
        model.map_err(|error| JudgeError::Disagreement(format!("no model: {error}")))?;
    model.deadlock = Deadlock::Off;
    model.quiescent = None;
    model.liveness.clear();
    model.covers.clear();
    Ok(model)
}

/// Number of lines of the protocol's first system, which is judged.
fn lines_of(protocol: &Protocol) -> u8 {
    protocol.systems[0].lines
}

/// The home of a protocol whose home is hand-written.
pub fn home(protocol: &Protocol) -> &Controller {
    match &protocol.home {
        Home::Controller(home) => home,
        Home::Policy(_) => unreachable!("these homes are written as rows"),
    }
}

/// Options of the reference search: interpreted, without symmetry, of the model as a whole.
fn exhaustive_options() -> Options<'static> {
    Options {
        decompose: false,
        symmetry: false,
        engine: Engine::Interpreter,
        ..Options::default()
    }
}

/// Checks a model, which must have a verdict.
fn run(model: &Model, options: &Options) -> Result<Report, JudgeError> {
    check(model, options)
        .map_err(|error| JudgeError::Disagreement(format!("no verdict: {error:?}")))
}

/// Number of states and outcome of a report, in one line.
fn format_report(report: &Report) -> String {
    let outcome = match &report.outcome {
        Outcome::Violated {
            property,
            message,
            trace,
        } => format!("{property}: {message}, after {} steps", trace.steps.len()),
        Outcome::Exceeded { limit, trace } => format!("{limit}, after {} steps", trace.steps.len()),
        other => format!("{other:?}"),
    };
    format!("{} states, {outcome}", report.states)
}

/// Compares a verdict on all states with the result of the execution.
fn check_agreement(
    name: &str,
    found: &Found,
    report: &Report,
) -> Result<AgreedVerdict, JudgeError> {
    let is_violation = |error: &StepError| matches!(error, StepError::Violated(_));
    let any_violation = |errors: &[StepError]| errors.iter().any(is_violation);
    let any_excess = |errors: &[StepError]| !errors.iter().all(is_violation);
    let agreed = match (found, &report.outcome) {
        (
            Found::Safe {
                states,
                transitions,
                depth,
                ..
            },
            Outcome::Verified,
        ) if (report.states, report.transitions, report.depth)
            == (states.len() as u128, (*transitions).into(), *depth) =>
        {
            Some(AgreedVerdict::Verified(states.len()))
        }
        (Found::Violated { errors, path }, Outcome::Violated { trace, .. })
            if any_violation(errors) && path.len() == trace.steps.len() =>
        {
            Some(AgreedVerdict::Violated)
        }
        (Found::Violated { errors, path }, Outcome::Exceeded { trace, .. })
            if any_excess(errors) && path.len() == trace.steps.len() =>
        {
            Some(AgreedVerdict::Undecided)
        }
        _ => None,
    };
    agreed.ok_or_else(|| {
        let executed = match found {
            Found::Safe { states, .. } => format!("{} states, verified", states.len()),
            other => format!("{other:?}"),
        };
        JudgeError::Disagreement(format!(
            "{name}: {}; executed: {executed}",
            format_report(report)
        ))
    })
}

/// Checks that a model agrees with the execution: its verdict, and its agents state by state. The test of seeded
/// faults calls it with faulty models, which it must reject.
pub fn check_model(case: &Case, model: &Model) -> Result<(), JudgeError> {
    check_agreement(
        "interpreted",
        &case.found,
        &run(model, &exhaustive_options())?,
    )?;
    match &case.found {
        Found::Safe { states, .. } => compare_states(&case.protocol, model, states),
        _ => Ok(()),
    }
}

/// The verdict that all engines agree on, and the engines that judged the protocol.
#[derive(Clone, Copy, Debug)]
pub struct EngineComparison {
    /// The verdict on safety.
    pub agreed: AgreedVerdict,
    /// True if quiescence is always reachable and every access that begins can be performed. False if that was not
    /// judged.
    pub makes_progress: bool,
    /// True if the simulator ran it.
    pub simulated: bool,
    /// Number of programs that were run on it.
    pub programs: u64,
}

/// Compares the execution with the checker, the simulator, and litmus programs. The seed chooses the simulation.
///
/// # Errors
/// The protocol is rejected, or two engines disagree.
pub fn compare_engines(text: &str, seed: u64) -> Result<EngineComparison, JudgeError> {
    let case = case(text)?;
    let agreed = models(&case)?;
    let mut judged = EngineComparison {
        agreed,
        makes_progress: false,
        simulated: false,
        programs: 0,
    };
    if agreed == AgreedVerdict::Undecided {
        return Ok(judged);
    }
    // True if accesses may be rejected, or kept from beginning, for ever.
    let mut may_stop = false;
    if let Found::Safe {
        states, stuck_path, ..
    } = &case.found
    {
        let can_begin_again = accesses_can_begin_again(&case, states);
        let makes_progress = stuck_path.is_none() && accesses_can_complete(&case, can_begin_again)?;
        judged.makes_progress = makes_progress;
        // A rejected request is served in some order of events, which the simulator need not produce.
        may_stop = !makes_progress
            || !can_begin_again
            || !unproven_kinds(&case.protocol, home(&case.protocol)).is_empty();
        let run = programs::compare(&case.protocol, home(&case.protocol), seed, may_stop);
        judged.programs = run.map_err(JudgeError::Disagreement)?;
    }
    let runs = simulation::compare(&case.protocol, &case.found, may_stop, seed);
    judged.simulated = runs.map_err(JudgeError::Disagreement)?.is_some();
    Ok(judged)
}

/// Returns true if each access that begins in some state can begin, or be performed in place, from every state.
fn accesses_can_begin_again(case: &Case, states: &[SystemState<Current>]) -> bool {
    let Case {
        protocol, remotes, ..
    } = case;
    let capacity = system::Options::default().capacity;
    let system = System::new(
        protocol,
        home(protocol),
        *remotes,
        lines_of(protocol),
        capacity,
    );
    let numbers: HashMap<&SystemState<Current>, usize> = states.iter().zip(0..).collect();
    let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); states.len()];
    let mut begins: BTreeMap<(u8, u8, &str), Vec<usize>> = BTreeMap::new();
    for (from, system_state) in states.iter().enumerate() {
        for step in system_state.steps(&system) {
            let mut next = system_state.clone();
            if next.take(&system, step) != Ok(true) {
                continue;
            }
            predecessors[numbers[&next]].push(from);
            if let Step::Access(line, remote, access) = step {
                if access.needs() != Permission::None {
                    let states = begins.entry((line, remote, access.name())).or_default();
                    states.push(from);
                }
            }
        }
    }
    begins.into_iter().all(|((line, remote, access), begins)| {
        let mut reached = vec![false; states.len()];
        let permitted = (0..states.len()).filter(|&number| {
            let remote = &states[number].lines[usize::from(line)].remotes[usize::from(remote)];
            let permission =
                protocol.remote.states[usize::from(remote.configuration.state)].permission;
            match access {
                "load" => permission >= Permission::Read,
                "store" => permission == Permission::Write,
                _ => false,
            }
        });
        let mut work: Vec<usize> = permitted.chain(begins).collect();
        while let Some(number) = work.pop() {
            if !std::mem::replace(&mut reached[number], true) {
                work.extend(&predecessors[number]);
            }
        }
        reached.iter().all(|&reached| reached)
    })
}

/// Returns true if every access that begins can be performed, and begin again. Compares the result with and without
/// symmetry. `can_begin_again` is false if some access cannot begin again.
fn accesses_can_complete(case: &Case, can_begin_again: bool) -> Result<bool, JudgeError> {
    let Case {
        protocol, remotes, ..
    } = case;
    let size = (*remotes, lines_of(protocol));
    let system_options = system::Options::default();
    let judged = |options: &Options| {
        progress(protocol, home(protocol), size, &system_options, options)
            .map_err(|error| JudgeError::Disagreement(format!("no verdict on progress: {error}")))
    };
    let orbits = Options {
        symmetry: true,
        ..exhaustive_options()
    };
    let [plain, orbits] = [judged(&exhaustive_options())?, judged(&orbits)?];
    let summarise = |found: &Progress| {
        let outcome = match &found.outcome {
            Outcome::Violated { trace, .. } => {
                format!("violated, after {} steps", trace.steps.len())
            }
            Outcome::Exceeded { .. } => "exceeded".into(),
            other => format!("{other:?}"),
        };
        (outcome, found.never_started.clone(), found.notes.len())
    };
    if can_begin_again && !plain.notes.is_empty() {
        let reason = format!("each access can begin again; {}", plain.notes.join("; "));
        return Err(JudgeError::Disagreement(reason));
    }
    match summarise(&plain) == summarise(&orbits) {
        true => Ok(plain.outcome == Outcome::Verified && plain.notes.is_empty()),
        false => Err(JudgeError::Disagreement(format!(
            "progress: {:?}, over orbits {:?}",
            summarise(&plain),
            summarise(&orbits)
        ))),
    }
}

/// Compares the execution with the checker: interpreted, compiled, over orbits, printed as Murphi and read again, and
/// state by state.
///
/// # Errors
/// The two disagree.
pub fn models(case: &Case) -> Result<AgreedVerdict, JudgeError> {
    let Case {
        protocol,
        remotes,
        found,
    } = case;
    if matches!(found, Found::LimitReached { .. }) {
        return Ok(AgreedVerdict::Undecided);
    }
    let model = safety(protocol, home(protocol), *remotes)?;
    let plain = run(&model, &exhaustive_options())?;
    let agreed = check_agreement("interpreted", found, &plain)?;
    compare_with_words(protocol, *remotes, found)?;
    let compiled = Options {
        engine: Engine::Native,
        threads: 2,
        ..exhaustive_options()
    };
    let compiled = run(&model, &compiled)?;
    if compiled != plain {
        let reason = format!(
            "compiled: {}, {}",
            format_report(&plain),
            format_report(&compiled)
        );
        return Err(JudgeError::Disagreement(reason));
    }
    let orbits = Options {
        symmetry: true,
        ..exhaustive_options()
    };
    let orbits = run(&model, &orbits)?;
    let agree = match (&plain.outcome, &orbits.outcome) {
        (Outcome::Verified, Outcome::Verified) => orbits.states <= plain.states,
        (
            Outcome::Violated { trace, .. },
            Outcome::Violated {
                trace: orbit_trace, ..
            },
        )
        | (
            Outcome::Exceeded { trace, .. },
            Outcome::Exceeded {
                trace: orbit_trace, ..
            },
        ) => trace.steps.len() == orbit_trace.steps.len(),
        // If a violation and an exceeded capacity are at the same distance, each search finds another one first.
        (Outcome::Violated { .. }, Outcome::Exceeded { .. })
        | (Outcome::Exceeded { .. }, Outcome::Violated { .. }) => {
            let violated = |wrong: &StepError| matches!(wrong, StepError::Violated(_));
            matches!(found, Found::Violated { errors, .. } if errors.iter().any(violated) && !errors.iter().all(violated))
        }
        _ => false,
    };
    if !agree {
        let reason = format!(
            "orbits: {}, {}",
            format_report(&plain),
            format_report(&orbits)
        );
        return Err(JudgeError::Disagreement(reason));
    }
    check_printed_model(&model, &plain)?;
    if let Found::Safe {
        states, stuck_path, ..
    } = found
    {
        check_quiescence(protocol, *remotes, stuck_path.is_some())?;
        compare_states(protocol, &model, states)?;
    }
    Ok(agreed)
}

/// Compares the result with one bit per copy with that of words that stores write. The number of words is unbounded, so
/// only the first states are visited: each violation in them also occurs with bits, at no greater distance.
fn compare_with_words(
    protocol: &Protocol,
    remotes: Remotes,
    found: &Found,
) -> Result<(), JudgeError> {
    let capacity = system::Options::default().capacity;
    let system = System::new(
        protocol,
        home(protocol),
        remotes,
        lines_of(protocol),
        capacity,
    );
    let words = explore(&system, SystemState::<Words>::new(&system), MAX_STATES);
    match (found, &words) {
        (_, cohkit_system::state::Found::Violated { path, .. }) if !matches!(found, Found::Violated { path: bits, .. } if bits.len() <= path.len()) =>
        {
            let steps = path.len();
            let reason =
                format!("with words a property is violated after {steps} steps, with bits none");
            Err(JudgeError::Disagreement(reason))
        }
        (Found::Violated { path, .. }, cohkit_system::state::Found::Safe { .. }) => {
            let steps = path.len();
            let reason =
                format!("with bits a property is violated after {steps} steps, with words none");
            Err(JudgeError::Disagreement(reason))
        }
        _ => Ok(()),
    }
}

/// Compares the execution with an independent checker of the printed Murphi model. `checker` returns true if there is
/// no violation, the number of states, and its output.
///
/// # Errors
/// The protocol is rejected, or the two disagree.
pub fn rumur(
    text: &str,
    checker: impl FnOnce(&Model) -> (bool, u64, String),
) -> Result<AgreedVerdict, JudgeError> {
    let case = case(text)?;
    if matches!(case.found, Found::LimitReached { .. }) {
        return Ok(AgreedVerdict::Undecided);
    }
    let model = safety(&case.protocol, home(&case.protocol), case.remotes)?;
    let (holds, rumur_states, output) = checker(&model);
    match &case.found {
        Found::Safe { states, .. } if holds && states.len() as u64 == rumur_states => {
            Ok(AgreedVerdict::Verified(states.len()))
        }
        Found::Violated { .. } if !holds => Ok(AgreedVerdict::Violated),
        Found::Safe { states, .. } => {
            let executed = states.len();
            let reason = format!("Rumur: {output}; executed: {executed} states, verified");
            Err(JudgeError::Disagreement(reason))
        }
        other => Err(JudgeError::Disagreement(format!(
            "Rumur: {output}; executed: {other:?}"
        ))),
    }
}

/// Checks that the printed Murphi model is equivalent.
fn check_printed_model(model: &Model, plain: &Report) -> Result<(), JudgeError> {
    let text = print(model, Style::Plain)
        .map_err(|error| JudgeError::Disagreement(format!("it is not printed: {error}")))?;
    let reread = read("random", &text, Dialect::Rumur)
        .map_err(|_| JudgeError::Disagreement("what is printed is not read".into()))?;
    let mut reread = reread.model;
    reread.deadlock = Deadlock::Off;
    let reread = run(&reread, &exhaustive_options())?;
    let agree = match (&plain.outcome, &reread.outcome) {
        (Outcome::Verified, Outcome::Verified) => plain.states == reread.states,
        // In Murphi an exceeded capacity is an error like any other.
        (Outcome::Violated { .. } | Outcome::Exceeded { .. }, Outcome::Violated { .. }) => true,
        _ => false,
    };
    match agree {
        true => Ok(()),
        false => {
            let reason = format!(
                "printed: {}, {}",
                format_report(plain),
                format_report(&reread)
            );
            Err(JudgeError::Disagreement(reason))
        }
    }
}

/// Checks that the model agrees on whether quiescence is always reachable. It is the only liveness property known here.
fn check_quiescence(
    protocol: &Protocol,
    remotes: Remotes,
    execution_is_stuck: bool,
) -> Result<(), JudgeError> {
    let options = system::Options::default();
    let lines = lines_of(protocol);
    let model = system::model(protocol, home(protocol), remotes, lines, &options);
    let mut model =
        model.map_err(|error| JudgeError::Disagreement(format!("no model: {error}")))?;
    model.liveness.clear();
    model.covers.clear();
    for symmetry in [false, true] {
        let options = Options {
            symmetry,
            ..exhaustive_options()
        };
        let report = run(&model, &options)?;
        let model_is_stuck = match &report.outcome {
            Outcome::Violated {
                property: Property::Drain | Property::NoDeadlock,
                ..
            } => true,
            Outcome::Verified => false,
            _ => {
                return Err(JudgeError::Disagreement(format!(
                    "quiescence: {}",
                    format_report(&report)
                )))
            }
        };
        if model_is_stuck != execution_is_stuck {
            let reason = format!(
                "quiescence: {}; executed, some state cannot reach it: {execution_is_stuck}",
                format_report(&report)
            );
            return Err(JudgeError::Disagreement(reason));
        }
    }
    Ok(())
}

/// Values of the agents of a state's first line, by the name of the model's variable.
fn agents(protocol: &Protocol, system_state: &SystemState<Current>) -> BTreeMap<String, String> {
    let line = &system_state.lines[0];
    let mut values = BTreeMap::new();
    let mut agent = |controller: &Controller,
                     configuration: &Configuration,
                     (index, register_index): (&str, &str)| {
        let name = &controller.name;
        let state = &controller.states[usize::from(configuration.state)].name;
        values.insert(format!("{name}_state{index}"), state.clone());
        let mut slots = configuration.slots.iter();
        let mut slot = || slots.next().expect("a slot for each value");
        for variable in &controller.variables {
            // A register belongs to no line.
            let index = if variable.register {
                register_index
            } else {
                index
            };
            let variable_name = format!("{name}_{}{index}", variable.name);
            match variable.ty {
                Type::RemoteSet => {
                    let value = slot();
                    for remote in 0..line.remotes.len() {
                        let member = value >> remote & 1 != 0;
                        values.insert(format!("{variable_name}[{remote}]"), member.to_string());
                    }
                }
                ty if ty.is_home_set() => {
                    let value = slot();
                    for home in 0..ty.extent(0)[0] {
                        values.insert(
                            format!("{variable_name}[{home}]"),
                            (value >> home & 1).to_string(),
                        );
                    }
                }
                Type::Array { .. } => {
                    let [first, second] = variable.ty.extent(line.remotes.len() as u16);
                    let is_two_dimensional = matches!(
                        variable.ty,
                        Type::Array {
                            second_domain: Some(_),
                            ..
                        }
                    );
                    for (row, column) in (0..first).flat_map(|a| (0..second).map(move |b| (a, b))) {
                        let variable_name = match is_two_dimensional {
                            true => format!("{variable_name}[{row}][{column}]"),
                            false => format!("{variable_name}[{row}]"),
                        };
                        values.insert(variable_name, slot().to_string());
                    }
                }
                _ => {
                    values.insert(variable_name, slot().to_string());
                }
            }
        }
    };
    agent(home(protocol), &line.home, ("[0]", ""));
    for (number, remote) in line.remotes.iter().enumerate() {
        let (index, register_index) = (format!("[0][{number}]"), format!("[{number}]"));
        agent(
            &protocol.remote,
            &remote.configuration,
            (&index, &register_index),
        );
    }
    for (number, remote) in line.remotes.iter().enumerate() {
        let variable_name = format!("{}_current[0][{number}]", protocol.remote.name);
        values.insert(variable_name, remote.copy.to_string());
    }
    values.insert("memory_current[0]".into(), line.memory.to_string());
    values
}

/// Compares the states of model and execution, as far as agents show them.
fn compare_states(
    protocol: &Protocol,
    model: &Model,
    states: &[SystemState<Current>],
) -> Result<(), JudgeError> {
    // The agents of one line say little about coupled lines; the number of states is compared anyway.
    if lines_of(protocol) > 1 {
        return Ok(());
    }
    let graph = graph(model, MAX_STATES, None).map_err(JudgeError::Disagreement)?;
    let mut executed: Vec<BTreeMap<String, String>> = states
        .iter()
        .map(|system_state| agents(protocol, system_state))
        .collect();
    let initial = executed[0].clone();
    let mut lowered: Vec<BTreeMap<String, String>> = Vec::new();
    for (number, state) in graph.states.iter().enumerate() {
        let mut values = initial.clone();
        for assignment in state.values.iter().filter(|_| number > 0) {
            if let Some(value) = values.get_mut(&assignment.variable) {
                value.clone_from(&assignment.value);
            }
        }
        lowered.push(values);
    }
    executed.sort();
    lowered.sort();
    match executed.iter().zip(&lowered).find(|(a, b)| a != b) {
        None => Ok(()),
        Some((a, b)) => Err(JudgeError::Disagreement(format!(
            "a state of agents that is executed and one that is lowered: {a:?}, {b:?}"
        ))),
    }
}
