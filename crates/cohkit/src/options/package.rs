//! Commands that the Python package executes, with options of its own.

use clap::Args;
use std::ffi::OsString;

/// Arguments that are passed on unchanged.
#[derive(Args, Debug)]
pub(crate) struct ForwardedArguments {
    /// Arguments and options; see `--help`.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub arguments: Vec<OsString>,
}

/// Reproduces published tables and figures, and prints the published numbers beside the simulated ones.
///
/// The Python package executes this command; where it is installed, `cohkit reproduce --help` lists its options.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Reproduce {
    #[command(flatten)]
    pub forwarded: ForwardedArguments,
}

/// Runs a command at every point of a sweep, on all cores or a cluster, and merges the results into one table.
///
/// `cohkit sim`, `play`, `check`, `reproduce`, `litmus` and `mutants` with `--sweep NAME=VALUES` are sweeps too. The
/// Python package executes this command; where it is installed, `cohkit sweep --help` lists its options.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub forwarded: ForwardedArguments,
}

/// Generates a report for browsers, one page, from a folder of results.
///
/// The page needs no network and no other file. It shows controllers, diagrams, counterexamples step by step, coverage,
/// and published numbers beside the simulated ones. The Python package executes this command; where it is installed,
/// `cohkit report --help` lists its options.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Report {
    #[command(flatten)]
    pub forwarded: ForwardedArguments,
}

/// Explores a system of a protocol step by step in a browser.
///
/// The browser shows the possible steps, their effects, and a path to the nearest violation. The Python package
/// executes this command; where it is installed, `cohkit explore --help` lists its options.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Explore {
    #[command(flatten)]
    pub forwarded: ForwardedArguments,
}
