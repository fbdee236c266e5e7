//! What a core beside far memory has around it: private memory, the scratchpad, and registers for its locks and notices.

use crate::copy::{Access, Copier, Refusal, Transfer, Unfit, Way};
use crate::scratchpad::{Answer, Data, Kind, NoLine, Notice, Scratchpad, LINE};
use cohkit_riscv::elf::Image;
use cohkit_riscv::{Amo, Cbo, Fence, Flat, Memory, Prefetch, Reply, Size};
use std::collections::VecDeque;
use std::ops::Range;

/// Where private memory begins, as the compiler's linker has it.
pub const PRIVATE: u64 = 0x1_0000;
/// Where the scratchpad begins, line behind line.
pub const SCRATCHPAD: u64 = 0x10_0000;
/// Where the registers begin, which are words of 64 bits.
pub const REGISTERS: u64 = 0x20_0000;
/// Where a store begins to fetch lines from far memory, and where to store them there.
pub const FETCH: u64 = REGISTERS + register::FETCH;
/// See [`FETCH`].
pub const STORE: u64 = REGISTERS + register::STORE;
/// Where a store locks a line, lets the oldest request go that it holds, and takes the lock away.
pub const LOCK: u64 = REGISTERS + register::LOCK;
/// See [`LOCK`].
pub const RELEASE: u64 = REGISTERS + register::RELEASE;
/// See [`LOCK`].
pub const UNLOCK: u64 = REGISTERS + register::UNLOCK;
/// The register of the time.
pub const NOW: u64 = REGISTERS + register::NOW;
/// How long they are.
pub const REGISTERS_BYTES: u64 = 72;
/// Where the registers begin that host and core share.
pub const SHARED: u64 = 0x21_0000;
/// How many of these there are, of 64 bits each.
pub const SHARES: usize = 32;
/// Where the stamps begin: for each line a word for the last read and one for the last write.
pub const STAMPS: u64 = 0x30_0000;
/// What the register of notices is if there is none.
pub const NONE: u64 = u64::MAX;

/// The registers, by their distance from the first one.
mod register {
    pub const NOTICE: u64 = 0;
    pub const LOCK: u64 = 8;
    pub const RELEASE: u64 = 16;
    pub const UNLOCK: u64 = 24;
    pub const NOW: u64 = 32;
    pub const COPY_FAR: u64 = 40;
    pub const COPY_LINES: u64 = 48;
    pub const FETCH: u64 = 56;
    pub const STORE: u64 = 64;
}

/// A line and a kind as a register has them: twice the line, and one more for write-backs.
fn code(notice: Notice) -> u64 {
    2 * notice.line as u64 + u64::from(notice.kind == Kind::WriteBack)
}

/// The memory of a core beside far memory, and the host's way to it.
///
/// No access of the core to a line is held, since locks are for the host; it waits only to begin a transfer while as many
/// as there may be are under way. An access to no memory and no register, or of a register
/// in part, is an exception of the core.
#[derive(Clone, Debug)]
pub struct Controller {
    private: Flat,
    scratchpad: Scratchpad,
    answers: VecDeque<Answer>,
    copier: Copier,
    shared: [u64; SHARES],
    /// The address in far memory and the number of lines of the next transfer.
    next: (u64, u64),
    /// A transfer that cannot begin, and why.
    unfit: Option<(Transfer, Unfit)>,
    now: u64,
}

impl Controller {
    /// So many bytes of private memory, and so many lines. There is no far memory.
    pub fn new(private: usize, lines: usize) -> Controller {
        Controller {
            private: Flat::new(PRIVATE, private),
            scratchpad: Scratchpad::new(lines),
            answers: VecDeque::new(),
            copier: Copier::new(Vec::new(), 0),
            shared: [0; SHARES],
            next: (0, 0),
            unfit: None,
            now: 0,
        }
    }

    /// With far memory at these addresses, and a copy engine that has so many transfers under way at once.
    pub fn copying(mut self, far: Range<u64>, most: usize) -> Controller {
        self.give(vec![far], most);
        self
    }

    /// From now on, far memory is at these addresses, for transfers of which so many are under way at once. Those that are
    /// under way are forgotten.
    pub fn give(&mut self, far: Vec<Range<u64>>, most: usize) {
        self.copier.give(far, most);
    }

    /// A register that host and core share, if there is one of this number: for the host, to read and write it. Nothing
    /// holds that.
    pub fn shared(&mut self, number: usize) -> Option<&mut u64> {
        self.shared.get_mut(number)
    }

    /// The register that host and core share at an address.
    fn shared_at(&mut self, at: u64) -> Option<&mut u64> {
        let offset = at.checked_sub(SHARED).filter(|offset| offset % 8 == 0)?;
        self.shared(usize::try_from(offset / 8).ok()?)
    }

    /// How many transfers are under way.
    pub fn copies(&self) -> usize {
        self.copier.under_way()
    }

    /// What far memory is to be asked next.
    pub fn ask(&mut self) -> Option<Access> {
        self.copier.ask(&self.scratchpad)
    }

    /// Far memory has done what it was asked by this number, and `data` is what it has read. Whether it had been asked.
    pub fn done(&mut self, number: u64, data: &Data) -> bool {
        let scratchpad = &mut self.scratchpad;
        self.copier.done(scratchpad, number, data, self.now)
    }

    /// Begins a transfer. The core waits where too many are under way.
    fn copy(&mut self, way: Way, line: u64) -> Reply<()> {
        let (far, lines) = self.next;
        let transfer = Transfer {
            way,
            line: usize::try_from(line).unwrap_or(usize::MAX),
            lines: usize::try_from(lines).unwrap_or(usize::MAX),
            far,
        };
        match self.copier.begin(transfer, self.scratchpad.lines()) {
            Ok(()) => Reply::Done(()),
            Err(Refusal::Busy) => Reply::Wait,
            Err(Refusal::Wrong(why)) => {
                self.unfit = Some((transfer, why));
                Reply::Fault
            }
        }
    }

    /// Puts a program into private memory. An error says what does not fit.
    pub fn put(&mut self, image: &Image) -> Result<(), String> {
        for segment in &image.segments {
            let (length, end) = (segment.bytes.len(), self.private.end());
            let Some(place) = self.private.bytes_mut(segment.at, length) else {
                let last = segment.at.wrapping_add(length as u64).wrapping_sub(1);
                return Err(format!(
                    "{:#x} to {last:#x} of the program are not in private memory, which is {PRIVATE:#x} to {:#x}",
                    segment.at,
                    end - 1
                ));
            };
            place.copy_from_slice(segment.bytes);
        }
        Ok(())
    }

    /// The same, with all other private memory, the scratchpad and the shared registers zero, so that nothing is left of a
    /// program before, nor of how this one came.
    pub fn clear(&mut self, image: &Image) -> Result<(), String> {
        let length = (self.private.end() - PRIVATE) as usize;
        self.private = Flat::new(PRIVATE, length);
        self.next = (0, 0);
        self.unfit = None;
        self.shared = [0; SHARES];
        for line in 0..self.scratchpad.lines() {
            self.scratchpad.line_mut(line).expect("it is there").fill(0);
        }
        self.put(image)
    }

    /// The address in far memory and the number of lines of the transfer that was begun last.
    pub fn next(&self) -> (u64, u64) {
        self.next
    }

    /// The last transfer that cannot begin, for which there was a fault, and why.
    pub fn unfit(&self) -> Option<(Transfer, Unfit)> {
        self.unfit
    }

    /// Whether far memory is to be asked for something.
    pub fn is_waiting(&self) -> bool {
        self.copier.is_waiting()
    }

    /// Takes a lock away and lets all go that it holds.
    pub fn unlock(&mut self, line: usize, kind: Kind) -> Result<(), NoLine> {
        let answers = self.scratchpad.unlock(line, kind, self.now)?;
        self.answers.extend(answers);
        Ok(())
    }

    /// It is so late now. Time does not go back.
    pub fn at(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// The host reads a line.
    pub fn read(&mut self, line: usize, request: u64) -> Result<(), NoLine> {
        let answer = self.scratchpad.read(line, request, self.now)?;
        self.answers.extend(answer);
        Ok(())
    }

    /// The host writes a line back.
    pub fn write_back(
        &mut self,
        line: usize,
        request: u64,
        data: &[u8; LINE],
    ) -> Result<(), NoLine> {
        let scratchpad = &mut self.scratchpad;
        let answer = scratchpad.write_back(line, request, data, self.now)?;
        self.answers.extend(answer);
        Ok(())
    }

    /// The next answer to the host.
    pub fn answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// The scratchpad, to be looked at.
    pub fn scratchpad(&self) -> &Scratchpad {
        &self.scratchpad
    }

    /// The line and the offset in it of an access to the scratchpad; nothing if it is elsewhere or not within one line.
    fn place(&self, at: u64, size: Size) -> Option<(usize, usize)> {
        let offset = usize::try_from(at.checked_sub(SCRATCHPAD)?).ok()?;
        let (line, offset) = (offset / LINE, offset % LINE);
        (line < self.scratchpad.lines() && offset + size as usize <= LINE).then_some((line, offset))
    }

    fn stamp(&self, at: u64) -> Option<u64> {
        let offset = at.checked_sub(STAMPS)?;
        let stamps = self.scratchpad.stamps(usize::try_from(offset / 16).ok()?)?;
        match offset % 16 {
            0 => Some(stamps.read),
            8 => Some(stamps.write),
            _ => None,
        }
    }

    fn write_register(&mut self, register: u64, value: u64) -> Result<(), NoLine> {
        let line = usize::try_from(value / 2).unwrap_or(usize::MAX);
        let kind = [Kind::Read, Kind::WriteBack][(value % 2) as usize];
        match register {
            register::LOCK => self.scratchpad.lock(line, kind)?,
            register::RELEASE => {
                let answers = self.scratchpad.release(line, kind, self.now)?;
                self.answers.extend(answers);
            }
            _ => self.unlock(line, kind)?,
        }
        Ok(())
    }
}

impl Memory for Controller {
    fn fetch(&mut self, at: u64) -> Reply<u16> {
        self.private.fetch(at)
    }

    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        if let Some((line, offset)) = self.place(at, size) {
            let bytes = self.scratchpad.line(line).expect("it has a place");
            let mut word = [0; 8];
            word[..size as usize].copy_from_slice(&bytes[offset..offset + size as usize]);
            return Reply::Done(u64::from_le_bytes(word));
        }
        if at < SCRATCHPAD || size != Size::Double {
            return self.private.load(at, size, to);
        }
        if let Some(register) = self.shared_at(at) {
            return Reply::Done(*register);
        }
        match at.wrapping_sub(REGISTERS) {
            register::NOTICE => Reply::Done(self.scratchpad.notice().map_or(NONE, code)),
            register::NOW => Reply::Done(self.now),
            _ => self.stamp(at).into(),
        }
    }

    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        if let Some((line, offset)) = self.place(at, size) {
            let bytes = self.scratchpad.line_mut(line).expect("it has a place");
            let length = size as usize;
            bytes[offset..offset + length].copy_from_slice(&value.to_le_bytes()[..length]);
            return Reply::Done(());
        }
        if let (Some(register), Size::Double) = (self.shared_at(at), size) {
            *register = value;
            return Reply::Done(());
        }
        match at.wrapping_sub(REGISTERS) {
            register @ (register::LOCK | register::RELEASE | register::UNLOCK)
                if size == Size::Double =>
            {
                self.write_register(register, value).ok().into()
            }
            register::COPY_FAR if size == Size::Double => {
                self.next.0 = value;
                Reply::Done(())
            }
            register::COPY_LINES if size == Size::Double => {
                self.next.1 = value;
                Reply::Done(())
            }
            register::FETCH if size == Size::Double => self.copy(Way::Fetch, value),
            register::STORE if size == Size::Double => self.copy(Way::Store, value),
            _ => self.private.store(at, size, value),
        }
    }

    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        // Lines and registers know no atomic accesses; private memory has one core only.
        self.private.amo(at, amo, to)
    }

    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        Reply::Done(())
    }

    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }

    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()> {
        // No cache is between the core and a line.
        match self.place(at, Size::Byte) {
            Some(_) => Reply::Done(()),
            None => self.private.cbo(at, what),
        }
    }

    fn prefetch(&mut self, _at: u64, _what: Prefetch) {}
}
