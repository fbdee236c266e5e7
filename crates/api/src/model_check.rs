//! Verdicts on Murphi models.

use crate::checkpoints::Checkpoints;
use crate::coverage::SystemCoverage;
use crate::outcome::{ExitStatus, Failure};
use crate::protocol_check::Request;
use crate::verdict::{omission_text, reason_words, search_json, search_size};
use crate::{protocol_check, source};
use cohkit_chart::Text;
use cohkit_engine::coverage::coverage;
use cohkit_engine::explain::{explain, Explanation};
use cohkit_engine::model::{Deadlock, Model};
use cohkit_engine::search::{self, CheckpointSink};
use cohkit_engine::simulate::simulate;
use cohkit_engine::trace::Trace;
use cohkit_engine::{check, CheckError, Property, Report};
use cohkit_murphi::Dialect;
use serde_json::{json, Value};
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// Returns true if the file is a Murphi model, by its extension `.m`.
pub fn is_model(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "m")
}

/// Options for reading a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelReadOptions {
    /// Dialect of Murphi.
    pub dialect: Dialect,
    /// Definition of a deadlock.
    pub deadlock: Deadlock,
}

impl ModelReadOptions {
    /// Parses a model, which is named after its file. Also returns warnings about probable mistakes.
    ///
    /// # Errors
    /// All errors of the text.
    pub fn read(
        self,
        path: &Path,
        text: &str,
    ) -> Result<(Model, Vec<cohkit_murphi::Diagnostic>), Vec<cohkit_murphi::Diagnostic>> {
        let stem = path.file_stem().unwrap_or(path.as_os_str());
        let parsed = cohkit_murphi::read(&stem.to_string_lossy(), text, self.dialect)?;
        let mut model = parsed.model;
        model.deadlock = self.deadlock;
        Ok((model, parsed.warnings))
    }
}

/// Errors of a model as JSON, with the keys of errors of protocol files.
pub fn model_diagnostics_json(
    diagnostics: &[cohkit_murphi::Diagnostic],
    file: &str,
    text: &str,
) -> Value {
    let entry = |diagnostic: &cohkit_murphi::Diagnostic| {
        source::diagnostic_json(
            "murphi",
            &diagnostic.message,
            text,
            diagnostic.span,
            &diagnostic.label,
            &diagnostic.notes,
            &diagnostic.render(file, text, false),
        )
    };
    diagnostics.iter().map(entry).collect()
}

/// Verdict on a model.
pub struct ModelVerdict {
    /// Result of the search.
    pub report: Report,
    /// Explanation of a violation, where needed.
    pub explanation: Option<Explanation>,
    /// Coverage of the search, if requested.
    pub coverage: Option<SystemCoverage>,
    /// Machine-dependent part of the JSON.
    run: Value,
}

impl ModelVerdict {
    /// JSON entry, described in `docs/output.md`.
    pub fn json(&self, model: &Model) -> Value {
        let charts = trace(&self.report).map(|trace| &trace.sequence);
        let charts = charts.filter(|sequence| !sequence.steps.is_empty());
        let charts = charts.into_iter().collect();
        let mut entry = search_json(&self.report, ("limit", ""), charts);
        entry["model"] = json!(model.name);
        entry["run"] = self.run.clone();
        if let Some(explanation) = &self.explanation {
            entry["counterexample"]["explanation"] = json!(explanation);
        }
        if let Some(coverage) = &self.coverage {
            entry["coverage"] = coverage.json();
        }
        entry
    }
}

/// Checks a model from a file with this name. Ignores those fields of the request that apply to systems of protocols.
///
/// # Errors
/// The model is invalid, or its checkpoints are unusable.
pub fn judge_model(
    model: &Model,
    path: &Path,
    request: &Request,
    progress: &(dyn Fn(&search::Progress) + Sync),
    checkpoints: Option<&Checkpoints>,
) -> Result<ModelVerdict, Failure> {
    let start = Instant::now();
    let checkpoint = checkpoints.map(Checkpoints::start_search);
    let checkpoint_sink = checkpoint
        .as_ref()
        .map(|checkpoint| checkpoint as &dyn CheckpointSink);
    let search_options = protocol_check::search_options(request, progress, checkpoint_sink);
    let report = match &request.simulation {
        Some(simulation) => simulate(model, simulation, &search_options),
        None => check(model, &search_options),
    };
    let report = report.map_err(|error| match (error, &checkpoint) {
        (CheckError::Checkpoint(error), Some(checkpoint)) => checkpoint.failure(&error),
        (error, _) => input_error(path, &error.to_string()),
    })?;
    let explanation = match &report.outcome {
        cohkit_engine::Outcome::Violated {
            property, trace, ..
        } => explain(model, &[], property, trace, &cohkit_murphi::expression),
        _ => None,
    };
    let coverage = match request.coverage {
        true => coverage(model, &report, &search_options).map(SystemCoverage::of_model),
        false => None,
    };
    let run = protocol_check::run_json(path, request, &report, start.elapsed().as_secs_f64());
    Ok(ModelVerdict {
        report,
        explanation,
        coverage,
        run,
    })
}

/// Failure for a model that cannot be processed.
pub fn input_error(path: &Path, reason: &str) -> Failure {
    let message = format!("error: {}: {reason}", path.display());
    Failure::new(ExitStatus::BadInput, message)
}

/// Trace of a violation, or of an exceeded limit.
pub fn trace(report: &Report) -> Option<&Trace> {
    match &report.outcome {
        cohkit_engine::Outcome::Violated { trace, .. }
        | cohkit_engine::Outcome::Exceeded { trace, .. } => Some(trace),
        _ => None,
    }
}

/// Verdict as text; a violation comes with the rules that lead to it, and with the chart of recognised messages. Names
/// the scalarsets whose symmetry was given up. `charts` is the form of the chart.
pub fn text(model: &Model, report: &Report, charts: &Text) -> String {
    let mut text = outcome_text(model, report, charts);
    for lost in &report.lost_symmetry {
        let names = lost.scalarsets.iter().map(|name| format!("`{name}`"));
        let names = names.collect::<Vec<_>>().join(" and ");
        let _ = writeln!(text, "  symmetry of {names} is not used: {}", lost.reason);
    }
    text
}

/// Outcome as text; see [`text`].
fn outcome_text(model: &Model, report: &Report, charts: &Text) -> String {
    let mut text = format!("{}: ", model.name);
    let counts = search_size(report);
    let (verdict, trace) = match &report.outcome {
        cohkit_engine::Outcome::Verified => {
            let _ = writeln!(text, "verified{}: {counts}", omission_text(report));
            return text;
        }
        cohkit_engine::Outcome::Undecided { reason } => {
            let (reason_text, omission) = (reason_words(*reason), omission_text(report));
            let _ = writeln!(text, "undecided{omission}: {reason_text} after {counts}");
            return text;
        }
        cohkit_engine::Outcome::Exceeded { limit, trace } => (format!("undecided: {limit}"), trace),
        cohkit_engine::Outcome::Violated {
            property,
            message,
            trace,
        } => (format!("violated: {property}: {message}"), trace),
    };
    let _ = write!(text, "{verdict}\n  after {counts}\n");
    if let cohkit_engine::Outcome::Violated {
        property: Property::Cover(_),
        ..
    } = &report.outcome
    {
        // No trace can show that a state is unreachable.
        return text;
    }
    let _ = write!(text, "\n{trace}\n");
    if !trace.sequence.steps.is_empty() {
        let _ = writeln!(text, "{}", cohkit_chart::text(&trace.sequence, charts));
    }
    text
}
