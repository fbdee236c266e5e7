//! The command line. Its help text is the manual.

use crate::size;
use crate::tabulate::Agent;
use crate::work::{Work, WorkParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use cohkit_link::rates::Kind;
use cohkit_protocol::protocol::System;
use cohkit_rtl::lockstep::shapes::SHAPES;
use cohkit_sim::statistics::{Definition, Statistics};
use std::ffi::OsString;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
    0  yes: verified, or done
    1  no: a property is violated, or the home's policy cannot be followed
    2  bad input: the command line, a missing file, a protocol text, a platform
    3  not decided: a limit was reached first, or a simulation got stuck
    4  could not run: no permission, disk full, something is not installed
  130  interrupted
The worst of a batch wins.";

/// What stands below a command's help. Tests run the example at the root of the repository.
fn example(command: &str) -> String {
    format!("Example:\n  $ {command}\n\n{EXIT_CODES}")
}

/// Checks cache-coherence protocols written as one text.
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
    Litmus(Litmus),
    Trace(Trace),
    Sim(Sim),
    Play(Play),
    Rtl(Rtl),
    Link(Link),
    Run(Run),
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

/// Serves editors: it is started by them, and speaks the language server protocol over standard input and output.
///
/// Of protocol texts, which end in `.coh`, it tells what is wrong while they are written; where a name is declared, and
/// what it is; the rows of the tables that stand at a place, of a home that is constructed too; the names that there are;
/// and the blocks with the names in them. A text that composes others is told what is wrong by those that are open too.
/// It ends with its input.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit language-server"))]
pub(crate) struct LanguageServer {}

/// Prints what a shell needs to complete commands and options of `cohkit`.
///
/// Those of `reproduce` and `sweep` are not among them: the Python package knows these.
#[derive(Args, Debug)]
#[command(after_help = format!("Example:\n  $ cohkit completions bash\n\n{COMPLETIONS}"))]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

const COMPLETIONS: &str = "\
Where shells look for them:
  bash  ~/.local/share/bash-completion/completions/cohkit
  zsh   _cohkit, in a folder of `fpath`, before `compinit`
  fish  ~/.config/fish/completions/cohkit.fish";

/// Lists what ships: protocols, platforms, workloads, applications and experiments, each with a line of explanation.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit list"))]
pub(crate) struct List {
    #[command(flatten)]
    pub output: Output,
}

/// Tells which optional tools are installed, what each enables, and what brings those that are not.
///
/// Nothing but the command itself is needed to check, tabulate and simulate. Each tool is asked for its version, and has 10
/// seconds to answer. The exit code is 0, whatever there is.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit doctor"))]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub output: Output,
}

/// Prints a platform: every quantity with its value, its plausible range and where it comes from.
///
/// A quantity without a range is as a source gives it.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit platform enzian-dc-ddr"))]
pub(crate) struct ShowPlatform {
    /// The platform's name, as `cohkit list` gives it, or a file, which ends in `.toml`.
    #[arg(value_name = "PLATFORM")]
    pub platform: PathBuf,

    #[command(flatten)]
    pub output: Output,
}

/// Tells what one gets of a link: what each layer leaves of its rate, and its data by formula and by driving two ends.
///
/// The ends are state machines with the framing, credits and replay of the link, as fast as its lanes go. Their data is
/// below the formula where credits do not last for the way there and back, or where bit errors make them send again.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit link pcie4 --payload 256"))]
pub(crate) struct Link {
    /// The link: one of ECI's two, PCIe of generation 3 to 5, CCIX over PCIe of generation 4, or CXL.mem over PCIe of
    /// generation 5 with flits of 68 or 256 bytes.
    #[arg(value_name = "LINK", value_parser = Kind::ALL.map(|(name, _)| name))]
    pub link: String,

    /// Lanes that work, of the 12 of ECI's link or the 16 of the others, which work with 1, 2, 4, 8 or 16; all if not
    /// given.
    #[arg(long, value_name = "N")]
    pub lanes: Option<u64>,

    /// Most bytes of data in a message of ECI (32, 64, 96 or 128), in a packet of PCIe (128 to 1024), or of messages in a
    /// packet of CCIX (128, 256 or 512). The usual size if not given.
    #[arg(long, value_name = "N")]
    pub payload: Option<u64>,

    /// Nanoseconds of one way, at most 10,000.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub delay: u64,

    /// Bit errors per bit, at most 0.0001.
    #[arg(long, value_name = "RATE", default_value_t = 0.0)]
    pub bit_errors: f64,

    /// The seed of bit errors.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Tell of transfers by DMA of so many bytes, too, at most 1,048,576; over PCIe, without bit errors.
    #[arg(long, value_name = "BYTES")]
    pub dma: Option<u64>,

    #[command(flatten)]
    pub output: Output,
}

/// Runs a compiled program on a plain RV64 core with flat memory, or on a host with cores beside its far memory.
///
/// The program is statically linked, and reaches the outside by semihosting, as picolibc's do, or by the few calls of Linux
/// that it needs. Its output is the command's. The same program does the same each time: its clock counts instructions, or
/// cycles, as nanoseconds. If it ends with another code than 0, or by an exception, the command ends with 1.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit run --files docs/riscv out/sum.elf numbers.txt"))]
pub(crate) struct Run {
    /// The program: an ELF file for RV64.
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,

    /// Words that the program is called with.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub arguments: Vec<String>,

    /// Run it in time, on a small core that is assumed, with memory that takes no longer than a load does; and tell how many
    /// instructions and cycles it takes.
    #[arg(long)]
    pub timed: bool,

    /// MiB of memory, from the program's first address on.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub memory: u64,

    /// Most instructions.
    #[arg(long, value_name = "N", default_value_t = 10_000_000_000)]
    pub most: u64,

    /// The folder whose files the program may read and write. It has no files without.
    #[arg(long, value_name = "FOLDER")]
    pub files: Option<PathBuf>,

    /// A program that the program may start by this name on a core beside far memory; may be repeated for others. The program
    /// then runs on the host of a machine, always in time, as do these.
    #[arg(long = "cp", value_name = "NAME=PROGRAM")]
    pub channels: Vec<String>,

    /// The machine: a file like `nearmemory/enzian.toml`, which is the one if none is given.
    #[arg(long, value_name = "FILE")]
    pub platform: Option<PathBuf>,

    /// Set a quantity of the machine, such as `link.latency=120ns`; may be repeated for others.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Tell at the end, on standard error, what was counted on every path of the machine.
    #[arg(long)]
    pub counters: bool,

    /// Leave it to the cores to look through the programs of `--cp`.
    #[arg(long)]
    pub unverified: bool,

    /// Look for what the programs forget of far memory, which nothing keeps coherent: loads of stale lines, write-backs over
    /// what is newer, lines that both sides write. Each is told with both places in the programs, and the answer is then no.
    #[arg(long)]
    pub races: bool,

    /// Evict a line from the host's caches at random, once in so many accesses.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub evict: Option<u64>,

    /// What everything random follows from.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

impl Run {
    /// Whether it is run on a machine with cores beside far memory.
    pub(crate) fn beside(&self) -> bool {
        let machine = self.platform.is_some() || !self.set.is_empty() || self.evict.is_some();
        machine || !self.channels.is_empty() || self.counters || self.races || self.unverified
    }
}

/// Prints an agent's controller as a table: state, event, guard, actions, next state.
///
/// A home that the text gives as a policy is constructed first; its table is that for one caching agent.
/// Rows without a next state leave their event waiting, or refuse it.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit table protocols/msi.coh --agent remote"))]
pub(crate) struct Table {
    /// The protocol text.
    pub file: PathBuf,

    /// Whose table.
    #[arg(long, value_enum, default_value_t = Agent::Home)]
    pub agent: Agent,

    /// Merge the states of a constructed home that no future can tell apart.
    #[arg(long)]
    pub merged: bool,

    /// Print a markdown table.
    #[arg(long, conflicts_with_all = ["json", "csv", "stats"])]
    pub markdown: bool,

    #[command(flatten)]
    pub output: Output,
}

/// Runs litmus tests: what a few threads may show, on memory that acts at once or on the caches of a protocol.
///
/// Tests are in the format of the herd tools, in AArch64 assembly or in C. Every order is tried in which threads go on, messages
/// arrive and caches give lines up; each location is a line of its own. The condition of the file decides: the answer is
/// yes if it holds of all ends together. Beside it stands whether the ends are exactly those of sequential consistency, or
/// of total store order where cores buffer stores, or of release consistency where they have windows.
///
/// The classic shapes need no file: `cohkit litmus SB MP+dmb.sys` runs them by their names.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit litmus SB --protocol protocols/mesi.coh --cores store-buffer"))]
pub(crate) struct Litmus {
    /// The tests: files, or names of classic shapes.
    #[arg(required_unless_present = "shapes", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// All classic shapes, after the tests named.
    #[arg(long)]
    pub shapes: bool,

    /// Print the tests, in the format of the herd tools, and run nothing.
    #[arg(long, conflicts_with_all = ["protocol", "json", "csv", "stats"])]
    pub print: bool,

    /// The protocol text whose caches the threads run on; memory that acts at once, if not given.
    #[arg(long, value_name = "FILE")]
    pub protocol: Option<PathBuf>,

    /// What stands between threads and caches; what a protocol text with `accesses` asks for, and else `in-order`.
    #[arg(long, value_enum)]
    pub cores: Option<Cores>,

    /// By which of the text's accesses each write is made: a letter for each, thread by thread (`t` as the text's cores store,
    /// `b` written back in the core's own copy, `a` acknowledged by the home), or `every` for all mixes, each a test of its
    /// own.
    #[arg(
        long,
        value_name = "MIX",
        requires = "protocol",
        conflicts_with = "simulate"
    )]
    pub stores: Option<String>,

    /// Run each test so many times in the simulator, with random times of threads and messages, instead of trying every
    /// order: an end that decides is seen, or nothing is decided.
    #[arg(long, value_name = "N", requires = "protocol", conflicts_with_all = ["gives_up", "max_states"])]
    pub simulate: Option<u64>,

    /// The seed of the first run; each further one has the next.
    #[arg(long, value_name = "N", requires = "simulate", default_value_t = 0)]
    pub seed: u64,

    /// Draw the shortest way to what decides: where nothing leads on, to an end that the model forbids, or else to one that
    /// the condition speaks of.
    #[arg(long, requires = "protocol", conflicts_with_all = ["simulate", "csv", "stats"])]
    pub chart: bool,

    /// What the ends are compared with, and without a protocol whose they are; the text's `guarantee` or that of the cores,
    /// if not given.
    #[arg(long, value_enum)]
    pub model: Option<Model>,

    /// How often, in all, caches give up lines or rights that they were not asked for.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub gives_up: u8,

    /// States to visit for one test, at most.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub max_states: usize,

    #[command(flatten)]
    pub output: Output,
}

/// Judges traces by the tables of a protocol: did what is told happen as they say, and was memory coherent?
///
/// Traces come from models (`cohkit check --json`, whose counterexamples are traces), from simulations
/// (`cohkit sim --trace`) and from hardware in lockstep (`cohkit rtl test --trace`). Whoever judges shares no code with whoever
/// executes but the parsed text. Each message has to be sent before it is taken and to come in the order that its channel
/// promises; each agent has to do what its row says, and nothing else; a right to write has to be alone; reads have to see the
/// last write; and a trace that ends at rest leaves nothing under way.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit trace out/trace.json --protocol protocols/eci.coh"))]
pub(crate) struct Trace {
    /// A JSON file with traces in it, wherever they stand.
    pub file: PathBuf,

    /// The protocol text by which they are judged.
    #[arg(long, value_name = "FILE")]
    pub protocol: PathBuf,

    #[command(flatten)]
    pub output: Output,
}

/// What stands between threads and caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Cores {
    /// Nothing: an access begins when the one before it has ended.
    InOrder,
    /// A buffer of stores, first in and first out, out of which its own thread reads.
    StoreBuffer,
    /// A window, in which accesses of different locations wait for each other only where the protocol text's `accesses` say
    /// so; without such a block, what acquires, releases and fences ask for.
    Relaxed,
}

/// What a memory model allows threads to see.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Model {
    /// Sequential consistency: one access after the other.
    Sc,
    /// Total store order: reads before earlier writes.
    Tso,
    /// Release consistency: only the order that fences, acquires, releases and dependences ask for.
    Rc,
}

/// The form of a result.
#[derive(Args, Debug)]
pub(crate) struct Form {
    /// Print JSON; what depends on the machine stands under the key `run`.
    #[arg(long, default_value_ifs([("csv", "true", "true"), ("stats", "true", "true")]))]
    pub json: bool,

    /// Print a table as CSV: what JSON tells, with a row for each result, without what depends on the machine.
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,

    /// Print what gem5 calls statistics: every number that JSON tells in a line of its own, behind its name, without what
    /// depends on the machine.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub stats: bool,
}

/// Options of every subcommand that prints a result.
#[derive(Args, Debug)]
pub(crate) struct Output {
    #[command(flatten)]
    pub form: Form,

    /// Draw charts with ASCII characters only.
    #[arg(long)]
    pub ascii: bool,

    /// Write the result to this file instead of standard output: all of it, or nothing.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl Form {
    /// This value as JSON, or as CSV or statistics where these are asked for.
    pub fn told(&self, value: &serde_json::Value) -> String {
        self.defined(value, None)
    }

    /// The same, where statistics are behind their definitions.
    pub fn defined(&self, value: &serde_json::Value, statistics: Option<&Statistics>) -> String {
        let values = statistics.map_or(&[][..], |statistics| &statistics.values);
        let definitions: Vec<Definition> =
            values.iter().map(|&(definition, _)| definition).collect();
        match (self.csv, self.stats) {
            (true, _) => crate::csv::table(value),
            (_, true) => crate::csv::statistics(value, &definitions),
            _ => format!("{value:#}\n"),
        }
    }
}

/// Explores every reachable state of the systems a protocol text asks for, or of a Murphi model.
///
/// The properties are: a right to write excludes all other rights (single writer), reads see the last write
/// (data value), every message that arrives is expected, there is no deadlock, every request can still
/// complete, every access and every local operation that begins can be performed (progress), and the invariants
/// of the text.
/// A home that the text gives as a policy is constructed first; what the construction finds wrong is
/// reported in the same way as a violation.
/// A counterexample is a shortest one, drawn as a message sequence chart; a dot marks what the home cannot see.
///
/// Files that end in `.m` are Murphi models, as CMurphi or Rumur reads them. Their properties are what they say:
/// invariants, assertions, covers and liveness; and that nothing is done that has no meaning, and there is no deadlock.
/// A counterexample lists the rules that lead to the violation, with what each changes, and draws what is recognised
/// as messages.
///
/// With `--sweep NAME=VALUES` it runs at every value of an option or quantity; `cohkit sweep --help` tells more.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit check protocols/msi.coh --system three_caches"))]
pub(crate) struct Check {
    /// Protocol texts, and Murphi models, which end in `.m`.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Read Murphi models as this checker does, and accept nothing else; what either accepts if not given.
    #[arg(long, value_enum, value_name = "NAME")]
    pub dialect: Option<DialectOption>,

    /// Which states of a Murphi model are deadlocks: those that no rule leaves for a different one (stuttering),
    /// those in which no rule may fire (stuck), or none (off); stuttering if not given.
    #[arg(long, value_enum, value_name = "KIND")]
    pub deadlock: Option<DeadlockOption>,

    /// Whether states that differ only by a permutation of caching agents, or of a Murphi model's scalarset values,
    /// are explored once (exact), so that states are counted up to symmetry, or each on its own (off); exact if not given.
    #[arg(long, value_enum, value_name = "KIND")]
    pub symmetry: Option<SymmetryOption>,

    /// Check only the system of this name; may be repeated.
    #[arg(long = "system", value_name = "NAME")]
    pub systems: Vec<String>,

    /// Check a system with this many caching agents instead of those of the text; 1 if only `--lines` is given.
    #[arg(long, value_name = "N", conflicts_with = "systems", value_parser = clap::value_parser!(u8).range(1..=i64::from(System::MOST_REMOTES)))]
    pub remotes: Option<u8>,

    /// Check a system with this many cache lines instead of those of the text; 1 if only `--remotes` is given.
    #[arg(long, value_name = "N", conflicts_with = "systems", value_parser = clap::value_parser!(u8).range(1..=i64::from(System::MOST_LINES)))]
    pub lines: Option<u8>,

    /// Leave the verdict open beyond this many equal messages in an unordered channel, or this many for
    /// each line in an ordered one; 7 if not given. More room takes more memory, and changes no verdict but an open one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub capacity: Option<u8>,

    /// Threads that search; the result does not depend on it.
    /// As many as there are processors if not given, and never more.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Give up beyond this many states.
    #[arg(long, value_name = "N")]
    pub max_states: Option<u64>,

    /// Give up beyond this many steps from the start; with `--simulate` the most steps of one walk, 1000 if not given.
    #[arg(long, value_name = "N")]
    pub max_depth: Option<u64>,

    /// Keep of states that were expanded a signature of 64 bits instead of the state, for systems and models that take too
    /// much memory. A state with the signature of another is left out; the verdict says how probable that is at the most.
    /// A violation is a real one, with the way there. Whether requests can complete, covers and liveness are not judged,
    /// for that takes all states again; for the same reason it cannot be used with checkpoints and `--coverage`.
    #[arg(long, conflicts_with_all = ["replay", "simulate"])]
    pub hash_compaction: bool,

    /// Walk at random instead of searching, for systems and models that are too large: so many steps, on walks that begin
    /// in a start state. Every state on the way, and all that one step leads to, is judged, but for what takes all states to
    /// judge. Finding nothing decides nothing. The same seed gives the same walks on any number of threads.
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..),
          conflicts_with_all = ["max_states", "max_memory", "symmetry", "checkpoint", "resume", "coverage", "graph", "replay"])]
    pub simulate: Option<u64>,

    /// What everything random follows from; 0 if not given.
    #[arg(long, value_name = "N", requires = "simulate")]
    pub seed: Option<u64>,

    /// Give up beyond this much memory for states, such as `500MiB` or `2GB`.
    /// Three quarters of what is free if not given.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub max_memory: Option<u64>,

    /// Keep what is found in this folder, from time to time, when a limit is reached and on Ctrl-C, for `--resume`.
    /// The folder is made, and must hold no checkpoints yet; what is in it stays when the check ends.
    #[arg(long, value_name = "DIR", conflicts_with = "resume", group = "kept")]
    pub checkpoint: Option<PathBuf>,

    /// Go on from the checkpoints in this folder, and keep what is found there. Files and options have to be those
    /// that the check was begun with, but for threads, limits and output. The result is that of an undisturbed check.
    #[arg(long, value_name = "DIR", group = "kept")]
    pub resume: Option<PathBuf>,

    /// Seconds between checkpoints.
    #[arg(long, value_name = "N", default_value_t = 30, requires = "kept", value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,

    /// Write each system or model that is checked into this folder as a Murphi model, for another checker to confirm;
    /// what a protocol text becomes is for Rumur.
    /// Files are named after protocol and system, so the texts have to be of different protocols.
    #[arg(long, value_name = "DIR")]
    pub export_murphi: Option<PathBuf>,

    /// Write the chart of each counterexample into this folder as SVG,
    /// and that of how a channel's capacity is exceeded. Messages of Murphi models are drawn where they are recognised.
    #[arg(long, value_name = "DIR")]
    pub chart_svg: Option<PathBuf>,

    /// Tell how often each rule fired and how often it led to a new state, and which rows of the protocol's tables
    /// were never taken. Counted up to where the search ended, in a second walk that keeps all states in memory again.
    #[arg(long)]
    pub coverage: bool,

    /// Write the state graph of one small system or model into this file, which ends in `.dot` (for Graphviz) or `.json`:
    /// states with what differs from the first, rules that lead from one to the other, the counterexample marked.
    #[arg(long, value_name = "FILE")]
    pub graph: Option<PathBuf>,

    /// Step a counterexample again instead of searching: what `--json` printed, or its `trace` alone, from this file.
    /// It is compared with what the model does, and the state in which it ends is judged.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["export_murphi", "chart_svg", "coverage", "graph"])]
    pub replay: Option<PathBuf>,

    /// Check again whenever a file has changed, or one that it uses, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["replay", "checkpoint", "resume"])]
    pub watch: bool,

    #[command(flatten)]
    pub output: Output,
}

/// Whose Murphi a model is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DialectOption {
    Cmurphi,
    Rumur,
}

/// What becomes of states that differ by a permutation of scalarset values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SymmetryOption {
    Exact,
    Off,
}

/// Which states of a model are deadlocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DeadlockOption {
    Stuttering,
    Stuck,
    Off,
}

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

    /// The protocol text; that of Enzian's interconnect, ECI, if not given.
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
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

    /// The line that is traced, from 0 on.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "trace")]
    pub trace_line: u32,

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

    /// Write into this file, for ui.perfetto.dev, the run as a timeline: accesses, messages, states and counters.
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,

    /// Only of this line, whose states at each agent are then drawn.
    #[arg(long, value_name = "N", requires = "timeline")]
    pub timeline_line: Option<u32>,

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

    /// The protocol text; that of Enzian's interconnect, ECI, if not given. Its home has to be given as a policy.
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

/// Prints the home as a SystemVerilog package and the image of its ROM.
///
/// A home that the text gives as a policy is constructed for one caching agent; its states that no future can
/// tell apart are merged. A home that the hardware has no unit for is refused with the reason.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit rtl emit protocols/eci.coh --out out/rtl"))]
pub(crate) struct Emit {
    /// The protocol text.
    pub file: PathBuf,

    /// The folder that gets `PROTOCOL_pkg.sv` and `PROTOCOL.mem`; it is made if need be.
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
    /// The protocol text.
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
#[derive(Args, Debug)]
#[command(after_help = example("cohkit rtl synth protocols/eci.coh --units 1"))]
pub(crate) struct Synth {
    /// The protocol text.
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
    /// The protocol text.
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

/// Runs published tables and figures and prints the published numbers beside ours.
///
/// This is done by the Python package; `cohkit reproduce --help` tells its options where that is installed.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Reproduce {
    /// Experiments and options; without any, the experiments are listed.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub arguments: Vec<OsString>,
}

/// Runs a command at every point of a sweep, on all cores or a cluster, and makes one table of the results.
///
/// `cohkit sim`, `play`, `check` and `reproduce` with `--sweep NAME=VALUES` are sweeps too. This is done by the Python
/// package; `cohkit sweep --help` tells its options where that is installed.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Sweep {
    /// A file that says what is run, or a command and its arguments; and options.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub arguments: Vec<OsString>,
}

/// Makes one page of a folder with results, to look through in a browser.
///
/// The page needs no network and nothing else: tables of states, diagrams, counterexamples to step through, coverage, and
/// published numbers beside ours. This is done by the Python package; `cohkit report --help` tells its options where that
/// is installed.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Report {
    /// The folder, and options.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub arguments: Vec<OsString>,
}

/// Shows a protocol in a browser, to choose step by step what happens next in a system of it.
///
/// The browser is told what may happen, what it leads to, and the way to what is nearest of all that is wrong. This is done
/// by the Python package; `cohkit explore --help` tells its options where that is installed.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Explore {
    /// The protocol text, and options.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub arguments: Vec<OsString>,
}
