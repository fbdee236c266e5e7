//! `cohkit check` of Murphi models.

use crate::check::Batch;
use crate::checkpoints::Checkpoints;
use crate::console::Console;
use crate::coverage::Covered;
use crate::options::{Check, DeadlockOption, DialectOption, SymmetryOption};
use crate::outcome::{Failure, Outcome};
use crate::progress::Line;
use crate::verdict::{counterexample, kind, name, number, property, words};
use crate::{explanation, files, graph, judge, size};
use cohkit_chart::Text;
use cohkit_check::coverage::coverage;
use cohkit_check::explain::explain;
use cohkit_check::model::{Deadlock, Model};
use cohkit_check::murphi::{self, Dialect};
use cohkit_check::search::{self, Keeper, Reason};
use cohkit_check::trace::Trace;
use cohkit_check::{check, CheckError, Report};
use cohkit_protocol::words::counted;
use serde_json::{json, Value};
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// Whether a file is a Murphi model.
pub(crate) fn is_model(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "m")
}

/// Reads a model. What is probably not meant in it is said.
pub(crate) fn read(path: &Path, options: &Check, console: &mut Console) -> Result<Model, Failure> {
    let text = files::read(path)?;
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    let dialect = match options.dialect {
        None => Dialect::Any,
        Some(DialectOption::Cmurphi) => Dialect::CMurphi,
        Some(DialectOption::Rumur) => Dialect::Rumur,
    };
    let (file, colour) = (path.display().to_string(), console.terminal.colour);
    let shown = |diagnostics: &[murphi::Diagnostic]| {
        let all = diagnostics.iter().map(|d| d.render(&file, &text, colour));
        all.collect::<Vec<_>>().join("\n\n")
    };
    let read = murphi::read(&stem.to_string_lossy(), &text, dialect)
        .map_err(|errors| Failure::new(Outcome::BadInput, shown(&errors)))?;
    if !read.warnings.is_empty() {
        console.say(&shown(&read.warnings));
    }
    let mut model = read.model;
    model.deadlock = match options.deadlock {
        None | Some(DeadlockOption::Stuttering) => Deadlock::Stuttering,
        Some(DeadlockOption::Stuck) => Deadlock::Stuck,
        Some(DeadlockOption::Off) => Deadlock::Off,
    };
    Ok(model)
}

impl Batch<'_> {
    /// Checks a model, and tells the verdict.
    pub(crate) fn check_model(
        &mut self,
        path: &Path,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let options = self.options;
        let model = read(path, options, console)?;
        let bad = |why: String| {
            let message = format!("error: {}: {why}", path.display());
            Failure::new(Outcome::BadInput, message)
        };
        if let Some(folder) = &options.export_murphi {
            let text = murphi::print(&model, murphi::Style::Plain).map_err(bad)?;
            files::make_folder(folder)?;
            files::write(&folder.join(format!("{}.m", model.name)), &text)?;
        }
        let start = Instant::now();
        let line = Line::new(model.name.clone(), &console.terminal);
        let progress = |progress: &search::Progress| line.show(progress);
        let kept = self.checkpoints.map(Checkpoints::next);
        let threads = judge::threads(options.threads.map(usize::from));
        let max_memory = options.max_memory;
        let searched = search::Options {
            threads,
            max_states: options.max_states,
            max_depth: options.max_depth,
            symmetry: options.symmetry != Some(SymmetryOption::Off),
            max_memory: max_memory.or_else(|| Some(size::free_memory()? / 4 * 3)),
            cancel: Some(console.interrupted),
            progress: Some(&progress),
            keeper: kept.as_ref().map(|kept| kept as &dyn Keeper),
            ..search::Options::default()
        };
        let report = check(&model, &searched).map_err(|error| match (error, &kept) {
            (CheckError::Checkpoint(error), Some(kept)) => kept.failure(&error),
            (error, _) => bad(error.to_string()),
        })?;
        let explanation = match &report.outcome {
            cohkit_check::Outcome::Violated {
                property, trace, ..
            } => explain(&model, &[], property, trace),
            _ => None,
        };
        let coverage = match options.coverage {
            true => coverage(&model, &report, &searched).map(Covered::of_model),
            false => None,
        };
        drop(line);
        if let (Some(folder), Some(trace)) = (&options.chart_svg, trace(&report)) {
            match trace.sequence.steps.is_empty() {
                true => console.say(&format!(
                    "{}: no messages are recognised in the counterexample, so there is no chart",
                    model.name
                )),
                false => {
                    files::make_folder(folder)?;
                    let svg = cohkit_chart::svg(&trace.sequence, &model.name);
                    files::write(&folder.join(format!("{}.svg", model.name)), &svg)?;
                }
            }
        }
        let charts = self.charts;
        let seconds = start.elapsed().as_secs_f64();
        let run = json!({
            "file": path.display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
            "threads": threads,
            "memory_bytes": report.memory,
            "seconds": seconds,
            "states_per_second": (report.states as f64 / seconds.max(1e-9)).round(),
        });
        self.tell(
            outcome(&report),
            || {
                let mut entry = entry(&model, &report, run);
                if let Some(explanation) = &explanation {
                    entry["counterexample"]["explanation"] = json!(explanation);
                }
                if let Some(coverage) = &coverage {
                    entry["coverage"] = coverage.json();
                }
                entry
            },
            || {
                let mut text = text(&model, &report, &charts);
                text += &explanation
                    .iter()
                    .map(explanation::text)
                    .collect::<String>();
                text += &coverage.iter().map(Covered::text).collect::<String>();
                text
            },
            console,
        )?;
        match &options.graph {
            Some(file) => graph::write(file, &model, trace(&report)),
            None => Ok(()),
        }
    }
}

/// The trace of a violation, or of a limit that is run over.
fn trace(report: &Report) -> Option<&Trace> {
    match &report.outcome {
        cohkit_check::Outcome::Violated { trace, .. }
        | cohkit_check::Outcome::Exceeded { trace, .. } => Some(trace),
        _ => None,
    }
}

fn outcome(report: &Report) -> Outcome {
    match &report.outcome {
        cohkit_check::Outcome::Verified => Outcome::Yes,
        cohkit_check::Outcome::Violated { .. } => Outcome::No,
        cohkit_check::Outcome::Undecided {
            reason: Reason::Interrupted,
        } => Outcome::Interrupted,
        cohkit_check::Outcome::Undecided { .. } | cohkit_check::Outcome::Exceeded { .. } => {
            Outcome::Undecided
        }
    }
}

/// The verdict for people: a violation with the rules that lead to it.
fn text(model: &Model, report: &Report, charts: &Text) -> String {
    let mut text = format!("{}: ", model.name);
    let counts = format!(
        "{}, {}, depth {}",
        counted(
            report.states,
            if report.symmetric { "orbit" } else { "state" }
        ),
        counted(report.transitions, "transition"),
        report.depth
    );
    let (verdict, trace) = match &report.outcome {
        cohkit_check::Outcome::Verified => {
            let _ = writeln!(text, "verified: {counts}");
            return text;
        }
        cohkit_check::Outcome::Undecided { reason } => {
            let _ = writeln!(text, "undecided: {} after {counts}", words(*reason));
            return text;
        }
        cohkit_check::Outcome::Exceeded { limit, trace } => (format!("undecided: {limit}"), trace),
        cohkit_check::Outcome::Violated {
            property,
            message,
            trace,
        } => (format!("violated: {}: {message}", name(property)), trace),
    };
    let _ = write!(text, "{verdict}\n  after {counts}\n\n{trace}\n");
    if !trace.sequence.steps.is_empty() {
        let _ = writeln!(text, "{}", cohkit_chart::text(&trace.sequence, charts));
    }
    text
}

/// The entry that `docs/output.md` describes; `run` is what depends on the machine.
fn entry(model: &Model, report: &Report, run: Value) -> Value {
    let charts = |trace: &Trace| match trace.sequence.steps.is_empty() {
        true => Vec::new(),
        false => vec![trace.sequence.clone()],
    };
    let (outcome, reason, example) = match &report.outcome {
        cohkit_check::Outcome::Verified => ("verified", Value::Null, Value::Null),
        cohkit_check::Outcome::Undecided { reason } => ("undecided", json!(reason), Value::Null),
        cohkit_check::Outcome::Exceeded { limit, trace } => (
            "undecided",
            json!("limit"),
            counterexample(
                "limit",
                limit,
                limit,
                charts(trace).iter().collect(),
                Some(trace),
            ),
        ),
        cohkit_check::Outcome::Violated {
            property,
            message,
            trace,
        } => (
            "violated",
            Value::Null,
            counterexample(
                kind(property),
                &name(property),
                message,
                charts(trace).iter().collect(),
                Some(trace),
            ),
        ),
    };
    let properties = report.properties.iter();
    json!({
        "model": model.name,
        "outcome": outcome,
        "reason": reason,
        "states": number(report.states),
        "symmetric": report.symmetric,
        "transitions": number(report.transitions),
        "depth": report.depth,
        "components": report.components,
        "properties": properties.map(|p| property(&p.property, &p.status)).collect::<Vec<_>>(),
        "counterexample": example,
        "run": run,
    })
}
