//! `cohkit rtl test`: seeds, shapes, covered rows and rejected options.

use super::{build_folder, interrupt};
use crate::require::require;
use crate::{check, cohkit, text};
use expect_test::expect;
use std::fs;

#[test]
fn lockstep_reports_comparison_counts() {
    if !require("verilator") {
        return;
    }
    let mut command = cohkit([
        "rtl",
        "test",
        "../../protocols/eci.coh",
        "--seeds",
        "3",
        "--messages",
        "500",
    ]);
    let output = command
        .args([
            "--mutate-rows",
            "2",
            "--json",
            "--shape",
            "small",
            "--build-cache",
        ])
        .arg(build_folder())
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value =
        serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
    assert!(value["messages"].as_u64() >= Some(1500), "{value}");
    assert_eq!(value["mismatches"], 0);
    assert_eq!(value["rows_reachable"], 1556);
    assert!(value["rows_covered"].as_u64() > Some(300), "{value}");
    assert_eq!(
        (&value["seeds"], &value["mutated_rows"]),
        (&3.into(), &2.into())
    );
    let shapes = value["shapes"].as_array().expect("a JSON list");
    assert_eq!(shapes.len(), 1);
    assert_eq!(
        (&shapes[0]["name"], &shapes[0]["seeds"]),
        (&"small".into(), &3.into())
    );
    assert_eq!(shapes[0]["messages"], value["messages"]);
    assert_eq!(value["undetected_mutations"], serde_json::json!([]));
}

/// A seed has the same shape alone and among other seeds.
#[test]
fn shape_depends_only_on_the_seed() {
    if !require("verilator") {
        return;
    }
    let shapes_of = |options: &[&str]| {
        let mut command = cohkit(["rtl", "test", "../../protocols/eci.coh"]);
        command.args(["--messages", "300", "--json"]).args(options);
        let output = command.arg("--build-cache").arg(build_folder()).output();
        let output = output.expect("the command starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let value: serde_json::Value =
            serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
        let shapes = value["shapes"].as_array().expect("a JSON list").iter();
        shapes
            .map(|shape| (shape["name"].clone(), value["cycles"].clone()))
            .collect::<Vec<_>>()
    };
    // Shapes repeat cyclically: seed 2 has `mixed`, and so has the seed one cycle later.
    let shapes = cohkit_rtl::lockstep::shapes::SHAPES.len();
    let single_seed = shapes_of(&["--seed", "2", "--seeds", "1"]);
    assert_eq!(single_seed[0].0, "mixed");
    let named_shape = shapes_of(&["--seed", "2", "--seeds", "1", "--shape", "mixed"]);
    assert_eq!(single_seed, named_shape);
    let next_cycle = shapes_of(&["--seed", &(2 + shapes).to_string(), "--seeds", "1"]);
    assert_eq!(next_cycle[0].0, "mixed");
    let small = shapes_of(&["--seed", "2", "--seeds", "1", "--shape", "small"]);
    assert_eq!(small[0].0, "small");
}

#[test]
fn unknown_shape_is_rejected_with_the_known_ones() {
    let output = cohkit(["rtl", "test", "../../protocols/eci.coh", "--shape", "huge"])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("shipped") && stderr.contains("mixed"),
        "{stderr}"
    );
}

/// The rows that lockstep can reach are the rows that the checker takes.
#[test]
fn lockstep_reaches_the_rows_that_the_checker_takes() {
    use cohkit_protocol::construct::construct;
    use cohkit_rtl::lockstep::reachability::ReachabilityGraph;
    use cohkit_rtl::rom::{Effect, Rom};
    use std::collections::BTreeSet;

    for file in [
        "../../protocols/eci.coh",
        "../../protocols/back-invalidate.coh",
    ] {
        let source = fs::read_to_string(file).expect("the file can be read");
        let protocol = cohkit_protocol::text::parse(&source).expect("the protocol is valid");
        let home = construct(&protocol)
            .expect("the home can be constructed")
            .flat(true);
        let rom = Rom::new(&protocol, &home).expect("the ROM can be generated");
        let reachability =
            ReachabilityGraph::new(&protocol, &home, &rom).expect("a line has few situations");
        // The checker counts rejected operations, and its device unlocks only lines that it has locked.
        let is_taken = |&&(state, event): &&(usize, usize)| match rom.row(state, event).effect {
            Effect::Take => true,
            Effect::Refuse => event != rom.unlock(),
            _ => false,
        };
        let reachable_rows: BTreeSet<(String, String)> = reachability
            .rows()
            .iter()
            .filter(is_taken)
            .map(|&(state, event)| (rom.states[state].clone(), rom.events[event].name.clone()))
            .collect();

        let arguments = [
            "check",
            file,
            "--system",
            "one_line",
            "--coverage",
            "--json",
        ];
        let output = cohkit(arguments).output().expect("the command starts");
        let value: serde_json::Value =
            serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
        let rows = value[0]["coverage"]["rows"]
            .as_array()
            .expect("a JSON list");
        let name = |row: &serde_json::Value, key: &str| {
            row[key].as_str().expect("a JSON string").to_string()
        };
        let checked_rows: BTreeSet<(String, String)> = rows
            .iter()
            .filter(|row| row["agent"] == home.name.as_str() && row["taken"].as_u64() > Some(0))
            .map(|row| (name(row, "state"), name(row, "event").replace(' ', "_")))
            .collect();
        assert!(checked_rows.len() > 50, "{file}: {}", checked_rows.len());
        assert_eq!(reachable_rows, checked_rows, "{file}");
    }
}

#[test]
fn unwritable_outputs_are_rejected_before_the_build() {
    let test = |option: &str, file: &str| {
        let mut command = cohkit(["rtl", "test", "../../protocols/eci.coh"]);
        command.args([option, file, "--build-cache"]);
        // No build is possible with this path.
        let output = command.arg(build_folder()).env("PATH", "").output();
        crate::transcript(&output.expect("the command starts"))
    };
    expect![[r#"
        exit code 4
        --- stderr
        error: /nonexistent/x: its folder does not exist; nothing was written
          help: make the folder first
    "#]]
    .assert_eq(&test("--out", "/nonexistent/x"));
    assert_eq!(
        test("--waveform", "/nonexistent/x"),
        test("--out", "/nonexistent/x")
    );
    if cfg!(unix) {
        expect![[r#"
            exit code 2
            --- stderr
            error: /dev/null: is no file
              help: the waveform would replace it; name a file
        "#]]
        .assert_eq(&test("--waveform", "/dev/null"));
    }
}

#[cfg(unix)]
#[test]
fn interrupt_ends_an_rtl_run_without_leftovers() {
    if !require("verilator") {
        return;
    }
    let arguments = ["rtl", "test", "../../protocols/eci.coh", "--build-cache"];
    // Builds the RTL if it is missing.
    let output = cohkit(arguments)
        .arg(build_folder())
        .args(["--seeds", "1", "--messages", "1"])
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let temporary_folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = cohkit(arguments);
    command
        .arg(build_folder())
        .args(["--messages", "1000000000"])
        .env("TMPDIR", temporary_folder.path());
    let has_started =
        || fs::read_dir(temporary_folder.path()).is_ok_and(|mut files| files.next().is_some());
    interrupt(&mut command, temporary_folder.path(), has_started);
}

#[test]
fn seeds_beyond_the_range_are_rejected() {
    check(
        &[
            "rtl",
            "test",
            "../../protocols/eci.coh",
            "--seed",
            "18446744073709551614",
            "--seeds",
            "3",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: `--seed 18446744073709551614` leaves fewer seeds than `--seeds 3`
              help: the last one is 18446744073709551615
        "#]],
    );
}
