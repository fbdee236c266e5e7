//! Litmus tests in the simulator: an observed outcome decides, an outcome that was not observed does not.

use super::{
    comparison, cores_key, cores_text, home, kinds_text, observation, observation_text,
    outcome_list, outcome_values, quantifier_key, unsupported_test, Expected, LitmusOptions,
    MemorySystem, Report, Test, TestError,
};
use crate::outcome::{ExitStatus, Failure};
use crate::shell_word::quoted;
use crate::source::Source;
use cohkit_base::words::counted;
use cohkit_litmus::expectation::Observation;
use cohkit_litmus::program::{Outcome, Program, Quantifier};
use cohkit_litmus::timed::{
    clusters, observe_on_kinds as observe, Level, Machine, ObserveError, Options as Runs,
    SeedOutcomes,
};
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Runs a test `runs` times, with consecutive seeds from `seed` on. On two levels of caches, the machines have one
/// cluster per thread, one per two threads, and one for all.
///
/// # Errors
/// The test cannot run on the protocol, no home can be constructed, or the runs were interrupted.
pub(super) fn run(
    (source, memory_system): (&Source, MemorySystem),
    test: &Test,
    litmus_options: &LitmusOptions,
    (seed, runs): (u64, u64),
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<Report, TestError> {
    let Test {
        file,
        program,
        store_variants,
        ..
    } = test;
    let threads = program.threads.len() as u16;
    let lower = memory_system.lower.first().map(|level| &level.source);
    let machines = machines(source, lower, threads)?;
    let allowed = litmus_options.allowed(program)?;
    let cores = litmus_options.cores;
    let runs = Runs { cores, runs, seed };
    let (outcomes, reason_not_run) =
        match observe(&machines, &test.kinds(), program, &runs, should_continue) {
            Ok(outcomes) => (outcomes, None),
            Err(ObserveError::Interrupted) => {
                return Err(Failure::new(ExitStatus::Interrupted, "interrupted").into())
            }
            // The threads may run when placed on other kinds.
            Err(ObserveError::Lacks(reason) | ObserveError::Cannot(reason))
                if source.protocol.several_tables() =>
            {
                (SeedOutcomes::default(), Some(reason))
            }
            Err(ObserveError::Lacks(reason) | ObserveError::Cannot(reason)) => {
                return Err(unsupported_test(source, program, &reason).into())
            }
        };
    let simulated_test = SimulatedTest {
        protocol: &source.protocol.name,
        path: memory_system.file,
        file: file.as_deref(),
        program,
        kinds: test.kind_names(memory_system),
        store_variants: store_variants.as_deref(),
        options: litmus_options.clone(),
        expected: Expected::of(test, litmus_options, true),
        seed,
        outcomes,
        reason_not_run,
        allowed,
    };
    Ok(Report {
        outcome: simulated_test.outcome(),
        text: simulated_test.text(),
        json: simulated_test.json(),
    })
}

/// Machines for a number of threads: one on one level of caches, several on two.
fn machines<'s>(
    source: &'s Source,
    lower: Option<&'s Source>,
    threads: u16,
) -> Result<Vec<Machine<'s>>, TestError> {
    let level = |source: &'s Source, caches| -> Result<Level<'s>, TestError> {
        Ok(Level {
            protocol: &source.protocol,
            home: home(source, caches)?,
            caches,
        })
    };
    let Some(lower) = lower else {
        let upper = level(source, threads)?;
        return Ok(vec![Machine { upper, lower: None }]);
    };
    let machine = |[caches, lower_caches]: [u16; 2]| {
        Ok(Machine {
            upper: level(source, caches)?,
            lower: Some(level(lower, lower_caches)?),
        })
    };
    clusters(threads).into_iter().map(machine).collect()
}

/// Result of a test that was run in the simulator.
struct SimulatedTest<'t> {
    /// Name of the protocol; of two levels, that of the upper one.
    protocol: &'t str,
    /// Path of the protocol file.
    path: Option<&'t Path>,
    /// File of the test; `None` for a shape.
    file: Option<&'t str>,
    /// Program that was run, with its store variants.
    program: &'t Program,
    /// Names of the kinds of remotes that threads run on, if the test has a placement.
    kinds: Option<Vec<String>>,
    /// One letter for the variant of each write; the program's name ends with them.
    store_variants: Option<&'t str>,
    /// Options of the run; the limits on evictions and states do not apply.
    options: LitmusOptions,
    /// Outcomes required for exit code 0.
    expected: Expected,
    /// Seed of the first run.
    seed: u64,
    /// Observed outcomes and the first failure; empty if nothing was run.
    outcomes: SeedOutcomes,
    /// Reason why nothing was run, if nothing was.
    reason_not_run: Option<String>,
    /// Outcomes that the memory model allows.
    allowed: BTreeSet<Outcome>,
}

impl SimulatedTest<'_> {
    /// First seed with a deciding outcome, and true if this outcome is expected; `None` if no deciding outcome was
    /// observed.
    fn deciding_seed(&self) -> Option<(u64, bool)> {
        let first_seed = |is_deciding: &dyn Fn(&Outcome) -> bool| {
            let outcomes = self.outcomes.counts.iter();
            let outcomes = outcomes.filter(|(outcome, _)| is_deciding(outcome));
            outcomes.map(|(_, &(_, seed))| seed).min()
        };
        let is_forbidden =
            |outcome: &Outcome| self.options.guaranteed && !self.allowed.contains(outcome);
        if let Some(seed) = first_seed(&is_forbidden) {
            return Some((seed, false));
        }
        let program = self.program;
        let (satisfies, expected) = match (self.expected, program.quantifier) {
            (Expected::Exactly(Observation::Never), _)
            | (Expected::Condition, Quantifier::NotExists) => (true, false),
            (Expected::Exactly(Observation::Always), _)
            | (Expected::Condition, Quantifier::Forall) => (false, false),
            _ => (true, true),
        };
        let seed = first_seed(&|outcome| program.holds(outcome) == satisfies);
        seed.map(|seed| (seed, expected))
    }

    /// Returns true if an observed outcome violates the guaranteed memory model.
    fn breaks_guarantee(&self) -> bool {
        let mut outcomes = self.outcomes.counts.keys();
        self.options.guaranteed && outcomes.any(|outcome| !self.allowed.contains(outcome))
    }

    /// Outcome for the exit code. Without a deciding outcome it is undecided, as another seed may show one.
    fn outcome(&self) -> ExitStatus {
        match (&self.outcomes.failure, self.deciding_seed()) {
            (Some(_), _) | (None, Some((_, false))) => ExitStatus::Violated,
            (None, None) => ExitStatus::Undecided,
            (None, Some((_, true))) => ExitStatus::Success,
        }
    }

    /// Command that reproduces the deciding run.
    fn reproduce_command(&self) -> Option<String> {
        let failure = self.outcomes.failure.as_ref();
        let decisive_seed = || self.deciding_seed().map(|(seed, _)| seed);
        let seed = failure.map(|(_, seed)| *seed).or_else(decisive_seed)?;
        let name = &self.program.name;
        let strip_variants =
            |store_variants: &str| name.strip_suffix(store_variants).map(str::trim_end);
        let name = self.store_variants.and_then(strip_variants).unwrap_or(name);
        let test = self.file.unwrap_or(name);
        let cores = cores_key(self.options.cores).replace('_', "-");
        let path = &self.path?.display().to_string();
        let (test, path) = (quoted(test), quoted(path));
        let kinds = self
            .kinds
            .as_ref()
            .map(|kinds| format!(" --kinds {}", kinds.join(",")));
        let kinds = kinds.unwrap_or_default();
        let variants = self
            .store_variants
            .map(|store_variants| format!(" --store-variants {store_variants}"));
        let variants = variants.unwrap_or_default();
        Some(format!(
            "cohkit litmus {test} --protocol {path}{kinds}{variants} --cores {cores} --simulation-runs 1 --seed {seed}"
        ))
    }

    /// Result as text: the verdict, each observed outcome with its number of runs, and the command that reproduces
    /// it.
    fn text(&self) -> String {
        let program = self.program;
        let verdict = match (&self.outcomes.failure, self.outcome()) {
            (Some(_), _) => "violated: ",
            _ if self.breaks_guarantee() => "violated: ",
            (None, ExitStatus::Success | ExitStatus::Violated) => "",
            (None, _) => "undecided: ",
        };
        let (name, protocol) = (&program.name, self.protocol);
        let (kinds, cores) = (
            kinds_text(self.kinds.as_deref()),
            cores_text(self.options.cores),
        );
        let mut text =
            format!("{name} on {protocol}{kinds} in the simulator, cores {cores}: {verdict}");
        if let Some(reason) = &self.reason_not_run {
            return text + reason + "\n";
        }
        let outcomes = &self.outcomes.counts;
        let runs = counted(self.outcomes.runs, "run");
        let _ = match &self.outcomes.failure {
            Some((failure, _)) => writeln!(text, "after {runs}: {}", failure.trim_end()),
            None if self.deciding_seed().is_none() => {
                let satisfying = outcomes
                    .keys()
                    .filter(|outcome| program.holds(outcome))
                    .count();
                let outcome_count = counted(outcomes.len() as u64, "outcome");
                let quantifier = program.quantifier;
                writeln!(
                    text,
                    "{satisfying} of {outcome_count} satisfy the condition of `{quantifier}`, in {runs}"
                )
            }
            None => writeln!(
                text,
                "{}, in {runs}",
                observation_text(program, outcomes.keys())
            ),
        };
        let rows = outcomes.iter().map(|(outcome, (count, seed))| {
            let times = counted(*count, "time");
            (outcome, format!(": {times}, first with seed {seed}"))
        });
        text.push_str(&outcome_list(program, rows, &self.options, &self.allowed));
        let comparison = comparison(outcomes.keys(), &self.options, &self.allowed);
        let _ = writeln!(text, "  {comparison}");
        if let Some(command) = self.reproduce_command() {
            let _ = writeln!(text, "  again: {command}");
        }
        text
    }

    /// JSON value of the test, described in `docs/output.md`.
    fn json(&self) -> Value {
        let program = self.program;
        let (outcome, reason) = match (&self.outcomes.failure, self.outcome()) {
            (Some((failure, _)), _) => ("violated", Some(failure.trim_end().to_string())),
            _ if self.breaks_guarantee() => {
                let model = self.options.model;
                ("violated", Some(format!("guarantee: {model}")))
            }
            (None, ExitStatus::Success) => ("satisfied", None),
            (None, ExitStatus::Violated) => ("not_satisfied", None),
            (None, _) => (
                "undecided",
                Some(
                    self.reason_not_run
                        .as_deref()
                        .unwrap_or("not_seen")
                        .to_string(),
                ),
            ),
        };
        let outcomes = self.outcomes.counts.iter().map(|(outcome, (count, seed))| {
            json!({
                "values": outcome_values(program, outcome),
                "satisfies": program.holds(outcome),
                "allowed": self.allowed.contains(outcome),
                "count": count,
                "seed": seed,
            })
        });
        let mut value = json!({
            "test": program.name,
            "protocol": self.protocol,
            "cores": cores_key(self.options.cores),
            "model": self.options.model.name(),
            "condition": quantifier_key(program),
            "observation": observation(program, self.outcomes.counts.keys()),
            "outcome": outcome,
            "reason": reason,
            "outcomes": outcomes.collect::<Vec<_>>(),
            "allowed": self.allowed.len(),
            "runs": self.outcomes.runs,
            "seed": self.seed,
            "run": {
                "file": self.file,
                "reproduce_command": self.reproduce_command(),
                "version": env!("CARGO_PKG_VERSION"),
            },
        });
        if let Some(kinds) = &self.kinds {
            value["kinds"] = json!(kinds);
        }
        if let Some(expected) = self.options.expectation_json(self.outcome()) {
            value["expected"] = expected;
        }
        value
    }
}
