//! Verdicts for every number of remotes: `cohkit check --any-number`.

use super::{mutated_copy, shipped_protocol};
use crate::{cohkit, text};
use serde_json::Value;
use std::process::Output;

/// Output of the command.
fn run(arguments: &[&str]) -> Output {
    cohkit(arguments).output().expect("the command starts")
}

/// Exit code of a check, and the line of its verdict for every number of remotes.
fn verdict(arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(arguments);
    let printed = text(&output.stdout);
    let mut lines = printed.lines();
    let line = lines.find(|line| line.contains(" any_number: "));
    (output.status.code(), line.unwrap_or_default().to_string())
}

#[test]
fn verified_protocol_has_a_second_verdict() {
    let arguments = ["check", "write-through", "--system", "three_caches"];
    let (code, line) = verdict(&[&arguments[..], &["--any-number"]].concat());
    assert_eq!(code, Some(0));
    let expected = "write_through any_number: verified for every number of remotes: one line, 102 views, 1192 pairs";
    assert_eq!(line, expected);
    let (code, line) = verdict(&arguments);
    assert_eq!((code, line.as_str()), (Some(0), ""));
}

/// A home written as a policy that acknowledges releases.
#[test]
fn policy_with_answered_victims_is_verified_for_every_number() {
    let file = format!(
        "{}/../protocol/tests/protocol/policies/tilelink.coh",
        env!("CARGO_MANIFEST_DIR")
    );
    let output = run(&["check", &file, "--remotes", "2", "--any-number"]);
    assert_eq!(output.status.code(), Some(0));
    let printed = text(&output.stdout);
    for expected in [
        "tilelink_policy remotes_2_lines_1: verified: 972 states up to symmetry, ",
        "tilelink_policy any_number: verified for every number of remotes: one line, 6911 views, ",
    ] {
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn undecided_verdict_names_its_obstacle_and_has_the_exit_code_3() {
    let file = shipped_protocol("msi.coh").display().to_string();
    let (code, line) = verdict(&["check", &file, "--remotes", "2", "--any-number"]);
    assert_eq!(code, Some(3));
    let reason = "the field `requestor` names remotes, which views of one remote do not determine";
    let expected =
        format!("msi any_number: undecided for every number of remotes: {file}:25:22: {reason}");
    assert_eq!(line, expected);
}

#[test]
fn violation_of_a_system_is_worse_than_an_undecided_verdict() {
    let folder = tempfile::tempdir().expect("a folder");
    // The caches keep a line on an invalidation.
    let file = mutated_copy(
        folder.path(),
        &shipped_protocol("write-through.coh"),
        "  V           | Inv                 | send InvAck    | I\n",
        "  V           | Inv                 | send InvAck    | V\n",
    );
    let file = file.display().to_string();
    let (code, line) = verdict(&["check", &file, "--remotes", "2", "--any-number"]);
    assert_eq!(code, Some(1));
    assert!(line.contains("undecided"), "{line}");
}

#[test]
fn json_has_one_further_entry() {
    let output = run(&["check", "msi", "--remotes", "2", "--any-number", "--json"]);
    let entries: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let entry = &entries[1];
    assert_eq!(entry["system"], "any_number");
    assert_eq!(entry["outcome"], "undecided");
    assert_eq!(entry["position"]["line"], 25);
    assert_eq!(entry["properties"][0]["kind"], "any_number");
    assert_eq!(entries[0]["outcome"], "verified");
}

#[test]
fn option_is_for_protocol_files() {
    let output = run(&["check", "../../models/anderson_lock.m", "--any-number"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("`--any-number` is for protocol files"));
}
