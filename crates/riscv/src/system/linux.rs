//! Linux system calls.

use super::{
    file_number, read_file, read_name, write_bytes, write_file, Bytes, CallResult, Errno,
    FilePosition, OpenMode, System, World,
};

/// Numbers of the system calls, as in Linux for RV64.
const OPENAT: u64 = 56;
const CLOSE: u64 = 57;
const LSEEK: u64 = 62;
const READ: u64 = 63;
const WRITE: u64 = 64;
pub(super) const EXIT: u64 = 93;
pub(super) const EXIT_GROUP: u64 = 94;
const CLOCK_GETTIME: u64 = 113;
const GETTIMEOFDAY: u64 = 169;
const BRK: u64 = 214;

/// Access mode in the flags of `openat`: 0 to read, 1 to write, 2 for both.
const ACCESS_MODE: u64 = 3;
/// Flags of `openat`.
const O_CREAT: u64 = 0o100;
const O_TRUNC: u64 = 0o1000;
const O_APPEND: u64 = 0o2000;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

impl System {
    /// Handles a Linux system call with its number and first three arguments: openat, close, lseek, read, write,
    /// clock_gettime, gettimeofday and brk.
    pub(super) fn linux_call(
        &mut self,
        call: u64,
        [a, b, c]: [u64; 3],
        memory: &mut impl Bytes,
        world: &mut impl World,
    ) -> CallResult {
        match call {
            // Argument `a` is the folder, which is ignored.
            OPENAT => {
                let name = read_name(memory, b, None)?;
                world.open(&name, open_mode(c)).map(u64::from)
            }
            CLOSE => world.close(file_number(a)?).map(|()| 0),
            LSEEK => {
                let position = match c {
                    0 => FilePosition::Start(b),
                    1 => FilePosition::Current(b as i64),
                    2 => FilePosition::End(b as i64),
                    _ => return Err(Errno::Invalid),
                };
                world.seek(file_number(a)?, position)
            }
            READ => read_file(memory, world, a, b, c),
            WRITE => write_file(memory, world, a, b, c),
            // Argument `a` is the clock, which is ignored.
            CLOCK_GETTIME => {
                let now = world.now();
                write_time(memory, b, now / SECOND, now % SECOND)
            }
            GETTIMEOFDAY => {
                let now = world.now();
                let microseconds = now % SECOND / 1000;
                write_time(memory, a, now / SECOND, microseconds)
            }
            BRK => {
                if (self.heap.start..=self.heap.end).contains(&a) {
                    self.heap_end = a;
                }
                Ok(self.heap_end)
            }
            _ => Err(Errno::NoCall),
        }
    }
}

/// Open mode from the flags of `openat`.
fn open_mode(flags: u64) -> OpenMode {
    let access = flags & ACCESS_MODE;
    OpenMode {
        read: access != 1,
        write: access != 0,
        create: flags & O_CREAT != 0,
        truncate: flags & O_TRUNC != 0,
        append: flags & O_APPEND != 0,
    }
}

/// Writes a time to memory: whole seconds, then the fraction in the unit of the call.
fn write_time(memory: &mut impl Bytes, address: u64, seconds: u64, fraction: u64) -> CallResult {
    let bytes = [seconds.to_le_bytes(), fraction.to_le_bytes()];
    write_bytes(memory, address, bytes.as_flattened())
}
