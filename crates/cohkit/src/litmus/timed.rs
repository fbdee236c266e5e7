//! Litmus tests in the simulator: an observed outcome decides, an outcome that was not observed does not.

use super::{
    asked, between, cannot, home, key, listed, observation, observed, placed, relation, values,
    Expected, LitmusOptions, NotJudged, On, Report, Test,
};
use crate::check_request::quoted;
use crate::outcome::{ExitStatus, Failure};
use crate::protocols::Source;
use cohkit_base::words::counted;
use cohkit_litmus::expectation::Observation;
use cohkit_litmus::program::{Outcome, Program, Quantifier};
use cohkit_litmus::timed::{
    clusters, observe_placed as observe, Level, Machine, NotRun, Options as Runs, SeedOutcomes,
};
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Runs a test `runs` times, with consecutive seeds from `seed` on.
pub(super) fn run(
    (source, on): (&Source, On),
    test: &Test,
    how: &LitmusOptions,
    (seed, runs): (u64, u64),
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Report, NotJudged> {
    let Test {
        file,
        program,
        stores,
        ..
    } = test;
    let level = |source, caches| {
        let home = home(source, caches)?;
        let protocol = &source.protocol;
        Ok::<_, NotJudged>(Level {
            protocol,
            home,
            caches,
        })
    };
    let threads = program.threads.len() as u16;
    let machines = match on.lower {
        None => vec![Machine {
            upper: level(source, threads)?,
            lower: None,
        }],
        Some(lower) => {
            let machine = |[caches, below]: [u16; 2]| {
                Ok::<_, NotJudged>(Machine {
                    upper: level(source, caches)?,
                    lower: Some(level(lower, below)?),
                })
            };
            let spread = clusters(threads).into_iter();
            spread.map(machine).collect::<Result<_, _>>()?
        }
    };
    let allowed = how.allowed(program)?;
    let cores = how.cores;
    let runs = Runs { cores, runs, seed };
    let (seen, not_run) = match observe(&machines, &test.kinds(), program, &runs, goes_on) {
        Ok(seen) => (seen, None),
        Err(NotRun::Interrupted) => {
            return Err(Failure::new(ExitStatus::Interrupted, "interrupted").into())
        }
        // The threads may run when placed on other kinds.
        Err(NotRun::Lacks(what) | NotRun::Cannot(what)) if source.protocol.several_tables() => {
            (SeedOutcomes::default(), Some(what))
        }
        Err(NotRun::Lacks(what) | NotRun::Cannot(what)) => {
            return Err(cannot(source, program, &what).into())
        }
    };
    let timed = Timed {
        protocol: &source.protocol.name,
        path: on.file,
        file: file.as_deref(),
        program,
        kinds: test.on(Some(source)),
        stores: stores.as_deref(),
        how: *how,
        expected: Expected::of(test, how, true),
        seed,
        seen,
        not_run,
        allowed,
    };
    Ok(Report {
        outcome: timed.outcome(),
        text: timed.text(),
        json: timed.json(),
    })
}

struct Timed<'t> {
    protocol: &'t str,
    /// Path of the protocol file.
    path: Option<&'t Path>,
    file: Option<&'t str>,
    program: &'t Program,
    /// Names of the kinds of remotes that threads run on, if the test has a placement.
    kinds: Option<Vec<String>>,
    /// One letter for the variant of each write; the program's name ends with them.
    stores: Option<&'t str>,
    how: LitmusOptions,
    expected: Expected,
    seed: u64,
    seen: SeedOutcomes,
    /// Reason why nothing was run, if nothing was.
    not_run: Option<String>,
    allowed: BTreeSet<Outcome>,
}

impl Timed<'_> {
    /// First seed with a deciding outcome, and true if this outcome is expected; `None` if no deciding outcome was
    /// observed.
    fn decides(&self) -> Option<(u64, bool)> {
        let first = |decides: &dyn Fn(&Outcome) -> bool| {
            let ends = self.seen.ends.iter();
            let ends = ends.filter(|(end, _)| decides(end));
            ends.map(|(_, &(_, seed))| seed).min()
        };
        let forbidden = |end: &Outcome| self.how.guaranteed && !self.allowed.contains(end);
        if let Some(seed) = first(&forbidden) {
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
        let seed = first(&|end| program.holds(end) == satisfies);
        seed.map(|seed| (seed, expected))
    }

    fn breaks_guarantee(&self) -> bool {
        let mut ends = self.seen.ends.keys();
        self.how.guaranteed && ends.any(|end| !self.allowed.contains(end))
    }

    /// Outcome for the exit code. Without a deciding outcome it is undecided, as another seed may show one.
    fn outcome(&self) -> ExitStatus {
        match (&self.seen.failure, self.decides()) {
            (Some(_), _) | (None, Some((_, false))) => ExitStatus::Violated,
            (None, None) => ExitStatus::Undecided,
            (None, Some((_, true))) => ExitStatus::Success,
        }
    }

    /// Command that reproduces the deciding run.
    fn again(&self) -> Option<String> {
        let failure = self.seen.failure.as_ref();
        let decides = || self.decides().map(|(seed, _)| seed);
        let seed = failure.map(|(_, seed)| *seed).or_else(decides)?;
        let name = &self.program.name;
        let mixed = |stores: &str| name.strip_suffix(stores).map(str::trim_end);
        let name = self.stores.and_then(mixed).unwrap_or(name);
        let test = self.file.unwrap_or(name);
        let cores = key(self.how.cores).replace('_', "-");
        let path = &self.path?.display().to_string();
        let (test, path) = (quoted(test), quoted(path));
        let kinds = self
            .kinds
            .as_ref()
            .map(|kinds| format!(" --kinds {}", kinds.join(",")));
        let kinds = kinds.unwrap_or_default();
        let stores = self.stores.map(|stores| format!(" --stores {stores}"));
        let stores = stores.unwrap_or_default();
        Some(format!(
            "cohkit litmus {test} --protocol {path}{kinds}{stores} --cores {cores} --simulate 1 --seed {seed}"
        ))
    }

    fn text(&self) -> String {
        let program = self.program;
        let verdict = match (&self.seen.failure, self.outcome()) {
            (Some(_), _) => "violated: ",
            _ if self.breaks_guarantee() => "violated: ",
            (None, ExitStatus::Success | ExitStatus::Violated) => "",
            (None, _) => "undecided: ",
        };
        let (name, on) = (&program.name, self.protocol);
        let (kinds, between) = (placed(self.kinds.as_deref()), between(self.how.cores));
        let mut text =
            format!("{name} on {on}{kinds} in the simulator, cores {between}: {verdict}");
        if let Some(why) = &self.not_run {
            return text + why + "\n";
        }
        let ends = &self.seen.ends;
        let runs = counted(self.seen.runs, "run");
        let _ = match &self.seen.failure {
            Some((failure, _)) => writeln!(text, "after {runs}: {}", failure.trim_end()),
            None if self.decides().is_none() => {
                let satisfying = ends.keys().filter(|end| program.holds(end)).count();
                let all = counted(ends.len() as u64, "outcome");
                let asks = program.quantifier;
                writeln!(
                    text,
                    "{satisfying} of {all} satisfy the condition of `{asks}`, in {runs}"
                )
            }
            None => writeln!(text, "{}, in {runs}", observed(program, ends.keys())),
        };
        let all = ends.iter().map(|(end, (count, seed))| {
            let times = counted(*count, "time");
            (end, format!(": {times}, first with seed {seed}"))
        });
        text.push_str(&listed(program, all, &self.how, &self.allowed));
        let relation = relation(ends.keys(), &self.how, &self.allowed);
        let _ = writeln!(text, "  {relation}");
        if let Some(again) = self.again() {
            let _ = writeln!(text, "  again: {again}");
        }
        text
    }

    fn json(&self) -> Value {
        let program = self.program;
        let (outcome, reason) = match (&self.seen.failure, self.outcome()) {
            (Some((failure, _)), _) => ("violated", Some(failure.trim_end().to_string())),
            _ if self.breaks_guarantee() => {
                let model = self.how.model;
                ("violated", Some(format!("guarantee: {model}")))
            }
            (None, ExitStatus::Success) => ("yes", None),
            (None, ExitStatus::Violated) => ("no", None),
            (None, _) => (
                "undecided",
                Some(self.not_run.as_deref().unwrap_or("not_seen").to_string()),
            ),
        };
        let ends = self.seen.ends.iter().map(|(end, (count, seed))| {
            json!({
                "values": values(program, end),
                "fulfils": program.holds(end),
                "allowed": self.allowed.contains(end),
                "seen": count,
                "seed": seed,
            })
        });
        let mut told = json!({
            "test": program.name,
            "protocol": self.protocol,
            "cores": key(self.how.cores),
            "model": self.how.model.name(),
            "condition": asked(program),
            "observation": observation(program, self.seen.ends.keys()),
            "outcome": outcome,
            "reason": reason,
            "ends": ends.collect::<Vec<_>>(),
            "allowed": self.allowed.len(),
            "runs": self.seen.runs,
            "seed": self.seed,
            "run": {
                "file": self.file,
                "again": self.again(),
                "version": env!("CARGO_PKG_VERSION"),
            },
        });
        if let Some(kinds) = &self.kinds {
            told["kinds"] = json!(kinds);
        }
        if let Some(expected) = self.how.as_expected(self.outcome()) {
            told["expected"] = expected;
        }
        told
    }
}
