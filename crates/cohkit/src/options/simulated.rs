//! Options of `cohkit sim` and `cohkit play`.

use super::{example, Output, WorkParser};
use clap::Args;
use cohkit_api::workload::Work;
use cohkit_application::shipped::ALL;
use cohkit_sim::platform::Platform;
use cohkit_timeline::Side;
use std::path::PathBuf;

/// Help of a machine, with the names of the shipped platforms.
fn machine_help() -> String {
    let names = Platform::shipped_names().collect::<Vec<_>>().join(", ");
    format!("Machine: the name of a shipped platform ({names}), or a file that ends in `.toml`. A device and its host's memory joined by `+` are one machine of two spaces")
}

/// Help of an application, with the names of the shipped ones.
fn application_help() -> String {
    let names = ALL.map(|shipped| shipped.name).join(", ");
    format!("Application: {names}. `pagerank:FILE` and `sssp:FILE` take the graph of a file in Matrix Market's format. Several joined by `+` run side by side, and `--with NAME.NUMBER=...` sets a number of one")
}

/// Simulates a workload on a machine whose caches and home execute a protocol's controllers.
///
/// Every line carries data. Each load is compared with the last write, and exclusive permissions are checked; a
/// violation ends the run and is drawn as a message sequence chart. The same options and seed give the same result.
///
/// `--explain` reports what limits the machine:
///
///   cohkit sim hosts-8x8 random-read --region 64MiB --accesses 20000 --explain
///
/// `--sweep NAME=VALUES` runs the simulation at every value of an option or quantity; see `cohkit sweep --help`.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit sim enzian-dc-ddr random-read --accesses 10000"))]
pub(crate) struct Sim {
    /// Name or file of a platform.
    #[arg(help = machine_help())]
    pub platform: PathBuf,

    /// Workload of the cores. In sequential workloads each core accesses a part of the region of its own (or all take turns,
    /// with `--set cores.chunked=0`); in random ones it accesses any line. A trace lists the accesses of each core.
    #[arg(value_parser = WorkParser)]
    pub workload: Work,

    /// Protocol file, or the name of one that ships; the platform's default if not given.
    #[arg(long, value_name = "FILE")]
    pub protocol: Option<PathBuf>,

    /// Accessed memory, such as `64MiB`: whole lines, at most the machine's memory; if not given, 16MiB, or the memory that a
    /// trace accesses.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub region: Option<String>,

    /// Number of accesses; if not given, the number of lines of the region, or all accesses of a trace.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub accesses: Option<u64>,

    /// Number of cores; the platform's `cores.used` if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(Platform::MAX_AGENTS)))]
    pub cores: Option<u32>,

    /// Most outstanding accesses of one core; the platform's `cores.outstanding` if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub outstanding: Option<u32>,

    /// Distance of prefetch hints in accesses, 0 for none; the platform's `cores.prefetch` if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=4096))]
    pub prefetch: Option<u32>,

    /// Workload of the cores of another kind of caching agents, or `idle`; may be repeated for other kinds. Each kind makes
    /// `--accesses` accesses; `--cores` and `--outstanding` apply to the first kind.
    #[arg(long, value_name = "KIND=WORKLOAD")]
    pub by: Vec<String>,

    /// Set a quantity of the machine, such as `link.latency=120ns`; may be repeated.
    /// `agents.KIND.remotes=N` gives it agents of a further kind of the text.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Do not compare loads with the last write, nor check exclusive permissions.
    #[arg(long)]
    pub no_oracle: bool,

    #[command(flatten)]
    pub watched: ReportOptions,

    /// Write the events of one line into this file, for `cohkit trace`, in a run of its own.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Line of `--trace`, from 0 on; `host:N` is a line of the host's memory, on a machine of two spaces.
    #[arg(long, value_name = "N", default_value = "0", value_parser = traced_line, requires = "trace")]
    pub trace_line: (Side, u32),

    #[command(flatten)]
    pub executed: Executed,

    #[command(flatten)]
    pub output: Output,
}

/// Plays a device application behind the home of a machine, with threads on its cores.
///
/// The application observes the home's reads and writes, or the state of lines, and cleans, invalidates and locks the
/// CPU's copies. A breach of its contract is reported by name, loads are compared with the last write, and the data
/// at the end is compared with the operations of application and threads. The same options and seed give the same
/// result.
///
/// `--sweep NAME=VALUES` plays at every value of an option or quantity; see `cohkit sweep --help`.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit play enzian-dc-bram rpc --with calls=100"))]
pub(crate) struct Play {
    /// Name or file of a platform.
    #[arg(help = machine_help())]
    pub platform: PathBuf,

    /// Name of an application.
    #[arg(help = application_help())]
    pub application: String,

    /// Set a number of the application, such as `threads=8`; may be repeated. `--with help` lists them.
    #[arg(long = "with", value_name = "NAME=VALUE")]
    pub with: Vec<String>,

    /// Simulated time after which nothing new begins, such as `2ms`; the application's own end if not given.
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,

    /// Simulated time before which nothing is counted.
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    pub warm_up: String,

    /// Protocol file, or the name of one that ships; the platform's default if not given. Its home must be a policy.
    #[arg(long, value_name = "FILE")]
    pub protocol: Option<PathBuf>,

    /// Set a quantity of the machine, such as `link.latency=120ns`; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Override a size of the protocol file, such as `homes=8`; `line` is the size of a line in bytes. May be repeated.
    #[arg(long = "size", value_name = "NAME=VALUE")]
    pub size: Vec<String>,

    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Explore every order of events without times, for an application on up to 8 lines that ends by itself. Of the machine
    /// only the caching agents, the home's units, and their queues and concurrent reads count.
    #[arg(long, conflicts_with_all = ["time", "warm_up", "seed", "tables", "no_oracle", "home"])]
    pub exhaustive: bool,

    /// With --exhaustive, most states, beyond which the verdict is undecided; a state takes some kilobytes.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1_000_000,
        requires = "exhaustive"
    )]
    pub max_states: usize,

    /// With --json, add tables of the threads' inputs and results, for other programs to judge.
    #[arg(long, requires = "json")]
    pub tables: bool,

    /// Do not compare loads with the last write, nor check exclusive permissions, nor judge the data at the end.
    #[arg(long)]
    pub no_oracle: bool,

    #[command(flatten)]
    pub watched: ReportOptions,

    #[command(flatten)]
    pub executed: Executed,

    #[command(flatten)]
    pub output: Output,
}

/// Executor of the home's controller in a machine.
#[derive(Args, Debug)]
pub(crate) struct Executed {
    /// Executor of the home: the simulator, with the platform's quantities, or the Verilated RTL at 322 MHz, whose steps and
    /// messages are compared with the controller's. The RTL serves one remote, with two slices.
    #[arg(long, value_enum, default_value_t)]
    pub home: HomeKind,

    /// Folder that keeps the built RTL for the next run; a folder of this user if not given.
    #[arg(long, value_name = "DIR")]
    pub build: Option<PathBuf>,
}

/// Executor of the home's controller.
#[derive(clap::ValueEnum, Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum HomeKind {
    /// The simulator.
    #[default]
    Model,
    /// The RTL.
    Rtl,
}

/// Reports of a timed run besides its result.
#[derive(Args, Debug)]
pub(crate) struct ReportOptions {
    /// Attribute the latency of all accesses and of the slowest to components, and report how busy each component was and
    /// which one limits the others.
    #[arg(long)]
    pub explain: bool,

    #[command(flatten)]
    pub drawn: Drawn,
}

/// Timeline of a run.
#[derive(Args, Debug)]
pub(crate) struct Drawn {
    /// Write a timeline for ui.perfetto.dev into this file: accesses, messages, states and counters.
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,

    /// Draw only this line, with its state at each agent; `host:N` is a line of the host's memory, on a machine of two spaces.
    #[arg(long, value_name = "N", value_parser = traced_line, requires = "timeline")]
    pub timeline_line: Option<(Side, u32)>,

    /// Draw only the agent of this name and its cores.
    #[arg(long, value_name = "NAME", requires = "timeline")]
    pub timeline_agent: Option<String>,

    /// Draw only the events between two times, such as `10us..12us`.
    #[arg(long, value_name = "FROM..TO", requires = "timeline")]
    pub timeline_window: Option<String>,

    /// Stop writing once the timeline has this size.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "32MiB",
        requires = "timeline"
    )]
    pub timeline_size: String,
}

/// Parses a line of the device, or `host:` and a line of the host's memory.
fn traced_line(text: &str) -> Result<(Side, u32), String> {
    let (side, number) = match text.strip_prefix("host:") {
        Some(number) => (Side::Host, number),
        None => (Side::Device, text),
    };
    match number.parse() {
        Ok(line) => Ok((side, line)),
        Err(_) => Err("give a non-negative integer, or `host:` followed by one".into()),
    }
}
