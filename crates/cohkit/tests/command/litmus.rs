//! Tests of `cohkit litmus`.

use crate::{cohkit, text};
use serde_json::Value;

/// Exit code, standard output and standard error.
fn litmus(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = cohkit(["litmus"]).args(arguments).output().expect("starts");
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn the_condition_of_the_file_decides() {
    let sb = "../../litmus/SB.litmus";
    let fenced = "../../litmus/SB+dmbs.litmus";
    let mesi = ["--protocol", "../../protocols/mesi.coh"];
    assert_eq!(litmus(&[sb]).0, Some(1));
    assert_eq!(litmus(&[sb, "--cores", "store-buffer"]).0, Some(0));
    assert_eq!(litmus(&[fenced, "--cores", "store-buffer"]).0, Some(0));
    let (code, shown, _) = litmus(&[&[sb, "--cores", "store-buffer"][..], &mesi].concat());
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("exactly the outcomes of total store order"),
        "{shown}"
    );
    let few = [&[sb, "--max-states", "100"][..], &mesi].concat();
    let (code, shown, _) = litmus(&few);
    assert_eq!(code, Some(3), "{shown}");
    assert!(shown.contains("raise it with `--max-states N`"), "{shown}");
}

#[test]
fn shapes_are_run_by_their_names_and_printed() {
    assert_eq!(litmus(&["SB"]).0, Some(1));
    assert_eq!(litmus(&["SB", "--cores", "store-buffer"]).0, Some(0));
    let (code, shown, _) = litmus(&["MP+po+dmb.sy", "--model", "rc"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("under release consistency: Sometimes, 1 of 4"),
        "{shown}"
    );
    let (code, shown, _) = litmus(&["MP+poll+poaa", "--model", "rc"]);
    assert_eq!(code, Some(1), "{shown}");
    // A stronger protocol shows a subset of the outcomes.
    let mesi = [
        "SB",
        "--model",
        "rc",
        "--protocol",
        "../../protocols/mesi.coh",
    ];
    let (code, shown, _) = litmus(&mesi);
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("3 of the 4 outcomes of release consistency, and no other"),
        "{shown}"
    );

    let (code, printed, _) = litmus(&["WRC+data+dmb.sy", "--print"]);
    assert_eq!(code, Some(0));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("printed.litmus");
    std::fs::write(&file, &printed).expect("written");
    let again = litmus(&[file.to_str().expect("a path"), "--print"]);
    assert!(printed.contains("EOR"), "{printed}");
    assert_eq!(again.0, Some(0));
    let (code, all, _) = litmus(&["--shapes", "--print"]);
    assert_eq!(code, Some(0));
    assert!(all.matches("AArch64 ").count() >= 200);
    let (code, _, said) = litmus(&["SB+dmb.syz"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("no classic shape"), "{said}");
    assert!(said.contains("did you mean `SB+dmb.sys`?"), "{said}");
}

/// Threads run on the L1s of clusters: exactly the outcomes that their cores allow are observed.
#[test]
fn two_levels_show_the_allowed_outcomes_of_their_cores() {
    let on = ["SB", "--protocol", "../../protocols/two-level.coh"];
    let simulate = |more: &[&str]| litmus(&[&on, &["--simulate", "200"][..], more].concat());
    let (code, shown, _) = simulate(&[]);
    assert_eq!(code, Some(3), "{shown}");
    assert!(
        shown.contains("exactly the outcomes of sequential consistency"),
        "{shown}"
    );
    let (code, shown, _) = simulate(&["--cores", "store-buffer"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("exactly the outcomes of total store order"),
        "{shown}"
    );
    assert!(
        shown.contains("--protocol ../../protocols/two-level.coh"),
        "{shown}"
    );
    let (code, shown, _) = litmus(&[&on[..], &["--cores", "store-buffer"]].concat());
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("exactly the outcomes of total store order"),
        "{shown}"
    );
}

/// An observed outcome decides, and a command that reproduces it is printed; an outcome that was not observed decides
/// nothing.
#[test]
fn the_simulator_shows_and_never_verifies() {
    let on = [
        "--protocol",
        "../../protocols/mesi.coh",
        "--simulate",
        "200",
    ];
    let simulate = |more: &[&str]| litmus(&[more, &on[..]].concat());
    let (code, shown, _) = simulate(&["SB"]);
    assert_eq!(code, Some(3), "{shown}");
    assert!(
        shown.contains("undecided: 0 of 3 outcomes satisfy"),
        "{shown}"
    );
    let (code, shown, _) = simulate(&["SB", "--cores", "store-buffer"]);
    assert_eq!(code, Some(0), "{shown}");
    let fenced = "../../litmus/SB+dmbs.litmus";
    assert_eq!(simulate(&[fenced, "--cores", "store-buffer"]).0, Some(3));

    // Without its full fences the test fails, and the printed command reproduces the failure.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("SB.litmus");
    let text = std::fs::read_to_string(fenced).expect("it ships");
    std::fs::write(&file, text.replace("DMB SY", "DMB ST")).expect("written");
    let path = file.to_str().expect("a path");
    let (code, shown, _) = simulate(&[path, "--cores", "store-buffer", "--seed", "1000"]);
    assert_eq!(code, Some(1), "{shown}");
    let again = shown
        .lines()
        .find_map(|line| line.trim().strip_prefix("again: cohkit litmus "));
    let again: Vec<&str> = again.expect("a command").split(' ').collect();
    let (code, shown, said) = litmus(&again);
    assert_eq!(code, Some(1), "{shown}{said}");
    assert!(
        shown.contains("Always, 1 of 1 outcome: `~exists` does not hold, in 1 run"),
        "{shown}"
    );

    let (code, shown, _) = simulate(&["MP", "--json", "--seed", "7"]);
    assert_eq!(code, Some(3));
    let all: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((&all[0]["runs"], &all[0]["seed"]), (&200.into(), &7.into()));
    assert_eq!(
        (&all[0]["outcome"], &all[0]["reason"]),
        (&"undecided".into(), &"not_seen".into())
    );
    let ends = all[0]["ends"].as_array().expect("a list");
    assert_eq!(
        ends.iter()
            .filter_map(|end| end["seen"].as_u64())
            .sum::<u64>(),
        200
    );
    let (code, _, said) = litmus(&["SB", "--simulate", "3"]);
    assert_eq!(code, Some(2), "{said}");
    let on = |text: &str| {
        let text = format!("../../protocols/{text}.coh");
        litmus(&["SB", "--simulate", "1", "--protocol", &text])
    };
    // A protocol whose home performs the stores runs, too.
    let (code, shown, said) = on("write-through");
    assert_eq!(code, Some(3), "{shown}{said}");
    let (code, _, said) = on("eci-both");
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("composes something else than two levels"),
        "{said}"
    );
}

#[test]
fn litmus_json_lists_allowed_and_observed_outcomes() {
    let (code, shown, _) = litmus(&[
        "../../litmus/MP.litmus",
        "--protocol",
        "../../protocols/msi.coh",
        "--json",
    ]);
    assert_eq!(code, Some(0));
    let all: Value = serde_json::from_str(&shown).expect("JSON");
    let test = &all[0];
    assert_eq!(
        (&test["outcome"], &test["observation"]),
        (&"yes".into(), &"never".into())
    );
    assert_eq!(test["ends"].as_array().map(Vec::len), Some(3));
    assert_eq!(test["allowed"], 3);
    assert_eq!(test["ends"][0]["values"]["1:X0"], 0);
    assert!(test["ends"]
        .as_array()
        .is_some_and(|ends| ends.iter().all(|end| end["allowed"] == true)));
}

#[test]
fn input_errors_name_their_position() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wrong.litmus");
    std::fs::write(&file, "AArch64 wrong\n{ 0:X1=x; }\n P0 ;\n LDX W0,[X1] ;\n").expect("written");
    let (code, _, said) = litmus(&[file.to_str().expect("a path")]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("`LDX` is not a supported instruction"),
        "{said}"
    );
    assert!(said.contains("wrong.litmus:4:2"), "{said}");
    let (code, _, said) = litmus(&["none.litmus"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("none.litmus: no such file"), "{said}");
}

/// A cache keeps its copy where it should lose it: the protocol is reported as violated, whatever the test's condition
/// is.
#[test]
fn a_fault_of_the_protocol_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string("../../protocols/msi.coh").expect("it ships");
    let row = text
        .lines()
        .find(|line| line.trim_start().starts_with("S ") && line.contains("| Inv "))
        .expect("a row");
    let kept = match row.rfind('|') {
        Some(place) => format!("{}| stay", &row[..place]),
        None => panic!("{row}"),
    };
    let file = folder.path().join("kept.coh");
    std::fs::write(&file, text.replace(row, &kept)).expect("written");
    let path = file.to_str().expect("a path");
    let (code, shown, said) = litmus(&["../../litmus/SB.litmus", "--protocol", path]);
    assert_eq!(code, Some(1), "{shown}{said}");
    assert!(shown.contains("violated: "), "{shown}");
}

/// Regression: an invalid test discarded the results of all tests before it, and the tests after it were not run.
#[test]
fn a_wrong_test_keeps_no_other_from_being_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = folder.path().join("wrong.litmus");
    std::fs::write(&wrong, "").expect("written");
    let (mp, sb) = ("../../litmus/MP.litmus", "../../litmus/SB.litmus");
    let (code, shown, said) = litmus(&[mp, wrong.to_str().expect("a path"), "none.litmus", sb]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        shown.contains("MP on sequentially consistent memory"),
        "{shown}"
    );
    assert!(
        shown.contains("SB on sequentially consistent memory"),
        "{shown}"
    );
    assert!(said.contains("wrong.litmus:1:1"), "{said}");
    assert!(said.contains("none.litmus: no such file"), "{said}");
}

/// Regression: of two increments from 0 to 2, both were reported to read 0. A home that performs the stores of caches
/// does not return the previous value.
#[test]
fn home_performed_atomics_without_a_result_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("INC.litmus");
    let increment = " MOV W0,#1 | MOV W0,#1 ;\n LDADDAL W0,W2,[X1] | LDADDAL W0,W2,[X1] ;\n";
    let text = format!("AArch64 INC\n{{ 0:X1=x; 1:X1=x; }}\n P0 | P1 ;\n{increment}forall (x=2)\n");
    std::fs::write(&file, text).expect("written");
    let on = |protocol: &str| {
        let file = file.to_str().expect("a path");
        litmus(&[
            file,
            "--protocol",
            &format!("../../protocols/{protocol}.coh"),
        ])
    };
    let (code, shown, said) = on("write-through");
    assert_eq!(code, Some(2), "{shown}");
    assert!(
        said.contains("cannot run INC: the home of write_through"),
        "{said}"
    );
    let (code, shown, _) = on("mesi");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("exactly the outcomes"), "{shown}");
}

#[test]
fn chart_shows_the_shortest_path_to_the_deciding_outcome() {
    let mp = "../../ordering/mp.coh";
    let (code, shown, _) = litmus(&["MP+popl+poap", "--protocol", mp, "--chart", "--json"]);
    assert_eq!(code, Some(1));
    let all: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(all[0]["outcome"], "violated");
    assert_eq!(all[0]["reason"], "guarantee: release consistency");
    let steps = all[0]["sequence"]["steps"].as_array().expect("steps");
    let last = steps
        .iter()
        .rfind(|step| step["agent"] == 1 && step["action"]["what"].is_string());
    assert_eq!(last.expect("P1 acts")["action"]["what"], "finds x = 0");
    assert_eq!(all[0]["steps"], 14);
    // No outcome decides: none is forbidden, and none fulfils the condition.
    let (code, shown, _) = litmus(&["CoWW", "--protocol", mp, "--chart", "--json"]);
    assert_eq!(code, Some(1));
    let all: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(all[0].get("sequence"), None);
    let two = "../../protocols/two-level.coh";
    let (code, _, said) = litmus(&["SB", "--protocol", two, "--chart"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("the text has two"), "{said}");
}

#[test]
fn unreadable_test_does_not_stop_other_tests() {
    let files = [
        "../../litmus/refused/loop.litmus",
        "../../litmus/MP.litmus",
        "../../litmus/refused/pair.litmus",
    ];
    let (code, shown, said) = litmus(&files);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        shown.starts_with("MP on sequentially consistent memory")
            && shown.matches("on sequentially consistent memory").count() == 1,
        "{shown}"
    );
    assert!(
        said.contains("loop.litmus:7:24") && said.contains("pair.litmus:5:2"),
        "{said}"
    );
    assert!(
        said.contains("2 of 3 tests are undecided: they could not be read"),
        "{said}"
    );
}

/// Each write is tested with every store variant of the protocol.
#[test]
fn mixes_of_stores_are_tests_of_their_own() {
    let cord = ["--protocol", "../../ordering/cord.coh"];
    let (code, shown, _) = litmus(&[&["MP+popl+poap", "--stores", "every"][..], &cord].concat());
    assert_eq!(code, Some(1));
    assert_eq!(
        shown
            .matches("exactly the outcomes of release consistency")
            .count(),
        9,
        "{shown}"
    );
    assert!(shown.contains("MP+popl+poap ba on cord"), "{shown}");
    let (code, _, said) = litmus(&[&["MP+popl+poap", "--stores", "t"][..], &cord].concat());
    assert_eq!(code, Some(2));
    assert!(said.contains("--stores: `t` has 1 letter,"), "{said}");
    let runs = ["MP+popl+poap", "--stores", "every", "--simulate", "4"];
    let (code, shown, said) = litmus(&[&runs[..], &cord].concat());
    assert_eq!(code, Some(3), "{said}");
    assert_eq!(shown.matches("undecided: 0 of ").count(), 9, "{shown}");
}

/// The printed command reproduces the run with the same mix.
#[test]
fn reproduce_command_repeats_the_deciding_mix() {
    let runs = ["MP", "--stores", "tb", "--simulate", "200"];
    let (code, shown, _) =
        litmus(&[&runs[..], &["--protocol", "../../ordering/cord.coh"]].concat());
    assert_eq!(code, Some(0), "{shown}");
    let (_, again) = shown
        .split_once("again: cohkit litmus ")
        .expect("a command");
    let again: Vec<&str> = again.split_whitespace().collect();
    assert_eq!(again[0], "MP");
    assert!(again.windows(2).any(|pair| pair == ["--stores", "tb"]));
    let (code, shown, said) = litmus(&again);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        shown.starts_with("MP tb on cord in the simulator"),
        "{shown}"
    );
}

/// Regression: a protocol whose acquires leave dirty lines of releases in place. `check` returned 1, `litmus` returned
/// 0.
#[test]
fn forbidden_outcome_exits_with_1_and_a_chart() {
    let clflush = "tests/command/clflush.coh";
    let (code, shown, said) = litmus(&["MP+popl+poap", "--protocol", clflush]);
    assert_eq!(code, Some(1), "{shown}{said}");
    assert!(
        shown.contains(": violated: Sometimes, 1 of 4 outcomes"),
        "{shown}"
    );
    assert!(
        shown.contains("1:X0=1; 1:X2=0 (forbidden by release consistency)"),
        "{shown}"
    );
    assert!(shown.contains("  the shortest path there has "), "{shown}");
    // Cores or a model chosen by the user make it a comparison.
    let (code, shown, _) = litmus(&["MP+popl+poap", "--protocol", clflush, "--model", "sc"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("forbidden by sequential consistency"),
        "{shown}"
    );
    let runs = ["MP+popl+poap", "--protocol", clflush, "--simulate", "200"];
    assert_eq!(litmus(&runs).0, Some(1));
}

/// Regression: "none of 0 ends" returned exit code 0.
#[test]
fn threads_that_never_end_are_a_violation_with_a_chart() {
    let verdicts = "../litmus/tests/counts/verdicts";
    for text in ["p01_slot_kept.coh", "m02_partial_livelock.coh"] {
        let path = format!("{verdicts}/{text}");
        let (code, shown, said) = litmus(&["SB", "--protocol", &path]);
        assert_eq!(code, Some(1), "{text}: {shown}{said}");
        assert!(
            shown.contains("violated: livelock: no outcome is reachable from a reachable state"),
            "{shown}"
        );
        assert!(shown.contains("  the shortest path there has "), "{shown}");
    }
}

/// Regression: states that differ in a location outside the condition were printed and counted as separate outcomes.
#[test]
fn outcomes_differ_only_in_observed_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let shown = |condition: &str| {
        let file = folder.path().join("seen.litmus");
        let text = format!(
            "AArch64 seen\n{{ 0:X1=x; 0:X3=y; 1:X1=x; 1:X3=y; }}\n P0 | P1 ;\n MOV W0,#1 | MOV W0,#2 ;\n \
             STR W0,[X1] | STR W0,[X1] ;\n LDR W2,[X3] | STR W0,[X3] ;\n{condition}\n"
        );
        std::fs::write(&file, text).expect("written");
        let (code, shown, said) = litmus(&[file.to_str().expect("a path")]);
        assert!(said.is_empty(), "{said}");
        (code, shown)
    };
    let (code, one) = shown("exists (0:X2=2)");
    assert_eq!(code, Some(0));
    assert!(
        one.contains("Sometimes, 1 of 2 outcomes: `exists` holds\n    0:X2=0\n  * 0:X2=2\n"),
        "{one}"
    );
    let (_, listed) = shown("locations [x; 0:X2;]\nexists (0:X2=2)");
    assert!(listed.contains("Sometimes, 2 of 4 outcomes"), "{listed}");
    let (_, all) = shown("");
    assert!(all.contains("4 outcomes, no condition"), "{all}");
}

#[test]
fn exit_code_follows_the_expectation_of_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let sb = std::fs::read_to_string("../../litmus/SB.litmus").expect("it ships");
    let file = folder.path().join("SB.litmus");
    let path = file.to_str().expect("a path");
    let code = |expected: &str, more: &[&str]| {
        let line = format!("{{\n(* {expected} *)\n");
        std::fs::write(&file, sb.replacen("{\n", &line, 1)).expect("written");
        litmus(&[&[path, "--expect", "file"][..], more].concat()).0
    };
    let mesi = ["--protocol", "../../protocols/mesi.coh"];
    let buffered = [&mesi[..], &["--cores", "store-buffer"]].concat();
    for (expected, on_mesi, before_buffers, on_model) in [
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
        let wanted = (Some(on_mesi), Some(before_buffers), Some(on_model));
        assert_eq!(codes, wanted, "{expected}");
    }
    // A classic shape has no expectation of its own, and the outcome of `~exists` must never be observed.
    assert_eq!(
        litmus(&[&["SB", "--expect", "file"][..], &mesi].concat()).0,
        Some(0)
    );
    let mp = ["../../litmus/MP.litmus", "--expect", "file"];
    assert_eq!(litmus(&[&mp[..], &mesi].concat()).0, Some(0));
}
