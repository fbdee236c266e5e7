//! Outcome of a command: its exit code, and the error message of a command that failed.

use std::process::ExitCode;

/// Outcome of a command, ordered from best to worst; of several outcomes, the worst wins. A violation wins over a
/// search that a limit ended: the rest of the search cannot take the violation back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ExitStatus {
    /// Success: everything requested holds, or was done.
    #[default]
    Success,
    /// A limit was reached before the verdict was known.
    Undecided,
    /// A property is violated.
    Violated,
    /// Invalid input: the command line, a missing file, a protocol file.
    BadInput,
    /// The operating system refused an operation: no permission, disk full.
    CouldNotRun,
    /// Interrupted by Ctrl-C.
    Interrupted,
}

impl ExitStatus {
    /// Returns the exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            ExitStatus::Success => 0,
            ExitStatus::Violated => 1,
            ExitStatus::BadInput => 2,
            ExitStatus::Undecided => 3,
            ExitStatus::CouldNotRun => 4,
            ExitStatus::Interrupted => 130,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(outcome: ExitStatus) -> ExitCode {
        ExitCode::from(outcome.code())
    }
}

/// Failure that ends a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Outcome of the command.
    pub outcome: ExitStatus,
    /// Message for standard error, with the place and the remedy, without the last newline.
    pub message: String,
}

impl Failure {
    /// Creates a failure with this outcome and message.
    pub fn new(outcome: ExitStatus, message: impl Into<String>) -> Failure {
        Failure {
            outcome,
            message: message.into(),
        }
    }
}
