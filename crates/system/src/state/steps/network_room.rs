//! Lack of room in a network, which blocks a step.

use crate::state::StepError;

/// A message finds no room in a network. Within a step this is an excess without a description; no step returns it.
pub(super) fn no_room() -> StepError {
    StepError::Exceeded(String::new())
}

/// Maps a lack of room in a network to a blocked step, like a message that its receiver stalls.
pub(super) fn blocked_without_room(result: Result<bool, StepError>) -> Result<bool, StepError> {
    match result {
        Err(error) if error == no_room() => Ok(false),
        other => other,
    }
}
