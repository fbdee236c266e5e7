//! Memory as a near-memory core sees it, with the side effects that other agents observe.

use super::{Device, Mcc, FIFOS, FIFO_STRIDE};
use crate::controller;
use crate::events::{CoreId, Event, StallReason};
use crate::host::{SCRATCHPADS, SCRATCHPAD_STRIDE};
use crate::queue::Queue;
use crate::races::{Site, SyncChannel};
use crate::scratchpad::LINE;
use cohkit_riscv::system::Bytes;
use cohkit_riscv::{Amo, Cbo, Fence, Memory, Prefetch, Reply, Sandbox, Size, TimedMemory};
use cohkit_units::Time;

/// Returns the synchronisation channel that an access of a core uses, if any, for the race detector.
fn channel_of_access(mcc: usize, address: u64) -> Option<SyncChannel> {
    match address {
        controller::SCRATCHPAD..controller::REGISTERS => {
            let line = (address - controller::SCRATCHPAD) as usize / LINE;
            Some(SyncChannel::Line(mcc, line))
        }
        controller::SHARED..FIFOS => Some(SyncChannel::Register(
            mcc,
            (address - controller::SHARED) / 8,
        )),
        _ => None,
    }
}

/// Memory interface of a near-memory core, before its permissions are checked.
pub(crate) struct MccPort<'a> {
    /// The device, with the core's memory.
    pub device: &'a mut Device,
    /// Events, and observers of the access.
    pub queue: &'a mut Queue,
    /// Index of the core.
    pub mcc: usize,
    /// Time of the access, in picoseconds.
    pub now: Time,
    /// Program counter of the accessing instruction.
    pc: u64,
    /// Additional latency of the last access, in clock cycles.
    extra_latency: u64,
    /// Reason for which the last access waits.
    pub stall_reason: StallReason,
}

impl<'a> MccPort<'a> {
    pub(crate) fn new(device: &'a mut Device, queue: &'a mut Queue, mcc: usize) -> MccPort<'a> {
        MccPort {
            device,
            queue,
            mcc,
            now: 0,
            pc: 0,
            extra_latency: 0,
            stall_reason: StallReason::Nothing,
        }
    }

    /// True if another event must happen before this access; the access is then retried.
    #[inline(always)]
    fn stalls_for_event(&mut self) -> bool {
        let is_early = self.queue.next_event_time() < self.now;
        if is_early {
            self.stall_reason = StallReason::Early;
        }
        is_early
    }

    /// Records that the access waits for an event.
    fn stall_access<T>(&mut self) -> Reply<T> {
        self.stall_reason = StallReason::Blocked;
        Reply::Wait
    }

    fn mcc_mut(&mut self) -> &mut Mcc {
        &mut self.device.mccs[self.mcc]
    }

    /// Accounts an access to the registers or the scratchpad: its latency and its counter.
    fn charge_access(&mut self, address: u64) {
        if (controller::REGISTERS..controller::STAMPS).contains(&address) {
            self.extra_latency = self.device.platform.register.value - 1;
            self.mcc_mut().counters.registers += 1;
        } else {
            self.mcc_mut().counters.scratchpad += 1;
        }
    }

    /// Returns the peer core and the offset within its FIFO of an access to the FIFOs.
    fn fifo(&self, address: u64, size: Size) -> Option<(usize, u64)> {
        let offset = address
            .checked_sub(FIFOS)
            .filter(|_| size == Size::Double)?;
        let peer = usize::try_from(offset / FIFO_STRIDE).ok()?;
        (peer < self.device.mccs.len()).then_some((peer, offset % FIFO_STRIDE))
    }

    /// Executes a load from the FIFOs; the offsets are described at [`FIFOS`]. Waits for a word, but faults if the
    /// core waits for a word of its own that is not in flight.
    fn load_fifo(&mut self, peer: usize, offset: u64) -> Reply<u64> {
        let (capacity, mcc) = (self.device.platform.fifo_words.value, self.mcc);
        let value = match offset {
            0 => {
                let fifo = &mut self.mcc_mut().fifos[peer];
                let word = fifo.front().copied().flatten();
                if word.is_some() {
                    fifo.pop_front();
                }
                word
            }
            24 => {
                let fifo = &mut self.mcc_mut().fifos[peer];
                let stream_ends = fifo.front() == Some(&None);
                if stream_ends {
                    fifo.pop_front();
                }
                Some(stream_ends.into())
            }
            8 => Some(self.mcc_mut().fifos[peer].len() as u64),
            16 => {
                let peer_mcc = &self.device.mccs[peer];
                let occupied = peer_mcc.fifos[mcc].len() + peer_mcc.words_in_flight[mcc].len();
                Some(capacity.saturating_sub(occupied as u64))
            }
            _ => return Reply::Fault,
        };
        let Some(value) = value else {
            let sends_to_itself = peer == mcc && self.mcc_mut().words_in_flight[mcc].is_empty();
            return match sends_to_itself {
                true => Reply::Fault,
                false => self.stall_access(),
            };
        };
        self.device.has_pending_event = true;
        if offset == 0 || offset == 24 && value != 0 {
            self.queue.change();
        }
        if let Some(races) = &mut self.queue.races {
            match offset {
                16 => races
                    .synchronisation
                    .acquire_from_channel(CoreId::Mcc(mcc), SyncChannel::FifoSpace(mcc, peer)),
                _ => races
                    .synchronisation
                    .acquire_from_channel(CoreId::Mcc(mcc), SyncChannel::Fifo(peer, mcc)),
            }
            if offset == 0 || offset == 24 && value != 0 {
                races.synchronisation.pop_word(peer, mcc);
            }
        }
        self.charge_access(FIFOS);
        Reply::Done(value)
    }

    /// Executes a store to the FIFOs: a word (offset 0) or an end mark (offset 24). Waits while the FIFO is full.
    fn store_fifo(&mut self, peer: usize, offset: u64, value: u64) -> Reply<()> {
        let word = match offset {
            0 => Some(value),
            24 => None,
            _ => return Reply::Fault,
        };
        let (capacity, mcc) = (self.device.platform.fifo_words.value, self.mcc);
        let peer_mcc = &mut self.device.mccs[peer];
        if (peer_mcc.fifos[mcc].len() + peer_mcc.words_in_flight[mcc].len()) as u64 >= capacity {
            // A core that waited for room in its own FIFO would never take a word out of it.
            return match peer == mcc {
                true => Reply::Fault,
                false => self.stall_access(),
            };
        }
        peer_mcc.words_in_flight[mcc].push_back(word);
        self.queue.change();
        if let Some(races) = &mut self.queue.races {
            races.synchronisation.send_word(mcc, peer, capacity);
        }
        self.mcc_mut().counters.words += 1;
        self.charge_access(FIFOS);
        let arrival = self.now + self.device.platform.fifo_latency.value;
        self.queue.add(arrival, Event::WordArrival(mcc, peer));
        Reply::Done(())
    }

    /// Reports a store that passes knowledge to other agents or starts a copy, for the race detector.
    fn report_store(&mut self, address: u64, size: Size, value: u64) {
        let Some(races) = &mut self.queue.races else {
            return;
        };
        let core_id = CoreId::Mcc(self.mcc);
        if let Some(channel) = channel_of_access(self.mcc, address) {
            races.synchronisation.release_to_channel(core_id, channel);
            if let SyncChannel::Line(_, line) = channel {
                races.core_store(
                    Site {
                        core_id,
                        pc: self.pc,
                    },
                    line as u64,
                    address,
                    size as u32,
                );
            }
        }
        let stores = address == controller::STORE;
        if stores || address == controller::FETCH {
            let (far, lines) = self.device.mccs[self.mcc].controller.transfer_registers();
            races.start_transfer(
                Site {
                    core_id,
                    pc: self.pc,
                },
                (value, far, lines),
                stores,
            );
        }
    }

    /// Records a load of state that other agents can change, or of the time, while a livelock-detection window is open.
    #[cold]
    fn record_poll(&mut self, address: u64, value: u64) {
        let (core_id, pc) = (CoreId::Mcc(self.mcc), self.pc);
        let Some(polling) = &mut self.queue.polling else {
            return;
        };
        polling.record_load(core_id, pc, address);
        match address {
            controller::NOW => polling.change(),
            controller::REGISTERS if value != controller::NONE => polling.change(),
            controller::STAMPS.. => {
                polling.record_stamp_load(self.mcc, (address - controller::STAMPS) / 16)
            }
            _ => {}
        }
    }

    /// Records a store while a livelock-detection window is open. A store that starts an operation always counts as a
    /// change.
    #[cold]
    fn record_change(&mut self, address: u64, size: Size, value: u64) {
        let starts_operation = (controller::REGISTERS..controller::SHARED).contains(&address);
        let old = match starts_operation {
            true => None,
            false => match self.mcc_mut().controller.load(address, size, 0) {
                Reply::Done(old) => Some(old),
                _ => None,
            },
        };
        if let Some(polling) = &mut self.queue.polling {
            polling.record_store(old, value);
        }
    }

    /// Sets the time of stamps to that of this access.
    fn update_controller_time(&mut self) {
        let stamp_time = self.device.stamp_time(self.now);
        self.mcc_mut().controller.set_time(stamp_time);
    }
}

impl Memory for MccPort<'_> {
    fn fetch(&mut self, address: u64) -> Reply<u16> {
        self.mcc_mut().controller.fetch(address)
    }

    #[inline(always)]
    fn load(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        if address < controller::SCRATCHPAD {
            return self.mcc_mut().controller.load(address, size, destination);
        }
        if self.stalls_for_event() {
            return Reply::Wait;
        }
        if let Some((peer, offset)) = self.fifo(address, size) {
            self.record_poll(address, 0);
            return self.load_fifo(peer, offset);
        }
        self.update_controller_time();
        self.charge_access(address);
        if let Some(races) = &mut self.queue.races {
            let (core_id, pc) = (CoreId::Mcc(self.mcc), self.pc);
            match channel_of_access(self.mcc, address) {
                Some(SyncChannel::Line(_, line)) => {
                    let scratchpad_base = SCRATCHPADS + self.mcc as u64 * SCRATCHPAD_STRIDE;
                    let host_address = scratchpad_base + (line * LINE) as u64;
                    races.core_load_word(Site { core_id, pc }, line as u64, address, host_address);
                    races.core_load(Site { core_id, pc }, line as u64, address, size as u32);
                }
                Some(channel) => races.synchronisation.acquire_from_channel(core_id, channel),
                None => {}
            }
            if let controller::FETCHES_COMPLETE | controller::STORES_COMPLETE = address {
                races.load_completed_copies(self.mcc, address == controller::STORES_COMPLETE);
            }
            // The first of a line's two stamps is that of reads.
            if address >= controller::STAMPS {
                let line = (address - controller::STAMPS) / 16;
                races.load_stamp(self.mcc, line, address.is_multiple_of(16));
            }
        }
        let reply = self.mcc_mut().controller.load(address, size, destination);
        // A notice reveals a request of the host.
        if let (controller::REGISTERS, Reply::Done(notice)) = (address, reply) {
            if let Some(races) = self
                .queue
                .races
                .as_mut()
                .filter(|_| notice != controller::NONE)
            {
                let line = (notice / 2) as usize;
                races.synchronisation.acquire_from_channel(
                    CoreId::Mcc(self.mcc),
                    SyncChannel::Request(self.mcc, line),
                );
            }
        }
        if let (true, Reply::Done(value)) = (self.queue.polling.is_some(), reply) {
            self.record_poll(address, value);
        }
        reply
    }

    #[inline(always)]
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        if address < controller::SCRATCHPAD {
            if self.queue.polling.is_some() {
                self.record_change(address, size, value);
            }
            return self.mcc_mut().controller.store(address, size, value);
        }
        if self.stalls_for_event() {
            return Reply::Wait;
        }
        if let Some((peer, offset)) = self.fifo(address, size) {
            return self.store_fifo(peer, offset, value);
        }
        self.update_controller_time();
        if self.queue.polling.is_some() {
            self.record_change(address, size, value);
        }
        let reply = self.mcc_mut().controller.store(address, size, value);
        if reply == Reply::Wait {
            return self.stall_access();
        }
        self.charge_access(address);
        self.report_store(address, size, value);
        let core_id = CoreId::Mcc(self.mcc);
        self.device
            .send_pending_responses(self.queue, self.now, self.mcc, Some(core_id));
        let path = self.device.platform.copy_path.value;
        let mcc = &mut self.device.mccs[self.mcc];
        for channel in 0..mcc.controller.copier().channels() {
            if !mcc.copy_scheduled[channel] && mcc.controller.copier().is_waiting(channel) {
                mcc.copy_scheduled[channel] = true;
                self.queue
                    .add(self.now + path / 2, Event::CopyTurn(self.mcc, channel));
            }
        }
        reply
    }

    fn amo(&mut self, address: u64, amo: Amo, destination: u8) -> Reply<u64> {
        self.queue.change();
        self.mcc_mut().controller.amo(address, amo, destination)
    }

    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        Reply::Done(())
    }

    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }

    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()> {
        self.mcc_mut().controller.cbo(address, op)
    }

    fn prefetch(&mut self, _address: u64, _prefetch: Prefetch) {}
}

impl TimedMemory for MccPort<'_> {
    fn set_cycle(&mut self, cycle: u64) {
        self.now = cycle.saturating_mul(self.device.platform.mcc_cycle.value);
        self.extra_latency = 0;
    }

    fn extra_latency(&mut self) -> u64 {
        std::mem::take(&mut self.extra_latency)
    }

    fn set_pc(&mut self, pc: u64) {
        self.pc = pc;
    }
}

/// Memory that system calls of a channel program access: its private memory, within its permissions.
pub(crate) struct CallMemory<'a>(pub Sandbox<MccPort<'a>>);

impl Bytes for CallMemory<'_> {
    fn get(&mut self, address: u64, bytes: &mut [u8]) -> bool {
        let mut addresses = address..;
        bytes.iter_mut().all(|byte| {
            let address = addresses
                .next()
                .filter(|address| *address < controller::SCRATCHPAD);
            match address.map(|address| self.0.load(address, Size::Byte, 0)) {
                Some(Reply::Done(value)) => {
                    *byte = value as u8;
                    true
                }
                _ => false,
            }
        })
    }

    fn put(&mut self, address: u64, bytes: &[u8]) -> bool {
        let mut addresses = address..;
        bytes.iter().all(|byte| {
            let address = addresses
                .next()
                .filter(|address| *address < controller::SCRATCHPAD);
            let reply = address.map(|address| self.0.store(address, Size::Byte, (*byte).into()));
            reply == Some(Reply::Done(()))
        })
    }
}
