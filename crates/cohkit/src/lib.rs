//! The `cohkit` command as a library: options in, text and an [`ExitStatus`] out.
//!
//! [`run`] executes one command line on the streams of a [`Console`].
//!
//! The crate is the user interface: options, terminals, exit codes, the language server.
//! It does not know coherence, which the crates below define, or `cohkit-python`. Both interfaces take their results
//! from `cohkit-api`.
//!
//! ```
//! use cohkit::{run, Console, ExitStatus, Terminal};
//!
//! let (mut out, mut err) = (Vec::new(), Vec::new());
//! let mut console = Console::new(&mut out, &mut err, Terminal::default(), cohkit::interrupt::never());
//! assert_eq!(run(["cohkit", "--version"], &mut console), ExitStatus::Success);
//! assert_eq!(out, format!("cohkit {}\n", env!("CARGO_PKG_VERSION")).into_bytes());
//! ```

mod check;
mod check_request;
mod console;
mod csv;
mod doctor;
mod exhaustive;
mod exit_code;
mod export;
mod fmt;
mod graph;
mod guest_io;
mod guest_program;
pub mod interrupt;
mod language_server;
mod library;
mod link;
mod list;
mod litmus;
mod mutants;
mod observers;
mod options;
mod play;
mod program;
mod progress;
mod python;
mod replay;
mod rtl;
mod run_near_memory;
mod sim;
mod streaming_file;
mod summary;
mod table;
mod trace;
mod watch;

use clap::{CommandFactory, FromArgMatches};
use cohkit_api::files;
use cohkit_api::outcome::Failure;
use cohkit_api::shell_word::quoted;
use options::{Command, Options, Output, Shell};
use std::ffi::OsString;

pub use cohkit_api::ExitStatus;
pub use console::{Console, Terminal};
pub use exit_code::exit_code;

/// Runs one command line, which starts with the command's name, and returns its outcome. Results and messages go to
/// the streams of the console.
pub fn run<A>(arguments: impl IntoIterator<Item = A>, console: &mut Console) -> ExitStatus
where
    A: Into<OsString> + Clone,
{
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    console.command = command_line(&arguments);
    if let Some(forwarded) = python::sweep_arguments(&arguments) {
        return python::run_in_python("sweep", forwarded).unwrap_or_else(|failure| {
            console.say(&failure.message);
            failure.outcome
        });
    }
    let parsed = with_negative_numbers(Options::command()).try_get_matches_from(arguments);
    let result = match parsed.and_then(|matches| Options::from_arg_matches(&matches)) {
        Ok(options) => run_command(options.command, console),
        Err(parser_error) if parser_error.use_stderr() => {
            let message = parser_error.render();
            let message = match console.terminal.colour {
                true => message.ansi().to_string(),
                false => message.to_string(),
            };
            Err(Failure::new(
                ExitStatus::BadInput,
                reword_parser_errors(&message).trim_end(),
            ))
        }
        // The parser returns `--help` and `--version` as errors too.
        Err(parser_error) => console
            .print(&parser_error.render().to_string())
            .map(|()| ExitStatus::Success),
    };
    result.unwrap_or_else(|failure| {
        if failure.outcome != ExitStatus::Interrupted || interrupt::may_report() {
            console.say(&failure.message);
        }
        failure.outcome
    })
}

/// Runs a parsed command.
fn run_command(command: Command, console: &mut Console) -> Result<ExitStatus, Failure> {
    match command {
        Command::Check(options) => match options.watch {
            true => watch::run(&options, console),
            false => check::once(&options, console),
        },
        Command::Table(options) => table::run(&options, console),
        Command::Fmt(options) => fmt::run(&options, console),
        Command::Litmus(options) => litmus::run(&options, console),
        Command::Trace(options) => trace::run(&options, console),
        Command::Sim(options) => sim::run(&options, console),
        Command::Play(options) => play::run(&options, console),
        Command::Rtl(options) => rtl::run(&options, console),
        Command::Mutants(options) => mutants::run(&options, console),
        Command::Link(options) => link::run(&options, console),
        Command::Run(options) => program::run(&options, console),
        Command::List(options) => list::run(&options, console),
        Command::Library(options) => library::run(&options, console),
        Command::Doctor(options) => doctor::run(&options, console),
        Command::Platform(options) => list::show_platform(&options, console),
        Command::Reproduce(options) => {
            python::run_in_python("reproduce", &options.forwarded.arguments)
        }
        Command::Completions(options) => console
            .print(&completions(options.shell))
            .map(|()| ExitStatus::Success),
        Command::LanguageServer(_) => language_server::run(console),
        Command::Sweep(options) => python::run_in_python("sweep", &options.forwarded.arguments),
        Command::Report(options) => python::run_in_python("report", &options.forwarded.arguments),
        Command::Explore(options) => python::run_in_python("explore", &options.forwarded.arguments),
    }
}

/// Command line quoted for a POSIX shell, with the plain name of the command.
fn command_line(arguments: &[OsString]) -> String {
    let quoted_words = arguments
        .iter()
        .skip(1)
        .map(|word| quoted(&word.to_string_lossy()));
    let words: Vec<String> = std::iter::once("cohkit".to_string())
        .chain(quoted_words)
        .collect();
    words.join(" ")
}

/// Rewords those errors of the command-line parser that use Rust's terms.
fn reword_parser_errors(message: &str) -> String {
    let mut message = message.to_string();
    for (parser_text, replacement) in [
        (
            "invalid digit found in string",
            "expected a non-negative integer",
        ),
        (
            "cannot parse integer from empty string",
            "a number is needed",
        ),
        ("number too large to fit in target type", "it is too large"),
        ("invalid float literal", "a number is needed"),
    ] {
        message = message.replace(parser_text, replacement);
    }
    // `0 is not in 1..=8`
    let Some((head, range)) = message.split_once(" is not in ") else {
        return message;
    };
    let (range, tail) = range.split_at(range.find(char::is_whitespace).unwrap_or(range.len()));
    let head = &head[..head.rfind(' ').map_or(0, |index| index + 1)];
    let allowed = match range.split_once("..=").or(range.split_once("..")) {
        // The largest number of a type is no limit that a user could reach.
        Some((low, high)) if high.len() >= i64::MAX.to_string().len() => format!("at least {low}"),
        Some((low, high)) => format!("{low} to {high}"),
        None => return message,
    };
    format!("{head}it must be {allowed}{tail}")
}

/// Completion script for a shell.
fn completions(shell: Shell) -> String {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Options::command(), "cohkit", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Lets options that take a value accept negative numbers, so that they reject these with their own message.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        match argument.is_positional() || !argument.get_action().takes_values() {
            true => argument,
            false => argument.allow_negative_numbers(true),
        }
    });
    command.mut_subcommands(with_negative_numbers)
}

/// Writes a result to the destination in the options, unless the command was interrupted.
fn deliver(result: &str, output: &Output, console: &mut Console) -> Result<(), Failure> {
    if console.is_interrupted() {
        return Err(Failure::new(
            ExitStatus::Interrupted,
            "interrupted; nothing was written",
        ));
    }
    match &output.out {
        Some(path) => files::write(path, result),
        None => console.print(result),
    }
}
