//! Runs of a system's program in lockstep with the model.

use super::model::Model;
use super::records::record;
use crate::agents::layout::Agents;
use crate::systems::directory::{Directory, Entries};
use crate::systems::sizes::Sizes;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// A run of a program.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of messages after which no access begins.
    pub messages: u64,
    /// File for the waveform of the whole run, if the program records one.
    pub waveform: Option<&'a Path>,
    /// Directory of the home.
    pub directory: Directory,
    /// Size of a set-associative directory.
    pub entries: Entries,
    /// Sizes of the caches, which the program has.
    pub sizes: Sizes,
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
    /// Number of reads whose bytes were compared with a write.
    pub reads: u64,
    /// Number of atomic operations, and of those that have written nothing.
    pub atomics: [u64; 2],
    /// Number of fences and of flushes.
    pub finished: [u64; 2],
    /// Number of accesses that were answered before an earlier one of their cache.
    pub overtaking: u64,
    /// Number of lines that replacement policies have evicted.
    pub evictions: u64,
    /// Number of recalls that ended, of a set-associative directory.
    pub recalls: u64,
    /// Rows that were executed: of the caches' table, and of the home's.
    pub covered: [Vec<bool>; 2],
    /// Duration of the longest access, in cycles.
    pub longest_access: u64,
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
    let mut model = Model::new(agents, (run.directory, run.entries), run.sizes);
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
        reads: model.reads,
        atomics: model.atomics,
        finished: model.finished,
        overtaking: model.overtaking,
        evictions: model.evictions,
        recalls: model.recalls,
        covered: model.covered,
        longest_access: model.longest_access,
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
