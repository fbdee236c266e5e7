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

use cohkit_testing::mutants::selection;

use selection::MutantSelection;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let index = arguments.iter().position(|argument| argument == name)?;
        arguments.get(index + 1)
    };
    let number = |name: &str| option(name).map(|text| text.parse::<usize>());
    let (Ok(from), Ok(every), Ok(print)) = (
        number("--from").transpose().map(|n| n.unwrap_or(0)),
        number("--every").transpose().map(|n| n.unwrap_or(1)),
        number("--print").transpose(),
    ) else {
        eprintln!(
            "usage: mutants [--text NAME] [--kinds A,B] [--from N] [--every K] [--threads T] [--print N]"
        );
        return ExitCode::from(2);
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = selection::shipped(&root);
    if let Some(name) = option("--text") {
        texts.retain(|(text, _)| text == name);
    }
    if let (Some(number), Some((_, text))) = (print, texts.first()) {
        match cohkit_mutants::mutants(text).get(number) {
            Some(mutant) => print!("# {}\n{}", mutant.description, mutant.text),
            None => eprintln!("there are not so many"),
        }
        return ExitCode::SUCCESS;
    }
    let known = selection::known(&root);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = option("--threads")
        .and_then(|n| n.parse().ok())
        .unwrap_or(threads);
    let kinds = option("--kinds").map(|kinds| kinds.split(',').map(String::from).collect());
    let mut all_passed = true;
    let mut results = Vec::new();
    let selection = MutantSelection { kinds, from, every };
    for (name, text) in &texts {
        let result = selection::judge(name, text, &known, &selection, threads);
        for problem in &result.problems {
            println!("{problem}");
        }
        all_passed &= result.problems.is_empty();
        for (kind, counts) in &result.kinds {
            println!("  {name}: {kind}: {counts:?}");
        }
        results.push(result);
    }
    let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
    for result in &results {
        for (verdict, count) in result.sums() {
            *sums.entry(verdict).or_default() += count;
        }
    }
    let names: Vec<&str> = texts.iter().map(|(name, _)| name.as_str()).collect();
    let count = |verdict: &str| sums.get(verdict).copied().unwrap_or(0);
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
    ExitCode::from(u8::from(!all_passed))
}
