//! Semihosting calls, as in "Semihosting for AArch32 and AArch64" of Arm and its binding to RISC-V.

use super::{
    file_number, read_bytes, read_file, read_name, read_string, write_bytes, write_file, Bytes,
    CallResult, Errno, FilePosition, OpenMode, ServiceOutcome, System, World,
};

/// Numbers of the calls: SYS_OPEN to SYS_TICKFREQ.
const OPEN: u64 = 0x01;
const CLOSE: u64 = 0x02;
const WRITEC: u64 = 0x03;
const WRITE0: u64 = 0x04;
const WRITE: u64 = 0x05;
const READ: u64 = 0x06;
const READC: u64 = 0x07;
const ISERROR: u64 = 0x08;
const ISTTY: u64 = 0x09;
const SEEK: u64 = 0x0a;
const FLEN: u64 = 0x0c;
const CLOCK: u64 = 0x10;
const TIME: u64 = 0x11;
const ERRNO: u64 = 0x13;
const GET_CMDLINE: u64 = 0x15;
const HEAPINFO: u64 = 0x16;
pub(super) const EXIT: u64 = 0x18;
pub(super) const EXIT_EXTENDED: u64 = 0x20;
const ELAPSED: u64 = 0x30;
const TICKFREQ: u64 = 0x31;

/// Reason ADP_Stopped_ApplicationExit of SYS_EXIT.
const APPLICATION_EXIT: u64 = 0x20026;

/// Instruction before the breakpoint of a call: `slli x0, x0, 0x1f`.
const ENTRY: u32 = 0x01f0_1013;
/// Instruction after the breakpoint of a call: `srai x0, x0, 7`.
const NUMBER: u32 = 0x4070_5013;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// Nanoseconds of a hundredth of a second, the unit of SYS_CLOCK.
const CENTISECOND: u64 = SECOND / 100;
/// Frequency of SYS_ELAPSED in Hz: a tick is a nanosecond.
const TICKS_PER_SECOND: u64 = SECOND;

/// Name of the semihosting feature file.
const FEATURES: &str = ":semihosting-features";
/// Number of the semihosting feature file. No other file has this number.
const FEATURES_FILE: u32 = 0x7fff_fffe;
/// Contents of the feature file: magic `SHFB`, then the feature bits 0 (SYS_EXIT_EXTENDED) and 1 (separate standard
/// output and error).
const FEATURES_BYTES: &[u8] = b"SHFB\x03";

impl System {
    /// Handles a semihosting call. `block` is the address of its arguments, or its only argument. Semihosting handles
    /// are file numbers plus one. `start_time` is in nanoseconds.
    pub(super) fn semihosting_call(
        &mut self,
        call: u64,
        block: u64,
        start_time: u64,
        memory: &mut impl Bytes,
        world: &mut impl World,
    ) -> CallResult {
        let word = |memory: &mut _, index: u64| {
            read_bytes(memory, block.wrapping_add(8 * index)).map(u64::from_le_bytes)
        };
        let world = &mut Features {
            world,
            features_position: &mut self.features_position,
        };
        let file = |memory: &mut _| word(memory, 0)?.checked_sub(1).ok_or(Errno::BadFile);
        match call {
            OPEN => {
                let (address, mode, length) =
                    (word(memory, 0)?, word(memory, 1)?, word(memory, 2)?);
                open_file(&read_name(memory, address, Some(length))?, mode, world)
            }
            CLOSE => world.close(file_number(file(memory)?)?).map(|()| 0),
            WRITEC => write_file(memory, world, 1, block, 1).map(|_| 0),
            WRITE0 => {
                let length = read_string(memory, block, None)?.len() as u64;
                write_file(memory, world, 1, block, length).map(|_| 0)
            }
            WRITE | READ => {
                let (file, address, length) = (file(memory)?, word(memory, 1)?, word(memory, 2)?);
                transfer(memory, world, call == WRITE, file, (address, length))
            }
            READC => {
                let mut byte = [0];
                let count = world.read(0, &mut byte)?;
                Ok(if count == 1 { byte[0].into() } else { u64::MAX })
            }
            ISERROR => Ok(u64::from((word(memory, 0)? as i64) < 0)),
            ISTTY => Ok(u64::from(file(memory)? < 3)),
            SEEK => {
                let position = word(memory, 1)?;
                world
                    .seek(file_number(file(memory)?)?, FilePosition::Start(position))
                    .map(|_| 0)
            }
            FLEN => {
                let file = file_number(file(memory)?)?;
                let position = world.seek(file, FilePosition::Current(0))?;
                let length = world.seek(file, FilePosition::End(0))?;
                world
                    .seek(file, FilePosition::Start(position))
                    .map(|_| length)
            }
            CLOCK => Ok(world.now().wrapping_sub(start_time) / CENTISECOND),
            TIME => Ok(world.now() / SECOND),
            ERRNO => Ok(self.errno),
            GET_CMDLINE => {
                self.write_command_line(block, word(memory, 0)?, word(memory, 1)?, memory)
            }
            HEAPINFO => {
                let address = word(memory, 0)?;
                let limits = [
                    self.heap.start,
                    self.heap.end,
                    self.stack.end,
                    self.stack.start,
                ];
                write_bytes(memory, address, limits.map(u64::to_le_bytes).as_flattened())
            }
            ELAPSED => write_bytes(
                memory,
                block,
                &world.now().wrapping_sub(start_time).to_le_bytes(),
            ),
            TICKFREQ => Ok(TICKS_PER_SECOND),
            _ => Err(Errno::NoCall),
        }
    }
    /// Writes the command line and its terminating zero to `address`, where `capacity` bytes are free, and its length
    /// without the zero to the second word of the argument block.
    fn write_command_line(
        &self,
        block: u64,
        address: u64,
        capacity: u64,
        memory: &mut impl Bytes,
    ) -> CallResult {
        let bytes = [self.command.as_bytes(), &[0]].concat();
        if bytes.len() as u64 > capacity {
            return Err(Errno::Invalid);
        }
        write_bytes(memory, address, &bytes)?;
        let length = bytes.len() as u64 - 1;
        write_bytes(memory, block.wrapping_add(8), &length.to_le_bytes())
    }
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

/// True if the breakpoint is enclosed by the two instructions that mark a semihosting call.
pub(super) fn is_call(memory: &mut impl Bytes, address: u64) -> bool {
    let previous = read_bytes(memory, address.wrapping_sub(4)).map(u32::from_le_bytes);
    let next = read_bytes(memory, address.wrapping_add(4)).map(u32::from_le_bytes);
    (previous, next) == (Ok(ENTRY), Ok(NUMBER))
}

/// Handles SYS_EXIT: returns the program's code if the reason is [`APPLICATION_EXIT`], otherwise 1.
pub(super) fn exit_outcome(memory: &mut impl Bytes, block: u64) -> ServiceOutcome {
    let word = |memory: &mut _, address| read_bytes(memory, address).map(u64::from_le_bytes);
    match (word(memory, block), word(memory, block.wrapping_add(8))) {
        (Ok(APPLICATION_EXIT), Ok(code)) => ServiceOutcome::Exit(code as i32),
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

    fn seek(&mut self, file: u32, position: FilePosition) -> Result<u64, Errno> {
        if file != FEATURES_FILE {
            return self.world.seek(file, position);
        }
        *self.features_position = match position {
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
