//! Covers: conditions and statements that some run must reach. Judged after all reachable states are known; every rule
//! is fired again for them, so they cost nothing before.

use super::worker::Worker;
use super::{FailedCheck, Path, Reason, Search, Verdict, NO_START};
use crate::program::RuleSelection;

/// Verdict on the covers of a search that has found all states: holds, or lists those that no run reaches.
pub(super) fn check_covers(search: &Search) -> Verdict {
    let covers = &search.program.properties.covers;
    if covers.is_empty() {
        return Verdict::Holds;
    }
    let mut worker = Worker::new(search.program, search.view);
    for start in 0..search.program.start_count() {
        let _ = worker.machine.start(start);
    }
    let has_statement_covers = covers.iter().any(Option::is_none);
    for state in 0..search.store.len() {
        if worker.machine.covered.iter().all(|&is_covered| is_covered) {
            return Verdict::Holds;
        }
        if state % 256 == 0 && search.is_cancelled() {
            return Verdict::Undecided(Reason::Interrupted);
        }
        worker.load(&search.store, state);
        for (cover, entry) in covers.iter().enumerate() {
            if let (Some(entry), false) = (*entry, worker.machine.covered[cover]) {
                match worker.machine.run(entry) {
                    Ok(is_covered) => worker.machine.covered[cover] = is_covered,
                    Err(fault) => {
                        return Verdict::FailedCheck(FailedCheck::Fault(fault), search.path(state))
                    }
                }
            }
        }
        if has_statement_covers {
            let _ = worker.expand(RuleSelection::All, |_, _| Ok(()));
        }
    }
    let cover_results = worker.machine.covered.iter().zip(0..);
    let uncovered: Vec<u32> = cover_results.filter(|c| !c.0).map(|c| c.1).collect();
    match uncovered.is_empty() {
        false => {
            // No trace shows an unreached cover, so the path is only a start state, if one exists.
            let path = match search.store.len() {
                0 => Path {
                    start: NO_START,
                    rules: Vec::new(),
                },
                _ => search.path(0),
            };
            Verdict::FailedCheck(FailedCheck::Uncovered(uncovered), path)
        }
        true => Verdict::Holds,
    }
}
