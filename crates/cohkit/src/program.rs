//! `cohkit run`: a compiled program on a plain RV64 core, whose output, files and exit code are those of the command.

use crate::console::Console;
use crate::outcome::{Failure, Outcome};
use crate::{files, options};
use cohkit_base::words::counted;
use cohkit_riscv::elf::{self, Image};
use cohkit_riscv::system::{Errno, Open, Place, Served, System, World};
use cohkit_riscv::{Extensions, Fast, Flat, Hart, Latencies, Stop, Timed};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Memory is as fine as pages.
const PAGE: u64 = 4096;
/// Instructions between two looks at whether the user has stopped the command.
const TURN: u64 = 1 << 22;
/// A line of output is handed on once it has so many bytes, though it has not ended.
const LONGEST: usize = 1 << 13;

pub(crate) fn run(options: &options::Run, console: &mut Console) -> Result<Outcome, Failure> {
    let shown = options.program.display();
    let bad = |reason: &str| Failure::new(Outcome::BadInput, format!("error: {shown}: {reason}"));
    let file = files::read_bytes(
        &options.program,
        "a program is what a compiler for RV64 has made of a source, as docs/riscv.md shows",
        "name a program in it",
    )?;
    let folder = options.files.as_deref().map(real).transpose()?;
    let image = Image::read(&file).map_err(|reason| bad(&reason))?;
    let (mut memory, mut system) = loaded(&image, options).map_err(|reason| bad(&reason))?;
    let mut hart = Hart::new(0, Extensions::HOST);
    hart.pc = image.entry;
    // Programs with a C library set their own.
    hart.set_x(2, memory.end() - 64);
    let mut outside = Outside {
        console,
        folder,
        open: BTreeMap::new(),
        printed: Vec::new(),
        said: Vec::new(),
        now: 0,
        failure: None,
    };
    let (mut fast, mut timed) = (Fast::default(), Timed::new(Latencies::small()));
    let outcome = loop {
        let left = options.most - hart.csrs.instret.min(options.most);
        let stop = if options.timed {
            // No instruction takes less than a cycle, so there are no more of them than cycles.
            let until = timed.now.saturating_add(TURN.min(left));
            timed.run(&mut hart, &mut memory, until).1
        } else {
            fast.run(&mut hart, &mut memory, TURN.min(left)).1
        };
        outside.now = if options.timed {
            timed.now
        } else {
            hart.csrs.instret
        };
        let ended = match stop {
            Err(Stop::Exception(exception)) => {
                Some(system.serve(exception, &mut hart, &mut memory, &mut outside))
            }
            Err(Stop::Wait) => unreachable!("flat memory lets nobody wait"),
            Ok(()) => None,
        };
        if let Some(failure) = outside.failure.take() {
            return Err(failure);
        }
        match ended {
            Some(Served::Exit(0)) => break Outcome::Yes,
            Some(Served::Exit(code)) => {
                outside.say(&format!("the program ends with code {code}"));
                break Outcome::No;
            }
            Some(Served::Exception(exception)) => {
                let place = place(&file, &image, &hart, &memory);
                outside.say(&format!("error: {shown}: {exception}, at {place}"));
                break Outcome::No;
            }
            Some(Served::Done) | None => {}
        }
        if outside.console.is_interrupted() {
            outside.flush();
            return Err(Failure::new(Outcome::Interrupted, "interrupted"));
        }
        if hart.csrs.instret >= options.most {
            outside.say(&format!(
                "not decided: the program has not ended after {}\n  help: `--most N` gives it more",
                counted(options.most, "instruction")
            ));
            break Outcome::Undecided;
        }
    };
    outside.flush();
    if options.timed {
        outside.say(&format!(
            "{} in {}",
            counted(hart.csrs.instret, "instruction"),
            counted(timed.now, "cycle")
        ));
    }
    match outside.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(outcome),
    }
}

/// Where a core stands: the address, and as far as they are known the instruction, the function and the line of the source.
fn place(file: &[u8], image: &Image, hart: &Hart, memory: &Flat) -> String {
    let mut place = format!("{:#x}", hart.pc);
    let word = |length| memory.bytes(hart.pc, length);
    if let Some(bytes) = word(4).or(word(2)) {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        place += &format!(": {}", hart.decoder().text(u32::from_le_bytes(word)));
    }
    if let Some((name, behind)) = image.name(hart.pc) {
        place += &format!("\n  in {name} + {behind}");
        if let Some((source, line)) = elf::line(file, hart.pc) {
            place += &format!(", {source}:{line}");
        }
    }
    place
}

/// A folder by the name that no link is part of.
fn real(folder: &Path) -> Result<PathBuf, Failure> {
    let shown = folder.display();
    match folder.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(_) => Err(Failure::new(
            Outcome::BadInput,
            format!("error: {shown}: is no folder\n  help: `--files FOLDER` names the folder whose files the program may use"),
        )),
        Err(error) => Err(Failure::new(
            if error.kind() == ErrorKind::NotFound { Outcome::BadInput } else { Outcome::CouldNotRun },
            format!("error: {shown}: the folder cannot be used: {error}"),
        )),
    }
}

/// Memory with a program, from its first address on; behind it come its heap and its stack.
fn loaded(image: &Image, options: &options::Run) -> Result<(Flat, System), String> {
    let places = image
        .segments
        .iter()
        .flat_map(|s| [(s.at, s.length), (s.put_at, s.length)]);
    let start = places.clone().map(|(at, _)| at).min().unwrap_or(0) & !(PAGE - 1);
    let end = places.map(|(at, length)| at + length).max().unwrap_or(0);
    let bytes = options.memory << 20;
    let top = start
        .checked_add(bytes)
        .ok_or("its memory would reach beyond the last address")?;
    let heap = end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
    // An eighth of the memory, which is whole pages, is for the stack.
    let stack = top - bytes / 8;
    if heap > stack {
        return Err(format!(
            "it lies from {start:#x} to {end:#x}, which leaves no room for heap and stack in {} MiB from there on\n  help: `--memory MIB` gives it more",
            options.memory
        ));
    }
    let length = usize::try_from(bytes).map_err(|error| error.to_string())?;
    let mut memory = Flat::new(start, length);
    for segment in &image.segments {
        let place = memory.bytes_mut(segment.put_at, segment.bytes.len());
        let place = place.ok_or("its segments are not where they say")?;
        place.copy_from_slice(segment.bytes);
    }
    let command = options.arguments.join(" ");
    Ok((memory, System::new(heap..stack, stack..top, &command)))
}

/// What a program reaches: the streams of the command, and the files of a folder if it is given one.
struct Outside<'a, 'b> {
    console: &'a mut Console<'b>,
    folder: Option<PathBuf>,
    open: BTreeMap<u32, File>,
    /// What was written to standard output and not yet printed.
    printed: Vec<u8>,
    /// What was written to standard error since the last whole line.
    said: Vec<u8>,
    /// Nanoseconds: instructions, or cycles, each of which takes one.
    now: u64,
    failure: Option<Failure>,
}

impl Outside<'_, '_> {
    /// Hands on what has been written so far.
    fn flush(&mut self) {
        let printed = self.console.write(&std::mem::take(&mut self.printed));
        // The first one is told.
        self.failure = self.failure.take().or(printed.err());
        let said = std::mem::take(&mut self.said);
        if !said.is_empty() {
            let said = String::from_utf8_lossy(&said);
            self.console.say(said.strip_suffix('\n').unwrap_or(&said));
        }
    }

    /// Says something behind what the program has written.
    fn say(&mut self, message: &str) {
        self.flush();
        self.console.say(message);
    }

    fn file(&mut self, number: u32) -> Result<&mut File, Errno> {
        self.open.get_mut(&number).ok_or(Errno::BadFile)
    }

    /// Where a file of the folder is, or will be. Neither `..` nor a link leads out of the folder; what is no plain file is
    /// not opened, as it might let the program wait for ever.
    fn place(&self, name: &str) -> Result<PathBuf, Errno> {
        let folder = self.folder.as_ref().ok_or(Errno::Denied)?;
        let path = folder.join(name);
        let real = match path.symlink_metadata() {
            Ok(_) => path.canonicalize().map_err(errno)?,
            Err(_) => {
                let last = path.file_name().ok_or(Errno::Invalid)?;
                let parent = path.parent().ok_or(Errno::Invalid)?;
                parent.canonicalize().map_err(errno)?.join(last)
            }
        };
        let plain = real.metadata().map_or(true, |found| found.is_file());
        (plain && real.starts_with(folder))
            .then_some(real)
            .ok_or(Errno::Denied)
    }
}

/// What a program is told of an error.
fn errno(error: io::Error) -> Errno {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Errno::NotFound,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Errno::Denied,
        ErrorKind::InvalidInput => Errno::Invalid,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Errno::NoSpace,
        _ => Errno::Io,
    }
}

impl World for Outside<'_, '_> {
    fn open(&mut self, name: &str, how: Open) -> Result<u32, Errno> {
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
                // What asks for it is shown before.
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
        // C libraries may write every byte by itself.
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
