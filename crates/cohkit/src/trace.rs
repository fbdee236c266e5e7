//! `cohkit trace`: checks traces against the tables of a protocol.

use crate::console::Console;
use crate::deliver;
use crate::options::Trace as Options;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_base::sequence::{Action, Sequence};
use cohkit_base::words::counted;
use cohkit_protocol::construct;
use cohkit_protocol::protocol::Home;
use cohkit_trace::{judge, remotes, traces, Rejection, Summary, Trace};
use serde_json::{json, Value};
use std::path::Path;

/// A trace with its verdict.
type JudgedTrace = (Trace, Result<Summary, Rejection>);

/// Checks the traces of a file. The outcome is [`ExitStatus::Violated`] if a trace is rejected.
pub(crate) fn run(options: &Options, console: &mut Console) -> Result<ExitStatus, Failure> {
    if let Some(file) = &options.output.out {
        files::try_file(file)?;
    }
    let source =
        Source::read(&options.protocol, console.terminal.colour)?.sized(&options.protocol_params);
    let source =
        source.map_err(|reason| Failure::new(ExitStatus::BadInput, format!("error: {reason}")))?;
    let text = files::read(&options.file)?;
    let found_traces = traces(&text)
        .map_err(|reason| input_error(&options.file, &reason, "which tool wrote it?"))?;
    if found_traces.is_empty() {
        let help = "`cohkit sim --trace`, `cohkit rtl test --trace` and counterexamples of `cohkit check --json` are traces";
        return Err(input_error(&options.file, "it contains no trace", help));
    }
    let verdicts: Result<Vec<JudgedTrace>, Failure> = found_traces
        .into_iter()
        .map(|trace| judge_trace(&source, trace, options, console))
        .collect();
    let verdicts = verdicts?;
    let output = match options.output.form.json {
        true => options
            .output
            .form
            .format_output(verdicts.iter().map(verdict_json).collect(), console),
        false => (1..)
            .zip(&verdicts)
            .map(|(n, verdict)| verdict_text(n, verdict))
            .collect(),
    };
    deliver(&output, &options.output, console)?;
    Ok(match verdicts.iter().all(|(_, result)| result.is_ok()) {
        true => ExitStatus::Success,
        false => ExitStatus::Violated,
    })
}

/// Failure for a file without usable traces.
fn input_error(file: &Path, reason: &str, help: &str) -> Failure {
    let message = format!("error: {}: {reason}\n  help: {help}", file.display());
    Failure::new(ExitStatus::BadInput, message)
}

/// Judges one trace against the controllers. The number of remotes, and with it the home, comes from the agents of the
/// trace.
fn judge_trace(
    source: &Source,
    trace: Trace,
    options: &Options,
    console: &Console,
) -> Result<JudgedTrace, Failure> {
    let name = match &source.protocol.home {
        Home::Controller(home) => &home.name,
        Home::Policy(_) => "home",
    };
    let Some(remotes) = remotes(&trace.sequence, name).filter(|&remotes| remotes > 0) else {
        let agents = trace.sequence.agents.join(", ");
        let reason = format!("no caching agents and {name} behind them, but {agents}");
        let help = "is it a trace of this protocol?";
        return Err(input_error(&options.file, &reason, help));
    };
    let charts = options.output.charts(console.terminal);
    let home = u16::try_from(remotes).unwrap_or(u16::MAX);
    let home = construct::home(&source.protocol, home)
        .map_err(|error| source.no_home(&error, &charts, console.terminal.colour))?;
    let result = judge(
        &source.protocol,
        &home,
        &trace.sequence,
        trace.ends_quiescent,
    );
    Ok((trace, result))
}

/// Verdict on a trace as text.
fn verdict_text(number: usize, (trace, result): &JudgedTrace) -> String {
    let steps = trace.sequence.steps.len();
    match result {
        Ok(summary) => {
            let quiescence_note = if trace.ends_quiescent {
                ", quiescent at its end"
            } else {
                ""
            };
            format!(
                "trace {number}: accepted: {}, {}, {}, {} of words compared{quiescence_note}\n",
                counted(steps as u64, "step"),
                counted(summary.rows as u64, "row"),
                counted(summary.messages as u64, "message"),
                counted(summary.values as u64, "value"),
            )
        }
        Err(Rejection { step, reason }) => match step_in_words(&trace.sequence, *step) {
            Some(words) => {
                format!("trace {number}: rejected at step {step} of {steps}: {reason}\n  {words}\n")
            }
            None => format!("trace {number}: rejected after its last step, {steps}: {reason}\n"),
        },
    }
}

/// Description of a step, counted from 1.
fn step_in_words(sequence: &Sequence, step: usize) -> Option<String> {
    let step = sequence.steps.get(step - 1)?;
    let name = |agent: usize| sequence.agents.get(agent).map_or("?", String::as_str);
    let agent = name(step.agent);
    Some(match &step.action {
        Action::Send { message, to, .. } => format!("{agent} sends {message} to {}", name(*to)),
        Action::Receive { message, from, .. } => {
            format!("{agent} takes {message} from {}", name(*from))
        }
        Action::Does { what } => format!("{agent}: {what}"),
        Action::Becomes { state } => format!("{agent} becomes {state}"),
    })
}

/// Verdict on a trace as JSON, described in `docs/output.md`.
fn verdict_json((trace, result): &JudgedTrace) -> Value {
    let summary = result.as_ref().ok();
    let rejection = result.as_ref().err();
    json!({
        "outcome": if summary.is_some() { "accepted" } else { "rejected" },
        "steps": trace.sequence.steps.len(),
        "ends_quiescent": trace.ends_quiescent,
        "rows": summary.map(|summary| summary.rows),
        "messages": summary.map(|summary| summary.messages),
        "values": summary.map(|summary| summary.values),
        "step": rejection.map(|rejection| rejection.step),
        "reason": rejection.map(|rejection| &rejection.reason),
    })
}
