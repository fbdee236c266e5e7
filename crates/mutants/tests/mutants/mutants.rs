//! A sample of the mutants of every shipped protocol: each is rejected, refuted, or listed as equivalent with a reason.
//! A failure means that the checks miss a fault, or that the list of equivalent mutants is wrong. `make soak` judges
//! all mutants.

use cohkit_check::system;
use cohkit_engine::coverage::coverage;
use cohkit_engine::search::Options;
use cohkit_engine::{check, Outcome};
use cohkit_protocol::construct::{construct, Construction};
use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::text::parse;
use cohkit_testing::mutants::selection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Distance between the numbers of judged mutants: about 150 mutants over all protocols.
const STRIDE: usize = 50;

/// A surviving mutant that is not listed as equivalent shows a gap in the checks.
#[test]
fn sampled_mutants_do_not_survive() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let known = selection::known(&root);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut problems = Vec::new();
    for (name, text) in selection::shipped(&root) {
        let count = cohkit_mutants::mutants(&text).len();
        assert!(count > 150, "{name} has only {count} mutants");
        let selection = selection::MutantSelection {
            kinds: None,
            from: 0,
            every: STRIDE,
        };
        let results = selection::judge(&name, &text, &known, &selection, threads);
        println!("{name}: {:?}", results.sums());
        problems.extend(results.problems);
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// Needs four caches: a writer, and three readers that receive invalidations. With at most three caches, this mutant
/// survives.
#[test]
fn miscounted_third_acknowledgement_is_killed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["write-through", "write-through-two-step"] {
        let texts = selection::shipped(&root);
        let (_, text) = texts.iter().find(|(text, _)| text == name).unwrap();
        let description = "W | InvAck if owed > 1 | owed := owed - 1 | stay: its actions twice";
        let mutants = cohkit_mutants::mutants(text);
        let mutant = mutants
            .iter()
            .find(|mutant| mutant.description == description)
            .unwrap();
        let verdict = cohkit_mutants::Judge::new(text).unwrap().verdict(mutant);
        assert_eq!(verdict, cohkit_mutants::MutantVerdict::Refuted, "{name}");
    }
}

/// Every mutation operator breaks the write-through protocol in some place.
#[test]
fn each_mutation_operator_is_detected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let texts = selection::shipped(&root);
    let (_, text) = texts
        .iter()
        .find(|(name, _)| name == "write-through")
        .expect("the protocol is shipped");
    let judge = cohkit_mutants::Judge::new(text).expect("the protocol has no violation");
    let mutants = cohkit_mutants::mutants(text);
    for kind in [
        "actions swapped",
        "another comparison",
        "another receiver",
        "bytes from elsewhere",
        "count off by one",
        "member not added",
        "set not cleared",
    ] {
        let mut mutants_of_kind = mutants.iter().filter(|mutant| mutant.kind == kind);
        let is_refuted = mutants_of_kind
            .any(|mutant| judge.verdict(mutant) == cohkit_mutants::MutantVerdict::Refuted);
        assert!(is_refuted, "no mutant of the operator `{kind}` is refuted");
    }
}

/// A row as the list of equivalent mutants names it. It stands for all rows of this form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct ListedRow<'a> {
    /// Name of the state.
    state: &'a str,
    /// Name of the message.
    message: &'a str,
    /// True if the row has a guard.
    has_guard: bool,
}

/// A complete search confirms that rows listed as never taken are not taken, with the number of remotes of the
/// protocol's own systems.
#[test]
fn rows_listed_as_unreachable_are_never_taken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let known = selection::known(&root);
    let mut rows: BTreeMap<&str, BTreeSet<ListedRow>> = BTreeMap::new();
    for entry in known.with_reason("The row is never taken") {
        let (text, row) = entry.split_once(": ").expect(entry);
        let mut cells = row.split(" | ");
        let (state, event) = (cells.next().expect(entry), cells.next().expect(entry));
        let (message, has_guard) = match event.split_once(" if ") {
            Some((message, _)) => (message, true),
            None => (event, false),
        };
        rows.entry(text).or_default().insert(ListedRow {
            state,
            message,
            has_guard,
        });
    }
    assert!(
        rows.len() > 2,
        "too few protocols have listed rows: {rows:?}"
    );
    for (name, text) in selection::shipped(&root) {
        let Some(rows) = rows.get(name.as_str()) else {
            continue;
        };
        for (row, taken) in rows.iter().zip(count_taken(&parse(&text).unwrap(), rows)) {
            // One rule matches the row, and no transition took it.
            assert_eq!(taken, [Some(0)], "{name}: {row:?} is taken");
        }
    }
}

/// Returns how often each of the rows was taken, for each controller rule that matches it.
fn count_taken(protocol: &Protocol, rows: &BTreeSet<ListedRow>) -> Vec<Vec<Option<u128>>> {
    let systems = protocol.systems.iter().filter(|system| system.lines == 1);
    let remotes = systems.map(|system| system.remotes.total()).max().unwrap();
    let home = match &protocol.home {
        Home::Controller(home) => home.clone(),
        Home::Policy(_) => {
            let construction = construct(protocol).and_then(Construction::sound).unwrap();
            construction.controller(remotes)
        }
    };
    let lowering = system::Options::default();
    let system_model = system::system_model(protocol, &home, remotes, 1, &lowering).unwrap();
    let options = Options::default();
    let report = check(&system_model.model, &options).unwrap();
    assert_eq!(report.outcome, Outcome::Verified);
    let coverage = coverage(&system_model.model, &report, &options).unwrap();
    let mut counts = vec![Vec::new(); rows.len()];
    for (is_home, controller) in [(false, &protocol.remote), (true, &home)] {
        let count = system_model.row_counts(is_home, controller, &coverage);
        for (rule, count) in controller.rules.iter().zip(count) {
            let state = &controller.states[rule.state.index()].name;
            let Event::Message(message) = rule.event else {
                continue;
            };
            let row = ListedRow {
                state,
                message: &protocol.message(message).name,
                has_guard: rule.guard.is_some(),
            };
            if let Some(index) = rows.iter().position(|listed| *listed == row) {
                counts[index].push(count);
            }
        }
    }
    counts
}
