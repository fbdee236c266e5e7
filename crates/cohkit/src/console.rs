//! Output streams of a command, and properties of its terminal.

use cohkit_api::outcome::{ExitStatus, Failure};
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Capabilities of the terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Terminal {
    /// Width of standard output in columns; `None` if it is no terminal, and nothing is shortened.
    pub width: Option<usize>,
    /// True if standard output is a terminal that shows only ASCII characters.
    pub ascii: bool,
    /// True if messages on standard error are coloured.
    pub colour: bool,
    /// True if progress is shown on standard error.
    pub progress: bool,
}

/// Environment of a command: output streams, terminal and interrupt flag.
pub struct Console<'a> {
    /// Standard output of the command.
    out: &'a mut dyn Write,
    /// Standard error of the command.
    err: &'a mut dyn Write,
    /// Capabilities of the terminal on both streams.
    pub(crate) terminal: Terminal,
    /// Flag that stops long work. Another thread sets it, such as the handler of [`crate::interrupt::watch`].
    pub(crate) interrupted: &'a AtomicBool,
    /// True once the reader of `out` has closed it; later output is discarded.
    closed: bool,
    /// The command line as a shell would take it, for results.
    pub(crate) command: String,
}

impl<'a> Console<'a> {
    /// Creates a console on two streams. Work stops soon after another thread sets `interrupted`.
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

    /// Returns a console on the same streams for work that another flag stops.
    pub(crate) fn with_interrupt_flag<'b>(
        &'b mut self,
        interrupted: &'b AtomicBool,
    ) -> Console<'b> {
        Console {
            out: &mut *self.out,
            err: &mut *self.err,
            terminal: self.terminal,
            interrupted,
            closed: self.closed,
            command: self.command.clone(),
        }
    }

    /// Writes text to standard output. After the reader has closed it, writes nothing and reports no error.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.write(text.as_bytes())
    }

    /// Writes bytes that need not be text to standard output, like [`Console::print`].
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.closed || bytes.is_empty() {
            return Ok(());
        }
        let result = self.out.write_all(bytes).and_then(|()| self.out.flush());
        match result {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => Err(Failure::new(
                ExitStatus::CouldNotRun,
                format!("error: standard output cannot be written: {error}\n  help: check the space on its disk, or redirect to another disk with `> FILE`"),
            )),
            Ok(()) => Ok(()),
        }
    }

    /// Writes a message to standard error, which may be closed.
    pub(crate) fn say(&mut self, message: &str) {
        let _ = writeln!(self.err, "{message}");
    }

    /// Returns true once the flag of an interrupt is set, for example by Ctrl-C.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }
}
