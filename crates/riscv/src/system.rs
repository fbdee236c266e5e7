//! Services for programs: the few Linux system calls that a static program needs, and semihosting as used by picolibc.
//! [`World`] provides files and the clock.

use crate::csr::Exception;
use crate::hart::Hart;
use crate::memory::Flat;
use std::ops::Range;

/// Linux error number of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Errno {
    /// ENOENT: no such file.
    NotFound = 2,
    /// EIO: input or output error.
    Io = 5,
    /// EBADF: no open file with this number.
    BadFile = 9,
    /// EACCES: permission denied.
    Denied = 13,
    /// EFAULT: the program has no memory at the address.
    Fault = 14,
    /// EINVAL: invalid argument.
    Invalid = 22,
    /// ENOSPC: no space left.
    NoSpace = 28,
    /// ENOSYS: no such system call.
    NoCall = 38,
}

/// Open mode of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Opened for reading.
    pub read: bool,
    /// Opened for writing.
    pub write: bool,
    /// Create the file if it does not exist.
    pub create: bool,
    /// Discard the previous contents.
    pub truncate: bool,
    /// Write at the end of the file.
    pub append: bool,
}

/// A file position, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Offset from the start of the file.
    Start(u64),
    /// Offset from the current position.
    Current(i64),
    /// Offset from the end of the file.
    End(i64),
}

/// Files and the clock. Files 0, 1 and 2 are open: standard input, output and error. The default methods provide no
/// other files, no input, and a clock that always reads 0.
pub trait World {
    /// Opens a file. Returns its number, at least 3.
    fn open(&mut self, _name: &str, _how: Open) -> Result<u32, Errno> {
        Err(Errno::Denied)
    }
    /// Closes a file.
    fn close(&mut self, _file: u32) -> Result<(), Errno> {
        Err(Errno::BadFile)
    }
    /// Reads from a file. Returns the number of bytes read, 0 at the end of the file.
    fn read(&mut self, _file: u32, _bytes: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::BadFile)
    }
    /// Writes to a file. Returns the number of bytes written.
    fn write(&mut self, file: u32, bytes: &[u8]) -> Result<usize, Errno>;
    /// Moves the file position. Returns the new position, in bytes from the start.
    fn seek(&mut self, _file: u32, _place: Place) -> Result<u64, Errno> {
        Err(Errno::BadFile)
    }
    /// Current time in nanoseconds since the start of 1970.
    fn now(&mut self) -> u64 {
        0
    }
}

/// Memory as accessed by the services on behalf of a program.
pub trait Bytes {
    /// Reads all of `bytes` from address `at` on. Returns false if it cannot.
    fn get(&mut self, at: u64, bytes: &mut [u8]) -> bool;
    /// Writes all of `bytes` from address `at` on. Returns false if it cannot.
    fn put(&mut self, at: u64, bytes: &[u8]) -> bool;
}

impl Bytes for Flat {
    fn get(&mut self, at: u64, bytes: &mut [u8]) -> bool {
        let found = self.bytes(at, bytes.len());
        found.is_some_and(|found| {
            bytes.copy_from_slice(found);
            true
        })
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> bool {
        let found = self.bytes_mut(at, bytes.len());
        found.is_some_and(|found| {
            found.copy_from_slice(bytes);
            true
        })
    }
}

/// Result of handling an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceOutcome {
    /// A call, handled. `pc` points past it.
    Done,
    /// The program exited with this code.
    Exit(i32),
    /// Not a call.
    Exception(Exception),
}

/// Maximum bytes per read or write call. Programs repeat the call for the remainder.
const PIECE: u64 = 1 << 20;
/// Maximum string length in bytes.
const STRING: u64 = 4096;

/// Per-program state of the services.
#[derive(Clone, Debug)]
pub struct System {
    /// Memory reserved for the heap. `end` is the current end of the heap (the program break).
    heap: Range<u64>,
    end: u64,
    /// Stack memory. The stack grows down from `end` to at most `start`.
    stack: Range<u64>,
    command: String,
    begun: Option<u64>,
    errno: u64,
    /// Read position in the semihosting feature file.
    told: u64,
}

/// Name and number of the semihosting feature file. No other file has this number.
const FEATURES: &str = ":semihosting-features";
const FEATURES_FILE: u32 = 0x7fff_fffe;
/// Contents of the feature file: magic `SHFB`, then the feature bits 0 (SYS_EXIT_EXTENDED) and 1 (separate standard
/// output and error).
const FEATURES_BYTES: &[u8] = b"SHFB\x03";

type Answer = Result<u64, Errno>;

/// Reads `N` bytes of the program's memory.
fn get<const N: usize>(memory: &mut impl Bytes, at: u64) -> Result<[u8; N], Errno> {
    let mut bytes = [0; N];
    memory
        .get(at, &mut bytes)
        .then_some(bytes)
        .ok_or(Errno::Fault)
}

fn put(memory: &mut impl Bytes, at: u64, bytes: &[u8]) -> Answer {
    memory.put(at, bytes).then_some(0).ok_or(Errno::Fault)
}

/// Reads a string of `length` bytes, or up to a zero byte, of at most [`STRING`] bytes.
fn string(memory: &mut impl Bytes, at: u64, length: Option<u64>) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    for offset in 0..length.unwrap_or(STRING).min(STRING) {
        let [byte] = get(memory, at.wrapping_add(offset))?;
        if byte == 0 {
            break;
        }
        bytes.push(byte);
    }
    Ok(bytes)
}

/// Reads a file name. It must be valid UTF-8.
fn name(memory: &mut impl Bytes, at: u64, length: Option<u64>) -> Result<String, Errno> {
    String::from_utf8(string(memory, at, length)?).map_err(|_| Errno::Invalid)
}

/// Transfers bytes between a file and memory in pieces of at most [`PIECE`] bytes. Returns the number of bytes not
/// transferred.
fn transfer(
    memory: &mut impl Bytes,
    world: &mut impl World,
    writes: bool,
    file: u64,
    (at, length): (u64, u64),
) -> Answer {
    let mut done = 0;
    while done < length {
        let (at, rest) = (at.wrapping_add(done), length - done);
        let piece = match writes {
            true => write(memory, world, file, at, rest),
            false => read(memory, world, file, at, rest),
        };
        match piece {
            Ok(0) => break,
            Ok(piece) => done += piece,
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => break,
        }
        // Read a file to its end, but standard input only as far as data is available.
        if !writes && file == 0 {
            break;
        }
    }
    Ok(length.saturating_sub(done))
}

fn number(file: u64) -> Result<u32, Errno> {
    u32::try_from(file).map_err(|_| Errno::BadFile)
}

fn read(
    memory: &mut impl Bytes,
    world: &mut impl World,
    file: u64,
    at: u64,
    length: u64,
) -> Answer {
    let mut bytes = vec![0; length.min(PIECE) as usize];
    let found = world.read(number(file)?, &mut bytes)?;
    put(memory, at, &bytes[..found.min(bytes.len())])?;
    Ok(found as u64)
}

fn write(
    memory: &mut impl Bytes,
    world: &mut impl World,
    file: u64,
    at: u64,
    length: u64,
) -> Answer {
    let mut bytes = vec![0; length.min(PIECE) as usize];
    if !memory.get(at, &mut bytes) {
        return Err(Errno::Fault);
    }
    world
        .write(number(file)?, &bytes)
        .map(|written| written as u64)
}

impl System {
    /// Creates the services of a program with this heap, this stack and this command line. The program splits the
    /// command line into arguments. Programs with picolibc get their name, `argv[0]`, from picolibc.
    pub fn new(heap: Range<u64>, stack: Range<u64>, command: &str) -> System {
        let command = command.to_string();
        System {
            end: heap.start,
            heap,
            stack,
            command,
            begun: None,
            errno: 0,
            told: 0,
        }
    }

    /// Stack limits: the start of the stack and the start of the heap below it. A stack below the first overwrites the
    /// heap; one below the second, if the stack starts elsewhere, overwrites the program.
    pub fn stack_limits(&self) -> [u64; 2] {
        [self.stack.start, self.heap.start]
    }

    /// Handles an exception of a core whose `pc` still points to the instruction that raised it.
    pub fn serve(
        &mut self,
        exception: Exception,
        hart: &mut Hart,
        memory: &mut impl Bytes,
        world: &mut impl World,
    ) -> ServiceOutcome {
        let now = world.now();
        let begun = *self.begun.get_or_insert(now);
        match exception {
            Exception::UserCall | Exception::MachineCall => {
                let call = hart.x(17);
                if matches!(call, 93 | 94) {
                    return ServiceOutcome::Exit(hart.x(10) as i32);
                }
                let arguments = [10, 11, 12].map(|register| hart.x(register));
                let answer = self.linux(call, arguments, memory, world);
                hart.set_x(
                    10,
                    answer.unwrap_or_else(|errno| (errno as u64).wrapping_neg()),
                );
            }
            Exception::Breakpoint(at) if is_semihosting(memory, at) => {
                let (call, argument) = (hart.x(10), hart.x(11));
                if matches!(call, 0x18 | 0x20) {
                    return exit(memory, argument);
                }
                let answer = self.semihosting(call, argument, begun, memory, world);
                self.errno = answer.err().map_or(self.errno, |errno| errno as u64);
                hart.set_x(10, answer.unwrap_or(u64::MAX));
            }
            _ => return ServiceOutcome::Exception(exception),
        }
        hart.pc = hart.pc.wrapping_add(4);
        ServiceOutcome::Done
    }

    /// Handles a Linux system call.
    fn linux(
        &mut self,
        call: u64,
        [a, b, c]: [u64; 3],
        memory: &mut impl Bytes,
        world: &mut impl World,
    ) -> Answer {
        match call {
            56 => {
                let flag = |bit: u64| c & bit != 0;
                let how = Open {
                    read: c & 3 != 1,
                    write: c & 3 != 0,
                    create: flag(0o100),
                    truncate: flag(0o1000),
                    append: flag(0o2000),
                };
                world.open(&name(memory, b, None)?, how).map(u64::from)
            }
            57 => world.close(number(a)?).map(|()| 0),
            62 => {
                let place = match c {
                    0 => Place::Start(b),
                    1 => Place::Current(b as i64),
                    2 => Place::End(b as i64),
                    _ => return Err(Errno::Invalid),
                };
                world.seek(number(a)?, place)
            }
            63 => read(memory, world, a, b, c),
            64 => write(memory, world, a, b, c),
            113 | 169 => {
                let now = world.now();
                let rest = now % 1_000_000_000;
                // clock_gettime returns nanoseconds, gettimeofday microseconds; the result address is a different
                // argument.
                let (at, rest) = if call == 113 {
                    (b, rest)
                } else {
                    (a, rest / 1000)
                };
                let bytes = [(now / 1_000_000_000).to_le_bytes(), rest.to_le_bytes()];
                put(memory, at, bytes.as_flattened())
            }
            214 => {
                if (self.heap.start..=self.heap.end).contains(&a) {
                    self.end = a;
                }
                Ok(self.end)
            }
            _ => Err(Errno::NoCall),
        }
    }

    /// Handles a semihosting call. Semihosting handles are file numbers plus one.
    fn semihosting(
        &mut self,
        call: u64,
        block: u64,
        begun: u64,
        memory: &mut impl Bytes,
        world: &mut impl World,
    ) -> Answer {
        let word =
            |memory: &mut _, n: u64| get(memory, block.wrapping_add(8 * n)).map(u64::from_le_bytes);
        let world = &mut Features {
            world,
            told: &mut self.told,
        };
        let file = |memory: &mut _| word(memory, 0)?.checked_sub(1).ok_or(Errno::BadFile);
        match call {
            0x01 => {
                let (at, mode, length) = (word(memory, 0)?, word(memory, 1)?, word(memory, 2)?);
                open(&name(memory, at, Some(length))?, mode, world)
            }
            0x02 => world.close(number(file(memory)?)?).map(|()| 0),
            0x03 => write(memory, world, 1, block, 1).map(|_| 0),
            0x04 => {
                let length = string(memory, block, None)?.len() as u64;
                write(memory, world, 1, block, length).map(|_| 0)
            }
            0x05 | 0x06 => {
                let (file, at, length) = (file(memory)?, word(memory, 1)?, word(memory, 2)?);
                transfer(memory, world, call == 5, file, (at, length))
            }
            0x07 => {
                let mut byte = [0];
                let found = world.read(0, &mut byte)?;
                Ok(if found == 1 { byte[0].into() } else { u64::MAX })
            }
            0x08 => Ok(u64::from((word(memory, 0)? as i64) < 0)),
            0x09 => Ok(u64::from(file(memory)? < 3)),
            0x0a => {
                let place = word(memory, 1)?;
                world
                    .seek(number(file(memory)?)?, Place::Start(place))
                    .map(|_| 0)
            }
            0x0c => {
                let file = number(file(memory)?)?;
                let here = world.seek(file, Place::Current(0))?;
                let length = world.seek(file, Place::End(0))?;
                world.seek(file, Place::Start(here)).map(|_| length)
            }
            0x10 => Ok(world.now().wrapping_sub(begun) / 10_000_000),
            0x11 => Ok(world.now() / 1_000_000_000),
            0x13 => Ok(self.errno),
            0x15 => {
                let (at, room) = (word(memory, 0)?, word(memory, 1)?);
                let bytes = [self.command.as_bytes(), &[0]].concat();
                if bytes.len() as u64 > room {
                    return Err(Errno::Invalid);
                }
                put(memory, at, &bytes)?;
                put(
                    memory,
                    block.wrapping_add(8),
                    &(bytes.len() as u64 - 1).to_le_bytes(),
                )
            }
            0x16 => {
                let at = word(memory, 0)?;
                let places = [
                    self.heap.start,
                    self.heap.end,
                    self.stack.end,
                    self.stack.start,
                ];
                put(memory, at, places.map(u64::to_le_bytes).as_flattened())
            }
            0x30 => put(
                memory,
                block,
                &world.now().wrapping_sub(begun).to_le_bytes(),
            ),
            0x31 => Ok(1_000_000_000),
            _ => Err(Errno::NoCall),
        }
    }
}

/// True if the breakpoint is enclosed by the two instructions that mark a semihosting call.
fn is_semihosting(memory: &mut impl Bytes, at: u64) -> bool {
    let before = get(memory, at.wrapping_sub(4)).map(u32::from_le_bytes);
    let behind = get(memory, at.wrapping_add(4)).map(u32::from_le_bytes);
    (before, behind) == (Ok(0x01f0_1013), Ok(0x4070_5013))
}

/// Handles SYS_EXIT: returns the program's code if the reason is ADP_Stopped_ApplicationExit (0x20026), otherwise 1.
fn exit(memory: &mut impl Bytes, block: u64) -> ServiceOutcome {
    let word = |memory: &mut _, at| get(memory, at).map(u64::from_le_bytes);
    match (word(memory, block), word(memory, block.wrapping_add(8))) {
        (Ok(0x20026), Ok(code)) => ServiceOutcome::Exit(code as i32),
        _ => ServiceOutcome::Exit(1),
    }
}

/// Opens a file in one of the twelve C modes (`r` to `a+b`); `:tt` is the terminal.
fn open(name: &str, mode: u64, world: &mut impl World) -> Answer {
    if mode > 11 {
        return Err(Errno::Invalid);
    }
    if name == ":tt" {
        return Ok(1 + mode / 4);
    }
    let both = mode & 2 != 0;
    let how = Open {
        read: mode < 4 || both,
        write: mode >= 4 || both,
        create: mode >= 4,
        truncate: mode / 4 == 1,
        append: mode / 4 == 2,
    };
    world.open(name, how).map(|file| u64::from(file) + 1)
}

/// Adds the semihosting feature file to a world.
struct Features<'a, W> {
    world: &'a mut W,
    told: &'a mut u64,
}

impl<W: World> World for Features<'_, W> {
    fn open(&mut self, name: &str, how: Open) -> Result<u32, Errno> {
        if name != FEATURES {
            return self.world.open(name, how);
        }
        *self.told = 0;
        Ok(FEATURES_FILE)
    }

    fn close(&mut self, file: u32) -> Result<(), Errno> {
        if file == FEATURES_FILE {
            return Ok(());
        }
        self.world.close(file)
    }

    fn read(&mut self, file: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
        if file != FEATURES_FILE {
            return self.world.read(file, bytes);
        }
        let rest = usize::try_from(*self.told)
            .ok()
            .and_then(|told| FEATURES_BYTES.get(told..));
        let rest = rest.unwrap_or(&[]);
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        *self.told += length as u64;
        Ok(length)
    }

    fn write(&mut self, file: u32, bytes: &[u8]) -> Result<usize, Errno> {
        if file == FEATURES_FILE {
            return Err(Errno::Denied);
        }
        self.world.write(file, bytes)
    }

    fn seek(&mut self, file: u32, place: Place) -> Result<u64, Errno> {
        if file != FEATURES_FILE {
            return self.world.seek(file, place);
        }
        *self.told = match place {
            Place::Start(at) => at,
            Place::Current(by) => self.told.saturating_add_signed(by),
            Place::End(by) => (FEATURES_BYTES.len() as u64).saturating_add_signed(by),
        };
        Ok(*self.told)
    }

    fn now(&mut self) -> u64 {
        self.world.now()
    }
}
