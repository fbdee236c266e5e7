//! Why something that runs in time does not.

use crate::outcome::Failure;
use crate::protocols::Source;
use cohkit_protocol::construct::ConstructionError;
use cohkit_sim::components::recorded::ReadError;
use cohkit_sim::platform::text::PlatformError;

/// Why there is no simulation, or it did not end.
#[derive(Debug)]
pub enum NotRun {
    /// Something is asked for that cannot be.
    Input {
        /// What is wrong.
        what: String,
        /// What to do about it.
        help: Option<String>,
    },
    /// The text of a platform is wrong.
    Platform {
        /// The name to show.
        file: String,
        /// The text.
        text: String,
        /// All its errors, of which there is at least one.
        errors: Vec<PlatformError>,
    },
    /// A trace of memory is wrong, or cannot be read.
    Trace {
        /// The name to show.
        file: String,
        /// What is wrong.
        error: ReadError,
    },
    /// There is no home to run for this text.
    NoHome(Box<Source>, ConstructionError),
    /// The machine would not let us, or it was stopped.
    Failure(Failure),
}

impl NotRun {
    pub(crate) fn input(what: impl Into<String>, help: impl Into<String>) -> NotRun {
        NotRun::Input {
            what: what.into(),
            help: Some(help.into()),
        }
    }

    pub(crate) fn plain(what: String) -> NotRun {
        NotRun::Input { what, help: None }
    }
}
