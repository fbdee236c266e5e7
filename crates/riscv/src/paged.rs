//! Virtual addresses: pages of 4 KiB and 2 MiB, and the buffer of translations in front of them.

use crate::memory::{Amo, Cbo, Fence, Memory, Prefetch, Reply, Size};
use crate::timed::TimedMemory;
use std::collections::BTreeMap;

/// How large a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Large,
}

impl PageSize {
    /// Its bytes.
    pub fn bytes(self) -> u64 {
        match self {
            PageSize::Small => 1 << 12,
            PageSize::Large => 1 << 21,
        }
    }
}

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its virtual address.
    pub at: u64,
    /// Where it is in memory.
    pub to: u64,
    /// Its size, of which both are multiples.
    pub size: PageSize,
    /// Whether it may be read.
    pub readable: bool,
    /// Whether it may be written.
    pub writable: bool,
    /// Whether it may be executed.
    pub executable: bool,
}

impl Page {
    fn holds(&self, at: u64) -> bool {
        at.wrapping_sub(self.at) < self.size.bytes()
    }
}

/// What an access does.
#[derive(Clone, Copy)]
enum Use {
    Read,
    Write,
    Execute,
    /// Managing a block, for which any right to its data is enough.
    Manage,
}

impl Use {
    fn may(self, page: &Page) -> bool {
        match self {
            Use::Read => page.readable,
            Use::Write => page.writable,
            Use::Execute => page.executable,
            Use::Manage => page.readable || page.writable,
        }
    }
}

/// Memory behind virtual addresses.
///
/// Loads, stores, atomic accesses and block management go through a buffer of translations, which takes any page in any
/// place and gives up the one that was not used for longest. A prefetch that misses it does nothing. Instructions have
/// translations of their own, which are always there. An access that reaches over the end of a page is misaligned.
#[derive(Clone, Debug)]
pub struct Paged<M> {
    /// The memory behind.
    pub memory: M,
    pages: BTreeMap<u64, Page>,
    /// The buffer, the page used last in front.
    buffer: Vec<Page>,
    places: usize,
    /// Cycles that a miss takes.
    walk: u64,
    /// Whether the access that is under way has missed.
    missed: bool,
    misses: u64,
}

impl<M> Paged<M> {
    /// Memory without a page, with a buffer of so many places, whose misses take so many cycles.
    pub fn new(memory: M, places: usize, walk: u64) -> Paged<M> {
        let (pages, buffer) = (BTreeMap::new(), Vec::new());
        Paged {
            memory,
            pages,
            buffer,
            places: places.max(1),
            walk,
            missed: false,
            misses: 0,
        }
    }

    /// Adds a page. An error says why it cannot be.
    pub fn map(&mut self, page: Page) -> Result<(), String> {
        let (at, bytes) = (page.at, page.size.bytes());
        if (at | page.to) & (bytes - 1) != 0 {
            return Err(format!(
                "a page of {bytes:#x} bytes cannot lead from {at:#x} to {:#x}: it is not aligned",
                page.to
            ));
        }
        let before = self.pages.range(..=at).next_back().map(|(_, page)| page);
        let last = at + (bytes - 1);
        let inside = self.pages.range(at..=last).next().map(|(_, page)| page);
        if let Some(other) = before.filter(|other| other.holds(at)).or(inside) {
            return Err(format!(
                "a page at {at:#x} would overlap the one at {:#x}",
                other.at
            ));
        }
        self.pages.insert(at, page);
        Ok(())
    }

    /// Takes away the page that begins there, also from the buffer. (An engine that keeps decoded instructions is to forget
    /// them, too.)
    pub fn unmap(&mut self, at: u64) -> Option<Page> {
        self.buffer.retain(|page| page.at != at);
        self.pages.remove(&at)
    }

    /// Empties the buffer.
    pub fn flush(&mut self) {
        self.buffer.clear();
    }

    /// How often the buffer was missed.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// The page of an address.
    pub fn page(&self, at: u64) -> Option<&Page> {
        let before = self.pages.range(..=at).next_back();
        before.map(|(_, page)| page).filter(|page| page.holds(at))
    }

    /// The page of an address, by the buffer; a miss brings it there.
    #[inline(always)]
    fn buffered(&mut self, at: u64) -> Option<Page> {
        match self.buffer.first() {
            Some(page) if page.holds(at) => Some(*page),
            _ => self.look(at),
        }
    }

    #[inline(never)]
    fn look(&mut self, at: u64) -> Option<Page> {
        if let Some(place) = self.buffer.iter().position(|page| page.holds(at)) {
            self.buffer[..=place].rotate_right(1);
        } else {
            self.missed = true;
            self.misses += 1;
            let page = *self.page(at)?;
            self.buffer.truncate(self.places - 1);
            self.buffer.insert(0, page);
        }
        self.buffer.first().copied()
    }

    /// Where an access goes. One that its page does not allow is answered like one of no page.
    #[inline(always)]
    fn translate<T>(&mut self, at: u64, length: u64, what: Use) -> Result<u64, Reply<T>> {
        let Some(page) = self.buffered(at).filter(|page| what.may(page)) else {
            return Err(Reply::Unmapped);
        };
        let offset = at - page.at;
        if offset + length > page.size.bytes() {
            return Err(Reply::Misaligned);
        }
        Ok(page.to + offset)
    }
}

/// Goes on with a translated address, or gives the answer that there is already.
macro_rules! translated {
    ($translation:expr) => {
        match $translation {
            Ok(at) => at,
            Err(reply) => return reply,
        }
    };
}

impl<M: Memory> Memory for Paged<M> {
    const SPLIT: bool = M::SPLIT;

    fn fetch(&mut self, at: u64) -> Reply<u16> {
        match self.page(at).filter(|page| Use::Execute.may(page)) {
            Some(page) => {
                let to = page.to + (at - page.at);
                self.memory.fetch(to)
            }
            None => Reply::Unmapped,
        }
    }

    #[inline(always)]
    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        let at = translated!(self.translate(at, size as u64, Use::Read));
        self.memory.load(at, size, to)
    }

    #[inline(always)]
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        let at = translated!(self.translate(at, size as u64, Use::Write));
        self.memory.store(at, size, value)
    }

    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        let reads = amo.op == crate::memory::AmoOp::LoadReserved;
        let what = if reads { Use::Read } else { Use::Write };
        let at = translated!(self.translate(at, amo.size as u64, what));
        self.memory.amo(at, amo, to)
    }

    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.memory.fence(fence)
    }

    fn fence_i(&mut self) -> Reply<()> {
        self.memory.fence_i()
    }

    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()> {
        let at = translated!(self.translate(at, 1, Use::Manage));
        self.memory.cbo(at, what)
    }

    fn prefetch(&mut self, at: u64, what: Prefetch) {
        let page = match what {
            Prefetch::Execute => self.page(at).filter(|page| Use::Execute.may(page)),
            Prefetch::Read => self
                .buffer
                .iter()
                .find(|page| page.holds(at))
                .filter(|page| Use::Read.may(page)),
            Prefetch::Write => self
                .buffer
                .iter()
                .find(|page| page.holds(at))
                .filter(|page| Use::Write.may(page)),
        };
        if let Some(page) = page {
            let to = page.to + (at - page.at);
            self.memory.prefetch(to, what);
        }
    }
}

impl<M: TimedMemory> TimedMemory for Paged<M> {
    fn at(&mut self, cycle: u64) {
        self.memory.at(cycle);
    }

    fn longer(&mut self) -> u64 {
        let missed = std::mem::take(&mut self.missed);
        self.memory.longer() + if missed { self.walk } else { 0 }
    }

    fn by(&mut self, pc: u64) {
        self.memory.by(pc);
    }

    fn stops(&self) -> bool {
        self.memory.stops()
    }
}
