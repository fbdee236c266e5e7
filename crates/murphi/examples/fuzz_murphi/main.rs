//! Mutation fuzzing of the Murphi front end.
//!
//! ```text
//! cargo run --release -p cohkit-murphi --example fuzz_murphi -- --seed SEED --count COUNT
//! ```
//!
//! Reads the texts `SEED .. SEED + COUNT`, on all cores; each depends on its own number alone. The last line of output
//! is JSON; the exit code is 1 after a failure.

use cohkit_testing::mutate_murphi;

use cohkit_murphi::Dialect;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of texts that a thread reads before it fetches further ones.
const BATCH: u64 = 1000;

/// Maximum number of failures that are printed; the others are only counted.
const MAX_PRINTED: u64 = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let position = arguments.iter().position(|argument| argument == name)?;
        arguments.get(position + 1)?.parse::<u64>().ok()
    };
    let (Some(seed), Some(count), 4) = (option("--seed"), option("--count"), arguments.len())
    else {
        eprintln!("usage: fuzz_murphi --seed SEED --count COUNT");
        return ExitCode::from(2);
    };
    // A panic is reported below, with its text.
    std::panic::set_hook(Box::new(|_| {}));
    let (next, accepted, failures) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let corpus = mutate_murphi::Corpus::load();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let check_batch = |first: u64| {
        for number in first..count.min(first + BATCH) {
            let number = seed.wrapping_add(number);
            let text = corpus.mutant(number);
            let dialect = [Dialect::Any, Dialect::CMurphi, Dialect::Rumur][number as usize % 3];
            match catch_unwind(AssertUnwindSafe(|| mutate_murphi::check(&text, dialect))) {
                Ok(Ok(is_accepted)) => {
                    accepted.fetch_add(is_accepted as u64, Ordering::Relaxed);
                }
                failure => {
                    let reason = failure.unwrap_or_else(|_| Err("a panic".into()));
                    if failures.fetch_add(1, Ordering::Relaxed) < MAX_PRINTED {
                        println!("failed: {reason:?}\n----\n{text}\n----");
                        println!("cargo run --release -p cohkit-murphi --example fuzz_murphi -- --seed {number} --count 1");
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= count {
                    return;
                }
                check_batch(first);
            });
        }
    });
    let (accepted, failures) = (accepted.into_inner(), failures.into_inner());
    println!(
        "{{\"target\": \"fuzz_murphi\", \"seed\": {seed}, \"executions\": {count}, \"accepted\": {accepted}, \"failures\": {failures}}}"
    );
    ExitCode::from(u8::from(failures > 0))
}
