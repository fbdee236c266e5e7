//! Verdicts on transactions that never end: `cohkit check --fairness`.

use super::shipped_protocol;
use crate::{cohkit, text};
use serde_json::Value;

/// Exit code, output and errors of a check with these arguments.
fn check(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = cohkit(["check"]).args(arguments).output();
    let output = output.expect("the command starts");
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn kinds_of_fairness_are_told_apart() {
    let (code, out, _) = check(&["ccix", "--remotes", "2", "--fairness", "strong"]);
    assert_eq!(code, Some(0), "{out}");
    let verified =
        "ccix remotes_2_lines_1 fairness: verified: every transaction ends under strong fairness: ";
    assert!(out.contains(verified), "{out}");
    let (code, out, _) = check(&["ccix", "--remotes", "2", "--fairness", "weak", "--json"]);
    assert_eq!(code, Some(1), "{out}");
    let entries: Value = serde_json::from_str(&out).expect("the output is JSON");
    let entry = entries
        .as_array()
        .expect("a list")
        .last()
        .expect("an entry");
    assert_eq!(entry["outcome"], "violated");
    assert_eq!(entry["fairness"], "weak");
    assert_eq!(entry["properties"][0]["kind"], "no_starvation");
    let found = &entry["counterexample"];
    let steps = found["steps"].as_array().expect("a list").len() as u64;
    let repeats_from = found["repeats_from"].as_u64().expect("a position");
    assert!(repeats_from < steps, "{found}");
    let message = found["message"].as_str().expect("a text");
    assert!(
        message.starts_with("starvation: the transaction of "),
        "{message}"
    );
}

#[test]
fn limits_make_the_verdict_undecided() {
    let (code, out, _) = check(&[
        "msi",
        "--remotes",
        "2",
        "--fairness",
        "strong",
        "--max-states",
        "450",
    ]);
    assert_eq!(code, Some(3), "{out}");
    let expected =
        "msi remotes_2_lines_1 fairness: undecided: the limit on states was reached after ";
    assert!(out.contains(expected), "{out}");
}

#[test]
fn models_and_compositions_have_no_fairness() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/murphi/counter.m");
    let composition = shipped_protocol("two-level.coh").display().to_string();
    for file in [model, composition.as_str()] {
        let (code, _, err) = check(&[file, "--fairness", "weak"]);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("`--fairness`"), "{err}");
    }
}
