//! Small random protocols, executed by every engine.
//!
//! ```text
//! cargo run -p cohkit-check --example fuzz_protocols -- --seed SEED --count COUNT --against ours|rumur|nothing
//! ```
//!
//! Judges the protocols `SEED .. SEED + COUNT`, on all cores; each depends on its own number alone. `ours` compares the
//! execution of the controllers with the checker's model: interpreted, compiled, up to symmetry, printed as Murphi and
//! read again, and state by state. It also runs the progress check, the simulator with its oracle, and litmus programs.
//! `rumur` compares with Rumur's result on the printed model. `nothing` prints the protocols without a judgement. A
//! failure is printed with the command that reproduces it. The last line of output is JSON; the exit code is 1 after a
//! failure.

use cohkit_murphi::Style;
use cohkit_testing::random_protocols::generate;
use cohkit_testing::random_protocols::judge::{self, AgreedVerdict, JudgeError};
use cohkit_testing::rumur;
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

/// Reference with which the protocols are compared.
#[derive(Clone, Copy, PartialEq)]
enum Reference {
    /// Our engines among themselves.
    Ours,
    /// Rumur.
    Rumur,
    /// None: the protocols are printed.
    Nothing,
}

impl Reference {
    /// Name of the reference as an argument.
    fn name(self) -> &'static str {
        match self {
            Reference::Ours => "ours",
            Reference::Rumur => "rumur",
            Reference::Nothing => "nothing",
        }
    }
}

/// Arguments of the command line.
struct Arguments {
    /// Number of the first protocol.
    seed: u64,
    /// Number of protocols.
    count: u64,
    /// Reference of the comparison.
    against: Reference,
}

impl Arguments {
    /// Parses the three options, all of which are required.
    fn parse(arguments: &[String]) -> Option<Arguments> {
        let option = |name: &str| {
            let index = arguments.iter().position(|argument| argument == name)?;
            arguments.get(index + 1)
        };
        let number = |name: &str| option(name)?.parse::<u64>().ok();
        let mut references = [Reference::Ours, Reference::Rumur, Reference::Nothing].into_iter();
        let name = option("--against")?;
        let parsed = Arguments {
            seed: number("--seed")?,
            count: number("--count")?,
            against: references.find(|reference| reference.name() == name)?,
        };
        // Three options with a value each.
        (arguments.len() == 6).then_some(parsed)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(arguments) = Arguments::parse(&arguments) else {
        eprintln!("usage: fuzz_protocols --seed SEED --count COUNT --against ours|rumur|nothing");
        return ExitCode::from(2);
    };
    let Arguments {
        seed,
        count,
        against,
    } = arguments;
    if against == Reference::Nothing {
        for number in seed..seed.saturating_add(count) {
            println!("# text {number}\n{}", generate::protocol(number));
        }
        return ExitCode::SUCCESS;
    }
    assert!(
        against == Reference::Ours || rumur::require("rumur"),
        "nothing is compared without Rumur"
    );
    let tally = Tally::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| judge_protocols(&arguments, &tally));
        }
    });
    let has_failures = tally.failures.load(Ordering::Relaxed) > 0;
    tally.print(&arguments);
    ExitCode::from(u8::from(has_failures))
}

/// Judges protocols, one after the other, until all threads together have judged each of them.
fn judge_protocols(arguments: &Arguments, tally: &Tally) {
    let folder = tempfile::tempdir().expect("a folder for Rumur's programs");
    loop {
        let index = tally.next.fetch_add(1, Ordering::Relaxed);
        if index >= arguments.count {
            return;
        }
        let seed = arguments.seed.wrapping_add(index);
        judge_protocol(seed, arguments.against, folder.path(), tally);
    }
}

/// Judges the protocol of a seed. Counts the result, and prints the first failures and rejections.
fn judge_protocol(seed: u64, reference: Reference, folder: &Path, tally: &Tally) {
    let text = generate::protocol(seed);
    let compare = || match reference {
        Reference::Rumur => compare_with_rumur(&text, folder),
        Reference::Ours | Reference::Nothing => compare_engines(&text, seed, tally),
    };
    // A panic of an engine is a failure, and does not end the run.
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(compare));
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
            println!(
                "cargo run -p cohkit-check --example fuzz_protocols -- --seed {seed} --count 1 --against {}",
                reference.name()
            );
        }
    }
}

/// Adds to a counter, and returns its previous value.
fn add(counter: &AtomicU64, number: u64) -> u64 {
    counter.fetch_add(number, Ordering::Relaxed)
}

/// Compares a protocol with Rumur's result on the printed model.
fn compare_with_rumur(text: &str, folder: &Path) -> Result<AgreedVerdict, JudgeError> {
    let compiled = rumur::Compiled::Unoptimised;
    judge::rumur(text, |model| {
        rumur::rumur(model, Style::Plain, compiled, folder)
    })
}

/// Compares our engines on a protocol, and counts the comparisons.
fn compare_engines(text: &str, seed: u64, tally: &Tally) -> Result<AgreedVerdict, JudgeError> {
    let result = judge::compare_engines(text, seed)?;
    let is_verified = matches!(result.agreed, AgreedVerdict::Verified(_));
    add(
        &tally.stopping,
        (is_verified && !result.makes_progress).into(),
    );
    add(&tally.simulated, result.simulated.into());
    add(&tally.programs, result.programs);
    Ok(result.agreed)
}

impl Tally {
    /// Prints the counts as one line of JSON.
    fn print(self, arguments: &Arguments) {
        let (against, seed, count) = (arguments.against.name(), arguments.seed, arguments.count);
        println!(
            "{{\"target\": \"fuzz_protocols\", \"against\": \"{against}\", \"seed\": {seed}, \"texts\": {count}, \"verified\": {}, \
             \"violated\": {}, \"undecided\": {}, \"refused\": {}, \"states\": {}, \"stopping\": {}, \"simulated\": {}, \"programs\": {}, \"failures\": {}}}",
            self.verified.into_inner(),
            self.violated.into_inner(),
            self.undecided.into_inner(),
            self.refused.into_inner(),
            self.states.into_inner(),
            self.stopping.into_inner(),
            self.simulated.into_inner(),
            self.programs.into_inner(),
            self.failures.into_inner(),
        );
    }
}
