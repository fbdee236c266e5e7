//! Guarantees of a memory model, judged by litmus programs.

use super::{shipped_protocol, verdict_folder};
use crate::{cohkit, text};
use std::fs;

/// A violation found by programs wins over a system that exceeds the capacity of a channel. A placement of threads that
/// violates a property wins over one without a row for an access.
#[test]
fn violation_outranks_an_undecided_verdict() {
    let run_on = |arguments: &[&str], file: &str| {
        let mut command = cohkit(arguments);
        let output = command
            .arg(verdict_folder().join(file))
            .output()
            .expect("the command starts");
        (output.status.code(), text(&output.stdout))
    };
    let (code, out) = run_on(&["check"], "update_not_acknowledged.coh");
    assert!(out.contains("two: undecided"), "{out}");
    assert!(out.contains("programs: violated"), "{out}");
    assert_eq!(code, Some(1));
    let file = "device_not_invalidated.coh";
    let (code, out) = run_on(&["litmus", "SB", "--protocol"], file);
    assert!(
        out.contains("(cpu, cpu), cores in order: violated"),
        "{out}"
    );
    assert!(out.contains("undecided"), "{out}");
    assert_eq!(code, Some(1));
}

#[test]
fn guarantees_are_judged_by_litmus_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let text =
        fs::read_to_string(shipped_protocol("write-through.coh")).expect("the file can be read");
    let check_with = |addition: &str, options: &[&str]| {
        let file = folder.path().join("guarantee.coh");
        fs::write(&file, format!("{text}{addition}\n")).expect("the file can be written");
        let arguments = ["check", file.to_str().expect("a path"), "--json"];
        let output = cohkit([&arguments, options].concat())
            .output()
            .expect("the command starts");
        let entries: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("JSON is printed");
        let last_entry = entries
            .as_array()
            .and_then(|entries| entries.last())
            .cloned();
        (output.status.code(), last_entry.expect("a verdict"))
    };
    let check_addition = |addition: &str| check_with(addition, &[]);
    // The limit also applies to each of the programs.
    let (code, verdict) = check_with("guarantee sc", &["--max-states", "100"]);
    assert_eq!(code, Some(3));
    let reason = verdict["reason"].as_str().expect("a JSON string");
    assert!(reason.ends_with(" has too many states"), "{reason}");
    for model in ["sc", "tso", "rc"] {
        let (code, verdict) = check_addition(&format!("guarantee {model}"));
        assert_eq!(code, Some(0), "{model}");
        assert_eq!(verdict["system"], "programs");
        assert_eq!(verdict["properties"][0]["status"], "holds");
        assert!(verdict["programs"]
            .as_u64()
            .is_some_and(|count| count > 150));
    }
    // Some program detects each missing order of release consistency, and each weaker order.
    let release_consistency = "acquire before all; release after all; fence after all, before all";
    for (orders, model, expected_code) in [
        (release_consistency, "rc", 0),
        (release_consistency, "tso", 1),
        ("release after all; fence after all, before all", "rc", 1),
        ("acquire before all; fence after all, before all", "rc", 1),
        ("acquire before all; release after all; fence before all", "rc", 1),
        ("acquire before all; release after all; fence after all", "rc", 1),
        ("store before all; load before all; fence before all; release before all; acquire before all", "sc", 0),
    ] {
        let (code, verdict) = check_addition(&format!("accesses {{ {orders} }}\nguarantee {model}"));
        assert_eq!(code, Some(expected_code), "{orders}: {model}: {verdict:#}");
        if expected_code == 1 {
            let counterexample = &verdict["counterexample"];
            let file = folder.path().join("guarantee.coh");
            let program = counterexample["program"].as_str().expect("a program");
            let litmus_arguments = ["litmus", program, "--protocol", file.to_str().expect("a path")];
            let litmus_output = cohkit(litmus_arguments).output().expect("the command starts");
            let litmus_output = String::from_utf8_lossy(&litmus_output.stdout).into_owned();
            assert!(litmus_output.contains("forbidden by"), "{orders}: {litmus_output}");
        }
    }
}
