//! Faults that a construction finds in a protocol, and its notes.

use cohkit_base::sequence::Sequence;
use cohkit_diagnostics::Span;
use serde::Serialize;

/// The construction does not apply to this form of protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Obstacle, as a clause: "the remote has a variable, `acks`".
    pub obstacle: String,
    /// Span of the obstacle.
    pub span: Span,
}

/// Kind of a fault that a construction finds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A message reaches an agent in a state that has no rule for it.
    UnexpectedMessage,
    /// Messages in flight grow without bound, or past the stated bound.
    Unbounded,
    /// The home would wait for a message that need not exist.
    MayNotExist,
    /// A request can be neither served nor safely stalled.
    NeitherServedNorStalled,
    /// The home no longer knows whether a forward is unanswered.
    LostCount,
    /// A second memory operation would start while one is in flight.
    SlotBusy,
    /// From some state nothing moves without new spontaneous actions.
    DeadEnd,
    /// From some state moves continue, but quiescence is never reached.
    Livelock,
    /// An `assert` of the file is refuted.
    WrongExpectation,
    /// A grant gives a different permission than the file states.
    WrongGrant,
    /// The home has more states than the construction is prepared to build.
    TooLarge,
}

impl FaultKind {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::UnexpectedMessage => "unexpected message",
            FaultKind::Unbounded => "unbounded",
            FaultKind::MayNotExist => "waits for a message that may not exist",
            FaultKind::NeitherServedNorStalled => "neither served nor stalled",
            FaultKind::LostCount => "lost count of forwards",
            FaultKind::SlotBusy => "memory slot busy",
            FaultKind::DeadEnd => "dead end",
            FaultKind::Livelock => "livelock",
            FaultKind::WrongExpectation => "wrong expectation",
            FaultKind::WrongGrant => "wrong grant",
            FaultKind::TooLarge => "too large",
        }
    }
}

/// A fault of the protocol, with the message sequence that shows it.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Description in one sentence, in the words of the protocol file.
    pub text: String,
    /// Suggested change, if a remedy is known.
    pub remedy: Option<String>,
    /// Span of the part of the file that causes the fault.
    pub span: Span,
    /// One run that shows the fault; two if the home's observations have two explanations that call for different
    /// behaviour.
    pub explanations: Vec<Sequence>,
}

/// A remark that is not a fault.
#[derive(Clone, PartialEq, Debug)]
pub struct Note {
    /// The remark, in one sentence.
    pub text: String,
    /// Run that shows it, if there is one.
    pub sequence: Option<Sequence>,
}
