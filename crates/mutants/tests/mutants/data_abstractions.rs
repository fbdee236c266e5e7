//! Comparison of two data abstractions on mutants: one bit per copy (*current*), and the words that stores write.
//!
//! A failure means that the bits find a violation after more steps than the words or not at all, or one that the words
//! do not have. A search that reaches its limit of states is undecided, and its mutant is not compared.

use cohkit_mutants::mutants;
use cohkit_protocol::construct;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::text::{composes, parse};
use cohkit_system::data::{Current, Data, Words};
use cohkit_system::state::{explore, Found, Step, System, SystemState, DEFAULT_CHANNEL_CAPACITY};
use std::path::Path;

/// Maximum number of states to visit, in breadth-first order. With words, the number of states is unbounded.
const MAX_STATES: usize = 2_000;

/// Depth of the first violation.
#[derive(Clone, Copy)]
enum FirstViolation {
    /// After this number of steps.
    After(usize),
    /// The search has reached its limit without a violation.
    Undecided,
    /// No violation in any state.
    Never,
}

/// Searches a system with the data abstraction `D`.
fn first_violation<D: Data>(system: &System) -> FirstViolation {
    let result: Found<SystemState<D>, Step> = explore(system, SystemState::new(system), MAX_STATES);
    match result {
        Found::Violated { path, .. } => FirstViolation::After(path.len()),
        Found::Safe { .. } => FirstViolation::Never,
        Found::LimitReached { .. } => FirstViolation::Undecided,
    }
}

/// Describes the first disagreement of both abstractions on a mutant, if any. `original_home` is the home of the
/// original if the mutant keeps it.
fn find_disagreement(
    protocol: &Protocol,
    original_home: Option<&Controller>,
    remotes: Remotes,
) -> Option<String> {
    let constructed;
    let home = match (&protocol.home, original_home) {
        (Home::Controller(home), _) => home,
        (Home::Policy(_), Some(home)) => home,
        (Home::Policy(_), None) => {
            constructed = construct::home(protocol, remotes.total()).ok()?;
            &constructed
        }
    };
    let system = System::new(
        protocol,
        home,
        remotes,
        protocol.homes as u8,
        DEFAULT_CHANNEL_CAPACITY,
    );
    match (
        first_violation::<Current>(&system),
        first_violation::<Words>(&system),
    ) {
        (FirstViolation::Never, FirstViolation::After(steps)) => Some(format!(
            "words detect a violation after {steps} steps, bits never"
        )),
        (FirstViolation::After(bits), FirstViolation::After(words)) if bits > words => Some(
            format!("words detect a violation after {words} steps, bits after {bits}"),
        ),
        (FirstViolation::After(steps), FirstViolation::Never) => Some(format!(
            "bits detect a violation after {steps} steps, words never"
        )),
        // The bits find it at the same depth or earlier, or a search is undecided.
        _ => None,
    }
}

/// Compares every `stride`-th mutant of each protocol. Returns the number of mutants compared.
fn compare_mutants(stride: usize) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for folder in ["protocols", "ordering", "tests/kinds"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            if composes(&text) {
                continue;
            }
            let original = parse(&text).unwrap();
            let remotes = match original.kinds.len() {
                1 => Remotes::from(2),
                _ => original.systems[0].remotes,
            };
            let home = construct::home(&original, remotes.total()).unwrap();
            for mutant in mutants(&text).iter().step_by(stride) {
                let Ok(protocol) = parse(&mutant.text) else {
                    continue;
                };
                count += 1;
                let same_home = Some(&home).filter(|_| !mutant.changes_home);
                if let Some(difference) = find_disagreement(&protocol, same_home, remotes) {
                    panic!("{}: {}: {difference}", path.display(), mutant.description);
                }
            }
        }
    }
    count
}

/// A sample of the mutants, for every test run.
#[test]
fn abstractions_agree_on_sampled_mutants() {
    let count = compare_mutants(50);
    assert!(count > 120, "only {count} mutants are valid");
}

/// Every mutant, for `make soak`.
#[test]
#[ignore = "minutes, for `make soak`"]
fn abstractions_agree_on_all_mutants() {
    let count = compare_mutants(1);
    println!("{count} mutants: bits and words agree");
    assert!(count > 8_000, "only {count} mutants are valid");
}
