//! Where a command speaks: the two output streams and what is known of the terminal.

use crate::outcome::{Failure, Outcome};
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// What the terminal can show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Terminal {
    /// Columns, if standard output is a terminal; otherwise nothing is shortened.
    pub width: Option<usize>,
    /// Whether standard output is a terminal that shows ASCII characters alone.
    pub ascii: bool,
    /// Whether messages on standard error are coloured.
    pub colour: bool,
    /// Whether progress is shown on standard error.
    pub progress: bool,
}

/// The outside world of a command.
pub struct Console<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    pub(crate) terminal: Terminal,
    pub(crate) interrupted: &'a AtomicBool,
    closed: bool,
    /// The command line in the form of a shell, for results.
    pub(crate) command: String,
}

impl<'a> Console<'a> {
    /// A console on two streams; work stops soon after `interrupted` is set.
    pub fn new(
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
        terminal: Terminal,
        interrupted: &'a AtomicBool,
    ) -> Console<'a> {
        Console {
            out,
            err,
            terminal,
            interrupted,
            closed: false,
            command: String::new(),
        }
    }

    /// The same streams for work that stops soon after another flag is set.
    pub(crate) fn stopped_by<'b>(&'b mut self, interrupted: &'b AtomicBool) -> Console<'b> {
        Console {
            out: &mut *self.out,
            err: &mut *self.err,
            terminal: self.terminal,
            interrupted,
            closed: self.closed,
            command: self.command.clone(),
        }
    }

    /// Writes to standard output. If the reader has gone, nothing more is written and that is no error.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.write(text.as_bytes())
    }

    /// Writes what need not be text to standard output, in the same way.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.closed || bytes.is_empty() {
            return Ok(());
        }
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => Err(Failure::new(
                Outcome::CouldNotRun,
                format!("error: standard output cannot be written: {error}\n  help: is there room on its disk? `> FILE` writes to another one"),
            )),
            Ok(()) => Ok(()),
        }
    }

    /// Writes a message to standard error, which may be closed.
    pub(crate) fn say(&mut self, message: &str) {
        let _ = writeln!(self.err, "{message}");
    }

    /// Whether Ctrl-C was pressed.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }
}
