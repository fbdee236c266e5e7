//! Address map of a core: regions of memory, scratchpads and registers, with the accesses that each permits.

use crate::memory::{Amo, Cbo, Fence, Memory, Prefetch, Reply, Size};
use crate::timed::TimedMemory;

/// Kind of a region. It determines the permitted accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Coherent memory. Permits all accesses.
    Memory,
    /// Cached memory without coherence: the core itself cleans, flushes and drops its copies. Permits neither
    /// instruction fetches nor atomic accesses, which other cores would not observe.
    Far,
    /// Uncached alias of memory. Permits neither atomic accesses nor instruction fetches. Prefetches and block
    /// management have no effect.
    Uncached,
    /// Lines that two sides pass to each other, cached without coherence. The rules are those of far memory.
    Scratchpad,
    /// Registers: permits loads and stores of aligned words and double words, which never stall.
    Registers,
}

/// A range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Name, for messages.
    pub name: String,
    /// Start address for the core.
    pub at: u64,
    /// Length in bytes.
    pub length: u64,
    /// Start address in the memory behind the map. Two regions with the same `to` are aliases.
    pub to: u64,
    /// Kind of the region.
    pub kind: Kind,
    /// Extra latency of each load and store in this region, in cycles.
    pub extra_latency: u64,
}

/// Memory that is notified of the region of each access.
pub trait Regional: TimedMemory {
    /// Announces the region of the next access, prefetch or block management.
    fn region(&mut self, _region: &Region) {}
}

/// Memory behind an address map. An access outside all regions, or not permitted by its region, faults.
#[derive(Clone, Debug)]
pub struct Mapped<M> {
    /// Memory behind the map.
    pub memory: M,
    /// Regions, sorted by address.
    regions: Vec<Region>,
    /// Index of the region of the last access.
    last: usize,
    /// Extra latency of the last access, in cycles.
    extra_latency: u64,
}

impl<M> Mapped<M> {
    /// Creates a map of these regions in front of `memory`.
    ///
    /// # Errors
    /// A region is empty, extends beyond the last address, or overlaps another.
    pub fn new(memory: M, mut regions: Vec<Region>) -> Result<Mapped<M>, String> {
        regions.sort_by_key(|region| region.at);
        for region in &regions {
            let fits = |at: u64| region.length > 0 && at.checked_add(region.length - 1).is_some();
            if !fits(region.at) || !fits(region.to) {
                return Err(format!(
                    "the region `{}` has {:#x} bytes from {:#x} on, mapped to {:#x}: they exceed the address space, or the region is empty",
                    region.name, region.length, region.at, region.to
                ));
            }
        }
        for pair in regions.windows(2) {
            if pair[1].at - pair[0].at < pair[0].length {
                return Err(format!(
                    "the regions `{}` and `{}` overlap at {:#x}",
                    pair[0].name, pair[1].name, pair[1].at
                ));
            }
        }
        Ok(Mapped {
            memory,
            regions,
            last: 0,
            extra_latency: 0,
        })
    }

    /// Region that contains an address, if any.
    pub fn find(&self, at: u64) -> Option<&Region> {
        let behind = self.regions.partition_point(|region| region.at <= at);
        let region = self.regions.get(behind.checked_sub(1)?)?;
        (at - region.at < region.length).then_some(region)
    }

    /// Index of the region that contains the whole access, if any.
    #[inline(always)]
    fn place(&mut self, at: u64, length: u64) -> Option<usize> {
        let holds = |region: &Region| {
            let offset = at.wrapping_sub(region.at);
            offset < region.length && length <= region.length - offset
        };
        if !self.regions.get(self.last).is_some_and(holds) {
            let behind = self.regions.partition_point(|region| region.at <= at);
            let place = behind.checked_sub(1)?;
            if !holds(&self.regions[place]) {
                return None;
            }
            self.last = place;
        }
        Some(self.last)
    }
}

impl<M: Regional> Mapped<M> {
    /// Translates an access, if its region permits it, and announces the region to the memory.
    #[inline(always)]
    fn route(&mut self, at: u64, length: u64, allowed: impl Fn(Kind) -> bool) -> Option<u64> {
        let place = self.place(at, length)?;
        let region = &self.regions[place];
        if !allowed(region.kind) {
            return None;
        }
        self.extra_latency = region.extra_latency;
        self.memory.region(region);
        Some(region.to + (at - region.at))
    }

    /// Translates a load or store.
    #[inline(always)]
    fn access(&mut self, at: u64, size: Size) -> Option<u64> {
        let length = size as u64;
        self.route(at, length, |kind| {
            kind != Kind::Registers || length >= 4 && at.is_multiple_of(length)
        })
    }

    /// Converts a reply to a load or store: a register that stalls is a fault.
    #[inline(always)]
    fn answer<T>(&self, reply: Reply<T>) -> Reply<T> {
        match reply {
            Reply::Wait | Reply::Later if self.regions[self.last].kind == Kind::Registers => {
                Reply::Fault
            }
            reply => reply,
        }
    }
}

impl<M: Regional> Memory for Mapped<M> {
    const SPLIT: bool = M::SPLIT;

    fn fetch(&mut self, at: u64) -> Reply<u16> {
        match self.route(at, 2, |kind| kind == Kind::Memory) {
            Some(at) => self.memory.fetch(at),
            None => Reply::Fault,
        }
    }

    #[inline(always)]
    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        let Some(at) = self.access(at, size) else {
            return Reply::Fault;
        };
        let reply = self.memory.load(at, size, to);
        self.answer(reply)
    }

    #[inline(always)]
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        let Some(at) = self.access(at, size) else {
            return Reply::Fault;
        };
        let reply = self.memory.store(at, size, value);
        self.answer(reply)
    }

    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        match self.route(at, amo.size as u64, |kind| kind == Kind::Memory) {
            Some(at) => self.memory.amo(at, amo, to),
            None => Reply::Fault,
        }
    }

    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.memory.fence(fence)
    }

    fn fence_i(&mut self) -> Reply<()> {
        self.memory.fence_i()
    }

    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()> {
        match self.place(at, 1).map(|place| self.regions[place].kind) {
            None => Reply::Fault,
            Some(Kind::Uncached | Kind::Registers) => Reply::Done(()),
            Some(_) => match self.route(at, 1, |_| true) {
                Some(at) => self.memory.cbo(at, what),
                None => Reply::Fault,
            },
        }
    }

    fn prefetch(&mut self, at: u64, what: Prefetch) {
        let cached = |kind| match kind {
            Kind::Memory => true,
            Kind::Far | Kind::Scratchpad => what != Prefetch::Execute,
            Kind::Uncached | Kind::Registers => false,
        };
        if let Some(at) = self.route(at, 1, cached) {
            self.memory.prefetch(at, what);
        }
    }
}

impl<M: Regional> TimedMemory for Mapped<M> {
    fn at(&mut self, cycle: u64) {
        self.extra_latency = 0;
        self.memory.at(cycle);
    }

    fn extra_latency(&mut self) -> u64 {
        self.memory.extra_latency() + std::mem::take(&mut self.extra_latency)
    }

    fn by(&mut self, pc: u64) {
        self.memory.by(pc);
    }

    fn stops(&self) -> bool {
        self.memory.stops()
    }
}
