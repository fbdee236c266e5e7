//! What is done with hardware.

use super::{example, Form, Output};
use clap::{Args, Subcommand};
use cohkit_rtl::lockstep::shapes::SHAPES;
use std::path::PathBuf;

/// Makes hardware of a protocol's home.
///
/// Such hardware executes what a ROM says; the ROM is printed from the controller that is checked and simulated.
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

/// Writes the home as SystemVerilog: the protocol's package, the image of its ROM, a top and the RTL.
///
/// `PROTOCOL.f` lists all files in the order in which tools read them, so that `verilator -F PROTOCOL.f` builds the folder
/// by itself; the top is the module `PROTOCOL_home`.
///
/// A home that the text gives as a policy is constructed for one caching agent; its states that no future can
/// tell apart are merged. A home that the hardware has no unit for is refused with the reason.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit rtl emit protocols/eci.coh --out out/rtl"))]
pub(crate) struct Emit {
    /// The protocol text, or the name of one that ships.
    pub file: PathBuf,

    /// The folder that gets `PROTOCOL_pkg.sv`, `PROTOCOL.mem`, `PROTOCOL_home.sv`, `PROTOCOL.f` and the RTL; it is made if
    /// need be.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// Print JSON; what depends on the machine stands under the key `run`.
    #[arg(long)]
    pub json: bool,
}

/// Runs the RTL of the home in lockstep with the controllers that are checked.
///
/// The RTL is built with Verilator, and put among a remote, a device and a memory that delay, reorder and push back
/// by chance. Each step of a unit is compared with the home's controller, each message and every byte with what it sent;
/// the remote's and the device's reads are compared with the last write. Home and directory are small, so that
/// lines meet. In three of eight runs strangers come besides: messages, operations and lines that no partner should send,
/// which the home has to refuse, count and keep, and nothing else may be disturbed. Nothing is random but by the seed; a
/// mismatch is drawn as a message sequence chart.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit rtl test protocols/eci.coh --shape small --seeds 2"))]
pub(crate) struct RtlTest {
    /// The protocol text, or the name of one that ships.
    pub file: PathBuf,

    /// The first seed. The shape of the home, how many lines are used, which, how long messages and memory take, how often
    /// ports are ready and how much the device does follow from it too.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// How many seeds, one after the other.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,

    /// Messages of each seed's run, those to the home and those to the remote together.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    pub messages: u64,

    /// Give all seeds a home of this shape; otherwise seeds take the shapes of this list in turn, and each shape is built
    /// when its first seed comes. `small` is built soonest, `shipped` has the sizes that the home has by default.
    #[arg(long, value_name = "NAME", value_parser = SHAPES.map(|(name, _)| name))]
    pub shape: Option<String>,

    /// Spoil this many rows of the ROM, one after the other, and see that each is noticed; `all` is every row that can
    /// be used. What is wrong of a row follows from the row and the first seed alone; up to 20 runs are led to it, all in
    /// the first seed's shape.
    #[arg(long, value_name = "N", default_value = "0", value_parser = spoilt)]
    pub spoil: u64,

    /// Write the waveform of the last 2000 cycles before a mismatch into this file (FST).
    #[arg(long, value_name = "FILE")]
    pub waveform: Option<PathBuf>,

    /// Write into this file, for `cohkit trace`, all that happens on each line in the run of the first seed.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Name the rows of the ROM that were not used.
    #[arg(long)]
    pub unused: bool,

    /// The folder in which the built RTL is kept for next time; one of this user's if not given.
    #[arg(long, value_name = "DIR")]
    pub build: Option<PathBuf>,

    #[command(flatten)]
    pub output: Output,
}

/// Maps the home to an UltraScale+ FPGA with Yosys, and tells its size and its longest paths.
///
/// Two slices share the units; one unit makes one slice. Each unit has a directory of 128 sets of 16 ways, so 64 units
/// track a cache of 16 MiB with lines of 128 bytes; tags are for a range of 64 GiB.
/// A path goes from register to register; each LUT on it is a level, and so is each carry cell of four bits.
/// LUTs are counted one by one, before a placer joins small ones, so the figure is an upper bound.
/// Yosys is looked for beside this command first, and then in `PATH`.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit rtl synth protocols/eci.coh --units 1"))]
pub(crate) struct Synth {
    /// The protocol text, or the name of one that ships.
    pub file: PathBuf,

    /// How many units, a power of two up to 64; several numbers give several configurations.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 8, 32, 64], value_parser = units)]
    pub units: Vec<usize>,

    /// Keep what Yosys reads and writes in this folder, one folder for each configuration.
    #[arg(long, value_name = "DIR")]
    pub build: Option<PathBuf>,

    #[command(flatten)]
    pub form: Form,
}

fn spoilt(text: &str) -> Result<u64, String> {
    match text {
        "all" => Ok(u64::MAX),
        _ => text
            .parse()
            .map_err(|_| "a number or `all` is needed".into()),
    }
}

fn units(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(units @ 1..=64usize) if units.is_power_of_two() => Ok(units),
        _ => Err("a power of two from 1 to 64 is needed".into()),
    }
}

/// Measures the RTL: latencies in cycles, and how much traffic it bears.
///
/// The RTL is built with Verilator, and put among the agents of `rtl test`, which now act on time; everything is still
/// compared with the controllers. Latencies are of an idle home, from header to header, with memory and a remote that
/// answer in the next cycle; of what has no answer, until memory has been given the bytes.
/// Traffic is measured in its middle half, at 322 MHz, with memory that takes 300, 70 and 3 ns: reads of lines that
/// nobody holds; writes, each of which gets a line and gives it back dirty; and, one request after the other, the local
/// operation that takes a line from the remote, which answers after 290 ns.
/// `in hand` is the average of requests that a unit has begun or waits with; a port is full beyond 95%.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit rtl measure protocols/eci.coh --units 4 --lines 256"))]
pub(crate) struct Measure {
    /// The protocol text, or the name of one that ships.
    pub file: PathBuf,

    /// How many units, in two slices: a power of two from 2 to 64.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = units_of_two_slices)]
    pub units: usize,

    /// Most lines that the remote or the device has in hand, for each unit.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub outstanding: usize,

    /// Print instead the table `[home]` of a platform whose simulated home takes the times of this one, measured the
    /// same way: those of `platforms/enzian-cohkit.toml`.
    #[arg(long, conflicts_with_all = ["outstanding", "lines", "json", "csv", "stats"])]
    pub platform: bool,

    /// Measure instead how fast the invalidation engine of `hardware/endpoints` takes lines from the remote, behind the
    /// home in the place of the device and with RAM as memory.
    #[arg(long, conflicts_with = "platform")]
    pub engine: bool,

    /// Lines of each stream of traffic.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(64..=65536))]
    pub lines: usize,

    /// The folder in which the built RTL is kept for next time; one of this user's if not given.
    #[arg(long, value_name = "DIR")]
    pub build: Option<PathBuf>,

    #[command(flatten)]
    pub form: Form,
}

fn units_of_two_slices(text: &str) -> Result<usize, String> {
    match units(text) {
        Ok(units) if units > 1 => Ok(units),
        _ => Err("a power of two from 2 to 64 is needed".into()),
    }
}
