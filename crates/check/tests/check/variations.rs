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

/// Searches every state of the system with the constructed home. `merge` merges states of the home with
/// indistinguishable futures; `factored` keeps one knowledge index per remote in variables.
fn check_construction(text: &str, merge: bool, factored: bool) -> Report {
    let protocol = text::parse(text).unwrap();
    let construction = construct(&protocol).ok().unwrap();
    let remotes = protocol.systems[0].remotes;
    let home = if factored {
        construction.factored(merge)
    } else {
        construction.flat(merge)
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

/// Compares states, transitions and verdict of each file with the study. Merging and the factored form must not
/// change the verdict.
#[test]
fn products_have_the_published_sizes() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/construction");
    let mut compared = 0;
    let mut mismatches = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "coh"))
        .collect();
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = expectations(&text);
        let is_joint = expected.contains_key("joint product");
        let Some(states) = expected.get("product").or(expected.get("joint product")) else {
            continue;
        };
        compared += 1;
        let mut compare = |property: &str, actual: String, expected: &str| {
            if actual != expected {
                let file = path.file_stem().unwrap().to_string_lossy();
                mismatches.push(format!(
                    "{file}: {property}: expected {expected}, found {actual}"
                ));
            }
        };
        let report = check_construction(&text, false, is_joint);
        compare("states", report.states.to_string(), states);
        if let Some(transitions) = expected.get("product transitions") {
            compare("transitions", report.transitions.to_string(), transitions);
        }
        let verdict = |report: &Report| match &report.outcome {
            Outcome::Verified => "verified".to_string(),
            Outcome::Violated { message, .. } => {
                message.split(':').next().unwrap_or_default().to_string()
            }
            Outcome::Undecided { reason } => format!("undecided: {reason:?}"),
            Outcome::Exceeded { limit, .. } => format!("undecided: {limit}"),
        };
        compare("verdict", verdict(&report), expected["verdict"]);
        if let Outcome::Violated { message, .. } = &report.outcome {
            let stuck = format!("{} of {} states", expected["undrained"], states);
            assert!(message.contains(&stuck), "{message}");
        }
        // Merging, and the form of the controller, change only the size.
        let merged = check_construction(&text, true, is_joint);
        compare("merged verdict", verdict(&merged), expected["verdict"]);
        assert!(merged.states <= report.states);
        if !is_joint {
            let factored = check_construction(&text, false, true);
            compare("factored states", factored.states.to_string(), states);
            assert_eq!(factored.transitions, report.transitions);
        }
    }
    assert!(compared > 35);
    assert!(mismatches.is_empty(), "\n{}", mismatches.join("\n"));
}
