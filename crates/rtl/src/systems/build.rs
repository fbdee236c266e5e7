//! Programs that Verilator builds from a system and a test bench.

use super::directory::{Directory, Entries};
use super::sizes::Sizes;
use crate::agents::layout::Agents;
use crate::lockstep::build::{build_cached, run_verilator, BuildError};
use crate::sources::{Source, LOCKSTEP_BENCH, PORTS_BENCH, SYSTEM_BENCH, SYSTEM_UNITS};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

/// Instance of the monitor in a cache.
const CACHE_MONITOR: &str = include_str!("../../../../hardware/coherent/bench/cache_monitor.svh");
/// Instance of the monitor in the home.
const HOME_MONITOR: &str = include_str!("../../../../hardware/coherent/bench/home_monitor.svh");

/// Bits of a line's number in the test bench of [`Bench::Timing`].
pub(super) const TIMING_LINE_WIDTH: u32 = 8;
/// Bits of a set's number in each cache of this test bench. Its sets have one way.
pub(super) const TIMING_SET_WIDTH: u32 = 3;
/// Outstanding accesses of each cache in the test benches, by default.
pub const MSHRS: usize = 4;

/// A file: name and text.
pub type File = (String, String);

/// A test bench of systems.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bench {
    /// Random accesses, and a record of each step.
    Lockstep,
    /// Accesses that the caller requests.
    Ports,
    /// The same without random delays, and with 256 lines.
    Timing,
}

impl Bench {
    /// Name of the top module, of its program, and of the class that Verilator generates.
    fn name(self) -> &'static str {
        match self {
            Bench::Lockstep => "bench",
            Bench::Ports | Bench::Timing => "ports",
        }
    }

    /// Files that only this test bench has.
    fn sources(self) -> &'static [Source] {
        match self {
            Bench::Lockstep => LOCKSTEP_BENCH,
            Bench::Ports | Bench::Timing => PORTS_BENCH,
        }
    }
}

/// Program to build.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Test bench.
    pub bench: Bench,
    /// Directory of the printed home.
    pub directory: Directory,
    /// Size of a set-associative directory.
    pub entries: Entries,
    /// Sizes of the caches and queues.
    pub sizes: Sizes,
    /// True if the program can record waveforms; it is then slower.
    pub waveforms: bool,
}

/// Files of the units of the product.
pub fn units() -> Vec<File> {
    let units = SYSTEM_UNITS.iter();
    units
        .map(|(name, text)| (name.to_string(), text.to_string()))
        .collect()
}

/// Builds the program of a system and a test bench in a folder below `cache`, unless it exists there. `units` are those
/// of the product, or have seeded faults; `printed` are the package, the step functions and the top. Returns the path of
/// the program.
///
/// # Errors
/// [`BuildError`].
pub fn build(
    cache: &Path,
    agents: &Agents,
    (units, printed): (&[File], &[File]),
    options: Options,
    stop: &AtomicBool,
) -> Result<PathBuf, BuildError> {
    let bench = options.bench;
    let units = units.iter().map(|unit| adapt(unit, bench));
    let sources = SYSTEM_BENCH.iter().chain(bench.sources());
    let sources = sources.map(|(name, text)| (name.to_string(), text.to_string()));
    let files: Vec<File> = sources
        .chain(printed.iter().cloned())
        .chain(units)
        .collect();
    let name = format!("{}-{}", agents.protocol.name, bench.name());
    let key = (&files, agents.total(), options);
    build_cached(cache, &name, key, bench.name(), |folder| {
        let mut command = command(agents, options);
        command.args(files.iter().map(|(name, _)| name));
        run_verilator(&files, &mut command, folder, stop)
    })
}

/// Puts the channel of the product inside one that delays messages, and for lockstep, monitors into the agents.
fn adapt((name, text): &File, bench: Bench) -> File {
    let with_monitor = |module: &str, monitor: &str| {
        let end = format!("endmodule : {module}");
        let text = text.replace(&end, &format!("\n{monitor}{end}"));
        (name.clone(), text)
    };
    match (name.as_str(), bench) {
        ("cohkit_channel.sv", _) => {
            let text = text.replace("cohkit_channel", "cohkit_plain_channel");
            ("cohkit_plain_channel.sv".to_string(), text)
        }
        ("cohkit_cache.sv", Bench::Lockstep) => with_monitor("cohkit_cache", CACHE_MONITOR),
        ("cohkit_home.sv", Bench::Lockstep) => with_monitor("cohkit_home", HOME_MONITOR),
        _ => (name.clone(), text.clone()),
    }
}

/// Returns the command of Verilator without files.
fn command(agents: &Agents, options: Options) -> Command {
    let bench = options.bench;
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
        "-O3",
        "-MAKEFLAGS",
        "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1",
        "--x-assign",
        "unique",
        "--x-initial",
        "unique",
        "--Mdir",
        "made",
    ]);
    command.args(["--top-module", bench.name()]);
    command.args(["-o", &format!("../{}", bench.name())]);
    command.arg(format!("-DSYSTEM={}_system", agents.protocol.name));
    command.arg(format!("-GCaches={}", agents.total()));
    if bench == Bench::Timing {
        command.args([
            "-DUNDELAYED",
            &format!("-GLineWidth={TIMING_LINE_WIDTH}"),
            &format!("-GSetWidth={TIMING_SET_WIDTH}"),
        ]);
    }
    let Sizes {
        set_width,
        ways,
        mshrs,
        replacement,
        depth,
    } = options.sizes;
    for (name, size) in [("SetWidth", set_width), ("Ways", ways), ("Mshrs", mshrs)] {
        command.args(size.map(|size| format!("-G{name}={size}")));
    }
    if bench == Bench::Lockstep {
        command.arg(format!("-GReplacement={}", replacement as u32));
    }
    command.args(depth.map(|depth| format!("-DDEPTH={depth}")));
    if options.directory == Directory::SetAssociative {
        let Entries { set_width, ways } = options.entries;
        command.arg(format!("-DDIRECTORY_SET_WIDTH={set_width}"));
        command.arg(format!("-DDIRECTORY_WAYS={ways}"));
    }
    if options.waveforms {
        command.args(["--trace-fst", "--trace-structs"]);
    }
    command
}
