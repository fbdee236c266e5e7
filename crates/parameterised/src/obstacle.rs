//! Reasons for which no verdict on every number of remotes is given.

use cohkit_diagnostics::Span;

/// Construct, row or variable that stands in the way of a verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Obstacle {
    /// Reason, as a clause without a full stop.
    pub reason: String,
    /// Span in the protocol file; `None` if no single place causes the obstacle.
    pub span: Option<Span>,
}

impl Obstacle {
    /// Creates an obstacle at a place of the protocol file.
    pub fn at(span: Span, reason: impl Into<String>) -> Obstacle {
        Obstacle {
            reason: reason.into(),
            span: Some(span),
        }
    }

    /// Obstacle: the caller has cancelled the search.
    pub(crate) fn interrupted() -> Obstacle {
        Obstacle::general("interrupted")
    }

    /// Creates an obstacle without a place.
    pub fn general(reason: impl Into<String>) -> Obstacle {
        Obstacle {
            reason: reason.into(),
            span: None,
        }
    }
}
