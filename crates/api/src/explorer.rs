//! Interactive exploration of a protocol's system: possible steps and their results.
//!
//! A state is named by its path: a list of numbers, each the position of the chosen step among the possible ones.
//! Exploration is stateless: every request replays its path, and undo is a request with a shorter path. A path leads to
//! the same state as long as the protocol file is unchanged.

use crate::protocol_check::Systems;
use crate::sequence_builder::SequenceBuilder;
use crate::source::{InputError, Source};
use cohkit_protocol::construct::{home, ConstructionError};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use cohkit_system::data::Current;
use cohkit_system::state::{
    explore, Found, Step, StepError, System, SystemState, DEFAULT_CHANNEL_CAPACITY,
};
use serde_json::{json, Value};

/// A system of a protocol to explore.
pub struct Explorer {
    /// Names of the protocol and of the system, separated by a space.
    name: String,
    /// Protocol with the parameters of the system.
    protocol: Protocol,
    /// Controller of the home, written or constructed for this number of remotes.
    home: Controller,
    /// Number of remotes, in total and of each kind.
    remotes: Remotes,
    /// Number of cache lines.
    lines: u8,
    /// True if an outer level backs its memory (`parent any`).
    parent_any: bool,
}

/// Reason why there is nothing to explore.
pub enum ExplorerError {
    /// The request names something unknown.
    Input(InputError),
    /// The home cannot be constructed.
    NoHome(ConstructionError),
}

/// A possible step, and the violation at it or after it, if any.
struct Choice {
    /// Step, as the simulated system executes it.
    step: Step,
    /// Violation or exceeded capacity; after such a step, no further step is offered.
    error: Option<StepError>,
}

/// State of the system in which copies of a line are known only as current or outdated.
type State = SystemState<Current>;

impl Explorer {
    /// Creates an explorer for the first of the selected systems.
    ///
    /// # Errors
    /// There is no such system, or its home cannot be constructed.
    pub fn new(source: &Source, systems: &Systems) -> Result<Explorer, ExplorerError> {
        let systems = systems.of(source).map_err(ExplorerError::Input)?;
        let system = &systems[0];
        let protocol = system
            .resized_protocol
            .as_deref()
            .unwrap_or(&source.protocol)
            .clone();
        let home = home(&protocol, system.remotes.total()).map_err(ExplorerError::NoHome)?;
        Ok(Explorer {
            name: format!("{} {}", protocol.name, system.name),
            remotes: system.remotes,
            lines: system.lines,
            parent_any: system.parent_any,
            protocol,
            home,
        })
    }

    /// Builds the executable system, with [`DEFAULT_CHANNEL_CAPACITY`] in every channel.
    fn system(&self) -> System<'_> {
        let system = System::new(
            &self.protocol,
            &self.home,
            self.remotes,
            self.lines,
            DEFAULT_CHANNEL_CAPACITY,
        );
        match self.parent_any {
            true => system.with_backing_permission(),
            false => system,
        }
    }

    /// Returns the state at the end of a path as JSON: the message chart up to the state, the agents by line, the
    /// messages in flight, the possible steps, and the violation, if any. After a violation, the list of possible
    /// steps is empty.
    ///
    /// # Errors
    /// The path contains a step that is not possible; the message names its number, counted from 0.
    pub fn view(&self, path: &[usize]) -> Result<Value, String> {
        let system = self.system();
        let mut state = State::new(&system);
        let mut builder = SequenceBuilder::new(&system);
        let mut step_texts = Vec::new();
        let mut violation = property_violation(&state, &system);
        for (number, &position) in path.iter().enumerate() {
            let choices = if violation.is_none() {
                choices(&state, &system)
            } else {
                Vec::new()
            };
            let Some(choice) = choices.get(position) else {
                return Err(format!(
                    "step {number} of this path is choice {position}, but {} can happen there",
                    choices.len()
                ));
            };
            step_texts.push(state.words(&system, choice.step));
            let previous = state.clone();
            // `choice.error` already has the violation of this step, if any.
            let _ = state.take(&system, choice.step);
            builder.append_step(choice.step, [&previous, &state]);
            violation = choice.error.as_ref().map(error_text);
        }
        let next = if violation.is_none() {
            choices(&state, &system)
        } else {
            Vec::new()
        };
        let next: Vec<Value> = next
            .iter()
            .map(|choice| {
                json!({
                    "text": state.words(&system, choice.step),
                    "spontaneous": choice.step.spontaneous(),
                    "wrong": choice.error.as_ref().map(error_text),
                })
            })
            .collect();
        Ok(json!({
            "system": self.name,
            "path": path,
            "taken": step_texts,
            "lines": builder.lines(&state),
            "in_flight": builder.in_flight(),
            "next": next,
            "violation": violation,
            "quiescent": state.quiescent(&system),
            "sequence": builder.sequence(),
        }))
    }

    /// Searches at most `max_states` states for a violation, and returns a shortest path to it under the key `path`. If
    /// no violation is found, `path` is null, `explored_states` is the number of states searched, and `all` is true
    /// unless the limit was reached.
    pub fn nearest_violation(&self, max_states: usize) -> Value {
        let system = self.system();
        let steps = match explore(&system, State::new(&system), max_states) {
            Found::Violated { errors, path } => Some((path, errors.first().map(error_text))),
            Found::Safe {
                stuck_path: Some(path),
                ..
            } => Some((
                path,
                Some(json!("no quiescent state is reachable from here")),
            )),
            Found::Safe { states, .. } => {
                let searched = states.len();
                return json!({ "path": null, "what": null, "explored_states": searched, "all": true });
            }
            Found::LimitReached { states } => {
                return json!({ "path": null, "what": null, "explored_states": states, "all": false });
            }
        };
        let (steps, violation) = steps.expect("the other results have returned");
        let mut state = State::new(&system);
        let mut path = Vec::new();
        for step in steps {
            let position = choices(&state, &system)
                .iter()
                .position(|choice| choice.step == step);
            path.push(position.expect("a step of a path is possible"));
            // The violation of the last step is already known.
            let _ = state.take(&system, step);
        }
        json!({ "path": path, "what": violation, "explored_states": null, "all": false })
    }
}

/// Possible steps in a fixed order, without those that are blocked or change nothing.
fn choices(state: &State, system: &System) -> Vec<Choice> {
    let tried_choices = state.steps(system).into_iter().filter_map(|step| {
        let mut next = state.clone();
        let error = match next.take(system, step) {
            Ok(false) => return None,
            Ok(true) => next.claims(system).err().map(StepError::Violated),
            Err(error) => Some(error),
        };
        Some(Choice { step, error })
    });
    tried_choices.collect()
}

/// Violation of a property that the state itself shows, as text.
fn property_violation(state: &State, system: &System) -> Option<Value> {
    let violation = state.claims(system).err()?;
    Some(error_text(&StepError::Violated(violation)))
}

/// Violation or exceeded capacity as text.
fn error_text(error: &StepError) -> Value {
    match error {
        StepError::Violated(violation) => {
            json!(format!("{}: {}", violation.property, violation.description))
        }
        StepError::Exceeded(limit) => {
            json!(format!(
                "{limit}: a limit of this search, not of the protocol"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{json, Explorer, Source, Systems, Value};

    fn explorer(text: &str, remotes: u16) -> Explorer {
        let source = Source::parse("test.coh".into(), text.into()).expect("valid protocol");
        let Ok(explorer) = Explorer::new(&source, &Systems::Sized { remotes, lines: 1 }) else {
            panic!("the system can be explored");
        };
        explorer
    }

    const MSI: &str = include_str!("../../../protocols/msi.coh");
    const POLICY: &str = include_str!("../../../protocols/msi-policy.coh");

    #[test]
    fn chosen_steps_are_applied_and_described() {
        let explorer = explorer(MSI, 2);
        let initial_view = explorer.view(&[]).expect("initial view");
        assert_eq!(initial_view["quiescent"], true);
        let texts = |view: &Value| -> Vec<String> {
            let next = view["next"].as_array().expect("a JSON list");
            next.iter()
                .map(|item| item["text"].as_str().expect("a JSON string").to_string())
                .collect()
        };
        let load = texts(&initial_view)
            .iter()
            .position(|item| item == "cache 0: load");
        let load = load.expect("a load is possible");
        let after_load = explorer.view(&[load]).expect("the path is possible");
        assert_eq!(after_load["lines"][0]["agents"][0]["state"], "IS_D");
        assert_eq!(
            after_load["in_flight"],
            json!(["GetS: cache 0 to directory"])
        );
        let arrival = texts(&after_load)
            .iter()
            .position(|item| item == "GetS of cache 0 reaches the home");
        let after_request = explorer
            .view(&[load, arrival.expect("the request can arrive")])
            .expect("the path is possible");
        let kinds: Vec<&Value> = after_request["sequence"]["steps"]
            .as_array()
            .expect("a JSON list")
            .iter()
            .map(|step| &step["action"]["kind"])
            .collect();
        assert_eq!(
            kinds,
            ["does", "send", "becomes", "receive", "send", "becomes"]
        );
        assert!(after_request["lines"][0]["agents"][2]["state"]
            .as_str()
            .expect("a JSON string")
            .starts_with("S"));
        // An impossible step is rejected.
        let error = explorer
            .view(&[load, 99])
            .expect_err("choice 99 does not exist");
        assert!(
            error.starts_with("step 1 of this path is choice 99, but "),
            "{error}"
        );
    }

    #[test]
    fn every_step_of_a_path_can_be_viewed() {
        // Every state along a path of 40 steps can be viewed, and offers steps.
        for (text, remotes) in [(MSI, 2), (POLICY, 2)] {
            let explorer = explorer(text, remotes);
            let mut path = Vec::new();
            for step in 0..40_usize {
                let view = explorer.view(&path).expect("an offered step is possible");
                assert_eq!(view["taken"].as_array().map(Vec::len), Some(step));
                let choices = view["next"].as_array().expect("a JSON list").len();
                assert!(choices > 0, "no step is possible after {path:?}");
                assert_eq!(view["violation"], Value::Null);
                path.push((step * 7 + 3) % choices);
            }
        }
    }

    #[test]
    fn nearest_violation_is_found_and_reachable() {
        let broken_protocol = MSI
            .lines()
            .map(|line| {
                let row = line.trim_start();
                match row.starts_with("S ") && row.contains("| Inv ") {
                    true => line.replace("| I", "| S").replace("| Snv", "| Inv"),
                    false => line.to_string(),
                }
            })
            .collect::<Vec<_>>()
            .join("\n");
        assert_ne!(broken_protocol, MSI);
        let explorer = explorer(&broken_protocol, 2);
        let violation = explorer.nearest_violation(100_000);
        let path: Vec<usize> = serde_json::from_value(violation["path"].clone()).expect("a path");
        let view = explorer.view(&path).expect("the path is possible");
        assert_eq!(
            view["violation"],
            "single writer: another agent still has read or write permission"
        );
        assert_eq!(view["violation"], violation["what"]);
        assert_eq!(view["next"], json!([]));
        // The checker's counterexample is equally long.
        assert_eq!(path.len(), 8);
        assert_eq!(
            explorer.view(&path[..7]).expect("a prefix of the path")["violation"],
            Value::Null
        );
    }

    #[test]
    fn violation_search_reports_whether_it_was_exhaustive() {
        let explorer = explorer(MSI, 2);
        let complete = explorer.nearest_violation(100_000);
        assert_eq!(
            (&complete["path"], &complete["all"]),
            (&Value::Null, &json!(true))
        );
        let limited = explorer.nearest_violation(100);
        assert_eq!(
            (&limited["path"], &limited["all"]),
            (&Value::Null, &json!(false))
        );
    }
}
