//! Tests of `cohkit mutants`: verdicts on single mutants, and protocols that cannot be mutated.

use crate::{cohkit, text};

/// Exit code, standard output and standard error.
fn mutants(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = cohkit(["mutants"])
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
fn surviving_mutant_is_reported_and_printable() {
    let (code, out, _) = mutants(&["msi", "--index", "80"]);
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.ends_with("survived: 80: S | store | send GetM | SM_AD: dropped\n"),
        "{out}"
    );
    let (code, printed, _) = mutants(&["msi", "--index", "80", "--print"]);
    assert_eq!(code, Some(0));
    let (first, rest) = printed.split_once('\n').expect("lines");
    assert_eq!(first, "# 80: S | store | send GetM | SM_AD: dropped");
    cohkit_protocol::text::parse(rest).expect("the printed mutant can be parsed");
}

#[test]
fn mutant_verdicts_are_independent_of_threads() {
    let arguments = [
        "msi",
        "--first",
        "2",
        "--stride",
        "60",
        "--json",
        "--threads",
    ];
    let outputs = ["1", "3"].map(|threads| mutants(&[&arguments[..], &[threads]].concat()));
    assert_eq!(outputs[0], outputs[1]);
    let rows: serde_json::Value = serde_json::from_str(&outputs[0].1).expect("the text is JSON");
    let rows = rows.as_array().expect("a JSON list");
    assert_eq!(rows.len(), 10);
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row["number"], 2 + 60 * index);
        assert!(
            row["verdict"] == "rejected" || row["verdict"] == "refuted",
            "{row}"
        );
    }
}

#[test]
fn mutants_of_unsuitable_protocols_are_rejected() {
    let (code, _, err) = mutants(&["msi", "--index", "5000"]);
    assert_eq!(
        (code, err.as_str()),
        (Some(2), "error: msi: has mutants 0 to 556, and no 5000\n")
    );
    let (code, _, err) = mutants(&["two-level"]);
    assert!(code == Some(2) && err.contains("composes others"), "{err}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wrong.coh");
    let (_, mutant, _) = mutants(&["msi", "--index", "120", "--print"]);
    std::fs::write(&file, mutant).expect("the file can be written");
    let (code, _, err) = mutants(&[file.to_str().expect("the path is UTF-8")]);
    assert!(
        code == Some(2) && err.contains("the unmutated specification is not verified"),
        "{err}"
    );
}
