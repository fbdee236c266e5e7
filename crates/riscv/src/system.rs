//! Services for programs: the few Linux system calls that a static program needs, and semihosting as used by picolibc.
//! [`World`] provides files and the clock. [`System::serve`] handles the exceptions by which programs call.

use crate::csr::Exception;
use crate::hart::Hart;
use crate::memory::FlatMemory;
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
    /// EMFILE: too many open files.
    TooManyOpenFiles = 24,
    /// ENOSPC: no space left.
    NoSpace = 28,
    /// ENOSYS: no such system call.
    NoCall = 38,
}

/// Open mode of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenMode {
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
pub enum FilePosition {
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
    fn open(&mut self, _name: &str, _mode: OpenMode) -> Result<u32, Errno> {
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
    fn seek(&mut self, _file: u32, _place: FilePosition) -> Result<u64, Errno> {
        Err(Errno::BadFile)
    }
    /// Current time in nanoseconds since the start of 1970.
    fn now(&mut self) -> u64 {
        0
    }
}

/// Memory as accessed by the services on behalf of a program.
pub trait Bytes {
    /// Reads all of `bytes` from `address` on. Returns false if it cannot.
    fn get(&mut self, address: u64, bytes: &mut [u8]) -> bool;
    /// Writes all of `bytes` from `address` on. Returns false if it cannot.
    fn put(&mut self, address: u64, bytes: &[u8]) -> bool;
}

impl Bytes for FlatMemory {
    fn get(&mut self, address: u64, bytes: &mut [u8]) -> bool {
        let memory_bytes = self.bytes(address, bytes.len());
        memory_bytes.is_some_and(|memory_bytes| {
            bytes.copy_from_slice(memory_bytes);
            true
        })
    }

    fn put(&mut self, address: u64, bytes: &[u8]) -> bool {
        let memory_bytes = self.bytes_mut(address, bytes.len());
        memory_bytes.is_some_and(|memory_bytes| {
            memory_bytes.copy_from_slice(bytes);
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
const MAX_TRANSFER_BYTES: u64 = 1 << 20;
/// Maximum string length in bytes.
const MAX_STRING_BYTES: u64 = 4096;

/// Per-program state of the services.
#[derive(Clone, Debug)]
pub struct System {
    /// Memory reserved for the heap.
    heap: Range<u64>,
    /// Current end of the heap (the program break).
    heap_end: u64,
    /// Stack memory. The stack grows down from `end` to at most `start`.
    stack: Range<u64>,
    /// Command line of the program.
    command: String,
    /// Time of the first call in nanoseconds, from which semihosting counts; `None` before.
    start_time: Option<u64>,
    /// Error number of the last failed semihosting call; 0 if none has failed.
    errno: u64,
    /// Read position in the semihosting feature file, in bytes.
    features_position: u64,
}

/// Name of the semihosting feature file.
const FEATURES: &str = ":semihosting-features";
/// Number of the semihosting feature file. No other file has this number.
const FEATURES_FILE: u32 = 0x7fff_fffe;
/// Contents of the feature file: magic `SHFB`, then the feature bits 0 (SYS_EXIT_EXTENDED) and 1 (separate standard
/// output and error).
const FEATURES_BYTES: &[u8] = b"SHFB\x03";

/// Return value of a call, or its error.
type CallResult = Result<u64, Errno>;

/// Reads `N` bytes of the program's memory.
fn read_bytes<const N: usize>(memory: &mut impl Bytes, address: u64) -> Result<[u8; N], Errno> {
    let mut bytes = [0; N];
    memory
        .get(address, &mut bytes)
        .then_some(bytes)
        .ok_or(Errno::Fault)
}

/// Writes bytes to the program's memory.
fn write_bytes(memory: &mut impl Bytes, address: u64, bytes: &[u8]) -> CallResult {
    memory.put(address, bytes).then_some(0).ok_or(Errno::Fault)
}

/// Reads a string of `length` bytes, or up to a zero byte, of at most [`MAX_STRING_BYTES`] bytes.
fn read_string(
    memory: &mut impl Bytes,
    address: u64,
    length: Option<u64>,
) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    for offset in 0..length.unwrap_or(MAX_STRING_BYTES).min(MAX_STRING_BYTES) {
        let [byte] = read_bytes(memory, address.wrapping_add(offset))?;
        if byte == 0 {
            break;
        }
        bytes.push(byte);
    }
    Ok(bytes)
}

/// Reads a file name. It must be valid UTF-8.
fn read_name(memory: &mut impl Bytes, address: u64, length: Option<u64>) -> Result<String, Errno> {
    String::from_utf8(read_string(memory, address, length)?).map_err(|_| Errno::Invalid)
}

/// Transfers bytes between a file and memory in pieces of at most [`MAX_TRANSFER_BYTES`] bytes. Returns the number of
/// bytes not transferred.
fn transfer(
    memory: &mut impl Bytes,
    world: &mut impl World,
    is_write: bool,
    file: u64,
    (address, length): (u64, u64),
) -> CallResult {
    let mut transferred = 0;
    while transferred < length {
        let (address, remaining) = (address.wrapping_add(transferred), length - transferred);
        let result = match is_write {
            true => write_file(memory, world, file, address, remaining),
            false => read_file(memory, world, file, address, remaining),
        };
        match result {
            Ok(0) => break,
            Ok(count) => transferred += count,
            Err(errno) if transferred == 0 => return Err(errno),
            Err(_) => break,
        }
        // Read a file to its end, but standard input only as far as data is available.
        if !is_write && file == 0 {
            break;
        }
    }
    Ok(length.saturating_sub(transferred))
}

/// Converts a file number from a register.
fn file_number(file: u64) -> Result<u32, Errno> {
    u32::try_from(file).map_err(|_| Errno::BadFile)
}

/// Reads from a file into memory. Returns the number of bytes.
fn read_file(
    memory: &mut impl Bytes,
    world: &mut impl World,
    file: u64,
    address: u64,
    length: u64,
) -> CallResult {
    let mut bytes = vec![0; length.min(MAX_TRANSFER_BYTES) as usize];
    let count = world.read(file_number(file)?, &mut bytes)?;
    write_bytes(memory, address, &bytes[..count.min(bytes.len())])?;
    Ok(count as u64)
}

/// Writes memory to a file. Returns the number of bytes.
fn write_file(
    memory: &mut impl Bytes,
    world: &mut impl World,
    file: u64,
    address: u64,
    length: u64,
) -> CallResult {
    let mut bytes = vec![0; length.min(MAX_TRANSFER_BYTES) as usize];
    if !memory.get(address, &mut bytes) {
        return Err(Errno::Fault);
    }
    world
        .write(file_number(file)?, &bytes)
        .map(|written| written as u64)
}

impl System {
    /// Creates the services of a program with this heap, this stack and this command line. The program splits the
    /// command line into arguments. Programs with picolibc get their name, `argv[0]`, from picolibc.
    pub fn new(heap: Range<u64>, stack: Range<u64>, command: &str) -> System {
        let command = command.to_string();
        System {
            heap_end: heap.start,
            heap,
            stack,
            command,
            start_time: None,
            errno: 0,
            features_position: 0,
        }
    }

    /// Stack limits: the start of the stack and the start of the heap below it. A stack below the first overwrites the
    /// heap; one below the second, if the stack starts elsewhere, overwrites the program.
    pub fn stack_limits(&self) -> [u64; 2] {
        [self.stack.start, self.heap.start]
    }

    /// Handles an exception of a core whose `pc` still points to the instruction that raised it. A call's result is in
    /// `a0`; errors of calls are returned to the program. Other exceptions change nothing.
    pub fn serve(
        &mut self,
        exception: Exception,
        hart: &mut Hart,
        memory: &mut impl Bytes,
        world: &mut impl World,
    ) -> ServiceOutcome {
        let now = world.now();
        let start_time = *self.start_time.get_or_insert(now);
        match exception {
            Exception::UserCall | Exception::MachineCall => {
                let call = hart.x(17);
                if matches!(call, 93 | 94) {
                    return ServiceOutcome::Exit(hart.x(10) as i32);
                }
                let arguments = [10, 11, 12].map(|register| hart.x(register));
                let result = self.linux_call(call, arguments, memory, world);
                hart.set_x(
                    10,
                    result.unwrap_or_else(|errno| (errno as u64).wrapping_neg()),
                );
            }
            Exception::Breakpoint(address) if is_semihosting(memory, address) => {
                let (call, argument) = (hart.x(10), hart.x(11));
                if matches!(call, 0x18 | 0x20) {
                    return exit_outcome(memory, argument);
                }
                let result = self.semihosting_call(call, argument, start_time, memory, world);
                self.errno = result.err().map_or(self.errno, |errno| errno as u64);
                hart.set_x(10, result.unwrap_or(u64::MAX));
            }
            _ => return ServiceOutcome::Exception(exception),
        }
        hart.pc = hart.pc.wrapping_add(4);
        ServiceOutcome::Done
    }

    /// Handles a Linux system call with its number and first three arguments: openat, close, lseek, read, write,
    /// clock_gettime, gettimeofday and brk.
    fn linux_call(
        &mut self,
        call: u64,
        [a, b, c]: [u64; 3],
        memory: &mut impl Bytes,
        world: &mut impl World,
    ) -> CallResult {
        match call {
            56 => {
                let flag = |bit: u64| c & bit != 0;
                let mode = OpenMode {
                    read: c & 3 != 1,
                    write: c & 3 != 0,
                    create: flag(0o100),
                    truncate: flag(0o1000),
                    append: flag(0o2000),
                };
                world
                    .open(&read_name(memory, b, None)?, mode)
                    .map(u64::from)
            }
            57 => world.close(file_number(a)?).map(|()| 0),
            62 => {
                let place = match c {
                    0 => FilePosition::Start(b),
                    1 => FilePosition::Current(b as i64),
                    2 => FilePosition::End(b as i64),
                    _ => return Err(Errno::Invalid),
                };
                world.seek(file_number(a)?, place)
            }
            63 => read_file(memory, world, a, b, c),
            64 => write_file(memory, world, a, b, c),
            113 | 169 => {
                let now = world.now();
                let rest = now % 1_000_000_000;
                // clock_gettime returns nanoseconds, gettimeofday microseconds; the result address is a different
                // argument.
                let (address, rest) = if call == 113 {
                    (b, rest)
                } else {
                    (a, rest / 1000)
                };
                let bytes = [(now / 1_000_000_000).to_le_bytes(), rest.to_le_bytes()];
                write_bytes(memory, address, bytes.as_flattened())
            }
            214 => {
                if (self.heap.start..=self.heap.end).contains(&a) {
                    self.heap_end = a;
                }
                Ok(self.heap_end)
            }
            _ => Err(Errno::NoCall),
        }
    }

    /// Handles a semihosting call. `block` is the address of its arguments, or its only argument. Semihosting handles
    /// are file numbers plus one. `start_time` is in nanoseconds.
    fn semihosting_call(
        &mut self,
        call: u64,
        block: u64,
        start_time: u64,
        memory: &mut impl Bytes,
        world: &mut impl World,
    ) -> CallResult {
        let word = |memory: &mut _, n: u64| {
            read_bytes(memory, block.wrapping_add(8 * n)).map(u64::from_le_bytes)
        };
        let world = &mut Features {
            world,
            features_position: &mut self.features_position,
        };
        let file = |memory: &mut _| word(memory, 0)?.checked_sub(1).ok_or(Errno::BadFile);
        match call {
            0x01 => {
                let (address, mode, length) =
                    (word(memory, 0)?, word(memory, 1)?, word(memory, 2)?);
                open_file(&read_name(memory, address, Some(length))?, mode, world)
            }
            0x02 => world.close(file_number(file(memory)?)?).map(|()| 0),
            0x03 => write_file(memory, world, 1, block, 1).map(|_| 0),
            0x04 => {
                let length = read_string(memory, block, None)?.len() as u64;
                write_file(memory, world, 1, block, length).map(|_| 0)
            }
            0x05 | 0x06 => {
                let (file, address, length) = (file(memory)?, word(memory, 1)?, word(memory, 2)?);
                transfer(memory, world, call == 5, file, (address, length))
            }
            0x07 => {
                let mut byte = [0];
                let count = world.read(0, &mut byte)?;
                Ok(if count == 1 { byte[0].into() } else { u64::MAX })
            }
            0x08 => Ok(u64::from((word(memory, 0)? as i64) < 0)),
            0x09 => Ok(u64::from(file(memory)? < 3)),
            0x0a => {
                let place = word(memory, 1)?;
                world
                    .seek(file_number(file(memory)?)?, FilePosition::Start(place))
                    .map(|_| 0)
            }
            0x0c => {
                let file = file_number(file(memory)?)?;
                let position = world.seek(file, FilePosition::Current(0))?;
                let length = world.seek(file, FilePosition::End(0))?;
                world
                    .seek(file, FilePosition::Start(position))
                    .map(|_| length)
            }
            0x10 => Ok(world.now().wrapping_sub(start_time) / 10_000_000),
            0x11 => Ok(world.now() / 1_000_000_000),
            0x13 => Ok(self.errno),
            0x15 => {
                let (address, capacity) = (word(memory, 0)?, word(memory, 1)?);
                let bytes = [self.command.as_bytes(), &[0]].concat();
                if bytes.len() as u64 > capacity {
                    return Err(Errno::Invalid);
                }
                write_bytes(memory, address, &bytes)?;
                write_bytes(
                    memory,
                    block.wrapping_add(8),
                    &(bytes.len() as u64 - 1).to_le_bytes(),
                )
            }
            0x16 => {
                let address = word(memory, 0)?;
                let limits = [
                    self.heap.start,
                    self.heap.end,
                    self.stack.end,
                    self.stack.start,
                ];
                write_bytes(memory, address, limits.map(u64::to_le_bytes).as_flattened())
            }
            0x30 => write_bytes(
                memory,
                block,
                &world.now().wrapping_sub(start_time).to_le_bytes(),
            ),
            0x31 => Ok(1_000_000_000),
            _ => Err(Errno::NoCall),
        }
    }
}

/// True if the breakpoint is enclosed by the two instructions that mark a semihosting call.
fn is_semihosting(memory: &mut impl Bytes, address: u64) -> bool {
    let previous = read_bytes(memory, address.wrapping_sub(4)).map(u32::from_le_bytes);
    let next = read_bytes(memory, address.wrapping_add(4)).map(u32::from_le_bytes);
    (previous, next) == (Ok(0x01f0_1013), Ok(0x4070_5013))
}

/// Handles SYS_EXIT: returns the program's code if the reason is ADP_Stopped_ApplicationExit (0x20026), otherwise 1.
fn exit_outcome(memory: &mut impl Bytes, block: u64) -> ServiceOutcome {
    let word = |memory: &mut _, address| read_bytes(memory, address).map(u64::from_le_bytes);
    match (word(memory, block), word(memory, block.wrapping_add(8))) {
        (Ok(0x20026), Ok(code)) => ServiceOutcome::Exit(code as i32),
        _ => ServiceOutcome::Exit(1),
    }
}

/// Opens a file in one of the twelve C modes (`r` to `a+b`); `:tt` is the terminal.
fn open_file(name: &str, mode: u64, world: &mut impl World) -> CallResult {
    if mode > 11 {
        return Err(Errno::Invalid);
    }
    if name == ":tt" {
        return Ok(1 + mode / 4);
    }
    let is_read_write = mode & 2 != 0;
    let options = OpenMode {
        read: mode < 4 || is_read_write,
        write: mode >= 4 || is_read_write,
        create: mode >= 4,
        truncate: mode / 4 == 1,
        append: mode / 4 == 2,
    };
    world.open(name, options).map(|file| u64::from(file) + 1)
}

/// Adds the semihosting feature file to a world.
struct Features<'a, W> {
    /// All other files, and the clock.
    world: &'a mut W,
    /// Read position in the feature file, in bytes.
    features_position: &'a mut u64,
}

impl<W: World> World for Features<'_, W> {
    fn open(&mut self, name: &str, mode: OpenMode) -> Result<u32, Errno> {
        if name != FEATURES {
            return self.world.open(name, mode);
        }
        *self.features_position = 0;
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
        let rest = usize::try_from(*self.features_position)
            .ok()
            .and_then(|features_position| FEATURES_BYTES.get(features_position..));
        let rest = rest.unwrap_or(&[]);
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        *self.features_position += length as u64;
        Ok(length)
    }

    fn write(&mut self, file: u32, bytes: &[u8]) -> Result<usize, Errno> {
        if file == FEATURES_FILE {
            return Err(Errno::Denied);
        }
        self.world.write(file, bytes)
    }

    fn seek(&mut self, file: u32, place: FilePosition) -> Result<u64, Errno> {
        if file != FEATURES_FILE {
            return self.world.seek(file, place);
        }
        *self.features_position = match place {
            FilePosition::Start(address) => address,
            FilePosition::Current(by) => self.features_position.saturating_add_signed(by),
            FilePosition::End(by) => (FEATURES_BYTES.len() as u64).saturating_add_signed(by),
        };
        Ok(*self.features_position)
    }

    fn now(&mut self) -> u64 {
        self.world.now()
    }
}
