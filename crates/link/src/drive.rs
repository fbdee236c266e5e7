//! Two ends with lanes between them, driven as fast as the lanes go, and traffic that counts itself.

use crate::chance::Noise;
use crate::layer::{Carried, Layer, Message};
use std::collections::VecDeque;

/// Ticks that a byte takes on a single lane: a number that each count of lanes to 16 divides.
pub const LANE_BYTE: u64 = 720_720;

/// One direction of the lanes.
pub struct Wire<U> {
    lanes: u32,
    delay: u64,
    /// When the next unit may leave.
    free: u64,
    /// What is under way, and when it arrives.
    pub under_way: VecDeque<(u64, U)>,
    /// What damages it.
    pub noise: Noise,
    /// Units that arrived, and how many of them had wrong bits.
    pub units: u64,
    /// Units with wrong bits.
    pub damaged: u64,
    /// Bits that arrived.
    pub bits: u64,
    /// Bits of units that say nothing.
    pub idle: u64,
}

impl<U: Carried> Wire<U> {
    fn new(lanes: u32, delay: u64, noise: Noise) -> Wire<U> {
        Wire {
            lanes,
            delay,
            free: 0,
            under_way: VecDeque::new(),
            noise,
            units: 0,
            damaged: 0,
            bits: 0,
            idle: 0,
        }
    }

    /// Ticks for so many bits.
    #[inline]
    fn ticks(&self, bits: u64) -> u64 {
        bits * (LANE_BYTE / 8) / u64::from(self.lanes)
    }

    #[inline]
    fn enter(&mut self, now: u64, unit: U) {
        self.free = now + self.ticks(unit.bits());
        self.under_way.push_back((self.free + self.delay, unit));
    }

    #[inline]
    fn leave(&mut self) -> Option<U> {
        let (_, mut unit) = self.under_way.pop_front()?;
        self.units += 1;
        self.bits += unit.bits();
        if unit.is_idle() {
            self.idle += unit.bits();
        }
        self.damaged += u64::from(self.noise.pass(&mut unit) > 0);
        Some(unit)
    }
}

/// Messages of one direction: each carries its number on its circuit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages sent on each circuit.
    pub sent: [u64; 16],
    /// Messages that came, of each circuit.
    pub came: [u64; 16],
    /// Bytes of data that came.
    pub data: u64,
    /// Bits of headers that came.
    pub headers: u64,
    /// Messages that came when another was expected.
    pub astray: u64,
}

impl Traffic {
    /// Messages that came.
    pub fn messages(&self) -> u64 {
        self.came.iter().sum()
    }
}

/// Two ends and what is between them.
pub struct Drive<L: Layer> {
    ends: [L; 2],
    /// When each end sends something next that says something, if nothing is sent, taken or comes; not known since one of
    /// these.
    leaves: [Option<u64>; 2],
    /// `wires[0]` goes from the first end to the second.
    pub wires: [Wire<L::Unit>; 2],
    /// The traffic of each direction.
    pub traffic: [Traffic; 2],
    /// Ticks since the beginning.
    pub now: u64,
    /// Units that say nothing leave one by one, as they do on wires. Otherwise they are skipped where no bits go wrong, which
    /// changes nothing else.
    pub awake: bool,
}

impl<L: Layer> Drive<L> {
    /// Ends at both sides of so many lanes, `delay` ticks long, with bit errors at `rate`.
    pub fn new(ends: [L; 2], lanes: u32, delay: u64, rate: f64, seed: u64) -> Drive<L> {
        let wire = |side: u64| Wire::new(lanes, delay, Noise::new(rate, seed ^ (0x1111 << side)));
        Drive {
            ends,
            leaves: [None; 2],
            wires: [wire(0), wire(1)],
            traffic: Default::default(),
            now: 0,
            awake: false,
        }
    }

    /// The ends.
    #[inline]
    pub fn ends(&self) -> &[L; 2] {
        &self.ends
    }

    /// The ends, now: to send there, or to take what has come.
    #[inline]
    pub fn ends_mut(&mut self) -> &mut [L; 2] {
        self.ends_and_traffic().0
    }

    /// The same, beside what has been sent and has come.
    #[inline]
    pub fn ends_and_traffic(&mut self) -> (&mut [L; 2], &mut [Traffic; 2]) {
        self.catch_up(0);
        self.catch_up(1);
        self.leaves = [None; 2];
        (&mut self.ends, &mut self.traffic)
    }

    /// When a side sends something next that is not skipped.
    #[inline]
    fn departure(&mut self, from: usize) -> u64 {
        let wire = &self.wires[from];
        if self.awake || !wire.noise.is_silent() {
            return wire.free;
        }
        if let Some(leaves) = self.leaves[from] {
            return leaves;
        }
        let end = &self.ends[from];
        let ticks = wire.ticks(end.idle_bits()).checked_mul(end.idle_units());
        let leaves = ticks.map_or(u64::MAX, |ticks| wire.free.saturating_add(ticks));
        self.leaves[from] = Some(leaves);
        leaves
    }

    /// Skips the idle units that have begun before now.
    #[inline]
    fn catch_up(&mut self, from: usize) {
        let (end, wire) = (&mut self.ends[from], &mut self.wires[from]);
        if !self.awake && wire.noise.is_silent() && wire.free < self.now {
            let bits = end.idle_bits();
            let units = (self.now - wire.free).div_ceil(wire.ticks(bits));
            end.skip(units);
            wire.free += units * wire.ticks(bits);
            wire.units += units;
            wire.bits += units * bits;
            wire.idle += units * bits;
        }
    }

    /// Whether something is going to happen, what and when.
    #[inline]
    fn next(&mut self) -> Option<(usize, u64)> {
        let departures = [self.departure(0), self.departure(1)];
        let arrival = |wire: &Wire<L::Unit>| wire.under_way.front().map_or(u64::MAX, |unit| unit.0);
        let [there, back] = &self.wires;
        let times = [arrival(there), arrival(back), departures[0], departures[1]];
        let (mut event, mut time) = (None, u64::MAX);
        for (place, at) in times.into_iter().enumerate() {
            if at < time {
                (event, time) = (Some(place), at);
            }
        }
        Some((event?, time))
    }

    /// Lanes that work.
    pub fn lanes(&self) -> u32 {
        self.wires[0].lanes
    }

    /// When something is going to happen, if anything is.
    #[inline]
    pub fn next_at(&mut self) -> Option<u64> {
        self.next().map(|(_, time)| time)
    }

    /// When something is going to arrive, at the earliest, if anything is.
    #[inline]
    pub fn due(&mut self) -> Option<u64> {
        let mut due = None;
        for from in 0..2 {
            let arrives = match self.wires[from].under_way.front() {
                Some((time, _)) => *time,
                None => match self.departure(from) {
                    u64::MAX => continue,
                    leaves => {
                        let wire = &self.wires[from];
                        leaves + wire.ticks(self.ends[from].idle_bits()) + wire.delay
                    }
                },
            };
            due = Some(due.map_or(arrives, |due: u64| due.min(arrives)));
        }
        due
    }

    /// Whether nothing is left to do until a message is sent or taken, and nothing is under way.
    pub fn is_at_rest(&self) -> bool {
        let empty = |wire: &Wire<L::Unit>| wire.under_way.iter().all(|(_, unit)| unit.is_idle());
        self.wires.iter().all(empty) && self.ends.iter().all(Layer::is_at_rest)
    }

    /// The lanes carry nothing until a time, where all is at rest: no bits go wrong in what says nothing.
    pub fn sleep(&mut self, until: u64) {
        self.now = self.now.max(until);
        for wire in &mut self.wires {
            wire.under_way.clear();
            wire.free = wire.free.max(until);
        }
        self.leaves = [None; 2];
    }

    /// Goes on to the next arrival or departure that says something; says whether there is one.
    pub fn step(&mut self) -> bool {
        let Some((event, time)) = self.next() else {
            return false;
        };
        self.happens(event, time);
        true
    }

    #[inline]
    fn happens(&mut self, event: usize, time: u64) {
        self.now = self.now.max(time);
        let from = event % 2;
        let end = if event < 2 { 1 - from } else { from };
        self.catch_up(end);
        self.leaves[end] = None;
        if event < 2 {
            if let Some(unit) = self.wires[from].leave() {
                self.ends[end].receive(&unit);
            }
        } else {
            let unit = self.ends[end].transmit();
            self.wires[from].enter(self.now, unit);
        }
    }

    /// Goes on until a time, at which nothing has happened yet.
    pub fn advance(&mut self, until: u64) {
        while let Some((event, time)) = self.next().filter(|&(_, time)| time < until) {
            self.happens(event, time);
        }
        self.now = self.now.max(until);
        self.catch_up(0);
        self.catch_up(1);
    }

    /// The lanes are down for so many ticks, then they are `lanes`. What was under way is lost.
    pub fn retrain(&mut self, ticks: u64, lanes: u32) {
        for (wire, end) in self.wires.iter_mut().zip(&mut self.ends) {
            wire.under_way.clear();
            wire.free = self.now + ticks;
            wire.lanes = lanes;
            end.retrain();
        }
        self.leaves = [None; 2];
    }

    /// Sends the next message of a circuit, if there is room.
    pub fn send(&mut self, from: usize, circuit: u8, bytes: u16) -> bool {
        let sent = self.traffic[from].sent[usize::from(circuit)];
        let message = Message {
            circuit,
            bytes,
            label: sent,
        };
        let taken = self.ends_mut()[from].send(message).is_ok();
        self.traffic[from].sent[usize::from(circuit)] += u64::from(taken);
        taken
    }

    /// Fills a circuit.
    pub fn fill(&mut self, from: usize, circuit: u8, bytes: u16) {
        while self.send(from, circuit, bytes) {}
    }

    /// Takes everything that has come from one end, and judges it.
    pub fn drain(&mut self, from: usize) {
        let circuits = self.ends[from].circuits().len() as u8;
        for circuit in 0..circuits {
            while let Some(message) = self.ends_mut()[1 - from].take(circuit) {
                let traffic = &mut self.traffic[from];
                let next = &mut traffic.came[usize::from(circuit)];
                traffic.astray += u64::from(message.circuit != circuit || message.label != *next);
                *next += 1;
                traffic.data += u64::from(message.bytes);
                traffic.headers += self.ends[from].header_bits(&message);
            }
        }
    }

    /// Whether nothing is missing, came twice, or came out of order; and no credit is lost.
    pub fn is_whole(&self) -> bool {
        let [first, second] = &self.ends;
        self.traffic
            .iter()
            .all(|traffic| traffic.sent == traffic.came && traffic.astray == 0)
            && self.ends.iter().all(|end| end.impossible() == 0)
            && first.shortages(second).is_empty()
            && second.shortages(first).is_empty()
    }

    /// Lets everything arrive and come to rest within so many steps; says whether it did, with nothing amiss.
    pub fn settle(&mut self, steps: u64) -> bool {
        (0..steps).any(|_| {
            self.step();
            self.drain(0);
            self.drain(1);
            self.ends.iter().all(Layer::is_at_rest) && self.is_whole()
        })
    }
}
