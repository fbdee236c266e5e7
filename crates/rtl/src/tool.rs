//! External programs: their versions, and long runs of tools such as Verilator and Yosys that can be cancelled.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Polling interval of the stop condition.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum number of bytes read from a version report.
const MAX_OUTPUT_BYTES: u64 = 1 << 16;

/// Result of asking a program for its version.
#[derive(PartialEq, Eq, Debug)]
pub enum VersionResult {
    /// The program does not exist.
    Absent,
    /// The program exists but does not run, with the symptom.
    Failed(String),
    /// Output of the program.
    Output(String),
}

/// Maximum number of output lines in an error message; the last lines are the most informative.
const MAX_MESSAGE_LINES: usize = 5;

/// Returns the search path for programs. It starts with the folder of this command, which may be a virtual environment
/// outside `PATH` whose package installed other tools, and continues with `PATH`.
pub fn search_path() -> OsString {
    let command = env::current_exe().ok();
    search_path_from(command.as_deref().and_then(Path::parent))
}

/// Returns `PATH` with `folder` prepended, if given.
pub(crate) fn search_path_from(folder: Option<&Path>) -> OsString {
    let folders = env::var_os("PATH").unwrap_or_default();
    let search_folders = folder
        .map(Path::to_path_buf)
        .into_iter()
        .chain(env::split_paths(&folders));
    env::join_paths(search_folders).unwrap_or(folders)
}

/// Runs a program from the given folders with the arguments that print its version, for at most `limit`. The result is
/// trimmed standard output, or the reason why there is none.
pub fn version(program: &str, arguments: &[&str], path: &OsStr, limit: Duration) -> VersionResult {
    let argument = arguments.join(" ");
    let mut command = Command::new(program);
    let output = output_within(command.args(arguments).env("PATH", path), limit);
    let output = match output {
        Ok(Some(output)) => output,
        Ok(None) => {
            let seconds = limit.as_secs();
            return VersionResult::Failed(format!(
                "`{program} {argument}` does not answer within {seconds} seconds"
            ));
        }
        Err(error) => {
            // The same error arises for a script whose interpreter does not exist.
            let exists = env::split_paths(path).any(|folder| folder.join(program).is_file());
            return match error.kind() {
                ErrorKind::NotFound if !exists => VersionResult::Absent,
                _ => VersionResult::Failed(format!("`{program}` cannot be run: {error}")),
            };
        }
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    if output.status.success() {
        return VersionResult::Output(text(&output.stdout));
    }
    let mut symptom = format!("`{program} {argument}` ends with {}", output.status);
    let output_text = text(&[output.stdout, output.stderr].concat());
    let lines: Vec<&str> = output_text
        .lines()
        .filter(|line| !line.is_empty())
        .collect();
    for line in &lines[lines.len().saturating_sub(MAX_MESSAGE_LINES)..] {
        symptom += &format!("\n  {line}");
    }
    VersionResult::Failed(symptom)
}

/// Runs a program with little output and returns that output. `None` if the time limit expired and the program was
/// killed.
///
/// # Errors
/// The program cannot be started.
pub fn output_within(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    let end = Instant::now() + limit;
    run_to_end(command, MAX_OUTPUT_BYTES, &|| Instant::now() >= end)
}

/// Returns the error message for a program whose output contains no version.
pub(crate) fn no_version(name: &str, command: &str, answer: &str) -> String {
    let answer = match answer {
        "" => "nothing".to_string(),
        _ => format!("`{answer}`"),
    };
    format!("{name} does not print its version: `{command}` says {answer}")
}

/// Runs a program in a folder and returns its output; `None` if `stop` was set before its end. In that case the program
/// and all its child processes have been killed. Its temporary files are removed.
pub(crate) fn run(
    command: &mut Command,
    folder: &Path,
    stop: &AtomicBool,
) -> io::Result<Option<Output>> {
    // A killed program does not clean up, so its temporary files get a folder of their own.
    let temporary = fs::canonicalize(folder)?.join("aside");
    fs::create_dir_all(&temporary)?;
    command.current_dir(folder).env("TMPDIR", &temporary);
    let output = run_to_end(command, u64::MAX, &|| stop.load(Ordering::Relaxed));
    // A leftover folder does no harm.
    let _ = fs::remove_dir_all(&temporary);
    output
}

/// Runs a program until its end or until `stop`. At most `max_bytes` bytes of each output stream are read; the stream
/// is then closed.
fn run_to_end(
    command: &mut Command,
    max_bytes: u64,
    stop: &dyn Fn() -> bool,
) -> io::Result<Option<Output>> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A process group of its own, so that all compilers of a build can be stopped together.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.spawn()?;
    let pipe = |pipe: Option<Box<dyn Read + Send>>| {
        thread::spawn(move || {
            let mut text = Vec::new();
            // Ignore read errors: the output is then incomplete.
            let _ = pipe.map(|pipe| pipe.take(max_bytes).read_to_end(&mut text));
            text
        })
    };
    let stdout = pipe(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = pipe(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if stop() {
            kill_group(child.id());
            // On systems without process groups, this kills at least the program itself; elsewhere it has already
            // ended.
            let _ = child.kill();
            child.wait()?;
            break None;
        }
        thread::sleep(POLL_INTERVAL);
    };
    // The readers end once no process holds the streams open.
    let collect = |text: thread::JoinHandle<Vec<u8>>| text.join().unwrap_or_default();
    let (stdout, stderr) = (collect(stdout), collect(stderr));
    Ok(status.map(|status| Output {
        status,
        stdout,
        stderr,
    }))
}

/// Kills the process group of a program that this process has started.
#[cfg(unix)]
#[allow(unsafe_code)]
fn kill_group(leader: u32) {
    if let Ok(leader) = libc::pid_t::try_from(leader) {
        // SAFETY: the call takes two numbers. The leader has not been waited for, so the group's number is still valid.
        unsafe { libc::kill(-leader, libc::SIGKILL) };
    }
}

/// Without process groups, only the program itself can be killed.
#[cfg(not(unix))]
fn kill_group(_leader: u32) {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Both output streams and the exit code of a tool are returned.
    #[test]
    fn tool_output_is_captured() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; exit 3"]);
        let output = run_to_end(&mut command, u64::MAX, &|| false);
        let output = output.expect("there is a shell").expect("nobody stops it");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (&output.stdout[..], &output.stderr[..]),
            (&b"one\n"[..], &b"two\n"[..])
        );
    }

    /// The pipes stay open until all child processes of the shell have ended; the call returns only then.
    #[test]
    fn cancelled_tool_ends_with_its_children() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000000 & sleep 1000000"]);
        let output = run_to_end(&mut command, u64::MAX, &|| true);
        assert!(output.expect("there is a shell").is_none());
    }

    /// A tool without an answer in time is killed, and one with too much output fails.
    #[test]
    fn unresponsive_and_endless_tools_are_killed() {
        let mut command = Command::new("sh");
        let output = output_within(
            command.args(["-c", "sleep 1000000"]),
            Duration::from_millis(50),
        );
        assert!(output.expect("there is a shell").is_none());
        let mut command = Command::new("sh");
        let output = output_within(
            command.args(["-c", "exec cat /dev/zero"]),
            Duration::from_secs(100),
        );
        let output = output
            .expect("there is a shell")
            .expect("it finds the pipe closed");
        assert!(!output.status.success());
        assert_eq!(output.stdout.len() as u64, MAX_OUTPUT_BYTES);
    }
}
