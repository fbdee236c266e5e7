//! What a channel program may touch while it runs, whatever its pointers and indirect jumps are.

use crate::channel::Manifest;
use crate::elf::Image;
use crate::memory::{Amo, Cbo, Fence, Memory, Prefetch, Reply, Size};
use crate::timed::TimedMemory;
use std::ops::Range;
use std::sync::Arc;

/// A range of addresses that a program has.
#[derive(Clone, Debug)]
struct Place {
    range: Range<u64>,
    writable: bool,
    executable: bool,
}

/// Memory of which a core gets what its program was given: its segments, each with its rights, its stack, its pipes, and its
/// ranges of far memory. All else is a fault, which stops that core and reaches nothing behind.
///
/// A block that is to be dropped is flushed instead, as machine mode may order: it may hold what belongs to others.
#[derive(Clone, Debug)]
pub struct Confined<M> {
    /// The memory behind.
    pub memory: M,
    places: Arc<[Place]>,
}

impl<M> Confined<M> {
    /// This memory for a program that [`crate::channel::verify`] has passed, whose private memory ends there and whose pipes
    /// have these addresses.
    pub fn new(
        memory: M,
        image: &Image,
        manifest: &Manifest,
        private_end: u64,
        pipes: impl IntoIterator<Item = Range<u64>>,
    ) -> Confined<M> {
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
        Confined {
            memory,
            places: segments.chain(given).collect(),
        }
    }

    /// The same rights to another memory.
    pub fn over<N>(&self, memory: N) -> Confined<N> {
        Confined {
            memory,
            places: Arc::clone(&self.places),
        }
    }

    /// Whether an access lies within one place, and it allows that.
    #[inline(always)]
    fn may(&self, at: u64, length: u64, allowed: impl Fn(&Place) -> bool) -> bool {
        self.places.iter().any(|place| {
            let Range { start, end } = place.range;
            (start..end).contains(&at) && length <= end - at && allowed(place)
        })
    }
}

impl<M: Memory> Memory for Confined<M> {
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

impl<M: TimedMemory> TimedMemory for Confined<M> {
    fn at(&mut self, cycle: u64) {
        self.memory.at(cycle);
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
