//! How machines are simulated, with a workload or with an application behind the home.

use super::{example, Output};
use crate::work::{Work, WorkParser};
use clap::Args;
use cohkit_sim::platform::Platform;
use cohkit_sim::spaces::Side;
use std::path::PathBuf;

/// Simulates a workload on a machine whose caches and home execute a protocol's controllers.
///
/// Every line carries data. Each load is compared with the last write, and rights that exclude each other are
/// watched for; what goes wrong ends the run and is drawn as a message sequence chart.
/// The same options and seed give the same result.
///
/// What makes it slow is told with `--explain`:
///
///   cohkit sim hosts-8x8 random-read --region 64MiB --accesses 20000 --explain
///
/// With `--sweep NAME=VALUES` it runs at every value of an option or quantity; `cohkit sweep --help` tells more.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit sim enzian-dc-ddr random-read --accesses 10000"))]
pub(crate) struct Sim {
    /// The machine: the name of a shipped platform (clusters-4x4, cxl-512x8, cxl-8x8, enzian-cohkit, enzian-cpu-home, enzian-dc-bram, enzian-dc-ddr, hosts-512x8, hosts-8x8, n1sdp-u280, n1sdp-vck5000, peers-device-memory, peers-host-memory, thunderx1-2s, thunderx1-2s-eci, upi-8x8),
    /// or a file that ends in `.toml`. Two joined by `+`, a device and its host's memory, are one of two spaces.
    pub platform: PathBuf,

    /// What the cores do. In sequential workloads each core goes through a part of the region of its own
    /// (or all take turns, with `--set cores.chunked=0`); in random ones it takes any line. A trace says itself who accesses what.
    #[arg(value_parser = WorkParser)]
    pub workload: Work,

    /// The protocol text, or the name of one that ships; the one that the platform names, if not given.
    #[arg(long, value_name = "FILE")]
    pub protocol: Option<PathBuf>,

    /// Memory that is accessed, such as `64MiB`: whole lines, no more than the machine has; 16MiB if not given,
    /// and what it accesses of a trace.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub region: Option<String>,

    /// Number of accesses; as many as the region has lines if not given, and all of a trace.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub accesses: Option<u64>,

    /// Number of cores; the platform's `cores.used` if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(Platform::MOST_AGENTS)))]
    pub cores: Option<u32>,

    /// Most accesses of one core in flight; the platform's `cores.outstanding` if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub outstanding: Option<u32>,

    /// How many accesses ahead reads ask for a line by a hint, 0 for no hints; the platform's `cores.prefetch` if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=4096))]
    pub prefetch: Option<u32>,

    /// What the cores of caching agents of a kind do instead, or `idle` for nothing; may be repeated for other kinds.
    /// Each kind makes so many accesses; numbers of cores and what they have in flight are told of the first.
    #[arg(long, value_name = "KIND=WORKLOAD")]
    pub by: Vec<String>,

    /// Set a quantity of the machine, such as `link.latency=120ns`; may be repeated for others.
    /// `agents.KIND.remotes=N` gives it agents of a further kind of the text.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// What everything random follows from.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Do not compare loads with the last write, nor watch for rights that exclude each other.
    #[arg(long)]
    pub no_oracle: bool,

    #[command(flatten)]
    pub watched: Watched,

    /// Write into this file, for `cohkit trace`, all that happens on one line, in a run of its own.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// The line that is traced, from 0 on; `host:N` is one of the host's memory, on a machine of two spaces.
    #[arg(long, value_name = "N", default_value = "0", value_parser = traced_line, requires = "trace")]
    pub trace_line: (Side, u32),

    #[command(flatten)]
    pub executed: Executed,

    #[command(flatten)]
    pub output: Output,
}

/// Plays a device application behind the home of a machine, with threads on its cores.
///
/// The application sees the home's reads and writes or what becomes of lines, and cleans, invalidates and locks the
/// CPU's copies. What it must not do is watched for and reported by its name; loads are compared with the last write;
/// at the end the data has to be what application and threads have made of it.
/// The same options and seed give the same result.
///
/// With `--sweep NAME=VALUES` it runs at every value of an option or quantity; `cohkit sweep --help` tells more.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit play enzian-dc-bram rpc --with calls=100"))]
pub(crate) struct Play {
    /// The machine: the name of a shipped platform (clusters-4x4, cxl-512x8, cxl-8x8, enzian-cohkit, enzian-cpu-home, enzian-dc-bram, enzian-dc-ddr, hosts-512x8, hosts-8x8, n1sdp-u280, n1sdp-vck5000, peers-device-memory, peers-host-memory, thunderx1-2s, thunderx1-2s-eci, upi-8x8),
    /// or a file that ends in `.toml`. Two joined by `+`, a device and its host's memory, are one of two spaces.
    pub platform: PathBuf,

    /// The application: shared-table, prefetcher, invalidation, rpc, rpc-registers, rpc-descriptors, locks, gather, dma, view,
    /// remote-writes, broadcast, exchange, or a program on several hosts: pagerank, sssp, padding, task-queue, histogram, transpose,
    /// mocfe, cmc2d, bigfft or crystal-router. `pagerank:FILE` and `sssp:FILE` take the graph of a file in Matrix Market's
    /// format.
    /// Several joined by `+` stand side by side, and `--with NAME.NUMBER=...` says a number of one.
    pub application: String,

    /// A number of the application, such as `threads=8`; may be repeated for others. `--with help` lists them.
    #[arg(long = "with", value_name = "NAME=VALUE")]
    pub with: Vec<String>,

    /// Simulated time after which nothing more is begun, such as `2ms`; the application's own end if not given.
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,

    /// Simulated time before which nothing is counted or timed.
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    pub warm_up: String,

    /// The protocol text, or the name of one that ships; the one that the platform names, if not given. Its home has to be given as a policy.
    #[arg(long, value_name = "FILE")]
    pub protocol: Option<PathBuf>,

    /// Set a quantity of the machine, such as `link.latency=120ns`; may be repeated for others.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Read the text with another size than it says, such as `homes=8`; `line` is the bytes of a line. May be repeated for
    /// others.
    #[arg(long = "size", value_name = "NAME=VALUE")]
    pub size: Vec<String>,

    /// What everything random follows from.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Explore every order of events without times, instead of playing one: of an application on up to 8 lines that comes
    /// to an end. Of the machine the caching agents count, the home's units, and what these keep waiting and read at a time.
    #[arg(long, conflicts_with_all = ["time", "warm_up", "seed", "tables", "no_oracle", "home"])]
    pub exhaustive: bool,

    /// With --exhaustive, leave the verdict open beyond this many states; some kilobytes each.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1_000_000,
        requires = "exhaustive"
    )]
    pub max_states: usize,

    /// With --json, give what threads have been given and have made of it as tables, for other programs to judge.
    #[arg(long, requires = "json")]
    pub tables: bool,

    /// Do not compare loads with the last write, nor watch for rights that exclude each other, nor
    /// judge the data at the end.
    #[arg(long)]
    pub no_oracle: bool,

    #[command(flatten)]
    pub watched: Watched,

    #[command(flatten)]
    pub executed: Executed,

    #[command(flatten)]
    pub output: Output,
}

/// What executes the home's controller in a machine, and where it is kept if it has to be built.
#[derive(Args, Debug)]
pub(crate) struct Executed {
    /// What the home is: the simulator's, by the platform's quantities, or the RTL, Verilated and clocked at 322 MHz,
    /// whose every step and message must be the controller's. It serves one remote, with two slices.
    #[arg(long, value_enum, default_value_t)]
    pub home: HomeKind,

    /// The folder in which the built RTL is kept for next time; one of this user's if not given.
    #[arg(long, value_name = "DIR")]
    pub build: Option<PathBuf>,
}

/// What executes the home's controller.
#[derive(clap::ValueEnum, Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum HomeKind {
    /// The simulator.
    #[default]
    Model,
    /// The RTL.
    Rtl,
}

/// What is told of a run in time beside its result.
#[derive(Args, Debug)]
pub(crate) struct Watched {
    /// Tell too what the time of accesses was spent on, of all and of the slowest, what was in use for how long, and what of
    /// it limits the rest.
    #[arg(long)]
    pub explain: bool,

    #[command(flatten)]
    pub drawn: Drawn,
}

/// A run as a timeline.
#[derive(Args, Debug)]
pub(crate) struct Drawn {
    /// Write into this file, for ui.perfetto.dev, the run as a timeline: accesses, messages, states and counters.
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,

    /// Only of this line, whose states at each agent are then drawn; `host:N` is one of the host's memory, on a machine of two
    /// spaces.
    #[arg(long, value_name = "N", value_parser = traced_line, requires = "timeline")]
    pub timeline_line: Option<(Side, u32)>,

    /// Only of the agent of this name, and of the cores before it.
    #[arg(long, value_name = "NAME", requires = "timeline")]
    pub timeline_agent: Option<String>,

    /// Only of what happens between two times, such as `10us..12us`.
    #[arg(long, value_name = "FROM..TO", requires = "timeline")]
    pub timeline_window: Option<String>,

    /// No more once the timeline has this size.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "32MiB",
        requires = "timeline"
    )]
    pub timeline_size: String,
}

/// A line of the device, or `host:` and one of the host's memory.
fn traced_line(text: &str) -> Result<(Side, u32), String> {
    let (side, number) = match text.strip_prefix("host:") {
        Some(number) => (Side::Host, number),
        None => (Side::Device, text),
    };
    match number.parse() {
        Ok(line) => Ok((side, line)),
        Err(_) => Err("give a number from 0 on, or `host:` and a number".into()),
    }
}
