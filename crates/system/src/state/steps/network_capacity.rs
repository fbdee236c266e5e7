//! Lack of capacity in a network, which blocks a step.

use crate::state::StepError;

/// Error of a row one of whose messages exceeds the capacity of a network. It is used within a step only: the step
/// itself is then blocked.
pub(super) fn lack_of_capacity() -> StepError {
    StepError::Exceeded(String::new())
}

/// Maps a lack of capacity in a network to a blocked step, like a message that its receiver stalls.
pub(super) fn blocked_without_capacity(result: Result<bool, StepError>) -> Result<bool, StepError> {
    match result {
        Err(error) if error == lack_of_capacity() => Ok(false),
        other => other,
    }
}
