//! Race detector for far memory, which is not coherent. It reports loads of stale lines, write-backs over newer data,
//! and lines that both sides write, each with the two program locations.
//!
//! A stale line is an error only if the program could know of the write. It could if some message received since
//! carries that knowledge: a register, a scratchpad line, a FIFO word, or the end of a program. Each core therefore has
//! a vector clock, which synchronisation carries: words, lines, responses held by a lock, notices, stamps, and copies
//! to the host's own memory. Two accesses to a line of far memory, one of them a store, race unless the second core
//! knows that the first access is complete.
//!
//! The host's cores share their caches and observe each other. A message from one of them therefore carries the
//! knowledge of all.

use crate::events::CoreId;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};

/// A program location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The core that runs the program.
    pub core_id: CoreId,
    /// Address of the instruction.
    pub pc: u64,
}

/// Kind of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RaceKind {
    /// A load hit a line in the host's cache that was written in far memory since, as the program could know.
    StaleLoad,
    /// A copy engine read a line whose newest data was in the host's cache or in flight, as the program could know.
    StaleFetch,
    /// A write-back, or a store of a scratchpad line, has overwritten data that was newer than the version it was
    /// derived from.
    Overwritten,
    /// Both sides wrote a line, and neither had the other's data.
    BothWrite,
    /// The host read a line that a copy engine had yet to write, as the program could know.
    NotStored,
    /// A core used or changed a scratchpad line that its copy engine had yet to fetch, as the program could know.
    NotFetched,
    /// A core changed a scratchpad line that its copy engine had yet to store, as the program could know.
    Reused,
    /// Two programs stored a line without synchronisation between the two stores.
    UnorderedStores,
    /// A program read a line, and another program stored it, without synchronisation between the two accesses.
    UnorderedRead,
    /// A core loaded words of a scratchpad line of which an eviction may have written back only a part of the host's
    /// stores.
    HalfWritten,
}

/// A race between two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Race {
    /// Kind of the race.
    pub kind: RaceKind,
    /// The later access.
    pub second: Site,
    /// The earlier access.
    pub first: Site,
    /// Address of the line in far memory. For a scratchpad line, the far address that it is copied from or to; without
    /// a copy, its address for the host.
    pub line: u64,
}

/// A vector clock: one time per core.
type Clock = Vec<u64>;

/// A write with the vector clock of its core.
#[derive(Clone, Debug)]
struct Write {
    site: Site,
    clock: Clock,
}

/// A read of a line of far memory since the last store to it.
#[derive(Clone, Copy, Debug)]
struct Read {
    site: Site,
    /// The core's own time at the completion of the read; `None` while a copy engine reads.
    completion: Option<u64>,
}

/// A word of a scratchpad line, as stored by the host.
#[derive(Clone, Debug)]
struct Word {
    write: Write,
    /// Sequence number of the store among the host's stores to scratchpads.
    number: u64,
}

/// Words of a scratchpad line in flight in a write-back.
#[derive(Clone, Debug)]
struct WordsInTransit {
    words: [Option<Word>; 16],
    /// The host's knowledge before the first of these stores. A cache may evict the line directly after that store, so
    /// the write-back proves no more.
    knowledge: Clock,
}

/// Words of a scratchpad line that the host has written back.
#[derive(Clone, Debug, Default)]
struct Words {
    words: [Option<Word>; 16],
    /// Number of a word's store, if the core loaded the word before it could know that later stores to the line had
    /// arrived.
    early_load: Option<u64>,
}

/// State of a line in far memory.
#[derive(Clone, Debug)]
struct FarLine {
    version: u64,
    write: Write,
    /// Clocks of cores that had waited until the line was in far memory: a core that knows one of them may read it
    /// there.
    arrival_clocks: Vec<Clock>,
}

impl FarLine {
    /// True if a program with this knowledge knows of the write, but not that it has reached far memory.
    fn may_be_in_flight(&self, knowledge: &Clock) -> bool {
        happens_before(&self.write.clock, knowledge)
            && !self
                .arrival_clocks
                .iter()
                .any(|clock| happens_before(clock, knowledge))
    }

    /// Records that a core has waited until the line was in far memory.
    fn record_arrival(&mut self, clock: &Clock) {
        if !self
            .arrival_clocks
            .iter()
            .any(|arrival| happens_before(arrival, clock))
        {
            self.arrival_clocks.push(clock.clone());
        }
    }
}

/// A command to a copy engine, as far as its lines have not been requested.
#[derive(Clone, Debug)]
struct Command {
    far: u64,
    scratchpad: u64,
    lines: u64,
    write: Write,
    stores: bool,
    /// Sequence number of the command.
    number: u64,
}

/// A scratchpad line being copied, until its core has observed completion by the stamp.
#[derive(Clone, Debug)]
struct LineCopy {
    command: u64,
    site: Site,
    stores: bool,
    far: u64,
    /// Version of a stored line in far memory, once it is there.
    version: u64,
    done: bool,
}

/// Source or last destination in far memory of a scratchpad line.
#[derive(Clone, Debug)]
struct LineOrigin {
    far: u64,
    version: u64,
    /// Bytes that the core has stored since, one bit each.
    mask: u128,
    /// True if the core has loaded one of the other bytes; true if it knew of newer data in far memory at that time.
    loaded: bool,
    stale: bool,
}

impl LineOrigin {
    fn new(far: u64, version: u64) -> LineOrigin {
        LineOrigin {
            far,
            version,
            mask: 0,
            loaded: false,
            stale: false,
        }
    }
}

/// State of a line in the host's last-level cache.
#[derive(Clone, Debug, Default)]
struct CachedCopy {
    /// The version that it was read from; `None` until the fill is executed.
    base: Option<u64>,
    /// The first store since the line was clean, and the clock of the last one.
    first_store: Option<Write>,
    stored: Clock,
    /// Bytes stored since the line was clean, one bit each.
    mask: u128,
    /// For a scratchpad line, the knowledge that its readers gain.
    knowledge: Clock,
    /// Words of a scratchpad line stored since the line was clean.
    words: [Option<Word>; 16],
}

/// A synchronisation channel, which carries knowledge between cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SyncChannel {
    /// A register that host and core share: core and number.
    Register(usize, u64),
    /// The registers that control programs.
    Control(usize),
    /// The register with the state of the last load, which reveals nothing of the program's later actions.
    Load(usize),
    /// A scratchpad line: core and line.
    Line(usize, usize),
    /// The host's requests for a scratchpad line, which notices and stamps reveal.
    Request(usize, usize),
    /// Words that have arrived through a FIFO: sender and receiver.
    Fifo(usize, usize),
    /// Words taken out of a FIFO: sender and receiver.
    FifoSpace(usize, usize),
    /// A line of the host's own memory that a copy engine copies.
    Main(u64),
}

/// State of a FIFO from one core to another.
#[derive(Clone, Debug, Default)]
struct Fifo {
    /// The sender's knowledge for each word in flight.
    in_flight: VecDeque<Clock>,
    /// Number of words sent.
    sent: u64,
    /// The receiver's knowledge when it took each word whose room is still free.
    pop_clocks: VecDeque<Clock>,
}

/// Race detector. It observes the machine and changes nothing of it.
#[derive(Clone, Debug)]
pub(crate) struct RaceDetector {
    hosts: usize,
    clocks: Vec<Clock>,
    channel_clocks: FxHashMap<SyncChannel, Clock>,
    far_lines: FxHashMap<u64, FarLine>,
    /// Reads of each line of far memory since the last store to it, by core.
    reads: FxHashMap<u64, Vec<(usize, Read)>>,
    fifos: FxHashMap<(usize, usize), Fifo>,
    /// Written-back words of scratchpad lines, by engine and line; words in flight, by number of the write-back.
    words: FxHashMap<(usize, u64), Words>,
    words_in_transit: FxHashMap<u64, WordsInTransit>,
    /// True once a copy engine has copied from or to the host's own memory.
    has_main_copies: bool,
    /// Number of the host's stores to scratchpads.
    words_stored: u64,
    /// Knowledge from acknowledgements, which each host core gains by its next fence.
    acknowledged_knowledge: Vec<Clock>,
    /// Lines in the host's cache or being filled, by address.
    copies: FxHashMap<u64, CachedCopy>,
    /// Write-backs in flight, by request: the line, the version that the data derives from, the first store, and
    /// whether the whole line was stored.
    in_flight: FxHashMap<u64, (u64, u64, Write, bool)>,
    /// Knowledge that requests and responses carry.
    carried_knowledge: FxHashMap<u64, Clock>,
    /// Outstanding reads of scratchpad lines, by request.
    pending_reads: FxHashMap<u64, SyncChannel>,
    commands: Vec<VecDeque<Command>>,
    command_count: u64,
    /// Outstanding accesses of copy engines, by engine and access: the scratchpad line and the command.
    accesses: FxHashMap<(usize, u64), (u64, u64)>,
    /// Scratchpad lines being copied, by engine and line.
    line_copies: FxHashMap<(usize, u64), Vec<LineCopy>>,
    /// Far-memory origin of scratchpad lines, by engine and line.
    origins: FxHashMap<(usize, u64), LineOrigin>,
    /// Lines that each host core has cleaned or flushed since its last fence.
    cleaned: Vec<Vec<u64>>,
    reported: BTreeSet<(RaceKind, Site, Site)>,
    pub(crate) new_races: Vec<Race>,
}

/// Raises each time of a clock to at least that of another clock.
fn join(clock: &mut Clock, other: &Clock) {
    clock.resize(clock.len().max(other.len()), 0);
    for (time, other_time) in clock.iter_mut().zip(other) {
        *time = (*time).max(*other_time);
    }
}

/// Returns the bit mask of an access to a line, one bit per byte.
fn byte_mask(address: u64, bytes: u32) -> u128 {
    ((1 << bytes) - 1) << (address & 127)
}

/// Returns true if `clock` is known to a core whose clock is `other`.
fn happens_before(clock: &Clock, other: &Clock) -> bool {
    let other_times = other.iter().copied().chain(std::iter::repeat(0));
    clock
        .iter()
        .zip(other_times)
        .all(|(time, other_time)| *time <= other_time)
}

impl RaceDetector {
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

    fn core_index(&self, core_id: CoreId) -> usize {
        match core_id {
            CoreId::Host(core) => core,
            CoreId::Mcc(mcc) => self.hosts + mcc,
        }
    }

    /// Returns the knowledge that a core passes on, and advances its clock, so that later accesses are not part of it.
    fn release_clock(&mut self, core_id: CoreId) -> Clock {
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
    fn knowledge(&self, core_id: CoreId) -> Clock {
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
    fn is_same_agent(&self, a: CoreId, b: CoreId) -> bool {
        a == b || matches!((a, b), (CoreId::Host(_), CoreId::Host(_)))
    }

    fn report_race(&mut self, kind: RaceKind, second: Site, first: Site, line: u64) {
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

    /// A line of far memory is read for the host's cache.
    pub(crate) fn fetch_line(&mut self, line: u64) {
        let base = self
            .far_lines
            .get(&line)
            .map_or(0, |far_line| far_line.version);
        self.copies.entry(line).or_default().base = Some(base);
    }

    /// A scratchpad line is filled into the host's cache.
    pub(crate) fn fill_line(&mut self, line: u64, request: u64) {
        let clock = self.carried_knowledge.remove(&request).unwrap_or_default();
        self.copies.entry(line).or_default().knowledge = clock;
    }

    /// A host core loads from a line that is cached or being filled.
    pub(crate) fn host_load(&mut self, site: Site, line: u64, is_far: bool) {
        let number = self.core_index(site.core_id);
        let copy = self.copies.get(&line);
        if !is_far {
            if let Some(copy) = copy {
                join(&mut self.clocks[number], &copy.knowledge);
            }
            return;
        }
        let knowledge = &self.clocks[number];
        let far_line = self.far_lines.get(&line);
        let stale = far_line.zip(copy).filter(|(far_line, copy)| {
            copy.base.is_some_and(|base| far_line.version > base)
                && happens_before(&far_line.write.clock, knowledge)
        });
        let mut commands = self.commands.iter().flatten();
        let pending_store = commands.find(|command| {
            let is_within = line >= command.far && line < command.far + command.lines * 128;
            command.stores && is_within && happens_before(&command.write.clock, knowledge)
        });
        // The data may have arrived already, but only by luck.
        let in_flight_write = far_line.filter(|far_line| {
            matches!(far_line.write.site.core_id, CoreId::Mcc(_))
                && far_line.may_be_in_flight(knowledge)
        });
        let pending_store = pending_store.map(|command| command.write.site);
        let pending_store = pending_store.or(in_flight_write.map(|far_line| far_line.write.site));
        let unordered = far_line.filter(|far_line| {
            matches!(far_line.write.site.core_id, CoreId::Mcc(_))
                && !happens_before(&far_line.write.clock, &self.knowledge(site.core_id))
        });
        let race = match stale {
            Some((far_line, _)) => Some((RaceKind::StaleLoad, far_line.write.site)),
            None => pending_store.map(|first| (RaceKind::NotStored, first)),
        };
        let unordered = unordered.map(|far_line| (RaceKind::UnorderedRead, far_line.write.site));
        if let Some((kind, first)) = race.or(unordered) {
            self.report_race(kind, site, first, line);
        }
        self.record_read(site, line, true);
    }

    /// Records a read of a line of far memory. `is_complete` is false if a copy engine has only started it.
    fn record_read(&mut self, site: Site, line: u64, is_complete: bool) {
        let number = self.core_index(site.core_id);
        let completion = is_complete.then(|| self.clocks[number][number]);
        let reads = self.reads.entry(line).or_default();
        let read = Read { site, completion };
        match reads.iter_mut().find(|(core, _)| *core == number) {
            Some((_, last)) => *last = read,
            None => reads.push((number, read)),
        }
    }

    /// Returns another core's read of the line whose completion is unknown to a store with the knowledge `knowledge`.
    fn conflicting_read(&self, core_id: CoreId, line: u64, knowledge: &Clock) -> Option<Site> {
        let reads = self.reads.get(&line)?;
        let unordered = reads.iter().find(|(core, read)| {
            let completion = read.completion.zip(knowledge.get(*core));
            !self.is_same_agent(core_id, read.site.core_id)
                && completion.is_none_or(|(completion, known_time)| completion > *known_time)
        });
        unordered.map(|(_, read)| read.site)
    }

    /// A host core stores `bytes` bytes to a line that is cached or being filled.
    pub(crate) fn host_store(&mut self, site: Site, address: u64, bytes: u32, is_far: bool) {
        let (line, number) = (address & !127, self.core_index(site.core_id));
        let clock = self.clocks[number].clone();
        if !is_far {
            self.host_store_word(site, address);
        }
        let copy = self.copies.entry(line).or_default();
        copy.stored.clone_from(&clock);
        copy.mask |= byte_mask(address, bytes);
        let base = copy.base;
        let knowledge = clock.clone();
        if copy.first_store.is_none() {
            copy.first_store = Some(Write { site, clock });
        }
        if !is_far {
            return;
        }
        // A program that knows of the newer version may intend to overwrite the whole line.
        let far_line = self.far_lines.get(&line);
        let newer = far_line.filter(|far_line| {
            base.is_some_and(|base| far_line.version > base)
                && !happens_before(&far_line.write.clock, &knowledge)
        });
        let knowledge = self.knowledge(site.core_id);
        let unordered = far_line.filter(|far_line| {
            matches!(far_line.write.site.core_id, CoreId::Mcc(_))
                && !happens_before(&far_line.write.clock, &knowledge)
        });
        let unordered = unordered.map(|far_line| (RaceKind::UnorderedStores, far_line.write.site));
        let read = self.conflicting_read(site.core_id, line, &knowledge);
        let read = read.map(|read| (RaceKind::UnorderedRead, read));
        let newer = newer.map(|far_line| (RaceKind::BothWrite, far_line.write.site));
        if let Some((kind, first)) = newer.or(unordered).or(read) {
            self.report_race(kind, site, first, line);
        }
    }

    /// A host core stores to a word of a scratchpad line, which may be evicted directly afterwards.
    fn host_store_word(&mut self, site: Site, address: u64) {
        let clock = self.release_clock(site.core_id);
        let number = self.words_stored;
        self.words_stored += 1;
        let copy = self.copies.entry(address & !127).or_default();
        let write = Write { site, clock };
        copy.words[(address % 128 / 8) as usize] = Some(Word { write, number });
    }

    /// A core loads a word of its scratchpad line and gains the knowledge of the host's store to that word. Earlier
    /// stores to the line have then arrived; later ones may have or not. `line` is the line's address for the host.
    pub(crate) fn core_load_word(&mut self, site: Site, scratchpad: u64, address: u64, line: u64) {
        let CoreId::Mcc(mcc) = site.core_id else {
            return;
        };
        let knowledge = &mut self.clocks[self.hosts + mcc];
        let Some(words) = self.words.get_mut(&(mcc, scratchpad)) else {
            return;
        };
        let Some(word) = &words.words[(address % 128 / 8) as usize] else {
            return;
        };
        if happens_before(&word.write.clock, knowledge) {
            return;
        }
        let is_partial = words.early_load.is_some_and(|early| early < word.number);
        let first = word.write.site;
        join(knowledge, &word.write.clock);
        let number = word.number;
        let mut newer_words = words.words.iter().flatten();
        words.early_load = newer_words
            .any(|word| word.number > number)
            .then_some(number);
        if is_partial {
            self.report_race(RaceKind::HalfWritten, site, first, line);
        }
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
        let (base, stored) = (copy.base.unwrap_or(0), copy.stored.clone());
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
                self.clocks[core][core] = self.clocks[core][core].max(stored[core] + 1);
            }
            let knowledge = write.clock;
            self.words_in_transit
                .insert(request, WordsInTransit { words, knowledge });
        }
        self.carried_knowledge.insert(request, stored);
    }

    /// A write-back reaches far memory.
    pub(crate) fn complete_write_back(&mut self, request: u64) {
        let Some((line, base, write, is_whole)) = self.in_flight.remove(&request) else {
            return;
        };
        let newer =
            (self.far_lines.get(&line)).filter(|far_line| far_line.version > base && !is_whole);
        if let Some(first) = newer.map(|far_line| far_line.write.site) {
            self.report_race(RaceKind::Overwritten, write.site, first, line);
        }
        self.create_version(line, write);
    }

    /// A write to a line reaches far memory and creates a new version.
    fn create_version(&mut self, line: u64, write: Write) {
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

    /// A core starts a transfer of its copy engine.
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
                done: false,
            };
            let line_copies = self.line_copies.entry((mcc, scratchpad + i)).or_default();
            line_copies.push(line_copy);
        }
        let clock = self.release_clock(site.core_id);
        self.commands[mcc].push_back(Command {
            far,
            scratchpad,
            lines,
            write: Write { site, clock },
            stores,
            number,
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
        let knowledge = &self.clocks[self.hosts + mcc];
        let far_line = self.far_lines.get(&origin.far);
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
            self.report_race(kind, site, first, far);
        }
    }

    /// A host core cleans or flushes a line; its next fence waits for that.
    pub(crate) fn clean_line(&mut self, core: usize, line: u64) {
        self.cleaned[core].push(line);
    }

    /// A host core completes a fence, which has waited for its cleaned lines.
    pub(crate) fn complete_fence(&mut self, core: usize) {
        join(&mut self.clocks[core], &self.acknowledged_knowledge[core]);
        for line in std::mem::take(&mut self.cleaned[core]) {
            let far_line = self.far_lines.get_mut(&line);
            if let Some(far_line) =
                far_line.filter(|far_line| matches!(far_line.write.site.core_id, CoreId::Host(_)))
            {
                far_line.record_arrival(&self.clocks[core]);
            }
        }
    }

    /// A host core loads from its own memory, where a copy engine may have stored.
    #[inline(always)]
    pub(crate) fn host_load_main(&mut self, core: usize, address: u64) {
        if self.has_main_copies {
            self.acquire_from_channel(CoreId::Host(core), SyncChannel::Main(address & !127));
        }
    }

    /// A copy engine completes an access.
    pub(crate) fn complete_line_copy(&mut self, mcc: usize, access: u64) {
        let Some((scratchpad, command)) = self.accesses.remove(&(mcc, access)) else {
            return;
        };
        if let Some(line_copy) = self.find_line_copy(mcc, scratchpad, command) {
            line_copy.done = true;
        }
    }

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
        self.acquire_from_channel(
            CoreId::Mcc(mcc),
            SyncChannel::Request(mcc, scratchpad as usize),
        );
        let Some(line_copies) = self.line_copies.get_mut(&(mcc, scratchpad)) else {
            return;
        };
        let number = self.hosts + mcc;
        let clock = &mut self.clocks[number];
        let (far_lines, reads, channel_clocks) =
            (&mut self.far_lines, &mut self.reads, &self.channel_clocks);
        line_copies.retain(|line_copy| {
            let is_observed = line_copy.done && line_copy.stores == stores;
            if is_observed && !stores {
                let reads = reads.get_mut(&line_copy.far).into_iter().flatten();
                for (_, read) in
                    reads.filter(|(core, read)| *core == number && read.completion.is_none())
                {
                    read.completion = Some(clock[number]);
                }
                // A line of the host's own memory carries the host's knowledge.
                if let Some(knowledge) = channel_clocks.get(&SyncChannel::Main(line_copy.far)) {
                    join(clock, knowledge);
                }
            }
            let far_line = far_lines
                .get_mut(&line_copy.far)
                .filter(|_| is_observed && stores);
            if let Some(far_line) =
                far_line.filter(|far_line| far_line.version == line_copy.version)
            {
                far_line.record_arrival(clock);
            }
            !is_observed
        });
        if line_copies.is_empty() {
            self.line_copies.remove(&(mcc, scratchpad));
        }
    }

    /// A copy engine reads or writes its next line.
    pub(crate) fn copy_line(&mut self, mcc: usize, line: u64, access: u64, is_far: bool) {
        let Some(command) = self.commands[mcc].front_mut() else {
            return;
        };
        let (write, stores) = (command.write.clone(), command.stores);
        let (scratchpad, number) = (command.scratchpad, command.number);
        command.far += 128;
        command.scratchpad += 1;
        command.lines -= 1;
        if command.lines == 0 {
            self.commands[mcc].pop_front();
        }
        self.accesses.insert((mcc, access), (scratchpad, number));
        if !stores {
            self.words.remove(&(mcc, scratchpad));
            self.origins.remove(&(mcc, scratchpad));
        }
        if !is_far {
            // The host's own memory is never stale. A copy of it carries knowledge, as an access of a core does.
            let knowledge = match stores {
                true => write.clock,
                false => self.release_clock(CoreId::Host(0)),
            };
            join(
                self.channel_clocks
                    .entry(SyncChannel::Main(line))
                    .or_default(),
                &knowledge,
            );
            self.has_main_copies = true;
            return;
        }
        let cached_store = self
            .copies
            .get(&line)
            .and_then(|copy| copy.first_store.clone());
        match stores {
            true => self.store_line(mcc, (scratchpad, line), number, write, cached_store),
            false => self.fetch_line_copy(mcc, (scratchpad, line), &write, cached_store),
        }
    }

    /// A copy engine stores a scratchpad line to far memory. `cached_store` is the first store to the host's dirty copy.
    fn store_line(
        &mut self,
        mcc: usize,
        (scratchpad, line): (u64, u64),
        command: u64,
        write: Write,
        cached_store: Option<Write>,
    ) {
        let both_write = cached_store.map(|first| (RaceKind::BothWrite, first.site));
        // A whole new line, written by a core without reading the old one, may be intended to overwrite.
        let origin = self.origins.get_mut(&(mcc, scratchpad));
        let mut origin = origin.filter(|origin| origin.far == line);
        let newer = origin.as_ref().and_then(|origin| {
            let far_line = self.far_lines.get(&line)?;
            let is_known = happens_before(&far_line.write.clock, &write.clock);
            let uses_old_data =
                origin.mask != u128::MAX || origin.stale || origin.loaded && !is_known;
            (far_line.version > origin.version && uses_old_data).then_some(far_line)
        });
        let newer = newer.map(|far_line| far_line.write.site);
        let version = self
            .far_lines
            .get(&line)
            .map_or(0, |far_line| far_line.version)
            + 1;
        if let Some(origin) = &mut origin {
            **origin = LineOrigin::new(line, version);
        }
        let overwritten = newer.map(|first| (RaceKind::Overwritten, first));
        let core_id = write.site.core_id;
        let unordered = self.far_lines.get(&line).filter(|far_line| {
            !far_line
                .arrival_clocks
                .iter()
                .any(|clock| happens_before(clock, &write.clock))
        });
        let unordered = unordered.map(|far_line| (RaceKind::UnorderedStores, far_line.write.site));
        let read = self.conflicting_read(core_id, line, &write.clock);
        let read = read.map(|read| (RaceKind::UnorderedRead, read));
        let unordered = unordered.or(read).filter(|_| both_write.is_none());
        for (kind, first) in both_write.into_iter().chain(overwritten.or(unordered)) {
            self.report_race(kind, write.site, first, line);
        }
        self.create_version(line, write);
        if let Some(line_copy) = self.find_line_copy(mcc, scratchpad, command) {
            line_copy.version = version;
        }
    }

    /// A copy engine fetches a line of far memory. `cached_store` is the first store to the host's dirty copy.
    fn fetch_line_copy(
        &mut self,
        mcc: usize,
        (scratchpad, line): (u64, u64),
        write: &Write,
        cached_store: Option<Write>,
    ) {
        let version = self
            .far_lines
            .get(&line)
            .map_or(0, |far_line| far_line.version);
        let origin = LineOrigin::new(line, version);
        self.origins.insert((mcc, scratchpad), origin);
        let in_flight = self
            .in_flight
            .values()
            .find(|(in_flight_line, ..)| *in_flight_line == line);
        let newest = cached_store.or(in_flight.map(|(_, _, write, _)| write.clone()));
        let newest_host_write = newest.clone();
        let newest = newest.filter(|first| happens_before(&first.clock, &write.clock));
        // The data may have arrived already, but only by luck.
        let in_flight_write = self.far_lines.get(&line).filter(|far_line| {
            matches!(far_line.write.site.core_id, CoreId::Host(_))
                && far_line.may_be_in_flight(&write.clock)
        });
        let stale = newest.or(in_flight_write.map(|far_line| far_line.write.clone()));
        // Unsynchronised stores: the host's, still in its caches, and those of other cores.
        let far_line = self
            .far_lines
            .get(&line)
            .map(|far_line| far_line.write.clone());
        let unordered = newest_host_write.into_iter().chain(far_line).find(|first| {
            !self.is_same_agent(first.site.core_id, write.site.core_id)
                && !happens_before(&first.clock, &write.clock)
        });
        let stale = stale.map(|first| (RaceKind::StaleFetch, first.site));
        let unordered = unordered.map(|first| (RaceKind::UnorderedRead, first.site));
        if let Some((kind, first)) = stale.or(unordered) {
            self.report_race(kind, write.site, first, line);
            // Report this race only once, even if the core later stores the line.
            if let Some(far_line) = self.far_lines.get_mut(&line) {
                far_line.record_arrival(&write.clock);
            }
        }
        self.record_read(write.site, line, false);
    }

    /// A program ends, with all its copies. A core that learns of the end knows that the program's stores are in far
    /// memory.
    pub(crate) fn end_program(&mut self, mcc: usize) {
        let number = self.hosts + mcc;
        let clock = &self.clocks[number];
        for read in self.reads.values_mut().flatten() {
            if read.0 == number && read.1.completion.is_none() {
                read.1.completion = Some(clock[number]);
            }
        }
        let line_copies = self
            .line_copies
            .iter()
            .filter(|((core, _), _)| *core == mcc);
        let stored = line_copies
            .flat_map(|(_, line_copies)| line_copies)
            .filter(|line_copy| line_copy.stores);
        for line_copy in stored {
            let far_line = self.far_lines.get_mut(&line_copy.far);
            if let Some(far_line) =
                far_line.filter(|far_line| far_line.version == line_copy.version)
            {
                far_line.record_arrival(clock);
            }
        }
        self.release_to_channel(CoreId::Mcc(mcc), SyncChannel::Control(mcc));
    }

    /// A program starts on a core.
    pub(crate) fn start_program(&mut self, mcc: usize) {
        self.commands[mcc].clear();
        self.line_copies.retain(|(core, _), _| *core != mcc);
        self.origins.retain(|(core, _), _| *core != mcc);
        self.words.retain(|(core, _), _| *core != mcc);
        self.acquire_from_channel(CoreId::Mcc(mcc), SyncChannel::Control(mcc));
    }
}

#[cfg(test)]
mod tests;
