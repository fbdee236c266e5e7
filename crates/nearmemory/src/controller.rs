//! Memory of a near-memory core: private memory, the scratchpad, and registers for its locks and notices.

use crate::copy::{Access, Copier, Direction, Rejection, Transfer, TransferError};
use crate::scratchpad::{Data, HostResponse, Kind, NoLine, Notice, Scratchpad, LINE};
use cohkit_riscv::elf::Image;
use cohkit_riscv::{Amo, Cbo, Fence, FlatMemory, Memory, Prefetch, Reply, Size};
use std::collections::VecDeque;
use std::ops::Range;

/// Base address of private memory, as in the linker script.
pub const PRIVATE: u64 = 0x1_0000;
/// Base address of the scratchpad, whose lines are contiguous.
pub const SCRATCHPAD: u64 = 0x10_0000;
/// Base address of the registers, of 64 bits each.
pub const REGISTERS: u64 = 0x20_0000;
/// Register that starts a fetch from far memory, or ([`STORE`]) a store to far memory, with the first scratchpad line
/// as its value.
pub const FETCH: u64 = REGISTERS + register::FETCH;
/// See [`FETCH`].
pub const STORE: u64 = REGISTERS + register::STORE;
/// Register that locks a line; [`RELEASE`] releases the oldest held request, and [`UNLOCK`] removes the lock.
pub const LOCK: u64 = REGISTERS + register::LOCK;
/// See [`LOCK`].
pub const RELEASE: u64 = REGISTERS + register::RELEASE;
/// See [`LOCK`].
pub const UNLOCK: u64 = REGISTERS + register::UNLOCK;
/// Register with the number of complete fetches, counted in the order of their start; [`STORES_COMPLETE`] is that of
/// stores.
pub const FETCHES_COMPLETE: u64 = REGISTERS + register::FETCHES_COMPLETE;
/// See [`FETCHES_COMPLETE`].
pub const STORES_COMPLETE: u64 = REGISTERS + register::STORES_COMPLETE;
/// Register with the time in clock cycles.
pub(crate) const NOW: u64 = REGISTERS + register::NOW;
/// Length of the register block, in bytes.
pub(crate) const REGISTERS_BYTES: u64 = 104;
/// Base address of the registers that host and core share.
pub const SHARED: u64 = 0x21_0000;
/// Number of shared registers, of 64 bits each.
pub const SHARES: usize = 32;
/// Base address of the stamps: per line, one word for the last read and one for the last write.
pub const STAMPS: u64 = 0x30_0000;
/// Value of the notice register if no notice is pending.
pub(crate) const NONE: u64 = u64::MAX;

/// Offsets of the registers from [`REGISTERS`].
mod register {
    /// Load: takes the oldest notice.
    pub const NOTICE: u64 = 0;
    /// Store: sets a lock. This register and the next two take a line and a kind, encoded as in
    /// [`super::encode_notice`].
    pub const LOCK: u64 = 8;
    /// Store: releases the oldest held request.
    pub const RELEASE: u64 = 16;
    /// Store: removes a lock.
    pub const UNLOCK: u64 = 24;
    /// Load: time in clock cycles.
    pub const NOW: u64 = 32;
    /// Store: far address of the next transfer.
    pub const COPY_FAR: u64 = 40;
    /// Store: number of lines of transfers, which is kept.
    pub const COPY_LINES: u64 = 48;
    /// Store: starts a fetch to this scratchpad line.
    pub const FETCH: u64 = 56;
    /// Store: starts a store from this scratchpad line.
    pub const STORE: u64 = 64;
    pub const FETCHES_BEGUN: u64 = 72;
    pub const FETCHES_COMPLETE: u64 = 80;
    pub const STORES_BEGUN: u64 = 88;
    pub const STORES_COMPLETE: u64 = 96;
}

/// Encodes a line and a kind as in registers: twice the line, plus one for write-backs.
fn encode_notice(notice: Notice) -> u64 {
    2 * notice.line as u64 + u64::from(notice.kind == Kind::WriteBack)
}

/// The memory of a near-memory core, and the host's access to it.
///
/// Locks hold requests of the host only, never accesses of the core. The core waits only to start a transfer while the
/// maximum number is outstanding. An access outside all memories and registers, or to part of a register, is an
/// exception.
#[derive(Clone, Debug)]
pub struct Controller {
    /// Instructions, constants, variables and stack, from [`PRIVATE`] on.
    private: FlatMemory,
    /// Lines that the core shares with the host, from [`SCRATCHPAD`] on.
    scratchpad: Scratchpad,
    /// Responses to the host that the driver has not taken.
    responses: VecDeque<HostResponse>,
    /// Copy engine.
    copier: Copier,
    /// Registers that core and host share, from [`SHARED`] on.
    shared: [u64; SHARES],
    /// Far address and number of lines for the next transfer, as set by registers.
    transfer_registers: (u64, u64),
    /// The last invalid transfer, with the reason.
    invalid_transfer: Option<(Transfer, TransferError)>,
    /// Time in clock cycles, which stamps record. The driver sets it.
    now: u64,
}

impl Controller {
    /// Creates a core's memory with `private` bytes of private memory and `lines` lines, without far memory.
    pub fn new(private: usize, lines: usize) -> Controller {
        Controller {
            private: FlatMemory::new(PRIVATE, private),
            scratchpad: Scratchpad::new(lines),
            responses: VecDeque::new(),
            copier: Copier::new(Vec::new(), 0),
            shared: [0; SHARES],
            transfer_registers: (0, 0),
            invalid_transfer: None,
            now: 0,
        }
    }

    /// Permits transfers from and to the addresses `far`, with at most `max_transfers` outstanding transfers.
    pub fn with_far_memory(mut self, far: Range<u64>, max_transfers: usize) -> Controller {
        self.set_permitted_ranges(vec![far], max_transfers);
        self
    }

    /// Replaces the permitted ranges of far memory and the maximum number of outstanding transfers. Outstanding
    /// transfers are dropped.
    pub fn set_permitted_ranges(&mut self, far: Vec<Range<u64>>, max_transfers: usize) {
        self.copier.set_permitted_ranges(far, max_transfers);
    }

    /// Returns a shared register for the host to access, if the number is valid. Shared registers have no lock.
    pub fn shared(&mut self, number: usize) -> Option<&mut u64> {
        self.shared.get_mut(number)
    }

    /// Returns the shared register at an address.
    fn shared_at(&mut self, address: u64) -> Option<&mut u64> {
        let offset = address
            .checked_sub(SHARED)
            .filter(|offset| offset % 8 == 0)?;
        self.shared(usize::try_from(offset / 8).ok()?)
    }

    /// Returns the number of outstanding transfers.
    pub fn outstanding_transfers(&self) -> usize {
        self.copier.outstanding_transfers()
    }

    /// Gives the copy engine this number of channels: see [`Copier::with_channels`].
    pub fn with_copy_channels(mut self, channels: usize) -> Controller {
        self.copier = self.copier.with_channels(channels);
        self
    }

    /// Returns the next access of a channel of the copy engine to far memory, if any. The driver performs the access
    /// and then calls [`Controller::complete_access`] with its number.
    pub fn next_access(&mut self, channel: usize) -> Option<Access> {
        self.copier.next_access(channel, &self.scratchpad)
    }

    /// Completes an access to far memory; `data` is the line that was read, and ignored for a write. Returns false if
    /// no such access is outstanding.
    pub fn complete_access(&mut self, number: u64, data: &Data) -> bool {
        let scratchpad = &mut self.scratchpad;
        self.copier
            .complete_access(scratchpad, number, data, self.now)
    }

    /// Starts a transfer. The core waits if too many are outstanding.
    fn start_transfer(&mut self, direction: Direction, line: u64) -> Reply<()> {
        let (far, lines) = self.transfer_registers;
        let transfer = Transfer {
            direction,
            line: usize::try_from(line).unwrap_or(usize::MAX),
            lines: usize::try_from(lines).unwrap_or(usize::MAX),
            far,
        };
        match self
            .copier
            .start_transfer(transfer, self.scratchpad.lines())
        {
            Ok(()) => Reply::Done(()),
            Err(Rejection::Busy) => Reply::Wait,
            Err(Rejection::Invalid(error)) => {
                self.invalid_transfer = Some((transfer, error));
                Reply::Fault
            }
        }
    }

    /// Loads a program into private memory.
    ///
    /// # Errors
    /// The addresses of the first segment that does not fit. Earlier segments have been loaded then.
    pub fn load_program(&mut self, image: &Image) -> Result<(), String> {
        for segment in &image.segments {
            let (length, end) = (segment.bytes.len(), self.private.end());
            let Some(destination) = self.private.bytes_mut(segment.address, length) else {
                let last = segment.address.wrapping_add(length as u64).wrapping_sub(1);
                return Err(format!(
                    "{:#x} to {last:#x} of the program are not in private memory, which is {PRIVATE:#x} to {:#x}",
                    segment.address,
                    end - 1
                ));
            };
            destination.copy_from_slice(segment.bytes);
        }
        Ok(())
    }

    /// Clears private memory, the scratchpad and the shared registers, and loads a program. Errors are those of
    /// [`Controller::load_program`]. Nothing of a previous program or of the transmitted binary remains.
    pub fn reset(&mut self, image: &Image) -> Result<(), String> {
        let length = (self.private.end() - PRIVATE) as usize;
        self.private = FlatMemory::new(PRIVATE, length);
        self.transfer_registers = (0, 0);
        self.invalid_transfer = None;
        self.shared = [0; SHARES];
        for line in 0..self.scratchpad.lines() {
            self.scratchpad
                .line_mut(line)
                .expect("line index below the number of lines")
                .fill(0);
        }
        self.load_program(image)
    }

    /// Returns the far address and the number of lines that the registers hold for transfers.
    pub fn transfer_registers(&self) -> (u64, u64) {
        self.transfer_registers
    }

    /// Returns the last invalid transfer, which caused a fault, with the reason.
    pub(crate) fn invalid_transfer(&self) -> Option<(Transfer, TransferError)> {
        self.invalid_transfer
    }

    /// Returns the copy engine.
    pub(crate) fn copier(&self) -> &Copier {
        &self.copier
    }

    /// Removes a lock and releases all requests that it holds; [`Controller::next_response`] returns their responses.
    pub fn unlock(&mut self, line: usize, kind: Kind) -> Result<(), NoLine> {
        let responses = self.scratchpad.unlock(line, kind, self.now)?;
        self.responses.extend(responses);
        Ok(())
    }

    /// Sets the time in clock cycles; an earlier time is ignored.
    pub fn set_time(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Handles a host read of a line. `request` is a number that the response repeats; it must differ from those of
    /// outstanding requests. [`Controller::next_response`] returns the response, once no lock holds it.
    pub fn read(&mut self, line: usize, request: u64) -> Result<(), NoLine> {
        let response = self.scratchpad.read(line, request, self.now)?;
        self.responses.extend(response);
        Ok(())
    }

    /// Handles a host write-back of a line. `request` is as in [`Controller::read`].
    pub fn write_back(
        &mut self,
        line: usize,
        request: u64,
        data: &[u8; LINE],
    ) -> Result<(), NoLine> {
        let scratchpad = &mut self.scratchpad;
        let response = scratchpad.write_back(line, request, data, self.now)?;
        self.responses.extend(response);
        Ok(())
    }

    /// Takes the oldest response to the host; `None` if there is none.
    pub fn next_response(&mut self) -> Option<HostResponse> {
        self.responses.pop_front()
    }

    /// Returns the scratchpad for inspection.
    pub fn scratchpad(&self) -> &Scratchpad {
        &self.scratchpad
    }

    /// Returns line and offset of an access within one scratchpad line; `None` for other addresses and for accesses
    /// across lines.
    fn line_and_offset(&self, address: u64, size: Size) -> Option<(usize, usize)> {
        let offset = usize::try_from(address.checked_sub(SCRATCHPAD)?).ok()?;
        let (line, offset) = (offset / LINE, offset % LINE);
        (line < self.scratchpad.lines() && offset + size as usize <= LINE).then_some((line, offset))
    }

    /// Returns the stamp at an address; `None` if there is none.
    fn stamp(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(STAMPS)?;
        let stamps = self.scratchpad.stamps(usize::try_from(offset / 16).ok()?)?;
        match offset % 16 {
            0 => Some(stamps.read),
            8 => Some(stamps.write),
            _ => None,
        }
    }

    /// Executes a store to the lock, release or unlock register.
    fn write_register(&mut self, register: u64, value: u64) -> Result<(), NoLine> {
        let line = usize::try_from(value / 2).unwrap_or(usize::MAX);
        let kind = [Kind::Read, Kind::WriteBack][(value % 2) as usize];
        match register {
            register::LOCK => self.scratchpad.lock(line, kind)?,
            register::RELEASE => {
                let responses = self.scratchpad.release(line, kind, self.now)?;
                self.responses.extend(responses);
            }
            _ => self.unlock(line, kind)?,
        }
        Ok(())
    }
}

impl Memory for Controller {
    fn fetch(&mut self, address: u64) -> Reply<u16> {
        self.private.fetch(address)
    }

    fn load(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        if let Some((line, offset)) = self.line_and_offset(address, size) {
            let bytes = self
                .scratchpad
                .line(line)
                .expect("line index below the number of lines");
            let mut word = [0; 8];
            word[..size as usize].copy_from_slice(&bytes[offset..offset + size as usize]);
            return Reply::Done(u64::from_le_bytes(word));
        }
        if address < SCRATCHPAD || size != Size::Double {
            return self.private.load(address, size, destination);
        }
        if let Some(register) = self.shared_at(address) {
            return Reply::Done(*register);
        }
        match address.wrapping_sub(REGISTERS) {
            register::NOTICE => {
                Reply::Done(self.scratchpad.take_notice().map_or(NONE, encode_notice))
            }
            register::NOW => Reply::Done(self.now),
            register::FETCHES_BEGUN => Reply::Done(self.copier.started_transfers(Direction::Fetch)),
            register::FETCHES_COMPLETE => {
                Reply::Done(self.copier.completed_transfers(Direction::Fetch))
            }
            register::STORES_BEGUN => Reply::Done(self.copier.started_transfers(Direction::Store)),
            register::STORES_COMPLETE => {
                Reply::Done(self.copier.completed_transfers(Direction::Store))
            }
            _ => self.stamp(address).into(),
        }
    }

    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        if let Some((line, offset)) = self.line_and_offset(address, size) {
            let bytes = self
                .scratchpad
                .line_mut(line)
                .expect("line index below the number of lines");
            let length = size as usize;
            bytes[offset..offset + length].copy_from_slice(&value.to_le_bytes()[..length]);
            return Reply::Done(());
        }
        if let (Some(register), Size::Double) = (self.shared_at(address), size) {
            *register = value;
            return Reply::Done(());
        }
        match address.wrapping_sub(REGISTERS) {
            register @ (register::LOCK | register::RELEASE | register::UNLOCK)
                if size == Size::Double =>
            {
                self.write_register(register, value).ok().into()
            }
            register::COPY_FAR if size == Size::Double => {
                self.transfer_registers.0 = value;
                Reply::Done(())
            }
            register::COPY_LINES if size == Size::Double => {
                self.transfer_registers.1 = value;
                Reply::Done(())
            }
            register::FETCH if size == Size::Double => self.start_transfer(Direction::Fetch, value),
            register::STORE if size == Size::Double => self.start_transfer(Direction::Store, value),
            _ => self.private.store(address, size, value),
        }
    }

    fn amo(&mut self, address: u64, amo: Amo, destination: u8) -> Reply<u64> {
        // Lines and registers do not support atomic accesses; private memory has a single user.
        self.private.amo(address, amo, destination)
    }

    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        Reply::Done(())
    }

    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }

    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()> {
        // The core accesses its lines without a cache.
        match self.line_and_offset(address, Size::Byte) {
            Some(_) => Reply::Done(()),
            None => self.private.cbo(address, op),
        }
    }

    fn prefetch(&mut self, _address: u64, _prefetch: Prefetch) {}
}
