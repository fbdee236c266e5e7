//! Litmus tests in the simulator: what is seen decides, and what is not seen does not.

use super::{
    asked, between, cannot, fulfilling, home, key, placed, relation, values, words, How, NotJudged,
    On, Report, Test,
};
use crate::asked::quoted;
use crate::outcome::{Failure, Outcome};
use crate::protocols::Source;
use cohkit_base::words::counted;
use cohkit_litmus::axioms::Model;
use cohkit_litmus::cores::Cores;
use cohkit_litmus::program::{End, Program, Quantifier};
use cohkit_litmus::timed::{
    clusters, observe_placed as observe, Level, Machine, NotRun, Options as Runs, Seen,
};
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Runs a test so many times, with seeds from the first one on.
pub(super) fn run(
    (source, on): (&Source, On),
    test: &Test,
    how: &How,
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
            return Err(Failure::new(Outcome::Interrupted, "interrupted").into())
        }
        // Placed on other kinds, the threads may run.
        Err(NotRun::Lacks(what) | NotRun::Cannot(what)) if source.protocol.several_tables() => {
            (Seen::default(), Some(what))
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
        cores,
        seed,
        seen,
        not_run,
        model: how.model,
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
    /// Where the protocol's text is.
    path: Option<&'t Path>,
    file: Option<&'t str>,
    program: &'t Program,
    /// The kinds of remotes that threads run on, if that makes a difference or was asked for.
    kinds: Option<Vec<String>>,
    /// A letter for each write, which the name ends with.
    stores: Option<&'t str>,
    cores: Cores,
    seed: u64,
    seen: Seen,
    /// Why nothing was run, if nothing was.
    not_run: Option<String>,
    model: Model,
    allowed: BTreeSet<End>,
}

impl Timed<'_> {
    /// The first seed that shows an end which decides, if one was seen: one that fulfils the condition, or of `forall` one
    /// that does not.
    fn decides(&self) -> Option<u64> {
        let fulfils = self.program.quantifier != Quantifier::Forall;
        let ends = self.seen.ends.iter();
        let ends = ends.filter(|(end, _)| self.program.holds(end) == fulfils);
        ends.map(|(_, &(_, seed))| seed).min()
    }

    /// What was not seen may be seen with another seed.
    fn outcome(&self) -> Outcome {
        match (&self.seen.failure, self.decides(), self.program.quantifier) {
            (Some(_), _, _) => Outcome::No,
            (None, None, _) => Outcome::Undecided,
            (None, Some(_), Quantifier::Exists) => Outcome::Yes,
            (None, Some(_), _) => Outcome::No,
        }
    }

    /// The command that shows again what has decided.
    fn again(&self) -> Option<String> {
        let failure = self.seen.failure.as_ref();
        let seed = failure.map(|(_, seed)| *seed).or(self.decides())?;
        let name = &self.program.name;
        let mixed = |stores: &str| name.strip_suffix(stores).map(str::trim_end);
        let name = self.stores.and_then(mixed).unwrap_or(name);
        let test = self.file.unwrap_or(name);
        let cores = key(self.cores).replace('_', "-");
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
            (Some(_), _) => "violated",
            (None, Outcome::Yes) => "yes",
            (None, Outcome::No) => "no",
            (None, _) => "undecided",
        };
        let (name, on, between) = (&program.name, self.protocol, between(self.cores));
        let kinds = placed(self.kinds.as_deref());
        let mut text =
            format!("{name} on {on}{kinds} in the simulator, cores {between}: {verdict}: ");
        if let Some(why) = &self.not_run {
            return text + why + "\n";
        }
        let ends = &self.seen.ends;
        let runs = counted(self.seen.runs, "run");
        match &self.seen.failure {
            Some((failure, _)) => {
                let _ = writeln!(text, "after {runs}: {}", failure.trim_end());
            }
            None => {
                let fulfil = ends.keys().filter(|end| program.holds(end)).count();
                let which = fulfilling(fulfil, ends.len());
                let asks = program.quantifier;
                let _ = writeln!(text, "{which} of `{asks}`, in {runs}");
            }
        }
        for (end, (count, seed)) in ends {
            let mark = if program.holds(end) { '*' } else { ' ' };
            let (end, times) = (words(program, end), counted(*count, "time"));
            let _ = writeln!(text, "  {mark} {end}: {times}, first with seed {seed}");
        }
        let _ = writeln!(
            text,
            "  {}",
            relation(ends.keys(), self.model, &self.allowed)
        );
        if let Some(again) = self.again() {
            let _ = writeln!(text, "  again: {again}");
        }
        text
    }

    fn json(&self) -> Value {
        let program = self.program;
        let (outcome, reason) = match (&self.seen.failure, self.outcome()) {
            (Some((failure, _)), _) => ("violated", Some(failure.trim_end())),
            (None, Outcome::Yes) => ("yes", None),
            (None, Outcome::No) => ("no", None),
            (None, _) => (
                "undecided",
                Some(self.not_run.as_deref().unwrap_or("not_seen")),
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
            "cores": key(self.cores),
            "model": self.model.name(),
            "condition": asked(program),
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
        told
    }
}
