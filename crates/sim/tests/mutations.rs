//! Mistakes in protocol texts show in runs: the oracle, the monitor or the watchdog sees each,
//! unless the construction of the home refused the text before.

mod common;
#[path = "../../../tests/mutations/mistakes.rs"]
mod mistakes;

use cohkit_protocol::construct::construct;
use cohkit_protocol::protocol::Home;
use cohkit_sim::explain::FailureKind;
use cohkit_sim::simulation::{run, RunError};
use mistakes::{Mistake, MISTAKES};

/// How a mistake shows.
#[derive(Debug, PartialEq)]
enum Shows {
    /// No home can be constructed.
    AtConstruction,
    /// A run fails.
    InARun(FailureKind),
    /// Not in these runs.
    No,
}

fn shows(mistake: &Mistake) -> Shows {
    let remotes = if mistake.system.starts_with("one") {
        1
    } else {
        3
    };
    let protocol = common::parse(&mistake.text());
    // A home that can be constructed is run, whatever its fault.
    let home = match &protocol.home {
        Home::Controller(home) => home.clone(),
        Home::Policy(_) => match (construct(&protocol), remotes) {
            (Err(_), _) => return Shows::AtConstruction,
            (Ok(construction), 1) => construction.flat(true),
            (Ok(construction), _) => construction.factored(true),
        },
    };
    for seed in 0..40 {
        let setup = common::torture_of(protocol.clone(), home.clone(), remotes, seed);
        match run(&setup) {
            Ok(_) => {}
            Err(RunError::Failure(failure)) => {
                assert!(!failure.sequence.steps.is_empty(), "{}", mistake.name);
                return Shows::InARun(failure.kind);
            }
            Err(error) => panic!("{}: {error}", mistake.name),
        }
    }
    Shows::No
}

#[test]
fn every_mistake_shows() {
    let mut missed = Vec::new();
    for mistake in MISTAKES {
        let shows = shows(mistake);
        println!("{}: {shows:?} (checker: {})", mistake.name, mistake.found);
        if shows == Shows::No {
            missed.push(format!("{}: {}", mistake.name, mistake.story));
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
