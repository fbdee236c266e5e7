//! Memory shared by several cores, without time.

use crate::memory::{Amo, AmoOp, Cbo, Fence, FlatMemory, Memory, Prefetch, Reply, Size};
use crate::system::Bytes;
use crate::timed::TimedMemory;

/// Reservation granularity in bytes. A store by another core to the same block ends the reservation.
const BLOCK: u64 = 64;

/// Sequentially consistent memory of several cores: each access is performed at once and visible to all.
#[derive(Clone, Debug)]
pub struct SharedMemory {
    /// Contents.
    pub memory: FlatMemory,
    /// Reserved address of each core, if any.
    reserved: Vec<Option<u64>>,
    /// Number of reservations.
    reservation_count: usize,
}

impl SharedMemory {
    /// Shares `memory` among `cores` cores.
    pub fn new(memory: FlatMemory, cores: usize) -> SharedMemory {
        SharedMemory {
            memory,
            reserved: vec![None; cores],
            reservation_count: 0,
        }
    }

    /// Memory as seen by one core; `None` if there is no such core.
    pub fn port(&mut self, core: usize) -> Option<Port<'_>> {
        (core < self.reserved.len()).then_some(Port { shared: self, core })
    }

    /// Stores bytes on behalf of an agent that is not one of the cores. Returns false if the range is not in memory.
    pub fn put(&mut self, address: u64, bytes: &[u8]) -> bool {
        if !bytes.is_empty() {
            self.note_store(usize::MAX, address, bytes.len() as u64);
        }
        self.memory.put(address, bytes)
    }

    /// Sets or clears the reservation of a core. Returns the previous one.
    fn reserve(&mut self, core: usize, address: Option<u64>) -> Option<u64> {
        let previous = std::mem::replace(&mut self.reserved[core], address);
        self.reservation_count = self.reservation_count + usize::from(address.is_some())
            - usize::from(previous.is_some());
        previous
    }

    /// Ends the reservations of other cores in the stored range.
    #[inline(always)]
    fn note_store(&mut self, core: usize, address: u64, length: u64) {
        if self.reservation_count > 0 {
            self.break_reservations(core, address, length);
        }
    }

    /// Ends the reservations of other cores that share a block with the `length` bytes at `address`. `core` may be
    /// `usize::MAX`, for no core.
    #[cold]
    fn break_reservations(&mut self, core: usize, address: u64, length: u64) {
        for other_core in (0..self.reserved.len()).filter(|other_core| *other_core != core) {
            let is_overlapped = self.reserved[other_core].is_some_and(|reserved_address| {
                let last_address = address.wrapping_add(length - 1);
                (address / BLOCK..=last_address / BLOCK).contains(&(reserved_address / BLOCK))
            });
            if is_overlapped {
                self.reserve(other_core, None);
            }
        }
    }
}

/// Shared memory as seen by one core.
#[derive(Debug)]
pub struct Port<'a> {
    /// The memory of all cores.
    shared: &'a mut SharedMemory,
    /// Index of this core.
    core: usize,
}

impl Memory for Port<'_> {
    #[inline(always)]
    fn fetch(&mut self, address: u64) -> Reply<u16> {
        self.shared.memory.fetch(address)
    }

    #[inline(always)]
    fn load(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        self.shared.memory.load(address, size, destination)
    }

    #[inline(always)]
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        self.shared.note_store(self.core, address, size as u64);
        self.shared.memory.store(address, size, value)
    }

    fn amo(&mut self, address: u64, amo: Amo, destination: u8) -> Reply<u64> {
        let reservation = match amo.op {
            AmoOp::LoadReserved => {
                self.shared.reserve(self.core, Some(address));
                None
            }
            AmoOp::StoreConditional => self.shared.reserve(self.core, None),
            _ => None,
        };
        match amo.op {
            AmoOp::LoadReserved => self.shared.memory.load(address, amo.size, destination),
            AmoOp::StoreConditional if reservation != Some(address) => {
                // Nothing is stored, but an invalid address must still fault.
                let reply = self.shared.memory.load(address, amo.size, destination);
                reply.map(|_| 1)
            }
            AmoOp::StoreConditional => {
                let reply = self.store(address, amo.size, amo.operand);
                reply.map(|()| 0)
            }
            _ => {
                self.shared.note_store(self.core, address, amo.size as u64);
                self.shared.memory.amo(address, amo, destination)
            }
        }
    }

    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        Reply::Done(())
    }

    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }

    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()> {
        self.shared.memory.cbo(address, op)
    }

    fn prefetch(&mut self, _address: u64, _op: Prefetch) {}
}

impl TimedMemory for Port<'_> {}

impl Bytes for Port<'_> {
    fn get(&mut self, address: u64, bytes: &mut [u8]) -> bool {
        self.shared.memory.get(address, bytes)
    }

    fn put(&mut self, address: u64, bytes: &[u8]) -> bool {
        if !bytes.is_empty() {
            self.shared
                .note_store(self.core, address, bytes.len() as u64);
        }
        self.shared.memory.put(address, bytes)
    }
}
