//! Timeline file that a background thread writes while the simulation runs.

use crate::files;
use crate::outcome::Failure;
use cohkit_sim::timeline::writer::Pieces;
use cohkit_sim::timeline::{Filter, Recorded};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tempfile::NamedTempFile;

/// Maximum number of buffers queued for the writer. The simulation blocks when the queue is full.
const WAITING: usize = 64;

/// A file written under a temporary name and renamed when complete.
pub(crate) struct StreamingFile {
    place: PathBuf,
    file: NamedTempFile,
    pieces: Pieces,
    writer: JoinHandle<io::Result<()>>,
}

impl StreamingFile {
    /// Creates the temporary file, starts the writer thread, and directs the events that `filter` selects to it.
    ///
    /// Returns `None` if `path` is not a regular file. Partial output to a pipe or device cannot be taken back, so such
    /// a target is written once, at the end of the run.
    ///
    /// # Errors
    /// The file or the thread cannot be created.
    pub(crate) fn new(path: &Path, filter: &mut Filter) -> Result<Option<StreamingFile>, Failure> {
        let begun = || {
            let Some((place, file)) = files::begin(path)? else {
                return Ok(None);
            };
            let (full, pieces) = sync_channel::<Vec<u8>>(WAITING);
            let (back, empty) = channel();
            let mut to = file.reopen()?;
            let writer = std::thread::Builder::new().spawn(move || {
                // An empty buffer marks the end: the simulation may still hold a sender, so the channel stays open.
                for piece in pieces.into_iter().take_while(|piece| !piece.is_empty()) {
                    to.write_all(&piece)?;
                    // Fails at the end of the run, when no producer is left to reuse the buffer.
                    let _ = back.send(piece);
                }
                to.sync_all()
            })?;
            let empty = Arc::new(Mutex::new(empty));
            Ok(Some(StreamingFile {
                place,
                file,
                pieces: Pieces { full, empty },
                writer,
            }))
        };
        let begun = begun().map_err(|error| files::cannot_write(path, &error))?;
        filter.pieces = begun.as_ref().map(|growing| growing.pieces.clone());
        Ok(begun)
    }

    fn end(self, rest: Vec<u8>) -> io::Result<()> {
        // A closed channel means that the writer failed; `join` returns its error.
        let _ = self.pieces.full.send(rest);
        let _ = self.pieces.full.send(Vec::new());
        let written = self.writer.join();
        written.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        files::end(&self.place, self.file)
    }
}

/// Writes the last, partly filled buffer to the growing file; without one, writes the whole timeline to `path`.
pub(crate) fn write(
    path: &Path,
    growing: Option<StreamingFile>,
    recorded: &mut Recorded,
) -> Result<(), Failure> {
    let rest = std::mem::take(&mut recorded.rest);
    match growing {
        None => files::write_bytes(path, &rest),
        Some(growing) => {
            let ended = growing.end(rest);
            ended.map_err(|error| files::cannot_write(path, &error))
        }
    }
}
