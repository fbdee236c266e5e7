//! What lies where for a core: memory, scratchpads and registers, as data, and what may be done with each.

use crate::memory::{Amo, Cbo, Fence, Memory, Prefetch, Reply, Size};
use crate::timed::TimedMemory;

/// What lies in a region, by which follows what may be done there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Memory that caches keep coherent. Everything may be done there.
    Memory,
    /// Memory that is cached and not kept coherent: the core cleans, flushes and drops what it has of it. Nothing is executed
    /// from there, and atomic accesses are none, as nobody else would see them.
    Far,
    /// Another name for memory by which no cache is asked: neither atomic accesses nor execution. Hints and block management
    /// do nothing.
    Uncached,
    /// Lines that two sides hand each other, cached and not kept coherent; the rules are those of far memory.
    Scratchpad,
    /// Registers: loads and stores of aligned words and double words, which are never held.
    Registers,
}

/// A part of the addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// Where it begins for the core.
    pub at: u64,
    /// How long it is.
    pub length: u64,
    /// Where that is for the memory behind; the same place for two regions gives it two names.
    pub to: u64,
    /// What lies there.
    pub kind: Kind,
    /// Cycles that each load and store takes more than in other regions.
    pub longer: u64,
}

/// Memory that is told in which region an access lies.
pub trait Regional: TimedMemory {
    /// The next access, hint or block to manage lies in this region.
    fn region(&mut self, _region: &Region) {}
}

/// Memory behind a map of addresses. Where there is no region, or it does not allow an access, is a fault.
#[derive(Clone, Debug)]
pub struct Mapped<M> {
    /// The memory behind.
    pub memory: M,
    /// By their addresses.
    regions: Vec<Region>,
    /// The region of the last access.
    last: usize,
    /// What the last access takes more.
    longer: u64,
}

impl<M> Mapped<M> {
    /// Memory behind these regions. An error says which of them cannot be.
    pub fn new(memory: M, mut regions: Vec<Region>) -> Result<Mapped<M>, String> {
        regions.sort_by_key(|region| region.at);
        for region in &regions {
            let fits = |at: u64| region.length > 0 && at.checked_add(region.length - 1).is_some();
            if !fits(region.at) || !fits(region.to) {
                return Err(format!(
                    "the region `{}` has {:#x} bytes from {:#x} on, which lead to {:#x}: there are not so many addresses, or none is asked for",
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
            longer: 0,
        })
    }

    /// The region of an address.
    pub fn find(&self, at: u64) -> Option<&Region> {
        let behind = self.regions.partition_point(|region| region.at <= at);
        let region = self.regions.get(behind.checked_sub(1)?)?;
        (at - region.at < region.length).then_some(region)
    }

    /// The place among the regions of an access that does not reach over the end of one.
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
    /// Where an access goes, if it is allowed in its region.
    #[inline(always)]
    fn route(&mut self, at: u64, length: u64, allowed: impl Fn(Kind) -> bool) -> Option<u64> {
        let place = self.place(at, length)?;
        let region = &self.regions[place];
        if !allowed(region.kind) {
            return None;
        }
        self.longer = region.longer;
        self.memory.region(region);
        Some(region.to + (at - region.at))
    }

    /// Where a load or store goes.
    #[inline(always)]
    fn access(&mut self, at: u64, size: Size) -> Option<u64> {
        let length = size as u64;
        self.route(at, length, |kind| {
            kind != Kind::Registers || length >= 4 && at.is_multiple_of(length)
        })
    }

    /// What comes of a load or store: a register lets nobody wait.
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
        self.longer = 0;
        self.memory.at(cycle);
    }

    fn longer(&mut self) -> u64 {
        self.memory.longer() + std::mem::take(&mut self.longer)
    }

    fn by(&mut self, pc: u64) {
        self.memory.by(pc);
    }

    fn stops(&self) -> bool {
        self.memory.stops()
    }
}
