//! Virtual addresses: pages of any power of two, and a translation lookaside buffer (TLB).

use crate::memory::{Amo, Cbo, Fence, Memory, Prefetch, Reply, Size};
use crate::timed::TimedMemory;
use std::collections::BTreeMap;

/// Page size: a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    /// Base-two logarithm of the size in bytes.
    bits: u8,
}

impl PageSize {
    /// 4 KiB.
    pub const SMALL: PageSize = PageSize { bits: 12 };
    /// 2 MiB.
    pub const LARGE: PageSize = PageSize { bits: 21 };
    /// Limits of sizes, in bytes: a page has at least one block of a cache, and no page is the whole address space.
    pub const LIMITS: (u64, u64) = (128, 1 << 40);

    /// Size in bytes.
    #[inline(always)]
    pub fn bytes(self) -> u64 {
        1 << self.bits
    }

    /// Returns the page size of this many bytes, if supported: a power of two within [`PageSize::LIMITS`].
    pub fn of(bytes: u64) -> Option<PageSize> {
        let (low, high) = PageSize::LIMITS;
        let is_valid = bytes.is_power_of_two() && (low..=high).contains(&bytes);
        is_valid.then_some(PageSize {
            bits: bytes.trailing_zeros() as u8,
        })
    }
}

/// A mapped page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Virtual start address, a multiple of the page size.
    pub virtual_start: u64,
    /// Physical start address, a multiple of the page size.
    pub physical_start: u64,
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
    /// True if the virtual address lies in the page.
    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.virtual_start) < self.size.bytes()
    }
}

/// Kind of access, for the permission check.
#[derive(Clone, Copy)]
enum AccessKind {
    /// Load, or load-reserved.
    Read,
    /// Store, or another atomic access.
    Write,
    /// Instruction fetch.
    Execute,
    /// Block management; read or write permission is sufficient.
    Manage,
}

impl AccessKind {
    /// True if the page has the permission.
    fn is_permitted_by(self, page: &Page) -> bool {
        match self {
            AccessKind::Read => page.readable,
            AccessKind::Write => page.writable,
            AccessKind::Execute => page.executable,
            AccessKind::Manage => page.readable || page.writable,
        }
    }
}

/// A run of pages with consecutive virtual and consecutive physical addresses.
#[derive(Clone, Copy, Debug)]
struct PageRun {
    /// First page, whose size and permissions are those of all pages.
    first: Page,
    /// Last virtual address.
    last: u64,
}

impl PageRun {
    /// Page that contains `address`, which must lie in the run.
    fn page(&self, address: u64) -> Page {
        let offset = (address - self.first.virtual_start) & !(self.first.size.bytes() - 1);
        Page {
            virtual_start: self.first.virtual_start + offset,
            physical_start: self.first.physical_start + offset,
            ..self.first
        }
    }
}

/// Page table of a core, with a fully associative TLB and LRU replacement.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// Runs by their first virtual address.
    runs: BTreeMap<u64, PageRun>,
    /// TLB entries: page, and value of `use_count` at its last use.
    tlb: Vec<(Page, u64)>,
    /// Index of the entry used last, or no valid index.
    last_index: usize,
    /// Number of TLB look-ups so far that were not of the entry used last.
    use_count: u64,
    /// Maximum number of TLB entries, at least 1.
    entries: usize,
    /// Latency of a page walk after a TLB miss, in cycles.
    walk_cycles: u64,
    /// Delay of the current access due to a TLB miss, in cycles.
    access_delay: u64,
    /// Number of accesses with a valid translation that memory did not stall.
    accesses: u64,
    /// Number of accesses that missed the TLB.
    misses: u64,
}

impl Pages {
    /// Creates an empty page table with a TLB of `entries` entries (at least 1) and a page walk of `walk_cycles`
    /// cycles.
    pub fn new(entries: usize, walk_cycles: u64) -> Pages {
        Pages {
            entries: entries.max(1),
            walk_cycles,
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
        let (start, bytes) = (first.virtual_start, first.size.bytes());
        if (start | first.physical_start) & (bytes - 1) != 0 {
            return Err(format!(
                "a page of {bytes:#x} bytes cannot be mapped from {start:#x} to {:#x}: it is not aligned",
                first.physical_start
            ));
        }
        let length = u128::from(pages) * u128::from(bytes);
        if pages == 0 || u128::from(start.max(first.physical_start)) + length > 1 << 64 {
            return Err(format!(
                "{pages} pages of {bytes:#x} bytes cannot be mapped from {start:#x} to {:#x}",
                first.physical_start
            ));
        }
        let last = start + (length - 1) as u64;
        let previous = self.runs.range(..=start).next_back();
        let previous = previous.filter(|(_, run)| run.last >= start);
        if let Some((_, run)) = previous.or(self.runs.range(start..=last).next()) {
            return Err(format!(
                "a page at {start:#x} would overlap the one at {:#x}",
                run.page(start.max(run.first.virtual_start)).virtual_start
            ));
        }
        self.runs.insert(start, PageRun { first, last });
        Ok(())
    }

    /// Unmaps the run of pages that was mapped at `address`, and evicts them from the TLB. Returns the first page of
    /// the run. The caller must also invalidate engines that keep decoded instructions.
    pub fn unmap(&mut self, address: u64) -> Option<Page> {
        let run = self.runs.remove(&address)?;
        self.tlb.retain(|(page, _)| {
            !(run.first.virtual_start..=run.last).contains(&page.virtual_start)
        });
        // Entries have moved: none counts as the one used last until the next access.
        self.last_index = self.tlb.len();
        Some(run.first)
    }

    /// Invalidates all TLB entries.
    pub fn flush(&mut self) {
        self.tlb.clear();
    }

    /// Number of TLB misses, each with a page walk.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Number of TLB hits.
    pub fn hits(&self) -> u64 {
        self.accesses.saturating_sub(self.misses)
    }

    /// Page that maps an address, if any. Bypasses the TLB.
    pub fn page(&self, address: u64) -> Option<Page> {
        let (_, run) = self.runs.range(..=address).next_back()?;
        (address <= run.last).then(|| run.page(address))
    }

    /// Page that maps an address, if it is in the TLB. Neither fills the TLB nor updates the replacement order.
    fn find_in_tlb(&self, address: u64) -> Option<&Page> {
        let mut pages = self.tlb.iter().map(|(page, _)| page);
        pages.find(|page| page.contains(address))
    }

    /// Page that maps an address, through the TLB. A miss fills the TLB and delays the access by the page walk.
    #[inline(always)]
    fn find(&mut self, address: u64) -> Option<Page> {
        match self.tlb.get(self.last_index) {
            Some((page, _)) if page.contains(address) => Some(*page),
            _ => self.look_up_in_tlb(address),
        }
    }

    /// Looks up an address that is not in the entry used last.
    #[inline(never)]
    fn look_up_in_tlb(&mut self, address: u64) -> Option<Page> {
        let index = self.tlb.iter().position(|(page, _)| page.contains(address));
        self.last_index = match index {
            Some(index) => index,
            None => {
                let page = self.page(address)?;
                self.misses += 1;
                self.access_delay = self.walk_cycles;
                self.insert(page)
            }
        };
        self.use_count += 1;
        let (page, last_use) = self.tlb.get_mut(self.last_index)?;
        *last_use = self.use_count;
        Some(*page)
    }

    /// Inserts a page into a free entry, or replaces the least recently used one. Returns the index.
    fn insert(&mut self, page: Page) -> usize {
        if self.tlb.len() < self.entries {
            self.tlb.push((page, 0));
            return self.tlb.len() - 1;
        }
        let last_uses = self.tlb.iter().map(|(_, last_use)| last_use).enumerate();
        let (oldest_index, _) = last_uses
            .min_by_key(|(_, last_use)| **last_use)
            .unwrap_or((0, &0));
        self.tlb[oldest_index].0 = page;
        oldest_index
    }
}

/// Memory behind virtual addresses.
///
/// Loads, stores, atomic accesses and block management go through the TLB. A miss stalls the core for the page walk; a
/// prefetch that misses is dropped. Instruction translations are separate and always hit. An access that crosses the
/// end of a page is misaligned.
#[derive(Clone, Debug)]
pub struct PagedMemory<M> {
    /// Memory behind the page table.
    pub memory: M,
    /// Page table. It may be moved to another memory.
    pub pages: Pages,
    /// Cycle in which the current access begins.
    now: u64,
}

impl<M> PagedMemory<M> {
    /// Puts this page table in front of this memory.
    pub fn new(memory: M, pages: Pages) -> PagedMemory<M> {
        PagedMemory {
            memory,
            pages,
            now: 0,
        }
    }
}

impl<M: TimedMemory> PagedMemory<M> {
    /// Translates an access. An access that its page does not permit is answered like one without a page.
    #[inline(always)]
    fn translate<T>(
        &mut self,
        address: u64,
        length: u64,
        kind: AccessKind,
    ) -> Result<u64, Reply<T>> {
        let Some(page) = self
            .pages
            .find(address)
            .filter(|page| kind.is_permitted_by(page))
        else {
            return Err(Reply::PageFault);
        };
        let offset = address - page.virtual_start;
        if offset + length > page.size.bytes() {
            return Err(Reply::Misaligned);
        }
        if self.pages.access_delay > 0 {
            self.memory.set_cycle(self.now + self.pages.access_delay);
        }
        Ok(page.physical_start + offset)
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
            Ok(address) => address,
            Err(reply) => return reply,
        }
    };
}

impl<M: TimedMemory> Memory for PagedMemory<M> {
    const SPLIT: bool = M::SPLIT;

    fn fetch(&mut self, address: u64) -> Reply<u16> {
        match self
            .pages
            .page(address)
            .filter(|page| AccessKind::Execute.is_permitted_by(page))
        {
            Some(page) => self
                .memory
                .fetch(page.physical_start + (address - page.virtual_start)),
            None => Reply::PageFault,
        }
    }

    #[inline(always)]
    fn load(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        let address = translated!(self.translate(address, size as u64, AccessKind::Read));
        let reply = self.memory.load(address, size, destination);
        self.count_access(reply)
    }

    #[inline(always)]
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        let address = translated!(self.translate(address, size as u64, AccessKind::Write));
        let reply = self.memory.store(address, size, value);
        self.count_access(reply)
    }

    fn amo(&mut self, address: u64, amo: Amo, destination: u8) -> Reply<u64> {
        let is_load_reserved = amo.op == crate::memory::AmoOp::LoadReserved;
        let kind = if is_load_reserved {
            AccessKind::Read
        } else {
            AccessKind::Write
        };
        let address = translated!(self.translate(address, amo.size as u64, kind));
        let reply = self.memory.amo(address, amo, destination);
        self.count_access(reply)
    }

    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.memory.fence(fence)
    }

    fn fence_i(&mut self) -> Reply<()> {
        self.memory.fence_i()
    }

    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()> {
        let address = translated!(self.translate(address, 1, AccessKind::Manage));
        let reply = self.memory.cbo(address, op);
        self.count_access(reply)
    }

    fn prefetch(&mut self, address: u64, op: Prefetch) {
        let page = match op {
            Prefetch::Execute => self.pages.page(address),
            Prefetch::Read | Prefetch::Write => self.pages.find_in_tlb(address).copied(),
        };
        let kind = match op {
            Prefetch::Execute => AccessKind::Execute,
            Prefetch::Read => AccessKind::Read,
            Prefetch::Write => AccessKind::Write,
        };
        if let Some(page) = page.filter(|page| kind.is_permitted_by(page)) {
            self.memory
                .prefetch(page.physical_start + (address - page.virtual_start), op);
        }
    }
}

impl<M: TimedMemory> TimedMemory for PagedMemory<M> {
    #[inline(always)]
    fn set_cycle(&mut self, cycle: u64) {
        self.now = cycle;
        self.pages.access_delay = 0;
        self.memory.set_cycle(cycle);
    }

    #[inline(always)]
    fn access_delay(&mut self) -> u64 {
        self.pages.access_delay + self.memory.access_delay()
    }

    fn extra_latency(&mut self) -> u64 {
        self.memory.extra_latency()
    }

    fn set_pc(&mut self, pc: u64) {
        self.memory.set_pc(pc);
    }

    fn must_stop(&self) -> bool {
        self.memory.must_stop()
    }
}
