//! Batches of programs on a protocol, checked against a memory model.

use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;

use crate::axioms::{allowed, Model};
use crate::lines::Lines;
use crate::program::Program;
use crate::run::{run_on, Options, RunResult};

/// Result of a batch of programs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BatchResult {
    /// Number of programs that were run to completion.
    pub programs: usize,
    /// Number of states visited, in all runs.
    pub states: usize,
    /// Names of the programs with a forbidden outcome.
    pub forbidden: Vec<String>,
}

impl BatchResult {
    /// Combines the results of two batches.
    pub fn merge(mut self, other: BatchResult) -> BatchResult {
        self.programs += other.programs;
        self.states += other.states;
        self.forbidden.extend(other.forbidden);
        self
    }
}

/// Runs programs with the same number of threads on caches of the first kind, and compares their outcomes with those of
/// a model. `home` is the home for this number of caches.
///
/// # Errors
/// The first program that cannot be run to completion, and the reason.
pub fn check_outcomes(
    protocol: &Protocol,
    home: &Controller,
    programs: &[Program],
    model: Model,
    options: &Options,
) -> Result<BatchResult, String> {
    let threads = programs.first().map_or(0, |first| first.threads.len()) as u8;
    let locations = programs.iter().map(|program| program.locations.len());
    let locations = locations.max().unwrap_or(0) as u8;
    let mut lines = Lines::new(protocol, home, threads, locations, options.channel_capacity);
    let mut total = BatchResult::default();
    for program in programs {
        match run_on(&mut lines, program, options, &mut || true) {
            RunResult::Outcomes { outcomes, states } => {
                total.programs += 1;
                total.states += states;
                if !outcomes.is_subset(&allowed(program, model)?) {
                    total.forbidden.push(program.name.clone());
                }
            }
            other => return Err(format!("{} on {}: {other:?}", program.name, protocol.name)),
        }
    }
    Ok(total)
}
