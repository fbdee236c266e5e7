//! A folder that one process at a time writes to.

use crate::files;
use crate::outcome::{Failure, Outcome};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The file in the folder that is locked. A folder itself cannot be locked on network file systems.
const NAME: &str = "in-use.lock";

/// Holds a folder until it is dropped, or the process ends in whatever way: the system lets go of it then.
pub(crate) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Holds this folder, which is there.
    ///
    /// # Errors
    /// If another process, or another check of this one, holds it, or no file can be written there.
    pub(crate) fn of(folder: &Path) -> Result<Lock, Failure> {
        let path = folder.join(NAME);
        loop {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let file = (options.open(&path)).map_err(|error| files::cannot_write(&path, &error))?;
            if !try_lock(&file) {
                let shown = folder.display();
                return Err(Failure::new(
                    Outcome::CouldNotRun,
                    format!(
                        "error: {shown}: another check keeps its checkpoints here\n  \
                         help: wait until it ends, or name another folder"
                    ),
                ));
            }
            // Whoever held it before may have removed the file between our opening and our locking it:
            // then the lock is on a file that nobody else finds any more.
            if is_at(&file, &path) {
                return Ok(Lock { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while it is still locked. What stays does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the lock is ours now. A file system that has no locks does not keep anyone from keeping checkpoints.
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

/// Whether this open file is the one that has this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |of: &fs::Metadata| (of.dev(), of.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => place(&ours) == place(&there),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}
