//! Failures of a run, and the record of the steps that led to them.
//!
//! A run keeps no history. A failed run is repeated with the same seed, which gives the same events, and the steps that
//! concern the failing line are recorded.

use cohkit_base::sequence::{Action, Sequence, Step};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;

use crate::kernel::Time;
use crate::message::Line;

/// Property that is violated, or other reason for a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// A load, write-back or acknowledgement has data that is not the last write.
    DataValue,
    /// A store is lost or performed more than once, where copies may be stale.
    StorePerformedOnce,
    /// An access does not observe an earlier store of its own cache, or is performed before that store.
    ProgramOrder,
    /// Two agents have permissions that exclude each other.
    SingleWriter,
    /// A cache has a permission that the cache above it lacks.
    Inclusion,
    /// An access used an address translation that the host had invalidated.
    Translation,
    /// The page table did not permit an access without which its program cannot continue.
    Refused,
    /// A message arrived in a state that has no row for it, or a row could not be executed.
    UnexpectedMessage,
    /// More messages are in flight than the protocol file declares.
    InFlight,
    /// An action cannot be executed in its context.
    Meaningless,
    /// An application broke its contract, or requested something that this setup does not support.
    Contract,
    /// An application requests an operation that the protocol's home lacks.
    Incompatible,
    /// At the end, application, threads and data do not fulfil the scenario's conditions.
    Result,
    /// An access exceeded the timeout of its core.
    Timeout,
    /// A home in RTL deviated from its controller.
    Hardware,
    /// No access was performed within the platform's `watchdog_timeout`.
    NoProgress,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FailureKind::DataValue => "data value",
            FailureKind::StorePerformedOnce => "every store is performed once",
            FailureKind::ProgramOrder => "program order of one line",
            FailureKind::SingleWriter => "single writer",
            FailureKind::Inclusion => "inclusion",
            FailureKind::Translation => "translation of an address",
            FailureKind::Refused => "permission of a page",
            FailureKind::UnexpectedMessage => "no unexpected message",
            FailureKind::InFlight => "bound on messages in flight",
            FailureKind::Meaningless => "meaningless act",
            FailureKind::Contract => "contract of an application",
            FailureKind::Incompatible => "application and protocol",
            FailureKind::Result => "result of a scenario",
            FailureKind::Timeout => "timeout of a core",
            FailureKind::Hardware => "home in hardware",
            FailureKind::NoProgress => "no progress",
        })
    }
}

/// A failed run.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Reason for the failure.
    pub kind: FailureKind,
    /// Description, one sentence.
    pub text: String,
    /// Line of the failure; 0 if the failure is about no line.
    pub line: Line,
    /// Time of the failure, in picoseconds.
    pub time: Time,
    /// Wait-for report, one sentence per agent or message; only for [`FailureKind::NoProgress`].
    pub wait_for: Vec<String>,
    /// The last steps that concern the line; empty in a run that did not record them.
    pub sequence: Sequence,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.time as f64 / 1000.0;
        writeln!(
            f,
            "{}: {} (line {}, at {nanoseconds:.3} ns)",
            self.kind, self.text, self.line
        )?;
        for wait in &self.wait_for {
            writeln!(f, "  {wait}")?;
        }
        f.write_str(&cohkit_chart::text(
            &self.sequence,
            &cohkit_chart::Text::default(),
        ))
    }
}

impl std::error::Error for Failure {}

/// Maximum number of steps in a chart.
const MAX_CHART_STEPS: usize = 60;

/// Maximum number of agents of which all are shown. With more, a chart shows only those that take part.
pub(crate) const MAX_LIFELINES: usize = 12;

/// Removes the lifelines of agents that take no part in any step.
fn remove_idle_lifelines(sequence: &mut Sequence) {
    fn agents(step: &mut Step) -> impl Iterator<Item = &mut usize> {
        let peer = match &mut step.action {
            Action::Send { to: peer, .. } | Action::Receive { from: peer, .. } => Some(peer),
            Action::Does { .. } | Action::Becomes { .. } => None,
        };
        std::iter::once(&mut step.agent).chain(peer)
    }
    let mut participants = BTreeMap::new();
    for agent in sequence.steps.iter_mut().flat_map(agents) {
        participants.insert(*agent, 0);
    }
    participants
        .values_mut()
        .zip(0..)
        .for_each(|(new_number, position)| *new_number = position);
    for agent in sequence.steps.iter_mut().flat_map(agents) {
        *agent = participants[agent];
    }
    let names = participants
        .keys()
        .map(|&agent| sequence.agents[agent].clone());
    sequence.agents = names.collect();
}

/// Recorder of the steps that concern one line.
#[derive(Default)]
pub(crate) struct Trace {
    /// Recorded steps in time order.
    steps: VecDeque<Step>,
    /// True for a complete trace: all steps, with the values of words. Otherwise only the last [`MAX_CHART_STEPS`] are
    /// kept.
    pub is_complete: bool,
}

impl Trace {
    /// Creates an empty recorder that keeps all steps.
    pub fn new_complete() -> Trace {
        Trace {
            steps: VecDeque::new(),
            is_complete: true,
        }
    }

    /// Appends a step, in time order.
    pub fn record_step(&mut self, step: Step) {
        if self.steps.len() == MAX_CHART_STEPS && !self.is_complete {
            self.steps.pop_front();
        }
        self.steps.push_back(step);
    }

    /// Returns the recorded steps. `agents` are the names of all lifelines. The receipt of a message whose sending
    /// is no longer recorded becomes a description.
    pub fn sequence(&self, agents: Vec<String>) -> Sequence {
        let mut sent = HashSet::new();
        let mut steps: Vec<Step> = self.steps.iter().cloned().collect();
        for step in &mut steps {
            match &step.action {
                Action::Send { flight, .. } => {
                    sent.insert(*flight);
                }
                Action::Receive {
                    message, flight, ..
                } if !sent.contains(flight) => {
                    let what = format!("takes {message}");
                    step.action = Action::Does { what };
                }
                _ => {}
            }
        }
        let mut sequence = Sequence { agents, steps };
        if sequence.agents.len() > MAX_LIFELINES {
            remove_idle_lifelines(&mut sequence);
        }
        sequence
    }
}
