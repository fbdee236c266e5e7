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
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// Start address in the memory behind the map, to which addresses are translated. Two regions with the same
    /// `target_start` are aliases.
    pub target_start: u64,
    /// Kind of the region.
    pub kind: Kind,
    /// Extra latency of each load and store in this region, in cycles.
    pub extra_latency: u64,
}

/// Memory that is notified of the region of each access.
pub trait RegionMemory: TimedMemory {
    /// Announces the region of the next access, prefetch or block management.
    fn region(&mut self, _region: &Region) {}
}

/// Memory behind an address map. An access outside all regions, or not permitted by its region, faults.
#[derive(Clone, Debug)]
pub struct MappedMemory<M> {
    /// Memory behind the map.
    pub memory: M,
    /// Regions, sorted by address.
    regions: Vec<Region>,
    /// Index in `regions` of the region of the last access, tried first.
    last_index: usize,
    /// Extra latency of the last access, in cycles, until it is taken.
    extra_latency: u64,
}

impl<M> MappedMemory<M> {
    /// Creates a map of these regions in front of `memory`.
    ///
    /// # Errors
    /// A region is empty, extends beyond the last address, or overlaps another.
    pub fn new(memory: M, mut regions: Vec<Region>) -> Result<MappedMemory<M>, String> {
        regions.sort_by_key(|region| region.start);
        for region in &regions {
            let is_in_range = |address: u64| {
                region.length > 0 && address.checked_add(region.length - 1).is_some()
            };
            if !is_in_range(region.start) || !is_in_range(region.target_start) {
                return Err(format!(
                    "the region `{}` has {:#x} bytes from {:#x} on, mapped to {:#x}: they exceed the address space, or the region is empty",
                    region.name, region.length, region.start, region.target_start
                ));
            }
        }
        for pair in regions.windows(2) {
            if pair[1].start - pair[0].start < pair[0].length {
                return Err(format!(
                    "the regions `{}` and `{}` overlap at {:#x}",
                    pair[0].name, pair[1].name, pair[1].start
                ));
            }
        }
        Ok(MappedMemory {
            memory,
            regions,
            last_index: 0,
            extra_latency: 0,
        })
    }

    /// Region that contains an address, if any.
    pub fn find(&self, address: u64) -> Option<&Region> {
        let index = self
            .regions
            .partition_point(|region| region.start <= address);
        let region = self.regions.get(index.checked_sub(1)?)?;
        (address - region.start < region.length).then_some(region)
    }

    /// Index of the region that contains the whole access, if any.
    #[inline(always)]
    fn region_index(&mut self, address: u64, length: u64) -> Option<usize> {
        let contains = |region: &Region| {
            let offset = address.wrapping_sub(region.start);
            offset < region.length && length <= region.length - offset
        };
        if !self.regions.get(self.last_index).is_some_and(contains) {
            let end_index = self
                .regions
                .partition_point(|region| region.start <= address);
            let index = end_index.checked_sub(1)?;
            if !contains(&self.regions[index]) {
                return None;
            }
            self.last_index = index;
        }
        Some(self.last_index)
    }
}

impl<M: RegionMemory> MappedMemory<M> {
    /// Translates an access, if its region permits it, and announces the region to the memory.
    #[inline(always)]
    fn route(
        &mut self,
        address: u64,
        length: u64,
        is_permitted: impl Fn(Kind) -> bool,
    ) -> Option<u64> {
        let index = self.region_index(address, length)?;
        let region = &self.regions[index];
        if !is_permitted(region.kind) {
            return None;
        }
        self.extra_latency = region.extra_latency;
        self.memory.region(region);
        Some(region.target_start + (address - region.start))
    }

    /// Translates a load or store.
    #[inline(always)]
    fn access(&mut self, address: u64, size: Size) -> Option<u64> {
        let length = size as u64;
        self.route(address, length, |kind| {
            kind != Kind::Registers || length >= 4 && address.is_multiple_of(length)
        })
    }

    /// Converts a reply to a load or store: a register that stalls is a fault.
    #[inline(always)]
    fn check_reply<T>(&self, reply: Reply<T>) -> Reply<T> {
        match reply {
            Reply::Wait | Reply::Later if self.regions[self.last_index].kind == Kind::Registers => {
                Reply::Fault
            }
            reply => reply,
        }
    }
}

impl<M: RegionMemory> Memory for MappedMemory<M> {
    const SPLIT: bool = M::SPLIT;

    fn fetch(&mut self, address: u64) -> Reply<u16> {
        match self.route(address, 2, |kind| kind == Kind::Memory) {
            Some(address) => self.memory.fetch(address),
            None => Reply::Fault,
        }
    }

    #[inline(always)]
    fn load(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        let Some(address) = self.access(address, size) else {
            return Reply::Fault;
        };
        let reply = self.memory.load(address, size, destination);
        self.check_reply(reply)
    }

    #[inline(always)]
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        let Some(address) = self.access(address, size) else {
            return Reply::Fault;
        };
        let reply = self.memory.store(address, size, value);
        self.check_reply(reply)
    }

    fn amo(&mut self, address: u64, amo: Amo, destination: u8) -> Reply<u64> {
        match self.route(address, amo.size as u64, |kind| kind == Kind::Memory) {
            Some(address) => self.memory.amo(address, amo, destination),
            None => Reply::Fault,
        }
    }

    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.memory.fence(fence)
    }

    fn fence_i(&mut self) -> Reply<()> {
        self.memory.fence_i()
    }

    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()> {
        match self
            .region_index(address, 1)
            .map(|index| self.regions[index].kind)
        {
            None => Reply::Fault,
            Some(Kind::Uncached | Kind::Registers) => Reply::Done(()),
            Some(_) => match self.route(address, 1, |_| true) {
                Some(address) => self.memory.cbo(address, op),
                None => Reply::Fault,
            },
        }
    }

    fn prefetch(&mut self, address: u64, op: Prefetch) {
        let is_cached = |kind| match kind {
            Kind::Memory => true,
            Kind::Far | Kind::Scratchpad => op != Prefetch::Execute,
            Kind::Uncached | Kind::Registers => false,
        };
        if let Some(address) = self.route(address, 1, is_cached) {
            self.memory.prefetch(address, op);
        }
    }
}

impl<M: RegionMemory> TimedMemory for MappedMemory<M> {
    fn set_cycle(&mut self, cycle: u64) {
        self.extra_latency = 0;
        self.memory.set_cycle(cycle);
    }

    fn extra_latency(&mut self) -> u64 {
        self.memory.extra_latency() + std::mem::take(&mut self.extra_latency)
    }

    fn set_pc(&mut self, pc: u64) {
        self.memory.set_pc(pc);
    }

    fn must_stop(&self) -> bool {
        self.memory.must_stop()
    }
}
