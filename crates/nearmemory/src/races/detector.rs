//! Race detector: its state, and the knowledge that messages between cores carry.

use super::knowledge::{join, Clock, Fifo, SyncChannel};
use super::line_states::{
    CachedCopy, Command, FarLine, LineCopy, LineOrigin, ReadRecord, WordsInTransit, WriteRecord,
    WrittenWords,
};
use super::race::{Race, RaceKind, Site};
use crate::events::CoreId;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};

/// Race detector. It observes the machine and changes nothing of it.
#[derive(Clone, Debug)]
pub(crate) struct RaceDetector {
    /// Number of host cores. Clocks are indexed by core: host cores, then near-memory cores.
    pub(super) hosts: usize,
    /// Knowledge of each core.
    pub(super) clocks: Vec<Clock>,
    /// Knowledge that receivers gain from each channel.
    pub(super) channel_clocks: FxHashMap<SyncChannel, Clock>,
    /// Lines of far memory that were written, by address.
    pub(super) far_lines: FxHashMap<u64, FarLine>,
    /// Reads of each line of far memory since the last store to it, by core.
    pub(super) reads: FxHashMap<u64, Vec<(usize, ReadRecord)>>,
    /// FIFOs by sender and receiver, as indices of near-memory cores.
    fifos: FxHashMap<(usize, usize), Fifo>,
    /// Written-back words of scratchpad lines, by engine and line.
    pub(super) words: FxHashMap<(usize, u64), WrittenWords>,
    /// Words of scratchpad lines in flight, by number of the write-back.
    pub(super) words_in_transit: FxHashMap<u64, WordsInTransit>,
    /// True once a copy engine has copied from or to the host's own memory.
    pub(super) has_main_copies: bool,
    /// Number of the host's stores to scratchpads.
    pub(super) words_stored: u64,
    /// Knowledge from acknowledgements, which each host core gains by its next fence.
    pub(super) acknowledged_knowledge: Vec<Clock>,
    /// Lines in the host's cache or being filled, by address.
    pub(super) copies: FxHashMap<u64, CachedCopy>,
    /// Write-backs in flight, by request: the line, the version that the data derives from, the first store, and
    /// whether the whole line was stored.
    pub(super) in_flight: FxHashMap<u64, (u64, u64, WriteRecord, bool)>,
    /// Knowledge that requests and responses carry, by number of the request.
    pub(super) carried_knowledge: FxHashMap<u64, Clock>,
    /// Outstanding reads of scratchpad lines, by request.
    pending_reads: FxHashMap<u64, SyncChannel>,
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
    /// Lines that each host core has cleaned or flushed since its last fence.
    pub(super) cleaned: Vec<Vec<u64>>,
    /// Races reported so far; each pair of locations is reported once per kind.
    reported: BTreeSet<(RaceKind, Site, Site)>,
    /// Races that the machine has not taken yet.
    pub(crate) new_races: Vec<Race>,
}

impl RaceDetector {
    /// Creates a detector. Each core initially knows its own time, 1, and nothing of others.
    pub(crate) fn new(hosts: usize, mccs: usize) -> RaceDetector {
        let count = hosts + mccs;
        let clock = |core| (0..count).map(|index| u64::from(index == core)).collect();
        RaceDetector {
            hosts,
            clocks: (0..count).map(clock).collect(),
            channel_clocks: FxHashMap::default(),
            far_lines: FxHashMap::default(),
            reads: FxHashMap::default(),
            fifos: FxHashMap::default(),
            words: FxHashMap::default(),
            words_in_transit: FxHashMap::default(),
            has_main_copies: false,
            words_stored: 0,
            acknowledged_knowledge: vec![Clock::new(); hosts],
            copies: FxHashMap::default(),
            in_flight: FxHashMap::default(),
            carried_knowledge: FxHashMap::default(),
            pending_reads: FxHashMap::default(),
            commands: vec![VecDeque::new(); mccs],
            command_count: 0,
            accesses: FxHashMap::default(),
            line_copies: FxHashMap::default(),
            origins: FxHashMap::default(),
            cleaned: vec![Vec::new(); hosts],
            reported: BTreeSet::new(),
            new_races: Vec::new(),
        }
    }

    /// Returns the index of a core's clock.
    pub(super) fn core_index(&self, core_id: CoreId) -> usize {
        match core_id {
            CoreId::Host(core) => core,
            CoreId::Mcc(mcc) => self.hosts + mcc,
        }
    }

    /// Returns the knowledge that a core passes on, and advances its clock, so that later accesses are not part of it.
    pub(super) fn release_clock(&mut self, core_id: CoreId) -> Clock {
        let clock = self.knowledge(core_id);
        let number = self.core_index(core_id);
        let core_numbers = match core_id {
            CoreId::Host(_) => 0..self.hosts,
            CoreId::Mcc(_) => number..number + 1,
        };
        core_numbers.for_each(|number| self.clocks[number][number] += 1);
        clock
    }

    /// Returns the knowledge of a core; the cores of the host share theirs.
    pub(super) fn knowledge(&self, core_id: CoreId) -> Clock {
        match core_id {
            CoreId::Mcc(_) => self.clocks[self.core_index(core_id)].clone(),
            CoreId::Host(_) => {
                let mut clock = self.clocks[0].clone();
                (1..self.hosts).for_each(|core| join(&mut clock, &self.clocks[core]));
                clock
            }
        }
    }

    /// True if both are the same core, or both are host cores.
    pub(super) fn is_same_agent(&self, a: CoreId, b: CoreId) -> bool {
        a == b || matches!((a, b), (CoreId::Host(_), CoreId::Host(_)))
    }

    /// Reports a race unless it was reported before.
    pub(super) fn report_race(&mut self, kind: RaceKind, second: Site, first: Site, line: u64) {
        if self.reported.insert((kind, second, first)) {
            self.new_races.push(Race {
                kind,
                second,
                first,
                line,
            });
        }
    }

    /// A core releases its knowledge to a channel.
    pub(crate) fn release_to_channel(&mut self, core_id: CoreId, channel: SyncChannel) {
        let clock = self.release_clock(core_id);
        join(self.channel_clocks.entry(channel).or_default(), &clock);
    }

    /// A core acquires the knowledge of a channel.
    pub(crate) fn acquire_from_channel(&mut self, core_id: CoreId, channel: SyncChannel) {
        let number = self.core_index(core_id);
        if let Some(clock) = self.channel_clocks.get(&channel) {
            join(&mut self.clocks[number], clock);
        }
    }

    /// A core sends a word through a FIFO with the given capacity in words.
    pub(crate) fn send_word(&mut self, from: usize, to: usize, capacity: u64) {
        let fifo = self.fifos.entry((from, to)).or_default();
        fifo.sent += 1;
        // The word reuses the room of a word that the receiver took.
        let room = (fifo.sent > capacity).then(|| fifo.pop_clocks.pop_front());
        if let Some(room) = room.flatten() {
            join(&mut self.clocks[self.hosts + from], &room);
        }
        let clock = self.release_clock(CoreId::Mcc(from));
        let fifo = self.fifos.entry((from, to)).or_default();
        fifo.in_flight.push_back(clock);
    }

    /// A word arrives at the end of a FIFO.
    pub(crate) fn deliver_word(&mut self, from: usize, to: usize) {
        let fifo = self.fifos.entry((from, to)).or_default();
        if let Some(clock) = fifo.in_flight.pop_front() {
            join(
                self.channel_clocks
                    .entry(SyncChannel::Fifo(from, to))
                    .or_default(),
                &clock,
            );
        }
    }

    /// A core takes a word out of a FIFO.
    pub(crate) fn pop_word(&mut self, from: usize, to: usize) {
        self.release_to_channel(CoreId::Mcc(to), SyncChannel::FifoSpace(from, to));
        let clock = self
            .channel_clocks
            .get(&SyncChannel::FifoSpace(from, to))
            .cloned();
        let fifo = self.fifos.entry((from, to)).or_default();
        fifo.pop_clocks.extend(clock);
    }

    /// Discards the words in the FIFOs to a core whose program has ended; words in flight still arrive.
    pub(crate) fn clear_fifos(&mut self, to: usize) {
        for ((from, _), fifo) in self
            .fifos
            .iter_mut()
            .filter(|((_, receiver), _)| *receiver == to)
        {
            fifo.sent = fifo.in_flight.len() as u64;
            fifo.pop_clocks.clear();
            self.channel_clocks.remove(&SyncChannel::Fifo(*from, to));
        }
    }

    /// A request of a host core departs with the core's knowledge; [`RaceDetector::receive_request`] follows at its
    /// destination.
    pub(crate) fn send_request(&mut self, core_id: CoreId, request: u64) {
        let clock = self.release_clock(core_id);
        self.carried_knowledge.insert(request, clock);
    }

    /// A request arrives and releases its knowledge to the channel.
    pub(crate) fn receive_request(&mut self, request: u64, channel: SyncChannel) {
        let clock = self.carried_knowledge.remove(&request);
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
                join(
                    self.channel_clocks.entry(channel).or_default(),
                    &in_flight.knowledge,
                );
            }
        }
        if let Some(clock) = clock {
            join(self.channel_clocks.entry(channel).or_default(), &clock);
        }
    }

    /// A response departs with the knowledge of the channel.
    pub(crate) fn send_response(&mut self, request: u64, channel: SyncChannel) {
        let clock = self
            .channel_clocks
            .get(&channel)
            .cloned()
            .unwrap_or_default();
        self.carried_knowledge.insert(request, clock);
    }

    /// A read of a scratchpad line arrives.
    pub(crate) fn record_read_arrival(&mut self, request: u64, channel: SyncChannel) {
        let clock = self.carried_knowledge.remove(&request);
        if let (SyncChannel::Line(mcc, line), Some(clock)) = (channel, clock) {
            join(
                self.channel_clocks
                    .entry(SyncChannel::Request(mcc, line))
                    .or_default(),
                &clock,
            );
        }
        self.pending_reads.insert(request, channel);
    }

    /// A read of a scratchpad line is answered, possibly because a core has released it from a lock.
    pub(crate) fn answer_read(&mut self, request: u64, releaser: Option<CoreId>) {
        if let Some(channel) = self.pending_reads.remove(&request) {
            self.send_response(request, channel);
            self.add_releaser_knowledge(request, releaser);
        }
    }

    /// A response carries the knowledge of the core that released it.
    pub(crate) fn add_releaser_knowledge(&mut self, request: u64, releaser: Option<CoreId>) {
        if let Some(core_id) = releaser {
            let clock = self.release_clock(core_id);
            join(self.carried_knowledge.entry(request).or_default(), &clock);
        }
    }

    /// Host cores (a bit mask) receive the acknowledgement of a write-back, for which their next fence waits.
    pub(crate) fn acknowledge_write_back(&mut self, cores: u64, request: u64) {
        let Some(clock) = self.carried_knowledge.remove(&request) else {
            return;
        };
        for (core, acknowledged) in self.acknowledged_knowledge.iter_mut().enumerate() {
            if cores >> core & 1 != 0 {
                join(acknowledged, &clock);
            }
        }
    }

    /// A host core receives a response.
    pub(crate) fn receive_response(&mut self, core_id: CoreId, request: u64) {
        let number = self.core_index(core_id);
        if let Some(clock) = self.carried_knowledge.remove(&request) {
            join(&mut self.clocks[number], &clock);
        }
    }

    /// Records a read of a line of far memory. `is_complete` is false if a copy engine has only started it.
    pub(super) fn record_read(&mut self, site: Site, line: u64, is_complete: bool) {
        let number = self.core_index(site.core_id);
        let completion = is_complete.then(|| self.clocks[number][number]);
        let reads = self.reads.entry(line).or_default();
        let read = ReadRecord { site, completion };
        match reads.iter_mut().find(|(core, _)| *core == number) {
            Some((_, last)) => *last = read,
            None => reads.push((number, read)),
        }
    }

    /// Returns another core's read of the line whose completion is unknown to a store with the knowledge `knowledge`.
    pub(super) fn conflicting_read(
        &self,
        core_id: CoreId,
        line: u64,
        knowledge: &Clock,
    ) -> Option<Site> {
        let reads = self.reads.get(&line)?;
        let unordered = reads.iter().find(|(core, read)| {
            let completion = read.completion.zip(knowledge.get(*core));
            !self.is_same_agent(core_id, read.site.core_id)
                && completion.is_none_or(|(completion, known_time)| completion > *known_time)
        });
        unordered.map(|(_, read)| read.site)
    }

    /// A write to a line reaches far memory and creates a new version.
    pub(super) fn create_version(&mut self, line: u64, write: WriteRecord) {
        let version = self
            .far_lines
            .get(&line)
            .map_or(0, |far_line| far_line.version)
            + 1;
        let by_host = matches!(write.site.core_id, CoreId::Host(_));
        let arrival_clocks = Vec::new();
        let far_line = FarLine {
            version,
            write,
            arrival_clocks,
        };
        self.far_lines.insert(line, far_line);
        self.reads.remove(&line);
        // A copy that the host retains equals the version that it has written.
        if let Some(copy) = self.copies.get_mut(&line).filter(|_| by_host) {
            copy.base = Some(version);
        }
    }
}
