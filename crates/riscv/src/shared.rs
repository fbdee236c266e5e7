//! Memory shared by several cores, without time.

use crate::memory::{Amo, AmoOp, Cbo, Fence, Flat, Memory, Prefetch, Reply, Size};
use crate::system::Bytes;
use crate::timed::TimedMemory;

/// Reservation granularity in bytes. A store by another core to the same block ends the reservation.
const BLOCK: u64 = 64;

/// Sequentially consistent memory of several cores: each access is performed at once and visible to all.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Contents.
    pub memory: Flat,
    /// Reserved address of each core, if any.
    reserved: Vec<Option<u64>>,
    /// Number of reservations.
    held: usize,
}

impl Shared {
    /// Shares `memory` among `cores` cores.
    pub fn new(memory: Flat, cores: usize) -> Shared {
        Shared {
            memory,
            reserved: vec![None; cores],
            held: 0,
        }
    }

    /// Memory as seen by one core; `None` if there is no such core.
    pub fn port(&mut self, core: usize) -> Option<Port<'_>> {
        (core < self.reserved.len()).then_some(Port { shared: self, core })
    }

    /// Stores bytes on behalf of an agent that is not one of the cores. Returns false if the range is not in memory.
    pub fn put(&mut self, at: u64, bytes: &[u8]) -> bool {
        if !bytes.is_empty() {
            self.stored(usize::MAX, at, bytes.len() as u64);
        }
        self.memory.put(at, bytes)
    }

    fn reserve(&mut self, core: usize, place: Option<u64>) -> Option<u64> {
        let before = std::mem::replace(&mut self.reserved[core], place);
        self.held = self.held + usize::from(place.is_some()) - usize::from(before.is_some());
        before
    }

    /// Ends the reservations of other cores in the stored range.
    #[inline(always)]
    fn stored(&mut self, core: usize, at: u64, length: u64) {
        if self.held > 0 {
            self.end(core, at, length);
        }
    }

    #[cold]
    fn end(&mut self, core: usize, at: u64, length: u64) {
        for other in (0..self.reserved.len()).filter(|other| *other != core) {
            let touched = self.reserved[other].is_some_and(|place| {
                let last = at.wrapping_add(length - 1);
                (at / BLOCK..=last / BLOCK).contains(&(place / BLOCK))
            });
            if touched {
                self.reserve(other, None);
            }
        }
    }
}

/// Shared memory as seen by one core.
#[derive(Debug)]
pub struct Port<'a> {
    shared: &'a mut Shared,
    core: usize,
}

impl Memory for Port<'_> {
    #[inline(always)]
    fn fetch(&mut self, at: u64) -> Reply<u16> {
        self.shared.memory.fetch(at)
    }

    #[inline(always)]
    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        self.shared.memory.load(at, size, to)
    }

    #[inline(always)]
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        self.shared.stored(self.core, at, size as u64);
        self.shared.memory.store(at, size, value)
    }

    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        let mine = match amo.op {
            AmoOp::LoadReserved => {
                self.shared.reserve(self.core, Some(at));
                None
            }
            AmoOp::StoreConditional => self.shared.reserve(self.core, None),
            _ => None,
        };
        match amo.op {
            AmoOp::LoadReserved => self.shared.memory.load(at, amo.size, to),
            AmoOp::StoreConditional if mine != Some(at) => {
                // Nothing is stored, but an invalid address must still fault.
                let there = self.shared.memory.load(at, amo.size, to);
                there.map(|_| 1)
            }
            AmoOp::StoreConditional => {
                let stored = self.store(at, amo.size, amo.operand);
                stored.map(|()| 0)
            }
            _ => {
                self.shared.stored(self.core, at, amo.size as u64);
                self.shared.memory.amo(at, amo, to)
            }
        }
    }

    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        Reply::Done(())
    }

    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }

    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()> {
        self.shared.memory.cbo(at, what)
    }

    fn prefetch(&mut self, _at: u64, _what: Prefetch) {}
}

impl TimedMemory for Port<'_> {}

impl Bytes for Port<'_> {
    fn get(&mut self, at: u64, bytes: &mut [u8]) -> bool {
        self.shared.memory.get(at, bytes)
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> bool {
        if !bytes.is_empty() {
            self.shared.stored(self.core, at, bytes.len() as u64);
        }
        self.shared.memory.put(at, bytes)
    }
}
