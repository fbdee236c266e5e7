//! Failures of checks, before they get the history of their line.

use crate::lockstep::setup::Check;
use cohkit_system::agent::Violation;

/// A failure without the line's history.
#[derive(Debug)]
pub(in crate::lockstep) struct BenchError {
    /// Kind of the check that failed.
    pub(super) check: Check,
    /// Description of the failure, one sentence.
    pub(super) description: String,
    /// Line that the failure concerns, as an index into the context's lines.
    pub(super) line: Option<usize>,
}

/// Result of a check.
pub(in crate::lockstep) type Checked<T = ()> = Result<T, BenchError>;

impl From<Violation> for BenchError {
    fn from(violation: Violation) -> BenchError {
        BenchError {
            check: Check::Comparison,
            description: violation.description,
            line: None,
        }
    }
}

impl BenchError {
    /// Attributes the failure to a line, whose history the report then contains.
    pub(super) fn on_line(self, line: usize) -> BenchError {
        BenchError {
            line: Some(line),
            ..self
        }
    }
}

/// Returns a failed comparison on a line.
pub(super) fn line_failure<T>(line: usize, message: String) -> Checked<T> {
    check_failed(Check::Comparison, Some(line), message)
}

/// Returns a failed check.
pub(super) fn check_failed<T>(check: Check, line: Option<usize>, message: String) -> Checked<T> {
    Err(BenchError {
        check,
        description: message,
        line,
    })
}
