//! Options of a model, and reasons why a system cannot be modelled.

use std::fmt;

use cohkit_engine::model::ModelError;
use cohkit_system::state::DEFAULT_CHANNEL_CAPACITY;

/// Options of a model.
#[derive(Clone, Debug)]
pub struct Options {
    /// Channel capacity, at least 1: of equal messages in an unordered channel, and of messages per line in one
    /// ordered queue. It is no assumption: exceeding it leaves the verdict undecided
    /// ([`cohkit_engine::Outcome::Exceeded`]).
    pub capacity: u16,
    /// Smaller capacity, to be tried first: states are smaller, and the verdict is the same unless it is undecided.
    /// `None` uses `capacity`.
    pub trial: Option<u16>,
    /// True if the device may request its next local operation as soon as the home has accepted the previous one.
    /// Otherwise it waits for the acknowledgement.
    pub overlaps_requests: bool,
    /// True if an outer level grants the home's permission to its memory, see [`cohkit_system::state`].
    pub parent_any: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            capacity: DEFAULT_CHANNEL_CAPACITY,
            trial: None,
            overlaps_requests: true,
            parent_any: false,
        }
    }
}

impl Options {
    /// Channel capacity for messages without a bound in the protocol file.
    pub(super) fn effective_capacity(&self) -> u16 {
        self.trial
            .map_or(self.capacity, |trial| trial.min(self.capacity))
    }
}

/// Reason why a system cannot be modelled.
#[derive(Clone, PartialEq, Debug)]
pub enum SystemError {
    /// The number of remotes or lines is out of range.
    Size(String),
    /// A controller does something that has no meaning in its place.
    Invalid(String),
    /// The model is not well formed: a defect of the lowering or of a constructed controller.
    Model(Vec<ModelError>),
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SystemError::Size(message) | SystemError::Invalid(message) => f.write_str(message),
            SystemError::Model(errors) => {
                write!(f, "the model is not well formed")?;
                errors.iter().try_for_each(|e| write!(f, "; {e}"))
            }
        }
    }
}

impl std::error::Error for SystemError {}
