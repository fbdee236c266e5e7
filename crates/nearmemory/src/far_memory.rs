//! Far memory: the contents of its lines, and the time of accesses to them.

mod cache;
mod dram;

use crate::events::Response;
use crate::host::FAR;
use crate::platform::Platform;
use crate::scratchpad::{Data, LINE};
use cache::MemoryCache;
use cohkit_dram::Line;
use cohkit_riscv::Size;
use cohkit_units::Time;
use dram::{Ends, FarDram};
use rustc_hash::FxHashMap;

pub(crate) use cache::CacheCounters;

/// Bytes of a page of [`FarMemory`], a unit of allocation only.
const PAGE: usize = 4096;

/// An access to far memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    /// Read of a line.
    ReadLine,
    /// Uncached load.
    ReadWord(Size),
    /// Write of a line.
    WriteLine,
    /// Uncached store.
    WriteWord(Size),
}

impl AccessKind {
    fn writes(self) -> bool {
        matches!(self, AccessKind::WriteLine | AccessKind::WriteWord(_))
    }

    /// Returns the size of a word, or `None` for a line.
    fn word_size(self) -> Option<Size> {
        match self {
            AccessKind::ReadLine | AccessKind::WriteLine => None,
            AccessKind::ReadWord(size) | AccessKind::WriteWord(size) => Some(size),
        }
    }
}

/// Consequence of the end of an access.
#[derive(Debug)]
pub(crate) enum Completion {
    /// A response to the host's request of this number leaves. A read frees its slice of the directory.
    Response {
        number: u64,
        response: Response,
        slice: Option<usize>,
    },
    /// A line of a core's copy engine is complete: core, number of the access, and contents.
    Copy(usize, u64, Box<Data>),
}

impl Completion {
    /// True if the completion changes state that a core may read.
    fn changes_state(&self) -> bool {
        match self {
            Completion::Response { response, .. } => matches!(response, Response::Written),
            Completion::Copy(..) => true,
        }
    }
}

/// User of a DRAM operation.
enum DramUser {
    /// An access to far memory.
    Access(Completion),
    /// The memory-side cache, which reads a line.
    Fill(Line),
    /// The memory-side cache, which writes a line and does not wait for its end.
    WriteBack,
}

/// Far memory, allocated page by page on the first write.
pub(crate) struct FarMemory {
    /// Pages by number, counted from [`FAR`]. Absent pages are zero.
    pages: FxHashMap<u64, Box<[u8; PAGE]>>,
    dram: FarDram<DramUser>,
    /// Memory-side cache, if the machine has one.
    cache: Option<MemoryCache<Completion>>,
    /// Accesses that have read a line or an uncached word, by host and copy engines.
    pub(crate) reads: u64,
    /// Accesses that have written a line or an uncached word.
    pub(crate) writes: u64,
    /// Ends of DRAM operations that have not been handled.
    dram_ends: Ends<DramUser>,
    /// Known ends of accesses, which the device takes.
    ends: Ends<Completion>,
    /// Accesses in progress that will change state that a core may read.
    pending_changes: u64,
}

impl FarMemory {
    /// Creates zeroed far memory.
    pub(crate) fn new(platform: &Platform) -> FarMemory {
        FarMemory {
            pages: FxHashMap::default(),
            dram: FarDram::new(&platform.memory, LINE as u32),
            cache: MemoryCache::new(platform),
            reads: 0,
            writes: 0,
            dram_ends: Ends::new(),
            ends: Ends::new(),
            pending_changes: 0,
        }
    }

    /// Returns the page number and the offset in the page of an address.
    fn page_and_offset(address: u64) -> (u64, usize) {
        let offset = address - FAR;
        (offset / PAGE as u64, (offset % PAGE as u64) as usize)
    }

    /// Reads bytes at an address, which must not cross the end of a page.
    pub(crate) fn get(&self, address: u64, bytes: &mut [u8]) {
        let (page, offset) = FarMemory::page_and_offset(address);
        match self.pages.get(&page) {
            Some(page) => bytes.copy_from_slice(&page[offset..offset + bytes.len()]),
            None => bytes.fill(0),
        }
    }

    /// Writes bytes at an address, which must not cross the end of a page.
    pub(crate) fn put(&mut self, address: u64, bytes: &[u8]) {
        let (page, offset) = FarMemory::page_and_offset(address);
        let page = self
            .pages
            .entry(page)
            .or_insert_with(|| Box::new([0; PAGE]));
        page[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Starts an access at `now`, which only takes time: the caller reads or writes the contents.
    pub(crate) fn access(
        &mut self,
        now: Time,
        address: u64,
        kind: AccessKind,
        completion: Completion,
    ) {
        let line = ((address - FAR) / LINE as u64) as Line;
        let (writes, size) = (kind.writes(), kind.word_size());
        match writes {
            true => self.writes += 1,
            false => self.reads += 1,
        }
        self.pending_changes += u64::from(completion.changes_state());
        let Some(cache) = &mut self.cache else {
            let bytes = match size {
                None => 0..LINE as u32,
                Some(size) => {
                    let offset = (address % LINE as u64) as u32;
                    offset..offset + size as u32
                }
            };
            let user = DramUser::Access(completion);
            self.dram
                .start(now, (line, bytes), writes, user, &mut self.dram_ends);
            return self.handle_dram_ends();
        };
        let is_line = size.is_none();
        let work = cache.access(now, line, (writes, is_line), completion, &mut self.ends);
        let reads = work.reads.map(|line| (line, false, DramUser::Fill(line)));
        let writes = work.writes.map(|line| (line, true, DramUser::WriteBack));
        for (line, writes, user) in reads.chain(writes) {
            let bytes = 0..LINE as u32;
            self.dram
                .start(work.time, (line, bytes), writes, user, &mut self.dram_ends);
        }
        self.handle_dram_ends();
    }

    /// Determines the ends of accesses from those of DRAM operations.
    fn handle_dram_ends(&mut self) {
        for (end, user) in self.dram_ends.drain(..) {
            match (user, &mut self.cache) {
                (DramUser::Access(completion), _) => self.ends.push_back((end, completion)),
                (DramUser::Fill(line), Some(cache)) => {
                    cache.complete_read(line, end, &mut self.ends);
                }
                (DramUser::Fill(_) | DramUser::WriteBack, _) => {}
            }
        }
    }

    /// Lets the DRAM issue the commands that are due at `now`, the time of a turn that [`FarMemory::request_turn`]
    /// returned.
    pub(crate) fn take_turn(&mut self, now: Time) {
        self.dram.take_turn(now, &mut self.dram_ends);
        self.handle_dram_ends();
    }

    /// Returns the time of a turn of the DRAM that the caller must schedule, if there is a new one.
    pub(crate) fn request_turn(&mut self) -> Option<Time> {
        self.dram.request_turn()
    }

    /// Takes an access whose end is known, in picoseconds, in the order in which the ends were determined. No end is in
    /// the past.
    pub(crate) fn next_end(&mut self) -> Option<(Time, Completion)> {
        let (end, completion) = self.ends.pop_front()?;
        self.pending_changes -= u64::from(completion.changes_state());
        Some((end, completion))
    }

    /// True if no access in progress will change state that a core may read, apart from those whose ends were taken.
    pub(crate) fn is_read_only(&self) -> bool {
        self.pending_changes == 0
    }

    /// Returns the numbers of DRAM operations that found their rows open, and of those that opened a row.
    pub(crate) fn row_hits_and_misses(&self) -> (u64, u64) {
        self.dram.row_hits_and_misses()
    }

    /// Returns the counters of the memory-side cache, if the machine has one.
    pub(crate) fn cache_counters(&self) -> Option<CacheCounters> {
        self.cache.as_ref().map(|cache| cache.counters)
    }
}

#[cfg(test)]
mod tests;
