//! Tests of `cohkit check --watch`: it checks after each change of a file, in whatever way it is made, until Ctrl-C.

use crate::{cohkit, text, tiny};
use std::io::{pipe, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{channel, Receiver};
use std::thread;
use std::time::Duration;

/// Time limit for a line of output.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(60);

/// A command that watches; its output arrives line by line.
struct Watch {
    /// Process of the command.
    command: Child,
    /// Lines of both output streams, in order.
    lines: Receiver<String>,
}

impl Watch {
    /// Starts `cohkit check --watch` on files. No line may contain terminal control sequences.
    fn start(files: &[&Path]) -> Watch {
        // Both streams share one pipe, as on a terminal: two pipes would not show the order of lines.
        let (output, stream) = pipe().expect("a pipe");
        let stderr_stream = stream.try_clone().expect("another end");
        let command = cohkit(["check", "--watch"])
            .args(files)
            .stdout(stream)
            .stderr(stderr_stream)
            .spawn()
            .expect("the command starts");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                assert!(
                    !line.contains('\u{1b}'),
                    "{line}: a terminal's history stays"
                );
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Watch { command, lines }
    }

    /// Waits for a line that contains this text.
    fn expect_output(&self, expected: &str) {
        let mut earlier_lines = String::new();
        loop {
            let line = self.lines.recv_timeout(OUTPUT_TIMEOUT);
            let line =
                line.unwrap_or_else(|_| panic!("`{expected}` is not said after\n{earlier_lines}"));
            if line.contains(expected) {
                break;
            }
            earlier_lines += &format!("{line}\n");
        }
    }

    /// Waits until there is no output for a second: a file that changes during its check is checked once more.
    fn expect_silence(&self) {
        let lines = || self.lines.recv_timeout(Duration::from_secs(1)).ok();
        let line_count = std::iter::from_fn(lines).take(100).count();
        assert!(line_count < 100, "it goes on and on");
    }

    /// Ends the command by Ctrl-C, and returns the output that was not consumed.
    fn end(mut self) -> Vec<String> {
        let number = self.command.id().to_string();
        let status = Command::new("kill").args(["-INT", &number]).status();
        assert!(status.expect("kill runs").success());
        assert_eq!(
            self.command.wait().expect("the command ends").code(),
            Some(130)
        );
        self.lines.iter().collect()
    }
}

/// Replaces a file as editors do: another file takes its name.
fn replace(file: &Path, text: &str) {
    let new_file = file.with_extension("new");
    std::fs::write(&new_file, text).expect("the file can be written");
    std::fs::rename(&new_file, file).expect("the file can be renamed");
}

#[test]
fn watch_rechecks_after_changes_and_errors() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let valid = std::fs::read_to_string(tiny()).expect("the file can be read");
    let file = folder.path().join("tiny.coh");
    // The file need not exist at first.
    let watch = Watch::start(&[&file]);
    watch.expect_output("tiny.coh");
    watch.expect_output("watching; Ctrl-C ends");
    std::fs::write(&file, &valid).expect("the file can be written");
    watch.expect_output("changed: ");
    watch.expect_output("tiny alone: verified: ");
    replace(&file, &valid.replace("send Put", "send Pit"));
    watch.expect_output("changed: ");
    watch.expect_output("`Pit`");
    // Written in place, with an unchanged size.
    std::fs::write(&file, valid.replace("send Gone | I", "send Gone | S"))
        .expect("the file can be written");
    watch.expect_output("changed: ");
    watch.expect_output("tiny alone: violated: ");
    std::fs::remove_file(&file).expect("the file can be removed");
    watch.expect_output("changed: ");
    replace(&file, &valid);
    watch.expect_output("tiny alone: verified: ");
    watch.expect_silence();
    // Without changes there is no output.
    thread::sleep(Duration::from_secs(1));
    let output = watch.end();
    assert!(
        !output.iter().any(|line| line.contains("changed: ")),
        "{output:?}"
    );
    assert!(
        output.iter().any(|line| line == "interrupted"),
        "{output:?}"
    );
}

#[test]
fn watch_includes_used_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read_protocol = |name: &str| {
        std::fs::read_to_string(root.join("protocols").join(name)).expect("the file can be read")
    };
    for name in ["mesi.coh", "two-level.coh"] {
        std::fs::write(folder.path().join(name), read_protocol(name))
            .expect("the file can be written");
    }
    // The check of this composition takes long, and is cancelled by a change.
    let watch = Watch::start(&[&folder.path().join("two-level.coh")]);
    thread::sleep(Duration::from_secs(1));
    let used_file = folder.path().join("mesi.coh");
    replace(
        &used_file,
        &read_protocol("mesi.coh").replace("protocol", "protocoll"),
    );
    watch.expect_output("mesi.coh:");
    // The other used file is not in the folder yet: the shipped one is used.
    replace(&used_file, &read_protocol("mesi.coh"));
    watch.expect_output("changed: ");
    thread::sleep(Duration::from_secs(1));
    replace(&folder.path().join("mesi-l1.coh"), "protocol");
    watch.expect_output("mesi-l1.coh");
    watch.expect_output("mesi-l1.coh:1:");
    watch.end();
}

#[test]
fn unwatchable_inputs_are_rejected() {
    for (arguments, expected) in [
        (&["/dev/stdin"][..], "cannot be watched"),
        (
            &["tests/command/tiny.coh", "--dialect", "rumur"],
            "`--dialect` is for Murphi models",
        ),
        (
            &["tests/command/tiny.coh", "--checkpoint", "out"],
            "cannot be used with",
        ),
    ] {
        let output = cohkit(["check", "--watch"]).args(arguments).output();
        let output = output.expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            text(&output.stderr).contains(expected),
            "{}",
            text(&output.stderr)
        );
    }
}
