//! Race detector: the state of lines and copies, beside the synchronisation of the cores.

use super::far_memory::FarMemory;
use super::knowledge::SyncChannel;
use super::line_states::{
    CachedCopy, Command, LineCopy, LineOrigin, ReadRecord, WordsInTransit, WriteRecord,
    WrittenWords,
};
use super::race::{RaceLog, Site};
use super::synchronisation::Synchronisation;
use crate::events::{CoreCounts, CoreId};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Race detector. It observes the machine and changes nothing of it.
#[derive(Clone, Debug)]
pub(crate) struct RaceDetector {
    /// Knowledge of the cores and of messages.
    pub(crate) synchronisation: Synchronisation,
    /// Lines of far memory.
    pub(super) far_memory: FarMemory,
    /// Written-back words of scratchpad lines, by engine and line.
    pub(super) words: FxHashMap<(usize, u64), WrittenWords>,
    /// Words of scratchpad lines in flight, by number of the write-back.
    pub(super) words_in_transit: FxHashMap<u64, WordsInTransit>,
    /// True once a copy engine has copied from or to a host's own memory.
    pub(super) has_main_copies: bool,
    /// Number of the hosts' stores to scratchpads.
    pub(super) words_stored: u64,
    /// Number of hosts.
    pub(super) hosts: usize,
    /// Lines in the hosts' caches or being filled, by host and address.
    pub(super) copies: FxHashMap<(usize, u64), CachedCopy>,
    /// Host that has started the program of each near-memory core.
    pub(super) starting_hosts: Vec<usize>,
    /// Write-backs in flight, by request: the line, the version that the data derives from, the first store, and
    /// whether the whole line was stored.
    pub(super) in_flight: FxHashMap<u64, (u64, u64, WriteRecord, bool)>,
    /// Commands of each copy engine whose lines have not all been requested, oldest first.
    pub(super) commands: Vec<VecDeque<Command>>,
    /// Number of commands so far, which is the number of the next one.
    pub(super) command_count: u64,
    /// Outstanding accesses of copy engines, by engine and access: the scratchpad line and the command.
    pub(super) accesses: FxHashMap<(usize, u64), (u64, u64)>,
    /// Scratchpad lines being copied, by engine and line.
    pub(super) line_copies: FxHashMap<(usize, u64), Vec<LineCopy>>,
    /// Far-memory origin of scratchpad lines, by engine and line.
    pub(super) origins: FxHashMap<(usize, u64), LineOrigin>,
    /// Lines that each core of a host has cleaned or flushed since its last fence.
    pub(super) cleaned: Vec<Vec<u64>>,
    /// Races found.
    pub(crate) log: RaceLog,
}

impl RaceDetector {
    /// Creates a detector for these cores.
    pub(crate) fn new(counts: CoreCounts) -> RaceDetector {
        RaceDetector {
            synchronisation: Synchronisation::new(counts),
            far_memory: FarMemory::default(),
            words: FxHashMap::default(),
            words_in_transit: FxHashMap::default(),
            has_main_copies: false,
            words_stored: 0,
            hosts: counts.hosts,
            starting_hosts: vec![0; counts.mccs],
            copies: FxHashMap::default(),
            in_flight: FxHashMap::default(),
            commands: vec![VecDeque::new(); counts.mccs],
            command_count: 0,
            accesses: FxHashMap::default(),
            line_copies: FxHashMap::default(),
            origins: FxHashMap::default(),
            cleaned: vec![Vec::new(); counts.total()],
            log: RaceLog::default(),
        }
    }

    /// A request arrives and releases its knowledge to the channel.
    pub(crate) fn receive_request(&mut self, request: u64, channel: SyncChannel) {
        if let SyncChannel::Line(mcc, line) = channel {
            let key = (mcc, line as u64);
            self.origins.remove(&key);
            let words = self.words.entry(key).or_default();
            words.early_load = None;
            if let Some(in_flight) = self.words_in_transit.remove(&request) {
                for (word, stored) in words.words.iter_mut().zip(in_flight.words) {
                    *word = stored.or(word.take());
                }
                let channel = SyncChannel::Request(mcc, line);
                (self.synchronisation).add_to_channel(channel, &in_flight.knowledge);
            }
        }
        self.synchronisation.complete_request(request, channel);
    }

    /// A write to a line reaches far memory and creates a new version.
    pub(super) fn create_version(&mut self, line: u64, write: WriteRecord) {
        let core_id = write.site.core_id;
        let version = self.far_memory.write(line, write);
        // A copy that the host retains equals the version that it has written.
        if let CoreId::Host { host, .. } = core_id {
            if let Some(copy) = self.copies.get_mut(&(host, line)) {
                copy.base = Some(version);
            }
        }
    }

    /// Returns the first stores to the dirty copies of a line in the caches of hosts.
    pub(super) fn cached_stores(&self, line: u64) -> impl Iterator<Item = &WriteRecord> + '_ {
        let copies = (0..self.hosts).map(move |host| self.copies.get(&(host, line)));
        copies.filter_map(|copy| copy?.first_store.as_ref())
    }

    /// Returns the stores of hosts to a line that have not reached far memory: for each agent other than `except`, the
    /// first store to its dirty copy, or else that of a write-back in flight.
    pub(super) fn pending_stores(&self, line: u64, except: Option<CoreId>) -> Vec<WriteRecord> {
        let store_of = |host| {
            let agent = CoreId::Host { host, core: 0 };
            if except.is_some_and(|except| except.is_same_agent(agent)) {
                return None;
            }
            let mut cached = self.cached_stores(line);
            let cached = cached.find(|write| write.site.core_id.is_same_agent(agent));
            let mut in_flight = self.in_flight.values();
            let in_flight = in_flight.find(|(in_flight_line, _, write, _)| {
                *in_flight_line == line && write.site.core_id.is_same_agent(agent)
            });
            cached.or(in_flight.map(|(_, _, write, _)| write)).cloned()
        };
        (0..self.hosts).filter_map(store_of).collect()
    }

    /// Records a read of a line of far memory. `is_complete` is false if a copy engine has only started it, or
    /// if a load waits for the line.
    pub(super) fn record_read(&mut self, site: Site, line: u64, is_complete: bool) {
        let number = self.synchronisation.core_index(site.core_id);
        let completion = is_complete.then(|| self.synchronisation.time(number));
        self.far_memory
            .record_read(number, line, ReadRecord { site, completion });
    }
}
