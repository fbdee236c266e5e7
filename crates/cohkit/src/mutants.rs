//! `cohkit mutants`: verdicts on protocol files with one change each, as text and JSON.

use crate::console::Console;
use crate::outcome::{ExitStatus, Failure};
use crate::progress::ProgressLine;
use crate::protocols::Source;
use crate::{deliver, options};
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

pub(crate) fn run(
    options: &options::Mutants,
    console: &mut Console,
) -> Result<ExitStatus, Failure> {
    let source = Source::read(&options.file, console)?;
    let wrong = |what: String| {
        let message = format!("error: {}: {what}", options.file.display());
        Failure::new(ExitStatus::BadInput, message)
    };
    let all = mutants(&source.text);
    let chosen = match options.number {
        Some(number) if number < all.len() => vec![number],
        Some(number) => {
            let there = all.len().checked_sub(1);
            let there = there.map_or("has no mutants".into(), |last| {
                format!("has mutants 0 to {last}, and no {number}")
            });
            return Err(wrong(there));
        }
        None => (options.from..all.len())
            .step_by(options.every.get())
            .collect(),
    };
    if options.print {
        let text: String = (chosen.iter())
            .map(|&number| format!("# {number}: {}\n{}", all[number].what, all[number].text))
            .collect();
        deliver(&text, &options.output, console)?;
        return Ok(ExitStatus::Success);
    }
    let judge = Judge::new(&source.text).map_err(|how| {
        wrong(format!(
            "the unmutated specification is not verified, so its mutants show nothing: {how}\n  \
             help: `cohkit check` reports the details"
        ))
    })?;
    let Some(fates) = fates(options, &judge, &all, &chosen, console) else {
        return Err(Failure::new(
            ExitStatus::Interrupted,
            "interrupted; nothing was written",
        ));
    };
    let judged: Vec<(usize, &Mutant, MutantVerdict)> = (chosen.iter().zip(fates))
        .map(|(&number, fate)| (number, &all[number], fate))
        .collect();
    let result = if options.output.form.json {
        let rows = judged.iter().map(|(number, mutant, fate)| {
            json!({
                "protocol": source.protocol.name,
                "number": number,
                "kind": mutant.kind,
                "mutant": mutant.what,
                "fate": fate.name(),
            })
        });
        options.output.form.told(rows.collect(), console)
    } else {
        text(&source, all.len(), &judged)
    };
    deliver(&result, &options.output, console)?;
    Ok(judged
        .iter()
        .map(|(.., fate)| outcome(*fate))
        .max()
        .unwrap_or(ExitStatus::Success))
}

/// Outcome of a mutant's verdict: yes if the change is detected or makes no difference, no if it survives, undecided at
/// a limit.
fn outcome(fate: MutantVerdict) -> ExitStatus {
    match fate {
        MutantVerdict::Rejected | MutantVerdict::Refuted | MutantVerdict::Bisimilar => {
            ExitStatus::Success
        }
        MutantVerdict::Survived => ExitStatus::Violated,
        MutantVerdict::LeftOpen | MutantVerdict::Undecided => ExitStatus::Undecided,
    }
}

/// Verdicts on the chosen mutants, in their order; `None` if interrupted.
fn fates(
    options: &options::Mutants,
    judge: &Judge,
    all: &[Mutant],
    chosen: &[usize],
    console: &Console,
) -> Option<Vec<MutantVerdict>> {
    let threads = options.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        |threads| usize::from(threads.get()),
    );
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let fates = Mutex::new(BTreeMap::new());
    let bar = ProgressLine::new(
        options.file.display().to_string(),
        chosen.len() as u64,
        "mutants",
        &console.terminal,
    );
    let flag = console.interrupted;
    let interrupted = || flag.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(chosen.len()) {
            scope.spawn(|| {
                while !interrupted() {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&number) = chosen.get(place) else {
                        return;
                    };
                    let fate = judge.fate(&all[number]);
                    fates.lock().expect("nobody panics").insert(place, fate);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while console.terminal.progress
            && !interrupted()
            && done.load(Ordering::Relaxed) < chosen.len()
        {
            bar.show(done.load(Ordering::Relaxed) as u64);
            std::thread::sleep(PROGRESS_INTERVAL);
        }
    });
    let fates = fates.into_inner().expect("nobody panics");
    (fates.len() == chosen.len()).then(|| fates.into_values().collect())
}

/// Numbers of verdicts in total and by kind of change, then each mutant that survives or is undecided.
fn text(source: &Source, all: usize, judged: &[(usize, &Mutant, MutantVerdict)]) -> String {
    let name = &source.protocol.name;
    let mut text = format!(
        "{name}: {} of {all}: {}\n",
        counted(judged.len() as u64, "mutant"),
        sums(judged.iter().map(|(.., fate)| *fate))
    );
    let mut kinds: BTreeMap<&str, Vec<MutantVerdict>> = BTreeMap::new();
    for (_, mutant, fate) in judged {
        kinds.entry(mutant.kind).or_default().push(*fate);
    }
    for (kind, fates) in kinds {
        let _ = writeln!(text, "  {kind}: {}", sums(fates.into_iter()));
    }
    for (number, mutant, fate) in judged {
        if outcome(*fate) != ExitStatus::Success {
            let _ = writeln!(text, "{}: {number}: {}", fate.name(), mutant.what);
        }
    }
    text
}

fn sums(fates: impl Iterator<Item = MutantVerdict>) -> String {
    let mut counts = BTreeMap::new();
    for fate in fates {
        *counts.entry(fate).or_insert(0u64) += 1;
    }
    let counts: Vec<String> = (counts.into_iter())
        .map(|(fate, count)| format!("{count} {}", fate.name()))
        .collect();
    if counts.is_empty() {
        return "none".into();
    }
    counts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survivor_wins_over_an_undecided_mutant() {
        let ends = |fates: [MutantVerdict; 3]| fates.map(outcome).into_iter().max();
        let open = ends([
            MutantVerdict::Undecided,
            MutantVerdict::LeftOpen,
            MutantVerdict::Refuted,
        ]);
        assert_eq!(open, Some(ExitStatus::Undecided));
        let survived = ends([
            MutantVerdict::Undecided,
            MutantVerdict::Survived,
            MutantVerdict::LeftOpen,
        ]);
        assert_eq!(survived, Some(ExitStatus::Violated));
    }
}
