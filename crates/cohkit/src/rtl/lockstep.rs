//! `cohkit rtl test`: the RTL in lockstep with the controllers.

use super::{build_library, compile, file_name, interrupted, origin};
use crate::console::{Console, Terminal};
use crate::deliver;
use crate::interrupt::CleanupGuard;
use crate::options::RtlTest;
use crate::progress::ProgressLine;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_base::words::counted;
use cohkit_rtl::lockstep::bench::{Report, Run};
use cohkit_rtl::lockstep::build::PrintedHome;
use cohkit_rtl::lockstep::reachability::ReachabilityGraph;
use cohkit_rtl::lockstep::setup::{Mismatch, RunError, Setup, Waveform};
use cohkit_rtl::lockstep::shapes::{of_seed, Shape, SHAPES};
use cohkit_rtl::print::package;
use cohkit_rtl::rom::Rom;
use cohkit_trace::Trace;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Number of cycles before a mismatch that a waveform shows.
const WAVEFORM_CYCLES: u64 = 2000;

/// First cycle that a waveform can show: the cycles before it are the reset.
const FIRST_WAVEFORM_CYCLE: u64 = 5;

/// A row of the ROM: indices of its state and of its event.
type RowIndex = (usize, usize);

/// Runs of one shape.
#[derive(Clone, Copy, Default)]
struct ShapeCounts {
    /// Number of seeds that were run.
    seeds: u64,
    /// Number of messages in runs without a mismatch.
    messages: u64,
}

/// Results of all runs.
#[derive(Default)]
struct Totals {
    /// Runs by shape, in the order of [`SHAPES`].
    shapes: [ShapeCounts; SHAPES.len()],
    /// Number of messages that remote and home exchanged.
    messages: u64,
    /// Number of responses to local operations of the device.
    local_responses: u64,
    /// Number of lines that the directory evicted.
    evictions: u64,
    /// Number of illegal messages, local operations and unlocks that the home dropped or rejected.
    illegal_inputs: u64,
    /// Number of simulated clock cycles.
    cycles: u64,
    /// Indexed by state and event: true if a run has used the row.
    covered: Vec<Vec<bool>>,
    /// First mismatch, with its seed.
    mismatch: Option<(u64, Box<Mismatch>)>,
    /// Reason why the requested waveform of the mismatch is missing.
    waveform_error: Option<String>,
    /// Number of mutated ROM rows whose mutation lockstep detected.
    detected: u64,
    /// Mutated ROM rows whose mutation lockstep did not detect.
    undetected: Vec<RowIndex>,
}

impl Totals {
    /// Results before the first run.
    fn new(rom: &Rom) -> Totals {
        Totals {
            covered: vec![vec![false; rom.events.len()]; rom.states.len()],
            ..Totals::default()
        }
    }

    /// Number of mutated ROM rows.
    fn mutated(&self) -> u64 {
        self.detected + self.undetected.len() as u64
    }

    /// Adds the counts and the coverage of one run without a mismatch.
    fn add(&mut self, report: &Report, rom: &Rom) {
        self.messages += report.messages;
        self.local_responses += report.answers;
        self.evictions += report.evictions;
        self.illegal_inputs += report.illegal_inputs;
        self.cycles += report.cycles;
        for (state, event) in rom.used() {
            self.covered[state][event] |= report.covered[state][event];
        }
    }
}

/// Libraries of the RTL, built for each shape that a seed has.
struct Builds<'a> {
    /// Folder of built libraries.
    cache: &'a Path,
    /// Protocol, ROM and package that all shapes have in common.
    printed: PrintedHome<'a>,
    /// Library of each shape in the order of [`SHAPES`]; `None` before it is needed.
    libraries: [Option<PathBuf>; SHAPES.len()],
}

impl Builds<'_> {
    /// Index of a seed's shape in [`SHAPES`].
    fn shape_index(options: &RtlTest, seed: u64) -> usize {
        let name = options.shape.as_deref().unwrap_or(of_seed(seed));
        SHAPES
            .iter()
            .position(|(shape_name, _)| *shape_name == name)
            .unwrap_or(0)
    }

    /// Builds a library of a shape that can write waveforms, which makes it slower.
    fn library_with_waveforms(&self, index: usize, console: &Console) -> Result<PathBuf, Failure> {
        build_library(self.cache, self.printed, SHAPES[index].1, true, console)
    }

    /// Returns the library of a shape; builds it if it is missing.
    fn library(&mut self, index: usize, console: &Console) -> Result<PathBuf, Failure> {
        if let Some(library) = &self.libraries[index] {
            return Ok(library.clone());
        }
        let shape = SHAPES[index].1;
        let library = build_library(self.cache, self.printed, shape, false, console)?;
        self.libraries[index] = Some(library.clone());
        Ok(library)
    }
}

/// Returns the last seed, after checks that the options can be met.
fn last_seed(options: &RtlTest) -> Result<u64, Failure> {
    let Some(last_seed) = options.seed.checked_add(options.seeds - 1) else {
        let message = format!(
            "error: `--seed {}` leaves fewer seeds than `--seeds {}`\n  help: the last one is {}",
            options.seed,
            options.seeds,
            u64::MAX
        );
        return Err(Failure::new(ExitStatus::BadInput, message));
    };
    // Reject unusable output paths before a long test.
    let output_paths = options.output.out.iter().chain(&options.trace);
    for file in output_paths.chain(&options.waveform) {
        files::try_file(file)?;
    }
    // Verilator removes whatever is at the path of a waveform, even a device of the system.
    if let Some(file) = &options.waveform {
        if std::fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
            let message = format!(
                "error: {}: is no file\n  help: the waveform would replace it; name a file",
                file.display()
            );
            return Err(Failure::new(ExitStatus::BadInput, message));
        }
    }
    Ok(last_seed)
}

/// Runs all seeds until the first mismatch, and mutates ROM rows if the options ask for it. The outcome is
/// [`ExitStatus::Violated`] after a mismatch or an undetected mutation.
pub(super) fn test(options: &RtlTest, console: &mut Console) -> Result<ExitStatus, Failure> {
    let last_seed = last_seed(options)?;
    let source = Source::read(&options.file, console.terminal.colour)?;
    let (home, rom) = compile(&source, console)?;
    let protocol = &source.protocol;
    let file = file_name(&options.file);
    let package = package(protocol, &rom, &origin(&source, &file));
    let cache = options
        .build_cache
        .clone()
        .unwrap_or_else(default_cache_folder);
    files::make_folder(&cache)?;
    let _cleanup = CleanupGuard::new();
    let mut builds = Builds {
        cache: &cache,
        printed: PrintedHome {
            protocol: &protocol.name,
            rom: &rom,
            package: &package,
        },
        libraries: Default::default(),
    };
    let first_index = Builds::shape_index(options, options.seed);
    let library = builds.library(first_index, console)?;
    let folder =
        tempfile::tempdir().map_err(|error| files::cannot_write(&std::env::temp_dir(), &error))?;
    let reachability = ReachabilityGraph::new(protocol, &home, &rom);
    let setup = Setup {
        protocol,
        home: &home,
        rom: &rom,
        library: &library,
        shape: SHAPES[first_index].1,
        graph: reachability.as_ref(),
        argument: "",
        folder: folder.path(),
        stop: console.interrupted,
    };
    let mut total = Totals::new(&rom);
    for seed in options.seed..=last_seed {
        let index = Builds::shape_index(options, seed);
        let library = builds.library(index, console)?;
        let run = Run::new(seed, options.messages);
        if let Some(mismatch) = run_seed(&setup, &library, index, run, &mut total)? {
            total.mismatch = Some((seed, mismatch));
            break;
        }
    }
    match &total.mismatch {
        Some((seed, mismatch)) => {
            total.waveform_error =
                record_waveform(&setup, &builds, options, (*seed, mismatch), console)?;
        }
        None => {
            if let Some(file) = &options.trace {
                write_traces(&setup, Run::new(options.seed, options.messages), file)?;
            }
            if options.mutate_rows > 0 {
                test_mutated_rows(&setup, options, &mut total, &console.terminal)?;
            }
        }
    }
    let result = match options.output.form.json {
        true => options
            .output
            .form
            .format_output(json(options, &source, &setup, &total, &builds), console),
        false => text(options, &source, &setup, &total, console),
    };
    deliver(&result, &options.output, console)?;
    if let Some(reason) = &total.waveform_error {
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        console.say(&format!("warning: the mismatch has no waveform: {reason}"));
    }
    let is_violated = total.mismatch.is_some() || !total.undetected.is_empty();
    Ok(match is_violated {
        true => ExitStatus::Violated,
        false => ExitStatus::Success,
    })
}

/// Runs one seed on the library of its shape, and adds its counts to the totals. Returns the mismatch, if there is one.
fn run_seed(
    setup: &Setup,
    library: &Path,
    shape_index: usize,
    run: Run,
    total: &mut Totals,
) -> Result<Option<Box<Mismatch>>, Failure> {
    let setup = Setup {
        library,
        shape: SHAPES[shape_index].1,
        ..*setup
    };
    total.shapes[shape_index].seeds += 1;
    match setup.run(run, None) {
        Ok(report) => {
            total.shapes[shape_index].messages += report.messages;
            total.add(&report, setup.rom);
            Ok(None)
        }
        Err(error) => into_mismatch(error).map(Some),
    }
}

/// Repeats the run of a mismatch and records its last cycles, if the options name a file for the waveform. Returns the
/// reason why there is no waveform: the mismatch matters more, and is reported in any case.
///
/// # Errors
/// The command was interrupted.
fn record_waveform(
    setup: &Setup,
    builds: &Builds,
    options: &RtlTest,
    (seed, mismatch): (u64, &Mismatch),
    console: &Console,
) -> Result<Option<String>, Failure> {
    let Some(file) = &options.waveform else {
        return Ok(None);
    };
    let waveform = Waveform {
        file,
        from: mismatch
            .cycle
            .saturating_sub(WAVEFORM_CYCLES)
            .max(FIRST_WAVEFORM_CYCLE),
    };
    let index = Builds::shape_index(options, seed);
    let result = builds
        .library_with_waveforms(index, console)
        .and_then(|library| {
            let setup = Setup {
                library: &library,
                shape: SHAPES[index].1,
                ..*setup
            };
            let rerun = setup.run(Run::new(seed, options.messages), Some(waveform));
            check_waveform(rerun, file)
        });
    match result {
        Ok(()) => Ok(None),
        Err(failure) if failure.outcome == ExitStatus::Interrupted => Err(failure),
        Err(failure) => Ok(Some(failure.message)),
    }
}

/// Writes the events on each line of a run.
fn write_traces(setup: &Setup, run: Run, file: &Path) -> Result<(), Failure> {
    let sequences = match setup.traces(run) {
        Ok(sequences) => sequences,
        Err(RunError::Mismatch(_)) => {
            let message = "error: the repeated run for the trace ends in a mismatch";
            return Err(Failure::new(ExitStatus::CouldNotRun, message));
        }
        Err(error) => return into_mismatch(error).map(drop),
    };
    let traces = sequences
        .into_iter()
        .filter(|sequence| !sequence.steps.is_empty());
    let traces = traces.map(|sequence| {
        Trace {
            sequence,
            ends_quiescent: true,
        }
        .json()
    });
    let value: serde_json::Value = traces.collect();
    files::write(file, &format!("{value:#}\n"))
}

/// Mutates ROM rows, spread evenly over the reachable ones, and counts the mutations that are detected.
fn test_mutated_rows(
    setup: &Setup,
    options: &RtlTest,
    total: &mut Totals,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let rows = reachable_rows(setup);
    let count = options.mutate_rows.min(rows.len() as u64);
    let bar = ProgressLine::new(setup.protocol.name.clone(), count, "rows mutated", terminal);
    for index in 0..count {
        bar.show(index);
        let (state, event) = rows[(index * rows.len() as u64 / count) as usize];
        match setup.detects_mutation(state, event, options.seed) {
            Ok(true) => total.detected += 1,
            Ok(false) => total.undetected.push((state, event)),
            // Never a mismatch, so this returns the failure.
            Err(error) => drop(into_mismatch(error)?),
        }
    }
    Ok(())
}

/// Reachable rows, in the order of the ROM.
fn reachable_rows(setup: &Setup) -> Vec<RowIndex> {
    let used_rows = setup.rom.used();
    used_rows
        .filter(|&row| {
            setup
                .graph
                .is_none_or(|graph| graph.index_from_last(row).is_some())
        })
        .collect()
}

/// Checks that the repeated run ended in a mismatch again, and that its waveform was written.
fn check_waveform(rerun: Result<Report, RunError>, file: &Path) -> Result<(), Failure> {
    let failure = |reason: &str| {
        Err(Failure::new(
            ExitStatus::CouldNotRun,
            format!("error: {reason}"),
        ))
    };
    match rerun {
        Ok(_) => return failure("the repeated run for the chart ends without a mismatch"),
        Err(error) => drop(into_mismatch(error)?),
    }
    match std::fs::metadata(file) {
        Ok(metadata) if metadata.is_file() && metadata.len() == 0 => failure(&format!(
            "{}: nothing could be written; is the disk full?",
            file.display()
        )),
        Ok(_) => Ok(()),
        Err(error) => Err(files::cannot_write(file, &error)),
    }
}

/// Returns the mismatch, or the failure if the run ended for another reason.
fn into_mismatch(error: RunError) -> Result<Box<Mismatch>, Failure> {
    match error {
        RunError::Mismatch(mismatch) => Ok(mismatch),
        RunError::Stopped => Err(interrupted()),
        RunError::Tool(reason) => Err(Failure::new(
            ExitStatus::CouldNotRun,
            format!("error: {reason}"),
        )),
    }
}

/// Default folder for builds.
pub(super) fn default_cache_folder() -> PathBuf {
    let folder_in = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    folder_in("XDG_CACHE_HOME")
        .or_else(|| folder_in("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("cohkit/rtl")
}

/// Reachable rows that no run has used.
fn uncovered_rows(setup: &Setup, total: &Totals) -> Vec<RowIndex> {
    reachable_rows(setup)
        .into_iter()
        .filter(|&(state, event)| !total.covered[state][event])
        .collect()
}

/// Command that repeats the run of a seed.
fn reproduce_command(options: &RtlTest, seed: u64) -> String {
    let shape = options.shape.as_ref();
    format!(
        "cohkit rtl test {} --seed {seed} --seeds 1 --messages {}{}",
        options.file.display(),
        options.messages,
        shape.map_or(String::new(), |name| format!(" --shape {name}"))
    )
}

/// Name of a row for users: its state and event.
fn row_name(setup: &Setup, (state, event): RowIndex) -> String {
    format!(
        "{} on {}",
        setup.rom.states[state], setup.rom.events[event].name
    )
}

/// Result as text: the first mismatch with its chart, or the numbers of all runs.
fn text(
    options: &RtlTest,
    source: &Source,
    setup: &Setup,
    total: &Totals,
    console: &Console,
) -> String {
    let name = &source.protocol.name;
    if let Some((seed, mismatch)) = &total.mismatch {
        let has_waveform = total.waveform_error.is_none();
        return mismatch_text(name, options, (*seed, mismatch), has_waveform, console);
    }
    let uncovered = uncovered_rows(setup, total);
    let rows = reachable_rows(setup).len();
    let mut text = format!(
        "{name}: no mismatch: {} over {}, {} of {rows} rows of the ROM used\n  {}, {}, {}, {} refused\n",
        counted(total.messages, "message"),
        counted(options.seeds, "seed"),
        rows - uncovered.len(),
        counted(total.cycles, "cycle"),
        counted(total.local_responses, "local response"),
        counted(total.evictions, "eviction"),
        counted(total.illegal_inputs, "illegal input"),
    );
    let seeds = SHAPES.iter().zip(total.shapes);
    let seeds = seeds.filter(|(_, counts)| counts.seeds > 0);
    let seeds = seeds.map(|((name, _), counts)| format!("{name} {}", counts.seeds));
    text += &format!(
        "  seeds of shapes: {}\n",
        seeds.collect::<Vec<_>>().join(", ")
    );
    if options.mutate_rows > 0 {
        text += &format!(
            "  {} rows mutated (one at a time, one field of the ROM changed in each), {} noticed\n",
            total.mutated(),
            total.detected
        );
    }
    for &row in &total.undetected {
        text += &format!("  not noticed: {}\n", row_name(setup, row));
    }
    if options.uncovered_rows {
        for row in uncovered {
            text += &format!("  not used: {}\n", row_name(setup, row));
        }
    }
    text
}

/// First mismatch as text: with the chart of its line, the file of its waveform and the command that repeats it.
fn mismatch_text(
    protocol: &str,
    options: &RtlTest,
    (seed, mismatch): (u64, &Mismatch),
    has_waveform: bool,
    console: &Console,
) -> String {
    let mut text = format!(
        "{protocol}: mismatch in cycle {} of seed {seed} (shape {}): {}\n",
        mismatch.cycle,
        SHAPES[Builds::shape_index(options, seed)].0,
        mismatch.description
    );
    if let Some(sequence) = &mismatch.sequence {
        let charts = options.output.charts(console.terminal);
        text += &format!(
            "\nthe line's last steps:\n\n{}\n",
            cohkit_chart::text(sequence, &charts).trim_end()
        );
    }
    if let Some(file) = options.waveform.as_ref().filter(|_| has_waveform) {
        text += &format!("\nwaveform: {}\n", file.display());
    }
    text + &format!("\nagain: {}\n", reproduce_command(options, seed))
}

/// JSON of a shape with the numbers of its seeds and messages.
fn shape_json(name: &str, shape: &Shape, counts: ShapeCounts) -> serde_json::Value {
    json!({
        "name": name,
        "seeds": counts.seeds,
        "messages": counts.messages,
        "units": 2 * shape.units,
        "sets": 1_u64 << shape.set_bits,
        "ways": shape.ways,
        "ways_per_step": shape.ways_per_step,
        "tag_bits": shape.tag_bits,
        "reads": shape.reads,
        "writes": shape.writes,
        "locals": shape.locals,
        "waiting": shape.max_deferred,
        "store_slots": shape.store_slots,
        "change_depth": shape.change_depth,
        "recall_delay_cycles": 1_u64 << shape.recall_delay_log2,
        "units_per_port": shape.units_per_port,
        "payload_bits": shape.payload,
    })
}

/// Result as JSON, described in `docs/output.md`.
fn json(
    options: &RtlTest,
    source: &Source,
    setup: &Setup,
    total: &Totals,
    builds: &Builds,
) -> serde_json::Value {
    let uncovered = uncovered_rows(setup, total);
    let rows = reachable_rows(setup).len();
    let name = |&row: &RowIndex| json!({ "state": setup.rom.states[row.0], "event": setup.rom.events[row.1].name });
    json!({
        "protocol": source.protocol.name,
        "messages": total.messages,
        "mismatches": u8::from(total.mismatch.is_some()),
        "rows_covered": rows - uncovered.len(),
        "rows_reachable": rows,
        "seeds": options.seeds,
        "first_seed": options.seed,
        "shapes": SHAPES
            .iter()
            .zip(total.shapes)
            .filter(|(_, counts)| counts.seeds > 0)
            .map(|((name, shape), counts)| shape_json(name, shape, counts))
            .collect::<Vec<_>>(),
        "cycles": total.cycles,
        "local_responses": total.local_responses,
        "evictions": total.evictions,
        "illegal_inputs": total.illegal_inputs,
        "uncovered_rows": uncovered.iter().map(name).collect::<Vec<_>>(),
        "mutated_rows": total.mutated(),
        "undetected_mutations": total.undetected.iter().map(name).collect::<Vec<_>>(),
        "mismatch": total.mismatch.as_ref().map(|(seed, mismatch)| json!({
            "seed": seed,
            "shape": SHAPES[Builds::shape_index(options, *seed)].0,
            "cycle": mismatch.cycle,
            "description": mismatch.description,
            "sequence": mismatch.sequence.as_ref().map(cohkit_chart::json),
        })),
        "run": {
            "file": options.file.display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
            "libraries": builds
                .libraries
                .iter()
                .flatten()
                .map(|library| library.display().to_string())
                .collect::<Vec<_>>(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{check_waveform, ExitStatus, Mismatch, Report, RunError};
    use cohkit_rtl::lockstep::setup::Check;

    #[test]
    fn waveform_errors_are_reported() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path_of = |name: &str| folder.path().join(name);
        std::fs::write(path_of("whole.fst"), "something").expect("the file can be written");
        std::fs::write(path_of("empty.fst"), "").expect("the file can be written");
        let rerun = || {
            Err(RunError::Mismatch(Box::new(Mismatch {
                check: Check::Comparison,
                description: "something else".into(),
                cycle: 7,
                sequence: None,
            })))
        };
        check_waveform(rerun(), &path_of("whole.fst")).expect("the run ends in the same mismatch");
        let tool = RunError::Tool("no such tool".into());
        for (rerun, file, expected) in [
            (rerun(), "empty.fst", "is the disk full?"),
            (rerun(), "nowhere/none.fst", "its folder does not exist"),
            (rerun(), "none.fst", "cannot create a file in its folder"),
            (Err(tool), "whole.fst", "no such tool"),
            (
                Ok(Report::default()),
                "whole.fst",
                "ends without a mismatch",
            ),
        ] {
            let failure = check_waveform(rerun, &path_of(file)).expect_err(expected);
            assert_eq!(failure.outcome, ExitStatus::CouldNotRun);
            assert!(failure.message.contains(expected), "{}", failure.message);
        }
        let stop_failure = check_waveform(Err(RunError::Stopped), &path_of("whole.fst"))
            .expect_err("it was stopped");
        assert_eq!(stop_failure.outcome, ExitStatus::Interrupted);
    }
}
