//! `cohkit fmt`: writes protocol files in the common format.

use crate::console::Console;
use crate::options;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::diagnostics_failure;
use cohkit_protocol::text;
use std::path::Path;

/// Formats each file. The error of a file is printed, and the next file is formatted; the worst outcome is returned.
pub(crate) fn run(options: &options::Fmt, console: &mut Console) -> Result<ExitStatus, Failure> {
    let mut worst_outcome = ExitStatus::Success;
    for path in &options.files {
        let result = format_file(path, options.check, console);
        let outcome = result.unwrap_or_else(|failure| {
            console.say(&failure.message);
            failure.outcome
        });
        worst_outcome = worst_outcome.max(outcome);
    }
    Ok(worst_outcome)
}

/// Formats one file in place, or standard input to standard output; with `check`, compares only.
fn format_file(path: &Path, check: bool, console: &mut Console) -> Result<ExitStatus, Failure> {
    if console.is_interrupted() {
        return Err(Failure::new(ExitStatus::Interrupted, "interrupted"));
    }
    let is_input = files::input_path(path) == Path::new(files::STANDARD_INPUT);
    if !is_input && !path.exists() && cohkit_api::shipped::protocol(path).is_some() {
        let name = path.display();
        let message = format!(
            "error: {name}: is a shipped protocol, not a file\n  help: `cohkit list {name} --out {name}.coh` writes it to one"
        );
        return Err(Failure::new(ExitStatus::BadInput, message));
    }
    let text = files::read(path)?;
    let formatted = text::format(&text)
        .map_err(|errors| diagnostics_failure(path, &text, &errors, console.terminal.colour))?;
    match (check, is_input) {
        (true, _) if formatted == text => Ok(ExitStatus::Success),
        (true, _) => {
            let help = match is_input {
                true => String::new(),
                false => format!("\n  help: `cohkit fmt {}` formats it", path.display()),
            };
            let message = format!("{}: is not formatted{help}", path.display());
            Err(Failure::new(ExitStatus::Violated, message))
        }
        (false, true) => console.print(&formatted).map(|()| ExitStatus::Success),
        (false, false) if formatted == text => Ok(ExitStatus::Success),
        (false, false) => files::write(path, &formatted).map(|()| ExitStatus::Success),
    }
}
