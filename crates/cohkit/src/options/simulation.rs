//! Options of `cohkit sim` and `cohkit play`.

use super::{example, Output, WorkParser};
use clap::Args;
use cohkit_api::workload::Work;
use cohkit_application::shipped::SCENARIOS;
use cohkit_sim::platform::Platform;
use cohkit_timeline::Side;
use std::path::PathBuf;

/// Help of a machine, with the names of the shipped platforms.
fn machine_help() -> String {
    let names = Platform::shipped_names().collect::<Vec<_>>().join(", ");
    format!("Machine: the name of a shipped platform ({names}), or a file that ends in `.toml`. `DEVICE+HOST` joins a device and its host's memory to one machine with two address spaces")
}

/// Help of an application, with the names of the shipped ones.
fn application_help() -> String {
    let names = SCENARIOS.map(|shipped| shipped.name).join(", ");
    format!("Application: {names}. `pagerank:FILE` and `sssp:FILE` read the graph from a file in Matrix Market format. Applications joined by `+` run concurrently; `--param APPLICATION.NAME=VALUE` then sets a parameter of one of them")
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

    /// Workload of the cores. In sequential workloads each core accesses its own part of the region (with `--set
    /// cores.partitioned=0`, lines are interleaved between cores); in random ones it accesses any line. A trace lists
    /// the accesses of each core.
    #[arg(value_parser = WorkParser)]
    pub workload: Work,

    /// Protocol file, or the name of a shipped one; by default the platform's.
    #[arg(long, value_name = "FILE")]
    pub protocol: Option<PathBuf>,

    /// Size of the accessed memory, such as `64MiB`: whole lines, at most the machine's memory; 16MiB by default. Not
    /// for traces, which determine their memory.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub region: Option<String>,

    /// Number of accesses; by default the number of lines of the region, or all accesses of a trace.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub accesses: Option<u64>,

    /// Number of cores; by default the platform's `cores.count`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(Platform::MAX_AGENTS)))]
    pub cores: Option<u32>,

    /// Maximum number of outstanding accesses per core; by default the platform's `cores.max_outstanding`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub outstanding: Option<u32>,

    /// Prefetch distance in accesses, 0 for none; by default the platform's `cores.prefetch_distance`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=4096))]
    pub prefetch: Option<u32>,

    /// Workload of the cores of a further kind of caching agents, or `idle`; may be repeated for other kinds. Each kind
    /// performs `--accesses` accesses; `--cores` and `--outstanding` apply to the first kind.
    #[arg(long = "kind-workload", alias = "by", value_name = "KIND=WORKLOAD")]
    pub kind_workloads: Vec<String>,

    /// Set a quantity of the machine, such as `link.latency=120ns`; may be repeated.
    /// `agents.KIND.remotes=N` adds N agents of a further kind of the protocol file.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Do not compare loads with the last write, and do not check exclusive permissions.
    #[arg(long)]
    pub no_oracle: bool,

    #[command(flatten)]
    pub reports: ReportOptions,

    /// Write the events of one line into this file, for `cohkit trace`, in a separate run.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Line of `--trace`, counted from 0; `host:N` is a line of the host's memory, on a machine with two address
    /// spaces.
    #[arg(long, value_name = "N", default_value = "0", value_parser = traced_line, requires = "trace")]
    pub trace_line: (Side, u32),

    #[command(flatten)]
    pub executor_options: ExecutorOptions,

    #[command(flatten)]
    pub output: Output,
}

/// Simulates a device application behind the home of a machine, with threads on its cores.
///
/// The application observes the home's reads and writes, or the state of lines, and cleans, invalidates and locks the
/// CPU's copies. A violation of the application's contract is reported by name, loads are compared with the last
/// write, and the final data is compared with the operations of application and threads. The same options and seed give
/// the same result.
///
/// `--sweep NAME=VALUES` runs the application at every value of an option or quantity; see `cohkit sweep --help`.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit play enzian-dc-bram rpc --param calls=100"))]
pub(crate) struct Play {
    /// Name or file of a platform.
    #[arg(help = machine_help())]
    pub platform: PathBuf,

    /// Name of an application.
    #[arg(help = application_help())]
    pub application: String,

    /// Set a parameter of the application, such as `threads=8`; may be repeated. `--param help` lists the parameters.
    #[arg(long = "param", alias = "with", value_name = "NAME=VALUE")]
    pub params: Vec<String>,

    /// Simulated time after which no operation starts, such as `2ms`; by default the application ends by itself.
    #[arg(long, alias = "time", value_name = "TIME")]
    pub stop_after: Option<String>,

    /// Simulated warm-up time, whose events are not counted.
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    pub warm_up: String,

    /// Protocol file, or the name of a shipped one; by default the platform's. Its home must be a policy.
    #[arg(long, value_name = "FILE")]
    pub protocol: Option<PathBuf>,

    /// Set a quantity of the machine, such as `link.latency=120ns`; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Override a parameter of the protocol file, such as `homes=8`; `line` is the size of a line in bytes. May be
    /// repeated.
    #[arg(long = "protocol-param", alias = "size", value_name = "NAME=VALUE")]
    pub protocol_params: Vec<String>,

    /// Seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Explore every order of events, without timing, for an application on at most 8 lines that ends by itself. Of the
    /// machine, only the caching agents, the home's units, their queues and their concurrent reads are modelled.
    #[arg(long, conflicts_with_all = ["stop_after", "warm_up", "seed", "tables", "no_oracle", "home_executor"])]
    pub exhaustive: bool,

    /// With --exhaustive, the maximum number of states; beyond it, the verdict is undecided. A state takes a few
    /// kilobytes.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1_000_000,
        requires = "exhaustive"
    )]
    pub max_states: usize,

    /// With --json, add tables of the threads' inputs and results, so that other programs can check them.
    #[arg(long, requires = "json")]
    pub tables: bool,

    /// Do not compare loads with the last write, and do not check exclusive permissions or the final data.
    #[arg(long)]
    pub no_oracle: bool,

    #[command(flatten)]
    pub reports: ReportOptions,

    #[command(flatten)]
    pub executor_options: ExecutorOptions,

    #[command(flatten)]
    pub output: Output,
}

/// Executor of the home's controller in a machine.
#[derive(Args, Debug)]
pub(crate) struct ExecutorOptions {
    /// Executor of the home: the simulator, with the platform's quantities, or the Verilated RTL at 322 MHz, whose
    /// steps and messages are compared with the controller's. The RTL has two slices and supports one remote.
    #[arg(long, alias = "home", value_enum, default_value_t)]
    pub home_executor: HomeKind,

    /// Folder that caches the built RTL for later runs; by default a folder of the current user.
    #[arg(long, alias = "build", value_name = "DIR")]
    pub build_cache: Option<PathBuf>,
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
    /// Attribute the latency of all accesses, and of the slowest ones, to components; report the utilisation of each
    /// component, and the bottleneck.
    #[arg(long)]
    pub explain: bool,

    #[command(flatten)]
    pub timeline_options: TimelineOptions,
}

/// Timeline of a run.
#[derive(Args, Debug)]
pub(crate) struct TimelineOptions {
    /// Write a timeline for ui.perfetto.dev into this file: accesses, messages, states and counters.
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,

    /// Draw only this line, with its state at each agent; `host:N` is a line of the host's memory, on a machine with
    /// two address spaces.
    #[arg(long, value_name = "N", value_parser = traced_line, requires = "timeline")]
    pub timeline_line: Option<(Side, u32)>,

    /// Draw only the agent with this name, and its cores.
    #[arg(long, value_name = "NAME", requires = "timeline")]
    pub timeline_agent: Option<String>,

    /// Draw only the events between two times, such as `10us..12us`.
    #[arg(long, value_name = "FROM..TO", requires = "timeline")]
    pub timeline_window: Option<String>,

    /// Maximum size of the timeline; later events are not written.
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
