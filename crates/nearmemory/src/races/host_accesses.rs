//! Accesses of the host: loads, stores, write-backs and fences.

use super::detector::RaceDetector;
use super::knowledge::{happens_before, SyncChannel};
use super::line_states::{byte_mask, StoredWord, WordsInTransit, WriteRecord};
use super::race::{RaceKind, Site};
use crate::events::CoreId;

impl RaceDetector {
    /// A line of far memory is read for the host's cache.
    pub(crate) fn fetch_line(&mut self, line: u64) {
        let base = self.far_memory.version(line);
        self.copies.entry(line).or_default().base = Some(base);
    }

    /// A scratchpad line is filled into the host's cache.
    pub(crate) fn fill_line(&mut self, line: u64, request: u64) {
        let knowledge = self.synchronisation.take_carried(request);
        self.copies.entry(line).or_default().knowledge = knowledge.unwrap_or_default();
    }

    /// A host core loads from a line that is cached or being filled.
    pub(crate) fn host_load(&mut self, site: Site, line: u64, is_far: bool) {
        let number = self.synchronisation.core_index(site.core_id);
        let copy = self.copies.get(&line);
        if !is_far {
            if let Some(copy) = copy {
                self.synchronisation.learn(number, &copy.knowledge);
            }
            return;
        }
        let knowledge = self.synchronisation.clock(number);
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
        let in_flight_write = far_line.filter(|far_line| {
            matches!(far_line.write.site.core_id, CoreId::Mcc(_))
                && far_line.may_be_in_flight(knowledge)
        });
        let pending_store = pending_store.map(|command| command.write.site);
        let pending_store = pending_store.or(in_flight_write.map(|far_line| far_line.write.site));
        let unordered = far_line.filter(|far_line| {
            matches!(far_line.write.site.core_id, CoreId::Mcc(_))
                && !happens_before(
                    &far_line.write.clock,
                    &self.synchronisation.knowledge(site.core_id),
                )
        });
        let race = match stale {
            Some((far_line, _)) => Some((RaceKind::StaleLoad, far_line.write.site)),
            None => pending_store.map(|first| (RaceKind::NotStored, first)),
        };
        let unordered = unordered.map(|far_line| (RaceKind::UnorderedRead, far_line.write.site));
        if let Some((kind, first)) = race.or(unordered) {
            self.log.report(kind, site, first, line);
        }
        self.record_read(site, line, true);
    }

    /// A host core stores `bytes` bytes to a line that is cached or being filled.
    pub(crate) fn host_store(&mut self, site: Site, address: u64, bytes: u32, is_far: bool) {
        let (line, number) = (
            address & !127,
            self.synchronisation.core_index(site.core_id),
        );
        let clock = self.synchronisation.clock(number).clone();
        if !is_far {
            self.host_store_word(site, address);
        }
        let copy = self.copies.entry(line).or_default();
        copy.last_store_clock.clone_from(&clock);
        copy.mask |= byte_mask(address, bytes);
        let base = copy.base;
        let knowledge = clock.clone();
        if copy.first_store.is_none() {
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
        let knowledge = self.synchronisation.knowledge(site.core_id);
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
        if let Some((kind, first)) = newer.or(unordered).or(read) {
            self.log.report(kind, site, first, line);
        }
    }

    /// A host core stores to a word of a scratchpad line, which may be evicted directly afterwards.
    fn host_store_word(&mut self, site: Site, address: u64) {
        let clock = self.synchronisation.release_clock(site.core_id);
        let number = self.words_stored;
        self.words_stored += 1;
        let copy = self.copies.entry(address & !127).or_default();
        let write = WriteRecord { site, clock };
        copy.words[(address % 128 / 8) as usize] = Some(StoredWord {
            write,
            sequence: number,
        });
    }

    /// The host drops a clean line.
    pub(crate) fn drop_line(&mut self, line: u64) {
        self.copies.remove(&line);
    }

    /// The host writes back a line of far memory or of a scratchpad. `keeps` is true if it retains the line.
    pub(crate) fn start_write_back(&mut self, line: u64, request: u64, keeps: bool, is_far: bool) {
        let Some(copy) = self.copies.get_mut(&line) else {
            return;
        };
        let first_store = copy.first_store.take();
        let is_whole = std::mem::take(&mut copy.mask) == u128::MAX;
        let (base, stored) = (copy.base.unwrap_or(0), copy.last_store_clock.clone());
        let words = std::mem::take(&mut copy.words);
        if !keeps {
            self.copies.remove(&line);
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
            if let CoreId::Host(core) = write.site.core_id {
                self.synchronisation.advance_time(core, stored[core] + 1);
            }
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

    /// A host core cleans or flushes a line; its next fence waits for that.
    pub(crate) fn clean_line(&mut self, core: usize, line: u64) {
        self.cleaned[core].push(line);
    }

    /// A host core completes a fence, which has waited for its cleaned lines.
    pub(crate) fn complete_fence(&mut self, core: usize) {
        self.synchronisation.acquire_acknowledgements(core);
        for line in std::mem::take(&mut self.cleaned[core]) {
            let far_line = self.far_memory.line_mut(line);
            if let Some(far_line) =
                far_line.filter(|far_line| matches!(far_line.write.site.core_id, CoreId::Host(_)))
            {
                far_line.record_arrival(self.synchronisation.clock(core));
            }
        }
    }

    /// A host core loads from its own memory, where a copy engine may have stored.
    #[inline(always)]
    pub(crate) fn host_load_main(&mut self, core: usize, address: u64) {
        if self.has_main_copies {
            self.synchronisation
                .acquire_from_channel(CoreId::Host(core), SyncChannel::Main(address & !127));
        }
    }
}
