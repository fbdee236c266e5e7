//! Accesses of near-memory cores to their scratchpads, and transfers of their copy engines.

use super::detector::RaceDetector;
use super::knowledge::{happens_before, SyncChannel};
use super::line_states::{byte_mask, Command, LineCopy, LineOrigin, WriteRecord};
use super::race::{RaceKind, Site};
use crate::events::CoreId;
use std::collections::BTreeSet;

impl RaceDetector {
    /// A core loads a word of its scratchpad line and gains the knowledge of the host's store to that word. Earlier
    /// stores to the line have then arrived; later ones may have or not. `line` is the line's address for the host.
    pub(crate) fn core_load_word(&mut self, site: Site, scratchpad: u64, address: u64, line: u64) {
        let CoreId::Mcc(mcc) = site.core_id else {
            return;
        };
        let number = self.synchronisation.core_index(site.core_id);
        let Some(words) = self.words.get_mut(&(mcc, scratchpad)) else {
            return;
        };
        let Some(word) = &words.words[(address % 128 / 8) as usize] else {
            return;
        };
        if happens_before(&word.write.clock, self.synchronisation.clock(number)) {
            return;
        }
        let is_partial = words.early_load.is_some_and(|early| early < word.sequence);
        let first = word.write.site;
        self.synchronisation.learn(number, &word.write.clock);
        let number = word.sequence;
        let mut newer_words = words.words.iter().flatten();
        words.early_load = newer_words
            .any(|word| word.sequence > number)
            .then_some(number);
        if is_partial {
            self.log.report(RaceKind::HalfWritten, site, first, line);
        }
    }

    /// A core starts a transfer of its copy engine: first scratchpad line, far address and number of lines. `stores`
    /// is true for a transfer from the scratchpad.
    pub(crate) fn start_transfer(
        &mut self,
        site: Site,
        (scratchpad, far, lines): (u64, u64, u64),
        stores: bool,
    ) {
        let CoreId::Mcc(mcc) = site.core_id else {
            return;
        };
        let number = self.command_count;
        self.command_count += 1;
        for i in 0..lines {
            self.check_copy_conflict(site, scratchpad + i, !stores, true);
            let line_copy = LineCopy {
                command: number,
                site,
                stores,
                far: far + i * 128,
                version: 0,
                is_complete: false,
            };
            let line_copies = self.line_copies.entry((mcc, scratchpad + i)).or_default();
            line_copies.push(line_copy);
        }
        let clock = self.synchronisation.release_clock(site.core_id);
        self.commands[mcc].push_back(Command {
            far,
            scratchpad,
            lines,
            write: WriteRecord { site, clock },
            stores,
            sequence: number,
        });
    }

    /// A core stores `bytes` bytes to its scratchpad line.
    pub(crate) fn core_store(&mut self, site: Site, scratchpad: u64, address: u64, bytes: u32) {
        self.check_copy_conflict(site, scratchpad, true, false);
        let CoreId::Mcc(mcc) = site.core_id else {
            return;
        };
        if let Some(origin) = self.origins.get_mut(&(mcc, scratchpad)) {
            origin.mask |= byte_mask(address, bytes);
        }
    }

    /// A core loads `bytes` bytes from its scratchpad line.
    pub(crate) fn core_load(&mut self, site: Site, scratchpad: u64, address: u64, bytes: u32) {
        self.check_copy_conflict(site, scratchpad, false, false);
        let CoreId::Mcc(mcc) = site.core_id else {
            return;
        };
        let Some(origin) = self.origins.get_mut(&(mcc, scratchpad)) else {
            return;
        };
        if byte_mask(address, bytes) & !origin.mask == 0 {
            return;
        }
        origin.loaded = true;
        let number = self.synchronisation.core_index(site.core_id);
        let knowledge = self.synchronisation.clock(number);
        let far_line = self.far_memory.line(origin.far);
        origin.stale |= far_line.is_some_and(|far_line| {
            far_line.version > origin.version && happens_before(&far_line.write.clock, knowledge)
        });
    }

    /// A core uses or changes its scratchpad line, directly or (`copies`) by its copy engine. Fetching a line twice is
    /// not reported, because it observes neither result.
    pub(crate) fn check_copy_conflict(
        &mut self,
        site: Site,
        scratchpad: u64,
        changes: bool,
        copies: bool,
    ) {
        let CoreId::Mcc(mcc) = site.core_id else {
            return;
        };
        let Some(line_copies) = self.line_copies.get(&(mcc, scratchpad)) else {
            return;
        };
        let conflicts = |line_copy: &&LineCopy| match line_copy.stores {
            true => changes,
            false => !(changes && copies),
        };
        let conflict = line_copies.iter().find(conflicts).map(|line_copy| {
            let kind = if line_copy.stores {
                RaceKind::Reused
            } else {
                RaceKind::NotFetched
            };
            (kind, line_copy.site, line_copy.far)
        });
        if let Some((kind, first, far)) = conflict {
            self.log.report(kind, site, first, far);
        }
    }

    /// A copy engine completes an access. The core knows of the completion only once it has loaded the stamp.
    pub(crate) fn complete_line_copy(&mut self, mcc: usize, access: u64) {
        let Some((scratchpad, command)) = self.accesses.remove(&(mcc, access)) else {
            return;
        };
        if let Some(line_copy) = self.find_line_copy(mcc, scratchpad, command) {
            line_copy.is_complete = true;
        }
    }

    /// Returns the copy of a scratchpad line that belongs to a command.
    fn find_line_copy(
        &mut self,
        mcc: usize,
        scratchpad: u64,
        command: u64,
    ) -> Option<&mut LineCopy> {
        let mut line_copies = self.line_copies.get_mut(&(mcc, scratchpad))?.iter_mut();
        line_copies.find(|line_copy| line_copy.command == command)
    }

    /// A core loads a stamp of its scratchpad line: that of reads (completed stores) if `stores`, otherwise that of
    /// writes (completed fetches).
    pub(crate) fn load_stamp(&mut self, mcc: usize, scratchpad: u64, stores: bool) {
        self.synchronisation.acquire_from_channel(
            CoreId::Mcc(mcc),
            SyncChannel::Request(mcc, scratchpad as usize),
        );
        self.observe_copies(mcc, scratchpad, stores, u64::MAX);
    }

    /// A core loads the count of its complete stores, or of its complete fetches: all lines of these copies are
    /// complete.
    pub(crate) fn load_completed_copies(&mut self, mcc: usize, stores: bool) {
        let copies = || {
            let own_lines = self
                .line_copies
                .iter()
                .filter(|((core, _), _)| *core == mcc);
            let copies =
                own_lines.flat_map(|((_, line), copies)| copies.iter().map(|copy| (*line, copy)));
            copies.filter(|(_, copy)| copy.stores == stores)
        };
        let incomplete = copies()
            .filter(|(_, copy)| !copy.is_complete)
            .map(|(_, copy)| copy.command)
            .min();
        let limit = incomplete.unwrap_or(u64::MAX);
        let lines: BTreeSet<u64> = copies()
            .filter(|(_, copy)| copy.command < limit)
            .map(|(line, _)| line)
            .collect();
        for line in lines {
            self.observe_copies(mcc, line, stores, limit);
        }
    }

    /// A core observes the completion of the copies of a scratchpad line that were begun before the command `limit`.
    fn observe_copies(&mut self, mcc: usize, scratchpad: u64, stores: bool, limit: u64) {
        let Some(line_copies) = self.line_copies.get_mut(&(mcc, scratchpad)) else {
            return;
        };
        let number = self.synchronisation.core_index(CoreId::Mcc(mcc));
        let host = self.starting_hosts[mcc];
        let (synchronisation, far_memory) = (&mut self.synchronisation, &mut self.far_memory);
        line_copies.retain(|line_copy| {
            let is_observed =
                line_copy.is_complete && line_copy.stores == stores && line_copy.command < limit;
            if is_observed && !stores {
                far_memory.complete_read(number, line_copy.far, synchronisation.time(number));
                // A line of a host's own memory carries the host's knowledge.
                let channel = SyncChannel::Main(host, line_copy.far);
                synchronisation.acquire_from_channel(CoreId::Mcc(mcc), channel);
            }
            let far_line = far_memory
                .line_mut(line_copy.far)
                .filter(|_| is_observed && stores);
            if let Some(far_line) =
                far_line.filter(|far_line| far_line.version == line_copy.version)
            {
                far_line.record_arrival(synchronisation.clock(number));
            }
            !is_observed
        });
        if line_copies.is_empty() {
            self.line_copies.remove(&(mcc, scratchpad));
        }
    }

    /// A copy engine reads or writes its next line of a direction, at address `line`. Transfers of one direction are
    /// copied in the order of their commands. `is_far` is false for the own memory of the host that has started the
    /// program.
    pub(crate) fn copy_line(
        &mut self,
        mcc: usize,
        (line, stores): (u64, bool),
        access: u64,
        is_far: bool,
    ) {
        let commands = &mut self.commands[mcc];
        let position = commands.iter().position(|command| command.stores == stores);
        let Some(position) = position else {
            return;
        };
        let command = &mut commands[position];
        let write = command.write.clone();
        let (scratchpad, number) = (command.scratchpad, command.sequence);
        command.far += 128;
        command.scratchpad += 1;
        command.lines -= 1;
        if command.lines == 0 {
            commands.remove(position);
        }
        self.accesses.insert((mcc, access), (scratchpad, number));
        if !stores {
            self.words.remove(&(mcc, scratchpad));
            self.origins.remove(&(mcc, scratchpad));
        }
        if !is_far {
            // A host's own memory is never stale. A copy of it carries knowledge, as an access of a core does.
            let host = self.starting_hosts[mcc];
            let host_core = CoreId::Host { host, core: 0 };
            let knowledge = match stores {
                true => write.clock,
                false => self.synchronisation.release_clock(host_core),
            };
            (self.synchronisation).add_to_channel(SyncChannel::Main(host, line), &knowledge);
            self.has_main_copies = true;
            return;
        }
        match stores {
            true => self.store_line(mcc, (scratchpad, line), number, write),
            false => self.fetch_line_copy(mcc, (scratchpad, line), &write),
        }
    }

    /// A copy engine stores a scratchpad line to far memory.
    fn store_line(
        &mut self,
        mcc: usize,
        (scratchpad, line): (u64, u64),
        command: u64,
        write: WriteRecord,
    ) {
        let cached_store = self.cached_stores(line).next();
        let both_write = cached_store.map(|first| (RaceKind::BothWrite, first.site));
        // A whole new line, written by a core without reading the old one, may be intended to overwrite.
        let origin = self.origins.get_mut(&(mcc, scratchpad));
        let mut origin = origin.filter(|origin| origin.far == line);
        let newer = origin.as_ref().and_then(|origin| {
            let far_line = self.far_memory.line(line)?;
            let is_known = happens_before(&far_line.write.clock, &write.clock);
            let uses_old_data =
                origin.mask != u128::MAX || origin.stale || origin.loaded && !is_known;
            (far_line.version > origin.version && uses_old_data).then_some(far_line)
        });
        let newer = newer.map(|far_line| far_line.write.site);
        let version = self.far_memory.version(line) + 1;
        if let Some(origin) = &mut origin {
            **origin = LineOrigin::new(line, version);
        }
        let overwritten = newer.map(|first| (RaceKind::Overwritten, first));
        let core_id = write.site.core_id;
        let unordered = self
            .far_memory
            .line(line)
            .filter(|far_line| !far_line.has_arrived(&write.clock));
        let unordered = unordered.map(|far_line| (RaceKind::UnorderedStores, far_line.write.site));
        let read = self
            .far_memory
            .conflicting_read(core_id, line, &write.clock);
        let read = read.map(|read| (RaceKind::UnorderedRead, read));
        let unordered = unordered.or(read).filter(|_| both_write.is_none());
        for (kind, first) in both_write.into_iter().chain(overwritten.or(unordered)) {
            self.log.report(kind, write.site, first, line);
        }
        self.create_version(line, write);
        if let Some(line_copy) = self.find_line_copy(mcc, scratchpad, command) {
            line_copy.version = version;
        }
    }

    /// A copy engine fetches a line of far memory.
    fn fetch_line_copy(&mut self, mcc: usize, (scratchpad, line): (u64, u64), write: &WriteRecord) {
        let version = self.far_memory.version(line);
        let origin = LineOrigin::new(line, version);
        self.origins.insert((mcc, scratchpad), origin);
        let pending_stores = self.pending_stores(line, None);
        let mut known_stores = pending_stores.iter();
        let known_store = known_stores.find(|first| happens_before(&first.clock, &write.clock));
        // The data may have reached far memory, but no synchronisation guarantees it.
        let in_flight_write = self.far_memory.line(line).filter(|far_line| {
            matches!(far_line.write.site.core_id, CoreId::Host { .. })
                && far_line.may_be_in_flight(&write.clock)
        });
        let stale = known_store.or(in_flight_write.map(|far_line| &far_line.write));
        let stale = stale.map(|first| (RaceKind::StaleFetch, first.site));
        // Unsynchronised stores: those of hosts, still in their caches, and those of other cores.
        let far_line = self
            .far_memory
            .line(line)
            .map(|far_line| far_line.write.clone());
        let unordered = pending_stores.into_iter().chain(far_line).find(|first| {
            !first.site.core_id.is_same_agent(write.site.core_id)
                && !happens_before(&first.clock, &write.clock)
        });
        let unordered = unordered.map(|first| (RaceKind::UnorderedRead, first.site));
        if let Some((kind, first)) = stale.or(unordered) {
            self.log.report(kind, write.site, first, line);
            // Report this race only once, even if the core later stores the line.
            if let Some(far_line) = self.far_memory.line_mut(line) {
                far_line.record_arrival(&write.clock);
            }
        }
        self.record_read(write.site, line, false);
    }

    /// A program ends, with all its copies. A core that learns of the end knows that the program's stores are in far
    /// memory.
    pub(crate) fn end_program(&mut self, mcc: usize) {
        let number = self.synchronisation.core_index(CoreId::Mcc(mcc));
        let time = self.synchronisation.time(number);
        self.far_memory.complete_all_reads(number, time);
        let clock = self.synchronisation.clock(number);
        let line_copies = self
            .line_copies
            .iter()
            .filter(|((core, _), _)| *core == mcc);
        let stored = line_copies
            .flat_map(|(_, line_copies)| line_copies)
            .filter(|line_copy| line_copy.stores);
        for line_copy in stored {
            let far_line = self.far_memory.line_mut(line_copy.far);
            if let Some(far_line) =
                far_line.filter(|far_line| far_line.version == line_copy.version)
            {
                far_line.record_arrival(clock);
            }
        }
        self.synchronisation
            .release_to_channel(CoreId::Mcc(mcc), SyncChannel::Control(mcc));
    }

    /// A program that a host has loaded starts on a core.
    pub(crate) fn start_program(&mut self, mcc: usize, host: usize) {
        self.starting_hosts[mcc] = host;
        self.commands[mcc].clear();
        self.line_copies.retain(|(core, _), _| *core != mcc);
        self.origins.retain(|(core, _), _| *core != mcc);
        self.words.retain(|(core, _), _| *core != mcc);
        self.synchronisation
            .acquire_from_channel(CoreId::Mcc(mcc), SyncChannel::Control(mcc));
    }
}
