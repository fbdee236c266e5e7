//! Mutation fuzzer of the front end.
//!
//! ```text
//! cargo run --release -p cohkit-protocol --example fuzz_text -- --seed SEED --count COUNT
//! ```
//!
//! Runs the inputs `SEED .. SEED + COUNT` on all cores. Each input depends on its number alone, so the result does not
//! depend on the number of threads. The command printed for a failing input runs it again. The last line of output is
//! JSON; the exit code is 1 after a failure. An input that kills the process or never returns prints no message: the
//! last progress line on standard error then shows where to look.

use cohkit_testing::mutate_text;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Number of inputs that a thread takes at a time.
const BATCH: u64 = 10_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1)?.parse::<u64>().ok()
    };
    let (Some(seed), Some(count), 4) = (option("--seed"), option("--count"), arguments.len())
    else {
        eprintln!("usage: fuzz_text --seed SEED --count COUNT");
        return ExitCode::from(2);
    };
    let begin = Instant::now();
    // A panic is reported below, with its input.
    std::panic::set_hook(Box::new(|_| {}));
    let (next, accepted, failures) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let corpus = mutate_text::Corpus::load();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= count {
                    return;
                }
                if first > 0 && first % 1_000_000 == 0 {
                    eprintln!("{first} of {count}, {:.0} s", begin.elapsed().as_secs_f64());
                }
                for number in first..count.min(first + BATCH) {
                    let number = seed.wrapping_add(number);
                    let text = corpus.input(number);
                    let outcome = catch_unwind(AssertUnwindSafe(|| mutate_text::check(&text, number % 16 == 0)));
                    match outcome {
                        Ok(Ok(true)) => {
                            accepted.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(Ok(false)) => {}
                        failure => {
                            let reason = failure.map_or_else(panic_message, |result| result.unwrap_err());
                            if failures.fetch_add(1, Ordering::Relaxed) < 10 {
                                println!("failed: {reason}\n----\n{text}\n----");
                                println!("cargo run --release -p cohkit-protocol --example fuzz_text -- --seed {number} --count 1");
                            }
                        }
                    }
                }
            });
        }
    });
    let (accepted, failures) = (accepted.into_inner(), failures.into_inner());
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{{\"target\": \"fuzz_text\", \"seed\": {seed}, \"executions\": {count}, \"accepted\": {accepted}, \
         \"failures\": {failures}, \"run\": {{\"seconds\": {seconds:.1}, \"per_second\": {:.0}}}}}",
        count as f64 / seconds
    );
    ExitCode::from(u8::from(failures > 0))
}

fn panic_message(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
    format!("panic: {}", text.unwrap_or_default())
}
