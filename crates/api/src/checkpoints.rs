//! Checkpoints of searches, kept as files in a folder.
//!
//! Each search of a command and each independent component of it has a sequence of files,
//! `SEARCH-PART-NUMBER.checkpoint`. A file is written whole or not at all and never changed; all files of a sequence
//! together restore the search.

use crate::files;
use crate::folder_lock::Lock;
use crate::outcome::{ExitStatus, Failure};
use cohkit_engine::search::{CheckpointError, CheckpointErrorKind, CheckpointSink, ReadAt};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// File name extension of checkpoints. Any file with it makes a folder count as one with checkpoints.
const EXTENSION: &str = "checkpoint";

/// The folder of all checkpoints of a command.
pub struct Checkpoints {
    /// Folder of the files, as the user gave it.
    folder: PathBuf,
    /// Minimum time between checkpoints of a search.
    interval: Duration,
    /// Number of searches started so far.
    searches: AtomicUsize,
    /// True if there is a checkpoint to resume from.
    has_checkpoints: AtomicBool,
    /// Lock on the folder: two searches that use the same file names would overwrite each other's checkpoints.
    _lock: Lock,
    /// Dropped last, when the folder contains no file of ours except checkpoints.
    _created_folders: CreatedFolders,
}

/// Folders created for checkpoints, innermost first. Those that are empty are removed when this is dropped.
struct CreatedFolders(Vec<PathBuf>);

impl CreatedFolders {
    /// Creates a folder and its missing parents.
    fn create(folder: &Path) -> Result<CreatedFolders, Failure> {
        let missing = folder.ancestors().take_while(|folder| !folder.exists());
        // The last ancestor of a relative path is the empty path, which stands for the current folder.
        let missing = missing.filter(|folder| !folder.as_os_str().is_empty());
        let created = CreatedFolders(missing.map(Path::to_path_buf).collect());
        files::make_folder(folder)?;
        Ok(created)
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // A folder with contents stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

impl Checkpoints {
    /// Opens a folder for checkpoints, with `interval` between them. With `resume`, searches continue
    /// from those in it.
    ///
    /// # Errors
    /// The folder cannot be written, is in use, contains checkpoints where a new search needs none, or has none to
    /// resume from.
    pub fn in_folder(
        folder: &Path,
        resume: bool,
        interval: Duration,
    ) -> Result<Checkpoints, Failure> {
        let folder_text = folder.display();
        let contains_checkpoints =
            || has_checkpoint_files(folder).map_err(|error| read_failure(folder, &error));
        let input_error = |reason: String| {
            let message = format!("error: {folder_text}: {reason}");
            Err(Failure::new(ExitStatus::BadInput, message))
        };
        let no_checkpoints = || {
            input_error(
                "contains no checkpoints\n  help: name a folder that `--checkpoint` has written to"
                    .into(),
            )
        };
        contains_checkpoints()?;
        if resume && !folder.exists() {
            return no_checkpoints();
        }
        files::try_folder(folder)?;
        let created = CreatedFolders::create(folder)?;
        let lock = Lock::of(folder)?;
        // The contents are certain only under the lock, when no other check writes here.
        let has_checkpoints = contains_checkpoints()?;
        match (resume, has_checkpoints) {
            (false, true) => {
                return input_error(format!(
                    "already contains checkpoints\n  help: `--resume {folder_text}` continues from them; or name another folder"
                ))
            }
            (true, false) => return no_checkpoints(),
            (true, true) => files::remove_temporary_files(folder),
            (false, false) => {}
        }
        Ok(Checkpoints {
            folder: folder.to_path_buf(),
            interval,
            searches: AtomicUsize::new(0),
            has_checkpoints: AtomicBool::new(has_checkpoints),
            _lock: lock,
            _created_folders: created,
        })
    }

    /// Returns the file sequence of the next search.
    pub(crate) fn start_search(&self) -> SearchCheckpoints<'_> {
        SearchCheckpoints {
            checkpoints: self,
            search: self.searches.fetch_add(1, Ordering::Relaxed),
            last_checkpoint: Mutex::new(Instant::now()),
        }
    }

    /// Advice to resume, for the message of an interrupted command; none without a checkpoint.
    pub fn advice(&self) -> Option<String> {
        let has_checkpoints = self.has_checkpoints.load(Ordering::Relaxed);
        has_checkpoints.then(|| format!("`--resume {}` continues from here", self.folder.display()))
    }
}

fn has_checkpoint_files(folder: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        entries => entries?,
    };
    for entry in entries {
        if Path::new(&entry?.file_name()).extension() == Some(EXTENSION.as_ref()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Failure for a checkpoint file or folder that cannot be read.
fn read_failure(path: &Path, error: &io::Error) -> Failure {
    let path_text = path.display();
    let (outcome, message) = match error.kind() {
        ErrorKind::NotADirectory => (
            ExitStatus::BadInput,
            format!(
                "error: {path_text}: is not a folder\n  help: name a folder for the checkpoints"
            ),
        ),
        ErrorKind::PermissionDenied => (
            ExitStatus::CouldNotRun,
            format!("error: {path_text}: no permission to read it\n  help: `chmod +r` allows it"),
        ),
        _ => (
            ExitStatus::CouldNotRun,
            format!("error: {path_text}: cannot be read: {error}"),
        ),
    };
    Failure::new(outcome, message)
}

/// Checkpoint files of one search.
pub(crate) struct SearchCheckpoints<'a> {
    /// Folder that the files are in.
    checkpoints: &'a Checkpoints,
    /// Number of the search in the command, counted from 0; the first part of file names.
    search: usize,
    /// Time of the last checkpoint, or of the start of the search.
    last_checkpoint: Mutex<Instant>,
}

impl SearchCheckpoints<'_> {
    fn path(&self, component: usize, number: u64) -> PathBuf {
        let name = format!("{:03}-{component:03}-{number:06}.{EXTENSION}", self.search);
        self.checkpoints.folder.join(name)
    }

    /// Returns true if the folder contains a later checkpoint of the same component.
    fn has_later(&self, component: usize, number: u64) -> io::Result<bool> {
        let prefix = format!("{:03}-{component:03}-", self.search);
        for entry in fs::read_dir(&self.checkpoints.folder)? {
            let name = PathBuf::from(entry?.file_name());
            let stem = name.file_stem().and_then(|stem| stem.to_str());
            let later_number = (stem.and_then(|stem| stem.strip_prefix(&prefix)))
                .and_then(|later_number| later_number.parse::<u64>().ok());
            if name.extension() == Some(EXTENSION.as_ref()) && later_number > Some(number) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Converts an error of a search to a failure that names the checkpoint file, with a remedy.
    pub fn failure(&self, error: &CheckpointError) -> Failure {
        let path = self.path(error.component, error.number);
        let path_text = path.display();
        let reason = match &error.kind {
            CheckpointErrorKind::Format => {
                "is not a checkpoint, or was written by another version\n  help: start again with `--checkpoint` and another folder"
            }
            CheckpointErrorKind::OtherModel => {
                "is a checkpoint of another model, or of a check with other options\n  \
                 help: give the files and options of the original check"
            }
            CheckpointErrorKind::Damaged => {
                "the checkpoint is damaged\n  help: delete it and all later ones to continue from the one before"
            }
            CheckpointErrorKind::Unreadable(error) if error.kind() == ErrorKind::NotFound => {
                "is missing, but the search needs it\n  \
                 help: restore it, or delete later ones, if there are any, to continue from the one before"
            }
            CheckpointErrorKind::Unreadable(error) => return read_failure(&path, error),
            CheckpointErrorKind::CannotStore(error) => {
                let mut failure = files::cannot_write(&path, error);
                if let Some(advice) = self.checkpoints.advice() {
                    failure.message += &format!("; {advice}");
                }
                return failure;
            }
        };
        Failure::new(
            ExitStatus::BadInput,
            format!("error: {path_text}: {reason}"),
        )
    }
}

impl CheckpointSink for SearchCheckpoints<'_> {
    fn is_due(&self) -> bool {
        let last = self
            .last_checkpoint
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        last.elapsed() >= self.checkpoints.interval
    }

    fn store(&self, component: usize, number: u64, parts: &[&[u8]]) -> io::Result<()> {
        files::write_parts(&self.path(component, number), parts)?;
        self.checkpoints
            .has_checkpoints
            .store(true, Ordering::Relaxed);
        *self
            .last_checkpoint
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(())
    }

    fn load(&self, component: usize, number: u64) -> io::Result<Option<(Box<dyn Read>, u64)>> {
        match File::open(self.path(component, number)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match self.has_later(component, number)? {
                    false => Ok(None),
                    true => Err(io::Error::new(
                        ErrorKind::NotFound,
                        "it is missing, but later ones exist",
                    )),
                }
            }
            file => {
                let file = file?;
                let length = file.metadata()?.len();
                Ok(Some((Box::new(file), length)))
            }
        }
    }

    fn open(&self, component: usize, number: u64) -> io::Result<Box<dyn ReadAt>> {
        let path = self.path(component, number);
        File::open(&path)?;
        Ok(Box::new(CheckpointFile(path)))
    }
}

/// A checkpoint file that states are read from. It is opened for each read of many states, since a long search has more
/// checkpoints than a process may have open files.
struct CheckpointFile(PathBuf);

impl ReadAt for CheckpointFile {
    fn read_at(&self, position: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = File::open(&self.0)?;
        file.seek(SeekFrom::Start(position))?;
        file.read_exact(bytes)
    }
}
