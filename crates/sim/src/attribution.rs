//! Where the time of accesses goes: what each moment of an access was spent on, and what limits how many there are.
//!
//! A [`Chain`] is what led to something, step by step: a message was taken because it had arrived, which took its time on
//! links, because it was sent, which took its time at the home, because a request was taken, and so on. The chain of what
//! ends an access is followed back to the moment at which the access was issued, so that its steps are its time, without
//! a gap and without an overlap: times are whole picoseconds, and the sum is the latency itself.

use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::VecDeque;

use crate::kernel::Time;
use crate::message::{Agent, Line};
use crate::timeline::Timeline;
use cohkit_protocol::controller::Access;

/// What kind of thing takes time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The core, and the way between it and its cache.
    Core,
    /// Translations of addresses.
    Translation,
    /// Links: wires, the sending of bytes, and a switch.
    Link,
    /// To wait for something that others use: a link, a unit, memory, a place.
    Queue,
    /// The home.
    Home,
    /// Memory.
    Memory,
    /// Links to caches that are asked for a line, and back.
    Forward,
    /// To wait because others want the same line, and to begin again.
    Retry,
    /// What is no part of the machine: threads, applications and devices.
    Other,
}

impl Part {
    /// All of them, in the order in which they are told.
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

    /// Its name.
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
        /// What takes time.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)] // Each is told by its text.
        pub enum Step { $($step,)* }

        impl Step {
            /// All of them, part by part.
            pub const ALL: &[Step] = &[$(Step::$step,)*];

            /// The part that it belongs to.
            pub fn part(self) -> Part {
                match self { $(Step::$step => Part::$part,)* }
            }

            /// Its name, which no other one has.
            pub fn name(self) -> &'static str {
                match self { $(Step::$step => $name,)* }
            }

            /// What it is.
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
    Serialise Link "serialise" "until the bytes of messages are on the link";
    Wire Link "wire" "along the link, or from its first bit to its last where it is framed";
    Switch Link "switch" "through the switch";
    IssueSlot Queue "issue_slot" "for the core to let the next access out";
    WriteBuffer Queue "write_buffer" "for the write buffer of the core";
    Ways Queue "ways" "for a way of its set";
    LinkFree Queue "link_free" "for a link to be free, or for what is before a message on it";
    Room Queue "room" "for room at the receiver, in the message's circuit";
    InputQueue Queue "input_queue" "for earlier messages in an input queue of a network";
    Unit Queue "unit" "for the line's unit of the home";
    ReadSlot Queue "read_slot" "for a memory read of the unit to end";
    WriteSlot Queue "write_slot" "for a memory write of the unit to end";
    ForwardSlot Queue "forward_slot" "for the unit's coherence transaction with caches to end";
    MemoryBusy Queue "memory_busy" "for a bank, a bus or a port of memory";
    Handling Home "handling" "from what a unit of the home takes to what it does";
    Path Home "path" "between a unit and memory, both ways";
    Clocked Home "clocked" "in a home that is RTL";
    Memory Memory "memory" "in memory, its controller included";
    ForwardSerialise Forward "forward_serialise" "until the bytes of forwards and their answers are on the link";
    ForwardWire Forward "forward_wire" "forwards and their answers along links and through a switch";
    LineAtHome Retry "line_at_home" "the home leaves the message until others are done with its line";
    LineAtCache Retry "line_at_cache" "until a cache is done with what it does about the line itself";
    Again Retry "again" "from when it was begun in vain until it was begun again";
    Elsewhere Other "elsewhere" "with threads, applications or devices";
}

/// Some time that passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// What it was spent on.
    pub step: Step,
    /// The number of the message that travelled or waited, if one did.
    pub message: Option<u16>,
    /// When it began.
    pub begin: Time,
    /// When it ended.
    pub end: Time,
}

/// The end of a chain of steps. Which ones they are is in [`Attribution`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    node: u64,
    pub end: Time,
}

/// A step of a chain.
#[derive(Clone, Copy)]
struct Node {
    /// The step before it; [`FIRST`] if there is none.
    before: u64,
    of: Segment,
}

/// The number of no node.
const FIRST: u64 = u64::MAX;
/// Nodes between two times at which old ones are forgotten, at least.
const KEPT: usize = 1 << 12;

/// A message under way.
#[derive(Clone, Copy)]
pub(crate) struct Under {
    pub chain: Chain,
    /// Whether it is on the way to or from a cache that is asked for a line.
    pub forward: bool,
    /// What it waits for, if it has been set aside.
    pub because: Option<Step>,
    /// What it competes for.
    pub contends: Option<Contended>,
}

/// An access that has reached its cache, or waits at its core.
#[derive(Clone, Copy)]
pub(crate) struct Begun {
    pub chain: Chain,
    issued: Time,
    /// Whether it has been at its cache.
    pub reached: bool,
    /// The configuration of the line from which it began a transaction, if it has.
    pub begun: Option<u32>,
    /// What it waits for.
    pub because: Step,
    pub contends: Option<Contended>,
}

/// What is not a thing with a capacity, but only some can have at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Contended {
    Line(Line),
    Ways(Agent),
}

/// For how long anything has waited.
#[derive(Clone, Copy, Default)]
struct Contention {
    waiting: u32,
    since: Time,
    total: Time,
}

/// One access that was performed, and what its time was spent on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// The core that made it.
    pub core: u16,
    /// The line.
    pub line: Line,
    /// The access.
    pub access: Access,
    /// When it was issued.
    pub issued: Time,
    /// When it was done.
    pub done: Time,
    /// What was in between, one after the other.
    pub segments: Vec<Segment>,
}

impl Transaction {
    /// What was measured of it.
    pub fn latency(&self) -> Time {
        self.done - self.issued
    }

    /// The sum of what it was spent on, of one step or all.
    pub fn spent(&self, of: impl Fn(Step) -> bool) -> Time {
        let its = self.segments.iter().filter(|segment| of(segment.step));
        its.map(|segment| segment.end - segment.begin).sum()
    }
}

/// Messages under way by the number of their sending. Those under way at a time have numbers close to each other.
pub(crate) struct Flights {
    places: Vec<Option<(u32, Under)>>,
}

impl Flights {
    fn place(&self, flight: u32) -> usize {
        flight as usize & (self.places.len() - 1)
    }

    pub fn get(&self, flight: u32) -> Option<Under> {
        let of = self.places[self.place(flight)];
        of.filter(|&(its, _)| its == flight).map(|(_, under)| under)
    }

    pub fn remove(&mut self, flight: u32) -> Option<Under> {
        let place = self.place(flight);
        let of = self.places[place].take_if(|(its, _)| *its == flight);
        of.map(|(_, under)| under)
    }

    pub fn insert(&mut self, flight: u32, under: Under) {
        loop {
            let place = self.place(flight);
            match self.places[place] {
                Some((its, _)) if its != flight => self.grow(),
                _ => {
                    self.places[place] = Some((flight, under));
                    return;
                }
            }
        }
    }

    /// Twice as many places: numbers that differ have places that differ once there are enough.
    fn grow(&mut self) {
        let more = vec![None; 2 * self.places.len()];
        for (flight, under) in std::mem::replace(&mut self.places, more)
            .into_iter()
            .flatten()
        {
            let place = self.place(flight);
            self.places[place] = Some((flight, under));
        }
    }
}

/// Accesses that have been seen, by their place in the pool.
#[derive(Default)]
pub(crate) struct Accesses {
    places: Vec<Option<Begun>>,
}

impl Accesses {
    pub fn get(&self, index: u32) -> Option<Begun> {
        self.places.get(index as usize).copied().flatten()
    }

    pub fn get_mut(&mut self, index: u32) -> Option<&mut Begun> {
        self.places.get_mut(index as usize)?.as_mut()
    }

    pub fn remove(&mut self, index: u32) -> Option<Begun> {
        self.places.get_mut(index as usize)?.take()
    }

    pub fn insert(&mut self, index: u32, begun: Begun) {
        let place = index as usize;
        if place >= self.places.len() {
            self.places.resize(place + 1, None);
        }
        self.places[place] = Some(begun);
    }
}

/// What is noted while a simulation runs.
pub(crate) struct Attribution {
    nodes: VecDeque<Node>,
    /// The number of the first node that is kept.
    base: u64,
    /// How many nodes there are when old ones are forgotten.
    full: usize,
    /// What is being carried out, and in which event that was said.
    current: Option<(u64, Chain, bool)>,
    pub messages: Flights,
    pub accesses: Accesses,
    /// Memory operations that units wait for, reads and writes, by line.
    operations: [FxHashMap<Line, VecDeque<Chain>>; 2],
    /// The last memory operation of an event.
    pub operated: Option<(u64, Chain)>,
    /// Time spent, by step.
    totals: Vec<u128>,
    count: u64,
    latency: u128,
    slowest: Option<Transaction>,
    /// Room for the steps of the next access.
    room: Vec<Segment>,
    /// All of them, where that is asked for.
    all: Option<Vec<Transaction>>,
    /// What is drawn of the run, where that is asked for.
    pub timeline: Option<Box<Timeline>>,
    contention: FxHashMap<Contended, Contention>,
    /// Of each core, the sum of its latencies, and when the last of its accesses was done.
    pub cores: Vec<(Time, Time)>,
    /// For how long each bank, bus or port of a memory was in use, by memory.
    pub memory: FxHashMap<(usize, &'static str, usize), Time>,
    /// Time of memory reads and writes of each unit, and the time in which it had forwards without an answer.
    pub slots: Vec<[Time; 3]>,
    pub forwards: Vec<(u32, Time)>,
}

impl Attribution {
    pub fn new(units: usize, cores: usize, all: bool) -> Attribution {
        Attribution {
            nodes: VecDeque::new(),
            base: 0,
            full: KEPT,
            current: None,
            messages: Flights {
                places: vec![None; 1 << 10],
            },
            accesses: Accesses::default(),
            operations: Default::default(),
            operated: None,
            totals: vec![0; Step::ALL.len()],
            count: 0,
            latency: 0,
            slowest: None,
            room: Vec::new(),
            all: all.then(Vec::new),
            timeline: None,
            contention: FxHashMap::default(),
            cores: vec![(0, 0); cores],
            memory: FxHashMap::default(),
            slots: vec![[0; 3]; units],
            forwards: vec![(0, 0); units],
        }
    }

    /// A chain that begins now.
    pub fn begin(&mut self, now: Time) -> Chain {
        Chain {
            node: FIRST,
            end: now,
        }
    }

    /// A chain that goes on until then with a step. What takes no time is no step.
    pub fn go_on(&mut self, chain: Chain, end: Time, step: Step, message: Option<u16>) -> Chain {
        if end <= chain.end {
            return chain;
        }
        if self.nodes.len() >= self.full {
            self.forget();
        }
        let of = Segment {
            step,
            message,
            begin: chain.end,
            end,
        };
        self.nodes.push_back(Node {
            before: chain.node,
            of,
        });
        Chain {
            node: self.base + self.nodes.len() as u64 - 1,
            end,
        }
    }

    /// What ended before the oldest access was issued is in the time of no access.
    fn forget(&mut self) {
        let open = self.accesses.places.iter().flatten();
        let oldest = open.map(|access| access.issued).min();
        while let Some(first) = self.nodes.front() {
            if oldest.is_none_or(|oldest| first.of.end > oldest) {
                break;
            }
            self.nodes.pop_front();
            self.base += 1;
        }
        self.full = 2 * self.nodes.len() + KEPT;
    }

    /// From now on, in this event, things happen because of this chain.
    pub fn because(&mut self, event: u64, chain: Chain, forward: bool) {
        self.current = Some((event, chain, forward));
    }

    /// What is being carried out in this event, and whether a forward is; nothing that is known if it is not said.
    pub fn current(&mut self, event: u64, now: Time) -> (Chain, bool) {
        match self.current {
            Some((of, chain, forward)) if of == event => (chain, forward),
            _ => (self.begin(now), false),
        }
    }

    /// An access is seen for the first time.
    pub fn issued(&mut self, issued: Time) -> Begun {
        Begun {
            chain: self.begin(issued),
            issued,
            reached: false,
            begun: None,
            because: Step::WriteBuffer,
            contends: None,
        }
    }

    /// A memory operation begins whose end a unit is told.
    pub fn operation(&mut self, line: Line, write: bool, chain: Chain) {
        let lines = &mut self.operations[usize::from(write)];
        lines.entry(line).or_default().push_back(chain);
    }

    /// A unit has been told, and goes on.
    pub fn operation_taken(&mut self, line: Line, write: bool) -> Option<Chain> {
        let lines = &mut self.operations[usize::from(write)];
        let waiting = lines.get_mut(&line)?;
        let first = waiting.pop_front();
        if waiting.is_empty() {
            lines.remove(&line);
        }
        first
    }

    /// Something waits for what another one has.
    pub fn contends(&mut self, what: Contended, now: Time) {
        let of = self.contention.entry(what).or_default();
        if of.waiting == 0 {
            of.since = now;
        }
        of.waiting += 1;
    }

    /// It no longer does.
    pub fn contends_no_more(&mut self, what: Option<Contended>, now: Time) {
        let Some(of) = what.and_then(|what| self.contention.get_mut(&what)) else {
            return;
        };
        of.waiting -= 1;
        if of.waiting == 0 {
            of.total += now - of.since;
        }
    }

    /// For how long something waited for what another one had, until the end.
    pub fn contended(&self, end: Time) -> Vec<(Contended, Time)> {
        let all = self.contention.iter().map(|(&what, of)| {
            let open = match of.waiting {
                0 => 0,
                _ => end.saturating_sub(of.since),
            };
            (what, of.total + open)
        });
        let mut all: Vec<_> = all.collect();
        all.sort_unstable_by_key(|&(what, time)| (std::cmp::Reverse(time), what));
        all
    }

    /// An access has been performed: what led to its end, back to when it reached its cache, and before that its own way there.
    pub fn performed(
        &mut self,
        agent: Agent,
        end: Chain,
        own: Chain,
        mut transaction: Transaction,
    ) {
        let mut segments = std::mem::take(&mut self.room);
        segments.clear();
        self.collect(end, own.end, &mut segments);
        self.collect(own, transaction.issued, &mut segments);
        segments.reverse();
        transaction.segments = segments;
        self.count += 1;
        let (busy, last) = &mut self.cores[usize::from(transaction.core)];
        *busy += transaction.latency();
        *last = transaction.done.max(*last);
        self.latency += u128::from(transaction.latency());
        for segment in &transaction.segments {
            self.totals[segment.step as usize] += u128::from(segment.end - segment.begin);
        }
        let slowest = self.slowest.as_ref().map(Transaction::latency);
        if slowest.is_none_or(|slowest| transaction.latency() > slowest) {
            self.slowest = Some(transaction.clone());
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.performed(agent, &transaction);
        }
        match &mut self.all {
            Some(all) => all.push(transaction),
            None => self.room = transaction.segments,
        }
    }

    /// The steps of a chain back to a moment, the last one first.
    fn collect(&self, chain: Chain, from: Time, segments: &mut Vec<Segment>) {
        let (mut number, mut until) = (chain.node, chain.end);
        while until > from {
            let place = number.checked_sub(self.base).map(|place| place as usize);
            let node = place.and_then(|place| self.nodes.get(place));
            let Some(node) = node.filter(|_| number != FIRST) else {
                break;
            };
            segments.push(Segment {
                begin: node.of.begin.max(from),
                ..node.of
            });
            (number, until) = (node.before, node.of.begin);
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

    /// What has come of it.
    pub fn explanation(self, resources: Vec<Resource>, limit: Limit) -> Explanation {
        Explanation {
            accesses: self.count,
            latency: self.latency,
            totals: self.totals,
            slowest: self.slowest,
            resources,
            limit,
            transactions: self.all.unwrap_or_default(),
        }
    }

    /// The share of a part in the time of all accesses.
    pub fn share(&self, part: Part) -> f64 {
        let steps = Step::ALL.iter().filter(|step| step.part() == part);
        let spent: u128 = steps.map(|&step| self.totals[step as usize]).sum();
        spent as f64 / self.latency.max(1) as f64
    }
}

/// What can do or hold so much at a time. Of several of a kind it is the one that was most in use.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Resource {
    /// What it is.
    pub name: String,
    /// Which of them that is, if it has a number.
    pub which: Option<String>,
    /// How many there are.
    pub count: usize,
    /// The share of the simulated time in which it was in use.
    pub utilisation: f64,
    /// The mean of all of its kind.
    pub mean: f64,
    /// Whether something works in it, so that it is not in use for what it waits for itself.
    pub works: bool,
}

/// What limits how many accesses are performed in a time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Limit {
    /// What it is.
    pub name: String,
    /// The share of the simulated time in which it was in use.
    pub utilisation: f64,
    /// Why it is that.
    pub reason: String,
}

/// Where the time of accesses has gone.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Accesses performed whose latency was measured.
    pub accesses: u64,
    /// The sum of their latencies in picoseconds.
    pub latency: u128,
    /// That of what each of [`Step::ALL`] took.
    totals: Vec<u128>,
    /// The one that took longest; of several the first.
    pub slowest: Option<Transaction>,
    /// What can do or hold so much at a time.
    pub resources: Vec<Resource>,
    /// The one that limits the others.
    pub limit: Limit,
    /// All accesses, if they were asked for.
    pub transactions: Vec<Transaction>,
}

impl Explanation {
    /// What a step took, summed over accesses.
    pub fn total(&self, step: Step) -> u128 {
        self.totals[step as usize]
    }

    /// The same of a part.
    pub fn of_part(&self, part: Part) -> u128 {
        let steps = Step::ALL.iter().filter(|step| step.part() == part);
        steps.map(|&step| self.total(step)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transaction(issued: Time, done: Time) -> Transaction {
        Transaction {
            core: 0,
            line: 0,
            access: Access::Load,
            issued,
            done,
            segments: Vec::new(),
        }
    }

    /// What went before an access is none of its time, and what nobody has told is seen.
    #[test]
    fn a_chain_is_cut_where_the_access_begins() {
        let mut of = Attribution::new(1, 1, true);
        let others = of.begin(10);
        let others = of.go_on(others, 50, Step::Wire, Some(3));
        let own = of.begin(20);
        let own = of.go_on(own, 30, Step::ToCache, None);
        let end = of.go_on(others, 80, Step::Unit, None);
        of.performed(Agent(0), end, own, transaction(20, 80));
        let untold = of.begin(95);
        let untold = of.go_on(untold, 100, Step::FromCache, None);
        of.performed(Agent(0), untold, own, transaction(20, 100));
        let limit = Limit {
            name: String::new(),
            utilisation: 0.0,
            reason: String::new(),
        };
        let explanation = of.explanation(Vec::new(), limit);
        let steps = |number: usize| -> Vec<_> {
            let its = explanation.transactions[number].segments.iter();
            its.map(|segment| (segment.step, segment.begin, segment.end))
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

    /// Old steps are forgotten, but none of an access that is under way.
    #[test]
    fn a_long_wait_keeps_its_steps() {
        let mut of = Attribution::new(1, 1, true);
        let issued = of.issued(1_000);
        of.accesses.insert(7, issued);
        let mut chain = of.begin(0);
        for end in 1..=5 * KEPT as u64 {
            chain = of.go_on(chain, end, Step::Wire, None);
        }
        assert!(of.base > 0, "nothing is forgotten");
        let done = chain.end;
        of.performed(Agent(0), chain, issued.chain, transaction(1_000, done));
        let all = of.all.unwrap_or_default();
        assert_eq!(all[0].spent(|step| step == Step::Wire), done - 1_000);
    }

    #[test]
    fn waiting_is_counted_once_however_many_wait() {
        let mut of = Attribution::new(1, 1, false);
        let line = Contended::Line(4);
        of.contends(line, 10);
        of.contends(line, 20);
        of.contends_no_more(Some(line), 30);
        of.contends_no_more(Some(line), 50);
        of.contends(line, 90);
        assert_eq!(of.contended(100), [(line, 50)]);
    }
}
