//! Judges the mutants of shipped protocols: each is rejected, refuted, or listed as equivalent with a reason.
//!
//! ```text
//! cargo run -p cohkit-mutants --example mutants -- [--text NAME] [--kinds A,B] [--from N] [--every K] [--threads T] [--print N]
//! ```
//!
//! Judges every K-th mutant of each protocol (default 1) from number N on (default 0), of all kinds or of those named.
//! T is the number of threads (default: all cores). Prints the survivors that are not in
//! `tests/mutations/equivalent.txt`, with the number for `--print`, which shows the source of a mutant. Inconclusive
//! mutants, for lack of states or of channel capacity, are counted separately. The last line is JSON. The exit code is
//! 1 if a mutant survives, or if the list names a mutant that is refuted or does not exist.

use cohkit_testing::mutants::selection::{self, JudgedSelection, MutantSelection};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str =
    "usage: mutants [--text NAME] [--kinds A,B] [--from N] [--every K] [--threads T] [--print N]";

fn main() -> ExitCode {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1).collect()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = selection::shipped(&root);
    if let Some(name) = &arguments.text {
        texts.retain(|(text, _)| text == name);
    }
    if let (Some(number), Some((_, text))) = (arguments.print, texts.first()) {
        match cohkit_mutants::mutants(text).get(number) {
            Some(mutant) => print!("# {}\n{}", mutant.description, mutant.text),
            None => eprintln!("there are not so many"),
        }
        return ExitCode::SUCCESS;
    }
    let known = selection::known(&root);
    let mut results = Vec::new();
    for (name, text) in &texts {
        let (selection, threads) = (&arguments.selection, arguments.threads);
        let result = selection::judge(name, text, &known, selection, threads);
        for problem in &result.problems {
            println!("{problem}");
        }
        for (kind, counts) in &result.kinds {
            println!("  {name}: {kind}: {counts:?}");
        }
        results.push(result);
    }
    let names: Vec<&str> = texts.iter().map(|(name, _)| name.as_str()).collect();
    print_summary(&names, &arguments.selection, &results);
    let has_problems = results.iter().any(|result| !result.problems.is_empty());
    ExitCode::from(u8::from(has_problems))
}

/// Arguments of the command line.
struct Arguments {
    /// Name of the only protocol to judge; `None` for all.
    text: Option<String>,
    /// Mutants to judge.
    selection: MutantSelection,
    /// Number of threads.
    threads: usize,
    /// Number of the mutant to print in place of judging any.
    print: Option<usize>,
}

impl Arguments {
    /// Parses pairs of an option and its value. `None` if a number of a mutant is none.
    fn parse(arguments: Vec<String>) -> Option<Arguments> {
        let option = |name: &str| {
            let index = arguments.iter().position(|argument| argument == name)?;
            arguments.get(index + 1)
        };
        let number = |name: &str| {
            let parsed = option(name).map(|text| text.parse::<usize>());
            parsed.transpose().ok()
        };
        let kinds = option("--kinds").map(|kinds| kinds.split(',').map(String::from).collect());
        let threads = option("--threads").and_then(|text| text.parse().ok());
        let all_cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Some(Arguments {
            text: option("--text").cloned(),
            selection: MutantSelection {
                kinds,
                from: number("--from")?.unwrap_or(0),
                every: number("--every")?.unwrap_or(1),
            },
            threads: threads.unwrap_or_else(all_cores),
            print: number("--print")?,
        })
    }
}

/// Prints the number of mutants by verdict, over all protocols, as one line of JSON.
fn print_summary(names: &[&str], selection: &MutantSelection, results: &[JudgedSelection]) {
    let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
    for (verdict, count) in results.iter().flat_map(JudgedSelection::sums) {
        *sums.entry(verdict).or_default() += count;
    }
    let count = |verdict: &str| sums.get(verdict).copied().unwrap_or(0);
    let MutantSelection { from, every, .. } = selection;
    println!(
        "{{\"target\": \"mutants\", \"texts\": {names:?}, \"from\": {from}, \"every\": {every}, \"mutants\": {}, \
         \"rejected\": {}, \"refuted\": {}, \"left open\": {}, \"undecided\": {}, \"bisimilar\": {}, \"equivalent\": {}, \"wrong\": {}}}",
        sums.values().sum::<usize>(),
        count("rejected"),
        count("refuted"),
        count("left open"),
        count("undecided"),
        count("bisimilar"),
        count("equivalent"),
        results.iter().map(|result| result.problems.len()).sum::<usize>(),
    );
}
