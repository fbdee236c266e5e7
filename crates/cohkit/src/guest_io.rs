//! Host I/O of a guest program: the streams of the command, and files of a folder if the user names one. Also
//! descriptions of places in the program's source.

use crate::console::Console;
use crate::outcome::{ExitStatus, Failure};
use cohkit_base::words::did_you_mean;
use cohkit_nearmemory::FOLDER;
use cohkit_riscv::elf::{self, Image};
use cohkit_riscv::system::{Errno, Open, Place, World};
use cohkit_riscv::Exception;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Maximum bytes of an unfinished output line before it is printed.
const LONGEST: usize = 1 << 13;

/// Position of a core: the address, the instruction if it is readable, and the function and source line if they are
/// known. For inlined code, the calling lines follow.
pub(crate) fn place(file: &[u8], image: &Image, pc: u64, instruction: &str) -> String {
    let mut place = format!("{pc:#x}");
    if !instruction.is_empty() {
        place += &format!(": {instruction}");
    }
    if let Some(source) = source(file, image, pc) {
        place += &format!("\n  in {source}");
    }
    place
}

/// Jump that led to an address without a valid instruction; empty for other exceptions.
pub(crate) fn jump_origin(
    file: &[u8],
    image: &Image,
    exception: &Exception,
    from: Option<u64>,
) -> String {
    use Exception::{FetchFault, FetchUnmapped, Illegal};
    match (exception, from) {
        (FetchFault(_) | FetchUnmapped(_) | Illegal(_), Some(from)) => {
            format!("\n  jumped to from {}", place(file, image, from, ""))
        }
        _ => String::new(),
    }
}

/// Size of the stack that overflowed, with the remedy; empty for other exceptions.
pub(crate) fn stack_size(exception: &Exception, memory: u64) -> String {
    match exception {
        Exception::StackOverflow(_) => {
            format!(" (the stack is one eighth of memory: {memory} MiB; `--memory MIB` gives more)")
        }
        _ => String::new(),
    }
}

/// Function at an address, with the lines of its source if they are known.
pub(crate) fn source(file: &[u8], image: &Image, pc: u64) -> Option<String> {
    let (name, behind) = image.name(pc)?;
    let mut source = format!("{name} + {behind}");
    for (number, (file, line)) in elf::lines(file, pc).iter().enumerate() {
        let called = if number > 0 { "called at " } else { "" };
        source += &format!(", {called}{file}:{line}");
    }
    Some(source)
}

/// Canonical path of a folder, without symbolic links.
pub(crate) fn canonical_path(folder: &Path) -> Result<PathBuf, Failure> {
    let shown = folder.display();
    match folder.canonicalize() {
        Ok(canonical_path) if canonical_path.is_dir() => Ok(canonical_path),
        Ok(_) => Err(Failure::new(
            ExitStatus::BadInput,
            format!("error: {shown}: is not a folder\n  help: `--files FOLDER` names the folder whose files the program may use"),
        )),
        Err(error) => Err(Failure::new(
            if error.kind() == ErrorKind::NotFound { ExitStatus::BadInput } else { ExitStatus::CouldNotRun },
            format!("error: {shown}: cannot use the folder: {error}"),
        )),
    }
}

/// Host I/O of a guest program: stdio and an optional folder.
pub(crate) struct GuestIo<'a, 'b> {
    pub(crate) console: &'a mut Console<'b>,
    folder: Option<PathBuf>,
    open: BTreeMap<u32, File>,
    /// Bytes for standard output that are not printed yet.
    printed: Vec<u8>,
    /// Bytes for standard error that are not printed yet.
    said: Vec<u8>,
    /// Time in nanoseconds; each instruction, or each cycle in timed runs, takes one.
    pub(crate) now: u64,
    /// First channel program that the guest opened by an unknown name.
    missing: Option<String>,
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
            printed: Vec::new(),
            said: Vec::new(),
            now: 0,
            missing: None,
            failure: None,
        }
    }
}

impl GuestIo<'_, '_> {
    /// Prints all output written so far.
    pub(crate) fn flush(&mut self) {
        let printed = self.console.write(&std::mem::take(&mut self.printed));
        // The first failure is reported.
        self.failure = self.failure.take().or(printed.err());
        let said = std::mem::take(&mut self.said);
        if !said.is_empty() {
            let said = String::from_utf8_lossy(&said);
            self.console.say(said.strip_suffix('\n').unwrap_or(&said));
        }
    }

    /// Prints a message after the output of the program.
    pub(crate) fn say(&mut self, message: &str) {
        self.flush();
        self.console.say(message);
    }

    /// Reports the unknown channel program that the guest opened, with the known names.
    pub(crate) fn report_unknown_program(&mut self, names: &[&str]) {
        if let Some(missing) = self.missing.take() {
            let there = match names {
                [] => String::new(),
                names => {
                    let near = did_you_mean(&missing, names.iter().copied());
                    format!("; {near}there are {}", names.join(", "))
                }
            };
            self.say(&format!(
                "no channel program is named `{missing}`{there}\n  help: `--cp {missing}=PROGRAM` names one"
            ));
        }
    }

    fn file(&mut self, number: u32) -> Result<&mut File, Errno> {
        self.open.get_mut(&number).ok_or(Errno::BadFile)
    }

    /// Path of an existing or new file in the folder. Neither `..` nor a link leads out of the folder. Only regular
    /// files are opened, as others might block the program forever.
    fn place(&self, name: &str) -> Result<PathBuf, Errno> {
        let folder = self.folder.as_ref().ok_or(Errno::Denied)?;
        let path = folder.join(name);
        let canonical_path = match path.symlink_metadata() {
            Ok(_) => path.canonicalize().map_err(errno)?,
            Err(_) => {
                let last = path.file_name().ok_or(Errno::Invalid)?;
                let parent = path.parent().ok_or(Errno::Invalid)?;
                parent.canonicalize().map_err(errno)?.join(last)
            }
        };
        let plain = canonical_path
            .metadata()
            .map_or(true, |found| found.is_file());
        (plain && canonical_path.starts_with(folder))
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
    fn open(&mut self, name: &str, how: Open) -> Result<u32, Errno> {
        if let Some(channel) = name.strip_prefix(FOLDER) {
            self.missing.get_or_insert(channel.to_string());
            return Err(Errno::NotFound);
        }
        let place = self.place(name)?;
        let number = (3..64).find(|number| !self.open.contains_key(number));
        let number = number.ok_or(Errno::Denied)?;
        let appends = how.write && how.append;
        let file = File::options()
            .read(how.read)
            .write(how.write && !appends)
            .append(appends)
            .create(how.write && how.create)
            .truncate(how.write && how.truncate && !appends)
            .open(place)
            .map_err(errno)?;
        self.open.insert(number, file);
        Ok(number)
    }

    fn close(&mut self, file: u32) -> Result<(), Errno> {
        self.open.remove(&file).map(|_| ()).ok_or(Errno::BadFile)
    }

    fn read(&mut self, file: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
        let read = match file {
            0 => {
                // Prompts are shown before the program waits for input.
                self.flush();
                io::stdin().read(bytes)
            }
            _ => self.file(file)?.read(bytes),
        };
        read.map_err(errno)
    }

    fn write(&mut self, file: u32, bytes: &[u8]) -> Result<usize, Errno> {
        let to = match file {
            1 => &mut self.printed,
            2 => &mut self.said,
            _ => return self.file(file)?.write(bytes).map_err(errno),
        };
        to.extend(bytes);
        // C libraries may write each byte separately.
        if bytes.contains(&b'\n') || to.len() > LONGEST {
            self.flush();
        }
        Ok(bytes.len())
    }

    fn seek(&mut self, file: u32, place: Place) -> Result<u64, Errno> {
        let place = match place {
            Place::Start(at) => SeekFrom::Start(at),
            Place::Current(by) => SeekFrom::Current(by),
            Place::End(by) => SeekFrom::End(by),
        };
        self.file(file)?.seek(place).map_err(errno)
    }

    fn now(&mut self) -> u64 {
        self.now
    }
}
