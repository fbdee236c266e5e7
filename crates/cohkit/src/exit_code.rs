//! Exit codes of the command.

use cohkit_api::outcome::ExitStatus;

/// Returns the exit code of the process for an outcome.
pub fn exit_code(outcome: ExitStatus) -> u8 {
    match outcome {
        ExitStatus::Success => 0,
        ExitStatus::Violated => 1,
        ExitStatus::BadInput => 2,
        ExitStatus::Undecided => 3,
        ExitStatus::CouldNotRun => 4,
        ExitStatus::Interrupted => 130,
    }
}
