//! The `cohkit` command as a library: options in, text and an [`Outcome`] out.
//!
//! It knows how people and programs speak to Cohkit: options, files, exit codes.
//! It deliberately knows nothing of coherence; that is in the crates below.
//!
//! ```
//! let (mut out, mut err) = (Vec::new(), Vec::new());
//! let outcome = cohkit::run(["cohkit", "--version"], &mut out, &mut err);
//! assert_eq!(outcome, cohkit::Outcome::Yes);
//! assert!(out.starts_with(b"cohkit "));
//! ```

mod options;
mod outcome;

use clap::Parser;
use std::ffi::OsString;
use std::io::Write;

use options::Options;
pub use outcome::Outcome;

/// Runs one command line, the command's name first, and says how it ended.
pub fn run<A>(
    arguments: impl IntoIterator<Item = A>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Outcome
where
    A: Into<OsString> + Clone,
{
    match Options::try_parse_from(arguments) {
        Ok(Options {}) => Outcome::Yes,
        Err(answer) => {
            // A closed pipe is no error: the reader has seen enough.
            if answer.use_stderr() {
                let _ = write!(err, "{}", answer.render());
                Outcome::BadInput
            } else {
                let _ = write!(out, "{}", answer.render());
                Outcome::Yes
            }
        }
    }
}
