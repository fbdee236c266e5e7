//! Memory as a host core sees it: caches, far memory, scratchpads and registers.

use super::{
    is_within_line, merge_bytes, read_word, write_word, Host, Miss, OutstandingRequest, Region,
    Waiter, LINE_BYTES, REGISTERS, REGISTERS_STRIDE, UNCACHED,
};
use crate::cache::Copy;
use crate::control;
use crate::events::{Request, StallReason};
use crate::queue::Queue;
use crate::races::Site;
use crate::scratchpad::LINE;
use cohkit_riscv::{Amo, Cbo, Fence, Memory, Prefetch, Reply, Size, TimedMemory};
use cohkit_units::Time;

/// Accesses in the sets of a fence.
mod fence_bits {
    pub(super) const WRITE: u8 = 1;
    pub(super) const READ: u8 = 2;
    pub(super) const OUTPUT: u8 = 4;
    pub(super) const INPUT: u8 = 8;
}

/// Memory interface of a host core.
pub(crate) struct HostPort<'a> {
    /// The host, with its caches and memory.
    pub host: &'a mut Host,
    /// Events, and observers of the access.
    pub queue: &'a mut Queue,
    /// Index of the host core.
    pub core: usize,
    /// Time of the access, in picoseconds.
    pub now: Time,
    /// Program counter of the accessing instruction.
    pc: u64,
    /// Additional latency of the last access, in picoseconds.
    extra_latency: Time,
    /// Reason for which the last access waits.
    pub stall_reason: StallReason,
    /// True if the access has sent a request, which other agents must see before the core runs on.
    has_sent_request: bool,
}

impl<'a> HostPort<'a> {
    /// Creates the interface for a turn of a core.
    pub(crate) fn new(host: &'a mut Host, queue: &'a mut Queue, core: usize) -> HostPort<'a> {
        HostPort {
            host,
            queue,
            core,
            now: 0,
            pc: 0,
            extra_latency: 0,
            stall_reason: StallReason::Nothing,
            has_sent_request: false,
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

    /// Returns the location of the accessing instruction.
    fn site(&self) -> Site {
        Site {
            core_id: self.host.core_id(self.core),
            pc: self.pc,
        }
    }

    /// Reports a completed fence to the race detector.
    #[inline(always)]
    fn record_fence(&mut self) {
        if let Some(races) = &mut self.queue.races {
            races.complete_fence(self.host.core_id(self.core));
        }
    }

    /// Reports a load from a line of far memory or of a scratchpad to the race detector. `is_cached` is false if the
    /// load waits for the line.
    #[inline(always)]
    fn report_load(&mut self, line: u64, is_cached: bool) {
        let site = self.site();
        if let Some(races) = &mut self.queue.races {
            races.host_load(site, line, line < UNCACHED, is_cached);
        }
    }

    /// Reports a store to far memory or a scratchpad to the race detector.
    #[inline(always)]
    fn report_store(&mut self, address: u64, size: Size) {
        let site = self.site();
        if let Some(races) = &mut self.queue.races {
            races.host_store(site, address, size as u32, address < UNCACHED);
        }
    }

    /// Records a load of state that other agents can change, for the livelock detection.
    #[inline(always)]
    fn record_poll(&mut self, address: u64) {
        if let Some(polling) = &mut self.queue.polling {
            polling.record_load(self.host.core_id(self.core), self.pc, address);
        }
    }

    /// Records a store to host memory, for the livelock detection.
    #[inline(always)]
    fn record_main_store(&mut self, address: u64, size: Size, value: u64) {
        if let Some(polling) = &mut self.queue.polling {
            let old = match self.host.main.memory.load(address, size, 0) {
                Reply::Done(old) => Some(old),
                _ => None,
            };
            polling.record_store(old, value);
        }
    }

    /// Records that the access waits for a resource or a response.
    fn stall_access<T>(&mut self) -> Reply<T> {
        self.stall_reason = StallReason::Blocked;
        Reply::Wait
    }

    /// Records that a load waits until fewer lines are outstanding for which the core's loads wait: until one of the
    /// host's own memory arrives, or until a response.
    fn stall_load(&mut self) -> Reply<u64> {
        let Some(end) = self.host.next_main_load_end(self.core, self.now) else {
            return self.stall_access();
        };
        let stalled_at = &mut self.host.cores[self.core].stalled_at;
        let is_repeated = std::mem::replace(stalled_at, self.now) == self.now;
        let next_event_time = self.queue.next_event_time();
        // A response may come first, or the event of another agent, after which the load is tried again. If it has been
        // tried again at this time already, that event may be the trial of another core, which waits for this one.
        self.stall_reason = StallReason::Until(match is_repeated && next_event_time <= self.now {
            true => end,
            false => end.min(next_event_time),
        });
        Reply::Wait
    }

    /// Returns a wait reply if a load of the host's own memory must wait for loads of other memory.
    #[inline(always)]
    fn stall_before_main_load(&mut self, address: u64) -> Option<Reply<u64>> {
        let core = &self.host.cores[self.core];
        if core.loaded_lines == 0 || core.l1.has(address & !(LINE_BYTES - 1)) {
            return None;
        }
        if self.stalls_for_event() {
            return Some(Reply::Wait);
        }
        let has_room = self.host.has_load_room(self.core, self.now);
        (!has_room).then(|| self.stall_load())
    }

    /// Returns the copy of a line in the last-level cache, if any, and sets its additional latency.
    #[inline(always)]
    fn cached_copy(&mut self, line: u64) -> Option<&mut Copy> {
        if !self.host.llc.has(line) {
            return None;
        }
        self.host.use_line(line);
        self.extra_latency = self.host.hit_llc(self.core, line, self.now);
        self.host.llc.find(line)?.copy.as_deref_mut()
    }

    /// Returns the outstanding miss of a line; requests the line if there is none. `None` if too many misses are
    /// outstanding, or if the line on its way will be dropped.
    fn miss_of(&mut self, line: u64) -> Option<&mut Miss> {
        let (core, host) = (self.core, &mut *self.host);
        let core_bit = 1 << core;
        if host.will_drop(line) {
            return None;
        }
        let l1_cores = host.misses.get(&line).map_or(0, |miss| miss.l1_cores);
        if l1_cores & core_bit == 0 {
            if host.cores[core].misses >= host.platform.l1_misses.value {
                return None;
            }
            if !host.misses.contains_key(&line) {
                if host.is_full() {
                    return None;
                }
                host.counters.far_misses += 1;
                self.request_line(line);
            }
            self.host.cores[core].misses += 1;
        }
        self.host.use_miss(line);
        let miss = self.host.misses.get_mut(&line)?;
        miss.l1_cores |= core_bit;
        Some(miss)
    }

    /// Requests a line from the device.
    fn request_line(&mut self, line: u64) {
        let miss = Miss {
            waiters: Vec::new(),
            stored: Box::new([0; LINE]),
            mask: 0,
            storing_cores: 0,
            l1_cores: 0,
            is_unused: false,
            is_dropped: false,
        };
        self.host.misses.insert(line, miss);
        let core = self.core;
        let (outstanding, request) = (
            OutstandingRequest::Line { line, core },
            Request::ReadLine(line),
        );
        let number = self
            .host
            .send_request(self.queue, self.now, outstanding, request);
        // The core that owns the scratchpad may learn of this read.
        if let Some(races) = self.queue.races.as_mut().filter(|_| line > UNCACHED) {
            let core_id = self.host.core_id(core);
            races.synchronisation.send_request(core_id, number);
        }
        self.has_sent_request = true;
    }

    /// Returns a wait reply if the access must wait, for other events or for room. Otherwise it may evict a line first.
    fn stall_before_access<T>(&mut self, line: u64) -> Option<Reply<T>> {
        // An access that hits may start hardware prefetches.
        let is_shared =
            self.host.is_shared() || self.host.has_prefetchers() || !self.host.llc.has(line);
        if is_shared && self.stalls_for_event() {
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

    /// Loads from a cacheable line of far memory or of a scratchpad: from the last-level cache, or later from the
    /// response to a miss.
    fn load_line(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        if !is_within_line(address, size) {
            return Reply::Misaligned;
        }
        let line = address & !(LINE_BYTES - 1);
        if let Some(reply) = self.stall_before_access(line) {
            return reply;
        }
        self.record_poll(address);
        if let Some(copy) = self.cached_copy(line) {
            let value = read_word(&copy.data, address, size);
            self.report_load(line, true);
            self.train_prefetcher(line);
            return Reply::Done(value);
        }
        let core = self.core;
        let is_waiting = self.host.is_loading(core, line);
        if !is_waiting && !self.host.has_load_room(core, self.now) {
            return self.stall_load();
        }
        match self.miss_of(line) {
            Some(miss) => {
                // Stores to the missing line so far are older than this load.
                let mut mask = [0; LINE];
                merge_bytes(&mut mask, &[255; LINE], miss.mask);
                miss.waiters.push(Waiter {
                    core,
                    destination,
                    address,
                    size,
                    stored: read_word(&miss.stored, address, size),
                    mask: read_word(&mask, address, size),
                });
                self.host.cores[core].loads += 1;
                self.host.cores[core].loaded_lines += u64::from(!is_waiting);
                self.report_load(line, false);
                self.train_prefetcher(line);
                Reply::Later
            }
            None => self.stall_access(),
        }
    }

    /// Stores to a cacheable line: to the copy in the last-level cache, or to the bytes that are merged into the line
    /// when it arrives. The core does not wait for the line.
    fn store_line(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        if !is_within_line(address, size) {
            return Reply::Misaligned;
        }
        let line = address & !(LINE_BYTES - 1);
        if let Some(reply) = self.stall_before_access(line) {
            return reply;
        }
        self.host.drop_before_store(self.queue, self.now, line);
        if let Some(copy) = self.cached_copy(line) {
            let old_value = read_word(&copy.data, address, size);
            let is_changed = !copy.dirty || old_value != value;
            write_word(&mut copy.data, address, size, value);
            copy.dirty = true;
            if is_changed {
                self.queue.change();
            }
            self.report_store(address, size);
            return Reply::Done(());
        }
        let core = self.core;
        match self.miss_of(line) {
            Some(miss) => {
                write_word(&mut miss.stored, address, size, value);
                miss.mask |= ((1 << size as u32) - 1) << (address % LINE_BYTES);
                miss.storing_cores |= 1 << core;
                self.queue.change();
                self.report_store(address, size);
                Reply::Done(())
            }
            None => self.stall_access(),
        }
    }

    /// Returns true if an uncached access must wait: a core's uncached accesses are in order, so that none begins before
    /// an earlier load has its value. Stores need no answer.
    fn waits_for_uncached_load(&self) -> bool {
        self.host.cores[self.core].uncached_loads > 0
    }

    /// Loads uncached from far memory or from a register: the value is delivered by the response.
    fn load_word(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        if self.stalls_for_event() {
            return Reply::Wait;
        }
        if self.host.is_full() || self.waits_for_uncached_load() {
            return self.stall_access();
        }
        self.record_poll(address);
        let core = self.core;
        self.host.cores[core].loads += 1;
        self.host.cores[core].uncached_loads += 1;
        let request = Request::ReadWord(address, size);
        let outstanding = OutstandingRequest::Word { core, destination };
        self.host
            .send_request(self.queue, self.now, outstanding, request);
        self.has_sent_request = true;
        Reply::Later
    }

    /// Stores uncached to far memory or to a register; a later fence waits for the acknowledgement.
    fn store_word(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        if self.stalls_for_event() {
            return Reply::Wait;
        }
        if self.host.is_full() || self.waits_for_uncached_load() {
            return self.stall_access();
        }
        self.queue.change();
        let core = self.core;
        self.host.cores[core].writes += 1;
        let request = Request::WriteWord(address, size, value);
        let outstanding = OutstandingRequest::Write { core };
        let number = self
            .host
            .send_request(self.queue, self.now, outstanding, request);
        if let Some(races) = self.queue.races.as_mut().filter(|_| address >= REGISTERS) {
            let core_id = self.host.core_id(core);
            races.synchronisation.send_request(core_id, number);
        }
        self.has_sent_request = true;
        Reply::Done(())
    }

    /// Executes a cache-management instruction on a line: clean, flush or invalidate.
    fn manage_line(&mut self, line: u64, op: Cbo) -> Reply<()> {
        if self.stalls_for_event() {
            return Reply::Wait;
        }
        if self.host.is_full() || self.host.misses.contains_key(&line) {
            return self.stall_access();
        }
        let core_bit = 1 << self.core;
        if op != Cbo::Invalidate {
            // A write-back that an eviction started must also be waited for.
            let mut added_waits = 0;
            for outstanding in self.host.outstanding.values_mut() {
                match outstanding {
                    OutstandingRequest::WriteBack {
                        line: written_line,
                        cores,
                    } if *written_line == line => {
                        added_waits += u64::from(*cores & core_bit == 0);
                        *cores |= core_bit;
                    }
                    _ => {}
                }
            }
            self.host.cores[self.core].write_backs += added_waits;
        }
        if let Some(races) = &mut self.queue.races {
            races.clean_line(self.host.core_id(self.core), line);
        }
        let Some(way) = self.host.llc.find(line) else {
            return Reply::Done(());
        };
        let is_dirty = way.copy.as_ref().is_some_and(|copy| copy.dirty);
        if is_dirty {
            self.queue.change();
        }
        if is_dirty && op != Cbo::Invalidate {
            self.host.counters.cleaned += 1;
            self.host.cores[self.core].write_backs += 1;
        }
        if op == Cbo::Clean {
            if let Some(copy) = way.copy.as_deref_mut().filter(|copy| copy.dirty) {
                copy.dirty = false;
                let data = copy.data;
                let (queue, now) = (&mut *self.queue, self.now);
                self.host
                    .start_write_back(queue, now, line, data, core_bit, true);
            }
        } else {
            let mut way = self.host.llc.remove(line);
            if let Some(copy) = way.as_mut().and_then(|way| way.copy.as_mut()) {
                copy.dirty &= op == Cbo::Flush;
            }
            self.host
                .handle_eviction(self.queue, self.now, way, core_bit);
        }
        Reply::Done(())
    }

    /// Prefetches a line of far memory or of a scratchpad, into the core's own cache too if `into_l1`. The prefetch is
    /// dropped if the line on its way will be dropped.
    fn prefetch_line(&mut self, line: u64, into_l1: bool) {
        let (core, core_bit) = (self.core, 1 << self.core);
        let l1_is_full = self.host.cores[core].misses >= self.host.platform.l1_misses.value;
        if self.host.llc.has(line) {
            self.host.use_line(line);
            if into_l1 && self.host.cores[core].l1.find(line).is_none() {
                self.host.fill_core_cache(core, line, self.now);
            }
            return;
        }
        if self.host.will_drop(line) {
            self.host.counters.dropped += 1;
            return;
        }
        self.host.use_miss(line);
        let l1_cores = self.host.misses.get(&line).map(|miss| miss.l1_cores);
        let allocates_l1 = into_l1 && l1_cores.is_none_or(|l1_cores| l1_cores & core_bit == 0);
        if allocates_l1 && l1_is_full || l1_cores.is_none() && self.host.is_full() {
            self.host.counters.dropped += 1;
            return;
        }
        if l1_cores.is_none() {
            self.host.counters.prefetches += 1;
            self.request_line(line);
        }
        if allocates_l1 {
            self.host.cores[core].misses += 1;
            if let Some(miss) = self.host.misses.get_mut(&line) {
                miss.l1_cores |= core_bit;
            }
        }
    }
}

impl HostPort<'_> {
    /// Lets the core's hardware prefetcher observe a load of a line, and requests the lines that it proposes.
    fn train_prefetcher(&mut self, line: u64) {
        if !self.host.has_prefetchers() || !self.host.is_far(line) {
            return;
        }
        let prefetcher = &mut self.host.cores[self.core].prefetcher;
        for number in prefetcher.observe(line / LINE_BYTES) {
            let line = number * LINE_BYTES;
            let is_known = self.host.llc.has(line) || self.host.misses.contains_key(&line);
            if is_known || !self.host.is_far(line) {
                continue;
            }
            if self.host.is_full() {
                self.host.counters.hardware_dropped += 1;
                continue;
            }
            self.host.counters.hardware_prefetches += 1;
            self.request_line(line);
            if let Some(miss) = self.host.misses.get_mut(&line) {
                miss.is_unused = true;
            }
        }
    }
}

impl Memory for HostPort<'_> {
    const SPLIT: bool = true;

    fn fetch(&mut self, address: u64) -> Reply<u16> {
        self.host.main.memory.fetch(address)
    }

    #[inline(always)]
    fn load(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        match self.host.region(address, size as u64) {
            Region::Main if self.host.shares_main() && self.stalls_for_event() => Reply::Wait,
            Region::Main => {
                if let Some(reply) = self.stall_before_main_load(address) {
                    return reply;
                }
                if let Some(races) = &mut self.queue.races {
                    races.host_load_main((self.host.number, self.core), address);
                }
                self.extra_latency = self
                    .host
                    .load_main(self.core, address, self.now, self.queue);
                self.host.main.memory.load(address, size, destination)
            }
            Region::Cached => self.load_line(address, size, destination),
            Region::Uncached(address) if address.is_multiple_of(size as u64) => {
                let reply = self.load_word(address, size, destination);
                self.host.counters.uncached += u64::from(reply == Reply::Later);
                reply
            }
            Region::Register if size == Size::Double && address.is_multiple_of(8) => {
                let reply = self.load_word(address, size, destination);
                self.host.counters.registers += u64::from(reply == Reply::Later);
                reply
            }
            Region::Uncached(_) | Region::Register => Reply::Misaligned,
            Region::Unmapped => Reply::Fault,
        }
    }

    #[inline(always)]
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        match self.host.region(address, size as u64) {
            Region::Main if self.host.shares_main() && self.stalls_for_event() => Reply::Wait,
            Region::Main => {
                self.host
                    .access_main(self.core, address, self.now, self.queue);
                self.record_main_store(address, size, value);
                match self.host.main.port(self.core) {
                    Some(mut port) => port.store(address, size, value),
                    None => Reply::Fault,
                }
            }
            Region::Cached => self.store_line(address, size, value),
            Region::Uncached(address) if address.is_multiple_of(size as u64) => {
                let reply = self.store_word(address, size, value);
                self.host.counters.uncached += u64::from(reply == Reply::Done(()));
                reply
            }
            Region::Register if size == Size::Double && address.is_multiple_of(8) => {
                let reply = self.store_word(address, size, value);
                self.host.counters.registers += u64::from(reply == Reply::Done(()));
                let offset = address % REGISTERS_STRIDE;
                if offset == control::GIVE_AT && self.host.main_range.contains(&value) {
                    self.host.is_main_granted = true;
                }
                reply
            }
            Region::Uncached(_) | Region::Register => Reply::Misaligned,
            Region::Unmapped => Reply::Fault,
        }
    }

    fn amo(&mut self, address: u64, amo: Amo, destination: u8) -> Reply<u64> {
        // An atomic access to non-coherent memory would be atomic for no other agent.
        if !matches!(self.host.region(address, amo.size as u64), Region::Main) {
            return Reply::Fault;
        }
        let drops_prefetches = amo.acquire && self.host.has_unused_prefetches();
        if (self.host.shares_main() || drops_prefetches) && self.stalls_for_event() {
            return Reply::Wait;
        }
        if drops_prefetches {
            self.host.drop_unused_prefetches(self.queue, self.now);
        }
        self.extra_latency = self
            .host
            .access_main(self.core, address, self.now, self.queue);
        let watched = self.queue.polling.is_some();
        let old = watched.then(|| self.host.main.memory.load(address, amo.size, 0));
        let reply = match self.host.main.port(self.core) {
            Some(mut port) => port.amo(address, amo, destination),
            None => Reply::Fault,
        };
        if old.is_some_and(|old| old != self.host.main.memory.load(address, amo.size, 0)) {
            self.queue.change();
        }
        reply
    }

    /// Waits for the accesses that the fence orders. Stores become visible in order once their lines are in the cache, and
    /// uncached stores reach the device in order. A fence that orders only stores therefore waits neither for
    /// acknowledgements of flushes nor for those of uncached stores.
    fn fence(&mut self, fence: Fence) -> Reply<()> {
        let core = &self.host.cores[self.core];
        let precedes = |accesses: u8| fence.predecessors & accesses != 0;
        let orders_more_than = |accesses: u8| fence.successors & !accesses != 0;
        let (orders_loads, orders_stores) = (
            precedes(fence_bits::READ | fence_bits::INPUT),
            precedes(fence_bits::WRITE),
        );
        let orders_write_backs = orders_stores && orders_more_than(fence_bits::WRITE);
        let orders_writes = precedes(fence_bits::OUTPUT) && orders_more_than(fence_bits::OUTPUT);
        let is_waiting = orders_loads && core.loads > 0
            || orders_write_backs && core.write_backs > 0
            || orders_writes && core.writes > 0;
        if is_waiting || orders_stores && !self.host.misses.is_empty() {
            if self.stalls_for_event() {
                return Reply::Wait;
            }
            let stores = |miss: &Miss| miss.storing_cores >> self.core & 1 != 0;
            if is_waiting || orders_stores && self.host.misses.values().any(stores) {
                return self.stall_access();
            }
        }
        if orders_loads && fence.successors != 0 && self.host.has_unused_prefetches() {
            if self.stalls_for_event() {
                return Reply::Wait;
            }
            self.host.drop_unused_prefetches(self.queue, self.now);
        }
        if orders_write_backs {
            self.record_fence();
        }
        Reply::Done(())
    }

    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }

    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()> {
        match self.host.region(address, 1) {
            Region::Cached => self.manage_line(address & !(LINE_BYTES - 1), op),
            Region::Unmapped => Reply::Fault,
            // Host memory is coherent, and the remaining regions are uncached.
            _ => Reply::Done(()),
        }
    }

    fn prefetch(&mut self, address: u64, op: Prefetch) {
        let into_l1 = Prefetch::level(address) == 1;
        let line = address & !(LINE_BYTES - 1);
        match self.host.region(address, 1) {
            Region::Cached if op != Prefetch::Execute => self.prefetch_line(line, into_l1),
            Region::Main if into_l1 => {
                self.host
                    .access_main(self.core, address, self.now, self.queue);
            }
            Region::Main if !self.host.llc.has(line) => {
                self.host.fetch_main(line, self.now, self.queue);
            }
            _ => {}
        }
    }
}

impl TimedMemory for HostPort<'_> {
    fn set_cycle(&mut self, cycle: u64) {
        self.now = cycle.saturating_mul(self.host.platform.host_cycle.value);
        self.extra_latency = 0;
        self.has_sent_request = false;
    }

    fn extra_latency(&mut self) -> u64 {
        let cycle = self.host.platform.host_cycle.value;
        std::mem::take(&mut self.extra_latency).div_ceil(cycle)
    }

    fn set_pc(&mut self, pc: u64) {
        self.pc = pc;
    }

    fn must_stop(&self) -> bool {
        self.has_sent_request
    }
}
