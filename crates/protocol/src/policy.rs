//! A home as a policy: goals per request and local operation.
//!
//! The controller is constructed from it by [`crate::construct`].

use crate::terms::{MessageId, Right, Span};

/// A home written as goals.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// What to do on each request: `on REQUEST(r) { ... }`.
    pub requests: Vec<RequestPolicy>,
    /// `local NAME [lock] { ensure all <= S }`, one entry per form offered.
    pub locals: Vec<LocalPolicy>,
    /// `reach S with FORWARD`: the forward that brings a remote down to this right.
    pub reach: Vec<Reach>,
    /// When a request may be stalled; see [`Stall`].
    pub stall: Stall,
    /// When a local operation is accepted; see [`Acceptance`].
    pub acceptance: Acceptance,
    /// What happens to a local operation while the line is locked.
    pub under_lock: UnderLock,
    /// `serve past VICTIM`: requests do not wait for these victims, which carry no dirty line.
    pub serve_past: Vec<MessageId>,
    /// `serve under forwards`: with [`Stall::Possible`], requests wait neither for the answer to a
    /// forward nor for a local operation. ([`Stall::Proven`] decides by proof.)
    pub serve_under_forwards: bool,
    /// `await ACK after GRANT, ...`: no forward to a remote while one of these grants to it may be
    /// unacknowledged.
    pub awaits: Vec<Await>,
    /// `expect ANSWER tells RIGHT`: assertions the construction proves or refutes.
    pub expectations: Vec<Expectation>,
    /// The keyword `home`.
    pub span: Span,
}

/// When a request is stalled because of messages that may be in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stall {
    /// Only if every configuration is sure to bring the home a message that is not a
    /// request; otherwise the request is served, or the construction reports that it cannot be.
    /// Written `stall proven`, the default.
    Proven,
    /// Whenever a victim, an answer or a local operation *may* be under way, proof or not.
    /// Written `stall possible`.
    Possible,
}

/// When a local operation is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Acceptance {
    /// While a request is in hand too; it is pursued afterwards. `accept local always`, the default.
    Always,
    /// Not while a request is in hand. `accept local between requests`.
    BetweenRequests,
    /// Only while neither a request nor a memory operation is in hand. `accept local when idle`.
    WhenIdle,
}

/// What happens to a local operation while the device holds the line locked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnderLock {
    /// It is refused and reported. `under lock refuse`, the default.
    Refuse,
    /// It waits for the unlock. `under lock wait`.
    Wait,
}

/// What to do on a request of remote `r`.
#[derive(Clone, PartialEq, Debug)]
pub struct RequestPolicy {
    /// The request.
    pub message: MessageId,
    /// Highest right any *other* remote may have before the request is served.
    pub ensure: Right,
    /// Whether the bytes the request carries are then written to memory (`write`).
    pub write: bool,
    /// The grants, in the order they are tried. The last one is unconditional.
    pub grants: Vec<Grant>,
    /// The whole block.
    pub span: Span,
}

/// One way to answer a request: `grant r RIGHT with MESSAGE [if CONDITION]`,
/// or `answer r with MESSAGE` where no right is given.
#[derive(Clone, PartialEq, Debug)]
pub struct Grant {
    /// The message that carries the grant. If it carries the line, memory is read first.
    pub message: MessageId,
    /// The right the author says it gives; the construction verifies it against the remote.
    pub right: Right,
    /// When this way is taken.
    pub when: When,
    /// The statement.
    pub span: Span,
}

/// Condition of a grant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum When {
    /// Always.
    Always,
    /// `if others(r) == I`: no other remote has any right.
    OthersNone,
    /// `if held(r)`: in every configuration the requester still holds a copy.
    Held,
    /// `if chosen`: the home is free to take this one or the next.
    Chosen,
}

/// A local operation of the device.
#[derive(Clone, PartialEq, Debug)]
pub struct LocalPolicy {
    /// Its name in tables and charts: `clean`, or `clean_lock` where both forms are offered.
    pub name: String,
    /// Highest right any remote may have when it is acknowledged.
    pub ensure: Right,
    /// Whether it takes the lock.
    pub lock: bool,
    /// The statement.
    pub span: Span,
}

/// Which forward brings a remote down to a right.
#[derive(Clone, PartialEq, Debug)]
pub struct Reach {
    /// The right reached.
    pub right: Right,
    /// The forward.
    pub forward: MessageId,
    /// The statement.
    pub span: Span,
}

/// A rule about acknowledged grants.
#[derive(Clone, PartialEq, Debug)]
pub struct Await {
    /// The acknowledgement.
    pub acknowledgement: MessageId,
    /// The grants it confirms.
    pub grants: Vec<MessageId>,
    /// The statement.
    pub span: Span,
}

/// `expect ANSWER tells RIGHT`.
#[derive(Clone, PartialEq, Debug)]
pub struct Expectation {
    /// The answer.
    pub answer: MessageId,
    /// The highest right the remote has when the answer has arrived, according to the author.
    pub right: Right,
    /// The statement.
    pub span: Span,
}
