//! A timeline's file, which another thread writes while the run goes on.

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

/// The run waits where so many pieces are not yet written.
const WAITING: usize = 64;

/// A file that is not whole yet, and has no name of its own before it is.
pub(crate) struct Growing {
    place: PathBuf,
    file: NamedTempFile,
    pieces: Pieces,
    writer: JoinHandle<io::Result<()>>,
}

impl Growing {
    /// Begins the file at this path and lets what the filter chooses go there; none if that is no regular file,
    /// which is written to only at the end, since what is half told there stays.
    ///
    /// # Errors
    /// There is no file to be had there.
    pub(crate) fn new(path: &Path, filter: &mut Filter) -> Result<Option<Growing>, Failure> {
        let begun = || {
            let Some((place, file)) = files::begin(path)? else {
                return Ok(None);
            };
            let (full, pieces) = sync_channel::<Vec<u8>>(WAITING);
            let (back, empty) = channel();
            let mut to = file.reopen()?;
            let writer = std::thread::Builder::new().spawn(move || {
                // One that is empty is the end: who draws may have kept the channel.
                for piece in pieces.into_iter().take_while(|piece| !piece.is_empty()) {
                    to.write_all(&piece)?;
                    // Nobody takes it back at the end.
                    let _ = back.send(piece);
                }
                to.sync_all()
            })?;
            let empty = Arc::new(Mutex::new(empty));
            Ok(Some(Growing {
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
        // Who no longer takes them has failed, and says why.
        let _ = self.pieces.full.send(rest);
        let _ = self.pieces.full.send(Vec::new());
        let written = self.writer.join();
        written.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        files::end(&self.place, self.file)
    }
}

/// Writes what has not been given to the file that grows, or all.
pub(crate) fn write(
    path: &Path,
    growing: Option<Growing>,
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
