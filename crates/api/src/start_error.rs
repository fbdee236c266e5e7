//! Errors of simulations and applications.

use crate::outcome::Failure;
use crate::source::Source;
use cohkit_protocol::construct::ConstructionError;
use cohkit_sim::components::recorded::ReadError;
use cohkit_sim::platform::text::PlatformError;

/// Reason why a simulation did not start, or did not end.
#[derive(Debug)]
pub enum StartError {
    /// The request is invalid.
    Input {
        /// Description of the error.
        message: String,
        /// Suggested remedy.
        help: Option<String>,
    },
    /// A platform file has errors.
    Platform {
        /// File name to show.
        file: String,
        /// Contents of the file.
        text: String,
        /// All errors, at least one.
        errors: Vec<PlatformError>,
    },
    /// A memory trace is invalid or unreadable.
    Trace {
        /// File name to show.
        file: String,
        /// Description of the error, with its line if it has one.
        error: ReadError,
    },
    /// No home can be constructed for this protocol.
    NoHome(Box<Source>, ConstructionError),
    /// The operating system refused an operation, or the run was interrupted.
    Failure(Failure),
}

impl StartError {
    /// Creates an error with a remedy.
    pub fn input(message: impl Into<String>, help: impl Into<String>) -> StartError {
        StartError::Input {
            message: message.into(),
            help: Some(help.into()),
        }
    }

    /// Creates an error without a remedy.
    pub fn plain(message: String) -> StartError {
        StartError::Input {
            message,
            help: None,
        }
    }
}
