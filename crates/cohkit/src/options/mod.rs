//! The command line. Its help text is the manual.

mod check;
mod litmus;
mod named_value;
mod output;
mod package;
mod rtl;
mod run;
mod simulated;
mod workload;

use clap::{Args, Parser, Subcommand, ValueEnum};
use cohkit_api::controller_table::Agent;
use cohkit_api::named_value::NamedValue;
use cohkit_link::rates::Kind;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;

pub(crate) use check::{Check, DeadlockOption, DialectOption, SymmetryOption};
pub(crate) use litmus::Litmus;
use named_value::named_value;
pub(crate) use output::{Form, Output};
pub(crate) use package::{Explore, Report, Reproduce, Sweep};
pub(crate) use rtl::{Emit, Measure, Rtl, RtlCommand, RtlTest, Synth};
pub(crate) use run::Run;
pub(crate) use simulated::{Drawn, Executed, HomeKind, Play, ReportOptions, Sim};
pub(crate) use workload::WorkParser;

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

/// What stands below a command's help. Tests run the example at the root of the repository.
fn example(command: &str) -> String {
    format!("Example:\n  $ {command}\n\n{EXIT_CODES}")
}

/// Checks, simulates and synthesises cache-coherence protocols written as one text, and runs programs on cores beside far memory.
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

/// Serves editors: it is started by them, and speaks the language server protocol over standard input and output.
///
/// For protocol files, which end in `.coh`, it reports errors while they are written, and finds the declaration and the
/// references of a name; it renames names, completes those that fit at a place, formats as `cohkit fmt` does, and gives
/// the kind of each name for its colour. It shows the rows of the tables at a place, of a constructed home too, and the
/// outline of the file. A file that composes others is checked against those that are open too. It ends with its input.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit language-server"))]
pub(crate) struct LanguageServer {}

/// Prints what a shell needs to complete commands and options of `cohkit`.
///
/// Those of `reproduce`, `sweep`, `report` and `explore` are not among them: the Python package knows these.
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
///
/// The text of a protocol or a platform is printed by its name, to be copied and changed:
///
///   cohkit list enzian-dc-ddr --out mine.toml
#[derive(Args, Debug)]
#[command(after_help = example("cohkit list msi"))]
pub(crate) struct List {
    /// A protocol or a platform, whose text is printed instead; or `protocols`, `platforms`, `workloads`, `applications` or
    /// `experiments`, of which these alone are listed.
    #[arg(value_name = "NAME", conflicts_with_all = ["json", "csv", "stats"])]
    pub name: Option<PathBuf>,

    #[command(flatten)]
    pub output: Output,
}

/// Writes the C library for cores beside far memory and their hosts into a folder, with the programs of its guide.
///
/// They lie there as in a checkout: the compiler works in that folder, where the files of flags find what they name. A file
/// that is there already and differs is left as it is, and nothing is written then.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit library out/library"))]
pub(crate) struct Library {
    /// The folder, which is made if it is not there.
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
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

/// Changes a protocol text in one place at a time, and tells what becomes of each mutant: what nobody notices, nothing holds.
///
/// Rows, actions, guards, rights, messages and goals are dropped, doubled or replaced. Two actions are swapped, a message is sent
/// to another receiver, a set keeps a member or lacks one, a count is off by one, a comparison is replaced, bytes come from
/// elsewhere.
///
/// A mutant is rejected if the text is refused or no home fits it, and refuted if a system of up to four remotes or two lines is
/// violated or comes to no end. It is bisimilar if it survives that and no access, permission or message tells those systems from
/// the text's own. One that survives otherwise means the same as the text, or shows what the text's properties leave open.
/// The answer is yes if each is rejected, refuted or bisimilar, and no if one survives.
///
/// With `--sweep NAME=VALUES` it runs at every value of an option; `cohkit sweep --help` tells more.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit mutants msi --from 2 --every 60"))]
pub(crate) struct Mutants {
    /// The protocol text, or the name of one that ships.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Only the mutant of this number, from 0 on.
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "every"])]
    pub number: Option<usize>,

    /// Mutants from this number on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub from: usize,

    /// One in so many of them.
    #[arg(long, value_name = "K", default_value = "1")]
    pub every: NonZeroUsize,

    /// Mutants judged at once; as many as the machine has processors, if not given.
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroU16>,

    /// Print their texts, and judge nothing.
    #[arg(long, conflicts_with_all = ["json", "csv", "stats"])]
    pub print: bool,

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

    /// Lanes that work: 1 to 16 of ECI, whose own links have 12, and 1, 2, 4, 8 or 16 of the others; 12 and 16 if not
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

/// Prints an agent's controller as a table: state, event, guard, actions, next state.
///
/// A home that the text gives as a policy is constructed first; its table is that for one caching agent.
/// Rows without a next state leave their event waiting, or refuse it.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit table protocols/msi.coh --agent remote"))]
pub(crate) struct Table {
    /// The protocol text, or the name of one that ships.
    pub file: PathBuf,

    /// Whose table.
    #[arg(long, value_parser = named_value::<Agent>(), default_value = Agent::Home.name())]
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

/// Formats protocol files in place: indentation, spacing and aligned tables. Line breaks, words and comments stay.
///
/// A file that is formatted already is not written. `-` formats standard input to standard output, as editors ask for it.
/// A file need not be a correct protocol, but all of its characters have to be of the language; the others are reported and
/// their file stays as it is.
#[derive(Args, Debug)]
#[command(after_help = example("cohkit fmt - < protocols/msi.coh"))]
pub(crate) struct Fmt {
    /// The protocol files, or `-`.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Write nothing; name the files that are not formatted, and exit with 1 if there are any.
    #[arg(long)]
    pub check: bool,
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

    /// The protocol text by which they are judged, or the name of one that ships.
    #[arg(long, value_name = "FILE")]
    pub protocol: PathBuf,

    /// Read the text with another size than it says, such as `homes=8`, if the system of the traces has one. May be repeated
    /// for others.
    #[arg(long = "size", value_name = "NAME=VALUE")]
    pub size: Vec<String>,

    #[command(flatten)]
    pub output: Output,
}
