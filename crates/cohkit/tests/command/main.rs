//! Tests of the command: output, files, exit codes.

mod checkpoints;
mod completions;
mod doctor;
mod files;
mod fmt;
mod help;
mod known_verdicts;
mod language_server;
mod library;
mod limits;
mod link;
mod list;
mod litmus;
mod models;
mod mutants;
mod play;
mod program;
mod reports;
use cohkit_testing::require;
mod rtl;
mod run_near_memory;
mod sim;
mod trace;
mod values;
mod verdicts;
#[cfg(unix)]
mod watch;

use expect_test::{expect, Expect};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Path of a protocol with one stable state besides none.
fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/tiny.coh")
}

/// The command with arguments, in this crate's folder.
fn cohkit<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cohkit"));
    command
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null());
    command
}

/// Interrupts a command like Ctrl-C, once it handles the signal and works.
#[cfg(unix)]
fn interrupt(child: &mut std::process::Child) {
    let number = child.id().to_string();
    let handles_interrupt = || match std::fs::read_to_string(format!("/proc/{number}/status")) {
        Ok(status) => {
            let caught_signals = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught_signals =
                caught_signals.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            // SIGINT has number 2.
            caught_signals.is_some_and(|mask| mask & 0b10 != 0)
        }
        // Without `/proc`, the handler cannot be observed.
        Err(_) => true,
    };
    while !handles_interrupt() {
        if let Some(status) = child.try_wait().expect("the command can be polled") {
            panic!("it ends by itself: {status}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    let kill_status = Command::new("kill").args(["-INT", &number]).status();
    assert!(kill_status.expect("kill runs").success());
}

/// Output as text, which must be UTF-8.
fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Exit code and both outputs, as one text.
fn transcript(output: &Output) -> String {
    let code = output.status.code().expect("the command ends by itself");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    format!(
        "exit code {code}\n{out}{}{err}",
        if err.is_empty() { "" } else { "--- stderr\n" }
    )
}

/// Compares exit code and output of a command with the expected ones.
fn check(arguments: &[&str], expected: Expect) {
    let output = cohkit(arguments).output().expect("the command starts");
    expected.assert_eq(&transcript(&output));
}

#[test]
fn constructed_home_is_printed_as_text() {
    check(
        &["table", "tests/command/tiny.coh"],
        expect![[r#"
            exit code 0
            tiny: home for one remote, constructed: 6 states, 11 transitions, 6 events

            state                     | event            | actions                      | next
            I                         | Get              | read memory                  | I:Get.rd
                                      | clean_invalidate | acknowledge clean_invalidate | I
            I:Get.rd                  | clean_invalidate |                              | I:Get.rd.clean_invalidate
                                      | memory data      | send Data                    | I>S
            I:Get.rd.clean_invalidate | clean_invalidate | stall
                                      | memory data      | send Data, send Drop         | I>S_fI.clean_invalidate
            I>S                       | Get              | stall
                                      | Put              |                              | I
                                      | clean_invalidate | send Drop                    | I>S_fI.clean_invalidate
            I>S_fI.clean_invalidate   | Get              | stall
                                      | Put              |                              | I_fI.clean_invalidate
                                      | Gone             | acknowledge clean_invalidate | I
                                      | None             | send Drop                    | I>S_fI.clean_invalidate
                                      | clean_invalidate | stall
            I_fI.clean_invalidate     | Get              | stall
                                      | None             | acknowledge clean_invalidate | I
                                      | clean_invalidate | stall

            stall: the message or local operation is stalled
        "#]],
    );
}

#[test]
fn remote_is_printed_as_markdown() {
    check(
        &[
            "table",
            "tests/command/tiny.coh",
            "--agent",
            "remote",
            "--markdown",
        ],
        expect![[r#"
            exit code 0
            tiny: remote: 3 states, 6 transitions, 4 events

            | state | event | actions | next |
            | --- | --- | --- | --- |
            | I | load | send Get | IS |
            | I | Drop | send None | I |
            | S | evict | send Put | I |
            | S | Drop | send Gone | I |
            | IS | Data |  | S |
            | IS | Drop | send None | IS |
        "#]],
    );
}

#[test]
fn invalid_command_line_is_bad_input() {
    check(
        &["tabel"],
        expect![[r#"
            exit code 2
            --- stderr
            error: unrecognized subcommand 'tabel'

              tip: some similar subcommands exist: 'trace', 'table'

            Usage: cohkit <COMMAND>

            For more information, try '--help'.
        "#]],
    );
    check(
        &["table"],
        expect![[r#"
        exit code 2
        --- stderr
        error: the following required arguments were not provided:
          <FILE>

        Usage: cohkit table <FILE>

        For more information, try '--help'.
    "#]],
    );
    check(
        &["table", "a.coh", "--agent", "device"],
        expect![[r#"
        exit code 2
        --- stderr
        error: invalid value 'device' for '--agent <AGENT>'
          [possible values: home, remote]

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn missing_file_is_bad_input() {
    check(
        &["table", "missing.coh"],
        expect![[r#"
        exit code 2
        --- stderr
        error: missing.coh: no such file
          help: protocol files end in `.coh`; check the path
    "#]],
    );
    check(
        &["table", "tests"],
        expect![[r#"
            exit code 2
            --- stderr
            error: tests: is a folder
              help: name the protocol files in it, as in `tests/*.coh`
        "#]],
    );
}

/// Runs `table` on a text, and returns the exit code and standard error.
fn tabulate(contents: &[u8]) -> (i32, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("text.coh");
    std::fs::write(&file, contents).expect("the file can be written");
    let output = cohkit([Path::new("table"), &file])
        .output()
        .expect("the command starts");
    let code = output.status.code().expect("the command ends by itself");
    (code, text(&output.stderr))
}

#[test]
fn invalid_tests_are_rejected_with_a_position() {
    let valid = std::fs::read_to_string(tiny()).expect("the file can be read");
    let unknown_message = valid.replace("send Put", "send Pt");
    let too_long = valid.replace("# Smallest", &"# a very long remark\n".repeat(500_000));
    for (contents, expected) in [
        (String::new(), "text.coh"),
        (unknown_message, "text.coh:32:"),
        (
            valid.replace("64 bytes", "99999999999999999999 bytes"),
            "text.coh:6:",
        ),
        (valid.replace("remotes 1", "remotes 9"), "text.coh:43:"),
        (too_long, "text.coh"),
    ] {
        let (code, message) = tabulate(contents.as_bytes());
        assert_eq!(code, 2, "{message}");
        assert!(message.starts_with("error"), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(message.len() < 20_000, "{} bytes of message", message.len());
    }
    let (code, message) = tabulate(&[0x7f, b'E', b'L', b'F', 0xff, 0, 1]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("not UTF-8"), "{message}");
}

#[test]
fn truncated_protocols_cause_no_panic() {
    let valid = std::fs::read(tiny()).expect("the file can be read");
    for length in (0..valid.len()).step_by(23) {
        let (code, message) = tabulate(&valid[..length]);
        assert!(
            code <= 2,
            "cut after {length} bytes: exit code {code}\n{message}"
        );
    }
}

/// JSON of a command without its machine-dependent values.
fn without_run(output: &Output) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(entries) => {
                entries.remove("run");
                entries.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
    strip(&mut value);
    value
}

#[test]
fn json_without_run_does_not_depend_on_the_place() {
    let result = cohkit(["table", "tests/command/tiny.coh", "--json"])
        .output()
        .expect("the command starts");
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::copy(tiny(), folder.path().join("other.coh")).expect("the file can be copied");
    let other_result = cohkit(["table", "other.coh", "--json"])
        .current_dir(folder.path())
        .output()
        .expect("the command starts");
    let (result, other_result) = (without_run(&result), without_run(&other_result));
    assert_eq!(result.to_string(), other_result.to_string());
    assert_eq!(result["protocol"], "tiny");
    let rows = result["rows"].as_array().expect("a list of rows");
    let taken_rows = rows.iter().filter(|row| !row["next"].is_null()).count();
    assert_eq!(result["transitions"], taken_rows);
    let states: std::collections::BTreeSet<_> =
        rows.iter().map(|row| row["state"].as_str()).collect();
    assert_eq!(result["states"], states.len());
    let events: std::collections::BTreeSet<_> =
        rows.iter().map(|row| row["event"].as_str()).collect();
    assert_eq!(result["events"], events.len());
}

/// The command line of each result is recorded for reports, and can be pasted into a shell.
#[test]
fn json_records_a_command_line_that_a_shell_repeats() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("my cache's text.coh");
    std::fs::copy(tiny(), &file).expect("the file can be copied");
    let words = ["check", "my cache's text.coh", "--threads", "1", "--json"];
    let run = |command: &mut Command| -> Value {
        let output = command
            .current_dir(folder.path())
            .output()
            .expect("the command starts");
        let printed: Value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
        printed[0]["run"]["command"].clone()
    };
    let recorded = run(&mut cohkit(words));
    assert_eq!(
        recorded,
        r"cohkit check 'my cache'\''s text.coh' --threads 1 --json"
    );
    let shell_command = recorded.as_str().expect("a JSON string").replacen(
        "cohkit",
        &format!("'{}'", env!("CARGO_BIN_EXE_cohkit")),
        1,
    );
    let rerun = run(Command::new("sh").args(["-c", &shell_command]));
    assert_eq!(rerun, recorded);
}

#[test]
fn help_is_the_manual() {
    let output = cohkit(["--help"]).output().expect("the command starts");
    assert!(output.status.success());
    let help = text(&output.stdout);
    for code in [
        "0  success",
        "1  violated",
        "2  bad input",
        "3  undecided",
        "4  could not run",
        "130  interrupted",
    ] {
        assert!(help.contains(code), "{code} in\n{help}");
    }
}
