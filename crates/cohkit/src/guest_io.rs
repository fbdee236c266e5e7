//! Host I/O of a guest program: the streams of the command, and files of a folder if the user names one.

use crate::console::Console;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_base::words::did_you_mean;
use cohkit_nearmemory::FOLDER;
use cohkit_riscv::system::{Errno, FilePosition, OpenMode, World};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Maximum bytes of an unfinished output line before it is printed.
const MAX_LINE_BYTES: usize = 1 << 13;

/// Canonical path of a folder, without symbolic links.
///
/// # Errors
/// The folder does not exist, is no folder, or cannot be accessed.
pub(crate) fn canonical_path(folder: &Path) -> Result<PathBuf, Failure> {
    let folder_text = folder.display();
    match folder.canonicalize() {
        Ok(canonical_path) if canonical_path.is_dir() => Ok(canonical_path),
        Ok(_) => Err(Failure::new(
            ExitStatus::BadInput,
            format!("error: {folder_text}: is not a folder\n  help: `--guest-folder FOLDER` names the folder whose files the program may use"),
        )),
        Err(error) => Err(Failure::new(
            if error.kind() == ErrorKind::NotFound { ExitStatus::BadInput } else { ExitStatus::CouldNotRun },
            format!("error: {folder_text}: cannot use the folder: {error}"),
        )),
    }
}

/// Host I/O of a guest program: stdio and an optional folder.
pub(crate) struct GuestIo<'a, 'b> {
    /// Console whose streams are the guest's.
    pub(crate) console: &'a mut Console<'b>,
    /// Canonical path of the folder whose files the guest may access; `None` denies all file access.
    folder: Option<PathBuf>,
    /// Open files by their descriptor, 3 to 63.
    open: BTreeMap<u32, File>,
    /// Bytes for standard output that are not printed yet.
    output: Vec<u8>,
    /// Bytes for standard error that are not printed yet.
    error_output: Vec<u8>,
    /// Time in nanoseconds; each instruction, or each cycle in timed runs, takes one.
    pub(crate) now: u64,
    /// First channel program that the guest opened by an unknown name.
    unknown_program: Option<String>,
    /// First failure of host I/O.
    pub(crate) failure: Option<Failure>,
}

impl<'a, 'b> GuestIo<'a, 'b> {
    /// Creates the I/O on the console's streams. `folder` is a path from [`canonical_path`].
    pub(crate) fn new(console: &'a mut Console<'b>, folder: Option<PathBuf>) -> GuestIo<'a, 'b> {
        GuestIo {
            console,
            folder,
            open: BTreeMap::new(),
            output: Vec::new(),
            error_output: Vec::new(),
            now: 0,
            unknown_program: None,
            failure: None,
        }
    }
}

impl GuestIo<'_, '_> {
    /// Prints all output written so far.
    pub(crate) fn flush(&mut self) {
        let result = self.console.write(&std::mem::take(&mut self.output));
        // The first failure is reported.
        self.failure = self.failure.take().or(result.err());
        let text = std::mem::take(&mut self.error_output);
        if !text.is_empty() {
            let text = String::from_utf8_lossy(&text);
            self.console.say(text.strip_suffix('\n').unwrap_or(&text));
        }
    }

    /// Prints a message after the output of the program.
    pub(crate) fn say(&mut self, message: &str) {
        self.flush();
        self.console.say(message);
    }

    /// Reports the unknown channel program that the guest opened, with the known names.
    pub(crate) fn report_unknown_program(&mut self, names: &[&str]) {
        if let Some(name) = self.unknown_program.take() {
            let known_names = match names {
                [] => String::new(),
                names => {
                    let suggestion = did_you_mean(&name, names.iter().copied());
                    format!("; {suggestion}there are {}", names.join(", "))
                }
            };
            self.say(&format!(
                "no channel program is named `{name}`{known_names}\n  help: `--channel-program {name}=PROGRAM` names one"
            ));
        }
    }

    /// Returns the open file with this descriptor.
    fn open_file(&mut self, descriptor: u32) -> Result<&mut File, Errno> {
        self.open.get_mut(&descriptor).ok_or(Errno::BadFile)
    }

    /// Path of an existing or new file in the folder. Neither `..` nor a link leads out of the folder. Only regular
    /// files are opened, as others might block the program forever.
    ///
    /// The path is checked before the file is opened, so another process that replaces it by a link in between defeats
    /// the check. The guest itself cannot create links.
    fn resolve_path(&self, name: &str) -> Result<PathBuf, Errno> {
        let folder = self.folder.as_ref().ok_or(Errno::Denied)?;
        let path = folder.join(name);
        let canonical_path = match path.symlink_metadata() {
            Ok(_) => path.canonicalize().map_err(errno)?,
            Err(_) => {
                let file_name = path.file_name().ok_or(Errno::Invalid)?;
                let parent = path.parent().ok_or(Errno::Invalid)?;
                parent.canonicalize().map_err(errno)?.join(file_name)
            }
        };
        let is_regular = canonical_path
            .metadata()
            .map_or(true, |metadata| metadata.is_file());
        (is_regular && canonical_path.starts_with(folder))
            .then_some(canonical_path)
            .ok_or(Errno::Denied)
    }
}

/// Error number for the guest program.
fn errno(error: io::Error) -> Errno {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Errno::NotFound,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Errno::Denied,
        ErrorKind::InvalidInput => Errno::Invalid,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Errno::NoSpace,
        _ => Errno::Io,
    }
}

impl World for GuestIo<'_, '_> {
    fn open(&mut self, name: &str, mode: OpenMode) -> Result<u32, Errno> {
        if let Some(channel) = name.strip_prefix(FOLDER) {
            self.unknown_program.get_or_insert(channel.to_string());
            return Err(Errno::NotFound);
        }
        let path = self.resolve_path(name)?;
        let unused = (3..64).find(|descriptor| !self.open.contains_key(descriptor));
        let descriptor = unused.ok_or(Errno::TooManyOpenFiles)?;
        let appends = mode.write && mode.append;
        let file = File::options()
            .read(mode.read)
            .write(mode.write && !appends)
            .append(appends)
            .create(mode.write && mode.create)
            .truncate(mode.write && mode.truncate && !appends)
            .open(path)
            .map_err(errno)?;
        self.open.insert(descriptor, file);
        Ok(descriptor)
    }

    fn close(&mut self, file: u32) -> Result<(), Errno> {
        self.open.remove(&file).map(|_| ()).ok_or(Errno::BadFile)
    }

    fn read(&mut self, file: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
        let count = match file {
            0 => {
                // Prompts are shown before the program waits for input.
                self.flush();
                io::stdin().read(bytes)
            }
            _ => self.open_file(file)?.read(bytes),
        };
        count.map_err(errno)
    }

    fn write(&mut self, file: u32, bytes: &[u8]) -> Result<usize, Errno> {
        let buffer = match file {
            1 => &mut self.output,
            2 => &mut self.error_output,
            _ => return self.open_file(file)?.write(bytes).map_err(errno),
        };
        buffer.extend(bytes);
        // C libraries may write each byte separately.
        if bytes.contains(&b'\n') || buffer.len() > MAX_LINE_BYTES {
            self.flush();
        }
        Ok(bytes.len())
    }

    fn seek(&mut self, file: u32, offset: FilePosition) -> Result<u64, Errno> {
        let offset = match offset {
            FilePosition::Start(position) => SeekFrom::Start(position),
            FilePosition::Current(distance) => SeekFrom::Current(distance),
            FilePosition::End(distance) => SeekFrom::End(distance),
        };
        self.open_file(file)?.seek(offset).map_err(errno)
    }

    fn now(&mut self) -> u64 {
        self.now
    }
}
