//! Programs that others have written: asked for their versions, and run for long as Verilator and Yosys are.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is asked whether to stop.
const LOOK: Duration = Duration::from_millis(10);

/// Most bytes that are taken of what tells a version.
const MOST: u64 = 1 << 16;

/// What comes of asking a program for its version.
#[derive(PartialEq, Eq, Debug)]
pub enum Asked {
    /// There is no such program.
    Absent,
    /// It is there and does not run; how that shows.
    Fails(String),
    /// It says this.
    Says(String),
}

/// Most lines that are told of what a program said; the last ones tell most.
const LAST: usize = 5;

/// The folders in which programs are looked for: first that of this command, where the package that brought it has put those
/// which came with it (a virtual environment's, which need not be in `PATH`), then those of `PATH`.
pub fn search_path() -> OsString {
    let command = env::current_exe().ok();
    search_path_from(command.as_deref().and_then(Path::parent))
}

/// The folders of `PATH`, after one that is looked into first.
pub(crate) fn search_path_from(folder: Option<&Path>) -> OsString {
    let folders = env::var_os("PATH").unwrap_or_default();
    let all = folder
        .map(Path::to_path_buf)
        .into_iter()
        .chain(env::split_paths(&folders));
    env::join_paths(all).unwrap_or(folders)
}

/// Asks a program in these folders for its version by these arguments, and waits so long for the answer.
pub fn version(program: &str, arguments: &[&str], path: &OsStr, limit: Duration) -> Asked {
    let argument = arguments.join(" ");
    let mut command = Command::new(program);
    let output = within(command.args(arguments).env("PATH", path), limit);
    let output = match output {
        Ok(Some(output)) => output,
        Ok(None) => {
            let seconds = limit.as_secs();
            return Asked::Fails(format!(
                "`{program} {argument}` does not answer within {seconds} seconds"
            ));
        }
        Err(error) => {
            // So it is said too of a script whose interpreter is not there.
            let there = env::split_paths(path).any(|folder| folder.join(program).is_file());
            return match error.kind() {
                ErrorKind::NotFound if !there => Asked::Absent,
                _ => Asked::Fails(format!("`{program}` cannot be run: {error}")),
            };
        }
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    if output.status.success() {
        return Asked::Says(text(&output.stdout));
    }
    let mut what = format!("`{program} {argument}` ends with {}", output.status);
    let said = text(&[output.stdout, output.stderr].concat());
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    for line in &lines[lines.len().saturating_sub(LAST)..] {
        what += &format!("\n  {line}");
    }
    Asked::Fails(what)
}

/// Runs a program that says little, and gives that; `None` if it has not ended by then, and was ended.
///
/// # Errors
/// Those of starting it.
pub fn within(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    let end = Instant::now() + limit;
    run_to_end(command, MOST, &|| Instant::now() >= end)
}

/// What is said of a program whose answer has no version in it.
pub(crate) fn no_version(name: &str, command: &str, says: &str) -> String {
    let says = match says {
        "" => "nothing".to_string(),
        _ => format!("`{says}`"),
    };
    format!("{name} does not tell its version: `{command}` says {says}")
}

/// Runs a program in a folder and gives what it said once it has ended; `None` if it was told to stop before. Then nothing
/// of it runs any more, nor of what it has started, and what they had put aside is gone.
pub(crate) fn run(
    command: &mut Command,
    folder: &Path,
    stop: &AtomicBool,
) -> io::Result<Option<Output>> {
    // Who is stopped does not tidy up.
    let aside = fs::canonicalize(folder)?.join("aside");
    fs::create_dir_all(&aside)?;
    command.current_dir(folder).env("TMPDIR", &aside);
    let output = run_to_end(command, u64::MAX, &|| stop.load(Ordering::Relaxed));
    // What stays there does no harm.
    let _ = fs::remove_dir_all(&aside);
    output
}

/// Of what is said on each stream so many bytes are taken; who says more finds it closed.
fn run_to_end(
    command: &mut Command,
    most: u64,
    stop: &dyn Fn() -> bool,
) -> io::Result<Option<Output>> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A group of its own, so that the compilers of a build can be stopped together.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.spawn()?;
    let pipe = |pipe: Option<Box<dyn Read + Send>>| {
        thread::spawn(move || {
            let mut text = Vec::new();
            // What cannot be read is not said.
            let _ = pipe.map(|pipe| pipe.take(most).read_to_end(&mut text));
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
            // Where there are no groups this is all that can be done; elsewhere it has ended already.
            let _ = child.kill();
            child.wait()?;
            break None;
        }
        thread::sleep(LOOK);
    };
    // They end when nobody is left who could say something.
    let said = |text: thread::JoinHandle<Vec<u8>>| text.join().unwrap_or_default();
    let (stdout, stderr) = (said(stdout), said(stderr));
    Ok(status.map(|status| Output {
        status,
        stdout,
        stderr,
    }))
}

#[cfg(unix)]
#[allow(unsafe_code)]
fn kill_group(leader: u32) {
    if let Ok(leader) = libc::pid_t::try_from(leader) {
        // SAFETY: it takes two numbers. The leader has not been waited for, so the group is still its own.
        unsafe { libc::kill(-leader, libc::SIGKILL) };
    }
}

#[cfg(not(unix))]
fn kill_group(_leader: u32) {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says_is_given() {
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

    /// The pipes are open until all have ended that the shell has started, so this comes back only if they have.
    #[test]
    fn what_is_told_to_stop_ends_with_all_that_it_has_started() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000000 & sleep 1000000"]);
        let output = run_to_end(&mut command, u64::MAX, &|| true);
        assert!(output.expect("there is a shell").is_none());
    }

    #[test]
    fn what_does_not_answer_or_never_ends_its_answer_is_ended() {
        let mut command = Command::new("sh");
        let output = within(
            command.args(["-c", "sleep 1000000"]),
            Duration::from_millis(50),
        );
        assert!(output.expect("there is a shell").is_none());
        let mut command = Command::new("sh");
        let output = within(
            command.args(["-c", "exec cat /dev/zero"]),
            Duration::from_secs(100),
        );
        let output = output
            .expect("there is a shell")
            .expect("it finds the pipe closed");
        assert!(!output.status.success());
        assert_eq!(output.stdout.len() as u64, MOST);
    }
}
