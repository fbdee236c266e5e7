//! Two ends with lanes between them, driven as fast as the lanes go, and traffic that counts itself.

use crate::chance::Noise;
use crate::layer::{Carried, Layer, Message};
use crate::ring::Ring;
use std::ops::Range;

/// Ticks that a byte takes on a single lane: a number that each count of lanes to 16 divides.
pub const LANE_BYTE: u64 = 720_720;

/// One direction of the lanes.
pub struct Wire<U> {
    lanes: u32,
    delay: u64,
    /// When the next unit may leave.
    free: u64,
    /// What is under way, and when it arrives.
    pub under_way: Ring<(u64, U)>,
    /// When the first of that arrives: the last of times if nothing is under way.
    arrives: u64,
    /// When those of them arrive with which messages are whole, and in how many clocks the receiver takes one, at the least.
    bringing: Ring<(u64, u32)>,
    /// What damages it.
    pub noise: Noise,
    /// Whether what was under way was lost once.
    lost: bool,
    /// Bits of a unit that says nothing, and the ticks that it takes.
    idle_bits: u64,
    idle_ticks: u64,
    /// Ticks that a byte takes.
    byte_ticks: u64,
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
    fn new(lanes: u32, delay: u64, noise: Noise, idle_bits: u64) -> Wire<U> {
        let mut wire = Wire {
            lanes,
            delay,
            free: 0,
            under_way: Ring::default(),
            arrives: u64::MAX,
            bringing: Ring::default(),
            noise,
            lost: false,
            idle_bits,
            idle_ticks: 0,
            byte_ticks: 0,
            units: 0,
            damaged: 0,
            bits: 0,
            idle: 0,
        };
        wire.spread(lanes);
        wire
    }

    /// What travels is spread over so many lanes.
    fn spread(&mut self, lanes: u32) {
        self.lanes = lanes;
        self.byte_ticks = LANE_BYTE / u64::from(lanes);
        self.idle_ticks = self.idle_bits / 8 * self.byte_ticks;
    }

    /// What `make` makes leaves now.
    #[inline]
    fn enter(&mut self, now: u64, make: impl FnOnce(&mut U)) {
        self.under_way.push_with(|(arrives, unit)| {
            make(unit);
            self.free = now + unit.bits() / 8 * self.byte_ticks;
            *arrives = self.free + self.delay;
            self.arrives = self.arrives.min(*arrives);
            if let Some(clocks) = unit.brings() {
                self.bringing.push_with(|place| *place = (*arrives, clocks));
            }
        });
    }

    /// What is under way is lost.
    fn clear(&mut self) {
        self.under_way.clear();
        self.arrives = u64::MAX;
        self.bringing.clear();
    }

    /// What arrives, as it does, and whether messages may be whole with it. It is under way until it has left.
    #[inline]
    fn arrives(&mut self) -> Option<(&mut U, bool)> {
        let (_, unit) = self.under_way.front_mut()?;
        let bits = unit.bits();
        self.units += 1;
        self.bits += bits;
        // Before wrong bits change what it says.
        let mut brings = unit.brings().is_some();
        if brings {
            self.bringing.drop_front();
        }
        if unit.is_idle() {
            self.idle += bits;
        }
        if !self.noise.is_silent() {
            self.damaged += u64::from(self.noise.pass(unit) > 0);
            brings = true;
        }
        Some((unit, brings))
    }

    /// What arrived first is not under way any more.
    #[inline]
    fn leave(&mut self) {
        self.under_way.drop_front();
        self.arrives = self.under_way.front().map_or(u64::MAX, |unit| unit.0);
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

/// What happens on lanes: something arrives or leaves that comes from one of the ends.
#[derive(Clone, Copy)]
enum Happening {
    Arrival(usize),
    Departure(usize),
}

/// The earliest of the times at which receivers take messages.
pub struct Earliest<F> {
    /// When a receiver has taken a message that was whole at a tick, from the clocks that it needs.
    at: F,
    /// Ticks of one of its clocks, rounded down.
    clock: u64,
    /// How many ticks two messages have to be apart for the order of ticks to be that of times.
    apart: u64,
    /// The tick of the earliest.
    tick: u64,
    /// The time of it: the last of times if there is none.
    pub time: u64,
}

impl<F: Fn(u64, u32) -> u64> Earliest<F> {
    /// None yet.
    pub fn new(clock: u64, apart: u64, at: F) -> Earliest<F> {
        let (tick, time) = (u64::MAX, u64::MAX);
        Earliest {
            at,
            clock,
            apart,
            tick,
            time,
        }
    }

    /// A tick from which on messages are not the earliest any more.
    #[inline]
    fn bound(&self) -> u64 {
        self.tick.saturating_add(self.apart)
    }

    /// A message that is whole at a tick, if that is not the last one. Returns the tick at which it is taken.
    #[inline]
    fn meet(&mut self, whole: u64, clocks: u32) -> u64 {
        let tick = whole.saturating_add(u64::from(clocks) * self.clock);
        if tick < self.bound() && whole < u64::MAX {
            self.tick = self.tick.min(tick);
            self.time = self.time.min((self.at)(whole, clocks));
        }
        tick
    }
}

/// One side: its end with what leaves and what comes there.
struct Here<'a, L: Layer> {
    end: &'a mut L,
    out: &'a mut Wire<L::Unit>,
    into: &'a mut Wire<L::Unit>,
    leaves: &'a mut Option<u64>,
    whole: &'a mut [u64; 16],
    awake: bool,
}

impl<L: Layer> Here<'_, L> {
    /// Whether units that say nothing are skipped.
    #[inline]
    fn skips(&self) -> bool {
        self.out.noise.is_silent() && !self.awake
    }

    /// When something leaves next that is not skipped.
    #[inline]
    fn departure(&mut self) -> u64 {
        match *self.leaves {
            Some(leaves) => leaves,
            None => {
                let mut leaves = self.out.free;
                if self.skips() {
                    leaves = match self.end.idle_units() {
                        0 => leaves,
                        u64::MAX => u64::MAX,
                        units => leaves.saturating_add(self.out.idle_ticks.saturating_mul(units)),
                    };
                }
                *self.leaves = Some(leaves);
                leaves
            }
        }
    }

    /// When something comes or leaves next.
    #[inline]
    fn next(&mut self) -> u64 {
        self.departure().min(self.into.arrives)
    }

    /// Skips the idle units that have begun before now.
    #[inline]
    fn catch_up(&mut self, now: u64) {
        if self.out.free < now && self.skips() {
            let past = now - self.out.free;
            // Most of the time there is one at most, and a division takes as long as all the rest.
            let units = match past <= self.out.idle_ticks {
                true => 1,
                false => past.div_ceil(self.out.idle_ticks),
            };
            self.end.skip(units);
            self.out.free += units * self.out.idle_ticks;
            self.out.units += units;
            let bits = units * self.out.idle_bits;
            self.out.bits += bits;
            self.out.idle += bits;
        }
    }

    /// Something changes at the end now.
    #[inline]
    fn touch(&mut self, now: u64) {
        self.catch_up(now);
        *self.leaves = None;
    }

    /// What is first under way comes.
    #[inline]
    fn arrive(&mut self, now: u64) {
        self.touch(now);
        match self.into.arrives() {
            Some((unit, true)) => {
                let before = self.end.come();
                self.end.receive(unit);
                let mut whole = self.end.come() & !before;
                while whole != 0 {
                    self.whole[whole.trailing_zeros() as usize % 16] = now;
                    whole &= whole - 1;
                }
            }
            Some((unit, false)) => self.end.receive(unit),
            None => {}
        }
        self.into.leave();
    }

    /// A unit leaves.
    #[inline]
    fn leave(&mut self, now: u64) {
        self.touch(now);
        let end = &mut *self.end;
        self.out.enter(now, |unit| end.transmit(unit));
    }

    /// This side goes on until a time before which nothing comes that has not left yet.
    #[inline]
    fn advance(&mut self, until: u64) {
        loop {
            let leaves = self.departure();
            if self.into.arrives <= leaves {
                if self.into.arrives >= until {
                    return;
                }
                self.arrive(self.into.arrives);
            } else if leaves >= until {
                return;
            } else {
                self.leave(leaves);
            }
        }
    }
}

/// Two ends and what is between them.
pub struct Drive<L: Layer> {
    ends: [L; 2],
    /// When each end sends something next that is not skipped, if nothing is sent, taken or comes; not known since one of
    /// these.
    leaves: [Option<u64>; 2],
    /// When the first message of each circuit of each end was whole, of those that it was not when the one before was taken.
    whole: [[u64; 16]; 2],
    /// `wires[0]` goes from the first end to the second.
    pub wires: [Wire<L::Unit>; 2],
    /// The traffic of each direction.
    pub traffic: [Traffic; 2],
    /// Ticks since the beginning.
    pub now: u64,
    /// Units that say nothing leave one by one, as they do on wires. Otherwise they are skipped where no bits go wrong, which
    /// changes nothing else. It is said before anything happens.
    pub awake: bool,
}

impl<L: Layer> Drive<L> {
    /// Ends at both sides of so many lanes, `delay` ticks long, with bit errors at `rate`.
    pub fn new(ends: [L; 2], lanes: u32, delay: u64, rate: f64, seed: u64) -> Drive<L> {
        let wire = |side: u64| {
            let noise = Noise::new(rate, seed ^ (0x1111 << side));
            Wire::new(lanes, delay, noise, ends[side as usize].idle_bits())
        };
        Drive {
            wires: [wire(0), wire(1)],
            ends,
            leaves: [None; 2],
            whole: [[0; 16]; 2],
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
        self.end_mut(0);
        self.end_mut(1);
        (&mut self.ends, &mut self.traffic)
    }

    /// One of the ends, now: to send there, or to take what has come.
    #[inline]
    pub fn end_mut(&mut self, side: usize) -> &mut L {
        let now = self.now;
        self.at(side).touch(now);
        &mut self.ends[side]
    }

    /// The next message that has come at a side on a circuit.
    #[inline]
    pub fn peek(&mut self, side: usize, circuit: u8) -> Option<Message> {
        self.ends[side].peek(circuit)
    }

    /// One side.
    #[inline]
    fn at(&mut self, side: usize) -> Here<'_, L> {
        let [there, back] = &mut self.wires;
        let (out, into) = match side {
            0 => (there, back),
            _ => (back, there),
        };
        Here {
            end: &mut self.ends[side],
            out,
            into,
            leaves: &mut self.leaves[side],
            whole: &mut self.whole[side],
            awake: self.awake,
        }
    }

    /// What is going to happen next, and when: at the last of times if nothing is. Arrivals are before departures.
    #[inline]
    fn next(&mut self) -> (Happening, u64) {
        let departures = [self.at(0).departure(), self.at(1).departure()];
        let arrivals = [self.wires[0].arrives, self.wires[1].arrives];
        let earlier = |[first, second]: [u64; 2]| (usize::from(second < first), first.min(second));
        let ((comes, arrival), (leaves, departure)) = (earlier(arrivals), earlier(departures));
        match departure < arrival {
            true => (Happening::Departure(leaves), departure),
            false => (Happening::Arrival(comes), arrival),
        }
    }

    /// When something is going to happen: at the last of times if nothing is.
    #[inline]
    pub fn next_at(&mut self) -> u64 {
        self.next().1
    }

    /// Ticks from when a unit leaves until it has come, at least.
    pub fn flight(&self) -> u64 {
        let [there, back] = &self.wires;
        there.idle_ticks.min(back.idle_ticks) + there.delay
    }

    /// Lanes that work.
    pub fn lanes(&self) -> u32 {
        self.wires[0].lanes
    }

    /// When the first message of a circuit, which an end has, was whole, if it was not yet when the one before was taken.
    #[inline]
    pub fn whole_at(&self, side: usize, circuit: u8) -> u64 {
        self.whole[side][usize::from(circuit) % 16]
    }

    /// Finds when receivers are going to take messages from these sides, or, to look for more, when anything comes.
    #[inline]
    pub fn due<F: Fn(u64, u32) -> u64>(
        &mut self,
        sides: Range<usize>,
        anything: bool,
        earliest: &mut Earliest<F>,
    ) {
        for from in sides {
            let wire = &self.wires[from];
            if anything {
                let comes = match wire.arrives {
                    u64::MAX => self.leaves_and_comes(from, 0),
                    arrives => arrives,
                };
                earliest.meet(comes, 0);
                continue;
            }
            // What comes later and is taken before what came has to need fewer clocks.
            let mut before = u64::MAX;
            for place in 0..wire.bringing.len() {
                let Some(&(arrives, clocks)) = wire.bringing.get(place) else {
                    break;
                };
                if arrives >= before.min(earliest.bound()) {
                    break;
                }
                before = before.min(earliest.meet(arrives, clocks));
            }
            let may_be_lost = wire.lost || !wire.noise.is_silent();
            let end = &self.ends[from];
            // What left has come, or what is lost has to be sent again.
            if !end.waits() && (!may_be_lost || !wire.bringing.is_empty() || end.is_settled()) {
                continue;
            }
            if self.leaves_and_comes(from, 0) >= before.min(earliest.bound()) {
                continue;
            }
            let (units, clocks) = match may_be_lost {
                true => (0, 0),
                false => self.ends[from].before_message(),
            };
            earliest.meet(self.leaves_and_comes(from, units), clocks);
        }
    }

    /// When the unit after so many more that leave at a side has come, if each is no longer than one that says nothing.
    fn leaves_and_comes(&mut self, from: usize, units: u64) -> u64 {
        let leaves = self.at(from).departure();
        let wire = &self.wires[from];
        leaves.saturating_add((units + 1) * wire.idle_ticks + wire.delay)
    }

    /// Whether nothing is left to do until a message is sent or taken, and nothing is under way.
    pub fn is_at_rest(&self) -> bool {
        let empty = |wire: &Wire<L::Unit>| wire.under_way.iter().all(|(_, unit)| unit.is_idle());
        self.wires.iter().all(empty) && self.ends.iter().all(Layer::is_at_rest)
    }

    /// The lanes carry nothing until a time, where all is at rest: no bits go wrong in what says nothing.
    pub fn sleep(&mut self, until: u64) {
        let now = self.now;
        self.at(0).catch_up(now);
        self.at(1).catch_up(now);
        self.now = now.max(until);
        for wire in &mut self.wires {
            wire.clear();
            wire.free = wire.free.max(until);
        }
        self.leaves = [None; 2];
    }

    /// Goes on until all is at rest, for at most so many steps.
    pub fn rest(&mut self, steps: u64) {
        for _ in 0..steps {
            if self.is_at_rest() || !self.step() {
                return;
            }
        }
    }

    /// Goes on to the next arrival or departure that says something; says whether there is one.
    pub fn step(&mut self) -> bool {
        let (what, time) = self.next();
        if time < u64::MAX {
            self.happens(what, time);
        }
        time < u64::MAX
    }

    #[inline]
    fn happens(&mut self, what: Happening, time: u64) {
        self.now = self.now.max(time);
        let now = self.now;
        match what {
            Happening::Arrival(from) => self.at(1 - from).arrive(now),
            Happening::Departure(from) => self.at(from).leave(now),
        }
    }

    /// Goes on until a time, at which nothing has happened yet.
    #[inline]
    pub fn advance(&mut self, until: u64) {
        loop {
            let [first, second] = [self.at(0).next(), self.at(1).next()];
            let next = first.min(second);
            if next >= until {
                break;
            }
            // What leaves from here on comes after a flight: until then each side goes on by itself.
            let until = until.min(next.saturating_add(self.flight()));
            if first < until {
                self.at(0).advance(until);
            }
            if second < until {
                self.at(1).advance(until);
            }
        }
        self.now = self.now.max(until);
    }

    /// From now on nothing is lost or damaged: see [`Layer::forget`].
    pub fn forget(&mut self) {
        self.ends.iter_mut().for_each(L::forget);
    }

    /// The lanes are down for so many ticks, then they are `lanes`. What was under way is lost.
    pub fn retrain(&mut self, ticks: u64, lanes: u32) {
        for (wire, end) in self.wires.iter_mut().zip(&mut self.ends) {
            wire.clear();
            wire.free = self.now + ticks;
            wire.lost = true;
            wire.spread(lanes);
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
