//! Typical mistakes in protocol files, each made in a shipped protocol. Each leads to a construction fault or a
//! shortest counterexample. The charts are kept under `tests/mutations` (refresh with `UPDATE_EXPECT=1`).

use cohkit_testing::mutations::mistakes;

use cohkit_check::system;
use cohkit_engine::replay::{replay_trace, FinalVerdict};
use cohkit_engine::report::{check, Outcome};
use cohkit_engine::search::Options;
use cohkit_engine::trace::Trace;
use cohkit_protocol::construct::{construct, ConstructionError};
use cohkit_protocol::protocol::Home;
use cohkit_protocol::text;
use expect_test::expect_file;
use mistakes::{Mistake, MISTAKES};
use std::path::PathBuf;

/// Returns the consequence of a mistake: the name of the violated property or construction fault, and a report
/// with the charts that show it. Also replays the counterexample.
fn consequence(mistake: &Mistake) -> (String, String) {
    let text = mistake.text();
    let protocol = text::parse(&text).unwrap_or_else(|errors| {
        panic!(
            "{}: {}",
            mistake.name,
            errors
                .iter()
                .map(|error| error.render("text", &text, false))
                .collect::<String>()
        )
    });
    let chart = |sequence: &_| cohkit_chart::text(sequence, &cohkit_chart::Text::default());
    let report_of = |kind: &str, text: &str, charts: Vec<String>| {
        (
            kind.to_string(),
            format!(
                "{}\n{kind}: {text}\n\n{}",
                mistake.description,
                charts.join("\n")
            ),
        )
    };
    let system = protocol
        .systems
        .iter()
        .find(|system| system.name == mistake.system)
        .unwrap();
    let home = match &protocol.home {
        Home::Controller(home) => home.clone(),
        Home::Policy(_) => match construct(&protocol) {
            Err(ConstructionError::Refused(refusal)) => {
                panic!("{}: {}", mistake.name, refusal.obstacle)
            }
            Err(ConstructionError::Fault(fault)) => {
                return report_of(
                    fault.kind.name(),
                    &fault.text,
                    fault.explanations.iter().map(chart).collect(),
                );
            }
            Ok(construction) => {
                if let Some(fault) = construction.fault() {
                    return report_of(
                        fault.kind.name(),
                        &fault.text,
                        fault.explanations.iter().map(chart).collect(),
                    );
                }
                if system.remotes.total() == 1 {
                    construction.flat(true)
                } else {
                    construction.factored(true)
                }
            }
        },
    };
    let model = system::model(
        &protocol,
        &home,
        system.remotes,
        system.lines,
        &system::Options::default(),
    )
    .unwrap();
    let report = check(
        &model,
        &Options {
            threads: 1,
            ..Options::default()
        },
    )
    .unwrap();
    match report.outcome {
        Outcome::Violated {
            property,
            message,
            trace,
        } => {
            // The trace is replayed from its JSON.
            let text = serde_json::to_string(&trace).unwrap();
            let recorded: Trace = serde_json::from_str(&text).unwrap();
            let (replayed, ending) = replay_trace(&model, &recorded, Some(&property))
                .unwrap_or_else(|reason| panic!("{}: {reason}", mistake.name));
            assert_eq!(replayed, *trace, "{}", mistake.name);
            match ending {
                FinalVerdict::Violated {
                    property: replayed_property,
                    ..
                } => assert_eq!(replayed_property, property),
                other => panic!("{}: {other:?}", mistake.name),
            }
            let name = match &property {
                cohkit_engine::report::Property::Invariant(name)
                | cohkit_engine::report::Property::Assertion(name) => name.clone(),
                other => other.to_string(),
            };
            report_of(&name, &message, vec![chart(&trace.sequence)])
        }
        _ => report_of("nothing", "", Vec::new()),
    }
}

/// Compares the consequence of each mistake with the expected fault and with the stored chart.
#[test]
fn every_mistake_is_detected_with_its_chart() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/mutations");
    let mut failures = Vec::new();
    for mistake in MISTAKES {
        let (found, report) = consequence(mistake);
        if found != mistake.expected_fault {
            failures.push(format!(
                "{}: expected {}, found {found}",
                mistake.name, mistake.expected_fault
            ));
            continue;
        }
        expect_file![folder.join(format!("{}.txt", mistake.name))].assert_eq(&report);
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
