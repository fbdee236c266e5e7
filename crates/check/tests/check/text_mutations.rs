//! Typical mistakes in protocol files, each made in a shipped protocol. Each leads to a construction fault or a
//! shortest counterexample. The charts are kept under `tests/mutations` (refresh with `UPDATE_EXPECT=1`).

use crate::support::{parse_valid, property_name};
use cohkit_base::sequence::Sequence;
use cohkit_check::system;
use cohkit_engine::model::Model;
use cohkit_engine::replay::{replay_trace, FinalVerdict};
use cohkit_engine::report::{check, Outcome, Property};
use cohkit_engine::search::Options;
use cohkit_engine::trace::Trace;
use cohkit_protocol::construct::fault::Fault;
use cohkit_protocol::construct::{construct, ConstructionError};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_testing::mutations::mistakes::{Mistake, MISTAKES};
use expect_test::expect_file;
use std::path::PathBuf;

/// Consequence of a mistake.
struct Consequence {
    /// Name of the violated property or construction fault; `nothing` without one.
    name: String,
    /// Description of the mistake and its consequence, with the charts that show it.
    report: String,
}

impl Consequence {
    fn new(mistake: &Mistake, name: &str, message: &str, charts: Vec<String>) -> Consequence {
        let (description, charts) = (&mistake.description, charts.join("\n"));
        Consequence {
            name: name.to_string(),
            report: format!("{description}\n{name}: {message}\n\n{charts}"),
        }
    }

    /// The consequence that no sound home can be constructed.
    fn of_fault(mistake: &Mistake, fault: &Fault) -> Consequence {
        let charts = fault.explanations.iter().map(chart).collect();
        Consequence::new(mistake, fault.kind.name(), &fault.text, charts)
    }
}

/// Draws a message sequence.
fn chart(sequence: &Sequence) -> String {
    cohkit_chart::text(sequence, &cohkit_chart::Text::default())
}

/// Returns the home of a protocol with a mistake, or the fault of its construction.
fn construct_home(
    mistake: &Mistake,
    protocol: &Protocol,
    remotes: u16,
) -> Result<Controller, Consequence> {
    if let Home::Controller(home) = &protocol.home {
        return Ok(home.clone());
    }
    let construction = match construct(protocol) {
        Ok(construction) => construction,
        Err(ConstructionError::Fault(fault)) => {
            return Err(Consequence::of_fault(mistake, &fault));
        }
        Err(ConstructionError::Refused(refusal)) => {
            panic!("{}: {}", mistake.name, refusal.obstacle)
        }
    };
    if let Some(fault) = construction.fault() {
        return Err(Consequence::of_fault(mistake, fault));
    }
    Ok(match remotes {
        1 => construction.flat(true),
        _ => construction.factored(true),
    })
}

/// Returns the consequence of a mistake. Also replays the counterexample, if there is one.
fn consequence(mistake: &Mistake) -> Consequence {
    let protocol = parse_valid(&mistake.text());
    let mut systems = protocol.systems.iter();
    let system = systems
        .find(|system| system.name == mistake.system)
        .unwrap();
    let (remotes, lines) = (system.remotes, system.lines);
    let home = match construct_home(mistake, &protocol, remotes.total()) {
        Ok(home) => home,
        Err(consequence) => return consequence,
    };
    let options = system::Options::default();
    let model = system::model(&protocol, &home, remotes, lines, &options).unwrap();
    let search = Options {
        threads: 1,
        ..Options::default()
    };
    match check(&model, &search).unwrap().outcome {
        Outcome::Violated {
            property,
            message,
            trace,
        } => {
            assert_replays(mistake, &model, &property, &trace);
            let name = property_name(property);
            Consequence::new(mistake, &name, &message, vec![chart(&trace.sequence)])
        }
        _ => Consequence::new(mistake, "nothing", "", Vec::new()),
    }
}

/// Asserts that a counterexample, written as JSON and read again, leads to the same violation.
fn assert_replays(mistake: &Mistake, model: &Model, property: &Property, trace: &Trace) {
    let text = serde_json::to_string(trace).unwrap();
    let recorded: Trace = serde_json::from_str(&text).unwrap();
    let (replayed, verdict) = replay_trace(model, &recorded, Some(property))
        .unwrap_or_else(|reason| panic!("{}: {reason}", mistake.name));
    assert_eq!(replayed, *trace, "{}", mistake.name);
    match verdict {
        FinalVerdict::Violated {
            property: replayed_property,
            ..
        } => assert_eq!(replayed_property, *property, "{}", mistake.name),
        other => panic!("{}: {other:?} after the replay", mistake.name),
    }
}

/// Compares the consequence of each mistake with the expected fault and with the stored chart.
#[test]
fn every_mistake_is_detected_with_its_chart() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/mutations");
    let mut failures = Vec::new();
    for mistake in MISTAKES {
        let consequence = consequence(mistake);
        if consequence.name != mistake.expected_fault {
            failures.push(format!(
                "{}: expected {}, found {}",
                mistake.name, mistake.expected_fault, consequence.name
            ));
            continue;
        }
        let file = folder.join(format!("{}.txt", mistake.name));
        expect_file![file].assert_eq(&consequence.report);
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
