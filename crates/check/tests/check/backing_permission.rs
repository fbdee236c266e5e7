//! Homes with backing permission: their behaviour below any outer protocol, in the checker's models and the executable
//! system.

use crate::support::{parse_valid, replace_once};
use cohkit_check::progress::progress;
use cohkit_check::system::{assumptions, model, Options};
use cohkit_engine::{check, Options as Search, Outcome, Property, Report};
use cohkit_murphi::Style;
use cohkit_protocol::construct;
use cohkit_system::data::Current;
use cohkit_system::state::{explore, Found, StepError, System, SystemState};
use cohkit_testing::rumur::{require, rumur, Compiled};

/// L1 caches below an L2, whose line is the memory of the L1s.
const INNER: &str = include_str!("../../../../protocols/mesi-l1.coh");

/// Options of a model with an outer level.
fn backing_options() -> Options {
    Options {
        parent_any: true,
        ..Options::default()
    }
}

/// Returns the checker's report for this number of L1s and lines, with every state explored.
fn check_text(text: &str, remotes: u16, lines: u8) -> Report {
    let protocol = parse_valid(text);
    let home = construct::home(&protocol, remotes).unwrap();
    let lowered_model = model(&protocol, &home, remotes, lines, &backing_options()).unwrap();
    let search = Search {
        decompose: false,
        symmetry: false,
        ..Search::default()
    };
    check(&lowered_model, &search).unwrap()
}

/// Returns states, transitions and depth by execution, or the properties violated at the shortest distance.
fn explore_text(text: &str, remotes: u16, lines: u8) -> Result<(u128, u128, u64), Vec<String>> {
    let protocol = parse_valid(text);
    let home = construct::home(&protocol, remotes).unwrap();
    let system = System::new(&protocol, &home, remotes, lines, 7).with_backing_permission();
    match explore(&system, SystemState::<Current>::new(&system), 50_000) {
        Found::Safe {
            states,
            transitions,
            depth,
            stuck_path: None,
        } => Ok((states.len() as u128, transitions.into(), depth)),
        Found::Safe { .. } => Err(vec!["drain".to_string()]),
        Found::Violated { errors, .. } => Err(errors
            .into_iter()
            .map(|error| match error {
                StepError::Violated(violation) => violation.property.to_string(),
                StepError::Exceeded(limit) => limit,
            })
            .collect()),
        Found::LimitReached { states } => panic!("more than {states}"),
    }
}

/// The abstract outer level covers every outer protocol. Model and execution must have the same states.
#[test]
fn inner_levels_are_verified_below_any_outer_protocol() {
    for (remotes, lines) in [(1, 1), (2, 1)] {
        let report = check_text(INNER, remotes, lines);
        assert_eq!(report.outcome, Outcome::Verified, "{remotes}x{lines}");
        let expected = (report.states, report.transitions, report.depth);
        assert_eq!(
            explore_text(INNER, remotes, lines),
            Ok(expected),
            "{remotes}x{lines}"
        );
    }
}

/// Accesses that begin can be performed, though the permission may be revoked before.
#[test]
fn accesses_below_backing_permission_can_be_performed() {
    let protocol = parse_valid(INNER);
    let home = construct::home(&protocol, 2).unwrap();
    let report = progress(
        &protocol,
        &home,
        (2, 1),
        &backing_options(),
        &Search::default(),
    )
    .unwrap();
    assert_eq!(report.outcome, Outcome::Verified);
    assert!(
        report.never_started.is_empty(),
        "{:?}",
        report.never_started
    );
}

/// Each fault violates the expected property in both engines.
#[test]
fn faults_below_a_backing_permission_are_refuted() {
    let faults = [
        // The home grants more permission than it has.
        (
            "I  | GetS if memory writes                        | send DataE",
            "I  | GetS if owner == none                        | send DataE",
            "inclusion",
        ),
        // The home acknowledges a recall before the sharers have.
        (
            "S     | clean_invalidate                          | send Inv to sharers, left := count(sharers), sharers := {}    | RI",
            "S     | clean_invalidate                          | acknowledge clean_invalidate                                  | LI",
            "single writer",
        ),
        // The owner's dirty data is lost when the line is revoked.
        (
            "RI    | Dirty                                     | write, left := 0",
            "RI    | Dirty                                     | left := 0",
            "data value",
        ),
        // A recall stalls for ever.
        (
            "  X     | clean_invalidate                          | send Inv to owner, left := 1, owner := none                   | RI\n",
            "  X     | clean_invalidate                          | stall\n",
            "drain",
        ),
        // Requests are served while the line is locked by the outer level.
        (
            "  SI XS XI RS RI LS LI | GetS GetM                  | stall",
            "  LI | GetS | send DataS, sharers := { sender } | S\n  SI XS XI RS RI LS | GetS GetM | stall\n  LI | GetM | stall",
            "single writer",
        ),
    ];
    for (from, to, property) in faults {
        let text = replace_once(INNER, from, to);
        let report = check_text(&text, 2, 1);
        let execution_errors = explore_text(&text, 2, 1);
        let Outcome::Violated {
            property: violated, ..
        } = &report.outcome
        else {
            panic!("{to}: {:?}", report.outcome)
        };
        let violated = match violated {
            Property::Invariant(name) | Property::Assertion(name) => name.to_string(),
            Property::Drain => "drain".to_string(),
            other => format!("{other:?}"),
        };
        let execution_errors = execution_errors.expect_err("violation found by execution");
        assert!(
            execution_errors.contains(&violated),
            "{to}: {violated}, {execution_errors:?}"
        );
        assert_eq!(violated, property, "{to}");
    }
}

/// The export includes the outer level. The faulty home grants more permission than it has.
#[test]
fn rumur_agrees_on_backing_permission() {
    if !require("rumur") {
        return;
    }
    for (text, expected) in [
        (INNER.to_string(), true),
        (
            replace_once(INNER, "GetS if memory writes ", "GetS if owner == none "),
            false,
        ),
    ] {
        let protocol = parse_valid(&text);
        let home = construct::home(&protocol, 2).unwrap();
        let lowered = model(&protocol, &home, 2, 1, &backing_options()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (holds, states, output) =
            rumur(&lowered, Style::Plain, Compiled::Unoptimised, folder.path());
        assert_eq!(holds, expected, "{output}");
        if expected {
            assert_eq!(check_text(&text, 2, 1).states, u128::from(states));
        }
    }
}

/// A verdict below an outer level has one more assumption. A home that cannot give up its memory is rejected.
#[test]
fn verdict_lists_backing_permission_assumptions() {
    let protocol = parse_valid(INNER);
    let named = |name: &str| protocol.systems.iter().find(|s| s.name == name).unwrap();
    assert!(named("below_any").parent_any && !named("one_cluster").parent_any);
    assert_eq!(
        assumptions(&protocol, false).len() + 1,
        assumptions(&protocol, true).len()
    );
    // A home without local operations has no operation that revokes its memory.
    let mesi = parse_valid(include_str!("../../../../protocols/mesi.coh"));
    let home = construct::home(&mesi, 2).unwrap();
    let error = model(&mesi, &home, 2, 1, &backing_options())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no local operation that gives up the permission"),
        "{error}"
    );
}
