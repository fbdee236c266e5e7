//! Options of the command line. Their doc comments are the help texts, which are the manual.

mod check;
mod litmus;
mod named_value;
mod output;
mod package;
mod rtl;
mod run;
mod simulation;
mod workload;

use clap::{Args, Parser, Subcommand, ValueEnum};
use cohkit_api::controller_table::Agent;
use cohkit_api::named_value::NamedValue;
use cohkit_link::rates::Kind;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;

pub(crate) use check::{Check, DeadlockOption, DialectOption, FairnessOption, SymmetryOption};
pub(crate) use litmus::Litmus;
use named_value::named_value;
pub(crate) use output::{Form, Output};
pub(crate) use package::{Explore, Report, Reproduce, Sweep};
pub(crate) use rtl::{Emit, Measure, Rtl, RtlCommand, RtlTest, Synth};
pub(crate) use run::Run;
pub(crate) use simulation::{ExecutorOptions, HomeKind, Play, ReportOptions, Sim, TimelineOptions};
pub(crate) use workload::WorkParser;

/// Table of exit codes below the help of each command; it must agree with the module `exit_code`.
const EXIT_CODES: &str = "\
Exit codes:
    0  success: verified, or completed
    1  violated: a property does not hold, or no home satisfies the policy
    2  bad input: the command line, a missing file, a protocol file, a platform
    3  undecided: a limit was reached, or a simulation made no progress
    4  could not run: no permission, disk full, something is not installed
  130  interrupted
With several outcomes, the most severe code wins, in the order 130, 4, 2, 1, 3, 0:
a violation counts more than an undecided search.";

/// Returns the text below a command's help. Tests run the example at the root of the repository.
fn example(command: &str) -> String {
    format!("Example:\n  $ {command}\n\n{EXIT_CODES}")
}

/// Checks, simulates and synthesises cache-coherence protocols, and runs programs on near-memory cores.
#[derive(Parser, Debug)]
#[command(name = "cohkit", version, after_help = example("cohkit check protocols/msi.coh --system three_caches"), max_term_width = 80)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Check(Check),
    Table(Table),
    Fmt(Fmt),
    Litmus(Litmus),
    Mutants(Mutants),
    Trace(Trace),
    Sim(Sim),
    Play(Play),
    Rtl(Rtl),
    Link(Link),
    Run(Run),
    Library(Library),
    Reproduce(Reproduce),
    Sweep(Sweep),
    Report(Report),
    Explore(Explore),
    List(List),
    Platform(ShowPlatform),
    Doctor(Doctor),
    Completions(Completions),
    LanguageServer(LanguageServer),
}

/// Runs a language server (LSP) for `.coh` files on standard input and output. Editors start it.
///
/// The server provides diagnostics, go to declaration, references, renaming, completion, formatting (as `cohkit fmt`),
/// semantic highlighting, the outline of a file, and on hover the rows of a controller, also of a constructed home. A
/// file that composes others is checked with their open versions. The server ends at the end of its input.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit language-server"))]
pub(crate) struct LanguageServer {}

/// Prints a completion script for a shell.
///
/// The script does not complete the options of `reproduce`, `sweep`, `report` and `explore`, which the Python package
/// parses.
#[derive(Args, Debug)]
#[command(after_help = format!("Example:\n  $ cohkit completions bash\n\n{COMPLETIONS}"))]
pub(crate) struct Completions {
    /// Shell to complete commands in.
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Folders of completion scripts, below the help of `completions`.
const COMPLETIONS: &str = "\
Where shells look for the script:
  bash  ~/.local/share/bash-completion/completions/cohkit
  zsh   _cohkit, in a folder of `fpath`, before `compinit`
  fish  ~/.config/fish/completions/cohkit.fish";

/// Lists the shipped protocols, platforms, workloads, applications and experiments, each with a description.
///
/// With the name of a protocol or platform, prints its file, to be copied and changed:
///
///   cohkit list enzian-dc-ddr --out mine.toml
#[derive(Args, Debug)]
#[command(after_help = example("cohkit list msi"))]
pub(crate) struct List {
    /// Name of a protocol or platform whose file is printed; or `protocols`, `platforms`, `workloads`, `applications`
    /// or `experiments`, to list only these.
    #[arg(value_name = "NAME", conflicts_with_all = ["json", "csv", "stats"])]
    pub name: Option<PathBuf>,

    #[command(flatten)]
    pub output: Output,
}

/// Writes the C library for near-memory cores and their hosts into a folder, with the programs of its guide.
///
/// The layout is that of a checkout. Run the compiler in that folder, because the flag files use relative paths. If a
/// file exists with other contents, the command fails and writes nothing.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit library out/library"))]
pub(crate) struct Library {
    /// Folder; created if it does not exist.
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// Lists the optional tools: their versions if installed, the features they enable, and the packages that provide them.
///
/// `check`, `table` and `sim` need no tool. Each tool has 10 seconds to print its version. The exit code is 0 even if
/// tools are missing.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit doctor"))]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub output: Output,
}

/// Prints a platform: every quantity with its value, plausible range and origin.
///
/// A quantity without a range is taken from its source unchanged.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit platform enzian-dc-ddr"))]
pub(crate) struct ShowPlatform {
    /// Name of a shipped platform (see `cohkit list`), or a file that ends in `.toml`.
    #[arg(value_name = "PLATFORM")]
    pub platform: PathBuf,

    #[command(flatten)]
    pub output: Output,
}

/// Mutation test of a protocol's checks: changes the file in one place at a time, and checks each mutant.
///
/// Mutations drop, double or replace rows, actions, guards, permissions, messages and goals; swap two actions; send a
/// message to another receiver; add or remove a member of a set; change a count by one; replace a comparison or the
/// source of bytes.
///
/// A mutant is *rejected* if the file is invalid or has no home; *refuted* if a system of up to four remotes or two
/// lines violates a property, including progress; *bisimilar* if no access, permission or message distinguishes it from
/// the original. Any other mutant *survives*: it is equivalent to the original, or the properties are too weak to
/// detect it. The exit code is 0 if no mutant survives, otherwise 1.
///
/// `--sweep NAME=VALUES` runs the command at every value of an option; see `cohkit sweep --help`.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit mutants msi --first 2 --stride 60"))]
pub(crate) struct Mutants {
    /// Protocol file, or the name of a shipped one.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Check only the mutant with this index, counted from 0.
    #[arg(long, alias = "number", value_name = "N", conflicts_with_all = ["first", "stride"])]
    pub index: Option<usize>,

    /// Index of the first mutant.
    #[arg(long, alias = "from", value_name = "N", default_value_t = 0)]
    pub first: usize,

    /// Check every K-th mutant.
    #[arg(long, alias = "every", value_name = "K", default_value = "1")]
    pub stride: NonZeroUsize,

    /// Mutants checked concurrently; by default the number of processors.
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroU16>,

    /// Print the mutants without checking them.
    #[arg(long, conflicts_with_all = ["json", "csv", "stats"])]
    pub print: bool,

    #[command(flatten)]
    pub output: Output,
}

/// Computes the throughput of a link: the rate after the overhead of each layer, and the data rate by formula and by
/// simulation of two link endpoints.
///
/// The endpoints are state machines with the framing, credits and replay of the link, at the full rate of its lanes.
/// The simulated rate is below the formula if credits do not cover the round trip, or if bit errors cause replays.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit link pcie4 --payload 256"))]
pub(crate) struct Link {
    /// Link: one of the two of ECI; PCIe Gen3 to Gen5; CCIX over PCIe Gen4; or CXL.mem over PCIe Gen5 with 68-byte or
    /// 256-byte flits.
    #[arg(value_name = "LINK", value_parser = Kind::ALL.map(|(name, _)| name))]
    pub link: String,

    /// Number of lanes: 1 to 16 for ECI (12 by default), or 1, 2, 4, 8 or 16 for other links (16 by default).
    #[arg(long, value_name = "N")]
    pub lanes: Option<u64>,

    /// Maximum payload in bytes: of an ECI message (32, 64, 96 or 128), a PCIe packet (128 to 1024), or a CCIX packet
    /// (128, 256 or 512); by default the usual size.
    #[arg(long, value_name = "N")]
    pub payload: Option<u64>,

    /// One-way latency in nanoseconds, at most 10,000.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub delay: u64,

    /// Bit error rate, at most 0.0001.
    #[arg(long, value_name = "RATE", default_value_t = 0.0)]
    pub bit_errors: f64,

    /// Seed of the bit errors.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Also measure DMA transfers of this many bytes, at most 1,048,576; only for PCIe without bit errors.
    #[arg(long, value_name = "BYTES")]
    pub dma: Option<u64>,

    /// Start and end of DMA transfers: `descriptors` (default; doorbell, descriptor, polled status word), `registers`
    /// (four register writes, interrupt), or `device` (started beside the engine, ends with the last byte).
    #[arg(long, value_name = "ENGINE", requires = "dma")]
    pub dma_engine: Option<String>,

    /// Set a quantity of DMA transfers: `dma.queue`, `dma.start`, `dma.memory_latency`, `dma.detection`,
    /// `dma.descriptor`, `dma.read_request` or `dma.tags`; with a unit, such as `dma.start=200ns`. Repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "dma")]
    pub settings: Vec<String>,

    #[command(flatten)]
    pub output: Output,
}

/// Prints an agent's controller as a table: state, event, guard, actions, next state.
///
/// A home written as a policy is constructed first; the table is that for one caching agent. Rows without a next state
/// stall their event, or reject it.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit table protocols/msi.coh --agent remote"))]
pub(crate) struct Table {
    /// Protocol file, or the name of a shipped one. Of a composition with two levels, the bridges are printed: each
    /// outer cache with the home over it, in the first system of the file.
    pub file: PathBuf,

    /// Agent whose table is printed.
    #[arg(long, value_parser = named_value::<Agent>(), default_value = Agent::Home.name())]
    pub agent: Agent,

    /// Merge equivalent states of a constructed home: those with the same response to every sequence of events.
    #[arg(long)]
    pub merged: bool,

    /// Print a markdown table.
    #[arg(long, conflicts_with_all = ["json", "csv", "stats"])]
    pub markdown: bool,

    #[command(flatten)]
    pub output: Output,
}

/// Formats protocol files in place: indentation, spacing and table columns. Keeps line breaks, words and comments.
///
/// Formatted files are not written again. `-` formats standard input to standard output, for editors. A file need not
/// be a valid protocol. A file with characters that the language does not use is reported and left unchanged.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit fmt - < protocols/msi.coh"))]
pub(crate) struct Fmt {
    /// Protocol files, or `-`.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Write nothing; list the files that are not formatted, and exit with 1 if there is one.
    #[arg(long)]
    pub check: bool,
}

/// Checks recorded traces against the controllers of a protocol.
///
/// Traces come from models (`cohkit check --json`, whose counterexamples are traces), simulations (`cohkit sim
/// --trace`) and hardware in lockstep (`cohkit rtl test --trace`). The checker shares only the parsed protocol with the
/// engines that recorded them. It checks that each message is sent before it is received, in the order of its channel;
/// that each agent executes exactly its rows; single writer; that reads return the last write; and that a trace that
/// ends quiescent has no message in flight.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit trace out/trace.json --protocol protocols/eci.coh"))]
pub(crate) struct Trace {
    /// JSON file that contains traces, at any depth.
    pub file: PathBuf,

    /// Protocol file that the traces are checked against, or the name of a shipped one.
    #[arg(long, value_name = "FILE")]
    pub protocol: PathBuf,

    /// Override a parameter of the protocol file, such as `homes=8`, as the system of the traces does; may be repeated.
    #[arg(long = "protocol-param", alias = "size", value_name = "NAME=VALUE")]
    pub protocol_params: Vec<String>,

    #[command(flatten)]
    pub output: Output,
}
