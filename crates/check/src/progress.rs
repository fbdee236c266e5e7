//! Whether what begins in a system can be performed; [`crate::system::progress`] says what that means and why it is so.
//!
//! It is asked when all else has been found to hold, as it rests on drain. Where the rows of a protocol answer it,
//! nothing is searched.

use crate::system::progress::{absent, beginning, begun_later, doubtful, watching, Kind};
use crate::system::{self, Modelled, SystemError};
use cohkit_base::words::with_article;
use cohkit_engine::report::Beyond;
use cohkit_engine::search::Options;
use cohkit_engine::trace::Trace;
use cohkit_engine::{check, CheckError, Outcome, Property, Report};
use cohkit_protocol::controller::{Access, Controller};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use std::fmt;

/// The property.
pub const PROGRESS: Property = Property::Beyond(Beyond {
    kind: system::progress::PROGRESS,
});

/// What is known of progress.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The verdict. If it is undecided, some limit ended the search.
    pub outcome: Outcome,
    /// What the trace of the verdict is of, if it has one.
    pub modelled: Option<Modelled>,
    /// The accesses that the text describes and that begin in no state; empty unless verified.
    pub never: Vec<&'static str>,
    /// The accesses that every cache does and that the text has neither row nor right for; empty unless verified.
    pub absent: Vec<&'static str>,
}

/// Why progress cannot be judged.
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

/// Judges the progress of a system of which everything else has been verified.
/// Each search has the limits of `options`, and keeps nothing.
///
/// # Errors
/// If there is no model, or it cannot be checked.
pub fn progress(
    protocol: &Protocol,
    home: &Controller,
    remotes: impl Into<Remotes>,
    room: &system::Options,
    options: &Options,
) -> Result<Progress, ProgressError> {
    let remotes = remotes.into();
    let none = |outcome| Progress {
        outcome,
        modelled: None,
        never: Vec::new(),
        absent: Vec::new(),
    };
    for kind in doubtful(protocol, home) {
        let model = |room: &_| watching(protocol, home, remotes, kind, room);
        let (modelled, report) = searched(&model, room, options)?;
        match report.outcome {
            Outcome::Verified => {}
            Outcome::Violated {
                property,
                message,
                trace,
            } => {
                let (property, message) = match property {
                    Property::Liveness(_) => {
                        let message = told(protocol, home, remotes, kind, &modelled, &trace);
                        (PROGRESS, message)
                    }
                    _ => (property, message),
                };
                return Ok(Progress {
                    outcome: Outcome::Violated {
                        property,
                        message,
                        trace,
                    },
                    modelled: Some(modelled),
                    never: Vec::new(),
                    absent: Vec::new(),
                });
            }
            outcome @ Outcome::Exceeded { .. } => {
                return Ok(Progress {
                    modelled: Some(modelled),
                    ..none(outcome)
                })
            }
            outcome @ Outcome::Undecided { .. } => return Ok(none(outcome)),
        }
    }
    let mut never = Vec::new();
    for access in begun_later(protocol) {
        let model = |room: &_| beginning(protocol, home, remotes, access, room);
        match searched(&model, room, options)?.1.outcome {
            Outcome::Verified => never.push(access.name()),
            Outcome::Violated { .. } => {}
            outcome => return Ok(none(outcome)),
        }
    }
    let absent = absent(protocol);
    Ok(Progress {
        never,
        absent: absent.into_iter().map(Access::name).collect(),
        ..none(Outcome::Verified)
    })
}

/// A model with the report on it, with as much room for messages as it takes.
fn searched(
    model: &dyn Fn(&system::Options) -> Result<Modelled, SystemError>,
    room: &system::Options,
    options: &Options,
) -> Result<(Modelled, Report), ProgressError> {
    let options = Options {
        keeper: None,
        decompose: false,
        ..*options
    };
    let search = |room: &_| {
        let modelled = model(room).map_err(ProgressError::System)?;
        let report = check(&modelled.model, &options).map_err(ProgressError::Check)?;
        Ok((modelled, report))
    };
    let found = search(room)?;
    match found.1.outcome {
        Outcome::Exceeded { .. } if room.trial.is_some() => search(&system::Options {
            trial: None,
            ..room.clone()
        }),
        _ => Ok(found),
    }
}

/// What can never be performed, in a sentence, at the end of a trace of the model on which it is watched.
pub fn told(
    protocol: &Protocol,
    home: &Controller,
    remotes: Remotes,
    kind: Kind,
    modelled: &Modelled,
    trace: &Trace,
) -> String {
    let name = kind.name(home);
    let (agent, initial, variable) = match kind {
        Kind::Access(_) => {
            // Start states stand in the order of the remotes that they watch.
            let remote = trace.start_index;
            let agent = modelled.model.agents.get(remote as usize);
            let agent = agent.unwrap_or(&protocol.remote.name).clone();
            let variable = format!("{}_state[0][{remote}]", protocol.remote.name);
            let (of, _) = remotes.kind(remote as u16);
            let initial = protocol.kinds[of.index()].initial;
            (agent, &protocol.remote.states[initial.index()], variable)
        }
        Kind::Local(_) => {
            let variables = modelled.model.variables.iter();
            let mut states = variables
                .filter(|v| v.name.ends_with("_state"))
                .map(|v| &v.name);
            let variable = states
                .nth(1)
                .map_or(String::new(), |name| format!("{name}[0]"));
            (format!("the {}", home.name), &home.states[0], variable)
        }
    };
    let mut changes = trace.steps.iter().flat_map(|step| &step.changes);
    let last = changes.rfind(|change| change.variable == variable);
    let state = match last {
        Some(change) => &change.to,
        None => &initial.name,
    };
    match kind {
        Kind::Access(_) => {
            let name = with_article(name);
            format!("{name} of {agent}, which is in {state}, can never be performed")
        }
        Kind::Local(_) => {
            format!("the device's {name} can never be performed; {agent} is in {state}")
        }
    }
}
