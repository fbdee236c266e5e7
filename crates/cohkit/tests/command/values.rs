//! Values of variables and fields have the same text in the charts, JSON, traces and timelines of all engines.

use crate::{cohkit, text};
use serde_json::Value;
use std::fs;

/// Protocol whose variables and fields have every type, and whose counterexample shows all of them.
const EVERY_TYPE_FILE: &str = "../../tests/values/every-type.coh";
/// State of the home with a value of each type, as all engines must print it.
const STATE: &str = "X owner=cache 0 sharers={cache 0} first=true copies=1 turn=1 number=7 room[cache 0]=2 slots[1]=3 stores[cache 0][1]=1 served=1 told[directory 0]=2 where={directory 0}";
/// Messages with values of each type, as all engines must print them.
const MESSAGES: [&str; 2] = [
    "Data(whom=cache 0, all={cache 0}, first=true, copies=1)",
    "Numbers(turn=1, at=directory 0, number=7)",
];

/// Output of a command that finds a violation.
fn violation_output(arguments: &[&str]) -> String {
    let output = cohkit(arguments).output().expect("the command starts");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Arguments of a simulation of a protocol on two caches and two homes.
fn simulate_arguments<'a>(file: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    let machine = [
        "sim",
        "hosts-8x8",
        "sequential-read",
        "--set",
        "remotes=2",
        "--set",
        "home.count=2",
        "--set",
        "cores.write_buffer=0B",
        "--outstanding",
        "1",
        "--cores",
        "1",
        "--accesses",
        "1",
        "--region",
        "128B",
        "--protocol",
        file,
    ];
    [&machine, options].concat()
}

#[test]
fn value_types_print_alike_in_all_charts() {
    let charts = [
        vec!["check", EVERY_TYPE_FILE],
        simulate_arguments(EVERY_TYPE_FILE, &[]),
    ];
    for chart in charts.iter().map(|arguments| violation_output(arguments)) {
        for words in MESSAGES.into_iter().chain([STATE]) {
            assert!(chart.contains(words), "{words} is not in\n{chart}");
        }
    }
    for arguments in [
        vec!["check", EVERY_TYPE_FILE, "--json"],
        simulate_arguments(EVERY_TYPE_FILE, &["--json"]),
    ] {
        let value: Value =
            serde_json::from_str(&violation_output(&arguments)).expect("the text is JSON");
        let json = value.to_string();
        for words in MESSAGES.into_iter().chain([STATE]) {
            assert!(json.contains(words), "{words} is not in\n{json}");
        }
    }
}

/// Traces and timelines need a run that reaches its end, so here the cache accepts the answer.
#[test]
fn value_types_print_alike_in_traces_and_timelines() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (file, trace, timeline) = (path("right.coh"), path("trace.json"), path("run.pftrace"));
    let protocol =
        fs::read_to_string("../../tests/values/every-type.coh").expect("the file can be read");
    let accepting_protocol = protocol.replace("R | Data if first | unreachable", "S | evict | | I");
    assert_ne!(protocol, accepting_protocol);
    fs::write(&file, accepting_protocol).expect("the file can be written");
    let options = [
        "--trace",
        &trace,
        "--timeline",
        &timeline,
        "--timeline-line",
        "0",
    ];
    let output = cohkit(simulate_arguments(&file, &options)).output();
    let output = output.expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let trace_text = fs::read_to_string(&trace).expect("a trace");
    for words in MESSAGES.into_iter().chain([STATE]) {
        assert!(
            trace_text.contains(words),
            "{words} is not in\n{trace_text}"
        );
    }
    let timeline_text = fs::read(&timeline).expect("a timeline");
    let timeline_text = String::from_utf8_lossy(&timeline_text);
    assert!(
        timeline_text.contains(STATE),
        "{STATE} is not in the timeline"
    );
    // The tables alone, read independently, agree.
    let trace_check = cohkit(["trace", "--protocol", &file, &trace])
        .output()
        .expect("the command starts");
    assert!(
        trace_check.status.success(),
        "{}",
        text(&trace_check.stderr)
    );
}

/// Regression: simulations named the wrong cache, `M owner=1` for cache 0.
#[test]
fn simulation_and_check_name_the_same_owner() {
    let file = "../../tests/values/owner-off-by-one.coh";
    let check_output = violation_output(&["check", file]);
    assert!(check_output.contains("[M owner=cache 1]"), "{check_output}");
    let arguments = ["sim", "hosts-8x8", "random-mixed", "--accesses", "2000"];
    let simulation_output = violation_output(&[&arguments[..], &["--protocol", file]].concat());
    assert!(
        simulation_output.contains("cache 1 may read and write while cache 5 may read"),
        "{simulation_output}"
    );
    assert!(
        simulation_output.contains("[M owner=cache 1]"),
        "{simulation_output}"
    );
}
