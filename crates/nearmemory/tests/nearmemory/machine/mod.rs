//! Compiled programs on both sides of a whole machine: all kinds of pipes, start and end of programs, and latencies.

mod arrays;
mod cores;
mod dram;
mod host_copies;
mod hosts;
mod ordered;
mod pages;
mod prefetcher;
mod programs;
mod races;
mod rates;
mod stops;
mod verified;

use cohkit_nearmemory::machine::{load_program, Machine, RunOutcome};
use cohkit_nearmemory::{Binaries, Evictions, Platform};
use cohkit_riscv::elf::Image;
use cohkit_riscv::system::{Errno, World};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles a program with the given flags and definitions.
fn compile(flags: &str, source: &str, definitions: &[&str]) -> Vec<u8> {
    try_compile(flags, source, definitions).unwrap_or_else(|stderr| panic!("{stderr}"))
}

/// Compiles a program; the error is the compiler's output.
fn try_compile(flags: &str, source: &str, definitions: &[&str]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("program");
    let output = Command::new("riscv64-unknown-elf-gcc")
        .current_dir(root())
        .arg(format!("@nearmemory/{flags}.flags"))
        .arg("-Werror")
        .args(definitions)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the command starts");
    match output.status.success() {
        true => Ok(std::fs::read(program).expect("the file can be read")),
        false => Err(String::from_utf8_lossy(&output.stderr).into()),
    }
}

/// Collected output of programs.
#[derive(Default)]
struct CollectedOutput(String);

impl World for CollectedOutput {
    fn write(&mut self, _file: u32, bytes: &[u8]) -> Result<usize, Errno> {
        self.0 += &String::from_utf8_lossy(bytes);
        Ok(bytes.len())
    }
}

/// Result of a run.
struct RunResult {
    /// Output of the programs.
    text: String,
    /// Reported events; the last one is the end of the run.
    outcomes: Vec<RunOutcome>,
    /// Counters of the machine at the end, by name.
    counters: Vec<(String, u64)>,
}

impl RunResult {
    /// Value of a counter; panics if there is no such counter.
    #[track_caller]
    fn counter(&self, name: &str) -> u64 {
        let counter = self
            .counters
            .iter()
            .find(|(counter_name, _)| counter_name == name);
        counter.unwrap_or_else(|| panic!("no counter {name}")).1
    }
}

/// Runs a host's program with the channel programs that it may start.
fn run(
    platform: &Platform,
    host: &[u8],
    command: &str,
    channels: &[(&str, &[u8])],
    evictions: Option<Evictions>,
) -> RunResult {
    run_as(
        platform,
        host,
        command,
        channels,
        evictions,
        RunMode::InTime,
    )
}

/// Runs a host's program with the race detector.
fn run_watched(
    platform: &Platform,
    host: &[u8],
    command: &str,
    channels: &[(&str, &[u8])],
    evictions: Option<Evictions>,
) -> RunResult {
    run_as(
        platform,
        host,
        command,
        channels,
        evictions,
        RunMode::Watched,
    )
}

/// Mode of a run: timed, timed with the race detector, or functional.
#[derive(Clone, Copy, Debug)]
enum RunMode {
    /// Timed, without the race detector.
    InTime,
    /// Timed, with the race detector.
    Watched,
    /// Functional: without time.
    FastInterpreter,
}

/// Runs a host's program in the given mode, up to its end or a limit of instructions. `command` is its command line,
/// without its name.
fn run_as(
    platform: &Platform,
    host: &[u8],
    command: &str,
    channels: &[(&str, &[u8])],
    evictions: Option<Evictions>,
    mode: RunMode,
) -> RunResult {
    let image = Image::read(host).expect("a valid ELF program");
    let (main, system) =
        load_program(&image, 64 << 20, command).expect("the program fits in memory");
    let mut binaries = Binaries::default();
    for (name, file) in channels {
        binaries.add(name, file).expect("a valid channel program");
    }
    let mut machine = Machine::new(platform, main, system, &image, binaries, evictions);
    match mode {
        RunMode::InTime => {}
        RunMode::Watched => machine.enable_race_detection(),
        RunMode::FastInterpreter => machine.run_functionally(),
    }
    // Requested long runs have no limit on events.
    let max_instructions = match std::env::var_os("COHKIT_WORDS") {
        Some(_) => u64::MAX,
        None => 1_000_000_000,
    };
    let mut output = CollectedOutput::default();
    let mut outcomes = Vec::new();
    loop {
        let outcome = machine.run(1 << 16, &mut output);
        let has_ended = match &outcome {
            Some(
                RunOutcome::Rejected { .. } | RunOutcome::Stopped { .. } | RunOutcome::Race(_),
            ) => false,
            Some(_) => true,
            None => machine.instructions() > max_instructions,
        };
        outcomes.extend(outcome);
        if has_ended {
            let counters = machine.counters();
            return RunResult {
                text: output.0,
                outcomes,
                counters,
            };
        }
    }
}
