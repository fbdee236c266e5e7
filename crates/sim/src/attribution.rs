//! Latency breakdown of accesses by step, and the resource that limits throughput.
//!
//! A [`Chain`] is the causal history of an event, one step after the other. Example: a message was received because it
//! had arrived, which took time on links. It was sent because a request was handled, which took time at the home.
//! The chain of an access's completion is followed back to the issue of the access. Its steps therefore cover the
//! latency without gap or overlap. Times are whole picoseconds, and their sum is exactly the latency.

use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::VecDeque;

use crate::kernel::Time;
use crate::message::{Agent, CoreId, Line};
use crate::timeline::Timeline;
use cohkit_protocol::controller::Access;

/// Component or activity to which a [`Step`] belongs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The core, and the path between the core and its cache.
    Core,
    /// Address translation.
    Translation,
    /// Links: wires, serialisation of bytes, and a switch.
    Link,
    /// Waiting for a resource in use by others: a link, a unit, memory, a cache way.
    Queue,
    /// The home.
    Home,
    /// Memory, including its controller.
    Memory,
    /// Links to and from caches that receive forwards for the line.
    Forward,
    /// Conflicts: waiting while others hold the same line, and restarted transactions.
    Retry,
    /// Outside the machine: threads, applications and devices.
    Other,
}

impl Part {
    /// All parts, in the order of reports.
    pub const ALL: [Part; 9] = [
        Part::Core,
        Part::Translation,
        Part::Link,
        Part::Queue,
        Part::Home,
        Part::Memory,
        Part::Forward,
        Part::Retry,
        Part::Other,
    ];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Part::Core => "core",
            Part::Translation => "translation",
            Part::Link => "link",
            Part::Queue => "queue",
            Part::Home => "home",
            Part::Memory => "memory",
            Part::Forward => "forward",
            Part::Retry => "retry",
            Part::Other => "other",
        }
    }
}

macro_rules! steps {
    ($($step:ident $part:ident $name:literal $text:literal;)*) => {
        /// A kind of delay in the latency of an access.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)] // Each variant is described by its text.
        pub enum Step { $($step,)* }

        impl Step {
            /// All steps, grouped by part.
            pub const ALL: &[Step] = &[$(Step::$step,)*];

            /// Part of the machine that the step is counted under.
            pub fn part(self) -> Part {
                match self { $(Step::$step => Part::$part,)* }
            }

            /// Unique name in reports.
            pub fn name(self) -> &'static str {
                match self { $(Step::$step => $name,)* }
            }

            /// Description: a phrase without a verb.
            pub fn text(self) -> &'static str {
                match self { $(Step::$step => $text,)* }
            }
        }
    };
}

steps! {
    ToCache Core "to_cache" "from the core to its cache";
    FromCache Core "from_cache" "from the cache to its core, after a hit or a fill";
    AtCore Core "at_core" "in the L1 or the write buffer of the core";
    Translation Translation "translation" "until the address is translated";
    Serialise Link "serialise" "until all bytes of a message are on the link";
    Wire Link "wire" "along the link, or from its first bit to its last where it is framed";
    Switch Link "switch" "through the switch";
    IssueSlot Queue "issue_slot" "for the core to issue the next access";
    WriteBuffer Queue "write_buffer" "for the write buffer of the core";
    Ways Queue "ways" "for a way of its set";
    LinkFree Queue "link_free" "for a link to be free, or for earlier messages on it";
    Room Queue "room" "for a credit of the message's virtual circuit";
    InputQueue Queue "input_queue" "for earlier messages in an input queue of a network";
    Unit Queue "unit" "for the line's unit of the home";
    ReadSlot Queue "read_slot" "for a memory read of the unit to end";
    WriteSlot Queue "write_slot" "for a memory write of the unit to end";
    ForwardSlot Queue "forward_slot" "for the unit's coherence transaction with caches to end";
    MemoryBusy Queue "memory_busy" "for a bank, a bus or a port of memory";
    Handling Home "handling" "from a unit of the home accepting an input to its action";
    Path Home "path" "between a unit and memory, both ways";
    Clocked Home "clocked" "in a home that is RTL";
    Memory Memory "memory" "in memory, its controller included";
    ForwardSerialise Forward "forward_serialise" "until the bytes of forwards and their answers are on the link";
    ForwardWire Forward "forward_wire" "forwards and their answers along links and through a switch";
    LineAtHome Retry "line_at_home" "while the home stalls the message until other agents finish with its line";
    LineAtCache Retry "line_at_cache" "until a cache completes its own transaction on the line";
    Again Retry "again" "from a failed attempt until the retry";
    Elsewhere Other "elsewhere" "with threads, applications or devices";
}

/// An interval of an access's latency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Cause of the delay.
    pub step: Step,
    /// Type of the message that travelled or waited, as an index into the messages of the protocol; `None` if there was
    /// no message.
    pub message: Option<u16>,
    /// Start, in picoseconds.
    pub begin: Time,
    /// End, in picoseconds.
    pub end: Time,
}

/// The last step of a chain, as a handle to the nodes of [`Attribution`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    /// Number of the node of the step, or [`FIRST`] for a chain without steps.
    node: u64,
    /// End of the step, in picoseconds; that of a chain without steps is its start.
    pub end: Time,
}

/// A step of a chain, linked to its predecessor.
#[derive(Clone, Copy)]
struct Node {
    /// Number of the preceding node, or [`FIRST`].
    previous: u64,
    /// Step, and its interval.
    segment: Segment,
}

/// Predecessor of the first step of a chain; not the number of any node.
const FIRST: u64 = u64::MAX;
/// Minimum number of nodes added between two calls of [`Attribution::drop_old_nodes`], each of which visits all active
/// accesses.
const MIN_NODES_BEFORE_DROP: usize = 1 << 12;

/// A message in flight.
#[derive(Clone, Copy)]
pub(crate) struct MessageRecord {
    /// Causal history of the message so far.
    pub chain: Chain,
    /// True if the message is a forward to a cache, or the response to one.
    pub forward: bool,
    /// Step under which the time until the message is taken is counted, if the message has been deferred.
    pub wait_step: Option<Step>,
    /// Line for which the message waits, if any.
    pub contended: Option<Contended>,
}

/// An access that has reached its cache, or waits at its core.
#[derive(Clone, Copy)]
pub(crate) struct ActiveAccess {
    /// Causal history since the issue of the access.
    pub chain: Chain,
    /// Time of issue, in picoseconds.
    issued: Time,
    /// True once the access has reached its cache.
    pub reached: bool,
    /// Configuration of the line in which the access last began a transaction, if it has begun one.
    pub begin_configuration: Option<u32>,
    /// Step under which the current wait is counted.
    pub wait_step: Step,
    /// Ways for which the access waits, if any.
    pub contended: Option<Contended>,
}

/// A line, or the ways of a cache, for which messages or accesses wait while others hold it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Contended {
    /// Line that the home or a cache holds in a transaction.
    Line(Line),
    /// Ways of a set of this cache, all of them in use.
    Ways(Agent),
}

/// Time in which at least one message or access waited.
#[derive(Clone, Copy, Default)]
struct Contention {
    /// Number of messages and accesses that wait now.
    waiting: u32,
    /// Time since which at least one of them waits, in picoseconds; meaningless if none does.
    since: Time,
    /// Time of completed intervals in which at least one waited, in picoseconds.
    total: Time,
}

/// A performed access and its latency by step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// Issuing core.
    pub core: CoreId,
    /// The line.
    pub line: Line,
    /// The access.
    pub access: Access,
    /// Time of issue, in picoseconds.
    pub issued: Time,
    /// Time of completion at the core, in picoseconds.
    pub done: Time,
    /// Contiguous intervals from issue to completion, in order.
    pub segments: Vec<Segment>,
}

impl Transaction {
    /// Latency from issue to completion, in picoseconds.
    pub fn latency(&self) -> Time {
        self.done - self.issued
    }

    /// Sum of the intervals of all steps for which `is_counted` is true, in picoseconds.
    pub fn spent(&self, is_counted: impl Fn(Step) -> bool) -> Time {
        let segments = self
            .segments
            .iter()
            .filter(|segment| is_counted(segment.step));
        segments.map(|segment| segment.end - segment.begin).sum()
    }
}

/// Messages in flight by sending number, a direct-mapped table. Numbers in flight at a time are close to each other, so
/// that collisions are rare.
pub(crate) struct Flights {
    /// Flight number and record, at the lowest bits of the flight number. The length is a power of two.
    places: Vec<Option<(u32, MessageRecord)>>,
}

impl Flights {
    /// Returns the only place that can hold a flight number.
    fn place(&self, flight: u32) -> usize {
        flight as usize & (self.places.len() - 1)
    }

    /// Returns the record of a message, if there is one.
    pub fn get(&self, flight: u32) -> Option<MessageRecord> {
        let entry = self.places[self.place(flight)];
        entry
            .filter(|&(number, _)| number == flight)
            .map(|(_, record)| record)
    }

    /// Removes and returns the record of a message, if there is one.
    pub fn remove(&mut self, flight: u32) -> Option<MessageRecord> {
        let place = self.place(flight);
        let entry = self.places[place].take_if(|(number, _)| *number == flight);
        entry.map(|(_, record)| record)
    }

    /// Inserts or replaces the record of a message.
    pub fn insert(&mut self, flight: u32, record: MessageRecord) {
        loop {
            let place = self.place(flight);
            match self.places[place] {
                Some((number, _)) if number != flight => self.grow(),
                _ => {
                    self.places[place] = Some((flight, record));
                    return;
                }
            }
        }
    }

    /// Doubles the table. Distinct numbers have distinct places once the table is large enough.
    fn grow(&mut self) {
        let doubled = vec![None; 2 * self.places.len()];
        for (flight, record) in std::mem::replace(&mut self.places, doubled)
            .into_iter()
            .flatten()
        {
            let place = self.place(flight);
            self.places[place] = Some((flight, record));
        }
    }
}

/// Active accesses by their index in the simulation's pool.
#[derive(Default)]
pub(crate) struct Accesses {
    /// Records at the indices of their accesses; `None` for an access that has not reached its cache, or a free
    /// index.
    places: Vec<Option<ActiveAccess>>,
}

impl Accesses {
    /// Returns the record of an access, if there is one.
    pub fn get(&self, index: u32) -> Option<ActiveAccess> {
        self.places.get(index as usize).copied().flatten()
    }

    /// Returns the record of an access for modification, if there is one.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut ActiveAccess> {
        self.places.get_mut(index as usize)?.as_mut()
    }

    /// Removes and returns the record of an access, if there is one.
    pub fn remove(&mut self, index: u32) -> Option<ActiveAccess> {
        self.places.get_mut(index as usize)?.take()
    }

    /// Inserts or replaces the record of an access.
    pub fn insert(&mut self, index: u32, active: ActiveAccess) {
        let place = index as usize;
        if place >= self.places.len() {
            self.places.resize(place + 1, None);
        }
        self.places[place] = Some(active);
    }
}

/// State of the latency breakdown during a run.
pub(crate) struct Attribution {
    /// Recent steps of all chains, in the order of recording.
    nodes: VecDeque<Node>,
    /// Number of the first node in `nodes`. Earlier nodes have been dropped.
    base: u64,
    /// Number of nodes at which old ones are dropped.
    drop_threshold: usize,
    /// Cause of the current event's actions: number of the event, chain, and whether the cause is a forward to a cache.
    current: Option<(u64, Chain, bool)>,
    /// Records of messages in flight.
    pub messages: Flights,
    /// Records of active accesses.
    pub accesses: Accesses,
    /// Outstanding memory operations of units, reads first, then writes: chains to their ends, by line, in order of
    /// issue.
    operations: [FxHashMap<Line, VecDeque<Chain>>; 2],
    /// Number of the event that last operated the memory, and the chain to the completion of that operation at its
    /// unit.
    pub last_operation: Option<(u64, Chain)>,
    /// Chains of the home's messages that wait for memory to read their line, to the end of the read.
    pub delayed_messages: FxHashMap<u32, Chain>,
    /// Latency by step, summed over accesses, in picoseconds, indexed by [`Step`].
    totals: Vec<u128>,
    /// Number of accesses measured.
    count: u64,
    /// Sum of their latencies, in picoseconds.
    latency: u128,
    /// The access with the longest latency so far; the first one of several equal ones.
    slowest: Option<Transaction>,
    /// Buffer for the segments of the next access.
    segment_buffer: Vec<Segment>,
    /// All transactions, if requested.
    transactions: Option<Vec<Transaction>>,
    /// Timeline of the run, if requested.
    pub timeline: Option<Box<Timeline>>,
    /// Waiting times, by cause.
    contention: FxHashMap<Contended, Contention>,
    /// By core: sum of latencies, and completion time of its last access, in picoseconds.
    pub cores: Vec<(Time, Time)>,
    /// Busy time of each bank, bus or port of a memory, in picoseconds. The key is the number of the memory, the
    /// kind of resource, and its number in the memory.
    pub memory: FxHashMap<(usize, &'static str, usize), Time>,
    /// Time in use of each unit's slots, in picoseconds: memory reads, memory writes, and forwards without a
    /// response.
    pub slots: Vec<[Time; 3]>,
    /// By unit: number of forwards without a response, and the time since which there is one, in picoseconds.
    pub forwards: Vec<(u32, Time)>,
}

impl Attribution {
    /// Creates the records of a run with this number of units of the home and of cores. Keeps all accesses if
    /// `records_transactions`.
    pub fn new(units: usize, cores: usize, records_transactions: bool) -> Attribution {
        Attribution {
            nodes: VecDeque::new(),
            base: 0,
            drop_threshold: MIN_NODES_BEFORE_DROP,
            current: None,
            messages: Flights {
                places: vec![None; 1 << 10],
            },
            accesses: Accesses::default(),
            operations: Default::default(),
            last_operation: None,
            delayed_messages: FxHashMap::default(),
            totals: vec![0; Step::ALL.len()],
            count: 0,
            latency: 0,
            slowest: None,
            segment_buffer: Vec::new(),
            transactions: records_transactions.then(Vec::new),
            timeline: None,
            contention: FxHashMap::default(),
            cores: vec![(0, 0); cores],
            memory: FxHashMap::default(),
            slots: vec![[0; 3]; units],
            forwards: vec![(0, 0); units],
        }
    }

    /// Returns an empty chain that starts at `now`.
    pub fn begin(&mut self, now: Time) -> Chain {
        Chain {
            node: FIRST,
            end: now,
        }
    }

    /// Returns `chain` extended by a step that ends at `end`. A step without duration is not recorded.
    pub fn extend_chain(
        &mut self,
        chain: Chain,
        end: Time,
        step: Step,
        message: Option<u16>,
    ) -> Chain {
        if end <= chain.end {
            return chain;
        }
        if self.nodes.len() >= self.drop_threshold {
            self.drop_old_nodes();
        }
        let segment = Segment {
            step,
            message,
            begin: chain.end,
            end,
        };
        self.nodes.push_back(Node {
            previous: chain.node,
            segment,
        });
        Chain {
            node: self.base + self.nodes.len() as u64 - 1,
            end,
        }
    }

    /// Drops nodes that ended before the oldest active access was issued: they are in no latency still to be computed.
    fn drop_old_nodes(&mut self) {
        let active = self.accesses.places.iter().flatten();
        let oldest = active.map(|access| access.issued).min();
        while let Some(node) = self.nodes.front() {
            if oldest.is_none_or(|oldest| node.segment.end > oldest) {
                break;
            }
            self.nodes.pop_front();
            self.base += 1;
        }
        self.drop_threshold = 2 * self.nodes.len() + MIN_NODES_BEFORE_DROP;
    }

    /// Sets the cause of all further actions in the current event.
    pub fn set_cause(&mut self, event: u64, chain: Chain, forward: bool) {
        self.current = Some((event, chain, forward));
    }

    /// Returns the cause of the current event, and whether it is a forward to a cache. Without a recorded cause, the
    /// chain is empty and starts now.
    pub fn current_cause(&mut self, event: u64, now: Time) -> (Chain, bool) {
        match self.current {
            Some((cause_event, chain, forward)) if cause_event == event => (chain, forward),
            _ => (self.begin(now), false),
        }
    }

    /// Returns the record of an access issued at `issued`.
    pub fn new_access(&mut self, issued: Time) -> ActiveAccess {
        ActiveAccess {
            chain: self.begin(issued),
            issued,
            reached: false,
            begin_configuration: None,
            wait_step: Step::WriteBuffer,
            contended: None,
        }
    }

    /// Records the start of a memory operation that resumes a unit at its end.
    pub fn record_operation(&mut self, line: Line, write: bool, chain: Chain) {
        let lines = &mut self.operations[usize::from(write)];
        lines.entry(line).or_default().push_back(chain);
    }

    /// Returns the chain of the memory operation whose end resumes the unit, and removes it.
    pub fn take_operation(&mut self, line: Line, write: bool) -> Option<Chain> {
        let lines = &mut self.operations[usize::from(write)];
        let waiting = lines.get_mut(&line)?;
        let chain = waiting.pop_front();
        if waiting.is_empty() {
            lines.remove(&line);
        }
        chain
    }

    /// Records that an access or message starts to wait for a contended line or cache.
    pub fn begin_contention(&mut self, contended: Contended, now: Time) {
        let contention = self.contention.entry(contended).or_default();
        if contention.waiting == 0 {
            contention.since = now;
        }
        contention.waiting += 1;
    }

    /// Records that the wait has ended.
    pub fn end_contention(&mut self, contended: Option<Contended>, now: Time) {
        let Some(contention) = contended.and_then(|contended| self.contention.get_mut(&contended))
        else {
            return;
        };
        contention.waiting -= 1;
        if contention.waiting == 0 {
            contention.total += now - contention.since;
        }
    }

    /// Returns the time in which each line or cache was contended up to `end`, longest first.
    pub fn contention_times(&self, end: Time) -> Vec<(Contended, Time)> {
        let times = self.contention.iter().map(|(&contended, contention)| {
            let ongoing = match contention.waiting {
                0 => 0,
                _ => end.saturating_sub(contention.since),
            };
            (contended, contention.total + ongoing)
        });
        let mut times: Vec<_> = times.collect();
        times.sort_unstable_by_key(|&(contended, time)| (std::cmp::Reverse(time), contended));
        times
    }

    /// Records a performed access. Its segments are those of `end` back to its arrival at the cache, preceded by those
    /// of its chain at its arrival, `arrival`.
    pub fn record_performed(
        &mut self,
        agent: Agent,
        end: Chain,
        arrival: Chain,
        mut transaction: Transaction,
    ) {
        let mut segments = std::mem::take(&mut self.segment_buffer);
        segments.clear();
        self.collect(end, arrival.end, &mut segments);
        self.collect(arrival, transaction.issued, &mut segments);
        segments.reverse();
        transaction.segments = segments;
        self.count += 1;
        let (busy, last_done) = &mut self.cores[transaction.core.index()];
        *busy += transaction.latency();
        *last_done = transaction.done.max(*last_done);
        self.latency += u128::from(transaction.latency());
        for segment in &transaction.segments {
            self.totals[segment.step as usize] += u128::from(segment.end - segment.begin);
        }
        let slowest = self.slowest.as_ref().map(Transaction::latency);
        if slowest.is_none_or(|slowest| transaction.latency() > slowest) {
            self.slowest = Some(transaction.clone());
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.record_performed(agent, &transaction);
        }
        match &mut self.transactions {
            Some(transactions) => transactions.push(transaction),
            None => self.segment_buffer = transaction.segments,
        }
    }

    /// Appends the segments of a chain back to time `from`, the last one first. Time without a known cause is
    /// [`Step::Elsewhere`].
    fn collect(&self, chain: Chain, from: Time, segments: &mut Vec<Segment>) {
        let (mut number, mut until) = (chain.node, chain.end);
        while until > from {
            let place = number.checked_sub(self.base).map(|place| place as usize);
            let node = place.and_then(|place| self.nodes.get(place));
            let Some(node) = node.filter(|_| number != FIRST) else {
                break;
            };
            segments.push(Segment {
                begin: node.segment.begin.max(from),
                ..node.segment
            });
            (number, until) = (node.previous, node.segment.begin);
        }
        if until > from {
            segments.push(Segment {
                step: Step::Elsewhere,
                message: None,
                begin: from,
                end: until,
            });
        }
    }

    /// Returns the breakdown of the finished run.
    pub fn explanation(self, resources: Vec<Resource>, limit: Limit) -> Explanation {
        Explanation {
            accesses: self.count,
            latency: self.latency,
            totals: self.totals,
            slowest: self.slowest,
            resources,
            limit,
            transactions: self.transactions.unwrap_or_default(),
        }
    }

    /// Share of a part in the latency of all accesses, 0 to 1.
    pub fn share(&self, part: Part) -> f64 {
        let steps = Step::ALL.iter().filter(|step| step.part() == part);
        let spent: u128 = steps.map(|&step| self.totals[step as usize]).sum();
        spent as f64 / self.latency.max(1) as f64
    }
}

/// A resource with a capacity. Of several resources of a kind, the one with the highest utilisation.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Resource {
    /// Kind of resource.
    pub name: String,
    /// Name of the individual resource, if there are several of its kind.
    pub which: Option<String>,
    /// Number of resources of the kind.
    pub count: usize,
    /// Share of the simulated time in which the resource was in use, 0 to 1.
    pub utilisation: f64,
    /// Mean utilisation of all resources of the kind, 0 to 1.
    pub mean: f64,
    /// True if the resource itself works while in use. False if it is held, also while its holder waits for something
    /// else.
    pub works: bool,
}

/// The resource that limits the throughput of accesses.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Limit {
    /// Name of the resource.
    pub name: String,
    /// Share of the simulated time in which the resource was in use, 0 to 1.
    pub utilisation: f64,
    /// Reason for the conclusion, a clause.
    pub reason: String,
}

/// Latency breakdown of a run.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Accesses performed whose latency was measured.
    pub accesses: u64,
    /// Sum of their latencies, in picoseconds.
    pub latency: u128,
    /// Latency by step, summed over accesses, in picoseconds, in the order of [`Step::ALL`].
    totals: Vec<u128>,
    /// The access with the longest latency, the first one if several are equal.
    pub slowest: Option<Transaction>,
    /// Utilisation of resources.
    pub resources: Vec<Resource>,
    /// The limiting resource.
    pub limit: Limit,
    /// All accesses, if requested; otherwise empty.
    pub transactions: Vec<Transaction>,
}

impl Explanation {
    /// Returns the latency spent in a step, summed over accesses, in picoseconds.
    pub fn total(&self, step: Step) -> u128 {
        self.totals[step as usize]
    }

    /// Returns the latency spent in all steps of a part, summed over accesses, in picoseconds.
    pub fn of_part(&self, part: Part) -> u128 {
        let steps = Step::ALL.iter().filter(|step| step.part() == part);
        steps.map(|&step| self.total(step)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Access of core 0 to line 0 without segments.
    fn transaction(issued: Time, done: Time) -> Transaction {
        Transaction {
            core: CoreId(0),
            line: 0,
            access: Access::Load,
            issued,
            done,
            segments: Vec::new(),
        }
    }

    /// A chain is cut at the issue of the access, and time without a recorded cause is visible as its own step.
    #[test]
    fn dependency_chain_is_cut_at_the_access_issue() {
        let mut attribution = Attribution::new(1, 1, true);
        let other_chain = attribution.begin(10);
        let other_chain = attribution.extend_chain(other_chain, 50, Step::Wire, Some(3));
        let arrival = attribution.begin(20);
        let arrival = attribution.extend_chain(arrival, 30, Step::ToCache, None);
        let end = attribution.extend_chain(other_chain, 80, Step::Unit, None);
        attribution.record_performed(Agent(0), end, arrival, transaction(20, 80));
        let later_chain = attribution.begin(95);
        let later_chain = attribution.extend_chain(later_chain, 100, Step::FromCache, None);
        attribution.record_performed(Agent(0), later_chain, arrival, transaction(20, 100));
        let limit = Limit {
            name: String::new(),
            utilisation: 0.0,
            reason: String::new(),
        };
        let explanation = attribution.explanation(Vec::new(), limit);
        let steps = |number: usize| -> Vec<_> {
            let segments = explanation.transactions[number].segments.iter();
            segments
                .map(|segment| (segment.step, segment.begin, segment.end))
                .collect()
        };
        let first = [
            (Step::ToCache, 20, 30),
            (Step::Wire, 30, 50),
            (Step::Unit, 50, 80),
        ];
        assert_eq!(steps(0), first);
        let second = [
            (Step::ToCache, 20, 30),
            (Step::Elsewhere, 30, 95),
            (Step::FromCache, 95, 100),
        ];
        assert_eq!(steps(1), second);
        assert_eq!(explanation.latency, 140);
        let sum: u128 = Part::ALL
            .iter()
            .map(|&part| explanation.of_part(part))
            .sum();
        assert_eq!(sum, explanation.latency);
        assert_eq!(explanation.slowest.map(|slowest| slowest.issued), Some(20));
    }

    /// Old steps are dropped, except those of active accesses.
    #[test]
    fn a_long_wait_keeps_its_steps() {
        let mut attribution = Attribution::new(1, 1, true);
        let issued = attribution.new_access(1_000);
        attribution.accesses.insert(7, issued);
        let mut chain = attribution.begin(0);
        for end in 1..=5 * MIN_NODES_BEFORE_DROP as u64 {
            chain = attribution.extend_chain(chain, end, Step::Wire, None);
        }
        assert!(attribution.base > 0, "nothing is forgotten");
        let done = chain.end;
        attribution.record_performed(Agent(0), chain, issued.chain, transaction(1_000, done));
        let transactions = attribution.transactions.unwrap_or_default();
        assert_eq!(
            transactions[0].spent(|step| step == Step::Wire),
            done - 1_000
        );
    }

    #[test]
    fn waiting_is_counted_once_however_many_wait() {
        let mut attribution = Attribution::new(1, 1, false);
        let line = Contended::Line(4);
        attribution.begin_contention(line, 10);
        attribution.begin_contention(line, 20);
        attribution.end_contention(Some(line), 30);
        attribution.end_contention(Some(line), 50);
        attribution.begin_contention(line, 90);
        assert_eq!(attribution.contention_times(100), [(line, 50)]);
    }
}
