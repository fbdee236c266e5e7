//! What the Python package does; its options are its own.

use clap::Args;
use std::ffi::OsString;

/// What is handed over as it is.
#[derive(Args, Debug)]
pub(crate) struct Given {
    /// Arguments and options, which `--help` tells.
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub arguments: Vec<OsString>,
}

/// Runs published tables and figures and prints the published numbers beside ours.
///
/// This is done by the Python package; `cohkit reproduce --help` tells its options where that is installed.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Reproduce {
    #[command(flatten)]
    pub given: Given,
}

/// Runs a command at every point of a sweep, on all cores or a cluster, and makes one table of the results.
///
/// `cohkit sim`, `play`, `check`, `reproduce`, `litmus` and `mutants` with `--sweep NAME=VALUES` are sweeps too. This is
/// done by the Python package; `cohkit sweep --help` tells its options where that is installed.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub given: Given,
}

/// Makes one page of a folder with results, to look through in a browser.
///
/// The page needs no network and nothing else: tables of states, diagrams, counterexamples to step through, coverage, and
/// published numbers beside ours. This is done by the Python package; `cohkit report --help` tells its options where that
/// is installed.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Report {
    #[command(flatten)]
    pub given: Given,
}

/// Shows a protocol in a browser, to choose step by step what happens next in a system of it.
///
/// The browser is told what may happen, what it leads to, and the way to what is nearest of all that is wrong. This is done
/// by the Python package; `cohkit explore --help` tells its options where that is installed.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Explore {
    #[command(flatten)]
    pub given: Given,
}
