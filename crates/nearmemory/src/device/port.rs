//! Memory as a near-memory core sees it, with the side effects that other agents observe.

use super::{Device, Mcc, FIFOS, FIFO_STRIDE};
use crate::controller;
use crate::events::{CoreId, Event, StallReason, Time};
use crate::host::{SCRATCHPADS, SCRATCHPAD_STRIDE};
use crate::queue::Queue;
use crate::races::{Site, Way};
use crate::scratchpad::LINE;
use cohkit_riscv::system::Bytes;
use cohkit_riscv::{Amo, Cbo, Fence, Memory, Prefetch, Reply, Sandbox, Size, TimedMemory};

/// Returns the synchronisation channel that an access of a core uses, if any, for the race detector.
fn channel_of_access(mcc: usize, at: u64) -> Option<Way> {
    match at {
        controller::SCRATCHPAD..controller::REGISTERS => {
            let line = (at - controller::SCRATCHPAD) as usize / LINE;
            Some(Way::Line(mcc, line))
        }
        controller::SHARED..FIFOS => Some(Way::Register(mcc, (at - controller::SHARED) / 8)),
        _ => None,
    }
}

/// Memory interface of a near-memory core, before its permissions are checked.
pub(crate) struct MccPort<'a> {
    pub device: &'a mut Device,
    pub queue: &'a mut Queue,
    pub mcc: usize,
    pub now: Time,
    /// Program counter of the accessing instruction.
    pc: u64,
    extra_latency: u64,
    pub why: StallReason,
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
            why: StallReason::Nothing,
        }
    }

    #[inline(always)]
    fn early(&mut self) -> bool {
        let early = self.queue.next_event_time() < self.now;
        if early {
            self.why = StallReason::Early;
        }
        early
    }

    fn stall_access<T>(&mut self) -> Reply<T> {
        self.why = StallReason::Blocked;
        Reply::Wait
    }

    fn own(&mut self) -> &mut Mcc {
        &mut self.device.mccs[self.mcc]
    }

    /// Accounts an access to the registers or the scratchpad: its latency and its counter.
    fn takes(&mut self, at: u64) {
        if (controller::REGISTERS..controller::STAMPS).contains(&at) {
            self.extra_latency = self.device.platform.register.value - 1;
            self.own().counters.registers += 1;
        } else {
            self.own().counters.scratchpad += 1;
        }
    }

    /// Returns the peer core and the offset within its FIFO of an access to the FIFOs.
    fn fifo(&self, at: u64, size: Size) -> Option<(usize, u64)> {
        let offset = at.checked_sub(FIFOS).filter(|_| size == Size::Double)?;
        let other = usize::try_from(offset / FIFO_STRIDE).ok()?;
        (other < self.device.mccs.len()).then_some((other, offset % FIFO_STRIDE))
    }

    fn load_fifo(&mut self, other: usize, offset: u64) -> Reply<u64> {
        let (words, mine) = (self.device.platform.fifo_words.value, self.mcc);
        let value = match offset {
            0 => {
                let fifo = &mut self.own().fifos[other];
                let word = fifo.front().copied().flatten();
                if word.is_some() {
                    fifo.pop_front();
                }
                word
            }
            24 => {
                let fifo = &mut self.own().fifos[other];
                let ends = fifo.front() == Some(&None);
                if ends {
                    fifo.pop_front();
                }
                Some(ends.into())
            }
            8 => Some(self.own().fifos[other].len() as u64),
            16 => {
                let there = &self.device.mccs[other];
                let taken = there.fifos[mine].len() + there.words_in_flight[mine].len();
                Some(words.saturating_sub(taken as u64))
            }
            _ => return Reply::Fault,
        };
        let Some(value) = value else {
            let sends_to_itself = other == mine && self.own().words_in_flight[mine].is_empty();
            return match sends_to_itself {
                true => Reply::Fault,
                false => self.stall_access(),
            };
        };
        self.device.has_pending_event = true;
        if offset == 0 || offset == 24 && value != 0 {
            self.queue.change();
        }
        if let Some(watch) = &mut self.queue.watch {
            match offset {
                16 => watch.acquire_from_channel(CoreId::Mcc(mine), Way::Room(mine, other)),
                _ => watch.acquire_from_channel(CoreId::Mcc(mine), Way::Fifo(other, mine)),
            }
            if offset == 0 || offset == 24 && value != 0 {
                watch.pop_word(other, mine);
            }
        }
        self.takes(FIFOS);
        Reply::Done(value)
    }

    fn store_fifo(&mut self, other: usize, offset: u64, value: u64) -> Reply<()> {
        let word = match offset {
            0 => Some(value),
            24 => None,
            _ => return Reply::Fault,
        };
        let (words, mine) = (self.device.platform.fifo_words.value, self.mcc);
        let there = &mut self.device.mccs[other];
        if (there.fifos[mine].len() + there.words_in_flight[mine].len()) as u64 >= words {
            // A core that waited for room in its own FIFO would never take a word out of it.
            return match other == mine {
                true => Reply::Fault,
                false => self.stall_access(),
            };
        }
        there.words_in_flight[mine].push_back(word);
        self.queue.change();
        if let Some(watch) = &mut self.queue.watch {
            watch.sends_word(mine, other, words);
        }
        self.own().counters.words += 1;
        self.takes(FIFOS);
        let arrives = self.now + self.device.platform.fifo_latency.value;
        self.queue.add(arrives, Event::Passed(mine, other));
        Reply::Done(())
    }

    /// Reports a store that passes knowledge to other agents or starts a copy, for the race detector.
    fn watch_store(&mut self, at: u64, size: Size, value: u64) {
        let Some(watch) = &mut self.queue.watch else {
            return;
        };
        let core_id = CoreId::Mcc(self.mcc);
        if let Some(way) = channel_of_access(self.mcc, at) {
            watch.release_to_channel(core_id, way);
            if let Way::Line(_, line) = way {
                watch.changes(
                    Site {
                        core_id,
                        pc: self.pc,
                    },
                    line as u64,
                    at,
                    size as u32,
                );
            }
        }
        let stores = at == controller::STORE;
        if stores || at == controller::FETCH {
            let (far, lines) = self.device.mccs[self.mcc].controller.next();
            watch.commands(
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
    fn watch_poll(&mut self, at: u64, value: u64) {
        let (core_id, pc) = (CoreId::Mcc(self.mcc), self.pc);
        let Some(polling) = &mut self.queue.polling else {
            return;
        };
        polling.loads(core_id, pc, at);
        match at {
            controller::NOW => polling.change(),
            controller::REGISTERS if value != controller::NONE => polling.change(),
            controller::STAMPS.. => polling.loads_stamp(self.mcc, (at - controller::STAMPS) / 16),
            _ => {}
        }
    }

    /// Records a store while a livelock-detection window is open. A store that starts an operation always counts as a
    /// change.
    #[cold]
    fn watch_change(&mut self, at: u64, size: Size, value: u64) {
        let begins = (controller::REGISTERS..controller::SHARED).contains(&at);
        let old = match begins {
            true => None,
            false => match self.own().controller.load(at, size, 0) {
                Reply::Done(old) => Some(old),
                _ => None,
            },
        };
        if let Some(polling) = &mut self.queue.polling {
            polling.stored(old, value);
        }
    }

    fn set_clock(&mut self) {
        let clock = self.device.clock(self.now);
        self.own().controller.at(clock);
    }
}

impl Memory for MccPort<'_> {
    fn fetch(&mut self, at: u64) -> Reply<u16> {
        self.own().controller.fetch(at)
    }

    #[inline(always)]
    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        if at < controller::SCRATCHPAD {
            return self.own().controller.load(at, size, to);
        }
        if self.early() {
            return Reply::Wait;
        }
        if let Some((other, offset)) = self.fifo(at, size) {
            self.watch_poll(at, 0);
            return self.load_fifo(other, offset);
        }
        self.set_clock();
        self.takes(at);
        if let Some(watch) = &mut self.queue.watch {
            let (core_id, pc) = (CoreId::Mcc(self.mcc), self.pc);
            match channel_of_access(self.mcc, at) {
                Some(Way::Line(_, line)) => {
                    let own = SCRATCHPADS + self.mcc as u64 * SCRATCHPAD_STRIDE;
                    let place = own + (line * LINE) as u64;
                    watch.loads_word(Site { core_id, pc }, line as u64, at, place);
                    watch.reads(Site { core_id, pc }, line as u64, at, size as u32);
                }
                Some(way) => watch.acquire_from_channel(core_id, way),
                None => {}
            }
            // The first of a line's two stamps is that of reads.
            if at >= controller::STAMPS {
                let line = (at - controller::STAMPS) / 16;
                watch.load_stamp(self.mcc, line, at.is_multiple_of(16));
            }
        }
        let reply = self.own().controller.load(at, size, to);
        // A notice reveals a request of the host.
        if let (controller::REGISTERS, Reply::Done(notice)) = (at, reply) {
            if let Some(watch) = self
                .queue
                .watch
                .as_mut()
                .filter(|_| notice != controller::NONE)
            {
                let line = (notice / 2) as usize;
                watch.acquire_from_channel(CoreId::Mcc(self.mcc), Way::Request(self.mcc, line));
            }
        }
        if let (true, Reply::Done(value)) = (self.queue.polling.is_some(), reply) {
            self.watch_poll(at, value);
        }
        reply
    }

    #[inline(always)]
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        if at < controller::SCRATCHPAD {
            if self.queue.polling.is_some() {
                self.watch_change(at, size, value);
            }
            return self.own().controller.store(at, size, value);
        }
        if self.early() {
            return Reply::Wait;
        }
        if let Some((other, offset)) = self.fifo(at, size) {
            return self.store_fifo(other, offset, value);
        }
        self.set_clock();
        if self.queue.polling.is_some() {
            self.watch_change(at, size, value);
        }
        let reply = self.own().controller.store(at, size, value);
        if reply == Reply::Wait {
            return self.stall_access();
        }
        self.takes(at);
        self.watch_store(at, size, value);
        let core_id = CoreId::Mcc(self.mcc);
        self.device
            .answers(self.queue, self.now, self.mcc, Some(core_id));
        let path = self.device.platform.copy_path.value;
        let mcc = &mut self.device.mccs[self.mcc];
        if !mcc.copying && mcc.controller.is_waiting() {
            mcc.copying = true;
            self.queue.add(self.now + path / 2, Event::Copy(self.mcc));
        }
        reply
    }

    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        self.queue.change();
        self.own().controller.amo(at, amo, to)
    }

    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        Reply::Done(())
    }

    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }

    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()> {
        self.own().controller.cbo(at, what)
    }

    fn prefetch(&mut self, _at: u64, _what: Prefetch) {}
}

impl TimedMemory for MccPort<'_> {
    fn at(&mut self, cycle: u64) {
        self.now = cycle.saturating_mul(self.device.platform.mcc_cycle.value);
        self.extra_latency = 0;
    }

    fn extra_latency(&mut self) -> u64 {
        std::mem::take(&mut self.extra_latency)
    }

    fn by(&mut self, pc: u64) {
        self.pc = pc;
    }
}

/// Memory that system calls of a channel program access: its private memory, within its permissions.
pub(crate) struct CallMemory<'a>(pub Sandbox<MccPort<'a>>);

impl Bytes for CallMemory<'_> {
    fn get(&mut self, at: u64, bytes: &mut [u8]) -> bool {
        let mut addresses = at..;
        bytes.iter_mut().all(|byte| {
            let at = addresses.next().filter(|at| *at < controller::SCRATCHPAD);
            match at.map(|at| self.0.load(at, Size::Byte, 0)) {
                Some(Reply::Done(value)) => {
                    *byte = value as u8;
                    true
                }
                _ => false,
            }
        })
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> bool {
        let mut addresses = at..;
        bytes.iter().all(|byte| {
            let at = addresses.next().filter(|at| *at < controller::SCRATCHPAD);
            let stored = at.map(|at| self.0.store(at, Size::Byte, (*byte).into()));
            stored == Some(Reply::Done(()))
        })
    }
}
