//! Memory as a host core sees it: caches, far memory, scratchpads and registers.

use super::{
    merge, read, within_line, write, Host, Miss, Region, Sent, Waiter, LINE_BYTES, REGISTERS,
    REGISTERS_STRIDE, UNCACHED,
};
use crate::cache::Copy;
use crate::control;
use crate::events::{CoreId, Request, StallReason, Time};
use crate::queue::Queue;
use crate::races::Site;
use crate::scratchpad::LINE;
use cohkit_riscv::{Amo, Cbo, Fence, Memory, Prefetch, Reply, Size, TimedMemory};

/// Memory interface of a host core.
pub(crate) struct HostPort<'a> {
    pub host: &'a mut Host,
    pub queue: &'a mut Queue,
    pub core: usize,
    pub now: Time,
    /// Program counter of the accessing instruction.
    pc: u64,
    /// Additional latency of the last access, in picoseconds.
    extra_latency: Time,
    /// Reason for which the last access waits.
    pub why: StallReason,
    /// True if the access has sent a request, which other agents must see before the core runs on.
    begun: bool,
}

impl<'a> HostPort<'a> {
    pub(crate) fn new(host: &'a mut Host, queue: &'a mut Queue, core: usize) -> HostPort<'a> {
        HostPort {
            host,
            queue,
            core,
            now: 0,
            pc: 0,
            extra_latency: 0,
            why: StallReason::Nothing,
            begun: false,
        }
    }

    /// True if another event must happen before this access; the access is then retried.
    #[inline(always)]
    fn early(&mut self) -> bool {
        let early = self.queue.next_event_time() < self.now;
        if early {
            self.why = StallReason::Early;
        }
        early
    }

    fn site(&self) -> Site {
        Site {
            core_id: CoreId::Host(self.core),
            pc: self.pc,
        }
    }

    #[inline(always)]
    fn fenced(&mut self) {
        if let Some(watch) = &mut self.queue.watch {
            watch.fenced(self.core);
        }
    }

    #[inline(always)]
    fn watch_load(&mut self, line: u64) {
        let site = self.site();
        if let Some(watch) = &mut self.queue.watch {
            watch.loads(site, line, line < UNCACHED);
        }
    }

    #[inline(always)]
    fn watch_store(&mut self, at: u64, size: Size) {
        let site = self.site();
        if let Some(watch) = &mut self.queue.watch {
            watch.stores(site, at, size as u32, at < UNCACHED);
        }
    }

    /// Records a load of state that other agents can change, for the livelock detection.
    #[inline(always)]
    fn poll(&mut self, at: u64) {
        if let Some(polling) = &mut self.queue.polling {
            polling.loads(CoreId::Host(self.core), self.pc, at);
        }
    }

    /// Records a store to host memory, for the livelock detection.
    #[inline(always)]
    fn change_main(&mut self, at: u64, size: Size, value: u64) {
        if let Some(polling) = &mut self.queue.polling {
            let old = match self.host.main.memory.load(at, size, 0) {
                Reply::Done(old) => Some(old),
                _ => None,
            };
            polling.stored(old, value);
        }
    }

    fn stall_access<T>(&mut self) -> Reply<T> {
        self.why = StallReason::Blocked;
        Reply::Wait
    }

    /// Returns the copy of a line in the last-level cache, if any, and sets its additional latency.
    #[inline(always)]
    fn copy(&mut self, line: u64) -> Option<&mut Copy> {
        if !self.host.llc.has(line) {
            return None;
        }
        self.extra_latency = self.host.near(self.core, line, self.now);
        self.host.llc.find(line)?.copy.as_deref_mut()
    }

    /// Returns the outstanding miss of a line; requests the line if there is none. `None` if too many misses are
    /// outstanding.
    fn miss(&mut self, line: u64) -> Option<&mut Miss> {
        let (core, host) = (self.core, &mut *self.host);
        let bit = 1 << core;
        let first = host.misses.get(&line).map_or(0, |miss| miss.first_for);
        if first & bit == 0 {
            if host.cores[core].misses >= host.platform.l1_misses.value {
                return None;
            }
            if !host.misses.contains_key(&line) {
                if host.is_full() {
                    return None;
                }
                host.counters.far_misses += 1;
                self.ask(line);
            }
            self.host.cores[core].misses += 1;
        }
        let miss = self.host.misses.get_mut(&line)?;
        miss.first_for |= bit;
        Some(miss)
    }

    /// Requests a line from the device.
    fn ask(&mut self, line: u64) {
        let miss = Miss {
            waiters: Vec::new(),
            stored: Box::new([0; LINE]),
            mask: 0,
            storing: 0,
            first_for: 0,
        };
        self.host.misses.insert(line, miss);
        let core = self.core;
        let (sent, request) = (Sent::Line { line, core }, Request::ReadLine(line));
        let number = self.host.send(self.queue, self.now, sent, request);
        // The core that owns the scratchpad may learn of this read.
        if let Some(watch) = self.queue.watch.as_mut().filter(|_| line > UNCACHED) {
            watch.sends(CoreId::Host(core), number);
        }
        self.begun = true;
    }

    /// Returns a wait reply if the access must wait, for other events or for room. Otherwise it may evict a line first.
    fn late<T>(&mut self, line: u64) -> Option<Reply<T>> {
        let shared = self.host.is_shared() || !self.host.llc.has(line);
        if shared && self.early() {
            return Some(Reply::Wait);
        }
        if self.host.evictions.is_some() {
            if self.host.is_full() {
                return Some(self.stall_access());
            }
            self.host.evict(self.queue, self.now);
        }
        None
    }

    fn load_line(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        if !within_line(at, size) {
            return Reply::Misaligned;
        }
        let line = at & !(LINE_BYTES - 1);
        if let Some(reply) = self.late(line) {
            return reply;
        }
        self.poll(at);
        if let Some(copy) = self.copy(line) {
            let value = read(&copy.data, at, size);
            self.watch_load(line);
            return Reply::Done(value);
        }
        let core = self.core;
        match self.miss(line) {
            Some(miss) => {
                // Stores to the missing line so far are older than this load.
                let mut mask = [0; LINE];
                merge(&mut mask, &[255; LINE], miss.mask);
                miss.waiters.push(Waiter {
                    core,
                    to,
                    at,
                    size,
                    stored: read(&miss.stored, at, size),
                    mask: read(&mask, at, size),
                });
                self.host.cores[core].loads += 1;
                self.watch_load(line);
                Reply::Later
            }
            None => self.stall_access(),
        }
    }

    fn store_line(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        if !within_line(at, size) {
            return Reply::Misaligned;
        }
        let line = at & !(LINE_BYTES - 1);
        if let Some(reply) = self.late(line) {
            return reply;
        }
        if let Some(copy) = self.copy(line) {
            let old = read(&copy.data, at, size);
            let changes = !copy.dirty || old != value;
            write(&mut copy.data, at, size, value);
            copy.dirty = true;
            if changes {
                self.queue.change();
            }
            self.watch_store(at, size);
            return Reply::Done(());
        }
        let core = self.core;
        match self.miss(line) {
            Some(miss) => {
                write(&mut miss.stored, at, size, value);
                miss.mask |= ((1 << size as u32) - 1) << (at % LINE_BYTES);
                miss.storing |= 1 << core;
                self.queue.change();
                self.watch_store(at, size);
                Reply::Done(())
            }
            None => self.stall_access(),
        }
    }

    fn load_word(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        if self.early() {
            return Reply::Wait;
        }
        if self.host.is_full() {
            return self.stall_access();
        }
        self.poll(at);
        let core = self.core;
        self.host.cores[core].loads += 1;
        let request = Request::ReadWord(at, size);
        let sent = Sent::Word { core, to };
        self.host.send(self.queue, self.now, sent, request);
        self.begun = true;
        Reply::Later
    }

    fn store_word(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        if self.early() {
            return Reply::Wait;
        }
        if self.host.is_full() {
            return self.stall_access();
        }
        self.queue.change();
        let core = self.core;
        self.host.cores[core].writes += 1;
        let request = Request::WriteWord(at, size, value);
        let sent = Sent::Write { core };
        let number = self.host.send(self.queue, self.now, sent, request);
        if let Some(watch) = self.queue.watch.as_mut().filter(|_| at >= REGISTERS) {
            watch.sends(CoreId::Host(core), number);
        }
        self.begun = true;
        Reply::Done(())
    }

    /// Executes a cache-management instruction on a line: clean, flush or invalidate.
    fn manage(&mut self, line: u64, what: Cbo) -> Reply<()> {
        if self.early() {
            return Reply::Wait;
        }
        if self.host.is_full() || self.host.misses.contains_key(&line) {
            return self.stall_access();
        }
        let bit = 1 << self.core;
        if what != Cbo::Invalidate {
            // A write-back that an eviction started must also be waited for.
            let mut waits = 0;
            for sent in self.host.sent.values_mut() {
                match sent {
                    Sent::WriteBack { line: other, cores } if *other == line => {
                        waits += u64::from(*cores & bit == 0);
                        *cores |= bit;
                    }
                    _ => {}
                }
            }
            self.host.cores[self.core].writes += waits;
        }
        if let Some(watch) = &mut self.queue.watch {
            watch.cleans(self.core, line);
        }
        let Some(way) = self.host.llc.find(line) else {
            return Reply::Done(());
        };
        let dirty = way.copy.as_ref().is_some_and(|copy| copy.dirty);
        if dirty {
            self.queue.change();
        }
        if dirty && what != Cbo::Invalidate {
            self.host.counters.cleaned += 1;
            self.host.cores[self.core].writes += 1;
        }
        if what == Cbo::Clean {
            if let Some(copy) = way.copy.as_deref_mut().filter(|copy| copy.dirty) {
                copy.dirty = false;
                let data = copy.data;
                let (queue, now) = (&mut *self.queue, self.now);
                self.host.write_back(queue, now, line, data, bit, true);
            }
        } else {
            let mut way = self.host.llc.remove(line);
            if let Some(copy) = way.as_mut().and_then(|way| way.copy.as_mut()) {
                copy.dirty &= what == Cbo::Flush;
            }
            self.host.evicted(self.queue, self.now, way, bit);
        }
        Reply::Done(())
    }

    /// Prefetches a line of far memory or of a scratchpad, into the core's own cache too if `first`.
    fn hint(&mut self, line: u64, first: bool) {
        let (core, bit) = (self.core, 1 << self.core);
        let own_full = self.host.cores[core].misses >= self.host.platform.l1_misses.value;
        if self.host.llc.has(line) {
            if first && self.host.cores[core].own.find(line).is_none() {
                self.host.fill_core_cache(core, line, self.now);
            }
            return;
        }
        let known = self.host.misses.get(&line).map(|miss| miss.first_for);
        let for_own = first && known.is_none_or(|for_own| for_own & bit == 0);
        if for_own && own_full || known.is_none() && self.host.is_full() {
            self.host.counters.dropped += 1;
            return;
        }
        if known.is_none() {
            self.host.counters.prefetches += 1;
            self.ask(line);
        }
        if for_own {
            self.host.cores[core].misses += 1;
            if let Some(miss) = self.host.misses.get_mut(&line) {
                miss.first_for |= bit;
            }
        }
    }
}

impl Memory for HostPort<'_> {
    const SPLIT: bool = true;

    fn fetch(&mut self, at: u64) -> Reply<u16> {
        self.host.main.memory.fetch(at)
    }

    #[inline(always)]
    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        match self.host.region(at, size as u64) {
            Region::Main if self.host.shares_main() && self.early() => Reply::Wait,
            Region::Main => {
                if let Some(watch) = &mut self.queue.watch {
                    watch.loads_main(self.core, at);
                }
                self.extra_latency = self.host.main(self.core, at, self.now, self.queue);
                self.host.main.memory.load(at, size, to)
            }
            Region::Cached => self.load_line(at, size, to),
            Region::Uncached(at) if at.is_multiple_of(size as u64) => {
                let reply = self.load_word(at, size, to);
                self.host.counters.uncached += u64::from(reply == Reply::Later);
                reply
            }
            Region::Register if size == Size::Double && at.is_multiple_of(8) => {
                let reply = self.load_word(at, size, to);
                self.host.counters.registers += u64::from(reply == Reply::Later);
                reply
            }
            Region::Uncached(_) | Region::Register => Reply::Misaligned,
            Region::Nothing => Reply::Fault,
        }
    }

    #[inline(always)]
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        match self.host.region(at, size as u64) {
            Region::Main if self.host.shares_main() && self.early() => Reply::Wait,
            Region::Main => {
                self.host.main(self.core, at, self.now, self.queue);
                self.change_main(at, size, value);
                match self.host.main.port(self.core) {
                    Some(mut port) => port.store(at, size, value),
                    None => Reply::Fault,
                }
            }
            Region::Cached => self.store_line(at, size, value),
            Region::Uncached(at) if at.is_multiple_of(size as u64) => {
                let reply = self.store_word(at, size, value);
                self.host.counters.uncached += u64::from(reply == Reply::Done(()));
                reply
            }
            Region::Register if size == Size::Double && at.is_multiple_of(8) => {
                let reply = self.store_word(at, size, value);
                self.host.counters.registers += u64::from(reply == Reply::Done(()));
                let offset = at % REGISTERS_STRIDE;
                if offset == control::GIVE_AT && self.host.main_range.contains(&value) {
                    self.host.given = true;
                }
                reply
            }
            Region::Uncached(_) | Region::Register => Reply::Misaligned,
            Region::Nothing => Reply::Fault,
        }
    }

    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        // An atomic access to non-coherent memory would be atomic for no other agent.
        if !matches!(self.host.region(at, amo.size as u64), Region::Main) {
            return Reply::Fault;
        }
        if self.host.shares_main() && self.early() {
            return Reply::Wait;
        }
        self.extra_latency = self.host.main(self.core, at, self.now, self.queue);
        let watched = self.queue.polling.is_some();
        let old = watched.then(|| self.host.main.memory.load(at, amo.size, 0));
        let reply = match self.host.main.port(self.core) {
            Some(mut port) => port.amo(at, amo, to),
            None => Reply::Fault,
        };
        if old.is_some_and(|old| old != self.host.main.memory.load(at, amo.size, 0)) {
            self.queue.change();
        }
        reply
    }

    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        let core = &self.host.cores[self.core];
        let waits = core.loads > 0 || core.writes > 0;
        if !waits && self.host.misses.is_empty() {
            self.fenced();
            return Reply::Done(());
        }
        if self.early() {
            return Reply::Wait;
        }
        let stores = |miss: &Miss| miss.storing >> self.core & 1 != 0;
        if waits || self.host.misses.values().any(stores) {
            return self.stall_access();
        }
        self.fenced();
        Reply::Done(())
    }

    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }

    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()> {
        match self.host.region(at, 1) {
            Region::Cached => self.manage(at & !(LINE_BYTES - 1), what),
            Region::Nothing => Reply::Fault,
            // Host memory is coherent, and the remaining regions are uncached.
            _ => Reply::Done(()),
        }
    }

    fn prefetch(&mut self, at: u64, what: Prefetch) {
        let first = Prefetch::level(at) == 1;
        let line = at & !(LINE_BYTES - 1);
        match self.host.region(at, 1) {
            Region::Cached if what != Prefetch::Execute => self.hint(line, first),
            Region::Main if first => {
                self.host.main(self.core, at, self.now, self.queue);
            }
            Region::Main if !self.host.llc.has(line) => {
                self.host.fetch_main(line, self.now, self.queue);
            }
            _ => {}
        }
    }
}

impl TimedMemory for HostPort<'_> {
    fn at(&mut self, cycle: u64) {
        self.now = cycle.saturating_mul(self.host.platform.host_cycle.value);
        self.extra_latency = 0;
        self.begun = false;
    }

    fn extra_latency(&mut self) -> u64 {
        let cycle = self.host.platform.host_cycle.value;
        std::mem::take(&mut self.extra_latency).div_ceil(cycle)
    }

    fn by(&mut self, pc: u64) {
        self.pc = pc;
    }

    fn stops(&self) -> bool {
        self.begun
    }
}
