//! How a run fails, and how it explains itself.
//!
//! A run keeps no history. When it fails, it is run again with the same seed, which gives the same
//! events, and the steps that concern the line in question are recorded.

use cohkit_protocol::sequence::{Action, Sequence, Step};
use std::collections::{HashSet, VecDeque};
use std::fmt;

use crate::kernel::Time;
use crate::message::Line;

/// What went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// A load, a write-back or an acknowledgement saw bytes that are not the last written.
    DataValue,
    /// Two agents have rights that exclude each other.
    SingleWriter,
    /// A message reached a state that has no rule for it.
    UnexpectedMessage,
    /// A rule could not be executed, or an act has no meaning where it stands.
    Meaningless,
    /// An application did what it must not do, or cannot do here.
    Contract,
    /// At the end, application, threads and data are not as they have to be.
    Result,
    /// An access took longer than a core waits for one.
    Timeout,
    /// Nothing was performed for as long as the platform's patience.
    NoProgress,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FailureKind::DataValue => "data value",
            FailureKind::SingleWriter => "single writer",
            FailureKind::UnexpectedMessage => "no unexpected message",
            FailureKind::Meaningless => "meaningless act",
            FailureKind::Contract => "contract of an application",
            FailureKind::Result => "result of a scenario",
            FailureKind::Timeout => "timeout of a core",
            FailureKind::NoProgress => "no progress",
        })
    }
}

/// A run that could not go on.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What went wrong.
    pub kind: FailureKind,
    /// Where and how, in one sentence.
    pub text: String,
    /// The line in question.
    pub line: Line,
    /// When, in picoseconds.
    pub time: Time,
    /// Who waits for whom, one sentence each; only for [`FailureKind::NoProgress`].
    pub waits: Vec<String>,
    /// The last steps that concern the line.
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
        for wait in &self.waits {
            writeln!(f, "  {wait}")?;
        }
        f.write_str(&cohkit_chart::text(
            &self.sequence,
            &cohkit_chart::Text::default(),
        ))
    }
}

impl std::error::Error for Failure {}

/// Most steps a chart shows.
const STEPS: usize = 60;

/// Records what concerns one line.
#[derive(Default)]
pub(crate) struct Trace {
    steps: VecDeque<Step>,
}

impl Trace {
    pub fn step(&mut self, agent: usize, visible: bool, action: Action) {
        if self.steps.len() == STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(Step {
            agent,
            action,
            line: None,
            visible,
        });
    }

    /// The steps kept. Where the sending of a message is no longer among them, its arrival is told in words.
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
        Sequence { agents, steps }
    }
}
