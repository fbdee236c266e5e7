//! Exclusive lock on a folder for one process at a time.

use crate::files;
use crate::outcome::{ExitStatus, Failure};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Name of the locked file in the folder. Network file systems cannot lock a folder itself.
const LOCK_FILE: &str = "in-use.lock";

/// Lock on a folder, held until this is dropped. If the process ends in any other way, the system releases it.
pub(crate) struct Lock {
    /// Path of the lock file, which is removed with the lock.
    path: PathBuf,
    /// Open lock file, which holds the lock until it is closed.
    _file: File,
}

impl Lock {
    /// Locks an existing folder.
    ///
    /// # Errors
    /// Another process, or another check of this process, holds the lock, or no file can be written there.
    pub(crate) fn of(folder: &Path) -> Result<Lock, Failure> {
        let path = folder.join(LOCK_FILE);
        loop {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let file = (options.open(&path)).map_err(|error| files::cannot_write(&path, &error))?;
            if !try_lock(&file) {
                let folder_text = folder.display();
                return Err(Failure::new(
                    ExitStatus::CouldNotRun,
                    format!(
                        "error: {folder_text}: another check writes its checkpoints here\n  \
                         help: wait until it ends, or name another folder"
                    ),
                ));
            }
            // The previous holder may have removed the file between our opening and our locking it: the lock is then on
            // a file that no other process can find.
            if is_at(&file, &path) {
                return Ok(Lock { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while still locked. A remaining file does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns true unless another holder has the lock. A file system without locks does not prevent checkpoints.
#[cfg(unix)]
fn try_lock(file: &File) -> bool {
    use rustix::fs::{flock, FlockOperation};
    use rustix::io::Errno;
    flock(file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
}

#[cfg(not(unix))]
fn try_lock(_file: &File) -> bool {
    true
}

/// Returns true if the open file is the one at this path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(file_metadata), Ok(path_metadata)) => {
            identity(&file_metadata) == identity(&path_metadata)
        }
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}
