//! Outcome of a request, and the error message of a request that failed.

/// Outcome of a request, ordered from best to worst; of several outcomes, the worst wins. A violation wins over a
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

/// Failure that ends a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Outcome of the request.
    pub outcome: ExitStatus,
    /// Message for standard error, with the position and the remedy, without the last newline.
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
