//! Progress: every access or operation that begins can be performed. [`crate::system::progress`] defines and justifies
//! the property.
//!
//! This check runs after all others have passed, because it relies on quiescence: every request can still complete. If
//! the rows of a protocol prove progress, no model is searched.

use crate::system::progress::{
    begin_model, conditional_accesses, core_accesses, lines_of, may_stop, missing_accesses,
    restart_model, unproven_kinds, watch_model, Kind,
};
use crate::system::{self, SystemError, SystemModel};
use cohkit_base::words::{counted, with_article};
use cohkit_engine::report::HigherLayerProperty;
use cohkit_engine::search::Options;
use cohkit_engine::trace::Trace;
use cohkit_engine::{check, CheckError, Outcome, Property, Report};
use cohkit_protocol::controller::{Access, Controller};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use std::fmt;

/// Property that a violation reported by [`progress`] names.
pub const PROGRESS: Property = Property::HigherLayer(HigherLayerProperty {
    kind: system::progress::PROGRESS,
});

/// Result of the progress check.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Verdict: verified, violated ([`PROGRESS`], or a property of a searched model), exceeded, or undecided because a
    /// limit ended a search.
    pub outcome: Outcome,
    /// Model that the verdict's trace belongs to; `None` if the outcome is verified or undecided.
    pub system_model: Option<SystemModel>,
    /// Names of accesses that the protocol file describes and that begin in no reachable state; empty unless verified.
    pub never_started: Vec<&'static str>,
    /// Names of accesses that every cache supports (load, store, evict) and that the protocol file has neither row nor
    /// permission for; empty unless verified.
    pub missing_accesses: Vec<&'static str>,
    /// Sentences, each about a line that a remote can never access again, with a shortest path to that state. Empty
    /// unless verified.
    pub notes: Vec<String>,
    /// The search that a limit ended, if any.
    pub undecided_search: Option<UndecidedSearch>,
}

/// A search for progress that a limit ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UndecidedSearch {
    /// Subject of the search, as a noun phrase: `progress of load`.
    pub question: String,
    /// Number of states visited.
    pub states: u128,
}

/// Error of the progress check. It is no verdict on the protocol.
#[derive(Debug)]
pub enum ProgressError {
    /// The system cannot be modelled.
    System(SystemError),
    /// The model cannot be checked.
    Check(CheckError),
}

impl fmt::Display for ProgressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgressError::System(error) => error.fmt(f),
            ProgressError::Check(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ProgressError {}

/// Checks the progress of a system whose other properties are verified. `remotes` and `lines` are the size of that
/// system; the searched models have at most as many lines (see [`lines_of`]). Each search has the limits of `options`,
/// and keeps no checkpoints.
///
/// # Errors
/// The system cannot be modelled, or the model cannot be checked.
pub fn progress(
    protocol: &Protocol,
    home: &Controller,
    (remotes, lines): (impl Into<Remotes>, u8),
    system_options: &system::Options,
    options: &Options,
) -> Result<Progress, ProgressError> {
    let searches = Searches {
        protocol,
        home,
        size: (remotes.into(), lines_of(protocol, lines)),
        system_options,
        options,
    };
    match searches.verified() {
        Ok(progress) => Ok(progress),
        Err(SearchStop::Undecided(progress)) => Ok(*progress),
        Err(SearchStop::Failed(error)) => Err(error),
    }
}

impl Progress {
    /// Result with this verdict, and nothing else to report.
    fn with_outcome(outcome: Outcome) -> Progress {
        Progress {
            outcome,
            system_model: None,
            never_started: Vec::new(),
            missing_accesses: Vec::new(),
            notes: Vec::new(),
            undecided_search: None,
        }
    }
}

/// End of the check at a search that verifies nothing.
enum SearchStop {
    /// A property is violated, or a limit ended the search.
    Undecided(Box<Progress>),
    /// The system cannot be modelled, or its model cannot be checked.
    Failed(ProgressError),
}

impl SearchStop {
    /// A violation or exceeded capacity in a model.
    fn with_model(outcome: Outcome, system_model: SystemModel) -> SearchStop {
        SearchStop::Undecided(Box::new(Progress {
            system_model: Some(system_model),
            ..Progress::with_outcome(outcome)
        }))
    }

    /// A limit ended the search for this question.
    fn undecided(question: String, report: Report) -> SearchStop {
        SearchStop::Undecided(Box::new(Progress {
            undecided_search: Some(UndecidedSearch {
                question,
                states: report.states,
            }),
            ..Progress::with_outcome(report.outcome)
        }))
    }
}

impl From<ProgressError> for SearchStop {
    fn from(error: ProgressError) -> SearchStop {
        SearchStop::Failed(error)
    }
}

/// The searches of a progress check.
struct Searches<'a, 'o> {
    /// Protocol whose remotes are checked.
    protocol: &'a Protocol,
    /// Controller of the home, hand-written or constructed.
    home: &'a Controller,
    /// Number of remotes and of lines of each searched model.
    size: (Remotes, u8),
    /// Options of the lowering, among them the channel capacity.
    system_options: &'a system::Options,
    /// Limits of each search.
    options: &'a Options<'o>,
}

impl Searches<'_, '_> {
    /// Makes all searches. Returns the verdict if progress is verified.
    fn verified(&self) -> Result<Progress, SearchStop> {
        for kind in unproven_kinds(self.protocol, self.home) {
            self.check_performed(kind)?;
        }
        Ok(Progress {
            never_started: self.accesses_never_begun()?,
            notes: self.notes()?,
            missing_accesses: (missing_accesses(self.protocol).into_iter())
                .map(Access::name)
                .collect(),
            ..Progress::with_outcome(Outcome::Verified)
        })
    }

    /// Checks that an access or operation can be performed whenever it is wanted.
    ///
    /// # Errors
    /// It cannot, or the search decides nothing.
    fn check_performed(&self, kind: Kind) -> Result<(), SearchStop> {
        let (protocol, home, size) = (self.protocol, self.home, self.size);
        let model = |system_options: &_| watch_model(protocol, home, size, kind, system_options);
        let (system_model, report) = self.search(&model)?;
        match report.outcome {
            Outcome::Verified => Ok(()),
            Outcome::Violated {
                property: Property::Liveness(_),
                trace,
                ..
            } => {
                let message = describe_violation(protocol, home, size, kind, &system_model, &trace);
                let outcome = Outcome::Violated {
                    property: PROGRESS,
                    message,
                    trace,
                };
                Err(SearchStop::with_model(outcome, system_model))
            }
            outcome @ (Outcome::Violated { .. } | Outcome::Exceeded { .. }) => {
                Err(SearchStop::with_model(outcome, system_model))
            }
            Outcome::Undecided { .. } => {
                let question = format!("progress of {}", kind.name(home));
                Err(SearchStop::undecided(question, report))
            }
        }
    }

    /// Returns the names of the accesses that the protocol file describes and that begin in no reachable state.
    fn accesses_never_begun(&self) -> Result<Vec<&'static str>, SearchStop> {
        let (protocol, home, size) = (self.protocol, self.home, self.size);
        let mut never_started = Vec::new();
        for access in conditional_accesses(protocol) {
            let model =
                |system_options: &_| begin_model(protocol, home, size, access, system_options);
            let report = self.search(&model)?.1;
            match report.outcome {
                Outcome::Verified => never_started.push(access.name()),
                Outcome::Violated { .. } => {}
                Outcome::Undecided { .. } | Outcome::Exceeded { .. } => {
                    let question =
                        format!("states in which {} begins", with_article(access.name()));
                    return Err(SearchStop::undecided(question, report));
                }
            }
        }
        Ok(never_started)
    }

    /// Returns notes on lines that a remote can never access again: first with any access, then with each single
    /// access.
    fn notes(&self) -> Result<Vec<String>, SearchStop> {
        let (protocol, home, size) = (self.protocol, self.home, self.size);
        let mut notes = Vec::new();
        let all_accesses: Vec<Access> = core_accesses(&protocol.remote).collect();
        let single_accesses = all_accesses.iter().map(std::slice::from_ref);
        for accesses in std::iter::once(&all_accesses[..]).chain(single_accesses) {
            // A line that is never accessed again has one note only. Without a stable state in which the accesses
            // cannot begin, the rows show that there is no such line.
            if !notes.is_empty() && accesses.len() == 1 || !may_stop(protocol, accesses) {
                continue;
            }
            let model =
                |system_options: &_| restart_model(protocol, home, size, accesses, system_options);
            let (system_model, report) = self.search(&model)?;
            match report.outcome {
                Outcome::Verified => {}
                Outcome::Violated {
                    property: Property::Liveness(_),
                    trace,
                    ..
                } => notes.extend(describe_stopped(&system_model, accesses, &trace)),
                outcome @ Outcome::Violated { .. } => {
                    return Err(SearchStop::with_model(outcome, system_model))
                }
                Outcome::Undecided { .. } | Outcome::Exceeded { .. } => {
                    let question =
                        format!("whether each remote can {} again", access_verb(accesses));
                    return Err(SearchStop::undecided(question, report));
                }
            }
        }
        Ok(notes)
    }

    /// Returns a model and the report on it. If the trial capacity is exceeded, the search is repeated with the full
    /// capacity.
    fn search(
        &self,
        model: &dyn Fn(&system::Options) -> Result<SystemModel, SystemError>,
    ) -> Result<(SystemModel, Report), ProgressError> {
        let options = Options {
            checkpoint_sink: None,
            decompose: false,
            ..*self.options
        };
        let search = |system_options: &_| {
            let system_model = model(system_options).map_err(ProgressError::System)?;
            let report = check(&system_model.model, &options).map_err(ProgressError::Check)?;
            Ok((system_model, report))
        };
        let system_options = self.system_options;
        let (system_model, report) = search(system_options)?;
        match report.outcome {
            Outcome::Exceeded { .. } if system_options.trial.is_some() => {
                search(&system::Options {
                    trial: None,
                    ..system_options.clone()
                })
            }
            _ => Ok((system_model, report)),
        }
    }
}

/// Returns the name of a single access, or `load or store` for several.
fn access_verb(accesses: &[Access]) -> &'static str {
    match accesses {
        [access] => access.name(),
        _ => "load or store",
    }
}

/// Describes a remote that can never make these accesses to a line again, with the path to that state. `None` if the
/// path is empty: other notes report accesses that never begin.
fn describe_stopped(
    system_model: &SystemModel,
    accesses: &[Access],
    trace: &Trace,
) -> Option<String> {
    if trace.steps.is_empty() {
        return None;
    }
    let agents = &system_model.model.agents;
    // Start states have the order of the remotes that they watch.
    let agent = agents.get(trace.start_index as usize)?;
    let path: Vec<&str> = trace.steps.iter().map(|step| step.rule.as_str()).collect();
    Some(format!(
        "{agent} can reach a state from which it can never {} line 0 again, in {}: {}",
        access_verb(accesses),
        counted(path.len() as u64, "step"),
        path.join("; ")
    ))
}

/// Describes the access or operation that can never be performed, at the end of a trace of the model that watches it.
/// Returns one sentence without a full stop. `remotes` and `lines` are the size of the model, and `kind` is the access
/// or operation that it watches.
pub fn describe_violation(
    protocol: &Protocol,
    home: &Controller,
    (remotes, lines): (Remotes, u8),
    kind: Kind,
    system_model: &SystemModel,
    trace: &Trace,
) -> String {
    let name = kind.name(home);
    // The agent whose state is reported: its name, its initial state, and the variable that holds its state in traces.
    let (agent, initial, variable) = match kind {
        Kind::Access(_) => {
            // Start states have the order of the remotes that they watch.
            let remote = trace.start_index;
            let agent = system_model.model.agents.get(remote as usize);
            let agent = agent.unwrap_or(&protocol.remote.name).clone();
            let variable = format!("{}_state[0][{remote}]", protocol.remote.name);
            let (remote_kind, _) = remotes.kind(remote as u16);
            let initial = protocol.kinds[remote_kind.index()].initial;
            (agent, &protocol.remote.states[initial.index()], variable)
        }
        Kind::Local(_) => {
            let variables = system_model.model.variables.iter();
            let mut states = variables
                .filter(|variable| variable.name.ends_with("_state"))
                .map(|variable| &variable.name);
            // The model declares the states of the remotes first, then those of the home.
            let home_states = states.nth(1);
            let variable = home_states.map_or(String::new(), |name| format!("{name}[0]"));
            (format!("the {}", home.name), &home.states[0], variable)
        }
    };
    let mut changes = trace.steps.iter().flat_map(|step| &step.changes);
    let last_change = changes.rfind(|change| change.variable == variable);
    let state = match last_change {
        Some(change) => &change.to,
        None => &initial.name,
    };
    let line_text = match lines {
        lines if u16::from(lines) > protocol.homes => format!(" on line 0 of {lines} lines"),
        _ => String::new(),
    };
    match kind {
        Kind::Access(_) => {
            let name = with_article(name);
            format!("{name} of {agent}, which is in {state}, can never be performed{line_text}")
        }
        Kind::Local(_) => {
            format!("the device's {name} can never be performed{line_text}; {agent} is in {state}")
        }
    }
}
