//! Virtual addresses: pages of 4 KiB and 2 MiB, and a translation lookaside buffer (TLB).

use crate::memory::{Amo, Cbo, Fence, Memory, Prefetch, Reply, Size};
use crate::timed::TimedMemory;
use std::collections::BTreeMap;

/// Page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Large,
}

impl PageSize {
    /// All page sizes, in ascending order.
    pub const ALL: [PageSize; 2] = [PageSize::Small, PageSize::Large];

    /// Size in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            PageSize::Small => 1 << 12,
            PageSize::Large => 1 << 21,
        }
    }

    /// Returns the page size of this many bytes, if supported.
    pub fn of(bytes: u64) -> Option<PageSize> {
        PageSize::ALL.into_iter().find(|size| size.bytes() == bytes)
    }
}

/// A mapped page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Virtual start address, a multiple of the page size.
    pub at: u64,
    /// Physical start address, a multiple of the page size.
    pub to: u64,
    /// Page size.
    pub size: PageSize,
    /// True if loads are permitted.
    pub readable: bool,
    /// True if stores are permitted.
    pub writable: bool,
    /// True if instruction fetches are permitted.
    pub executable: bool,
}

impl Page {
    fn holds(&self, at: u64) -> bool {
        at.wrapping_sub(self.at) < self.size.bytes()
    }
}

/// Kind of access, for the permission check.
#[derive(Clone, Copy)]
enum Use {
    Read,
    Write,
    Execute,
    /// Block management; read or write permission is sufficient.
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

/// A run of pages with consecutive virtual and consecutive physical addresses.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: Page,
    /// Last virtual address.
    last: u64,
}

impl Run {
    /// Page that contains `at`, which must lie in the run.
    fn page(&self, at: u64) -> Page {
        let before = (at - self.first.at) & !(self.first.size.bytes() - 1);
        Page {
            at: self.first.at + before,
            to: self.first.to + before,
            ..self.first
        }
    }
}

/// Page table of a core, with a fully associative TLB and LRU replacement.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    runs: BTreeMap<u64, Run>,
    /// TLB entries: page, and value of `turns` at its last use. `last` is the index of the entry used last, or
    /// no valid index.
    tlb: Vec<(Page, u64)>,
    last: usize,
    turns: u64,
    places: usize,
    /// Latency of a page walk after a TLB miss, in cycles.
    walk: u64,
    /// Delay of the current access due to a TLB miss, in cycles.
    access_delay: u64,
    /// Accesses with a valid translation that memory did not stall, and accesses that missed the TLB.
    accesses: u64,
    misses: u64,
}

impl Pages {
    /// Creates an empty page table with a TLB of `places` entries (at least 1) and a page walk of `walk` cycles.
    pub fn new(places: usize, walk: u64) -> Pages {
        Pages {
            places: places.max(1),
            walk,
            ..Pages::default()
        }
    }

    /// Maps a page.
    ///
    /// # Errors
    /// The page is misaligned, beyond the last address, or overlaps a mapped page.
    pub fn map(&mut self, page: Page) -> Result<(), String> {
        self.map_run(page, 1)
    }

    /// Maps `pages` consecutive pages, the first of which is `first`.
    ///
    /// # Errors
    /// The pages are misaligned, none, beyond the last address, or overlap a mapped page.
    pub fn map_run(&mut self, first: Page, pages: u64) -> Result<(), String> {
        let (at, bytes) = (first.at, first.size.bytes());
        if (at | first.to) & (bytes - 1) != 0 {
            return Err(format!(
                "a page of {bytes:#x} bytes cannot be mapped from {at:#x} to {:#x}: it is not aligned",
                first.to
            ));
        }
        let length = u128::from(pages) * u128::from(bytes);
        if pages == 0 || u128::from(at.max(first.to)) + length > 1 << 64 {
            return Err(format!(
                "{pages} pages of {bytes:#x} bytes cannot be mapped from {at:#x} to {:#x}",
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

    /// Unmaps the run of pages that was mapped at `at`, and evicts them from the TLB. Returns the first page of the
    /// run. The caller must also invalidate engines that keep decoded instructions.
    pub fn unmap(&mut self, at: u64) -> Option<Page> {
        let run = self.runs.remove(&at)?;
        self.tlb
            .retain(|(page, _)| !(run.first.at..=run.last).contains(&page.at));
        // Entries have moved: none counts as the one used last until the next access.
        self.last = self.tlb.len();
        Some(run.first)
    }

    /// Invalidates all TLB entries.
    pub fn flush(&mut self) {
        self.tlb.clear();
    }

    /// Number of TLB misses.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Number of TLB hits.
    pub fn hits(&self) -> u64 {
        self.accesses.saturating_sub(self.misses)
    }

    /// Page that maps an address, if any. Bypasses the TLB.
    pub fn page(&self, at: u64) -> Option<Page> {
        let (_, run) = self.runs.range(..=at).next_back()?;
        (at <= run.last).then(|| run.page(at))
    }

    /// Page that maps an address, if it is in the TLB. Neither fills the TLB nor updates the replacement order.
    fn find_in_tlb(&self, at: u64) -> Option<&Page> {
        let mut pages = self.tlb.iter().map(|(page, _)| page);
        pages.find(|page| page.holds(at))
    }

    /// Page that maps an address, through the TLB. A miss fills the TLB and delays the access by the page walk.
    #[inline(always)]
    fn find(&mut self, at: u64) -> Option<Page> {
        match self.tlb.get(self.last) {
            Some((page, _)) if page.holds(at) => Some(*page),
            _ => self.turn(at),
        }
    }

    /// Looks up an address that is not in the entry used last.
    #[inline(never)]
    fn turn(&mut self, at: u64) -> Option<Page> {
        let place = self.tlb.iter().position(|(page, _)| page.holds(at));
        self.last = match place {
            Some(place) => place,
            None => {
                let page = self.page(at)?;
                self.misses += 1;
                self.access_delay = self.walk;
                self.put(page)
            }
        };
        self.turns += 1;
        let (page, turn) = self.tlb.get_mut(self.last)?;
        *turn = self.turns;
        Some(*page)
    }

    /// Inserts a page into a free entry, or replaces the least recently used one. Returns the index.
    fn put(&mut self, page: Page) -> usize {
        if self.tlb.len() < self.places {
            self.tlb.push((page, 0));
            return self.tlb.len() - 1;
        }
        let turns = self.tlb.iter().map(|(_, turn)| turn).enumerate();
        let (oldest, _) = turns.min_by_key(|(_, turn)| **turn).unwrap_or((0, &0));
        self.tlb[oldest].0 = page;
        oldest
    }
}

/// Memory behind virtual addresses.
///
/// Loads, stores, atomic accesses and block management go through the TLB. A miss stalls the core for the page walk; a
/// prefetch that misses is dropped. Instruction translations are separate and always hit. An access that crosses the
/// end of a page is misaligned.
#[derive(Clone, Debug)]
pub struct Paged<M> {
    /// Memory behind the page table.
    pub memory: M,
    /// Page table. It may be moved to another memory.
    pub pages: Pages,
    /// Cycle in which the current access begins.
    now: u64,
}

impl<M> Paged<M> {
    /// Puts this page table in front of this memory.
    pub fn new(memory: M, pages: Pages) -> Paged<M> {
        Paged {
            memory,
            pages,
            now: 0,
        }
    }
}

impl<M: TimedMemory> Paged<M> {
    /// Translates an access. An access that its page does not permit is answered like one without a page.
    #[inline(always)]
    fn translate<T>(&mut self, at: u64, length: u64, what: Use) -> Result<u64, Reply<T>> {
        let Some(page) = self.pages.find(at).filter(|page| what.may(page)) else {
            return Err(Reply::Unmapped);
        };
        let offset = at - page.at;
        if offset + length > page.size.bytes() {
            return Err(Reply::Misaligned);
        }
        if self.pages.access_delay > 0 {
            self.memory.at(self.now + self.pages.access_delay);
        }
        Ok(page.to + offset)
    }

    /// Counts an access. A stalled access is retried, and counts once.
    #[inline(always)]
    fn count_access<T>(&mut self, reply: Reply<T>) -> Reply<T> {
        self.pages.accesses += u64::from(!matches!(reply, Reply::Wait));
        reply
    }
}

/// Continues with the translated address, or returns the reply.
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
        self.count_access(reply)
    }

    #[inline(always)]
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        let at = translated!(self.translate(at, size as u64, Use::Write));
        let reply = self.memory.store(at, size, value);
        self.count_access(reply)
    }

    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        let reads = amo.op == crate::memory::AmoOp::LoadReserved;
        let what = if reads { Use::Read } else { Use::Write };
        let at = translated!(self.translate(at, amo.size as u64, what));
        let reply = self.memory.amo(at, amo, to);
        self.count_access(reply)
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
        self.count_access(reply)
    }

    fn prefetch(&mut self, at: u64, what: Prefetch) {
        let page = match what {
            Prefetch::Execute => self.pages.page(at),
            Prefetch::Read | Prefetch::Write => self.pages.find_in_tlb(at).copied(),
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
        self.pages.access_delay = 0;
        self.memory.at(cycle);
    }

    #[inline(always)]
    fn access_delay(&mut self) -> u64 {
        self.pages.access_delay + self.memory.access_delay()
    }

    fn extra_latency(&mut self) -> u64 {
        self.memory.extra_latency()
    }

    fn by(&mut self, pc: u64) {
        self.memory.by(pc);
    }

    fn stops(&self) -> bool {
        self.memory.stops()
    }
}
