//! Joint exploration of two levels of a composition.

use crate::outcome::ExitStatus;
use cohkit_base::words::counted;
use cohkit_engine::report::Status;
use cohkit_protocol::composition::{Composition, JoinedLevels, JointSystem};
use cohkit_protocol::construct::home;
use cohkit_system::state::{
    explore_levels, Clusters, Found, Levels, Search, StepError, System, DEFAULT_CHANNEL_CAPACITY,
};
use serde_json::{json, Value};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Default limit on the number of states; each state takes a few hundred bytes.
pub(crate) const DEFAULT_MAX_STATES: u64 = 20_000_000;

/// Verdict on two levels that were explored together.
pub struct JointVerdict {
    /// Names of the composition and of the system.
    name: String,
    /// Name of the composition.
    protocol: String,
    /// Name of the system.
    system: String,
    /// Names of the levels, as `INNER, INNER over OUTER`.
    levels: String,
    /// Number of remotes of the outer level.
    remotes: u16,
    /// Number of lines of the outer level.
    lines: u8,
    /// Number of states found; up to symmetry, if states are identified that differ in the order of equal agents.
    pub states: usize,
    /// True if states are identified that differ in the order of equal agents.
    symmetric: bool,
    /// Number of transitions; `None` unless the search was complete.
    transitions: Option<u64>,
    /// Maximum number of steps from the initial state; `None` unless the search was complete.
    depth: Option<u64>,
    /// Result of the search.
    outcome: SearchOutcome,
}

/// Options of a joint exploration.
#[derive(Clone, Copy, Debug)]
pub struct JointOptions {
    /// Maximum number of states, by default 20 million.
    pub max_states: Option<u64>,
    /// True to explore states once that differ in the order of equal agents.
    pub symmetry: bool,
}

/// Outcome of a joint exploration.
enum SearchOutcome {
    /// All states were explored, and no property is violated.
    Verified,
    /// A property is violated.
    Violated {
        /// Name of the property.
        property: String,
        /// Description of the violation.
        description: String,
        /// Steps from the initial state to the violation.
        path: Vec<String>,
    },
    /// Reason why the search has no verdict, such as a limit.
    Undecided(String),
}

/// Names of the levels, as `INNER, INNER over OUTER`.
pub(crate) fn name(composition: &Composition, levels: &JoinedLevels) -> String {
    let name = |space: &usize| composition.spaces[*space].name.as_str();
    let inner: Vec<&str> = levels.inner.iter().map(name).collect();
    format!("{} over {}", inner.join(", "), name(&levels.outer))
}

/// Explores all states of two levels of a system, up to a limit (by default [`DEFAULT_MAX_STATES`]). The verdict is undecided if a home cannot be constructed, at the limit, and if another thread sets `cancel`.
pub(crate) fn judge(
    composition: &Composition,
    system: &JointSystem,
    joined: &JoinedLevels,
    options: JointOptions,
    cancel: &AtomicBool,
) -> JointVerdict {
    let outer_part = &system.parts[joined.outer];
    let mut verdict = JointVerdict {
        name: format!("{} {}", composition.name, system.name),
        protocol: composition.name.clone(),
        system: system.name.clone(),
        levels: name(composition, joined),
        remotes: outer_part.remotes.total(),
        lines: outer_part.lines,
        states: 0,
        symmetric: options.symmetry,
        transitions: None,
        depth: None,
        outcome: SearchOutcome::Verified,
    };
    let explored = with_levels(composition, system, joined, |levels| {
        explore(levels, options, cancel, &mut verdict);
    });
    if explored.is_none() {
        verdict.outcome = SearchOutcome::Undecided("a home cannot be constructed".into());
    }
    verdict
}

/// Runs a function on the levels of a system. `None` if a home cannot be constructed.
pub(crate) fn with_levels<T>(
    composition: &Composition,
    system: &JointSystem,
    joined: &JoinedLevels,
    run: impl FnOnce(&Levels) -> T,
) -> Option<T> {
    let spaces: Vec<usize> = std::iter::once(joined.outer)
        .chain(joined.inner.iter().copied())
        .collect();
    let homes = spaces.iter().map(|&space| {
        let remotes = system.parts[space].remotes.total();
        home(&composition.spaces[space].protocol, remotes).ok()
    });
    let homes = homes.collect::<Option<Vec<_>>>()?;
    let mut systems = spaces.iter().zip(&homes).map(|(&space, home)| {
        let (protocol, size) = (&composition.spaces[space].protocol, &system.parts[space]);
        let capacity = DEFAULT_CHANNEL_CAPACITY;
        System::new(protocol, home, size.remotes, size.lines, capacity)
    });
    let outer = systems.next()?;
    let clusters = systems.zip(joined.inner.iter().map(|&space| system.homes[space] as u8));
    Some(run(&Levels::of_clusters(outer, clusters.collect())))
}

/// Explores all states of two levels, and enters the result into the verdict.
fn explore(
    levels: &Levels,
    options: JointOptions,
    cancel: &AtomicBool,
    verdict: &mut JointVerdict,
) {
    let max_states = options.max_states.unwrap_or(DEFAULT_MAX_STATES);
    let search = Search {
        max_rows: usize::try_from(max_states).unwrap_or(usize::MAX),
        symmetry: options.symmetry,
    };
    let mut should_continue = || !cancel.load(Ordering::Relaxed);
    match explore_levels(levels, search, &mut should_continue) {
        Found::Safe {
            states,
            transitions,
            depth,
            stuck_path,
        } => {
            verdict.states = states.len();
            (verdict.transitions, verdict.depth) = (Some(transitions), Some(depth));
            if let Some(path) = stuck_path {
                verdict.outcome = SearchOutcome::Violated {
                    property: "quiescence".into(),
                    description: "no quiescent state is reachable from here by forced steps".into(),
                    path: Clusters::new(levels).follow(levels, &path),
                };
            }
        }
        Found::Violated { errors, path } => {
            let path = Clusters::new(levels).follow(levels, &path);
            verdict.outcome = violated_outcome(errors, path);
        }
        Found::LimitReached { states } => {
            verdict.states = states;
            let reason = match should_continue() {
                true => "state limit reached; raise it with `--max-states N`",
                false => "interrupted",
            };
            verdict.outcome = SearchOutcome::Undecided(reason.into());
        }
    }
}

/// Outcome of a search that ended with errors of one step: the first violation, or else the first exceeded limit.
fn violated_outcome(errors: Vec<StepError>, path: Vec<String>) -> SearchOutcome {
    let first_violation = errors.iter().find_map(|error| match error {
        StepError::Violated(violation) => Some(violation),
        StepError::Exceeded(_) => None,
    });
    match (first_violation, errors.first()) {
        (Some(violation), _) => SearchOutcome::Violated {
            property: violation.property.to_string(),
            description: violation.description.clone(),
            path,
        },
        (None, Some(StepError::Exceeded(limit))) => SearchOutcome::Undecided(limit.clone()),
        _ => SearchOutcome::Undecided("the search ended without a result".into()),
    }
}

impl JointVerdict {
    /// Returns the outcome that determines the exit code.
    pub fn outcome(&self) -> ExitStatus {
        match self.outcome {
            SearchOutcome::Verified => ExitStatus::Success,
            SearchOutcome::Violated { .. } => ExitStatus::Violated,
            SearchOutcome::Undecided(_) => ExitStatus::Undecided,
        }
    }

    /// Returns the verdict as text of one or more lines.
    pub fn text(&self) -> String {
        let (name, levels) = (&self.name, &self.levels);
        let mut states = counted(self.states as u64, "state");
        if self.symmetric {
            states += " up to symmetry";
        }
        match (&self.outcome, self.transitions, self.depth) {
            (SearchOutcome::Verified, Some(transitions), Some(depth)) => format!(
                "{name}: verified: {states} of {levels}, {transitions} transitions, depth {depth}\n"
            ),
            (
                SearchOutcome::Violated {
                    property,
                    description,
                    path,
                },
                ..,
            ) => {
                let steps = path.iter().map(|step| format!("    {step}\n"));
                format!(
                    "{name}: violated: {property}: {description}\n  by {levels}, after {}:\n{}",
                    counted(path.len() as u64, "step"),
                    steps.collect::<String>()
                )
            }
            (SearchOutcome::Undecided(reason), ..) => {
                format!("{name}: undecided: {reason}, after {states} of {levels}\n")
            }
            (SearchOutcome::Verified, ..) => unreachable!("a verified search has counts"),
        }
    }

    /// Returns the JSON entry, described in `docs/output.md`.
    pub fn json(&self, file: &Path) -> Value {
        let (outcome, status, reason) = match &self.outcome {
            SearchOutcome::Verified => ("verified", Status::Holds, None),
            SearchOutcome::Violated { .. } => ("violated", Status::Violated, None),
            SearchOutcome::Undecided(reason) => {
                ("undecided", Status::Undecided, Some(reason.as_str()))
            }
        };
        let counterexample = match &self.outcome {
            SearchOutcome::Violated {
                property,
                description,
                path,
            } => json!({
                "kind": "levels",
                "name": property,
                "message": description,
                "steps": path,
                "sequences": [],
                "trace": null,
                "explanation": null,
            }),
            _ => Value::Null,
        };
        json!({
            "protocol": self.protocol,
            "system": self.system,
            "remotes": self.remotes,
            "lines": self.lines,
            "outcome": outcome,
            "reason": reason,
            "states": self.states,
            "transitions": self.transitions,
            "depth": self.depth,
            "symmetric": true,
            "components": null,
            "properties": [{ "kind": "levels", "name": self.levels, "status": status }],
            "counterexample": counterexample,
            "assumptions": [],
            "notes": [],
            "run": {
                "file": file.display().to_string(),
                "version": env!("CARGO_PKG_VERSION"),
            },
        })
    }
}
