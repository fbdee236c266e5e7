//! Tests of `cohkit trace`.

use crate::{cohkit, text};
use serde_json::Value;
use std::path::Path;

/// Exit code, standard output and standard error.
fn trace(file: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = cohkit(["trace"]);
    let output = command
        .arg(file)
        .args(arguments)
        .output()
        .expect("the command starts");
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Option for the protocol of the traces.
const MSI: [&str; 2] = ["--protocol", "../../protocols/msi.coh"];

const CORD: [&str; 2] = ["--protocol", "../../ordering/cord.coh"];

/// Writes the trace of a simulation of two homes, with this number of accesses to a region of this size.
fn write_trace_of_two_homes(file: &Path, accesses: &str, region: &str) {
    let mut run = cohkit(["sim", "hosts-8x8", "random-mixed", "--accesses", accesses]);
    run.args(["--region", region, "--outstanding", "1", "--prefetch", "0"])
        .args(["--set", "home.count=2", "--set", "cores.write_buffer=0B"])
        .args(CORD)
        .arg("--trace")
        .arg(file);
    let output = run.output().expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn counterexamples_are_judged_and_invalid_traces_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.json");
    let write = |text: &str| std::fs::write(&file, text).expect("the file can be written");
    for (contents, expected) in [
        ("no JSON", "expected"),
        ("[]", "it contains no trace"),
        (r#"{"agents": ["a"], "steps": 3}"#, "a trace cannot be read"),
        (r#"{"agents": ["a"], "steps": []}"#, "no caching agents"),
    ] {
        write(contents);
        let (code, _, errors) = trace(&file, &MSI);
        assert_eq!(code, Some(2), "{errors}");
        assert!(
            errors.contains(expected) && errors.contains("help"),
            "{errors}"
        );
    }

    // Unknown agents and receivers in a trace are no reason to abort.
    write(
        r#"{"agents": ["cache 0", "cache 1", "directory"], "ends_quiescent": true, "steps": [
            {"agent": 0, "visible": false, "action": {"kind": "does", "what": "load"}},
            {"agent": 0, "visible": false, "action": {"kind": "send", "message": "GetS", "to": 99, "flight": 0}},
            {"agent": 98, "visible": false, "action": {"kind": "becomes", "state": "M"}}]}"#,
    );
    let (code, stdout, errors) = trace(&file, &MSI);
    assert_eq!(code, Some(1), "{errors}");
    assert!(stdout.contains("rejected at step 2 of 3"), "{stdout}");
    let (code, stdout, _) = trace(&file, &[&MSI[..], &["--json"]].concat());
    let entries: Value = serde_json::from_str(&stdout).expect("the text is JSON");
    assert_eq!(code, Some(1));
    assert_eq!(entries[0]["outcome"], "rejected");
    assert_eq!(entries[0]["step"], 2);
}

#[test]
fn trace_with_another_number_of_homes_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.json");
    write_trace_of_two_homes(&file, "20", "8KiB");
    for (homes, expected) in [
        ("2", Ok("trace 1: accepted: ")),
        ("1", Err("1 home")),
        ("3", Err("3 homes")),
    ] {
        let size = format!("homes={homes}");
        let (code, stdout, _) = trace(&file, &[&CORD[..], &["--protocol-param", &size]].concat());
        match expected {
            Ok(start) => assert!(code == Some(0) && stdout.starts_with(start), "{stdout}"),
            Err(homes_text) => {
                let reason = format!("cord has {homes_text}, but the trace has 2\n");
                assert!(code == Some(1) && stdout.contains(&reason), "{stdout}");
            }
        }
    }
}

/// Flight numbers identify messages in flight. A trace may use a number again once its message has been received.
#[test]
fn received_flight_numbers_may_be_used_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.json");
    write_trace_of_two_homes(&file, "200", "512B");
    let contents = std::fs::read(&file).expect("the trace was written");
    let mut traces: Value = serde_json::from_slice(&contents).expect("the text is JSON");
    let mut reused = 0;
    let single = [&mut traces];
    let all = single.into_iter().flat_map(|traces| match traces {
        Value::Array(list) => list.iter_mut().collect(),
        trace => vec![trace],
    });
    for trace in all {
        // The smallest free number for each message that is sent, by its original number.
        let mut numbers = std::collections::BTreeMap::new();
        for step in trace["steps"].as_array_mut().expect("a list of steps") {
            let action = &mut step["action"];
            let Some(original) = action["flight"].as_u64() else {
                continue;
            };
            let number = match action["kind"] == "send" {
                true => {
                    let free = (0u64..).find(|number| !numbers.values().any(|n| n == number));
                    let free = free.expect("a free number");
                    reused += u32::from(free < original);
                    numbers.insert(original, free);
                    free
                }
                false => numbers.remove(&original).expect("a message in flight"),
            };
            action["flight"] = number.into();
        }
    }
    assert!(reused > 100, "{reused}");
    std::fs::write(&file, traces.to_string()).expect("the file can be written");
    let size = ["--protocol-param", "homes=2"];
    let (code, stdout, errors) = trace(&file, &[&CORD[..], &size].concat());
    assert_eq!(code, Some(0), "{stdout}{errors}");
}
