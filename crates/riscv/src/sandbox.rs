//! Memory protection of channel programs at run time, for pointers and indirect jumps that cannot be verified
//! statically.

use crate::channel::Manifest;
use crate::elf::Image;
use crate::memory::{Amo, Cbo, Fence, Memory, Prefetch, Reply, Size};
use crate::timed::TimedMemory;
use std::ops::Range;
use std::sync::Arc;

/// An accessible range of addresses, with its permissions.
#[derive(Clone, Debug)]
struct Place {
    range: Range<u64>,
    writable: bool,
    executable: bool,
}

/// Memory restricted to what a program was granted: its segments with their permissions, its stack, its pipes and its
/// ranges of far memory. Every other access faults, which stops the core without reaching the memory behind.
///
/// Invalidating a block flushes it instead, as machine mode may configure: the block may hold data of other programs.
#[derive(Clone, Debug)]
pub struct Sandbox<M> {
    /// Memory behind the protection.
    pub memory: M,
    places: Arc<[Place]>,
}

impl<M> Sandbox<M> {
    /// Restricts `memory` to a program that [`crate::channel::verify`] accepted. `private_end` is the end of its
    /// private memory, and `pipes` the address ranges of its pipes.
    pub fn new(
        memory: M,
        image: &Image,
        manifest: &Manifest,
        private_end: u64,
        pipes: impl IntoIterator<Item = Range<u64>>,
    ) -> Sandbox<M> {
        let data = |range| Place {
            range,
            writable: true,
            executable: false,
        };
        let segments = image.segments.iter().map(|segment| Place {
            range: segment.at..segment.at + segment.length,
            writable: segment.writable,
            executable: segment.executable,
        });
        let stack = private_end.saturating_sub(manifest.stack)..private_end;
        let given = manifest.far.iter().cloned().chain(pipes);
        let given = std::iter::once(stack).chain(given).map(data);
        Sandbox {
            memory,
            places: segments.chain(given).collect(),
        }
    }

    /// Applies the same permissions to another memory.
    pub fn over<N>(&self, memory: N) -> Sandbox<N> {
        Sandbox {
            memory,
            places: Arc::clone(&self.places),
        }
    }

    /// True if the access lies within one permitted range, and `allowed` accepts that range.
    #[inline(always)]
    fn may(&self, at: u64, length: u64, allowed: impl Fn(&Place) -> bool) -> bool {
        self.places.iter().any(|place| {
            let Range { start, end } = place.range;
            (start..end).contains(&at) && length <= end - at && allowed(place)
        })
    }
}

impl<M: Memory> Memory for Sandbox<M> {
    const SPLIT: bool = M::SPLIT;

    fn fetch(&mut self, at: u64) -> Reply<u16> {
        match self.may(at, 2, |place| place.executable) {
            true => self.memory.fetch(at),
            false => Reply::Fault,
        }
    }

    #[inline(always)]
    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        match self.may(at, size as u64, |_| true) {
            true => self.memory.load(at, size, to),
            false => Reply::Fault,
        }
    }

    #[inline(always)]
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        match self.may(at, size as u64, |place| place.writable) {
            true => self.memory.store(at, size, value),
            false => Reply::Fault,
        }
    }

    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        match self.may(at, amo.size as u64, |place| place.writable) {
            true => self.memory.amo(at, amo, to),
            false => Reply::Fault,
        }
    }

    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.memory.fence(fence)
    }

    fn fence_i(&mut self) -> Reply<()> {
        self.memory.fence_i()
    }

    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()> {
        let what = match what {
            Cbo::Invalidate => Cbo::Flush,
            what => what,
        };
        match self.may(at, 1, |_| true) {
            true => self.memory.cbo(at, what),
            false => Reply::Fault,
        }
    }

    fn prefetch(&mut self, at: u64, what: Prefetch) {
        if self.may(at, 1, |_| true) {
            self.memory.prefetch(at, what);
        }
    }
}

impl<M: TimedMemory> TimedMemory for Sandbox<M> {
    fn at(&mut self, cycle: u64) {
        self.memory.at(cycle);
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
