//! Accesses of hosts: loads, stores, write-backs and fences.

use super::detector::RaceDetector;
use super::knowledge::{happens_before, Clock, SyncChannel};
use super::line_states::{byte_mask, FarLine, StoredWord, WordsInTransit, WriteRecord};
use super::race::{RaceKind, Site};
use crate::events::CoreId;

impl RaceDetector {
    /// A line of far memory is read for the cache of a host.
    pub(crate) fn fetch_line(&mut self, host: usize, line: u64) {
        let base = self.far_memory.version(line);
        self.copies.entry((host, line)).or_default().base = Some(base);
    }

    /// A line of far memory arrives for the cache of a host, and the loads of `cores` (a bit mask) that wait for it
    /// complete.
    pub(crate) fn complete_loads(&mut self, host: usize, cores: u64, line: u64) {
        for number in self.synchronisation.numbers_of_cores(host, cores) {
            let time = self.synchronisation.time(number);
            self.far_memory.complete_read(number, line, time);
        }
    }

    /// A scratchpad line is filled into the cache of a host. The cores whose loads wait for it (a bit mask) gain the
    /// knowledge that it carries.
    pub(crate) fn fill_line(&mut self, host: usize, cores: u64, line: u64, request: u64) {
        let knowledge = self.synchronisation.take_carried(request);
        let knowledge = knowledge.unwrap_or_default();
        for number in self.synchronisation.numbers_of_cores(host, cores) {
            self.synchronisation.learn(number, &knowledge);
        }
        self.copies.entry((host, line)).or_default().knowledge = knowledge;
    }

    /// A core of a host loads from a line that is cached, or being filled if not `is_cached`: the load then completes
    /// when the line arrives. The cores of a host are one agent, so its knowledge decides on a race.
    pub(crate) fn host_load(&mut self, site: Site, line: u64, is_far: bool, is_cached: bool) {
        let CoreId::Host { host, .. } = site.core_id else {
            return;
        };
        let copy = self.copies.get(&(host, line));
        if !is_far {
            if let Some(copy) = copy.filter(|_| is_cached) {
                let number = self.synchronisation.core_index(site.core_id);
                self.synchronisation.learn(number, &copy.knowledge);
            }
            return;
        }
        let knowledge = &self.synchronisation.knowledge(site.core_id);
        let far_line = self.far_memory.line(line);
        let stale = far_line.zip(copy).filter(|(far_line, copy)| {
            copy.base.is_some_and(|base| far_line.version > base)
                && happens_before(&far_line.write.clock, knowledge)
        });
        let mut commands = self.commands.iter().flatten();
        let pending_store = commands.find(|command| {
            let is_within = line >= command.far && line < command.far + command.lines * 128;
            command.stores && is_within && happens_before(&command.write.clock, knowledge)
        });
        // The data may have reached far memory, but no synchronisation guarantees it.
        let core_line =
            far_line.filter(|far_line| matches!(far_line.write.site.core_id, CoreId::Mcc(_)));
        let in_flight_write = core_line.filter(|far_line| far_line.may_be_in_flight(knowledge));
        let pending_store = pending_store.map(|command| command.write.site);
        let pending_store = pending_store.or(in_flight_write.map(|far_line| far_line.write.site));
        let unordered =
            core_line.filter(|far_line| !happens_before(&far_line.write.clock, knowledge));
        let race = match stale {
            Some((far_line, _)) => Some((RaceKind::StaleLoad, far_line.write.site)),
            None => pending_store.map(|first| (RaceKind::NotStored, first)),
        };
        let unordered = unordered.map(|far_line| (RaceKind::UnorderedRead, far_line.write.site));
        let race =
            race.or_else(|| self.unfinished_store_of_other_host(site.core_id, line, knowledge));
        if let Some((kind, first)) = race.or(unordered) {
            self.log.report(kind, site, first, line);
        }
        self.record_read(site, line, is_cached);
    }

    /// Returns the race of a load with a store of another host: the loading host, whose knowledge is `knowledge`, does
    /// not know of the store, or not that it has reached far memory.
    fn unfinished_store_of_other_host(
        &self,
        core_id: CoreId,
        line: u64,
        knowledge: &Clock,
    ) -> Option<(RaceKind, Site)> {
        if self.hosts == 1 {
            return None;
        }
        let pending_stores = self.pending_stores(line, Some(core_id));
        let mut known_stores = pending_stores.iter();
        let known_store = known_stores.find(|first| happens_before(&first.clock, knowledge));
        let far_line = self.far_line_of_other_host(core_id, line);
        let in_flight = far_line.filter(|far_line| far_line.may_be_in_flight(knowledge));
        let stale = known_store.or(in_flight.map(|far_line| &far_line.write));
        let written = far_line.map(|far_line| &far_line.write);
        let mut stores = pending_stores.iter().chain(written);
        let unordered = stores.find(|first| !happens_before(&first.clock, knowledge));
        let stale = stale.map(|first| (RaceKind::StaleFetch, first.site));
        stale.or(unordered.map(|first| (RaceKind::UnorderedRead, first.site)))
    }

    /// Returns the race of a store with one of another host: the storing core does not know that the other store has
    /// reached far memory. `knowledge` is the storing core's.
    fn unfinished_store_before_store(
        &self,
        core_id: CoreId,
        line: u64,
        knowledge: &Clock,
    ) -> Option<(RaceKind, Site)> {
        if self.hosts == 1 {
            return None;
        }
        let pending_stores = self.pending_stores(line, Some(core_id));
        let pending = pending_stores
            .first()
            .map(|first| (RaceKind::BothWrite, first.site));
        let far_line = self.far_line_of_other_host(core_id, line);
        let unordered = far_line.filter(|far_line| !far_line.has_arrived(knowledge));
        pending.or(unordered.map(|far_line| (RaceKind::UnorderedStores, far_line.write.site)))
    }

    /// Returns a line of far memory that another host has written last.
    fn far_line_of_other_host(&self, core_id: CoreId, line: u64) -> Option<&FarLine> {
        self.far_memory.line(line).filter(|far_line| {
            let writer = far_line.write.site.core_id;
            matches!(writer, CoreId::Host { .. }) && !writer.is_same_agent(core_id)
        })
    }

    /// A core of a host stores `bytes` bytes to a line that is cached or being filled.
    pub(crate) fn host_store(&mut self, site: Site, address: u64, bytes: u32, is_far: bool) {
        let CoreId::Host { host, .. } = site.core_id else {
            return;
        };
        let line = address & !127;
        // The cores of the host are one agent: the store carries the knowledge of all.
        let knowledge = self.synchronisation.knowledge(site.core_id);
        if !is_far {
            self.host_store_word(site, host, address);
        }
        let copy = self.copies.entry((host, line)).or_default();
        copy.last_store_clock.clone_from(&knowledge);
        copy.mask |= byte_mask(address, bytes);
        let base = copy.base;
        if copy.first_store.is_none() {
            let clock = knowledge.clone();
            copy.first_store = Some(WriteRecord { site, clock });
        }
        if !is_far {
            return;
        }
        // A program that knows of the newer version may intend to overwrite the whole line.
        let far_line = self.far_memory.line(line);
        let newer = far_line.filter(|far_line| {
            base.is_some_and(|base| far_line.version > base)
                && !happens_before(&far_line.write.clock, &knowledge)
        });
        let unordered = far_line.filter(|far_line| {
            matches!(far_line.write.site.core_id, CoreId::Mcc(_))
                && !happens_before(&far_line.write.clock, &knowledge)
        });
        let unordered = unordered.map(|far_line| (RaceKind::UnorderedStores, far_line.write.site));
        let read = self
            .far_memory
            .conflicting_read(site.core_id, line, &knowledge);
        let read = read.map(|read| (RaceKind::UnorderedRead, read));
        let newer = newer.map(|far_line| (RaceKind::BothWrite, far_line.write.site));
        let other_host = || self.unfinished_store_before_store(site.core_id, line, &knowledge);
        let race = newer.or_else(other_host).or(unordered).or(read);
        if let Some((kind, first)) = race {
            self.log.report(kind, site, first, line);
        }
    }

    /// A core of a host stores to a word of a scratchpad line, which may be evicted directly afterwards.
    fn host_store_word(&mut self, site: Site, host: usize, address: u64) {
        let clock = self.synchronisation.release_clock(site.core_id);
        let number = self.words_stored;
        self.words_stored += 1;
        let copy = self.copies.entry((host, address & !127)).or_default();
        let write = WriteRecord { site, clock };
        copy.words[(address % 128 / 8) as usize] = Some(StoredWord {
            write,
            sequence: number,
        });
    }

    /// A host drops a clean line.
    pub(crate) fn drop_line(&mut self, host: usize, line: u64) {
        self.copies.remove(&(host, line));
    }

    /// A host writes back a line of far memory or of a scratchpad. `keeps` is true if it retains the line.
    pub(crate) fn start_write_back(
        &mut self,
        (host, line): (usize, u64),
        request: u64,
        keeps: bool,
        is_far: bool,
    ) {
        let Some(copy) = self.copies.get_mut(&(host, line)) else {
            return;
        };
        let first_store = copy.first_store.take();
        let is_whole = std::mem::take(&mut copy.mask) == u128::MAX;
        let (base, stored) = (copy.base.unwrap_or(0), copy.last_store_clock.clone());
        let words = std::mem::take(&mut copy.words);
        if !keeps {
            self.copies.remove(&(host, line));
        }
        if is_far {
            if let Some(write) = first_store {
                self.in_flight
                    .insert(request, (line, base, write, is_whole));
            }
            return;
        }
        // A scratchpad line carries the knowledge of its last store.
        if let Some(write) = first_store {
            let core = self.synchronisation.core_index(write.site.core_id);
            self.synchronisation.advance_time(core, stored[core] + 1);
            let knowledge = write.clock;
            self.words_in_transit
                .insert(request, WordsInTransit { words, knowledge });
        }
        self.synchronisation.carry(request, stored);
    }

    /// A write-back reaches far memory.
    pub(crate) fn complete_write_back(&mut self, request: u64) {
        let Some((line, base, write, is_whole)) = self.in_flight.remove(&request) else {
            return;
        };
        let newer =
            (self.far_memory.line(line)).filter(|far_line| far_line.version > base && !is_whole);
        if let Some(first) = newer.map(|far_line| far_line.write.site) {
            self.log
                .report(RaceKind::Overwritten, write.site, first, line);
        }
        self.create_version(line, write);
    }

    /// A core of a host cleans or flushes a line; its next fence waits for that.
    pub(crate) fn clean_line(&mut self, core_id: CoreId, line: u64) {
        let core = self.synchronisation.core_index(core_id);
        self.cleaned[core].push(line);
    }

    /// A core of a host completes a fence, which has waited for its cleaned lines. Lines that another host has written
    /// are not among them: a fence does not wait for other hosts.
    pub(crate) fn complete_fence(&mut self, core_id: CoreId) {
        let core = self.synchronisation.core_index(core_id);
        self.synchronisation.acquire_acknowledgements(core);
        for line in std::mem::take(&mut self.cleaned[core]) {
            let far_line = self.far_memory.line_mut(line);
            if let Some(far_line) =
                far_line.filter(|far_line| far_line.write.site.core_id.is_same_agent(core_id))
            {
                far_line.record_arrival(self.synchronisation.clock(core));
            }
        }
    }

    /// A core of a host loads from the host's own memory, where a copy engine may have stored.
    #[inline(always)]
    pub(crate) fn host_load_main(&mut self, (host, core): (usize, usize), address: u64) {
        if self.has_main_copies {
            let channel = SyncChannel::Main(host, address & !127);
            self.synchronisation
                .acquire_from_channel(CoreId::Host { host, core }, channel);
        }
    }
}
