//! The variants of `tests/construction`, with data: product sizes and verdicts of an independent study.
//!
//! The controllers are unmerged, as in the study. With one remote the device may request its next operation once the
//! previous one is accepted; with several, once it is acknowledged.

use cohkit_check::system;
use cohkit_engine::model::Deadlock;
use cohkit_engine::report::{check, Outcome, Report};
use cohkit_engine::search::Options;
use cohkit_protocol::construct::construct;
use cohkit_protocol::text;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Returns the results of the study, by name, from the lines of a file that begin with `#!`.
fn expectations(text: &str) -> BTreeMap<&str, &str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("#! "));
    lines.filter_map(|line| line.split_once(": ")).collect()
}

/// Form of the constructed home.
#[derive(Clone, Copy, PartialEq)]
enum HomeForm {
    /// One state for each set of knowledge, as in the study.
    Flat,
    /// As `Flat`, with states of indistinguishable futures merged.
    FlatMerged,
    /// One knowledge index per remote, in variables.
    Factored,
    /// As `Factored`, with merged states.
    FactoredMerged,
}

/// Searches every state of the system with the constructed home in this form.
fn check_construction(text: &str, form: HomeForm) -> Report {
    let protocol = text::parse(text).unwrap();
    let construction = construct(&protocol).ok().unwrap();
    let remotes = protocol.systems[0].remotes;
    let home = match form {
        HomeForm::Flat => construction.flat(false),
        HomeForm::FlatMerged => construction.flat(true),
        HomeForm::Factored => construction.factored(false),
        HomeForm::FactoredMerged => construction.factored(true),
    };
    let options = system::Options {
        overlaps_requests: remotes.total() == 1,
        ..system::Options::default()
    };
    let mut model = system::model(&protocol, &home, remotes, 1, &options).unwrap();
    // The study searches the whole product for states that cannot drain, and does not stop at a deadlock.
    model.deadlock = Deadlock::Off;
    let every_state = Options {
        symmetry: false,
        ..Options::default()
    };
    check(&model, &every_state).unwrap()
}

/// Returns the verdict as the study names it.
fn verdict(report: &Report) -> String {
    match &report.outcome {
        Outcome::Verified => "verified".to_string(),
        Outcome::Violated { message, .. } => {
            message.split(':').next().unwrap_or_default().to_string()
        }
        Outcome::Undecided { reason } => format!("undecided: {reason:?}"),
        Outcome::Exceeded { limit, .. } => format!("undecided: {limit}"),
    }
}

/// Returns the differences between the study and our results for a file, whose product has this number of states.
fn mismatches(text: &str, expected: &BTreeMap<&str, &str>, states: &str) -> Vec<String> {
    let mut mismatches = Vec::new();
    let mut compare = |property: &str, actual: String, expected: &str| {
        if actual != expected {
            mismatches.push(format!("{property}: expected {expected}, found {actual}"));
        }
    };
    // The home of several remotes is the product of their knowledge.
    let is_joint = expected.contains_key("joint product");
    let (form, merged_form) = match is_joint {
        true => (HomeForm::Factored, HomeForm::FactoredMerged),
        false => (HomeForm::Flat, HomeForm::FlatMerged),
    };
    let report = check_construction(text, form);
    compare("states", report.states.to_string(), states);
    if let Some(transitions) = expected.get("product transitions") {
        compare("transitions", report.transitions.to_string(), transitions);
    }
    compare("verdict", verdict(&report), expected["verdict"]);
    if let Outcome::Violated { message, .. } = &report.outcome {
        let stuck = format!("{} of {} states", expected["undrained"], states);
        assert!(message.contains(&stuck), "`{stuck}` expected: {message}");
    }
    // Merging, and the form of the controller, change only the size.
    let merged = check_construction(text, merged_form);
    compare("merged verdict", verdict(&merged), expected["verdict"]);
    assert!(merged.states <= report.states, "merging adds states");
    if !is_joint {
        let factored = check_construction(text, HomeForm::Factored);
        compare("factored states", factored.states.to_string(), states);
        assert_eq!(factored.transitions, report.transitions);
    }
    mismatches
}

/// Compares states, transitions and verdict of each file with the study. Merging and the factored form must not
/// change the verdict.
#[test]
fn products_have_the_published_sizes() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/construction");
    let mut compared = 0;
    let mut all_mismatches = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "coh"))
        .collect();
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = expectations(&text);
        let Some(states) = expected.get("product").or(expected.get("joint product")) else {
            continue;
        };
        compared += 1;
        let file = path.file_stem().unwrap().to_string_lossy();
        let mismatches = mismatches(&text, &expected, states).into_iter();
        all_mismatches.extend(mismatches.map(|mismatch| format!("{file}: {mismatch}")));
    }
    assert!(compared > 35, "only {compared} files have a product");
    assert!(all_mismatches.is_empty(), "\n{}", all_mismatches.join("\n"));
}
