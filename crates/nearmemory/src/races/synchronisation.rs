//! Knowledge of the cores, and the channels, FIFOs, requests and responses that carry it.

use super::knowledge::{join, Clock, Fifo, SyncChannel};
use crate::events::{CoreCounts, CoreId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Synchronisation of the cores: the knowledge of each, and the knowledge that messages carry.
#[derive(Clone, Debug)]
pub(crate) struct Synchronisation {
    /// Cores, whose numbers index the clocks.
    counts: CoreCounts,
    /// Knowledge of each core.
    clocks: Vec<Clock>,
    /// Knowledge that receivers gain from each channel.
    channel_clocks: FxHashMap<SyncChannel, Clock>,
    /// FIFOs by sender and receiver, as indices of near-memory cores.
    fifos: FxHashMap<(usize, usize), Fifo>,
    /// Knowledge from acknowledgements, which each core of a host gains by its next fence.
    acknowledged_knowledge: Vec<Clock>,
    /// Knowledge that requests and responses carry, by number of the request.
    carried_knowledge: FxHashMap<u64, Clock>,
    /// Outstanding reads of scratchpad lines, by request.
    pending_reads: FxHashMap<u64, SyncChannel>,
}

impl Synchronisation {
    /// Creates the knowledge of the cores. Each initially knows its own time, 1, and nothing of others.
    pub(super) fn new(counts: CoreCounts) -> Synchronisation {
        let count = counts.total();
        let clock = |core| (0..count).map(|index| u64::from(index == core)).collect();
        Synchronisation {
            counts,
            clocks: (0..count).map(clock).collect(),
            channel_clocks: FxHashMap::default(),
            fifos: FxHashMap::default(),
            acknowledged_knowledge: vec![Clock::new(); count],
            carried_knowledge: FxHashMap::default(),
            pending_reads: FxHashMap::default(),
        }
    }

    /// Returns the index of a core's clock.
    pub(super) fn core_index(&self, core_id: CoreId) -> usize {
        self.counts.index(core_id)
    }

    /// Returns the knowledge that a core passes on, and advances its clock, so that later accesses are not part of it.
    pub(super) fn release_clock(&mut self, core_id: CoreId) -> Clock {
        let clock = self.knowledge(core_id);
        let core_numbers = self.numbers_of_agent(core_id);
        core_numbers.for_each(|number| self.clocks[number][number] += 1);
        clock
    }

    /// Returns the numbers of the cores that share knowledge with a core: those of its host, or only itself.
    fn numbers_of_agent(&self, core_id: CoreId) -> Range<usize> {
        match core_id {
            CoreId::Host { host, .. } => self.counts.cores_of(host),
            CoreId::Mcc(_) => {
                let number = self.core_index(core_id);
                number..number + 1
            }
        }
    }

    /// Returns the knowledge of a core; the cores of a host share theirs.
    pub(super) fn knowledge(&self, core_id: CoreId) -> Clock {
        let core_numbers = self.numbers_of_agent(core_id);
        let mut clock = self.clocks[core_numbers.start].clone();
        core_numbers
            .skip(1)
            .for_each(|core| join(&mut clock, &self.clocks[core]));
        clock
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
            let sender = self.core_index(CoreId::Mcc(from));
            join(&mut self.clocks[sender], &room);
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

    /// A request of a host core departs with the core's knowledge; [`super::RaceDetector::receive_request`] follows at its
    /// destination.
    pub(crate) fn send_request(&mut self, core_id: CoreId, request: u64) {
        let clock = self.release_clock(core_id);
        self.carried_knowledge.insert(request, clock);
    }

    /// A request arrives at a register that no other program can observe.
    pub(crate) fn discard_request(&mut self, request: u64) {
        self.carried_knowledge.remove(&request);
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

    /// Cores of a host (a bit mask) receive the acknowledgement of a write-back, for which their next fence waits.
    pub(crate) fn acknowledge_write_back(&mut self, host: usize, cores: u64, request: u64) {
        let Some(clock) = self.carried_knowledge.remove(&request) else {
            return;
        };
        for number in self.numbers_of_cores(host, cores) {
            join(&mut self.acknowledged_knowledge[number], &clock);
        }
    }

    /// Returns the indices of the clocks of a host's cores, which a bit mask gives.
    pub(super) fn numbers_of_cores(&self, host: usize, cores: u64) -> Vec<usize> {
        let numbers = self.counts.cores_of(host).enumerate();
        let numbers = numbers.filter(|(core, _)| cores >> core & 1 != 0);
        numbers.map(|(_, number)| number).collect()
    }

    /// A host core receives a response.
    pub(crate) fn receive_response(&mut self, core_id: CoreId, request: u64) {
        let number = self.core_index(core_id);
        if let Some(clock) = self.carried_knowledge.remove(&request) {
            join(&mut self.clocks[number], &clock);
        }
    }

    /// Returns the clock of a core, given by its index.
    pub(super) fn clock(&self, core: usize) -> &Clock {
        &self.clocks[core]
    }

    /// Returns the own time of a core, given by its index.
    pub(super) fn time(&self, core: usize) -> u64 {
        self.clocks[core][core]
    }

    /// A core, given by its index, gains knowledge.
    pub(super) fn learn(&mut self, core: usize, knowledge: &Clock) {
        join(&mut self.clocks[core], knowledge);
    }

    /// Raises the own time of a core, given by its index, to at least `time`.
    pub(super) fn advance_time(&mut self, core: usize, time: u64) {
        self.clocks[core][core] = self.clocks[core][core].max(time);
    }

    /// Receivers of a channel gain knowledge in addition.
    pub(super) fn add_to_channel(&mut self, channel: SyncChannel, knowledge: &Clock) {
        join(self.channel_clocks.entry(channel).or_default(), knowledge);
    }

    /// A request or response carries this knowledge.
    pub(super) fn carry(&mut self, request: u64, knowledge: Clock) {
        self.carried_knowledge.insert(request, knowledge);
    }

    /// Takes the knowledge that a request or response carries, if there is any.
    pub(super) fn take_carried(&mut self, request: u64) -> Option<Clock> {
        self.carried_knowledge.remove(&request)
    }

    /// A request arrives and releases its knowledge to the channel.
    pub(super) fn complete_request(&mut self, request: u64, channel: SyncChannel) {
        if let Some(clock) = self.take_carried(request) {
            self.add_to_channel(channel, &clock);
        }
    }

    /// A host core, given by its index, completes a fence and gains the knowledge of all acknowledgements.
    pub(super) fn acquire_acknowledgements(&mut self, core: usize) {
        join(&mut self.clocks[core], &self.acknowledged_knowledge[core]);
    }
}
