//! Tests of `cohkit check`: verdicts, their exit codes, and their reports.

mod added_lines;
mod any_number;
mod compositions;
mod fairness;
mod guarantees;
mod limits;
mod outputs;
mod random_walks;

use crate::{check, cohkit, text, tiny, transcript, without_run};
use expect_test::expect;
use std::fs;
use std::path::{Path, PathBuf};

/// Path of a shipped protocol file.
fn shipped_protocol(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../protocols")
        .join(name)
}

/// Copies a protocol file into a folder, with one change.
fn mutated_copy(folder: &Path, source: &Path, original: &str, mutated: &str) -> PathBuf {
    let valid = fs::read_to_string(source).expect("the file can be read");
    assert_eq!(valid.matches(original).count(), 1, "{original}");
    let file = folder.join("changed.coh");
    fs::write(&file, valid.replace(original, mutated)).expect("the file can be written");
    file
}

/// MSI whose caches keep a line on an invalidation.
fn forgetful_msi(folder: &Path) -> PathBuf {
    mutated_copy(
        folder,
        &shipped_protocol("msi.coh"),
        "  S              | Inv                     | send InvAck to requestor                       | I\n",
        "  S              | Inv                     | send InvAck to requestor                       | S\n",
    )
}

#[test]
fn correct_protocol_is_verified() {
    check(
        &["check", "tests/command/tiny.coh"],
        expect![[r#"
            exit code 0
            tiny alone: verified: 48 states, 108 transitions, depth 12
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
              note: never performed, as the specification has no row for it: store
            tiny: channels share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered
        "#]],
    );
    check(
        &["check", "tests/command/tiny.coh", "--remotes", "2"],
        expect![[r#"
            exit code 0
            tiny remotes_2_lines_1: verified: 356 states up to symmetry, 1351 transitions, depth 21
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
              note: never performed, as the specification has no row for it: store
            tiny: channels share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered
        "#]],
    );
}

#[test]
fn violation_is_drawn_as_a_chart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = forgetful_msi(folder.path());
    let output = cohkit(["check", "--remotes", "2", "--ascii"])
        .arg(&file)
        .output()
        .expect("the command starts");
    expect![[r#"
        exit code 1
        msi remotes_2_lines_1: violated: single writer: another agent still has read or write permission
          after 110 states up to symmetry, 177 transitions, depth 8

        cache 0                        cache 1                       directory          memory
           |                              |                              |                |
           * load                         |                              |                |
           *------------ GetS ------------+--------------------.         |                |
         [IS_D]*                          |                    :         |                |
           |                              * store              :         |                |
           |                              *------ GetM ------. :         |                |
           |                           [IM_AD]*              : :         |                |
           |                              |                  : '-------->| GetS           |
           |   .--------------------------+-------- Data(acks=0) --------+                |
           |   :                          |                  : [S sharers={cache 0}]      |
           |   :                          |                  '---------->| GetM           |
           |   :                          |  .------ Data(acks=1) -------+                |
           |   : .------------------------+--+ Inv(requestor=cache 1) ---+                |
           |   : :                        |  :                   [M owner=cache 1]        |
           |   : :                        *<-' Data(acks=1)              |                |
           |   : :                  [IM_A owed=1]*                       |                |
           *<--' : Data(acks=0)           |                              |                |
          [S]*   :                        |                              |                |
           *<----' Inv(requestor=cache 1) |                              |                |
           *----------- InvAck ---------->*                              |                |
           |                             [M]*                            |                |
           |                              |                              |                |

    "#]]
    .assert_eq(&transcript(&output));
}

#[test]
fn construction_fault_is_a_violation() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = mutated_copy(folder.path(), &tiny(), "send Gone | I", "send Gone | S");
    let output = cohkit(["check"])
        .arg(&file)
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(1));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.starts_with("tiny alone: violated: livelock: "), "{out}");
    assert!(err.contains("changed.coh:37:1"), "{err}");
    assert!(err.contains("Drop"), "{err}");
    let output = cohkit(["check", "--json"])
        .arg(&file)
        .output()
        .expect("the command starts");
    let verdicts = without_run(&output);
    assert_eq!(verdicts[0]["outcome"], "violated");
    assert_eq!(verdicts[0]["counterexample"]["kind"], "construction");
    assert_eq!(verdicts[0]["counterexample"]["name"], "livelock");
    assert!(verdicts[0]["states"].is_null());
}

#[test]
fn state_limit_gives_an_undecided_verdict() {
    check(
        &["check", "tests/command/tiny.coh", "--max-states", "10"],
        expect![[r#"
            exit code 3
            tiny alone: undecided: the limit on states was reached after 10 states, 16 transitions, depth 4
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
        "#]],
    );
    check(
        &["check", "tests/command/tiny.coh", "--max-depth", "3"],
        expect![[r#"
            exit code 3
            tiny alone: undecided: the limit on depth was reached after 7 states, 10 transitions, depth 3
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
        "#]],
    );
    let msi = shipped_protocol("msi.coh");
    let output = cohkit([
        "check",
        "--max-memory",
        "1MiB",
        "--system",
        "two_lines",
        "--json",
    ])
    .arg(msi)
    .output()
    .expect("the command starts");
    assert_eq!(output.status.code(), Some(3));
    let verdicts = without_run(&output);
    assert_eq!(verdicts[0]["outcome"], "undecided");
    assert_eq!(verdicts[0]["reason"], "max_memory");
    let undecided = verdicts[0]["properties"].as_array().expect("a JSON list");
    assert!(undecided
        .iter()
        .all(|property| property["status"] == "undecided"));
}

#[test]
fn independent_lines_are_noted_in_the_verdict() {
    check(
        &["check", "tests/command/tiny.coh", "--lines", "2"],
        expect![[r#"
            exit code 0
            tiny remotes_1_lines_2: verified: 2304 states (48 x 48, lines independent), 10368 transitions, depth 24
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
              note: never performed, as the specification has no row for it: store
            tiny: channels share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered
        "#]],
    );
    let output = cohkit(["check", "tests/command/tiny.coh", "--lines", "2", "--json"])
        .output()
        .expect("the command starts");
    let verdicts = without_run(&output);
    assert_eq!(verdicts[0]["components"], serde_json::json!([48, 48]));
}

#[test]
fn counts_of_one_use_the_singular() {
    check(
        &["check", "tests/command/tiny.coh", "--max-states", "1"],
        expect![[r#"
            exit code 3
            tiny alone: undecided: the limit on states was reached after 1 state, 2 transitions, depth 0
              note: assumes fairness: the home may resend a forward in a loop (in 1 of the home's transitions); the verdict holds if no message is overtaken forever
        "#]],
    );
}

#[test]
fn incomplete_requests_are_described() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // The directory does not acknowledge an eviction while another cache shares the line.
    let file = mutated_copy(
        folder.path(),
        &shipped_protocol("msi.coh"),
        "  S S_D   | PutS PutM ",
        "  S | PutS | sharers := sharers - { sender } | stay\n  \
           S | PutM | send PutAck, sharers := sharers - { sender } | stay\n  \
           S_D | PutS PutM ",
    );
    let output = cohkit(["check", "--remotes", "2"])
        .arg(&file)
        .output()
        .expect("the command starts");
    let verdict = text(&output.stdout);
    assert!(
        verdict.contains("violated: every request can still complete: "),
        "{verdict}"
    );
    let output = cohkit(["check", "--remotes", "2", "--json"])
        .arg(&file)
        .output()
        .expect("the command starts");
    assert_eq!(
        without_run(&output)[0]["counterexample"]["kind"],
        "quiescence"
    );
}

#[test]
fn uncheckable_systems_are_bad_input() {
    check(
        &["check", "tests/command/tiny.coh", "--system", "together"],
        expect![[r#"
            exit code 2
            --- stderr
            error: tests/command/tiny.coh: no system is named `together`
              help: the only system is `alone`
        "#]],
    );
    check(
        &["check", "tests/command/tiny.coh", "--remotes", "9"],
        expect![[r#"
            exit code 2
            --- stderr
            error: invalid value '9' for '--remotes <N>': it must be 1 to 8

            For more information, try '--help'.
        "#]],
    );
    check(
        &["check", "tests/command/tiny.coh", "--max-memory", "much"],
        expect![[r#"
            exit code 2
            --- stderr
            error: invalid value 'much' for '--max-memory <SIZE>': an amount of memory is a number with a unit: KiB, MiB, GiB, TiB, kB, MB, GB or TB

            For more information, try '--help'.
        "#]],
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = mutated_copy(
        folder.path(),
        &tiny(),
        "system alone { remotes 1; lines 1 }\n",
        "",
    );
    let output = cohkit(["check"])
        .arg(file)
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no system to check"));
}

#[test]
fn worst_outcome_of_a_batch_wins_and_all_files_are_checked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let violated = forgetful_msi(folder.path());
    let check_files = |files: &[&Path]| {
        let mut command = cohkit(["check", "--max-states", "300"]);
        let output = command.args(files).output().expect("the command starts");
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        (output.status.code(), out, err)
    };
    let (missing, tiny) = (
        Path::new("missing.coh"),
        Path::new("tests/command/tiny.coh"),
    );
    let (code, out, err) = check_files(&[missing, tiny, &violated]);
    assert!(err.contains("missing.coh: no such file"), "{err}");
    assert!(out.contains("tiny alone: verified"), "{out}");
    assert!(out.contains("msi two_lines: undecided"), "{out}");
    assert_eq!(code, Some(2));
    // The undecided system comes after the violated one, or before it.
    assert_eq!(check_files(&[tiny, &violated]).0, Some(1));
    let undecided = shipped_protocol("msi.coh");
    assert_eq!(check_files(&[&undecided, tiny]).0, Some(3));
    assert_eq!(check_files(&[&undecided, &violated]).0, Some(1));
    assert_eq!(check_files(&[&violated, &undecided]).0, Some(1));
}

#[test]
fn json_results_are_independent_of_threads() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = forgetful_msi(folder.path());
    let verdicts = |threads: &str| {
        let output = cohkit([
            "check",
            "tests/command/tiny.coh",
            "--json",
            "--threads",
            threads,
        ])
        .arg(&file)
        .output()
        .expect("the command starts");
        without_run(&output)
    };
    let single_threaded = verdicts("1");
    assert_eq!(single_threaded.to_string(), verdicts("2").to_string());
    assert_eq!(single_threaded.to_string(), verdicts("5").to_string());
    let summary: Vec<_> = single_threaded
        .as_array()
        .expect("a JSON list")
        .iter()
        .map(|verdict| {
            format!(
                "{} {} {}",
                verdict["system"], verdict["outcome"], verdict["states"]
            )
        })
        .collect();
    expect![[r#"
        "alone" "verified" 48
        "three_caches" "violated" 287
        "two_lines" "violated" 2421"#]]
    .assert_eq(&summary.join("\n"));
    let counterexample = &single_threaded[1]["counterexample"];
    assert_eq!(counterexample["name"], "single writer");
    let steps = &counterexample["sequences"][0]["steps"];
    assert!(!steps.as_array().expect("a JSON list").is_empty());
    assert_eq!(
        counterexample["trace"]["steps"].as_array().map(Vec::len),
        single_threaded[1]["depth"]
            .as_u64()
            .map(|depth| depth as usize)
    );
}

/// A store that sends its bytes and drops its copy is posted, whatever state it leaves.
#[test]
fn posted_store_may_leave_a_state_with_a_copy() {
    let file = verdict_folder().join("posted_from_copy.coh");
    let output = cohkit(["check"])
        .arg(&file)
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("two: verified"));
}

/// Folder of regression tests for wrong verdicts of earlier versions: several protocols with faults, and one without.
fn verdict_folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/verdicts")
}
