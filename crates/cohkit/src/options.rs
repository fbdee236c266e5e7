//! The command line. Its help text is the manual.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
    0  yes: verified, or done
    1  no: a property is violated, or the home's policy cannot be followed
    2  bad input: the command line, a missing file, a protocol text
    3  not decided: a limit was reached first
    4  could not run: no permission, disk full
  130  interrupted
The worst of a batch wins.";

/// Checks cache-coherence protocols written as one text.
#[derive(Parser, Debug)]
#[command(name = "cohkit", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Table(Table),
}

/// Prints an agent's controller as a table: state, event, guard, actions, next state.
///
/// A home that the text gives as a policy is constructed first; its table is that for one caching agent.
/// Rows without a next state leave their event waiting, or refuse it.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
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
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,

    #[command(flatten)]
    pub output: Output,
}

/// The agents of a protocol.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Agent {
    /// The home agent.
    Home,
    /// The caching agent.
    Remote,
}

/// Options of every subcommand that prints a result.
#[derive(Args, Debug)]
pub(crate) struct Output {
    /// Print JSON; what depends on the machine stands under the key `run`.
    #[arg(long)]
    pub json: bool,

    /// Draw charts with ASCII characters only.
    #[arg(long)]
    pub ascii: bool,

    /// Write the result to this file instead of standard output: all of it, or nothing.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
