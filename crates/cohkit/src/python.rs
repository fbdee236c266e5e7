//! Commands that Python implements: passed to `python -m cohkit` of a Python that has the package.

use crate::outcome::{ExitStatus, Failure};
use cohkit_rtl::tool;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Python program that exits with 0 if the package is installed, without the cost of loading it.
const PROBE: &str =
    "import importlib.util, sys; sys.exit(importlib.util.find_spec('cohkit.__main__') is None)";

/// Time limit for a Python to answer [`PROBE`].
const LIMIT: Duration = Duration::from_secs(60);

/// Answer of a Python to [`PROBE`].
#[derive(PartialEq, Eq, Debug)]
enum PackageAnswer {
    Has,
    Lacks,
    /// No program has this name.
    Absent,
    /// The program exists but does not run; with the reason.
    Fails(String),
}

/// Runs a command of the Python package with these arguments. On Unix, Python replaces this process.
pub(crate) fn hand_over(command: &str, arguments: &[OsString]) -> Result<ExitStatus, Failure> {
    let mut asked = String::new();
    let mut found = None;
    for python in candidates() {
        let what = match ask(&python, LIMIT) {
            PackageAnswer::Has => {
                found = Some(python);
                break;
            }
            PackageAnswer::Lacks => "does not have it".to_string(),
            PackageAnswer::Absent => "is not installed".to_string(),
            PackageAnswer::Fails(why) => format!("cannot be queried: {why}"),
        };
        asked += &format!("\n  `{}` {what}", python.display());
    }
    let Some(python) = found else {
        return Err(Failure::new(
            ExitStatus::CouldNotRun,
            format!(
                "error: `cohkit {command}` needs the Python package cohkit{asked}\n  \
                 help: `pip install .` in Cohkit's repository installs it; Python 3.11 is needed"
            ),
        ));
    };
    let mut python = Command::new(python);
    // With `-P`, a folder named `cohkit` in the current folder is not taken for the package.
    python.args(["-P", "-m", "cohkit", command]).args(arguments);
    replace_process(&mut python).map_err(|error| {
        let program = python.get_program().to_string_lossy();
        Failure::new(
            ExitStatus::CouldNotRun,
            format!("error: `{program}` cannot be run: {error}"),
        )
    })
}

/// Finds the Python to which commands are passed, or else the first that runs; true if it has the package.
///
/// # Errors
/// The reason why no Python was found.
pub(crate) fn find(limit: Duration) -> Result<(PathBuf, bool), String> {
    let (mut first, mut why) = (None, None);
    for python in candidates() {
        match ask(&python, limit) {
            PackageAnswer::Has => return Ok((python, true)),
            PackageAnswer::Lacks => first = first.or(Some(python)),
            PackageAnswer::Absent => {}
            PackageAnswer::Fails(what) => {
                why = why.or(Some(format!(
                    "`{}` cannot be queried: {what}",
                    python.display()
                )));
            }
        }
    }
    let none = || "there is no `python3`".to_string();
    first
        .map(|python| (python, false))
        .ok_or_else(|| why.unwrap_or_else(none))
}

/// Command and arguments to sweep, if `--sweep` is given to a command that can be swept.
pub(crate) fn swept(arguments: &[OsString]) -> Option<&[OsString]> {
    let (_, swept) = arguments.split_first()?;
    let (command, rest) = swept.split_first()?;
    let can_be = ["sim", "play", "check", "reproduce", "litmus", "mutants"].map(OsStr::new);
    let asked = |argument: &OsString| {
        let text = argument.to_string_lossy();
        text == "--sweep" || text.starts_with("--sweep=")
    };
    let options = rest.iter().take_while(|argument| *argument != "--");
    (can_be.contains(&command.as_os_str()) && options.into_iter().any(asked)).then_some(swept)
}

/// Candidates for Python. Those beside this command come first, as a wheel puts both into one folder.
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

fn ask(python: &Path, limit: Duration) -> PackageAnswer {
    let mut command = Command::new(python);
    let output = match tool::within(command.args(["-P", "-c", PROBE]), limit) {
        Ok(Some(output)) => output,
        Ok(None) => {
            return PackageAnswer::Fails(format!(
                "it does not answer within {} seconds",
                limit.as_secs()
            ))
        }
        Err(error) if error.kind() == ErrorKind::NotFound && !python.is_file() => {
            return PackageAnswer::Absent
        }
        Err(error) => return PackageAnswer::Fails(error.to_string()),
    };
    match output.status.code() {
        Some(0) => PackageAnswer::Has,
        // Python also exits with 1 if even the parent package is missing.
        Some(1) => PackageAnswer::Lacks,
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().next().unwrap_or_default();
            let status = output.status;
            PackageAnswer::Fails(match first {
                "" => format!("it ends with {status}"),
                _ => format!("it ends with {status}: {first}"),
            })
        }
    }
}

/// Replaces this process by the program, so that signals and the terminal are its own. Returns only on an error.
#[cfg(unix)]
fn replace_process(program: &mut Command) -> std::io::Result<ExitStatus> {
    use std::os::unix::process::CommandExt;
    Err(program.exec())
}

/// Runs the program, and returns the outcome for its exit code.
#[cfg(not(unix))]
fn replace_process(program: &mut Command) -> std::io::Result<ExitStatus> {
    let code = program.status()?.code();
    let outcomes = [
        ExitStatus::Success,
        ExitStatus::Violated,
        ExitStatus::BadInput,
        ExitStatus::Undecided,
        ExitStatus::CouldNotRun,
    ];
    let known = outcomes
        .into_iter()
        .find(|outcome| code == Some(i32::from(outcome.code())));
    Ok(known.unwrap_or(ExitStatus::Interrupted))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn sweep_commands_are_passed_to_python() {
        let of = |line: &str| -> Option<Vec<OsString>> {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            swept(&words).map(<[_]>::to_vec)
        };
        let words = |line: &str| Some(line.split(' ').map(OsString::from).collect());
        let sim = "sim enzian-dc-ddr random-read --sweep cores.used=1,2";
        assert_eq!(of(&format!("cohkit {sim}")), words(sim));
        assert_eq!(
            of("cohkit check msi --sweep=remotes=1..2"),
            words("check msi --sweep=remotes=1..2")
        );
        assert_eq!(
            of("cohkit litmus SB --sweep protocol=msi,mesi"),
            words("litmus SB --sweep protocol=msi,mesi")
        );
        assert_eq!(of("cohkit sim enzian-dc-ddr random-read"), None);
        assert_eq!(of("cohkit table msi --sweep remotes=1"), None);
        assert_eq!(of("cohkit check -- --sweep"), None);
    }

    #[test]
    fn python_without_package_differs_from_broken_python() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let python = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).expect("it can be written");
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&file, mode).expect("own file");
            ask(&file, LIMIT)
        };
        assert_eq!(python("has", "#!/bin/sh\nexit 0\n"), PackageAnswer::Has);
        assert_eq!(python("lacks", "#!/bin/sh\nexit 1\n"), PackageAnswer::Lacks);
        let old = python("old", "#!/bin/sh\necho unknown option -P >&2\nexit 2\n");
        assert!(matches!(old, PackageAnswer::Fails(why) if why.ends_with(": unknown option -P")));
        assert!(matches!(
            python("broken", "#!/nonexistent/sh\n"),
            PackageAnswer::Fails(_)
        ));
        assert!(matches!(
            python("killed", "#!/bin/sh\nkill -9 $$\n"),
            PackageAnswer::Fails(_)
        ));
        assert_eq!(
            ask(&folder.path().join("none"), LIMIT),
            PackageAnswer::Absent
        );
    }
}
