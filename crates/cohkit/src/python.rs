//! Commands that Python implements: passed to `python -m cohkit` of a Python that has the package.

use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_rtl::tool;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Python program that exits with 0 if the package is installed, without the cost of loading it.
const PROBE_SCRIPT: &str =
    "import importlib.util, sys; sys.exit(importlib.util.find_spec('cohkit.__main__') is None)";

/// Time limit for a Python to answer [`PROBE_SCRIPT`].
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);

/// Answer of a Python to [`PROBE_SCRIPT`].
#[derive(PartialEq, Eq, Debug)]
enum PackageStatus {
    /// The package is installed.
    Installed,
    /// Python runs, but does not have the package.
    NotInstalled,
    /// No program has this name.
    NoPython,
    /// The program exists but does not run; with the reason.
    Failed(String),
}

/// Runs a command of the Python package with these arguments. On Unix, Python replaces this process, so the
/// function returns only on an error.
///
/// # Errors
/// No Python has the package, or Python cannot be run; the message lists the status of each candidate.
pub(crate) fn run_in_python(command: &str, arguments: &[OsString]) -> Result<ExitStatus, Failure> {
    let mut statuses = String::new();
    let mut found_python = None;
    for python in candidates() {
        let status = match probe_python(&python, PROBE_TIMEOUT) {
            PackageStatus::Installed => {
                found_python = Some(python);
                break;
            }
            PackageStatus::NotInstalled => "does not have it".to_string(),
            PackageStatus::NoPython => "is not installed".to_string(),
            PackageStatus::Failed(reason) => format!("cannot be queried: {reason}"),
        };
        statuses += &format!("\n  `{}` {status}", python.display());
    }
    let Some(python) = found_python else {
        return Err(Failure::new(
            ExitStatus::CouldNotRun,
            format!(
                "error: `cohkit {command}` needs the Python package cohkit{statuses}\n  \
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
pub(crate) fn find_python(limit: Duration) -> Result<(PathBuf, bool), String> {
    let (mut first_python, mut reason) = (None, None);
    for python in candidates() {
        match probe_python(&python, limit) {
            PackageStatus::Installed => return Ok((python, true)),
            PackageStatus::NotInstalled => first_python = first_python.or(Some(python)),
            PackageStatus::NoPython => {}
            PackageStatus::Failed(error) => {
                reason = reason.or(Some(format!(
                    "`{}` cannot be queried: {error}",
                    python.display()
                )));
            }
        }
    }
    let no_python = || "there is no `python3`".to_string();
    first_python
        .map(|python| (python, false))
        .ok_or_else(|| reason.unwrap_or_else(no_python))
}

/// Command and arguments to sweep, if `--sweep` is given to a command that can be swept.
pub(crate) fn sweep_arguments(arguments: &[OsString]) -> Option<&[OsString]> {
    let (_, command_line) = arguments.split_first()?;
    let (command, other_arguments) = command_line.split_first()?;
    let sweepable = ["sim", "play", "check", "reproduce", "litmus", "mutants"].map(OsStr::new);
    let is_sweep_option = |argument: &OsString| {
        let text = argument.to_string_lossy();
        text == "--sweep" || text.starts_with("--sweep=")
    };
    let options = other_arguments
        .iter()
        .take_while(|argument| *argument != "--");
    (sweepable.contains(&command.as_os_str()) && options.into_iter().any(is_sweep_option))
        .then_some(command_line)
}

/// Candidates for Python. Those in the folder of this command come first, as a wheel puts both into one folder.
fn candidates() -> Vec<PathBuf> {
    let names = ["python3", "python"].map(|name| format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let own_folder = std::env::current_exe().ok();
    let own_folder = own_folder.as_deref().and_then(|path| path.parent());
    let mut paths: Vec<PathBuf> = own_folder
        .iter()
        .flat_map(|folder| names.iter().map(|name| folder.join(name)))
        .filter(|path| path.exists())
        .collect();
    paths.extend(names.map(PathBuf::from));
    paths
}

/// Runs [`PROBE_SCRIPT`] with a Python, for at most `limit`.
fn probe_python(python: &Path, limit: Duration) -> PackageStatus {
    let mut command = Command::new(python);
    let output = match tool::output_within(command.args(["-P", "-c", PROBE_SCRIPT]), limit) {
        Ok(Some(output)) => output,
        Ok(None) => {
            return PackageStatus::Failed(format!(
                "it does not answer within {} seconds",
                limit.as_secs()
            ))
        }
        Err(error) if error.kind() == ErrorKind::NotFound && !python.is_file() => {
            return PackageStatus::NoPython
        }
        Err(error) => return PackageStatus::Failed(error.to_string()),
    };
    match output.status.code() {
        Some(0) => PackageStatus::Installed,
        // Python also exits with 1 if even the parent package is missing.
        Some(1) => PackageStatus::NotInstalled,
        _ => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let first_line = stderr.lines().next().unwrap_or_default();
            let status = output.status;
            PackageStatus::Failed(match first_line {
                "" => format!("it ends with {status}"),
                _ => format!("it ends with {status}: {first_line}"),
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
    let known_outcome = outcomes
        .into_iter()
        .find(|outcome| code == Some(i32::from(crate::exit_code(*outcome))));
    Ok(known_outcome.unwrap_or(ExitStatus::Interrupted))
}

#[cfg(all(test, unix))]
mod tests {
    use super::{probe_python, sweep_arguments, OsString, PackageStatus, PROBE_TIMEOUT};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn sweep_commands_are_passed_to_python() {
        let swept_words = |line: &str| -> Option<Vec<OsString>> {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            sweep_arguments(&words).map(<[_]>::to_vec)
        };
        let words = |line: &str| Some(line.split(' ').map(OsString::from).collect());
        let sim = "sim enzian-dc-ddr random-read --sweep cores.count=1,2";
        assert_eq!(swept_words(&format!("cohkit {sim}")), words(sim));
        assert_eq!(
            swept_words("cohkit check msi --sweep=remotes=1..2"),
            words("check msi --sweep=remotes=1..2")
        );
        assert_eq!(
            swept_words("cohkit litmus SB --sweep protocol=msi,mesi"),
            words("litmus SB --sweep protocol=msi,mesi")
        );
        assert_eq!(swept_words("cohkit sim enzian-dc-ddr random-read"), None);
        assert_eq!(swept_words("cohkit table msi --sweep remotes=1"), None);
        assert_eq!(swept_words("cohkit check -- --sweep"), None);
    }

    #[test]
    fn python_without_package_differs_from_broken_python() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let status_of = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).expect("the file can be written");
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&file, mode).expect("permissions can be set");
            probe_python(&file, PROBE_TIMEOUT)
        };
        assert_eq!(
            status_of("has", "#!/bin/sh\nexit 0\n"),
            PackageStatus::Installed
        );
        assert_eq!(
            status_of("lacks", "#!/bin/sh\nexit 1\n"),
            PackageStatus::NotInstalled
        );
        let old_status = status_of("old", "#!/bin/sh\necho unknown option -P >&2\nexit 2\n");
        assert!(
            matches!(old_status, PackageStatus::Failed(reason) if reason.ends_with(": unknown option -P"))
        );
        assert!(matches!(
            status_of("broken", "#!/nonexistent/sh\n"),
            PackageStatus::Failed(_)
        ));
        assert!(matches!(
            status_of("killed", "#!/bin/sh\nkill -9 $$\n"),
            PackageStatus::Failed(_)
        ));
        assert_eq!(
            probe_python(&folder.path().join("none"), PROBE_TIMEOUT),
            PackageStatus::NoPython
        );
    }
}
