//! What a construction may find wrong with a protocol, and what it has to say besides.

use crate::text::Span;
use cohkit_base::sequence::Sequence;
use serde::Serialize;

/// The protocol has a form the construction does not apply to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What stands in the way, as a clause: "the remote has a variable, `acks`".
    pub what: String,
    /// Where it stands.
    pub span: Span,
}

/// Kinds of faults a construction finds.
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
    /// From some state nothing moves without new spontaneous acts.
    DeadEnd,
    /// From some state things move, but never come to rest.
    Livelock,
    /// An `expect` of the text is wrong.
    WrongExpectation,
    /// A grant gives another right than the text says.
    WrongGrant,
    /// More home states than the construction is prepared to build.
    TooLarge,
}

impl FaultKind {
    /// Its name in reports.
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
    /// What kind of fault.
    pub kind: FaultKind,
    /// One sentence: what happens, in the words of the protocol text.
    pub text: String,
    /// What to change, where a remedy is known.
    pub remedy: Option<String>,
    /// Where in the text it comes from.
    pub span: Span,
    /// One run that shows it; two where what the home has seen has two explanations
    /// that call for different behaviour.
    pub explanations: Vec<Sequence>,
}

/// Something worth knowing that is not a fault.
#[derive(Clone, PartialEq, Debug)]
pub struct Note {
    /// One sentence.
    pub text: String,
    /// A run that shows it, where there is one.
    pub sequence: Option<Sequence>,
}
