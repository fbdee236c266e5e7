//! A home as a policy: goals for each request and local operation.
//!
//! [`crate::construct`] builds the controller from it.

use crate::terms::{MessageId, Permission};
use cohkit_diagnostics::Span;

/// Goals of a home, from which its controller is constructed.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// Goals for each request: `on REQUEST(r) { ... }`.
    pub requests: Vec<RequestPolicy>,
    /// Victims that the home acknowledges: `on VICTIM(r) { answer r with MESSAGE }`.
    pub victims: Vec<VictimPolicy>,
    /// `local NAME [lock] { ensure all <= S }`, one entry per form offered.
    pub locals: Vec<LocalPolicy>,
    /// `reach S with FORWARD`: the forward that downgrades a remote to this permission.
    pub downgrades: Vec<DowngradeRule>,
    /// Condition for stalling a request; see [`Stall`].
    pub stall: Stall,
    /// Condition for accepting a local operation; see [`Acceptance`].
    pub acceptance: Acceptance,
    /// Treatment of a local operation while the line is locked.
    pub lock_conflict: LockConflict,
    /// `serve past VICTIM`: requests do not wait for these victims, which carry no dirty line.
    pub serve_past: Vec<MessageId>,
    /// `serve under forwards`: with [`Stall::Possible`], requests wait neither for the response to a forward nor for a
    /// local operation. ([`Stall::Proven`] decides by proof.)
    pub serve_under_forwards: bool,
    /// `await ACK after GRANT, ...`: no forward is sent to a remote while one of these grants to it may be
    /// unacknowledged.
    pub acknowledgement_rules: Vec<AcknowledgementRule>,
    /// `assert ANSWER implies RIGHT`: assertions that the construction proves or refutes.
    pub expectations: Vec<Expectation>,
    /// Span of the keyword `home`.
    pub span: Span,
}

/// Condition under which a request is stalled because of messages that may be in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stall {
    /// Stall only if every configuration is sure to bring the home a message that is not a request. Otherwise the
    /// request is served, or the construction reports that it cannot be. Written `stall proven`, the default.
    Proven,
    /// Stall whenever a victim or an answer *may* be in flight, or a local operation may be in progress, without proof.
    /// Written `stall possible`.
    Possible,
}

/// Condition under which a local operation is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Acceptance {
    /// Always, even while a request is in progress; the operation is pursued after it. `accept local always`, the
    /// default.
    Always,
    /// Only while no request is in progress. `accept local between requests`.
    BetweenRequests,
    /// Only while neither a request nor a memory operation is in progress. `accept local when idle`.
    WhenIdle,
}

/// Treatment of a local operation while the device holds the line locked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockConflict {
    /// Reject and report the operation. `under lock refuse`, the default.
    Refuse,
    /// Wait for the unlock. `under lock wait`.
    Wait,
}

impl Policy {
    /// Acknowledgement of a victim, if the home sends one.
    pub fn victim_answer(&self, victim: MessageId) -> Option<MessageId> {
        let acknowledged = self.victims.iter().find(|other| other.message == victim);
        acknowledged.map(|victim| victim.answer)
    }

    /// Returns true if a message acknowledges a victim.
    pub fn answers_victim(&self, message: MessageId) -> bool {
        self.victims.iter().any(|victim| victim.answer == message)
    }
}

/// Goals for a request of remote `r`.
#[derive(Clone, PartialEq, Debug)]
pub struct RequestPolicy {
    /// Request that the goals are for.
    pub message: MessageId,
    /// Highest permission that any *other* remote may have before the request is served.
    pub ensure: Permission,
    /// True if the bytes that the request carries are then written to memory (`write`).
    pub write: bool,
    /// The grants, in the order they are tried. The last one is unconditional.
    pub grants: Vec<Grant>,
    /// Span of the whole block.
    pub span: Span,
}

/// Acknowledgement of a victim of remote `r`.
#[derive(Clone, PartialEq, Debug)]
pub struct VictimPolicy {
    /// Victim that is acknowledged.
    pub message: MessageId,
    /// Acknowledgement. The home sends it as soon as it receives the victim, in every state.
    pub answer: MessageId,
    /// Span of the whole block.
    pub span: Span,
}

/// A response to a request: `grant r RIGHT with MESSAGE [if CONDITION]`, or `answer r with MESSAGE` if it gives no
/// permission.
#[derive(Clone, PartialEq, Debug)]
pub struct Grant {
    /// Message that carries the grant. If it carries the line, memory is read first.
    pub message: MessageId,
    /// Permission that the grant gives, as the file states it. The construction verifies it against the remote.
    pub permission: Permission,
    /// Condition of the grant.
    pub condition: GrantCondition,
    /// Span of the statement.
    pub span: Span,
}

/// Condition of a grant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GrantCondition {
    /// No condition.
    Always,
    /// `if others(r) == I`: no other remote has any permission.
    OthersNone,
    /// `if held(r)`: in every configuration the requester still holds a copy.
    Held,
    /// `if chosen`: the home is free to use this grant or the next one.
    Chosen,
}

/// A local operation of the device.
#[derive(Clone, PartialEq, Debug)]
pub struct LocalPolicy {
    /// Name in tables and charts: `clean`, or `clean_lock` where both forms are offered.
    pub name: String,
    /// Highest permission that any remote may have when the operation is acknowledged.
    pub ensure: Permission,
    /// True if the operation takes the lock.
    pub lock: bool,
    /// Span of the statement.
    pub span: Span,
}

/// Forward that downgrades a remote to a permission.
#[derive(Clone, PartialEq, Debug)]
pub struct DowngradeRule {
    /// Permission of the remote afterwards.
    pub permission: Permission,
    /// Forward that the home sends for it.
    pub forward: MessageId,
    /// Span of the statement.
    pub span: Span,
}

/// Rule about acknowledged grants.
#[derive(Clone, PartialEq, Debug)]
pub struct AcknowledgementRule {
    /// Acknowledgement message.
    pub acknowledgement: MessageId,
    /// Grants that it confirms.
    pub grants: Vec<MessageId>,
    /// Span of the statement.
    pub span: Span,
}

/// Assertion `assert ANSWER implies RIGHT`.
#[derive(Clone, PartialEq, Debug)]
pub struct Expectation {
    /// Answer message.
    pub answer: MessageId,
    /// Highest permission that the remote has once the answer has arrived, according to the file.
    pub permission: Permission,
    /// Span of the statement.
    pub span: Span,
}
