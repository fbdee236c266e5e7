//! Options of `check` for Murphi models: their effect on verdicts, files and exit codes.

use super::{cohkit, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

/// A model with symmetry and a deadlock, which violates `at most two` unless a limit stops the search before.
const DEADLOCK_MODEL: &str = r#"
type node: scalarset(3);
var up: array [node] of boolean; count: 0..3;
startstate begin for n: node do up[n] := false; end; count := 0; end;
ruleset n: node do
  rule "climb" !up[n] ==> begin up[n] := true; count := count + 1; end;
end;
"#;

/// Folder with the model, extended by `more`.
fn deadlock_model_folder(addition: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(
        folder.path().join("stairs.m"),
        format!("{DEADLOCK_MODEL}{addition}"),
    )
    .expect("the file can be written");
    folder
}

/// Exit code, output and errors of `check` on a file in a folder.
fn check(folder: &Path, file: &str, options: &[&str]) -> (i32, String, String) {
    let mut command = cohkit(["check", file]);
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .args(options)
        .current_dir(folder)
        .output()
        .expect("the command starts");
    let code = status.code().expect("the command exits by itself");
    (code, text(&stdout), text(&stderr))
}

/// The only entry of a JSON output.
fn entry(json: &str) -> Value {
    let mut entries: Vec<Value> = serde_json::from_str(json).expect("a list as JSON");
    assert_eq!(entries.len(), 1);
    entries.remove(0)
}

#[test]
fn deadlock_has_three_definitions() {
    let folder = deadlock_model_folder("rule \"rest\" count = 3 ==> begin end;");
    let verdict = |options: &[&str]| {
        let (code, out, err) = check(folder.path(), "stairs.m", options);
        assert_eq!(err, "");
        (code, out.lines().next().unwrap_or_default().to_string())
    };
    let verified = (
        0,
        "stairs: verified: 4 states up to symmetry, 7 transitions, depth 3".into(),
    );
    let deadlock = "stairs: violated: no deadlock: no rule leads to a different state";
    assert_eq!(verdict(&[]), (1, deadlock.into()));
    assert_eq!(verdict(&["--deadlock", "stuttering"]), (1, deadlock.into()));
    assert_eq!(verdict(&["--deadlock", "stuck"]), verified);
    assert_eq!(verdict(&["--deadlock", "off"]), verified);
    let without_rest = deadlock_model_folder("");
    let (code, out, _) = check(without_rest.path(), "stairs.m", &["--deadlock", "stuck"]);
    assert_eq!(code, 1);
    assert!(
        out.starts_with("stairs: violated: no deadlock: no rule is enabled\n"),
        "{out}"
    );
}

#[test]
fn symmetry_changes_counts_and_not_verdicts() {
    let folder = deadlock_model_folder("invariant \"at most two\" count < 3;");
    let counts = |options: &[&str]| {
        let (code, json, err) = check(folder.path(), "stairs.m", &[&["--json"], options].concat());
        assert_eq!((code, err.as_str()), (1, ""));
        let entry = entry(&json);
        let steps = entry["counterexample"]["trace"]["steps"]
            .as_array()
            .map(Vec::len);
        assert_eq!(entry["counterexample"]["name"], "at most two");
        (entry["symmetric"].clone(), entry["states"].clone(), steps)
    };
    assert_eq!(counts(&[]), (true.into(), 4.into(), Some(3)));
    assert_eq!(counts(&["--symmetry", "exact"]), counts(&[]));
    assert_eq!(
        counts(&["--symmetry", "off"]),
        (false.into(), 8.into(), Some(3))
    );
}

#[test]
fn dialects_reject_each_others_constructs() {
    let folder = deadlock_model_folder("invariant \"all\" count == 3 || true;");
    let check_with = |options: &[&str]| check(folder.path(), "stairs.m", options);
    let (code, _, err) = check_with(&["--dialect", "cmurphi"]);
    assert_eq!(code, 2);
    let errors: Vec<_> = err
        .lines()
        .filter(|line| line.starts_with("error"))
        .collect();
    assert_eq!(
        errors,
        ["error: CMurphi has no `==`", "error: CMurphi has no `||`"]
    );
    assert!(err.contains("stairs.m:8:23"), "{err}");
    assert_eq!(
        check_with(&["--dialect", "rumur", "--deadlock", "off"]).0,
        0
    );
    assert_eq!(check_with(&["--deadlock", "off"]).0, 0);
    let (code, out, err) = check_with(&["--dialect", "murphi"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("[possible values: cmurphi, rumur]"), "{err}");
}

#[test]
fn limits_end_undecided() {
    let folder = deadlock_model_folder("invariant \"at most two\" count < 3;");
    for (option, value, reason) in [
        ("--max-states", "2", "max_states"),
        ("--max-depth", "1", "max_depth"),
        ("--max-memory", "1", "max_memory"),
    ] {
        let (code, json, _) = check(folder.path(), "stairs.m", &["--json", option, value]);
        let entry = entry(&json);
        assert_eq!(
            (code, &entry["outcome"]),
            (3, &Value::from("undecided")),
            "{option}"
        );
        assert_eq!(entry["reason"], reason);
    }
}

#[test]
fn order_dependent_model_is_undecided_and_replayable() {
    let folder = deadlock_model_folder(
        "var last: node;\n\
         rule \"look\" begin for n: node do if up[n] then last := n; end; end; end;",
    );
    let (code, out, err) = check(folder.path(), "stairs.m", &[]);
    assert_eq!((code, err.as_str()), (3, ""));
    let expected = "stairs: undecided: the order of a loop over a scalarset matters: \
                its iterations store different values in `last`";
    assert!(out.starts_with(expected), "{out}");
    let (_, json, _) = check(folder.path(), "stairs.m", &["--json"]);
    fs::write(folder.path().join("trace.json"), json).expect("the file can be written");
    let (code, out, err) = check(folder.path(), "stairs.m", &["--replay", "trace.json"]);
    assert_eq!((code, err.as_str()), (3, ""));
    assert!(out.starts_with(expected), "{out}");
    let (code, out, _) = check(
        folder.path(),
        "stairs.m",
        &["--symmetry", "off", "--deadlock", "off"],
    );
    assert_eq!(code, 0, "{out}");
}

#[test]
fn model_output_files_are_written_and_read_back() {
    let folder = deadlock_model_folder("invariant \"at most two\" count < 3;");
    let options = [
        "--json",
        "--coverage",
        "--graph",
        "graph.dot",
        "--export-murphi",
        "out",
    ];
    let (code, json, err) = check(folder.path(), "stairs.m", &options);
    assert_eq!((code, err.as_str()), (1, ""));
    let coverage = &entry(&json)["coverage"]["rules"];
    assert_eq!(coverage[0]["rule"], "climb");
    let graph = fs::read_to_string(folder.path().join("graph.dot")).expect("the file can be read");
    assert!(graph.starts_with("digraph"), "{graph}");
    // The exported model has the states of the model without symmetry.
    let counts = |file: &str| {
        let (code, json, err) = check(folder.path(), file, &["--json", "--symmetry", "off"]);
        assert_eq!((code, err.as_str()), (1, ""));
        entry(&json)["states"].clone()
    };
    assert_eq!(counts("out/stairs.m"), counts("stairs.m"));
    fs::write(folder.path().join("trace.json"), &json).expect("the file can be written");
    let (code, replayed, err) = check(
        folder.path(),
        "stairs.m",
        &["--replay", "trace.json", "--json"],
    );
    assert_eq!((code, err.as_str()), (1, ""));
    assert_eq!(
        entry(&replayed)["counterexample"],
        entry(&json)["counterexample"]
    );
}

#[test]
fn recognised_messages_are_drawn() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/murphi");
    let folder = deadlock_model_folder("");
    fs::copy(tests.join("messages.m"), folder.path().join("messages.m"))
        .expect("the file can be copied");
    let (code, json, err) = check(
        folder.path(),
        "messages.m",
        &["--json", "--chart-svg", "charts"],
    );
    assert_eq!((code, err.as_str()), (1, ""));
    let svg = fs::read_to_string(folder.path().join("charts/messages.svg"))
        .expect("the file can be read");
    assert!(svg.starts_with("<svg") && svg.contains("Grant"), "{svg}");
    let sequences = &entry(&json)["counterexample"]["sequences"];
    assert_eq!(
        sequences[0]["agents"],
        serde_json::json!(["client_1", "client_2", "Home"])
    );
    fs::write(folder.path().join("trace.json"), &json).expect("the file can be written");
    let (_, searched, _) = check(folder.path(), "messages.m", &[]);
    let (code, replayed, _) = check(folder.path(), "messages.m", &["--replay", "trace.json"]);
    assert_eq!(code, 1);
    let chart = |text: &str| {
        let chart = text
            .lines()
            .skip_while(|line| !line.starts_with("client_1   "));
        chart
            .map(|line| line.trim_end().to_string())
            .collect::<Vec<_>>()
    };
    assert!(chart(&searched).len() > 10, "{searched}");
    assert_eq!(
        chart(&searched).join("\n").trim_end(),
        chart(&replayed).join("\n").trim_end()
    );
    // The other model has nothing like a message.
    let (code, _, err) = check(folder.path(), "stairs.m", &["--chart-svg", "charts"]);
    assert_eq!(code, 1);
    assert_eq!(
        err,
        "stairs: no chart: the counterexample contains no recognised messages\n"
    );
    assert!(!folder.path().join("charts/stairs.svg").exists());
}

#[cfg(unix)]
#[test]
fn endless_input_file_is_rejected() {
    let folder = deadlock_model_folder("");
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("endless.m"))
        .expect("the link can be created");
    let (code, _, err) = check(folder.path(), "endless.m", &[]);
    assert_eq!(code, 2);
    let expected = "error: endless.m: is larger than the limit of 256 MiB\n";
    assert_eq!(err, expected);
}

#[test]
fn invalid_inputs_and_unwritable_outputs_are_reported() {
    let folder = deadlock_model_folder("");
    let (code, _, err) = check(folder.path(), "missing.m", &[]);
    assert_eq!(code, 2);
    assert!(err.starts_with("error: missing.m: "), "{err}");
    let (code, _, err) = check(folder.path(), "stairs.m", &["--remotes", "2"]);
    assert_eq!(code, 2);
    assert!(
        err.contains("is a Murphi model, and `--remotes` is for protocol files"),
        "{err}"
    );
    fs::write(folder.path().join("file"), "").expect("the file can be written");
    for option in ["--export-murphi", "--chart-svg"] {
        let (code, out, err) = check(folder.path(), "stairs.m", &[option, "file/under"]);
        assert_eq!((code, out.as_str()), (4, ""), "{option}: {err}");
    }
    // The worst outcome of several files wins.
    fs::write(folder.path().join("wrong.m"), "rule").expect("the file can be written");
    assert_eq!(check(folder.path(), "stairs.m", &["wrong.m"]).0, 2);
}
