//! Test bench: two ends with lanes between them, driven at the rate of the lanes, and self-checking traffic.

use crate::bit_errors::Noise;
use crate::layer::{Layer, Message, WireUnit};
use crate::ring::Ring;
use std::ops::Range;

/// Ticks per byte on a single lane. Divisible by every lane count from 1 to 16.
pub const LANE_BYTE: u64 = 720_720;

/// One direction of the lanes. Times are in ticks: see [`LANE_BYTE`].
pub struct Wire<U> {
    /// Number of active lanes.
    lanes: u32,
    /// Time from the last bit of a unit at the sender to its arrival, in ticks.
    delay: u64,
    /// Earliest time at which the next unit may leave.
    free_at: u64,
    /// Units in flight, with their arrival times.
    pub in_flight: Ring<(u64, U)>,
    /// Arrival time of the first unit in flight; `u64::MAX` if there is none.
    next_arrival: u64,
    /// Arrival time of each unit that completes a message, with the minimum time in receiver clocks to take that
    /// message.
    completion_times: Ring<(u64, u32)>,
    /// Bit errors.
    pub noise: Noise,
    /// True once units in flight have been lost.
    has_lost_units: bool,
    /// Bits of an idle unit.
    idle_bits: u64,
    /// Duration of an idle unit on all lanes, in ticks.
    idle_ticks: u64,
    /// Ticks per byte on all lanes.
    byte_ticks: u64,
    /// Units that arrived or, as idle units, were skipped.
    pub units: u64,
    /// Units that arrived with bit errors.
    pub damaged: u64,
    /// Bits of these `units`.
    pub bits: u64,
    /// Bits of idle units.
    pub idle: u64,
}

impl<U: WireUnit> Wire<U> {
    /// Creates an idle direction. `idle_bits` is the length of an idle unit.
    fn new(lanes: u32, delay: u64, noise: Noise, idle_bits: u64) -> Wire<U> {
        let mut wire = Wire {
            lanes,
            delay,
            free_at: 0,
            in_flight: Ring::default(),
            next_arrival: u64::MAX,
            completion_times: Ring::default(),
            noise,
            has_lost_units: false,
            idle_bits,
            idle_ticks: 0,
            byte_ticks: 0,
            units: 0,
            damaged: 0,
            bits: 0,
            idle: 0,
        };
        wire.set_lanes(lanes);
        wire
    }

    /// Sets the number of lanes.
    fn set_lanes(&mut self, lanes: u32) {
        self.lanes = lanes;
        self.byte_ticks = LANE_BYTE / u64::from(lanes);
        self.idle_ticks = self.idle_bits / 8 * self.byte_ticks;
    }

    /// Sends the unit that `write` writes.
    #[inline]
    fn send(&mut self, now: u64, write: impl FnOnce(&mut U)) {
        self.in_flight.push_with(|(arrival, unit)| {
            write(unit);
            self.free_at = now + unit.bits() / 8 * self.byte_ticks;
            *arrival = self.free_at + self.delay;
            self.next_arrival = self.next_arrival.min(*arrival);
            if let Some(clocks) = unit.completion_clocks() {
                self.completion_times
                    .push_with(|slot| *slot = (*arrival, clocks));
            }
        });
    }

    /// Drops all units in flight.
    fn clear(&mut self) {
        self.in_flight.clear();
        self.next_arrival = u64::MAX;
        self.completion_times.clear();
    }

    /// Returns the arriving unit, and whether it may complete a message. The unit stays in flight until
    /// [`Wire::remove_arrived`].
    #[inline]
    fn arriving_unit(&mut self) -> Option<(&mut U, bool)> {
        let (_, unit) = self.in_flight.front_mut()?;
        let bits = unit.bits();
        self.units += 1;
        self.bits += bits;
        // Check this before bit errors change the contents.
        let mut completes_message = unit.completion_clocks().is_some();
        if completes_message {
            self.completion_times.drop_front();
        }
        if unit.is_idle() {
            self.idle += bits;
        }
        if !self.noise.is_error_free() {
            self.damaged += u64::from(self.noise.apply_errors(unit) > 0);
            completes_message = true;
        }
        Some((unit, completes_message))
    }

    /// Removes the unit that arrived first.
    #[inline]
    fn remove_arrived(&mut self) {
        self.in_flight.drop_front();
        self.next_arrival = self.in_flight.front().map_or(u64::MAX, |unit| unit.0);
    }
}

/// Traffic of one direction. Each message carries its sequence number on its circuit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages sent, per circuit.
    pub sent: [u64; 16],
    /// Messages received, per circuit.
    pub received: [u64; 16],
    /// Bytes of data received.
    pub data: u64,
    /// Bits of headers received.
    pub headers: u64,
    /// Messages received out of sequence.
    pub out_of_sequence: u64,
}

impl Traffic {
    /// Total number of messages received.
    pub fn messages(&self) -> u64 {
        self.received.iter().sum()
    }
}

/// Event of a wire.
#[derive(Clone, Copy)]
enum LinkEvent {
    /// A unit of the wire with this index arrives at the other side.
    Arrival(usize),
    /// The side with this index sends a unit.
    Departure(usize),
}

/// Earliest time at which a receiver takes a message.
pub struct EarliestMessage<F> {
    /// Converts (tick of the complete message, clocks of the receiver) to the time at which the message is taken.
    take_time: F,
    /// Ticks per receiver clock, rounded down.
    clock: u64,
    /// Minimum distance in ticks at which the order of ticks implies the order of times.
    min_distance: u64,
    /// Tick of the earliest message.
    tick: u64,
    /// Time of the earliest message; `u64::MAX` if there is none.
    pub time: u64,
}

impl<F: Fn(u64, u32) -> u64> EarliestMessage<F> {
    /// Creates an empty minimum. `clock` and `min_distance` are in ticks; `take_time` gets the
    /// tick at which a message is complete and the receiver clocks to take it.
    pub fn new(clock: u64, min_distance: u64, take_time: F) -> EarliestMessage<F> {
        let (tick, time) = (u64::MAX, u64::MAX);
        EarliestMessage {
            take_time,
            clock,
            min_distance,
            tick,
            time,
        }
    }

    /// Tick from which on no message can be earlier.
    #[inline]
    fn bound(&self) -> u64 {
        self.tick.saturating_add(self.min_distance)
    }

    /// Considers a message that is complete at `complete_tick`, unless that is `u64::MAX`. Returns the tick at which it
    /// is taken.
    #[inline]
    fn consider(&mut self, complete_tick: u64, clocks: u32) -> u64 {
        let tick = complete_tick.saturating_add(u64::from(clocks) * self.clock);
        if tick < self.bound() && complete_tick < u64::MAX {
            self.tick = self.tick.min(tick);
            self.time = self.time.min((self.take_time)(complete_tick, clocks));
        }
        tick
    }
}

/// One side: its end, its wires in both directions, and its cached times.
struct EndView<'a, L: Layer> {
    /// End at this side.
    end: &'a mut L,
    /// Wire to the other side.
    outgoing: &'a mut Wire<L::Unit>,
    /// Wire from the other side.
    incoming: &'a mut Wire<L::Unit>,
    /// Cached result of `departure`; `None` if it must be computed again.
    next_departure: &'a mut Option<u64>,
    /// Per circuit: time at which the first message was complete, if this was after the previous one was taken.
    complete_at: &'a mut [u64; 16],
    /// True if idle units are sent one by one.
    is_sending_idle_units: bool,
}

impl<L: Layer> EndView<'_, L> {
    /// True if idle units are skipped.
    #[inline]
    fn is_skipping(&self) -> bool {
        self.outgoing.noise.is_error_free() && !self.is_sending_idle_units
    }

    /// Time of the next departure that is not skipped.
    #[inline]
    fn departure(&mut self) -> u64 {
        match *self.next_departure {
            Some(departure) => departure,
            None => {
                let mut departure = self.outgoing.free_at;
                if self.is_skipping() {
                    departure = match self.end.idle_units() {
                        0 => departure,
                        u64::MAX => u64::MAX,
                        units => {
                            departure.saturating_add(self.outgoing.idle_ticks.saturating_mul(units))
                        }
                    };
                }
                *self.next_departure = Some(departure);
                departure
            }
        }
    }

    /// Time of the next arrival or departure.
    #[inline]
    fn next_event(&mut self) -> u64 {
        self.departure().min(self.incoming.next_arrival)
    }

    /// Skips the idle units that started before `now`.
    #[inline]
    fn catch_up(&mut self, now: u64) {
        if self.outgoing.free_at < now && self.is_skipping() {
            let elapsed = now - self.outgoing.free_at;
            // Usually there is at most one, and a division costs as much as the rest of this function.
            let units = match elapsed <= self.outgoing.idle_ticks {
                true => 1,
                false => elapsed.div_ceil(self.outgoing.idle_ticks),
            };
            self.end.skip(units);
            self.outgoing.free_at += units * self.outgoing.idle_ticks;
            self.outgoing.units += units;
            let bits = units * self.outgoing.idle_bits;
            self.outgoing.bits += bits;
            self.outgoing.idle += bits;
        }
    }

    /// Prepares for a change at the end: catches up with skipped units and invalidates the cached departure time.
    #[inline]
    fn prepare_change(&mut self, now: u64) {
        self.catch_up(now);
        *self.next_departure = None;
    }

    /// Delivers the first unit in flight.
    #[inline]
    fn deliver_unit(&mut self, now: u64) {
        self.prepare_change(now);
        match self.incoming.arriving_unit() {
            Some((unit, true)) => {
                let complete_before = self.end.received_circuits();
                self.end.receive(unit);
                let mut newly_complete = self.end.received_circuits() & !complete_before;
                while newly_complete != 0 {
                    self.complete_at[newly_complete.trailing_zeros() as usize % 16] = now;
                    newly_complete &= newly_complete - 1;
                }
            }
            Some((unit, false)) => self.end.receive(unit),
            None => {}
        }
        self.incoming.remove_arrived();
    }

    /// Sends a unit.
    #[inline]
    fn send_unit(&mut self, now: u64) {
        self.prepare_change(now);
        let end = &mut *self.end;
        self.outgoing.send(now, |unit| end.transmit(unit));
    }

    /// Advances this side alone until `until`. No unit that the other side has yet to send may arrive before.
    #[inline]
    fn advance(&mut self, until: u64) {
        loop {
            let departure = self.departure();
            if self.incoming.next_arrival <= departure {
                if self.incoming.next_arrival >= until {
                    return;
                }
                self.deliver_unit(self.incoming.next_arrival);
            } else if departure >= until {
                return;
            } else {
                self.send_unit(departure);
            }
        }
    }
}

/// Two ends and the wires between them.
pub struct Testbench<L: Layer> {
    /// Ends of both sides.
    ends: [L; 2],
    /// Time at which each end next sends a unit that is not skipped, assuming that no message is sent or taken and no
    /// unit arrives. `None` after such an event, until it is computed again.
    next_departure: [Option<u64>; 2],
    /// Per end and circuit: time at which the first message was complete, if this was after the previous one was taken.
    complete_at: [[u64; 16]; 2],
    /// `wires[0]` leads from the first end to the second.
    pub wires: [Wire<L::Unit>; 2],
    /// Traffic of each direction.
    pub traffic: [Traffic; 2],
    /// Current time in ticks.
    pub now: u64,
    /// If true, idle units are sent one by one, as on real wires. Otherwise they are skipped on lanes without bit
    /// errors, with identical results. Must be set before the first event.
    pub is_sending_idle_units: bool,
}

impl<L: Layer> Testbench<L> {
    /// Connects two ends by `lanes` lanes with a delay of `delay` ticks per direction and bit errors at `rate` per
    /// bit, drawn from `seed`.
    pub fn new(ends: [L; 2], lanes: u32, delay: u64, rate: f64, seed: u64) -> Testbench<L> {
        let wire = |side: u64| {
            let noise = Noise::new(rate, seed ^ (0x1111 << side));
            Wire::new(lanes, delay, noise, ends[side as usize].idle_bits())
        };
        Testbench {
            wires: [wire(0), wire(1)],
            ends,
            next_departure: [None; 2],
            complete_at: [[0; 16]; 2],
            traffic: Default::default(),
            now: 0,
            is_sending_idle_units: false,
        }
    }

    /// Both ends, read-only. They may lag behind the current time by skipped idle units.
    #[inline]
    pub fn ends(&self) -> &[L; 2] {
        &self.ends
    }

    /// The ends at the current time, to send or take messages.
    #[inline]
    pub fn ends_mut(&mut self) -> &mut [L; 2] {
        self.ends_and_traffic().0
    }

    /// The ends at the current time, with the traffic counters.
    #[inline]
    pub(crate) fn ends_and_traffic(&mut self) -> (&mut [L; 2], &mut [Traffic; 2]) {
        self.end_mut(0);
        self.end_mut(1);
        (&mut self.ends, &mut self.traffic)
    }

    /// One end at the current time, to send or take messages.
    #[inline]
    pub fn end_mut(&mut self, side: usize) -> &mut L {
        let now = self.now;
        self.view(side).prepare_change(now);
        &mut self.ends[side]
    }

    /// Next received message of a circuit at a side, which is not taken.
    #[inline]
    pub fn peek(&mut self, side: usize, circuit: u8) -> Option<Message> {
        self.ends[side].peek(circuit)
    }

    /// State of one side.
    #[inline]
    fn view(&mut self, side: usize) -> EndView<'_, L> {
        let [first_wire, second_wire] = &mut self.wires;
        let (outgoing, incoming) = match side {
            0 => (first_wire, second_wire),
            _ => (second_wire, first_wire),
        };
        EndView {
            end: &mut self.ends[side],
            outgoing,
            incoming,
            next_departure: &mut self.next_departure[side],
            complete_at: &mut self.complete_at[side],
            is_sending_idle_units: self.is_sending_idle_units,
        }
    }

    /// Next event and its time, `u64::MAX` if there is none. Arrivals precede departures at the same time.
    #[inline]
    fn next_event(&mut self) -> (LinkEvent, u64) {
        let departures = [self.view(0).departure(), self.view(1).departure()];
        let arrivals = [self.wires[0].next_arrival, self.wires[1].next_arrival];
        let earliest_of =
            |[first, second]: [u64; 2]| (usize::from(second < first), first.min(second));
        let ((arrival_side, arrival), (departure_side, departure)) =
            (earliest_of(arrivals), earliest_of(departures));
        match departure < arrival {
            true => (LinkEvent::Departure(departure_side), departure),
            false => (LinkEvent::Arrival(arrival_side), arrival),
        }
    }

    /// Time of the next event; `u64::MAX` if there is none.
    #[inline]
    pub fn next_at(&mut self) -> u64 {
        self.next_event().1
    }

    /// Minimum time from the departure of a unit to its arrival, in ticks.
    pub fn flight(&self) -> u64 {
        let [first_wire, second_wire] = &self.wires;
        first_wire.idle_ticks.min(second_wire.idle_ticks) + first_wire.delay
    }

    /// Number of active lanes.
    pub fn lanes(&self) -> u32 {
        self.wires[0].lanes
    }

    /// Time at which the first message of a circuit was complete, if this was after the previous message was taken.
    #[inline]
    pub fn message_completion_time(&self, side: usize, circuit: u8) -> u64 {
        self.complete_at[side][usize::from(circuit) % 16]
    }

    /// Adds the times at which receivers can take messages from these sides to `earliest`. With `includes_all_units`,
    /// adds the arrival of any unit instead.
    #[inline]
    pub fn due<F: Fn(u64, u32) -> u64>(
        &mut self,
        sides: Range<usize>,
        includes_all_units: bool,
        earliest: &mut EarliestMessage<F>,
    ) {
        for side in sides {
            let wire = &self.wires[side];
            if includes_all_units {
                let arrival = match wire.next_arrival {
                    u64::MAX => self.arrival_after(side, 0),
                    arrival => arrival,
                };
                earliest.consider(arrival, 0);
                continue;
            }
            // A later message can be taken before an earlier one only if it needs fewer clocks.
            let mut earliest_taken = u64::MAX;
            for index in 0..wire.completion_times.len() {
                let Some(&(arrival, clocks)) = wire.completion_times.get(index) else {
                    break;
                };
                if arrival >= earliest_taken.min(earliest.bound()) {
                    break;
                }
                earliest_taken = earliest_taken.min(earliest.consider(arrival, clocks));
            }
            let may_be_lost = wire.has_lost_units || !wire.noise.is_error_free();
            let end = &self.ends[side];
            // Nothing is queued, and no resent unit can complete a message before those in flight.
            if !end.has_queued_messages()
                && (!may_be_lost || !wire.completion_times.is_empty() || end.is_settled())
            {
                continue;
            }
            if self.arrival_after(side, 0) >= earliest_taken.min(earliest.bound()) {
                continue;
            }
            let (units, clocks) = match may_be_lost {
                true => (0, 0),
                false => self.ends[side].units_before_message(),
            };
            earliest.consider(self.arrival_after(side, units), clocks);
        }
    }

    /// Arrival time of the unit after the next `units` ones from a side, if none is longer than an idle unit.
    fn arrival_after(&mut self, side: usize, units: u64) -> u64 {
        let departure = self.view(side).departure();
        let wire = &self.wires[side];
        departure.saturating_add((units + 1) * wire.idle_ticks + wire.delay)
    }

    /// True if nothing remains to do until a message is sent or taken, and only idle units are in flight.
    pub fn is_quiescent(&self) -> bool {
        let is_empty = |wire: &Wire<L::Unit>| wire.in_flight.iter().all(|(_, unit)| unit.is_idle());
        self.wires.iter().all(is_empty) && self.ends.iter().all(Layer::is_quiescent)
    }

    /// Skips to `until` without sending anything. Both ends must be at rest. Bit errors in idle units are not modelled.
    pub fn sleep(&mut self, until: u64) {
        let now = self.now;
        self.view(0).catch_up(now);
        self.view(1).catch_up(now);
        self.now = now.max(until);
        for wire in &mut self.wires {
            wire.clear();
            wire.free_at = wire.free_at.max(until);
        }
        self.next_departure = [None; 2];
    }

    /// Steps until both ends are at rest and only idle units are in flight, for at most `steps` steps.
    pub fn run_to_quiescence(&mut self, steps: u64) {
        for _ in 0..steps {
            if self.is_quiescent() || !self.step() {
                return;
            }
        }
    }

    /// Advances to the next arrival or departure that is not skipped. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        let (event, time) = self.next_event();
        if time < u64::MAX {
            self.handle_event(event, time);
        }
        time < u64::MAX
    }

    /// Carries out an event, to which the time advances.
    #[inline]
    fn handle_event(&mut self, event: LinkEvent, time: u64) {
        self.now = self.now.max(time);
        let now = self.now;
        match event {
            LinkEvent::Arrival(from) => self.view(1 - from).deliver_unit(now),
            LinkEvent::Departure(from) => self.view(from).send_unit(now),
        }
    }

    /// Advances to `until` in ticks, excluding events at that time.
    #[inline]
    pub fn advance(&mut self, until: u64) {
        loop {
            let [first_event, second_event] =
                [self.view(0).next_event(), self.view(1).next_event()];
            let next = first_event.min(second_event);
            if next >= until {
                break;
            }
            // A unit that leaves from now on arrives after at least one flight time; until then the sides are
            // independent.
            let until = until.min(next.saturating_add(self.flight()));
            if first_event < until {
                self.view(0).advance(until);
            }
            if second_event < until {
                self.view(1).advance(until);
            }
        }
        self.now = self.now.max(until);
    }

    /// Declares that nothing is lost or damaged from now on: see [`Layer::disable_replay`].
    pub fn disable_replay(&mut self) {
        self.ends.iter_mut().for_each(L::disable_replay);
    }

    /// Takes the link down for `ticks` ticks, and brings it up with `lanes` lanes. Units in flight are lost.
    pub fn retrain(&mut self, ticks: u64, lanes: u32) {
        for (wire, end) in self.wires.iter_mut().zip(&mut self.ends) {
            wire.clear();
            wire.free_at = self.now + ticks;
            wire.has_lost_units = true;
            wire.set_lanes(lanes);
            end.retrain();
        }
        self.next_departure = [None; 2];
    }

    /// Sends the next message of a circuit from a side, with `bytes` bytes of data. Returns false if the end rejects
    /// it.
    pub fn send(&mut self, from: usize, circuit: u8, bytes: u16) -> bool {
        let sent = self.traffic[from].sent[usize::from(circuit)];
        let message = Message {
            circuit,
            bytes,
            label: sent,
        };
        let accepted = self.ends_mut()[from].send(message).is_ok();
        self.traffic[from].sent[usize::from(circuit)] += u64::from(accepted);
        accepted
    }

    /// Sends messages on a circuit until its queue is full.
    pub fn fill(&mut self, from: usize, circuit: u8, bytes: u16) {
        while self.send(from, circuit, bytes) {}
    }

    /// Takes all messages received from one end, and checks their sequence.
    pub fn drain(&mut self, from: usize) {
        let circuits = self.ends[from].circuits().len() as u8;
        for circuit in 0..circuits {
            while let Some(message) = self.ends_mut()[1 - from].take(circuit) {
                let traffic = &mut self.traffic[from];
                let next = &mut traffic.received[usize::from(circuit)];
                traffic.out_of_sequence +=
                    u64::from(message.circuit != circuit || message.label != *next);
                *next += 1;
                traffic.data += u64::from(message.bytes);
                traffic.headers += self.ends[from].header_bits(&message);
            }
        }
    }

    /// True if no message is missing, repeated or out of order, and no credit is lost.
    pub fn is_intact(&self) -> bool {
        let [first, second] = &self.ends;
        self.traffic
            .iter()
            .all(|traffic| traffic.sent == traffic.received && traffic.out_of_sequence == 0)
            && self.ends.iter().all(|end| end.protocol_errors() == 0)
            && first.shortages(second).is_empty()
            && second.shortages(first).is_empty()
    }

    /// Advances until all messages have arrived intact and both ends are at rest. Returns false if this takes more than
    /// `steps` steps.
    pub fn settle(&mut self, steps: u64) -> bool {
        (0..steps).any(|_| {
            self.step();
            self.drain(0);
            self.drain(1);
            self.ends.iter().all(Layer::is_quiescent) && self.is_intact()
        })
    }
}
