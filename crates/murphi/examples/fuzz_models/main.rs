//! Small random models, checked by every engine.
//!
//! ```text
//! cargo run -p cohkit-murphi --example fuzz_models -- --seed SEED --count COUNT --against ours|rumur|orbits
//! ```
//!
//! `orbits` compares our own engines on models with multisets and loops over scalarsets, and partly with records, aliases,
//! `var` parameters and unions of scalarsets; `ours` and `rumur` use models with all constructs.
//!
//! Checks the models `SEED .. SEED + COUNT`, on all cores; each depends on its own number alone. A failing model is
//! reduced and printed with the command that reproduces it. A release build does not distribute such small models among
//! threads, so our own engines are compared in the development profile, which does. The last line of output is JSON;
//! the exit code is 1 after a failure.

use cohkit_testing::random_models::judge::{self, AgreedVerdict, JudgeError};
use cohkit_testing::random_models::{generate, multisets};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of failures that are reduced and printed; the others are only counted.
const MAX_PRINTED: u64 = 5;

/// Counts of all threads. Each counts models unless noted.
#[derive(Default)]
struct Tally {
    /// Index of the next model.
    next_model: AtomicU64,
    /// Verified by all engines.
    verified: AtomicU64,
    /// Violated according to all engines.
    violated: AtomicU64,
    /// Rejected by the front end or the checker.
    rejected: AtomicU64,
    /// Disagreements.
    failures: AtomicU64,
    /// Number of states of all verified models.
    states: AtomicU64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let position = arguments.iter().position(|argument| argument == name)?;
        arguments.get(position + 1)
    };
    let number = |name: &str| option(name)?.parse::<u64>().ok();
    let against = option("--against").map(String::as_str);
    let (Some(seed), Some(count), Some(against @ ("ours" | "rumur" | "orbits")), 6) = (
        number("--seed"),
        number("--count"),
        against,
        arguments.len(),
    ) else {
        eprintln!("usage: fuzz_models --seed SEED --count COUNT --against ours|rumur|orbits");
        return ExitCode::from(2);
    };
    // A panic is reported as any other failure.
    std::panic::set_hook(Box::new(|_| {}));
    let tally = Tally::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let folder = tempfile::tempdir().expect("a folder for Rumur's programs");
                loop {
                    let index = tally.next_model.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    check_model(seed.wrapping_add(index), against, folder.path(), &tally);
                }
            });
        }
    });
    let failures = tally.failures.into_inner();
    println!(
        "{{\"target\": \"fuzz_models\", \"against\": \"{against}\", \"seed\": {seed}, \"models\": {count}, \"verified\": {}, \
         \"violated\": {}, \"refused\": {}, \"states\": {}, \"failures\": {failures}}}",
        tally.verified.into_inner(),
        tally.violated.into_inner(),
        tally.rejected.into_inner(),
        tally.states.into_inner(),
    );
    ExitCode::from(u8::from(failures > 0))
}

/// Judges the model of a seed, and counts the result. A disagreement is reduced and printed.
fn check_model(seed: u64, against: &str, folder: &Path, tally: &Tally) {
    let judge = |text: &str| match against {
        "rumur" => judge::rumur(text, folder),
        _ => judge::compare_engines(text),
    };
    let text = match against {
        "orbits" => multisets::model(seed),
        _ => generate::model(seed, against == "rumur" || seed.is_multiple_of(2)),
    };
    let add = |counter: &AtomicU64, n: u64| counter.fetch_add(n, Ordering::Relaxed);
    match judge(&text) {
        Ok(AgreedVerdict::Verified { states, .. }) => {
            add(&tally.verified, 1);
            add(&tally.states, states as u64);
        }
        Ok(_) => {
            add(&tally.violated, 1);
        }
        Err(JudgeError::Rejected(reason)) => {
            if add(&tally.rejected, 1) < MAX_PRINTED {
                println!("refused: model {seed}\n{reason}");
            }
        }
        Err(JudgeError::Disagreement(kind, reason)) => {
            if add(&tally.failures, 1) >= MAX_PRINTED {
                return;
            }
            let has_same_failure = |t: &str| matches!(judge(t), Err(JudgeError::Disagreement(other_kind, _)) if other_kind == kind);
            let shrunk = judge::shrink(&text, has_same_failure);
            let reason = match judge(&shrunk) {
                Err(JudgeError::Disagreement(_, reason)) => reason,
                _ => reason,
            };
            println!("failed: {reason}\n----\n{shrunk}----");
            println!("cargo run -p cohkit-murphi --example fuzz_models -- --seed {seed} --count 1 --against {against}");
        }
    }
}
