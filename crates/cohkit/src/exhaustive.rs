//! `cohkit play --exhaustive`: explores an application behind a home, with its threads, in every order of events.

use crate::console::Console;
use crate::deliver;
use crate::options::Play as Options;
use cohkit_api::application_run::{bounding_options, parse_parameters, Play};
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::simulation::StartError;
use cohkit_application::interface::{Line, Scenario, Thread};
use cohkit_application::shipped::{visit, Visitor};
use cohkit_base::words::counted;
use cohkit_play::{explore_while, ExplorationModel, ExplorationResult};
use cohkit_protocol::construct::permissions::KnownPermissions;
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::Hash;
use std::time::Instant;

/// Maximum number of lines of an explored application; more have too many states in any case.
const MAX_LINES: Line = 8;

/// Checks that an application is small enough to be explored.
struct SizeCheck<'a>(&'a Options);

impl Visitor for SizeCheck<'_> {
    type Output = Result<(), StartError>;

    fn visit<S: Scenario>(self, scenario: S) -> Result<(), StartError> {
        let Options {
            application,
            params,
            ..
        } = self.0;
        if !scenario.terminates() {
            let help = match bounding_options(application, params, 2) {
                numbers if numbers.is_empty() => "`--param help` lists its parameters".into(),
                numbers => format!("`{numbers}` ends it"),
            };
            let message = "the application never ends, so `--exhaustive` cannot check that its end is reachable";
            return Err(StartError::input(message, help));
        }
        let (lines, words) = (scenario.lines(), scenario.words());
        if lines > MAX_LINES || words > u16::MAX.into() {
            let lines = counted(lines, "line");
            let message = format!("this uses {lines}, and up to {MAX_LINES} can be explored");
            return Err(StartError::input(
                message,
                "`--param help` lists its parameters, which can make it smaller",
            ));
        }
        Ok(())
    }
}

/// Explores an application.
struct ApplicationExplorer<'a> {
    /// Validated application, with the setup of its machine.
    play: &'a Play,
    /// Highest permission of remotes that the constructed home's knowledge allows, in each configuration of its
    /// controller.
    permissions: &'a KnownPermissions,
    /// Maximum number of states; beyond it, the exploration has no verdict.
    max_states: usize,
    /// Callback that is polled during the exploration, which ends soon after it returns false.
    should_continue: &'a mut dyn FnMut() -> bool,
}

impl Visitor for ApplicationExplorer<'_> {
    type Output = Option<ExplorationResult>;

    fn visit<S>(self, scenario: S) -> Option<ExplorationResult>
    where
        S: Scenario + Clone + Send + Sync + 'static,
        S::Application: Clone + Eq + Hash,
        S::Thread: Thread + Clone + Eq + Hash,
    {
        let setup = &self.play.setup;
        let platform = &setup.platform;
        let home = &platform.home;
        let lines = scenario.lines();
        // A line belongs to one unit, so units beyond the number of lines are idle.
        let units = home.slices.value.saturating_mul(home.units.value);
        let model = ExplorationModel {
            protocol: &setup.protocol,
            home: &setup.home,
            permissions: self.permissions,
            scenario: &scenario,
            remotes: platform.remotes,
            lines,
            words: scenario.words() as u16,
            units: units.min(lines.max(1).into()) as u32,
            max_deferred: home.stall_entries.value as usize,
            max_reads: home.max_reads.as_ref().map_or(1, |reads| reads.value) as usize,
            max_states: self.max_states,
        };
        explore_while(&model, self.should_continue)
    }
}

/// Checks that the application ends by itself and is small enough, before anything is constructed.
///
/// # Errors
/// The application is unknown, combined, endless or too large.
pub(crate) fn check_size(options: &Options) -> Result<(), StartError> {
    let input_error = |reason| StartError::Input {
        message: reason,
        help: None,
    };
    if options.application.contains('+') {
        let message = "`--exhaustive` explores one application, but several are given";
        return Err(input_error(message.into()));
    }
    let values = parse_parameters(&options.params)?;
    visit(&options.application, &values, SizeCheck(options)).map_err(input_error)?
}

/// Explores the application, and delivers the result.
///
/// # Errors
/// The home is not a policy, the exploration was interrupted, or the output cannot be written.
pub(crate) fn run(
    play: &Play,
    options: &Options,
    console: &mut Console,
) -> Result<ExitStatus, Failure> {
    let values: BTreeMap<String, u64> = (play.parameter_values.iter()).cloned().collect();
    let permissions = play.setup.play.as_ref();
    let Some(permissions) = permissions.and_then(|play| play.permissions.as_ref()) else {
        let error = "error: `--exhaustive` supports only homes that are written as a policy";
        return Err(Failure::new(ExitStatus::BadInput, error));
    };
    let start = Instant::now();
    let explorer = ApplicationExplorer {
        play,
        permissions,
        max_states: options.max_states,
        should_continue: &mut || !console.is_interrupted(),
    };
    let result = visit(&options.application, &values, explorer);
    let result =
        result.map_err(|reason| Failure::new(ExitStatus::BadInput, format!("error: {reason}")))?;
    let Some(result) = result else {
        return Err(Failure::new(ExitStatus::Interrupted, "interrupted"));
    };
    if let ExplorationResult::NotExplored(reason) = &result {
        return Err(Failure::new(
            ExitStatus::BadInput,
            format!("error: {reason}"),
        ));
    }
    let text = match options.output.form.json {
        true => options.output.form.format_output(
            result_json(play, &result, start.elapsed().as_secs_f64()),
            console,
        ),
        false => report(play, &result),
    };
    deliver(&text, &options.output, console)?;
    Ok(match result {
        ExplorationResult::Verified { .. } => ExitStatus::Success,
        ExplorationResult::Violated { .. } => ExitStatus::Violated,
        ExplorationResult::Undecided { .. } => ExitStatus::Undecided,
        ExplorationResult::NotExplored(_) => ExitStatus::BadInput,
    })
}

/// Result as text.
fn report(play: &Play, result: &ExplorationResult) -> String {
    let parameters = play.parameter_values.iter();
    let parameters: Vec<String> = parameters
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let setup = &play.setup;
    let mut text = format!(
        "{} on {}: {} with {}, in every order of events\n",
        setup.protocol.name,
        setup.platform.name,
        play.request.application,
        parameters.join(" ")
    );
    let _ = match result {
        ExplorationResult::Verified {
            states,
            final_states,
        } => {
            let states = counted(*states as u64, "state");
            writeln!(
                text,
                "verified: {states}, and the end is reachable from each; {final_states} are final states"
            )
        }
        ExplorationResult::Violated {
            violation: reason,
            steps,
        } => {
            let _ = writeln!(text, "violated: {reason}");
            for (number, step) in (1..).zip(steps) {
                let _ = writeln!(text, "{number:>3}. {step}");
            }
            Ok(())
        }
        ExplorationResult::Undecided { states } => {
            let states = counted(*states as u64, "state");
            writeln!(text, "undecided: state limit reached: more than {states}")
        }
        ExplorationResult::NotExplored(reason) => writeln!(text, "{reason}"),
    };
    text
}

/// Result as JSON, described in `docs/output.md`.
fn result_json(play: &Play, result: &ExplorationResult, seconds: f64) -> Value {
    let parameters = play.parameter_values.iter();
    let parameters: Map<String, Value> = parameters
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let (outcome, states, final_states, violation) = match result {
        ExplorationResult::Verified {
            states,
            final_states,
        } => ("verified", json!(states), json!(final_states), Value::Null),
        ExplorationResult::Violated {
            violation: reason,
            steps,
        } => {
            let violation = json!({ "message": reason, "steps": steps });
            ("violated", Value::Null, Value::Null, violation)
        }
        ExplorationResult::Undecided { states } => {
            ("undecided", json!(states), Value::Null, Value::Null)
        }
        ExplorationResult::NotExplored(_) => ("undecided", Value::Null, Value::Null, Value::Null),
    };
    json!({
        "protocol": play.setup.protocol.name,
        "platform": play.setup.platform.name,
        "application": play.request.application,
        "settings": play.request.settings,
        "parameters": parameters,
        "outcome": outcome,
        "states": states,
        "final_states": final_states,
        "violation": violation,
        "run": {
            "file": play.source.path.display().to_string(),
            "seconds": seconds,
            "version": env!("CARGO_PKG_VERSION"),
        },
    })
}
