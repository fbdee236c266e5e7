//! Services for programs: the few Linux system calls that a static program needs, and semihosting as used by picolibc.
//!
//! [`World`] provides files and the clock. [`System::serve`] handles the exceptions by which programs call.

mod linux;
mod semihosting;

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
    fn seek(&mut self, _file: u32, _position: FilePosition) -> Result<u64, Errno> {
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

/// Maximum bytes per read or write call, which bounds the buffer of the call. Programs repeat the call for the
/// remainder.
const MAX_TRANSFER_BYTES: u64 = 1 << 20;
/// Maximum string length in bytes, that of a path in Linux (`PATH_MAX`).
const MAX_STRING_BYTES: u64 = 4096;

/// Registers of arguments and results, by ABI convention.
const A0: u8 = 10;
const A1: u8 = 11;
const A2: u8 = 12;
/// Register of the number of a Linux system call.
const A7: u8 = 17;

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
                let call = hart.x(A7);
                let arguments = [A0, A1, A2].map(|register| hart.x(register));
                if matches!(call, linux::EXIT | linux::EXIT_GROUP) {
                    return ServiceOutcome::Exit(arguments[0] as i32);
                }
                let result = self.linux_call(call, arguments, memory, world);
                // Linux returns an error as its negated number.
                let word = result.unwrap_or_else(|errno| (errno as u64).wrapping_neg());
                hart.set_x(A0, word);
            }
            Exception::Breakpoint(address) if semihosting::is_call(memory, address) => {
                let (call, argument) = (hart.x(A0), hart.x(A1));
                if matches!(call, semihosting::EXIT | semihosting::EXIT_EXTENDED) {
                    return semihosting::exit_outcome(memory, argument);
                }
                let result = self.semihosting_call(call, argument, start_time, memory, world);
                self.errno = result.err().map_or(self.errno, |errno| errno as u64);
                hart.set_x(A0, result.unwrap_or(u64::MAX));
            }
            _ => return ServiceOutcome::Exception(exception),
        }
        hart.pc = hart.pc.wrapping_add(4);
        ServiceOutcome::Done
    }
}
