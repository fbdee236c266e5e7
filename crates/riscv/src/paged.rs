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
    /// All there are.
    pub const ALL: [PageSize; 2] = [PageSize::Small, PageSize::Large];

    /// Its bytes.
    pub fn bytes(self) -> u64 {
        match self {
            PageSize::Small => 1 << 12,
            PageSize::Large => 1 << 21,
        }
    }

    /// The one of so many bytes, if there is one.
    pub fn of(bytes: u64) -> Option<PageSize> {
        PageSize::ALL.into_iter().find(|size| size.bytes() == bytes)
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

/// Pages one behind the other, both by their virtual addresses and in memory.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: Page,
    /// The last address.
    last: u64,
}

impl Run {
    /// The page of an address that is in it.
    fn page(&self, at: u64) -> Page {
        let before = (at - self.first.at) & !(self.first.size.bytes() - 1);
        Page {
            at: self.first.at + before,
            to: self.first.to + before,
            ..self.first
        }
    }
}

/// The pages that a core knows, and the buffer of their translations, which takes any page in any place and gives up the one
/// that was not used for longest.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    runs: BTreeMap<u64, Run>,
    /// The buffer: pages, and which of them the core has turned to how late. The last one is that at `last`.
    buffer: Vec<(Page, u64)>,
    last: usize,
    turns: u64,
    places: usize,
    /// Cycles that a miss takes.
    walk: u64,
    /// By how many cycles the access that is under way begins later.
    later: u64,
    /// Accesses that had a page and did not wait, and those that missed the buffer.
    accesses: u64,
    misses: u64,
}

impl Pages {
    /// No page, and a buffer of so many places, whose misses take so many cycles.
    pub fn new(places: usize, walk: u64) -> Pages {
        Pages {
            places: places.max(1),
            walk,
            ..Pages::default()
        }
    }

    /// Adds a page. An error says why it cannot be.
    pub fn map(&mut self, page: Page) -> Result<(), String> {
        self.map_run(page, 1)
    }

    /// Adds so many pages one behind the other, of which this is the first one. An error says why they cannot be.
    pub fn map_run(&mut self, first: Page, pages: u64) -> Result<(), String> {
        let (at, bytes) = (first.at, first.size.bytes());
        if (at | first.to) & (bytes - 1) != 0 {
            return Err(format!(
                "a page of {bytes:#x} bytes cannot lead from {at:#x} to {:#x}: it is not aligned",
                first.to
            ));
        }
        let length = u128::from(pages) * u128::from(bytes);
        if pages == 0 || u128::from(at.max(first.to)) + length > 1 << 64 {
            return Err(format!(
                "{pages} pages of {bytes:#x} bytes cannot lead from {at:#x} to {:#x}",
                first.to
            ));
        }
        let last = at + (length - 1) as u64;
        let before = self.runs.range(..=at).next_back();
        let before = before.filter(|(_, run)| run.last >= at);
        if let Some((_, other)) = before.or(self.runs.range(at..=last).next()) {
            return Err(format!(
                "a page at {at:#x} would overlap the one at {:#x}",
                other.page(at.max(other.first.at)).at
            ));
        }
        self.runs.insert(at, Run { first, last });
        Ok(())
    }

    /// Takes away the pages that were added with that there, also from the buffer. (An engine that keeps decoded instructions
    /// is to forget them, too.) The first one of them.
    pub fn unmap(&mut self, at: u64) -> Option<Page> {
        let run = self.runs.remove(&at)?;
        self.buffer
            .retain(|(page, _)| !(run.first.at..=run.last).contains(&page.at));
        Some(run.first)
    }

    /// Empties the buffer.
    pub fn flush(&mut self) {
        self.buffer.clear();
    }

    /// How often the buffer was missed.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// How often it had the page of an access.
    pub fn hits(&self) -> u64 {
        self.accesses.saturating_sub(self.misses)
    }

    /// The page of an address.
    pub fn page(&self, at: u64) -> Option<Page> {
        let (_, run) = self.runs.range(..=at).next_back()?;
        (at <= run.last).then(|| run.page(at))
    }

    /// The page of an address, if the buffer has it.
    fn buffered(&self, at: u64) -> Option<&Page> {
        let mut pages = self.buffer.iter().map(|(page, _)| page);
        pages.find(|page| page.holds(at))
    }

    /// The page of an address, by the buffer; a miss brings it there.
    #[inline(always)]
    fn find(&mut self, at: u64) -> Option<Page> {
        match self.buffer.get(self.last) {
            Some((page, _)) if page.holds(at) => Some(*page),
            _ => self.turn(at),
        }
    }

    /// Turns to another page than before.
    #[inline(never)]
    fn turn(&mut self, at: u64) -> Option<Page> {
        let place = self.buffer.iter().position(|(page, _)| page.holds(at));
        self.last = match place {
            Some(place) => place,
            None => {
                let page = self.page(at)?;
                self.misses += 1;
                self.later = self.walk;
                self.put(page)
            }
        };
        self.turns += 1;
        let (page, turn) = self.buffer.get_mut(self.last)?;
        *turn = self.turns;
        Some(*page)
    }

    /// Puts a page where there is room, or where the one is that was not used for longest.
    fn put(&mut self, page: Page) -> usize {
        if self.buffer.len() < self.places {
            self.buffer.push((page, 0));
            return self.buffer.len() - 1;
        }
        let turns = self.buffer.iter().map(|(_, turn)| turn).enumerate();
        let (oldest, _) = turns.min_by_key(|(_, turn)| **turn).unwrap_or((0, &0));
        self.buffer[oldest].0 = page;
        oldest
    }
}

/// Memory behind virtual addresses.
///
/// Loads, stores, atomic accesses and block management go through the buffer of translations. One that misses it begins when
/// the walk is over, and the core does nothing before; a prefetch that misses it does nothing. Instructions have
/// translations of their own, which are always there. An access that reaches over the end of a page is misaligned.
#[derive(Clone, Debug)]
pub struct Paged<M> {
    /// The memory behind.
    pub memory: M,
    /// The pages, which may go on before another memory.
    pub pages: Pages,
    /// The cycle in which the access begins that is under way.
    now: u64,
}

impl<M> Paged<M> {
    /// This memory behind these pages.
    pub fn new(memory: M, pages: Pages) -> Paged<M> {
        Paged {
            memory,
            pages,
            now: 0,
        }
    }
}

impl<M: TimedMemory> Paged<M> {
    /// Where an access goes. One that its page does not allow is answered like one of no page.
    #[inline(always)]
    fn translate<T>(&mut self, at: u64, length: u64, what: Use) -> Result<u64, Reply<T>> {
        let Some(page) = self.pages.find(at).filter(|page| what.may(page)) else {
            return Err(Reply::Unmapped);
        };
        let offset = at - page.at;
        if offset + length > page.size.bytes() {
            return Err(Reply::Misaligned);
        }
        if self.pages.later > 0 {
            self.memory.at(self.now + self.pages.later);
        }
        Ok(page.to + offset)
    }

    /// An access is asked again if it waits, and counts once.
    #[inline(always)]
    fn counted<T>(&mut self, reply: Reply<T>) -> Reply<T> {
        self.pages.accesses += u64::from(!matches!(reply, Reply::Wait));
        reply
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

impl<M: TimedMemory> Memory for Paged<M> {
    const SPLIT: bool = M::SPLIT;

    fn fetch(&mut self, at: u64) -> Reply<u16> {
        match self.pages.page(at).filter(|page| Use::Execute.may(page)) {
            Some(page) => self.memory.fetch(page.to + (at - page.at)),
            None => Reply::Unmapped,
        }
    }

    #[inline(always)]
    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        let at = translated!(self.translate(at, size as u64, Use::Read));
        let reply = self.memory.load(at, size, to);
        self.counted(reply)
    }

    #[inline(always)]
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        let at = translated!(self.translate(at, size as u64, Use::Write));
        let reply = self.memory.store(at, size, value);
        self.counted(reply)
    }

    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        let reads = amo.op == crate::memory::AmoOp::LoadReserved;
        let what = if reads { Use::Read } else { Use::Write };
        let at = translated!(self.translate(at, amo.size as u64, what));
        let reply = self.memory.amo(at, amo, to);
        self.counted(reply)
    }

    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.memory.fence(fence)
    }

    fn fence_i(&mut self) -> Reply<()> {
        self.memory.fence_i()
    }

    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()> {
        let at = translated!(self.translate(at, 1, Use::Manage));
        let reply = self.memory.cbo(at, what);
        self.counted(reply)
    }

    fn prefetch(&mut self, at: u64, what: Prefetch) {
        let page = match what {
            Prefetch::Execute => self.pages.page(at),
            Prefetch::Read | Prefetch::Write => self.pages.buffered(at).copied(),
        };
        let needs = match what {
            Prefetch::Execute => Use::Execute,
            Prefetch::Read => Use::Read,
            Prefetch::Write => Use::Write,
        };
        if let Some(page) = page.filter(|page| needs.may(page)) {
            self.memory.prefetch(page.to + (at - page.at), what);
        }
    }
}

impl<M: TimedMemory> TimedMemory for Paged<M> {
    #[inline(always)]
    fn at(&mut self, cycle: u64) {
        self.now = cycle;
        self.pages.later = 0;
        self.memory.at(cycle);
    }

    #[inline(always)]
    fn later(&mut self) -> u64 {
        self.pages.later + self.memory.later()
    }

    fn longer(&mut self) -> u64 {
        self.memory.longer()
    }

    fn by(&mut self, pc: u64) {
        self.memory.by(pc);
    }

    fn stops(&self) -> bool {
        self.memory.stops()
    }
}
