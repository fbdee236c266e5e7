//! The command line. Its help text is the manual.

use clap::Parser;

const EXIT_CODES: &str = "\
Exit codes:
    0  yes: verified, or done
    1  no: a property is violated
    2  bad input: the command line, a missing file, a protocol text
    3  not decided: a limit was reached first
    4  could not run: no permission, disk full
  130  interrupted
The worst of a batch wins.";

/// Checks cache-coherence protocols written as one text.
#[derive(Parser, Debug)]
#[command(
    name = "cohkit",
    version,
    after_help = EXIT_CODES,
    arg_required_else_help = true
)]
pub struct Options {}
