//! The built program of a system, and its runs.

use super::model::Model;
use super::records::record;
use crate::agents::layout::Agents;
use crate::lockstep::build::{build_cached, run_verilator, BuildError};
use crate::sources::{SYSTEM_BENCH, SYSTEM_UNITS};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Instance of the monitor in a cache.
const CACHE_MONITOR: &str =
    include_str!("../../../../../hardware/coherent/bench/cache_monitor.svh");
/// Instance of the monitor in the home.
const HOME_MONITOR: &str = include_str!("../../../../../hardware/coherent/bench/home_monitor.svh");

/// Name of the program.
const PROGRAM: &str = "system";

/// A printed file: name and text.
pub type File = (String, String);

/// A run of a program.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of messages after which no access begins.
    pub messages: u64,
    /// File for the waveform of the whole run, if the program records one.
    pub waveform: Option<&'a Path>,
    /// Number of the fault that is active, in a program with seeded faults; 0 for none.
    pub fault: u32,
}

/// Result of a run without a difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Number of messages that were received.
    pub messages: u64,
    /// Number of steps, accesses and operations of memory that were compared.
    pub records: u64,
    /// Rows that were executed: of the caches' table, and of the home's.
    pub covered: [Vec<bool>; 2],
}

/// Reason for which a run has no report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// The hardware differs from the model: number of the record, and the difference.
    Difference(u64, String),
    /// The program cannot be run.
    Failed(String),
    /// The run was cancelled.
    Stopped,
}

/// Builds the test program of a system in a folder below `cache`, unless it exists there. `printed` are the package,
/// the step functions and the top. Returns the path of the program.
///
/// # Errors
/// [`BuildError`].
pub fn build(
    cache: &Path,
    agents: &Agents,
    printed: &[File],
    waveforms: bool,
    stop: &AtomicBool,
) -> Result<PathBuf, BuildError> {
    let units: Vec<File> = SYSTEM_UNITS
        .iter()
        .map(|(name, text)| (name.to_string(), text.to_string()))
        .collect();
    build_from(cache, agents, &units, printed, waveforms, stop)
}

/// Builds from other units than those of the product, for example with a seeded fault. See [`build`].
///
/// # Errors
/// [`BuildError`].
pub fn build_from(
    cache: &Path,
    agents: &Agents,
    units: &[File],
    printed: &[File],
    waveforms: bool,
    stop: &AtomicBool,
) -> Result<PathBuf, BuildError> {
    // The channel of the product is inside one that delays messages, and the agents get monitors.
    let with_monitor = |text: &str, module: &str, monitor: &str| {
        let end = format!("endmodule : {module}");
        text.replace(&end, &format!("\n{monitor}{end}"))
    };
    let adapt = |(name, text): &File| match name.as_str() {
        "cohkit_channel.sv" => {
            let text = text.replace("cohkit_channel", "cohkit_plain_channel");
            ("cohkit_plain_channel.sv".to_string(), text)
        }
        "cohkit_cache.sv" => (
            name.clone(),
            with_monitor(text, "cohkit_cache", CACHE_MONITOR),
        ),
        "cohkit_home.sv" => (
            name.clone(),
            with_monitor(text, "cohkit_home", HOME_MONITOR),
        ),
        _ => (name.clone(), text.clone()),
    };
    let units = units.iter().map(adapt);
    let bench = SYSTEM_BENCH
        .iter()
        .map(|(name, text)| (name.to_string(), text.to_string()));
    let files: Vec<File> = bench.chain(printed.iter().cloned()).chain(units).collect();
    let name = &agents.protocol.name;
    build_cached(
        cache,
        &format!("{name}-system"),
        (&files, waveforms),
        PROGRAM,
        |folder| {
            let mut command = Command::new("verilator");
            command.args([
                "--cc",
                "--exe",
                "--build",
                "-j",
                "2",
                "--assert",
                "-Wno-fatal",
                "-Wno-lint",
                "-Wno-style",
            ]);
            command.args([
                "-O3",
                "-MAKEFLAGS",
                "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1",
            ]);
            command.args([
                "--x-assign",
                "unique",
                "--x-initial",
                "unique",
                "--top-module",
                "bench",
            ]);
            command.args(["--Mdir", "made", "-o", &format!("../{PROGRAM}")]);
            command.arg(format!("-DSYSTEM={name}_system"));
            command.arg(format!("-GCaches={}", agents.total()));
            if waveforms {
                command.args(["--trace-fst", "--trace-structs"]);
            }
            command.args(files.iter().map(|(name, _)| name));
            run_verilator(&files, &mut command, folder, stop)
        },
    )
}

/// Runs a program with random traffic, and compares each step with the rows of the protocol.
///
/// # Errors
/// The first difference, or the reason why there is no result.
pub fn run(
    program: &Path,
    agents: &Agents,
    run: Run,
    stop: &AtomicBool,
) -> Result<Report, RunError> {
    let failed =
        |error: std::io::Error| RunError::Failed(format!("{}: {error}", program.display()));
    let mut command = Command::new(program);
    command.arg(run.messages.to_string());
    command.args(run.waveform);
    // Verilator's seeds are positive numbers of 31 bits.
    command.arg(format!("+verilator+seed+{}", run.seed % 0x7fff_fffe + 1));
    command.arg(format!("+fault+{}", run.fault));
    command.arg("+verilator+rand+reset+2");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let output = child.stdout.take();
    let mut model = Model::new(agents);
    let result = follow(&mut model, output.map(BufReader::new), stop);
    // The program ends by itself after the last record, and has no use after a difference. One that records a waveform
    // completes the file: it ends when it finds the pipe closed.
    if run.waveform.is_none() || result == Err(RunError::Stopped) {
        let _ = child.kill();
    }
    child.wait().map_err(failed)?;
    result?;
    Ok(Report {
        messages: model.messages,
        records: model.records,
        covered: model.covered,
    })
}

/// Follows the records of a program to the last.
fn follow(
    model: &mut Model,
    output: Option<impl BufRead>,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    for line in output.into_iter().flat_map(BufRead::lines) {
        let line = line.map_err(|error| RunError::Failed(error.to_string()))?;
        if stop.load(Ordering::Relaxed) {
            return Err(RunError::Stopped);
        }
        let Some(record) = record(&line) else {
            // An assertion of the hardware, for example that a case covers its values.
            if line.contains("%Error") {
                return Err(RunError::Difference(model.records, line));
            }
            continue;
        };
        let followed = model.follow(record);
        followed.map_err(|difference| RunError::Difference(model.records, difference))?;
        if model.is_complete {
            return Ok(());
        }
    }
    match stop.load(Ordering::Relaxed) {
        true => Err(RunError::Stopped),
        false => Err(RunError::Failed(
            "the program of the system ended early".to_string(),
        )),
    }
}
