//! Files of shapes with mixed orders, and their outcomes on the protocols of `ordering`.

use cohkit_litmus::axioms::{allowed, Model};
use cohkit_litmus::conformance_batch::{check_outcomes, BatchResult};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::herd;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::program::Program;
use cohkit_litmus::run::Options;
use cohkit_litmus::shape_generator::{files, File, MP_VIOLATIONS, ORDERINGS};
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::text::parse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Folder of the stored shapes.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../litmus/shapes")
}

/// Reads the files in the repository, by path relative to `litmus/shapes`.
fn stored_files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for folder in ["aarch64", "c11"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let text = std::fs::read_to_string(entry.path()).unwrap();
            files.insert(format!("{folder}/{name}"), text);
        }
    }
    files
}

/// Reads the programs of all stored files.
fn programs() -> Vec<Program> {
    let texts = stored_files().into_iter();
    let program = |(path, text): (String, String)| {
        herd::read(&text).unwrap_or_else(|error| panic!("{}", error.render(&path, &text, false)))
    };
    texts.map(program).collect()
}

/// Compares the stored files with the generated ones.
#[test]
fn shape_files_are_up_to_date() {
    let generated = files().unwrap().into_iter();
    let generated: BTreeMap<_, _> = generated.map(|File { path, text }| (path, text)).collect();
    let stored = stored_files();
    assert!(stored.len() >= 300, "{}", stored.len());
    let command = "cargo run -p cohkit-litmus --example write_shapes";
    assert!(
        stored == generated,
        "litmus/shapes is out of date: {command}"
    );
}

/// Each stored condition holds for the outcomes that release consistency allows.
#[test]
fn conditions_match_release_consistency() {
    for program in programs() {
        let outcomes = allowed(&program, Model::Rc).unwrap();
        assert!(program.is_satisfied(&outcomes), "{}", program.name);
    }
}

/// Returns the names of the programs of at most `threads` threads with an outcome on a protocol that its guaranteed
/// model forbids.
fn forbidden(name: &str, threads: usize) -> BTreeSet<String> {
    let (_, text) = ORDERINGS
        .iter()
        .find(|(ordering, _)| *ordering == name)
        .unwrap();
    let protocol: Protocol = parse(text).unwrap();
    let Home::Controller(home) = &protocol.home else {
        panic!("a home written as rows")
    };
    let options = Options {
        cores: CoreKind::Relaxed(
            protocol
                .program_order
                .expect("the protocol declares its program order"),
        ),
        max_spontaneous_evictions: 0,
        ..Options::default()
    };
    let model = protocol.guarantee.model.expect("a guarantee");
    let groups = Lines::groups(&protocol, programs_with_at_most(threads)).into_iter();
    let results = groups.map(|group| check_outcomes(&protocol, home, &group, model, &options));
    let total = results.fold(BatchResult::default(), |total, result| {
        total.merge(result.unwrap())
    });
    assert_eq!(
        total.programs,
        programs_with_at_most(threads).len(),
        "{name}"
    );
    total.forbidden.into_iter().collect()
}

/// Returns the stored programs of at most this number of threads.
fn programs_with_at_most(threads: usize) -> Vec<Program> {
    let candidates = programs().into_iter();
    candidates.filter(|p| p.threads.len() <= threads).collect()
}

/// The example `orderings` also runs programs with more threads.
#[test]
fn only_mp_violates_guarantees_on_small_programs() {
    let names = programs_with_at_most(2)
        .into_iter()
        .map(|program| program.name);
    let names: BTreeSet<String> = names.collect();
    let listed: BTreeSet<String> = MP_VIOLATIONS.lines().map(str::to_string).collect();
    let on_mp: BTreeSet<String> = names.intersection(&listed).cloned().collect();
    assert_eq!(on_mp.len(), 79);
    assert_eq!(forbidden("mp", 2), on_mp);
    for (name, threads) in [
        ("so", 2),
        ("so-strict", 3),
        ("seq", 3),
        ("cord", 2),
        ("wb", 3),
        ("tso/so", 3),
        ("tso/cord", 2),
        ("tso/wb", 3),
        ("tso/seq", 3),
    ] {
        assert_eq!(forbidden(name, threads), BTreeSet::new(), "{name}");
    }
}
