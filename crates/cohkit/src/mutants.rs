//! `cohkit mutants`: verdicts on protocol files with one change each, as text and JSON.

use crate::console::Console;
use crate::progress::ProgressLine;
use crate::{deliver, options};
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_base::words::counted;
use cohkit_mutants::{mutants, Judge, Mutant, MutantVerdict};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Duration;

/// Interval between updates of the progress bar.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Checks the selected mutants, and prints their verdicts. The outcome is the worst over all mutants.
///
/// # Errors
/// The protocol is invalid or not verified without a mutation, an index is out of range, or the run was interrupted.
pub(crate) fn run(
    options: &options::Mutants,
    console: &mut Console,
) -> Result<ExitStatus, Failure> {
    let source = Source::read(&options.file, console.terminal.colour)?;
    let input_error = |reason: String| {
        let message = format!("error: {}: {reason}", options.file.display());
        Failure::new(ExitStatus::BadInput, message)
    };
    let mutants = mutants(&source.text);
    let indices = selected_indices(options, mutants.len()).map_err(input_error)?;
    if options.print {
        let text: String = (indices.iter())
            .map(|&number| {
                format!(
                    "# {number}: {}\n{}",
                    mutants[number].description, mutants[number].text
                )
            })
            .collect();
        deliver(&text, &options.output, console)?;
        return Ok(ExitStatus::Success);
    }
    let judge = Judge::new(&source.text).map_err(|reason| {
        input_error(format!(
            "the unmutated specification is not verified, so its mutants show nothing: {reason}\n  \
             help: `cohkit check` reports the details"
        ))
    })?;
    let Some(verdicts) = judge_all(options, &judge, &mutants, &indices, console) else {
        return Err(Failure::new(
            ExitStatus::Interrupted,
            "interrupted; nothing was written",
        ));
    };
    let results: Vec<JudgedMutant> = (indices.iter().zip(verdicts))
        .map(|(&number, verdict)| JudgedMutant {
            number,
            mutant: &mutants[number],
            verdict,
        })
        .collect();
    let result = if options.output.form.json {
        let rows = results.iter().map(|judged| {
            json!({
                "protocol": source.protocol.name,
                "number": judged.number,
                "kind": judged.mutant.kind,
                "mutant": judged.mutant.description,
                "verdict": judged.verdict.name(),
            })
        });
        options.output.form.format_output(rows.collect(), console)
    } else {
        text(&source, mutants.len(), &results)
    };
    deliver(&result, &options.output, console)?;
    let outcomes = results.iter().map(|judged| outcome(judged.verdict));
    Ok(outcomes.max().unwrap_or(ExitStatus::Success))
}

/// A mutant with its verdict.
struct JudgedMutant<'a> {
    /// Index of the mutant among all mutants of the protocol.
    number: usize,
    mutant: &'a Mutant,
    verdict: MutantVerdict,
}

/// Indices of the mutants that the options select: one, or each `stride`-th from `first` on.
///
/// # Errors
/// The selected index is out of range; the message is the predicate of a sentence about the file.
fn selected_indices(options: &options::Mutants, count: usize) -> Result<Vec<usize>, String> {
    match options.index {
        Some(number) if number < count => Ok(vec![number]),
        Some(number) => Err(match count.checked_sub(1) {
            Some(last) => format!("has mutants 0 to {last}, and no {number}"),
            None => "has no mutants".into(),
        }),
        None => {
            let indices = (options.first..count).step_by(options.stride.get());
            Ok(indices.collect())
        }
    }
}

/// Outcome of a mutant's verdict: success if the change is detected or makes no difference, violated if the mutant
/// survives, undecided at a limit.
fn outcome(verdict: MutantVerdict) -> ExitStatus {
    match verdict {
        MutantVerdict::Rejected | MutantVerdict::Refuted | MutantVerdict::Bisimilar => {
            ExitStatus::Success
        }
        MutantVerdict::Survived => ExitStatus::Violated,
        MutantVerdict::CapacityExceeded | MutantVerdict::Undecided => ExitStatus::Undecided,
    }
}

/// Judges the mutants with these indices on several threads. Returns the verdicts in the order of the indices; `None` if
/// interrupted.
fn judge_all(
    options: &options::Mutants,
    judge: &Judge,
    mutants: &[Mutant],
    indices: &[usize],
    console: &Console,
) -> Option<Vec<MutantVerdict>> {
    let threads = options.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        |threads| usize::from(threads.get()),
    );
    let (next_index, judged_count) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let verdicts = Mutex::new(BTreeMap::new());
    let bar = ProgressLine::new(
        options.file.display().to_string(),
        indices.len() as u64,
        "mutants",
        &console.terminal,
    );
    let flag = console.interrupted;
    let interrupted = || flag.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(indices.len()) {
            scope.spawn(|| {
                while !interrupted() {
                    let index = next_index.fetch_add(1, Ordering::Relaxed);
                    let Some(&number) = indices.get(index) else {
                        return;
                    };
                    let verdict = judge.verdict(&mutants[number]);
                    verdicts
                        .lock()
                        .expect("no thread panics")
                        .insert(index, verdict);
                    judged_count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while console.terminal.progress
            && !interrupted()
            && judged_count.load(Ordering::Relaxed) < indices.len()
        {
            bar.show(judged_count.load(Ordering::Relaxed) as u64);
            std::thread::sleep(PROGRESS_INTERVAL);
        }
    });
    let verdicts = verdicts.into_inner().expect("no thread panics");
    (verdicts.len() == indices.len()).then(|| verdicts.into_values().collect())
}

/// Numbers of verdicts in total and by kind of change, then each mutant that survives or is undecided.
fn text(source: &Source, mutant_count: usize, results: &[JudgedMutant]) -> String {
    let name = &source.protocol.name;
    let mut text = format!(
        "{name}: {} of {mutant_count}: {}\n",
        counted(results.len() as u64, "mutant"),
        verdict_counts(results.iter().map(|judged| judged.verdict))
    );
    let mut kinds: BTreeMap<&str, Vec<MutantVerdict>> = BTreeMap::new();
    for judged in results {
        let verdicts = kinds.entry(judged.mutant.kind).or_default();
        verdicts.push(judged.verdict);
    }
    for (kind, verdicts) in kinds {
        let _ = writeln!(text, "  {kind}: {}", verdict_counts(verdicts.into_iter()));
    }
    for JudgedMutant {
        number,
        mutant,
        verdict,
    } in results
    {
        if outcome(*verdict) != ExitStatus::Success {
            let _ = writeln!(text, "{}: {number}: {}", verdict.name(), mutant.description);
        }
    }
    text
}

/// Number of mutants by verdict, as text.
fn verdict_counts(verdicts: impl Iterator<Item = MutantVerdict>) -> String {
    let mut counts = BTreeMap::new();
    for verdict in verdicts {
        *counts.entry(verdict).or_insert(0u64) += 1;
    }
    let counts: Vec<String> = (counts.into_iter())
        .map(|(verdict, count)| format!("{count} {}", verdict.name()))
        .collect();
    if counts.is_empty() {
        return "none".into();
    }
    counts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{outcome, ExitStatus, MutantVerdict};

    #[test]
    fn surviving_mutant_outranks_undecided_ones() {
        let outcome_of = |verdicts: [MutantVerdict; 3]| verdicts.map(outcome).into_iter().max();
        let open = outcome_of([
            MutantVerdict::Undecided,
            MutantVerdict::CapacityExceeded,
            MutantVerdict::Refuted,
        ]);
        assert_eq!(open, Some(ExitStatus::Undecided));
        let survived = outcome_of([
            MutantVerdict::Undecided,
            MutantVerdict::Survived,
            MutantVerdict::CapacityExceeded,
        ]);
        assert_eq!(survived, Some(ExitStatus::Violated));
    }
}
