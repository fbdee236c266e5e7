//! Commands that are Python: handed over to `python -m cohkit`, where a Python has the package.

use crate::outcome::{Failure, Outcome};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Ends with 0 where the package is there, without the cost of loading it.
const PROBE: &str =
    "import importlib.util, sys; sys.exit(importlib.util.find_spec('cohkit.__main__') is None)";

/// Runs a command of the Python package with these arguments; where it can, this process becomes the Python one.
pub(crate) fn hand_over(command: &str, arguments: &[OsString]) -> Result<Outcome, Failure> {
    let pythons = candidates();
    let Some(python) = pythons.iter().find(|python| has_package(python)) else {
        let asked: Vec<String> = pythons
            .iter()
            .map(|python| format!("`{}`", python.display()))
            .collect();
        return Err(Failure::new(
            Outcome::CouldNotRun,
            format!(
                "error: `cohkit {command}` needs the Python package cohkit, which no Python here has (asked {})\n  \
                 help: `pip install .` in Cohkit's repository installs it with a command beside it; Python 3.11 is needed",
                asked.join(", ")
            ),
        ));
    };
    let mut python = Command::new(python);
    // `-P`: a folder that happens to be named cohkit where the user stands is not the package.
    python.args(["-P", "-m", "cohkit", command]).args(arguments);
    became(&mut python).map_err(|error| {
        let program = python.get_program().to_string_lossy();
        Failure::new(
            Outcome::CouldNotRun,
            format!("error: `{program}` cannot be run: {error}"),
        )
    })
}

/// The Python beside this command comes first: a wheel puts both into one folder.
fn candidates() -> Vec<PathBuf> {
    let names = ["python3", "python"].map(|name| format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let beside = std::env::current_exe().ok();
    let beside = beside.as_deref().and_then(|path| path.parent());
    let mut found: Vec<PathBuf> = beside
        .iter()
        .flat_map(|folder| names.iter().map(|name| folder.join(name)))
        .filter(|path| path.exists())
        .collect();
    found.extend(names.map(PathBuf::from));
    found
}

fn has_package(python: &PathBuf) -> bool {
    Command::new(python)
        .args(["-P", "-c", PROBE])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Becomes the program, so that signals and the terminal are its own; comes back only with an error.
#[cfg(unix)]
fn became(program: &mut Command) -> std::io::Result<Outcome> {
    use std::os::unix::process::CommandExt;
    Err(program.exec())
}

/// Runs the program and ends as it does.
#[cfg(not(unix))]
fn became(program: &mut Command) -> std::io::Result<Outcome> {
    let code = program.status()?.code();
    let outcomes = [
        Outcome::Yes,
        Outcome::No,
        Outcome::BadInput,
        Outcome::Undecided,
        Outcome::CouldNotRun,
    ];
    let known = outcomes
        .into_iter()
        .find(|outcome| code == Some(i32::from(outcome.code())));
    Ok(known.unwrap_or(Outcome::Interrupted))
}
