//! How a command ends: its exit code, and what is said when it cannot go on.

use std::process::ExitCode;

/// How a command ended, from best to worst: where several outcomes meet, the worst wins. A violation wins over a search that a
/// limit ended, as nothing that the rest of the search finds takes the violation back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Outcome {
    /// The answer is yes: everything asked for holds, or was done.
    #[default]
    Yes,
    /// A limit was reached before the answer was known.
    Undecided,
    /// The answer is no: a property is violated.
    No,
    /// Some input is wrong: the command line, a missing file, a protocol text.
    BadInput,
    /// The machine would not let us: no permission, disk full.
    CouldNotRun,
    /// Stopped by Ctrl-C.
    Interrupted,
}

impl Outcome {
    /// The process exit code.
    pub fn code(self) -> u8 {
        match self {
            Outcome::Yes => 0,
            Outcome::No => 1,
            Outcome::BadInput => 2,
            Outcome::Undecided => 3,
            Outcome::CouldNotRun => 4,
            Outcome::Interrupted => 130,
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(outcome.code())
    }
}

/// Why a command cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// How the command ends.
    pub outcome: Outcome,
    /// What is written to standard error, complete with place and remedy; without the last newline.
    pub message: String,
}

impl Failure {
    /// A failure that ends the command in this way, with this message.
    pub fn new(outcome: Outcome, message: impl Into<String>) -> Failure {
        Failure {
            outcome,
            message: message.into(),
        }
    }
}
