//! Options of `cohkit rtl`.

use super::{example, Form, Output};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use cohkit_rtl::lockstep::shapes::SHAPES;
use cohkit_rtl::systems::directory::Directory;
use cohkit_rtl::systems::sizes::PARAMETERS;
use std::path::PathBuf;

/// Generates, tests, synthesises and measures the hardware of a protocol's home.
///
/// The hardware executes the rows of a ROM, which is generated from the same controller that is checked and simulated.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit rtl emit protocols/eci.coh --out out/rtl"))]
pub(crate) struct Rtl {
    #[command(subcommand)]
    pub command: RtlCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum RtlCommand {
    Emit(Emit),
    Test(RtlTest),
    Synth(Synth),
    Measure(Measure),
}

/// Writes the home as SystemVerilog: the package with the protocol's constants, the ROM image, a top module and the
/// RTL.
///
/// `PROTOCOL.f` lists all files in the order that tools need, so `verilator -F PROTOCOL.f` builds the folder without
/// further files. The top module is `PROTOCOL_home`.
///
/// A home that is written as a policy is constructed for one caching agent, and equivalent states are merged. A home
/// without units in the hardware is rejected with the reason.
///
/// With `--agent`, writes step functions instead: for each agent a combinational module that maps state, variables,
/// event, sender and fields of the message to the effect of the row. Homes and caching agents of almost any file have
/// one; a row without hardware is rejected with its construct.
///
/// With `--system`, writes a whole memory system: caches with processor ports, the home with a memory port, and the
/// queues between them. `PROTOCOL_system.f` lists the files, and the top module is `PROTOCOL_system`. A construct that
/// the units cannot serve is rejected.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit rtl emit protocols/eci.coh --out out/rtl"))]
pub(crate) struct Emit {
    /// Protocol file, or the name of a shipped one.
    pub file: PathBuf,

    /// Folder for `PROTOCOL_pkg.sv`, `PROTOCOL.mem`, `PROTOCOL_home.sv`, `PROTOCOL.f` and the RTL; created if needed.
    /// With `--agent`, folder for `PROTOCOL_agents_pkg.sv`, `PROTOCOL_AGENT_step.sv` and `PROTOCOL_agents.f`.
    /// With `--system`, folder for these, `PROTOCOL_system.sv`, `PROTOCOL_system.f` and the units.
    #[arg(long, short, value_name = "DIR")]
    pub out: PathBuf,

    /// Write a coherent memory system with this number of caches instead of the home: for several kinds of caching agents,
    /// one number for each, in the order of the file.
    #[arg(long, value_name = "CACHES", value_delimiter = ',', conflicts_with_all = ["agents", "remotes"])]
    pub system: Vec<u16>,

    /// Directory of the home with `--system`: an entry for every line, or sets of entries. If a set is full, the home
    /// recalls a line by the operation of its table that takes a line from all caches. The parameters
    /// `DirectorySetWidth` and `DirectoryWays` of the top are its size.
    #[arg(long, value_name = "KIND", requires = "system", value_parser = directory(), default_value = Directory::Full.name())]
    pub directory: Directory,

    /// Write the step function of this agent: `home`, or a kind of caching agents of the file. May be repeated, or list
    /// several agents. Kinds with the same rows share one module, named after the first of them.
    #[arg(long = "agent", value_name = "NAME", value_delimiter = ',')]
    pub agents: Vec<String>,

    /// Number of caching agents of each kind, in the order of the file, up to 16 in total; by default that of the
    /// file's first system.
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "agents")]
    pub remotes: Vec<u16>,

    /// Print JSON; machine-dependent values are under the key `run`.
    #[arg(long)]
    pub json: bool,
}

/// Runs the RTL of the home in lockstep with the checked controllers.
///
/// Verilator builds the RTL. Models of a remote, a device and a memory delay, reorder and stall traffic at random. Each
/// step of a unit, each message and each byte is compared with the home's controller, and reads of remote and device
/// with the last write. Home and directory are small, so that lines conflict. Three of eight runs add illegal traffic:
/// messages, local operations and lines that the protocol does not allow. The home must reject and count each without
/// disturbing other traffic. The seed determines all random choices. A mismatch is drawn as a message sequence chart.
///
/// With `--system`, a coherent memory system is tested. All caches access a few lines at random, and each step of caches
/// and home is compared with the rows of the protocol. The first difference is printed with the command that repeats the
/// run.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit rtl test protocols/eci.coh --shape small --seeds 2"))]
pub(crate) struct RtlTest {
    /// Protocol file, or the name of a shipped one.
    pub file: PathBuf,

    /// First seed. It also determines the shape of the home, the lines, the latencies of messages and memory, how often
    /// ports are ready, and the load of the device.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Number of seeds.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,

    /// Number of messages of each seed's run, in both directions together.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    pub messages: u64,

    /// Test a coherent memory system with this number of caches instead of the home, as `cohkit rtl emit --system` writes
    /// it. The caches have two sets of two ways and four outstanding accesses, and all access six lines of 8 bytes.
    #[arg(long, value_name = "CACHES", value_delimiter = ',',
        conflicts_with_all = ["shape", "mutate_rows", "trace"])]
    pub system: Vec<u16>,

    /// Directory of the home with `--system`. If it is set-associative, it has two entries, so that lines are recalled.
    #[arg(long, value_name = "KIND", requires = "system", value_parser = directory(), default_value = Directory::Full.name())]
    pub directory: Directory,

    /// Set parameters of the system, such as `SetWidth=0,Ways=3`: `SetWidth`, `Ways`, `Mshrs`, `Replacement` or `Depth`.
    #[arg(long = "parameter", value_name = "NAME=N", value_delimiter = ',', requires = "system", value_parser = parameter)]
    pub parameters: Vec<(String, u64)>,

    /// Shape (sizes) of the home for all seeds. By default, seeds use the shapes of this list in turn, and each shape
    /// is built for its first seed. `small` builds fastest; `shipped` has the default sizes of the home.
    #[arg(long, value_name = "NAME", value_parser = SHAPES.map(|(name, _)| name))]
    pub shape: Option<String>,

    /// Mutate this many rows of the ROM, one at a time, and require that lockstep detects each; `all` is every
    /// reachable row. Row and first seed determine the mutation. Up to 20 runs are guided to the row, all in the first
    /// seed's shape.
    #[arg(long, alias = "spoil", value_name = "N", default_value = "0", value_parser = mutated_rows)]
    pub mutate_rows: u64,

    /// Write the waveform of the last 2000 cycles before a mismatch into this file (FST).
    #[arg(long, value_name = "FILE")]
    pub waveform: Option<PathBuf>,

    /// Write the events of each line in the first seed's run into this file, for `cohkit trace`.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// List the rows that were not executed.
    #[arg(long, alias = "unused")]
    pub uncovered_rows: bool,

    /// Folder that caches the built RTL for later runs; by default a folder of the current user.
    #[arg(long, alias = "build", value_name = "DIR")]
    pub build_cache: Option<PathBuf>,

    #[command(flatten)]
    pub output: Output,
}

/// Returns the parser of the directory of a home.
fn directory() -> impl TypedValueParser<Value = Directory> {
    let of_name = |name: String| Directory::ALL.into_iter().find(|kind| kind.name() == name);
    PossibleValuesParser::new(Directory::ALL.map(Directory::name))
        .map(move |name| of_name(name).expect("the parser accepts only names of values"))
}

/// Maps the home to an UltraScale+ FPGA with Yosys, and reports area and longest paths.
///
/// The units are divided between two slices; a single unit is one slice. Each unit has a directory of 128 sets of 16
/// ways, so 64 units track a cache of 16 MiB with lines of 128 bytes; tags cover a range of 64 GiB. A path runs from
/// register to register; each LUT and each carry cell of four bits is a level. LUTs are counted before a placer
/// combines small ones, so the number is an upper bound. Yosys is searched in the folder of this command first, then in
/// `PATH`.
///
/// With `--system`, maps a coherent memory system instead, as `cohkit rtl emit --system` writes it.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit rtl synth protocols/eci.coh --units 1"))]
pub(crate) struct Synth {
    /// Protocol file, or the name of a shipped one.
    pub file: PathBuf,

    /// Numbers of units, one configuration each; powers of two up to 64.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 8, 32, 64], value_parser = units)]
    pub units: Vec<usize>,

    /// Map a coherent memory system with this number of caches instead of the home: for several kinds of caching agents,
    /// one number for each, in the order of the file.
    #[arg(
        long,
        value_name = "CACHES",
        value_delimiter = ',',
        conflicts_with = "units"
    )]
    pub system: Vec<u16>,

    /// Directory of the home with `--system`.
    #[arg(long, value_name = "KIND", requires = "system", conflicts_with = "units", value_parser = directory(), default_value = Directory::Full.name())]
    pub directory: Directory,

    /// Set parameters of the top of `--system`, such as `SetWidth=6,Ways=8`: `LineWidth`, `DataWidth`, `SetWidth`, `Ways`,
    /// `Mshrs`, `Replacement`, `TagWidth`, `Depth`, `DirectorySetWidth` or `DirectoryWays`.
    #[arg(long = "parameter", value_name = "NAME=N", value_delimiter = ',', requires = "system", conflicts_with = "units", value_parser = parameter)]
    pub parameters: Vec<(String, u64)>,

    /// Keep the input and output of Yosys in this folder, with a subfolder for each configuration.
    #[arg(long, alias = "build", value_name = "DIR")]
    pub build_folder: Option<PathBuf>,

    #[command(flatten)]
    pub form: Form,
}

/// Parses a number of ROM rows; `all` is the maximum, which is limited to the reachable rows later.
fn mutated_rows(text: &str) -> Result<u64, String> {
    match text {
        "all" => Ok(u64::MAX),
        _ => text
            .parse()
            .map_err(|_| "a number or `all` is needed".into()),
    }
}

/// Parses a parameter of a system's top.
fn parameter(text: &str) -> Result<(String, u64), String> {
    let known = PARAMETERS.join(", ");
    let (name, value) = text
        .split_once('=')
        .ok_or("a name and a number are needed, such as `Ways=8`")?;
    if !PARAMETERS.contains(&name) {
        return Err(format!("the parameters are {known}"));
    }
    match value.parse() {
        Ok(value) if value <= u64::from(u32::MAX >> 1) => Ok((name.to_string(), value)),
        _ => Err(format!(
            "a whole number below 2^31 is needed, not `{value}`"
        )),
    }
}

/// Parses a number of units: a power of two from 1 to 64.
fn units(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(units @ 1..=64usize) if units.is_power_of_two() => Ok(units),
        _ => Err("a power of two from 1 to 64 is needed".into()),
    }
}

/// Measures the RTL: latencies in cycles, and throughput.
///
/// Verilator builds the RTL. The agents of `rtl test` run without random delays, and everything is still compared with
/// the controllers. Latencies are those of an idle home, from request header to response header, with memory and a
/// remote that respond in the next cycle; for requests without a response, until the bytes are in memory. Throughput is
/// measured in the middle half of each traffic stream, at 322 MHz, with memory latencies of 300, 70 and 3 ns. The
/// streams are: reads of uncached lines; writes, each of which acquires a line and writes it back dirty; and the local
/// operation that invalidates a line of the remote, which responds after 290 ns. `outstanding/unit` is the mean number
/// of requests in progress or stalled in a unit; a port is saturated above a utilisation of 95%.
///
/// With `--system`, measures accesses at the processor ports of a coherent memory system instead, in cycles. Caches have
/// eight sets of one way, queues have no further delay, and memory answers in the second cycle after a request.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit rtl measure protocols/eci.coh --units 4 --lines 256"))]
pub(crate) struct Measure {
    /// Protocol file, or the name of a shipped one.
    pub file: PathBuf,

    /// Number of units in two slices, a power of two from 2 to 64.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = units_of_two_slices)]
    pub units: usize,

    /// Measure a coherent memory system with this number of caches instead of the home: for several kinds of caching
    /// agents, one number for each, in the order of the file.
    #[arg(long, value_name = "CACHES", value_delimiter = ',',
        conflicts_with_all = ["units", "outstanding", "lines", "invalidation_engine", "print_platform"])]
    pub system: Vec<u16>,

    /// Maximum number of outstanding lines of the remote or the device, per unit.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub outstanding: usize,

    /// Print the measured latencies as a `[home]` table for a platform file, like that of
    /// `platforms/enzian-cohkit.toml`.
    #[arg(long, alias = "platform", conflicts_with_all = ["outstanding", "lines", "json", "csv", "stats"])]
    pub print_platform: bool,

    /// Measure the rate at which the invalidation engine of `hardware/endpoints` invalidates lines of the remote. The
    /// engine is the device behind the home, with RAM as memory.
    #[arg(long, alias = "engine", conflicts_with = "print_platform")]
    pub invalidation_engine: bool,

    /// Number of lines of each traffic stream.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(64..=65536))]
    pub lines: usize,

    /// Folder that caches the built RTL for later runs; by default a folder of the current user.
    #[arg(long, alias = "build", value_name = "DIR")]
    pub build_cache: Option<PathBuf>,

    #[command(flatten)]
    pub form: Form,
}

/// Parses a number of units in two slices: a power of two from 2 to 64.
fn units_of_two_slices(text: &str) -> Result<usize, String> {
    match units(text) {
        Ok(units) if units > 1 => Ok(units),
        _ => Err("a power of two from 2 to 64 is needed".into()),
    }
}
