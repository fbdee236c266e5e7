//! The `cohkit` command; everything else is in the library.

use cohkit::{Console, Terminal};
use std::io::{stderr, stdout, IsTerminal, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let interrupted = match cohkit::interrupt::watch() {
        Ok(interrupted) => interrupted,
        Err(error) => {
            let _ = writeln!(stderr(), "warning: Ctrl-C will stop at once: {error}");
            cohkit::interrupt::never()
        }
    };
    let width = terminal_size::terminal_size_of(stdout()).map(|(width, _)| usize::from(width.0));
    let terminal = Terminal {
        width,
        colour: stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        progress: stderr().is_terminal(),
    };
    let outcome = cohkit::run(
        std::env::args_os(),
        &mut Console::new(&mut stdout(), &mut stderr(), terminal, interrupted),
    );
    outcome.into()
}
