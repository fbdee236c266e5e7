//! Small random protocols, executed by every engine.
//!
//! ```text
//! cargo run -p cohkit-check --example fuzz_protocols -- --seed SEED --count COUNT --against ours|rumur|nothing
//! ```
//!
//! Judges the protocols `SEED .. SEED + COUNT`, on all cores; each depends on its own number alone. `ours` compares the
//! execution of the controllers with the checker's model: interpreted, compiled, over orbits, printed as Murphi and
//! read again, and state by state. It also runs the progress check, the simulator with its oracle, and litmus programs.
//! `rumur` compares with Rumur's result on the printed model. `nothing` prints the protocols without a judgement. A
//! failure is printed with the command that reproduces it. The last line of output is JSON; the exit code is 1 after a
//! failure.

use cohkit_testing::random_protocols::generate;
use cohkit_testing::random_protocols::judge;
use cohkit_testing::rumur;

use judge::{AgreedVerdict, JudgeError};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of failures and rejections that are printed; the others are only counted.
const SHOWN: u64 = 5;

/// Counts of all threads. Each counts protocols unless noted.
#[derive(Default)]
struct Tally {
    /// Index of the next protocol.
    next: AtomicU64,
    /// Verified by all engines.
    verified: AtomicU64,
    /// Violated according to all engines.
    violated: AtomicU64,
    /// Too large to decide.
    undecided: AtomicU64,
    /// Rejected by the front end.
    refused: AtomicU64,
    /// Disagreements and panics.
    failures: AtomicU64,
    /// Number of states of all verified protocols.
    states: AtomicU64,
    /// Verified, but without progress.
    stopping: AtomicU64,
    /// Compared with the simulator too.
    simulated: AtomicU64,
    /// Number of litmus programs run.
    programs: AtomicU64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1)
    };
    let number = |name: &str| option(name)?.parse::<u64>().ok();
    let against = option("--against").map(String::as_str);
    let (Some(seed), Some(count), Some(against @ ("ours" | "rumur" | "nothing")), 6) = (
        number("--seed"),
        number("--count"),
        against,
        arguments.len(),
    ) else {
        eprintln!("usage: fuzz_protocols --seed SEED --count COUNT --against ours|rumur|nothing");
        return ExitCode::from(2);
    };
    if against == "nothing" {
        for text in seed..seed.saturating_add(count) {
            println!("# text {text}\n{}", generate::protocol(text));
        }
        return ExitCode::SUCCESS;
    }
    assert!(
        against == "ours" || rumur::require("rumur"),
        "nothing is compared without Rumur"
    );
    let tally = Tally::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let folder = tempfile::tempdir().expect("a folder for Rumur's programs");
                loop {
                    let next = tally.next.fetch_add(1, Ordering::Relaxed);
                    if next >= count {
                        return;
                    }
                    check_seed(seed.wrapping_add(next), against, folder.path(), &tally);
                }
            });
        }
    });
    let failures = tally.failures.into_inner();
    println!(
        "{{\"target\": \"fuzz_protocols\", \"against\": \"{against}\", \"seed\": {seed}, \"texts\": {count}, \"verified\": {}, \
         \"violated\": {}, \"undecided\": {}, \"refused\": {}, \"states\": {}, \"stopping\": {}, \"simulated\": {}, \"programs\": {}, \"failures\": {failures}}}",
        tally.verified.into_inner(),
        tally.violated.into_inner(),
        tally.undecided.into_inner(),
        tally.refused.into_inner(),
        tally.states.into_inner(),
        tally.stopping.into_inner(),
        tally.simulated.into_inner(),
        tally.programs.into_inner(),
    );
    ExitCode::from(u8::from(failures > 0))
}

fn check_seed(seed: u64, reference: &str, folder: &Path, tally: &Tally) {
    let text = generate::protocol(seed);
    let add = |counter: &AtomicU64, n: u64| counter.fetch_add(n, Ordering::Relaxed);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match reference {
        "rumur" => judge::rumur(&text, |model| {
            rumur::rumur(
                model,
                cohkit_murphi::Style::Plain,
                rumur::Compiled::Unoptimised,
                folder,
            )
        }),
        _ => judge::compare_engines(&text, seed).map(|result| {
            let safe = matches!(result.agreed, AgreedVerdict::Verified(_));
            add(&tally.stopping, (safe && !result.makes_progress).into());
            add(&tally.simulated, result.simulated.into());
            add(&tally.programs, result.programs);
            result.agreed
        }),
    }));
    let result = result.unwrap_or_else(|_| Err(JudgeError::Disagreement("a panic".into())));
    match result {
        Ok(AgreedVerdict::Verified(states)) => {
            add(&tally.verified, 1);
            add(&tally.states, states as u64);
        }
        Ok(AgreedVerdict::Violated) => {
            add(&tally.violated, 1);
        }
        Ok(AgreedVerdict::Undecided) => {
            add(&tally.undecided, 1);
        }
        Err(JudgeError::Rejected(reason)) => {
            if add(&tally.refused, 1) < SHOWN {
                println!("refused: text {seed}\n{reason}");
            }
        }
        Err(JudgeError::Disagreement(reason)) => {
            if add(&tally.failures, 1) >= SHOWN {
                return;
            }
            println!("failed: {reason}\n----\n{text}----");
            println!("cargo run -p cohkit-check --example fuzz_protocols -- --seed {seed} --count 1 --against {reference}");
        }
    }
}
