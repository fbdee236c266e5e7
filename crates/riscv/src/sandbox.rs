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
struct PermittedRange {
    /// Addresses; every permitted range is readable.
    range: Range<u64>,
    /// True if stores and atomic accesses are permitted.
    writable: bool,
    /// True if instruction fetches are permitted.
    executable: bool,
}

/// Memory restricted to the resources of a program: its segments with their permissions, its stack, its pipes and its
/// ranges of far memory. Every other access faults, which stops the core without reaching the memory behind.
///
/// Invalidating a block flushes it instead, as machine mode may configure: the block may hold data of other programs.
#[derive(Clone, Debug)]
pub struct Sandbox<M> {
    /// Memory behind the protection.
    pub memory: M,
    /// Permitted ranges, shared by all memories with these permissions.
    permitted: Arc<[PermittedRange]>,
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
        let writable_range = |range| PermittedRange {
            range,
            writable: true,
            executable: false,
        };
        let segments = image.segments.iter().map(|segment| PermittedRange {
            range: segment.address..segment.address + segment.length,
            writable: segment.writable,
            executable: segment.executable,
        });
        let stack = private_end.saturating_sub(manifest.stack)..private_end;
        let granted = manifest.far.iter().cloned().chain(pipes);
        let granted = std::iter::once(stack).chain(granted).map(writable_range);
        Sandbox {
            memory,
            permitted: segments.chain(granted).collect(),
        }
    }

    /// Applies the same permissions to another memory.
    pub fn with_memory<N>(&self, memory: N) -> Sandbox<N> {
        Sandbox {
            memory,
            permitted: Arc::clone(&self.permitted),
        }
    }

    /// True if the access lies within one permitted range, and `accepts` is true for that range.
    #[inline(always)]
    fn permits(
        &self,
        address: u64,
        length: u64,
        accepts: impl Fn(&PermittedRange) -> bool,
    ) -> bool {
        self.permitted.iter().any(|permitted_range| {
            let Range { start, end } = permitted_range.range;
            (start..end).contains(&address) && length <= end - address && accepts(permitted_range)
        })
    }
}

impl<M: Memory> Memory for Sandbox<M> {
    const SPLIT: bool = M::SPLIT;

    fn fetch(&mut self, address: u64) -> Reply<u16> {
        match self.permits(address, 2, |permitted_range| permitted_range.executable) {
            true => self.memory.fetch(address),
            false => Reply::Fault,
        }
    }

    #[inline(always)]
    fn load(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        match self.permits(address, size as u64, |_| true) {
            true => self.memory.load(address, size, destination),
            false => Reply::Fault,
        }
    }

    #[inline(always)]
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        match self.permits(address, size as u64, |permitted_range| {
            permitted_range.writable
        }) {
            true => self.memory.store(address, size, value),
            false => Reply::Fault,
        }
    }

    fn amo(&mut self, address: u64, amo: Amo, destination: u8) -> Reply<u64> {
        match self.permits(address, amo.size as u64, |permitted_range| {
            permitted_range.writable
        }) {
            true => self.memory.amo(address, amo, destination),
            false => Reply::Fault,
        }
    }

    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.memory.fence(fence)
    }

    fn fence_i(&mut self) -> Reply<()> {
        self.memory.fence_i()
    }

    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()> {
        let op = match op {
            Cbo::Invalidate => Cbo::Flush,
            op => op,
        };
        match self.permits(address, 1, |_| true) {
            true => self.memory.cbo(address, op),
            false => Reply::Fault,
        }
    }

    fn prefetch(&mut self, address: u64, op: Prefetch) {
        if self.permits(address, 1, |_| true) {
            self.memory.prefetch(address, op);
        }
    }
}

impl<M: TimedMemory> TimedMemory for Sandbox<M> {
    fn set_cycle(&mut self, cycle: u64) {
        self.memory.set_cycle(cycle);
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
