//! Comparison of all engines on random protocols. The example `fuzz_protocols` compares many more. A failure prints the
//! command that repeats it.

use crate::faults::{Fault, FAULTS};
use crate::operators::{self, AssignmentForm};
use cohkit_murphi::Style;
use cohkit_protocol::controller::Effect;
use cohkit_testing::random_protocols::generate::{
    self, ARRAYS, COMBINED, COUPLED_LINES, DEFERRED_STORES, POSTED,
};
use cohkit_testing::random_protocols::judge::{
    self, AgreedVerdict, EngineComparison, Found, JudgeError,
};
use cohkit_testing::rumur;
use std::collections::BTreeSet;

/// Number of protocols of the basic generator.
const PROTOCOL_COUNT: u64 = 200;

/// Returns the command that repeats a comparison, `against` our engines (`ours`) or `rumur`.
fn rerun_command(seed: u64, against: &str) -> String {
    format!("cargo run -p cohkit-check --example fuzz_protocols -- --seed {seed} --count 1 --against {against}")
}

/// Compares execution with the model: interpreted, compiled, up to symmetry, and printed and read again.
#[test]
fn execution_and_all_model_forms_agree_on_random_protocols() {
    let mut agreed = Vec::new();
    // Regression: the invariant of the last seed sums so many counters that the printed model was nested too deeply to
    // be read.
    for seed in (0..PROTOCOL_COUNT)
        .chain([13_269])
        .chain(ARRAYS..ARRAYS + 40)
        .chain(COUPLED_LINES..COUPLED_LINES + 40)
        .chain(DEFERRED_STORES..DEFERRED_STORES + 40)
        .chain(POSTED..POSTED + 60)
    {
        match judge::compare_engines(&generate::protocol(seed), seed) {
            Ok(judged) => agreed.push(judged.agreed),
            // The generator made one row of this protocol invalid, and the front end rejects it.
            Err(JudgeError::Rejected(reason)) => assert!(reason.starts_with("error"), "{reason}"),
            Err(JudgeError::Disagreement(reason)) => {
                panic!("{}\n{reason}", rerun_command(seed, "ours"))
            }
        }
    }
    // The sample is significant: most protocols are accepted, and there are large ones of either verdict.
    let count = |predicate: fn(&AgreedVerdict) -> bool| {
        agreed.iter().filter(|verdict| predicate(verdict)).count()
    };
    assert!(agreed.len() > 180, "only {} are accepted", agreed.len());
    assert!(
        count(|verdict| matches!(verdict, AgreedVerdict::Verified(states) if *states > 100)) > 50
    );
    assert!(count(|verdict| *verdict == AgreedVerdict::Violated) > 20);
}

/// Number of states of a verified protocol, otherwise 0.
fn verified(judged: &EngineComparison) -> usize {
    match judged.agreed {
        AgreedVerdict::Verified(states) => states,
        _ => 0,
    }
}

/// Designs of several parts, with registers that couple lines, posted, deferred and atomic stores, several homes, and
/// networks.
#[test]
fn all_engines_agree_on_random_designs() {
    let mut verdicts = Vec::new();
    let mut rejected = 0;
    let mut networks = 0;
    for seed in COMBINED..COMBINED + PROTOCOL_COUNT {
        let text = generate::protocol(seed);
        match judge::compare_engines(&text, seed) {
            Ok(judged) => {
                networks += usize::from(verified(&judged) > 0 && text.contains("network "));
                verdicts.push(judged);
            }
            Err(JudgeError::Rejected(reason)) => {
                assert!(reason.starts_with("error"), "{reason}");
                rejected += 1;
            }
            Err(JudgeError::Disagreement(reason)) => {
                panic!("{}\n{reason}", rerun_command(seed, "ours"))
            }
        }
    }
    let count = |predicate: fn(&EngineComparison) -> bool| {
        verdicts.iter().filter(|judged| predicate(judged)).count()
    };
    assert!(rejected < 60, "{rejected} are rejected");
    // Enough protocols of each kind are judged.
    let counts = [
        ("verified with networks", networks, 30),
        ("verified", count(|judged| verified(judged) > 0), 90),
        (
            "verified and large",
            count(|judged| verified(judged) > 100),
            30,
        ),
        (
            "violated",
            count(|judged| judged.agreed == AgreedVerdict::Violated),
            15,
        ),
        (
            "verified and stopping",
            count(|judged| verified(judged) > 0 && !judged.makes_progress),
            8,
        ),
        ("simulated", count(|judged| judged.simulated), 120),
        ("under programs", count(|judged| judged.programs > 3), 40),
    ];
    for (description, found, minimum) in counts {
        assert!(found > minimum, "{found} are {description}");
    }
}

/// Compares verdicts and numbers of states with an independent checker, on a small sample.
#[test]
fn rumur_agrees_on_random_protocols() {
    if !rumur::require("rumur") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Regression: the last seed compares with a negative amount, which the type that Rumur chose could not represent.
    for seed in (0..20)
        .chain([27])
        .chain(ARRAYS..ARRAYS + 4)
        .chain(COUPLED_LINES..COUPLED_LINES + 4)
        .chain(DEFERRED_STORES..DEFERRED_STORES + 4)
        .chain(POSTED..POSTED + 8)
        .chain(COMBINED..COMBINED + 12)
    {
        let checker = |model: &_| {
            rumur::rumur(
                model,
                Style::Plain,
                rumur::Compiled::Unoptimised,
                folder.path(),
            )
        };
        match judge::rumur(&generate::protocol(seed), checker) {
            Ok(_) | Err(JudgeError::Rejected(_)) => {}
            Err(JudgeError::Disagreement(reason)) => {
                panic!("{}\n{reason}", rerun_command(seed, "rumur"))
            }
        }
    }
}

/// The first fault was real: the lowering lost the set in `x += e`.
#[test]
fn random_protocols_detect_seeded_lowering_faults() {
    let mut undetected: Vec<&Fault> = FAULTS.iter().collect();
    for seed in (0..PROTOCOL_COUNT).chain(COMBINED..COMBINED + PROTOCOL_COUNT) {
        let Ok(case) = judge::case(&generate::protocol(seed)) else {
            continue;
        };
        if undetected.is_empty() {
            return;
        }
        if matches!(case.found, Found::LimitReached { .. }) {
            continue;
        }
        undetected.retain(|fault| {
            let faulty = fault.apply(&case.protocol);
            let model = judge::safety(&faulty, judge::home(&faulty), case.remotes);
            let model = model.unwrap_or_else(|reason| panic!("{}: {reason:?}", fault.name));
            judge::check_model(&case, &model).is_ok()
        });
    }
    let undetected: Vec<&str> = undetected.iter().map(|fault| fault.name).collect();
    assert!(undetected.is_empty(), "undetected: {undetected:?}");
}

/// Parts of protocol files, each of which some random protocol must contain.
const CONSTRUCTS: [&str; 64] = [
    ":=",
    "+=",
    "-=",
    " + ",
    " - ",
    " == ",
    " != ",
    " < ",
    " <= ",
    " > ",
    " >= ",
    " and ",
    " or ",
    "not ",
    " in ",
    "count(",
    "{}",
    "{ sender }",
    "{ self }",
    "none",
    "true",
    "false",
    ": bool",
    ": count",
    ": 0..",
    ": remote",
    ": set of remote",
    "ordered ",
    "in_flight",
    "any -> remote",
    "remotes 1",
    "remotes 2",
    "remotes 3",
    "invariant",
    "stall",
    "done",
    "write",
    "(line, f",
    "0..wide per remote",
    "w[sender] :=",
    " w[sender] ==",
    "= w[sender]",
    "w := wide",
    "for r in ",
    "wide per 2",
    "u := ",
    "u[w[sender]] :=",
    "defer",
    "write deferred, write",
    "write, write deferred",
    "open += 1",
    "atomic",
    "send Old, write",
    "network ",
    " capacity ",
    "registers {",
    "lines 2",
    "homes 2",
    "- | fence if free",
    "| release if free",
    "| send Nack",
    "if not busy | defer, busy := true",
    "one := any sharers",
    "write deferred, send Written to wants",
];

/// Agreement is significant only for constructs that the generators produce.
#[test]
fn random_protocols_use_every_row_construct() {
    let mut covered: BTreeSet<&str> = BTreeSet::new();
    for seed in (0..PROTOCOL_COUNT)
        .chain(ARRAYS..ARRAYS + 40)
        .chain(DEFERRED_STORES..DEFERRED_STORES + 40)
        .chain(POSTED..POSTED + 40)
        .chain(COMBINED..COMBINED + PROTOCOL_COUNT)
    {
        let text = generate::protocol(seed);
        covered.extend(
            CONSTRUCTS
                .iter()
                .filter(|construct| text.contains(**construct)),
        );
    }
    let missing: Vec<&&str> = CONSTRUCTS
        .iter()
        .filter(|construct| !covered.contains(*construct))
        .collect();
    assert!(missing.is_empty(), "no random protocol has {missing:?}");
}

/// Returns the effects of all rows of a protocol, which have no source positions.
fn row_effects(text: &str) -> Vec<Effect> {
    let protocol = cohkit_protocol::text::parse(text).expect("protocol without errors");
    let rules = [&protocol.remote, judge::home(&protocol)].map(|agent| agent.rules.clone());
    rules
        .into_iter()
        .flatten()
        .map(|rule| rule.effect)
        .collect()
}

/// Returns the verdict on which execution and all forms of the model agree. Panics if they differ.
fn engine_verdict(text: &str) -> AgreedVerdict {
    match judge::case(text).and_then(|case| judge::models(&case)) {
        Ok(agreed) => agreed,
        Err(JudgeError::Rejected(reason) | JudgeError::Disagreement(reason)) => {
            panic!("{reason}\n{text}")
        }
    }
}

/// Execution, the interpreted and compiled model, and its Murphi export agree over all values of all types.
/// `crates/protocol/tests/execute.rs` tests execution itself.
#[test]
fn operators_agree_between_model_and_execution() {
    for case in &operators::TYPES {
        let verdict = engine_verdict(&operators::expression_protocol(case));
        assert!(
            matches!(verdict, AgreedVerdict::Verified(_)),
            "{}: {verdict:?}",
            case.name
        );
        for &assignment in case.assignments {
            let [short, long] = [AssignmentForm::Short, AssignmentForm::Long]
                .map(|form| operators::assignment_protocol(case, assignment, form));
            assert_eq!(row_effects(&short), row_effects(&long), "{short}");
            let verdict = engine_verdict(&short);
            assert!(
                matches!(verdict, AgreedVerdict::Verified(_)),
                "{verdict:?}\n{short}"
            );
            if case.name != "set of remote" {
                for text in operators::out_of_range_protocols(case, assignment.operator) {
                    assert_eq!(engine_verdict(&text), AgreedVerdict::Violated, "{text}");
                }
            }
        }
    }
}
