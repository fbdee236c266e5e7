//! Mistakes in protocol files are detected in runs by the oracle, the monitor or the watchdog, unless the construction
//! of the home rejects the protocol before.

use cohkit_testing::mutations::kept_without_permission;
use cohkit_testing::mutations::mistakes;
use cohkit_testing::setups;

use cohkit_application::shared_table::SharedTable;
use cohkit_protocol::construct::{construct, ConstructionError};
use cohkit_protocol::protocol::Home;
use cohkit_sim::explain::FailureKind;
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{home, run, NoScenario, RunError, Setup};
use kept_without_permission::{kept_without_permission, kept_without_permission_and_stale};
use mistakes::{Mistake, MISTAKES};
use std::sync::Arc;

/// Stage at which a mistake is detected.
#[derive(Debug, PartialEq)]
enum DetectionStage {
    /// No home can be constructed.
    Construction,
    /// A run fails.
    Run(FailureKind),
    /// Not detected in these runs.
    Undetected,
}

/// Returns the stage at which a mistake is detected.
fn detection_stage(mistake: &Mistake) -> DetectionStage {
    let remotes = if mistake.system.starts_with("one") {
        1
    } else {
        3
    };
    let protocol = setups::parse(&mistake.text());
    // A constructed home is run even if it has a fault.
    let home = match &protocol.home {
        Home::Controller(home) => home.clone(),
        Home::Policy(_) => match (construct(&protocol), remotes) {
            (Err(_), _) => return DetectionStage::Construction,
            (Ok(construction), 1) => construction.flat(true),
            (Ok(construction), _) => construction.factored(true),
        },
    };
    for seed in 0..40 {
        let setup = setups::torture_of(protocol.clone(), home.clone(), remotes, seed);
        match run(&setup) {
            Ok(_) => {}
            Err(RunError::Failure(failure)) => {
                assert!(!failure.sequence.steps.is_empty(), "{}", mistake.name);
                return DetectionStage::Run(failure.kind);
            }
            Err(error) => panic!("{}: {error}", mistake.name),
        }
    }
    DetectionStage::Undetected
}

#[test]
fn every_mistake_is_detected() {
    let mut missed = Vec::new();
    for mistake in MISTAKES {
        let stage = detection_stage(mistake);
        println!(
            "{}: {stage:?} (checker: {})",
            mistake.name, mistake.expected_fault
        );
        if stage == DetectionStage::Undetected {
            missed.push(format!("{}: {}", mistake.name, mistake.description));
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// Returns the failures of some seeds, with `remotes` remotes.
fn run_failures(text: &str, remotes: u16) -> impl Iterator<Item = (FailureKind, String)> {
    let protocol = setups::parse(text);
    let home = home(&protocol, remotes).expect("protocol with a home");
    (0..40).filter_map(move |seed| {
        let setup = setups::torture_of(protocol.clone(), home.clone(), remotes, seed);
        match run(&setup) {
            Ok(_) => None,
            Err(RunError::Failure(failure)) => Some((failure.kind, failure.text)),
            Err(error) => panic!("{error}"),
        }
    })
}

/// Regression: the simulator checked the bytes of an access only if the cache does not keep them. Here the cache keeps
/// them in a state without permission, where no other check applies. The checker reports a violation.
#[test]
fn access_bytes_are_checked_in_kept_lines() {
    let eci = setups::source("eci");
    assert_eq!(run_failures(&kept_without_permission(&eci), 2).next(), None);
    let is_stale_read = |(kind, text): (FailureKind, String)| {
        kind == FailureKind::DataValue && text.starts_with("DataOnce is sent with")
    };
    assert!(run_failures(&kept_without_permission_and_stale(&eci), 2).any(is_stale_read));
}

/// Regression: the simulator did not check the bound. It now reports the violation in the checker's words.
#[test]
fn exceeding_the_in_flight_bound_fails() {
    let msi = setups::source("msi");
    assert_eq!(run_failures(&msi, 3).next(), None);
    let bounded = msi.replace("\nremote cache", "\nbounds { in_flight 2 }\n\nremote cache");
    let (kind, text) = run_failures(&bounded, 3)
        .next()
        .expect("failure with three caches");
    assert_eq!(kind, FailureKind::InFlight, "{text}");
    assert!(text.starts_with("more than 2 messages in flight"), "{text}");
    // As many as in any state that the checker finds.
    let sufficient = msi.replace(
        "\nremote cache",
        "\nbounds { in_flight 12 }\n\nremote cache",
    );
    assert_eq!(run_failures(&sufficient, 3).next(), None);
}

/// `check`, `sim` and `rtl` reject a protocol whose home can be constructed but starves some requests. Regression:
/// `play` ran it.
#[test]
fn faulty_constructed_home_is_rejected() {
    let mistakes = MISTAKES.iter();
    let matching = mistakes.filter(|mistake| mistake.name == "ambiguous-answer-stranded");
    let text = matching
        .map(Mistake::text)
        .next()
        .expect("mistake with this name");
    let platform = Platform::shipped("enzian-dc-ddr").expect("shipped platform");
    let scenario = SharedTable {
        cached: false,
        rows: 1,
        contended: 1000,
        engines: 1,
        outstanding: 1,
        device: Some(1),
        threads: 1,
        thread: Some(1),
    };
    let setup = Setup::with_scenario(setups::parse(&text), platform, Arc::new(scenario));
    match setup.map(|_| ()) {
        Err(NoScenario::Home(ConstructionError::Fault(fault))) => {
            assert_eq!(fault.kind.name(), "dead end");
        }
        other => panic!("{other:?}"),
    }
}
