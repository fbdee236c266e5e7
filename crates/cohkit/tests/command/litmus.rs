//! Tests of `cohkit litmus`.

use crate::{cohkit, text};
use serde_json::Value;

/// Exit code, standard output and standard error.
fn litmus(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = cohkit(["litmus"])
        .args(arguments)
        .output()
        .expect("the command starts");
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn condition_of_the_file_determines_the_exit_code() {
    let sb = "../../litmus/SB.litmus";
    let fenced = "../../litmus/SB+dmbs.litmus";
    let mesi = ["--protocol", "../../protocols/mesi.coh"];
    assert_eq!(litmus(&[sb]).0, Some(1));
    assert_eq!(litmus(&[sb, "--cores", "store-buffer"]).0, Some(0));
    assert_eq!(litmus(&[fenced, "--cores", "store-buffer"]).0, Some(0));
    let (code, stdout, _) = litmus(&[&[sb, "--cores", "store-buffer"][..], &mesi].concat());
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("exactly the outcomes of total store order"),
        "{stdout}"
    );
    let limited = [&[sb, "--max-states", "100"][..], &mesi].concat();
    let (code, stdout, _) = litmus(&limited);
    assert_eq!(code, Some(3), "{stdout}");
    assert!(
        stdout.contains("raise it with `--max-states N`"),
        "{stdout}"
    );
}

#[test]
fn shapes_are_run_by_their_names_and_printed() {
    assert_eq!(litmus(&["SB"]).0, Some(1));
    assert_eq!(litmus(&["SB", "--cores", "store-buffer"]).0, Some(0));
    let (code, stdout, _) = litmus(&["MP+po+dmb.sy", "--model", "rc"]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("under release consistency: Sometimes, 1 of 4"),
        "{stdout}"
    );
    let (code, stdout, _) = litmus(&["MP+poll+poaa", "--model", "rc"]);
    assert_eq!(code, Some(1), "{stdout}");
    // A stronger protocol shows a subset of the outcomes.
    let mesi = [
        "SB",
        "--model",
        "rc",
        "--protocol",
        "../../protocols/mesi.coh",
    ];
    let (code, stdout, _) = litmus(&mesi);
    assert_eq!(code, Some(1), "{stdout}");
    assert!(
        stdout.contains("3 of the 4 outcomes of release consistency, and no other"),
        "{stdout}"
    );

    let (code, printed, _) = litmus(&["WRC+data+dmb.sy", "--print"]);
    assert_eq!(code, Some(0));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("printed.litmus");
    std::fs::write(&file, &printed).expect("the file can be written");
    let reprinted = litmus(&[file.to_str().expect("a path"), "--print"]);
    assert!(printed.contains("EOR"), "{printed}");
    assert_eq!(reprinted.0, Some(0));
    let (code, all_shapes, _) = litmus(&["--shapes", "--print"]);
    assert_eq!(code, Some(0));
    assert!(all_shapes.matches("AArch64 ").count() >= 200);
    let (code, _, stderr) = litmus(&["SB+dmb.syz"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("no such file or classic shape"), "{stderr}");
    assert!(stderr.contains("did you mean `SB+dmb.sys`?"), "{stderr}");
}

/// Threads run on the L1s of clusters: exactly the outcomes that their cores allow are observed.
#[test]
fn two_levels_show_the_allowed_outcomes_of_their_cores() {
    let arguments = ["SB", "--protocol", "../../protocols/two-level.coh"];
    let simulate =
        |extra: &[&str]| litmus(&[&arguments, &["--simulation-runs", "200"][..], extra].concat());
    let (code, stdout, _) = simulate(&[]);
    assert_eq!(code, Some(3), "{stdout}");
    assert!(
        stdout.contains("exactly the outcomes of sequential consistency"),
        "{stdout}"
    );
    let (code, stdout, _) = simulate(&["--cores", "store-buffer"]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("exactly the outcomes of total store order"),
        "{stdout}"
    );
    assert!(
        stdout.contains("--protocol ../../protocols/two-level.coh"),
        "{stdout}"
    );
    let (code, stdout, _) = litmus(&[&arguments[..], &["--cores", "store-buffer"]].concat());
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("exactly the outcomes of total store order"),
        "{stdout}"
    );
}

/// Threads in clusters of different protocols have the cores and the memory model of their own cluster.
#[test]
fn threads_run_in_clusters_of_different_protocols() {
    let arguments = ["MP", "--protocol", "../../protocols/clusters.coh"];
    let run = |extra: &[&str]| litmus(&[&arguments[..], extra].concat());
    let (code, stdout, _) = run(&["--max-spontaneous-evictions", "0", "--json"]);
    assert_eq!(code, Some(1), "{stdout}");
    let entries: Value = serde_json::from_str(&stdout).expect("the text is JSON");
    let keys = ["kinds", "cores", "model", "observation"];
    let rows = entries.as_array().expect("a list").iter();
    let rows: Vec<Value> = rows
        .map(|entry| keys.iter().map(|key| entry[*key].clone()).collect())
        .collect();
    let expected = serde_json::json!([
        [["cpu", "cpu"], "in_order", "sc", "never"],
        [["cpu", "gpu"], "of_each_cluster", "compound", "sometimes"],
        [["gpu", "cpu"], "of_each_cluster", "compound", "sometimes"],
        [["gpu", "gpu"], "relaxed", "rc", "sometimes"],
    ]);
    assert_eq!(Value::from(rows), expected);
    let (code, _, stderr) = run(&["--kinds", "cpu,gpus"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("did you mean `gpu`"), "{stderr}");
    for extra in [["--simulation-runs", "10"], ["--store-variants", "all"]] {
        let (code, stdout, stderr) = run(&extra);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    }
}

/// An observed outcome decides, and a command that reproduces it is printed; an outcome that was not observed decides
/// nothing.
#[test]
fn simulated_runs_never_verify() {
    let simulator_options = [
        "--protocol",
        "../../protocols/mesi.coh",
        "--simulation-runs",
        "200",
    ];
    let simulate = |extra: &[&str]| litmus(&[extra, &simulator_options[..]].concat());
    let (code, stdout, _) = simulate(&["SB"]);
    assert_eq!(code, Some(3), "{stdout}");
    assert!(
        stdout.contains("undecided: 0 of 3 outcomes satisfy"),
        "{stdout}"
    );
    let (code, stdout, _) = simulate(&["SB", "--cores", "store-buffer"]);
    assert_eq!(code, Some(0), "{stdout}");
    let fenced = "../../litmus/SB+dmbs.litmus";
    assert_eq!(simulate(&[fenced, "--cores", "store-buffer"]).0, Some(3));

    // Without its full fences the test fails, and the printed command reproduces the failure.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("SB.litmus");
    let text = std::fs::read_to_string(fenced).expect("the file can be read");
    std::fs::write(&file, text.replace("DMB SY", "DMB ST")).expect("the file can be written");
    let path = file.to_str().expect("a path");
    let (code, stdout, _) = simulate(&[path, "--cores", "store-buffer", "--seed", "1000"]);
    assert_eq!(code, Some(1), "{stdout}");
    let reproduce_arguments = stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("again: cohkit litmus "));
    let reproduce_arguments: Vec<&str> = reproduce_arguments
        .expect("a reproduction command")
        .split(' ')
        .collect();
    let (code, stdout, stderr) = litmus(&reproduce_arguments);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(
        stdout.contains("Always, 1 of 1 outcome: `~exists` does not hold, in 1 run"),
        "{stdout}"
    );

    let (code, stdout, _) = simulate(&["MP", "--json", "--seed", "7"]);
    assert_eq!(code, Some(3));
    let entries: Value = serde_json::from_str(&stdout).expect("the text is JSON");
    assert_eq!(
        (&entries[0]["runs"], &entries[0]["seed"]),
        (&200.into(), &7.into())
    );
    assert_eq!(
        (&entries[0]["outcome"], &entries[0]["reason"]),
        (&"undecided".into(), &"not_seen".into())
    );
    let outcomes = entries[0]["outcomes"].as_array().expect("a JSON list");
    assert_eq!(
        outcomes
            .iter()
            .filter_map(|outcome| outcome["count"].as_u64())
            .sum::<u64>(),
        200
    );
    let (code, _, stderr) = litmus(&["SB", "--simulation-runs", "3"]);
    assert_eq!(code, Some(2), "{stderr}");
    let run_on = |text: &str| {
        let text = format!("../../protocols/{text}.coh");
        litmus(&["SB", "--simulation-runs", "1", "--protocol", &text])
    };
    // A protocol whose home performs the stores runs, too.
    let (code, stdout, stderr) = run_on("write-through");
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    let (code, _, stderr) = run_on("eci-both");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("does not compose two levels"), "{stderr}");
}

#[test]
fn litmus_json_lists_allowed_and_observed_outcomes() {
    let (code, stdout, _) = litmus(&[
        "../../litmus/MP.litmus",
        "--protocol",
        "../../protocols/msi.coh",
        "--json",
    ]);
    assert_eq!(code, Some(0));
    let entries: Value = serde_json::from_str(&stdout).expect("the text is JSON");
    let test = &entries[0];
    assert_eq!(
        (&test["outcome"], &test["observation"]),
        (&"satisfied".into(), &"never".into())
    );
    assert_eq!(test["outcomes"].as_array().map(Vec::len), Some(3));
    assert_eq!(test["allowed"], 3);
    assert_eq!(test["outcomes"][0]["values"]["1:X0"], 0);
    assert!(test["outcomes"]
        .as_array()
        .is_some_and(|outcomes| outcomes.iter().all(|outcome| outcome["allowed"] == true)));
}

#[test]
fn input_errors_name_their_position() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wrong.litmus");
    std::fs::write(&file, "AArch64 wrong\n{ 0:X1=x; }\n P0 ;\n LDX W0,[X1] ;\n")
        .expect("the file can be written");
    let (code, _, stderr) = litmus(&[file.to_str().expect("a path")]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("`LDX` is not a supported instruction"),
        "{stderr}"
    );
    assert!(stderr.contains("wrong.litmus:4:2"), "{stderr}");
    let (code, _, stderr) = litmus(&["none.litmus"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("none.litmus: no such file"), "{stderr}");
}

/// A cache keeps its copy where it should lose it: the protocol is reported as violated, whatever the test's condition
/// is.
#[test]
fn litmus_reports_protocol_violations() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string("../../protocols/msi.coh").expect("the file can be read");
    let row = text
        .lines()
        .find(|line| line.trim_start().starts_with("S ") && line.contains("| Inv "))
        .expect("a row");
    let mutated_row = match row.rfind('|') {
        Some(offset) => format!("{}| stay", &row[..offset]),
        None => panic!("{row}"),
    };
    let file = folder.path().join("kept.coh");
    std::fs::write(&file, text.replace(row, &mutated_row)).expect("the file can be written");
    let path = file.to_str().expect("a path");
    let (code, stdout, stderr) = litmus(&["../../litmus/SB.litmus", "--protocol", path]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("violated: "), "{stdout}");
}

/// Regression: an invalid test discarded the results of all tests before it, and the tests after it were not run.
#[test]
fn invalid_test_does_not_stop_other_tests() {
    let folder = tempfile::tempdir().expect("a folder");
    let invalid = folder.path().join("wrong.litmus");
    std::fs::write(&invalid, "").expect("the file can be written");
    let (mp, sb) = ("../../litmus/MP.litmus", "../../litmus/SB.litmus");
    let (code, stdout, stderr) =
        litmus(&[mp, invalid.to_str().expect("a path"), "none.litmus", sb]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stdout.contains("MP on sequentially consistent memory"),
        "{stdout}"
    );
    assert!(
        stdout.contains("SB on sequentially consistent memory"),
        "{stdout}"
    );
    assert!(stderr.contains("wrong.litmus:1:1"), "{stderr}");
    assert!(stderr.contains("none.litmus: no such file"), "{stderr}");
}

/// Regression: of two increments from 0 to 2, both were reported to read 0. A home that performs the stores of caches
/// does not return the previous value.
#[test]
fn home_performed_atomics_without_a_result_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("INC.litmus");
    let increment = " MOV W0,#1 | MOV W0,#1 ;\n LDADDAL W0,W2,[X1] | LDADDAL W0,W2,[X1] ;\n";
    let text = format!("AArch64 INC\n{{ 0:X1=x; 1:X1=x; }}\n P0 | P1 ;\n{increment}forall (x=2)\n");
    std::fs::write(&file, text).expect("the file can be written");
    let run_on = |protocol: &str| {
        let file = file.to_str().expect("a path");
        litmus(&[
            file,
            "--protocol",
            &format!("../../protocols/{protocol}.coh"),
        ])
    };
    let (code, stdout, stderr) = run_on("write-through");
    assert_eq!(code, Some(2), "{stdout}");
    assert!(
        stderr.contains("cannot run INC: the home of write_through"),
        "{stderr}"
    );
    let (code, stdout, _) = run_on("mesi");
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains("exactly the outcomes"), "{stdout}");
}

#[test]
fn chart_shows_the_shortest_path_to_the_deciding_outcome() {
    let mp = "../../ordering/mp.coh";
    let (code, stdout, _) = litmus(&["MP+popl+poap", "--protocol", mp, "--chart", "--json"]);
    assert_eq!(code, Some(1));
    let entries: Value = serde_json::from_str(&stdout).expect("the text is JSON");
    assert_eq!(entries[0]["outcome"], "violated");
    assert_eq!(entries[0]["reason"], "guarantee: release consistency");
    let steps = entries[0]["sequence"]["steps"].as_array().expect("steps");
    let last = steps
        .iter()
        .rfind(|step| step["agent"] == 1 && step["action"]["what"].is_string());
    assert_eq!(last.expect("P1 acts")["action"]["what"], "finds x = 0");
    assert_eq!(entries[0]["steps"], 14);
    // No outcome decides: none is forbidden, and none satisfies the condition.
    let (code, stdout, _) = litmus(&["CoWW", "--protocol", mp, "--chart", "--json"]);
    assert_eq!(code, Some(1));
    let entries: Value = serde_json::from_str(&stdout).expect("the text is JSON");
    assert_eq!(entries[0].get("sequence"), None);
    let two_levels = "../../protocols/two-level.coh";
    let (code, _, stderr) = litmus(&["SB", "--protocol", two_levels, "--chart"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("but the specification has two"), "{stderr}");
}

#[test]
fn unreadable_test_does_not_stop_other_tests() {
    let files = [
        "../../litmus/refused/loop.litmus",
        "../../litmus/MP.litmus",
        "../../litmus/refused/pair.litmus",
    ];
    let (code, stdout, stderr) = litmus(&files);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stdout.starts_with("MP on sequentially consistent memory")
            && stdout.matches("on sequentially consistent memory").count() == 1,
        "{stdout}"
    );
    assert!(
        stderr.contains("loop.litmus:7:24") && stderr.contains("pair.litmus:5:2"),
        "{stderr}"
    );
    assert!(
        stderr.contains("2 of 3 tests are undecided: they could not be read"),
        "{stderr}"
    );
}

/// Each write is tested with every store variant of the protocol.
#[test]
fn store_mixes_are_separate_tests() {
    let cord = ["--protocol", "../../ordering/cord.coh"];
    let (code, stdout, _) =
        litmus(&[&["MP+popl+poap", "--store-variants", "all"][..], &cord].concat());
    assert_eq!(code, Some(1));
    assert_eq!(
        stdout
            .matches("exactly the outcomes of release consistency")
            .count(),
        9,
        "{stdout}"
    );
    assert!(stdout.contains("MP+popl+poap ba on cord"), "{stdout}");
    let (code, _, stderr) =
        litmus(&[&["MP+popl+poap", "--store-variants", "t"][..], &cord].concat());
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("--store-variants: `t` has 1 letter,"),
        "{stderr}"
    );
    // `every` is the former spelling of `all`.
    let runs = [
        "MP+popl+poap",
        "--store-variants",
        "every",
        "--simulation-runs",
        "4",
    ];
    let (code, stdout, stderr) = litmus(&[&runs[..], &cord].concat());
    assert_eq!(code, Some(3), "{stderr}");
    assert_eq!(stdout.matches("undecided: 0 of ").count(), 9, "{stdout}");
}

/// The printed command reproduces the run with the same mix.
#[test]
fn reproduce_command_repeats_the_deciding_mix() {
    let runs = ["MP", "--store-variants", "tb", "--simulation-runs", "200"];
    let (code, stdout, _) =
        litmus(&[&runs[..], &["--protocol", "../../ordering/cord.coh"]].concat());
    assert_eq!(code, Some(0), "{stdout}");
    let (_, reproduce_arguments) = stdout
        .split_once("again: cohkit litmus ")
        .expect("a reproduction command");
    let reproduce_arguments: Vec<&str> = reproduce_arguments.split_whitespace().collect();
    assert_eq!(reproduce_arguments[0], "MP");
    assert!(reproduce_arguments
        .windows(2)
        .any(|pair| pair == ["--store-variants", "tb"]));
    let (code, stdout, stderr) = litmus(&reproduce_arguments);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stdout.starts_with("MP tb on cord in the simulator"),
        "{stdout}"
    );
}

/// Regression: a protocol whose acquires leave dirty lines of releases in place. `check` returned 1, `litmus` returned
/// 0.
#[test]
fn forbidden_outcome_exits_with_1_and_a_chart() {
    let clflush = "tests/command/clflush.coh";
    let (code, stdout, stderr) = litmus(&["MP+popl+poap", "--protocol", clflush]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(
        stdout.contains(": violated: Sometimes, 1 of 4 outcomes"),
        "{stdout}"
    );
    assert!(
        stdout.contains("1:X0=1; 1:X2=0 (forbidden by release consistency)"),
        "{stdout}"
    );
    assert!(
        stdout.contains("  the shortest path there has "),
        "{stdout}"
    );
    // Cores or a model chosen by the user make it a comparison.
    let (code, stdout, _) = litmus(&["MP+popl+poap", "--protocol", clflush, "--model", "sc"]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("forbidden by sequential consistency"),
        "{stdout}"
    );
    let runs = [
        "MP+popl+poap",
        "--protocol",
        clflush,
        "--simulation-runs",
        "200",
    ];
    assert_eq!(litmus(&runs).0, Some(1));
}

/// Regression: "none of 0 ends" returned exit code 0.
#[test]
fn endless_threads_are_a_violation_with_a_chart() {
    let verdicts = "../litmus/tests/litmus/counting_faults/verdicts";
    for file in ["p01_slot_kept.coh", "m02_partial_livelock.coh"] {
        let path = format!("{verdicts}/{file}");
        let (code, stdout, stderr) = litmus(&["SB", "--protocol", &path]);
        assert_eq!(code, Some(1), "{file}: {stdout}{stderr}");
        assert!(
            stdout.contains("violated: livelock: no outcome is reachable from a reachable state"),
            "{stdout}"
        );
        assert!(
            stdout.contains("  the shortest path there has "),
            "{stdout}"
        );
    }
}

/// Regression: states that differ in a location outside the condition were printed and counted as separate outcomes.
#[test]
fn outcomes_differ_only_in_observed_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let stdout_with = |condition: &str| {
        let file = folder.path().join("seen.litmus");
        let text = format!(
            "AArch64 seen\n{{ 0:X1=x; 0:X3=y; 1:X1=x; 1:X3=y; }}\n P0 | P1 ;\n MOV W0,#1 | MOV W0,#2 ;\n \
             STR W0,[X1] | STR W0,[X1] ;\n LDR W2,[X3] | STR W0,[X3] ;\n{condition}\n"
        );
        std::fs::write(&file, text).expect("the file can be written");
        let (code, stdout, stderr) = litmus(&[file.to_str().expect("a path")]);
        assert!(stderr.is_empty(), "{stderr}");
        (code, stdout)
    };
    let (code, one_outcome) = stdout_with("exists (0:X2=2)");
    assert_eq!(code, Some(0));
    assert!(
        one_outcome
            .contains("Sometimes, 1 of 2 outcomes: `exists` holds\n    0:X2=0\n  * 0:X2=2\n"),
        "{one_outcome}"
    );
    let (_, with_locations) = stdout_with("locations [x; 0:X2;]\nexists (0:X2=2)");
    assert!(
        with_locations.contains("Sometimes, 2 of 4 outcomes"),
        "{with_locations}"
    );
    let (_, all_outcomes) = stdout_with("");
    assert!(
        all_outcomes.contains("4 outcomes, no condition"),
        "{all_outcomes}"
    );
}

#[test]
fn exit_code_follows_the_expectation_of_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let sb = std::fs::read_to_string("../../litmus/SB.litmus").expect("the file can be read");
    let file = folder.path().join("SB.litmus");
    let path = file.to_str().expect("a path");
    let code = |expected: &str, more: &[&str]| {
        let line = format!("{{\n(* {expected} *)\n");
        std::fs::write(&file, sb.replacen("{\n", &line, 1)).expect("the file can be written");
        litmus(&[&[path, "--expect", "file"][..], more].concat()).0
    };
    let mesi = ["--protocol", "../../protocols/mesi.coh"];
    let buffered = [&mesi[..], &["--cores", "store-buffer"]].concat();
    for (expected, on_mesi, on_buffered_mesi, on_model) in [
        ("", 0, 0, 1),
        ("Result: Never", 0, 1, 0),
        ("Result: Sometimes", 0, 0, 1),
        ("Expected: Always", 1, 1, 1),
    ] {
        let codes = (
            code(expected, &mesi),
            code(expected, &buffered),
            code(expected, &[]),
        );
        let expected_codes = (Some(on_mesi), Some(on_buffered_mesi), Some(on_model));
        assert_eq!(codes, expected_codes, "{expected}");
    }
    // A classic shape has no expectation of its own, and the outcome of `~exists` must never be observed.
    assert_eq!(
        litmus(&[&["SB", "--expect", "file"][..], &mesi].concat()).0,
        Some(0)
    );
    let mp = ["../../litmus/MP.litmus", "--expect", "file"];
    assert_eq!(litmus(&[&mp[..], &mesi].concat()).0, Some(0));
}

/// Hardware runs threads on one level of caches of the files that it can be printed of; everything else is rejected before
/// a build.
#[test]
fn tests_that_hardware_cannot_run_are_rejected() {
    for (arguments, message) in [
        (
            &["SB", "--protocol", "../../protocols/two-level.coh"][..],
            "hardware has one level of caches, but the specification has two",
        ),
        (
            &["SB", "--protocol", "token"],
            "no system: `FwdData` may bring a line that the cache has not requested",
        ),
        (&["SB"], "--protocol <FILE>"),
        (
            &["SB", "--protocol", "msi", "--simulation-runs", "1"],
            "cannot be used with",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = folder.path().to_str().expect("a path of characters");
        let options = ["--rtl-runs", "1", "--build-cache", cache];
        let (code, stdout, stderr) = litmus(&[arguments, &options].concat());
        assert_eq!(code, Some(2), "{stdout}");
        assert!(stderr.contains(message), "{stderr}");
    }
}
