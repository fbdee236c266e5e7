//! Verdict on transactions that never end under fairness, as text and as JSON.

use crate::outcome::ExitStatus;
use crate::sequence_builder::SequenceBuilder;
use crate::source::Source;
use cohkit_base::exploration::{Limits, Stop};
use cohkit_base::sequence::Sequence;
use cohkit_base::words::counted;
use cohkit_chart::Text;
use cohkit_engine::report::Status;
use cohkit_protocol::construct::home;
use cohkit_protocol::protocol::System as DeclaredSystem;
use cohkit_system::starvation::{search, Answer, NoData, Starvation, Waiting};
use cohkit_system::state::{StepError, System, SystemState, DEFAULT_CHANNEL_CAPACITY};
use serde_json::{json, Value};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

pub use cohkit_system::starvation::Fairness;

/// Default limit on states: the executor takes some kilobytes for a state.
pub const DEFAULT_MAX_STATES: u64 = 500_000;

/// Verdict on the transactions of one system.
pub struct StarvationVerdict {
    /// Name of the system, and its numbers of remotes and lines.
    system: (String, u16, u8),
    fairness: Fairness,
    result: Outcome,
    /// Numbers of states and transitions that were visited.
    states: usize,
    transitions: usize,
}

/// Outcome of the search.
enum Outcome {
    Verified,
    Violated(Box<Counterexample>),
    /// Not decided, for this reason.
    Undecided(String),
    Interrupted,
}

/// A path on which a transaction never ends.
struct Counterexample {
    /// Description, as a clause.
    message: String,
    /// Steps as texts; those from `repeats_from` on repeat for ever.
    steps: Vec<String>,
    repeats_from: usize,
    sequence: Sequence,
}

impl StarvationVerdict {
    /// Searches a system of a protocol file. Setting `cancel` interrupts the search.
    pub(crate) fn of(
        source: &Source,
        declared: &DeclaredSystem,
        fairness: Fairness,
        max_states: Option<u64>,
        cancel: &AtomicBool,
    ) -> StarvationVerdict {
        let protocol = declared
            .resized_protocol
            .as_deref()
            .unwrap_or(&source.protocol);
        let remotes = declared.remotes.total();
        let mut verdict = StarvationVerdict {
            system: (declared.name.clone(), remotes, declared.lines),
            fairness,
            result: Outcome::Verified,
            states: 0,
            transitions: 0,
        };
        let Ok(home) = home(protocol, remotes) else {
            verdict.result = Outcome::Undecided("the home cannot be constructed".into());
            return verdict;
        };
        if declared.parent_any {
            let reason = "an outer level may revoke a permission before it is used";
            verdict.result = Outcome::Undecided(reason.into());
            return verdict;
        }
        let (remotes, lines) = (declared.remotes, declared.lines);
        let system = System::new(protocol, &home, remotes, lines, DEFAULT_CHANNEL_CAPACITY);
        let limits = Limits {
            max_states: max_states.unwrap_or(DEFAULT_MAX_STATES) as usize,
            should_continue: &mut || !cancel.load(Ordering::Relaxed),
        };
        let (answer, states, transitions) = search(&system, fairness, limits);
        (verdict.states, verdict.transitions) = (states, transitions);
        verdict.result = match answer {
            Answer::NoStarvation => Outcome::Verified,
            Answer::Starves(starvation) => {
                Outcome::Violated(Box::new(counterexample(&system, &starvation)))
            }
            Answer::StepFailed(StepError::Violated(_)) => {
                Outcome::Undecided("a step violates another property".into())
            }
            Answer::StepFailed(StepError::Exceeded(capacity)) => Outcome::Undecided(capacity),
            Answer::Stopped(Stop::StateLimit) => {
                Outcome::Undecided("the limit on states was reached".into())
            }
            Answer::Stopped(Stop::Cancelled) => Outcome::Interrupted,
        };
        verdict
    }

    /// Outcome that determines the exit code.
    pub fn outcome(&self) -> ExitStatus {
        match self.result {
            Outcome::Verified => ExitStatus::Success,
            Outcome::Violated(_) => ExitStatus::Violated,
            Outcome::Undecided(_) => ExitStatus::Undecided,
            Outcome::Interrupted => ExitStatus::Interrupted,
        }
    }

    /// Name of the assumption.
    fn assumption(&self) -> &'static str {
        match self.fairness {
            Fairness::Weak => "weak fairness",
            Fairness::Strong => "strong fairness",
        }
    }

    /// Verdict as text.
    pub fn text(&self, source: &Source, charts: &Text) -> String {
        let head = format!("{} {} fairness", source.protocol.name, self.system.0);
        let assumption = self.assumption();
        let size = format!(
            "{}, {}",
            counted(self.states as u64, "state"),
            counted(self.transitions as u64, "transition")
        );
        match &self.result {
            Outcome::Verified => {
                format!("{head}: verified: every transaction ends under {assumption}: {size}\n")
            }
            Outcome::Violated(found) => {
                let mut text = format!(
                    "{head}: violated: {} under {assumption}\n  {}, of which the last {} repeat; {size}\n",
                    found.message,
                    counted(found.steps.len() as u64, "step"),
                    found.steps.len() - found.repeats_from,
                );
                let chart = cohkit_chart::text(&found.sequence, charts);
                let _ = write!(text, "\n{chart}\n");
                text
            }
            Outcome::Undecided(reason) => {
                format!("{head}: undecided: {reason} after {size}\n")
            }
            Outcome::Interrupted => format!("{head}: undecided: interrupted after {size}\n"),
        }
    }

    /// JSON entry, described in `docs/output.md`.
    pub fn json(&self, source: &Source) -> Value {
        let (outcome, status, reason) = match &self.result {
            Outcome::Verified => ("verified", Status::Holds, None),
            Outcome::Violated(_) => ("violated", Status::Violated, None),
            Outcome::Undecided(reason) => ("undecided", Status::Undecided, Some(reason.as_str())),
            Outcome::Interrupted => ("undecided", Status::Undecided, Some("interrupted")),
        };
        let counterexample = match &self.result {
            Outcome::Violated(found) => json!({
                "kind": "no_starvation",
                "name": "every transaction ends",
                "message": found.message,
                "steps": found.steps,
                "repeats_from": found.repeats_from,
                "sequences": [cohkit_chart::json(&found.sequence)],
                "trace": null,
                "explanation": null,
            }),
            _ => Value::Null,
        };
        let (name, remotes, lines) = &self.system;
        json!({
            "protocol": source.protocol.name,
            "system": name,
            "remotes": remotes,
            "lines": lines,
            "outcome": outcome,
            "reason": reason,
            "states": self.states,
            "transitions": self.transitions,
            "depth": null,
            "symmetric": false,
            "components": null,
            "properties": [{
                "kind": "no_starvation",
                "name": "every transaction ends",
                "status": status,
            }],
            "fairness": match self.fairness {
                Fairness::Weak => "weak",
                Fairness::Strong => "strong",
            },
            "counterexample": counterexample,
            "assumptions": [self.assumption()],
            "notes": [],
            "run": {
                "file": source.path.display().to_string(),
                "version": env!("CARGO_PKG_VERSION"),
            },
        })
    }
}

/// Describes a path on which a transaction never ends.
fn counterexample(system: &System, starvation: &Starvation) -> Counterexample {
    let agent = match starvation.agent {
        Waiting::Remote(number) => Some(number),
        Waiting::Home => None,
    };
    let mut builder = SequenceBuilder::new(system);
    let mut state = SystemState::<NoData>::new(system);
    let (mut steps, mut message) = (Vec::new(), String::new());
    let lasso = &starvation.lasso;
    let steps_of_lasso = lasso.prefix.iter().chain(&lasso.cycle).copied().map(Some);
    for (number, step) in steps_of_lasso.chain([None]).enumerate() {
        if number == lasso.prefix.len() {
            let (name, waits_in) = builder.agent_and_state(agent, starvation.line, &state);
            let (kind, remark) = if starvation.is_deadlock() {
                (
                    "deadlock: nothing must happen, and",
                    "nothing happens below",
                )
            } else if starvation.is_livelock() {
                (
                    "livelock: messages circulate, and",
                    "the steps below repeat",
                )
            } else {
                ("starvation:", "the steps below repeat")
            };
            message = format!("{kind} the transaction of {name} in state `{waits_in}` never ends");
            builder.append_remark(agent, starvation.line, remark);
        }
        let Some(step) = step else {
            break;
        };
        steps.push(state.words(system, step));
        let before = state.clone();
        // The search has taken the same step.
        let _ = state.take(system, step);
        builder.append_step(step, [&before, &state]);
    }
    Counterexample {
        message,
        steps,
        repeats_from: lasso.prefix.len(),
        sequence: builder.sequence().clone(),
    }
}
