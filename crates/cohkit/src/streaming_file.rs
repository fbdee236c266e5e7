//! Timeline file that a background thread writes while the simulation runs.

use cohkit_api::files;
use cohkit_api::outcome::Failure;
use cohkit_timeline::writer::Pieces;
use cohkit_timeline::{Filter, Recorded};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tempfile::NamedTempFile;

/// Maximum number of buffers queued for the writer. The simulation blocks when the queue is full.
const MAX_QUEUED_BUFFERS: usize = 64;

/// A file written under a temporary name and renamed when complete.
pub(crate) struct StreamingFile {
    /// Path that the file gets when it is complete.
    target: PathBuf,
    /// Temporary file in the folder of `target`.
    file: NamedTempFile,
    /// Channels to the writer thread. An empty buffer marks the end.
    pieces: Pieces,
    /// Writer thread, which returns its first error.
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
        let create = || {
            let Some((target, file)) = files::create_unfinished(path)? else {
                return Ok(None);
            };
            let (full, pieces) = sync_channel::<Vec<u8>>(MAX_QUEUED_BUFFERS);
            let (return_sender, empty) = channel();
            let mut output = file.reopen()?;
            let writer = std::thread::Builder::new().spawn(move || {
                // An empty buffer marks the end: the simulation may still hold a sender, so the channel stays open.
                for piece in pieces.into_iter().take_while(|piece| !piece.is_empty()) {
                    output.write_all(&piece)?;
                    // Fails at the end of the run, when no producer is left to reuse the buffer.
                    let _ = return_sender.send(piece);
                }
                output.sync_all()
            })?;
            let empty = Arc::new(Mutex::new(empty));
            Ok(Some(StreamingFile {
                target,
                file,
                pieces: Pieces { full, empty },
                writer,
            }))
        };
        let streaming_file = create().map_err(|error| files::cannot_write(path, &error))?;
        filter.pieces = streaming_file
            .as_ref()
            .map(|created| created.pieces.clone());
        Ok(streaming_file)
    }

    /// Writes the last buffer, waits for the writer thread, and renames the file.
    fn finish(self, last_piece: Vec<u8>) -> io::Result<()> {
        // A closed channel means that the writer failed; `join` returns its error.
        let _ = self.pieces.full.send(last_piece);
        let _ = self.pieces.full.send(Vec::new());
        let result = self.writer.join();
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        files::finish(&self.target, self.file)
    }
}

/// Writes the last, partly filled buffer to the growing file; without one, writes the whole timeline to `path`.
pub(crate) fn write(
    path: &Path,
    streaming_file: Option<StreamingFile>,
    recorded: &mut Recorded,
) -> Result<(), Failure> {
    let last_piece = std::mem::take(&mut recorded.rest);
    match streaming_file {
        None => files::write_bytes(path, &last_piece),
        Some(streaming_file) => {
            let result = streaming_file.finish(last_piece);
            result.map_err(|error| files::cannot_write(path, &error))
        }
    }
}
