//! Parallel links with their endpoints, advanced in time.
//!
//! The testbenches of `cohkit_link` count ticks; the simulator counts picoseconds. Values of type `Time` are in
//! picoseconds here, those named ticks are not. Messages that an endpoint has no room for wait in queues in front
//! of it.

use cohkit_base::random::SplitMix64;
use cohkit_link::testbench::{EarliestMessage, Testbench, LANE_BYTE};
use cohkit_link::{ccix, cxl, end, Balance, Lanes, Layer, Message, Parameters, Ratio};
use std::collections::VecDeque;
use std::ops::Range;

use crate::kernel::{Time, SECOND};

/// Several links of one kind.
pub(super) enum Links {
    /// Links of ECI.
    Eci(Wired<end::End>),
    /// Links of CCIX.
    Ccix(Wired<ccix::End>),
    /// Links of CXL.mem or CXL.cache.
    Cxl(Wired<cxl::End>),
}

/// Evaluates an expression for links of any kind.
macro_rules! of_links {
    ($links:expr, $of:ident => $what:expr) => {
        match $links {
            Links::Eci($of) => $what,
            Links::Ccix($of) => $what,
            Links::Cxl($of) => $what,
        }
    };
}
pub(super) use of_links;

/// Parameters of endpoints to be created.
pub(super) enum EndKind {
    /// Endpoints of ECI.
    Eci(Parameters),
    /// Endpoints of CCIX: bytes after which owed acknowledgements and credit returns must be sent, and bytes in
    /// flight in one direction.
    Ccix(u64, u64),
    /// Endpoints of CXL: flit size, retry timeout in flits, and role of side 0.
    Cxl(cxl::Flits, u32, cxl::Side),
}

/// Parameters common to all links of a port.
pub(super) struct Plan {
    /// Number and rate of the lanes of one link.
    pub lanes: Lanes,
    /// Latency of the lanes, in ticks.
    pub delay_ticks: u64,
    /// Probability of an error of one bit.
    pub bit_error_rate: f64,
    /// Seed of bit errors and failures; each link derives its own.
    pub seed: u64,
    /// Number of parallel links.
    pub link_count: usize,
    /// Failures of the links.
    pub faults: Faults,
}

impl Plan {
    /// True if nothing is ever lost or damaged.
    fn is_lossless(&self) -> bool {
        self.bit_error_rate <= 0.0 && self.faults.mean_interval == 0
    }
}

/// Parameters of link failures and recoveries.
#[derive(Clone, Copy)]
pub(super) struct Faults {
    /// Mean time between two failures, in picoseconds; 0 for none.
    pub mean_interval: Time,
    /// Time until a failed link has trained its lanes again, in picoseconds.
    pub down: Time,
    /// Number of lanes after every other failure.
    pub lanes: u32,
}

/// State of a link that goes down from time to time.
struct Failing {
    /// Source of the times between failures.
    random: SplitMix64,
    /// Time of its next failure, in picoseconds.
    next: Time,
    /// Number of failures.
    downs: u64,
    /// Picoseconds for which the link had sent non-idle units up to its last failure, and the bytes of these units,
    /// by side. Needed because the number of lanes changes.
    busy: [(Time, u64); 2],
}

impl Failing {
    /// Creates the state of a link that works, with its first failure scheduled.
    fn new(faults: &Faults, seed: u64) -> Failing {
        let mut failing = Failing {
            random: SplitMix64::new(seed),
            next: 0,
            downs: 0,
            busy: [(0, 0); 2],
        };
        failing.schedule_next(faults);
        failing
    }

    /// Schedules the next failure at a random time after the last one, between 1 ps and twice the mean interval.
    fn schedule_next(&mut self, faults: &Faults) {
        self.next += 1 + self.random.modulo(2 * faults.mean_interval);
    }
}

impl EndKind {
    /// Creates idle links of this kind that have come up and exchanged credits. Message queues of the endpoints are
    /// unlimited where the kind permits it.
    pub(super) fn create_links(&self, plan: Plan) -> Links {
        match self {
            EndKind::Eci(parameters) => Links::Eci(Wired::new(&plan, || {
                [(); 2].map(|()| end::End::new(parameters.clone()))
            })),
            EndKind::Ccix(limit, bytes_in_flight) => {
                let end = || {
                    ccix::End::new(256, ccix::OPTIMISED_HEADER_BYTES, true, *limit)
                        .with_bytes_in_flight(*bytes_in_flight)
                };
                Links::Ccix(Wired::new(&plan, || [end(), end()]))
            }
            EndKind::Cxl(flits, patience, first_side) => {
                let end = |side| {
                    let parameters = cxl::Parameters::new(*flits, side);
                    cxl::End::new(cxl::Parameters {
                        queue_capacity: usize::MAX,
                        retry_timeout_flits: *patience,
                        ..parameters
                    })
                };
                Links::Cxl(Wired::new(&plan, || {
                    [end(*first_side), end(first_side.partner())]
                }))
            }
        }
    }
}

/// Maximum number of circuits of a link; ECI has the most, 14.
const CIRCUITS: usize = 16;

/// Links with their endpoints. A link advances only when an event occurs on it or when it is accessed. The upper half
/// of a label is the message's space.
pub(super) struct Wired<L: Layer> {
    /// The links.
    testbenches: Vec<Testbench<L>>,
    /// Ticks up to which all links are considered advanced.
    now: u64,
    /// Messages that wait in front of each endpoint of each link, by circuit.
    queues: Vec<[Vec<VecDeque<Message>>; 2]>,
    /// Number of messages in `queues`.
    queued: usize,
    /// Messages to be offered later, in time order: time in picoseconds, side, link (if fixed) and message.
    scheduled_offers: VecDeque<(Time, usize, Option<usize>, Message)>,
    /// Minimum latency from offering a message until a receiver has taken it, in picoseconds.
    flight: Time,
    /// Time at which the receiver at each side has taken the first message of each circuit of each link; 0 if it has
    /// not started one.
    take_times: Vec<[[Time; CIRCUITS]; 2]>,
    /// For each link, when it is to be examined next.
    due: Vec<Due>,
    /// True if a link needs to advance only when a message arrives from it, until the next send. Links with bit errors
    /// or failures advance with all others.
    is_lazy: bool,
    /// True if bit errors occur.
    has_bit_errors: bool,
    /// Failures of the links.
    faults: Faults,
    /// Failure state of each link; empty if links never go down.
    failures: Vec<Failing>,
    /// Number of lanes of a link when all work.
    lanes: u32,
    /// Picoseconds of `LANE_BYTE` ticks.
    byte: Ratio,
    /// Conversion between ticks and picoseconds.
    scale: Scale,
}

/// Time at which a link is to be examined.
#[derive(Clone, Copy)]
struct Due {
    /// Earliest time at which a message arrives from the link; `Time::MAX` if none does.
    arrival: Time,
    /// True if the link was advanced since `arrival` was computed for all messages in flight.
    is_advanced: bool,
    /// True if an arrived message was not accepted.
    blocked: bool,
}

impl Default for Due {
    fn default() -> Due {
        Due {
            arrival: Time::MAX,
            is_advanced: false,
            blocked: false,
        }
    }
}

/// Conversion between ticks of the drives and time.
#[derive(Clone, Copy)]
struct Scale {
    /// Ticks at time 0.
    start_ticks: u64,
    /// Ticks per 2^[`FRACTION`] picoseconds, and picoseconds per 2^[`FRACTION`] ticks, both rounded down.
    pace: [u128; 2],
    /// Ticks of a receiver's clock cycle, rounded down.
    clock_ticks: u64,
    /// Ticks of two picoseconds, rounded up: at this distance, the order of ticks implies the order of times.
    two_picoseconds: u64,
}

/// Fractional bits of the ratios of ticks and picoseconds.
const FRACTION: u32 = 40;

impl Scale {
    /// Returns the ticks at which this time starts.
    #[inline]
    fn ticks(&self, time: Time) -> u64 {
        self.start_ticks + ((u128::from(time) * self.pace[0]) >> FRACTION) as u64
    }

    /// Returns the first time at which `ticks` have passed.
    #[inline]
    fn time(&self, ticks: u64) -> Time {
        let since = u128::from(ticks.saturating_sub(self.start_ticks));
        let mut time = ((since * self.pace[1]) >> FRACTION) as Time;
        // Both ratios are rounded down.
        while self.ticks(time) < ticks {
            time += 1;
        }
        time
    }

    /// Returns when a receiver that starts a message at `start` has taken it, after `clocks` cycles.
    #[inline]
    fn take_end(start: Time, clocks: u32) -> Time {
        start + u64::from(clocks) * SECOND / end::CLOCK_HZ
    }
}

/// Creates the testbench of a link that has come up.
fn new_testbench<L: Layer>(plan: &Plan, ends: [L; 2], link: usize) -> Testbench<L> {
    let seed = plan.seed ^ (link as u64) << 32;
    let mut testbench = Testbench::new(ends, plan.lanes.count, plan.delay_ticks, 0.0, seed);
    // The links have come up, and the credits have arrived.
    testbench.settle(1 << 20);
    testbench.advance(testbench.now + 4 * plan.delay_ticks + 1024 * LANE_BYTE);
    for (wire, side) in testbench.wires.iter_mut().zip(0..) {
        wire.noise =
            cohkit_link::bit_errors::Noise::new(plan.bit_error_rate, seed ^ (0x1111 << side));
        (wire.bits, wire.idle, wire.units) = (0, 0, 0);
    }
    if plan.is_lossless() {
        testbench.disable_replay();
    }
    testbench
}

impl<L: Layer> Wired<L> {
    /// Creates links that have come up. `ends` creates the two endpoints of one link, side 0 first.
    fn new(plan: &Plan, ends: impl Fn() -> [L; 2]) -> Wired<L> {
        let new_testbench = |link: usize| new_testbench(plan, ends(), link);
        let mut testbenches: Vec<Testbench<L>> = (0..plan.link_count).map(new_testbench).collect();
        let start_ticks = testbenches
            .iter()
            .map(|testbench| testbench.now)
            .max()
            .unwrap_or(0);
        testbenches
            .iter_mut()
            .for_each(|testbench| testbench.sleep(start_ticks));
        let circuits = |side: usize| {
            testbenches
                .first()
                .map_or(0, |testbench| testbench.ends()[side].circuits().len())
        };
        let queues = |side| vec![VecDeque::new(); circuits(side)];
        let byte = plan.lanes.blocks();
        let byte = Ratio::new(
            byte.denominator * u128::from(plan.lanes.count) * u128::from(SECOND),
            byte.numerator,
        );
        let unit = 1u128 << FRACTION;
        let ticks = u128::from(LANE_BYTE);
        let pace = unit * ticks * byte.denominator / byte.numerator;
        let mut wired = Wired {
            scale: Scale {
                start_ticks,
                pace: [pace, unit * byte.numerator / (ticks * byte.denominator)],
                clock_ticks: ((u128::from(SECOND / end::CLOCK_HZ) * pace) >> FRACTION) as u64,
                two_picoseconds: ((2 * pace) >> FRACTION) as u64 + 1,
            },
            queues: (0..plan.link_count)
                .map(|_| [queues(0), queues(1)])
                .collect(),
            queued: 0,
            scheduled_offers: VecDeque::new(),
            flight: 0,
            take_times: vec![[[0; CIRCUITS]; 2]; plan.link_count],
            faults: plan.faults,
            failures: match plan.faults.mean_interval {
                0 => Vec::new(),
                _ => (0..plan.link_count)
                    .map(|link| Failing::new(&plan.faults, plan.seed ^ (0x2222 << link)))
                    .collect(),
            },
            lanes: plan.lanes.count,
            due: vec![Due::default(); plan.link_count],
            is_lazy: plan.is_lossless(),
            has_bit_errors: plan.bit_error_rate > 0.0,
            byte,
            now: start_ticks,
            testbenches,
        };
        if let Some(testbench) = wired.testbenches.first() {
            let shortest = Message {
                circuit: 0,
                bytes: 0,
                label: 0,
            };
            let clocks = testbench.ends()[0].clocks(&shortest);
            wired.flight =
                Scale::take_end(wired.scale.time(start_ticks + testbench.flight()), clocks);
        }
        wired
    }

    /// Bytes of non-idle units sent on a link from a side.
    fn bytes_of(&self, link: usize, side: usize) -> u64 {
        let wire = &self.testbenches[link].wires[side];
        wire.bits.saturating_sub(wire.idle) / 8
    }

    /// Time for `bytes` on a link with its current number of lanes, in picoseconds.
    fn time_of(&self, link: usize, bytes: u64) -> Time {
        let bytes = u128::from(bytes) / u128::from(self.testbenches[link].lanes());
        (bytes * self.byte.numerator / self.byte.denominator) as Time
    }

    /// Returns when receivers take the next message from a link at these sides; `Time::MAX` if none is in flight.
    #[inline]
    fn next_arrival(&mut self, link: usize, sides: Range<usize>) -> Time {
        // A message that waits in front of an endpoint may be able to leave when anything arrives, such as an
        // acknowledgement.
        let any_event = self.queued > 0;
        let sides = if any_event { 0..2 } else { sides };
        let (scale, testbench) = (&self.scale, &mut self.testbenches[link]);
        let take_time = |ticks, clocks| Scale::take_end(scale.time(ticks), clocks);
        let mut earliest =
            EarliestMessage::new(scale.clock_ticks, scale.two_picoseconds, take_time);
        testbench.due(sides, any_event, &mut earliest);
        earliest.time
    }

    /// Advances all links to a time.
    #[inline]
    fn advance_all(&mut self, now: Time) {
        self.apply_failures(now);
        self.now = self.scale.ticks(now) + 1;
        for testbench in &mut self.testbenches {
            advance_link(testbench, self.now, self.has_bit_errors);
        }
    }

    /// Takes links down whose failures are due by `now`, each at its own time.
    fn apply_failures(&mut self, now: Time) {
        for link in 0..self.failures.len() {
            while self.failures[link].next <= now {
                let failure_ticks = self.scale.ticks(self.failures[link].next);
                advance_link(
                    &mut self.testbenches[link],
                    failure_ticks,
                    self.has_bit_errors,
                );
                for side in 0..2 {
                    let (busy, counted_bytes) = self.failures[link].busy[side];
                    let bytes = self.bytes_of(link, side);
                    let busy_time = self.time_of(link, bytes - counted_bytes);
                    self.failures[link].busy[side] = (busy + busy_time, bytes);
                }
                let failing = &mut self.failures[link];
                let lanes = match failing.downs % 2 {
                    0 => self.faults.lanes,
                    _ => self.lanes,
                };
                failing.downs += 1;
                failing.schedule_next(&self.faults);
                let down_ticks = self.scale.ticks(self.faults.down) - self.scale.start_ticks;
                self.testbenches[link].retrain(down_ticks, lanes);
            }
        }
    }
}

/// Advances a link to a time. Bit errors do not affect an idle link.
#[inline]
fn advance_link<L: Layer>(testbench: &mut Testbench<L>, until: u64, has_bit_errors: bool) {
    if has_bit_errors && testbench.is_quiescent() {
        testbench.sleep(until);
    } else {
        testbench.advance(until);
    }
}

impl<L: Layer> Wired<L> {
    /// Advances all links to `now`, before a message is offered. Messages that are due earlier are offered on the way.
    pub(super) fn advance(&mut self, now: Time) {
        while let Some(&(time, side, link, message)) = self.scheduled_offers.front() {
            if time > now {
                break;
            }
            self.scheduled_offers.pop_front();
            self.advance_all(time);
            let link = self.offer(side, link, message);
            // The messages of an examined link are found when they are taken.
            if !self.due[link].is_advanced {
                self.update_due(side, link);
            }
        }
        self.advance_all(now);
    }

    /// Advances the links from which messages arrive by `now`, before these are taken.
    pub(super) fn advance_due(&mut self, now: Time) {
        let is_offer_due = self
            .scheduled_offers
            .front()
            .is_some_and(|offer| offer.0 <= now);
        if is_offer_due || !self.is_lazy || self.queued > 0 {
            for due in &mut self.due {
                due.is_advanced = true;
            }
            return self.advance(now);
        }
        self.now = self.scale.ticks(now) + 1;
        for (testbench, due) in self.testbenches.iter_mut().zip(&mut self.due) {
            due.is_advanced |= due.arrival <= now || due.blocked;
            if due.is_advanced {
                testbench.advance(self.now);
            }
        }
    }

    /// Schedules a message to be offered at a side. Returns the earliest time of its arrival.
    pub(super) fn offer_later(
        &mut self,
        time: Time,
        side: usize,
        link: Option<usize>,
        message: Message,
    ) -> Time {
        let position = self
            .scheduled_offers
            .partition_point(|offer| offer.0 <= time);
        self.scheduled_offers
            .insert(position, (time, side, link, message));
        time + self.flight
    }

    /// Offers a message at a side now. An ordered message has the parity of its line in `odd`, which determines the
    /// link; any other takes the link with the smallest backlog. Returns the link that takes the message.
    pub(super) fn offer(&mut self, side: usize, odd: Option<usize>, message: Message) -> usize {
        let circuit = usize::from(message.circuit);
        let queued = |link: usize| match self.queued {
            0 => 0,
            _ => self.queues[link][side][circuit].len(),
        };
        let backlog = |link: usize| {
            self.testbenches[link].ends()[side].backlog(message.circuit) + queued(link)
        };
        let link = match (self.testbenches.len(), odd) {
            (1, _) => 0,
            (2, Some(odd)) => Balance::Address.choose(message.circuit, odd == 1, [0; 2]),
            (2, None) => Balance::QueueLength.choose(u8::MAX, false, [backlog(0), backlog(1)]),
            (links, Some(odd)) => odd % links,
            (links, None) => (0..links).min_by_key(|&link| backlog(link)).unwrap_or(0),
        };
        if queued(link) > 0 || self.testbenches[link].end_mut(side).send(message).is_err() {
            self.queues[link][side][circuit].push_back(message);
            self.queued += 1;
        }
        link
    }

    /// Moves waiting messages into the endpoints as far as these have room.
    pub(super) fn feed(&mut self) {
        if self.queued == 0 {
            return;
        }
        for (testbench, sides) in self.testbenches.iter_mut().zip(&mut self.queues) {
            for (end, circuits) in testbench.ends_mut().iter_mut().zip(sides) {
                for queue in circuits {
                    while let Some(&message) = queue.front() {
                        if end.send(message).is_err() {
                            break;
                        }
                        queue.pop_front();
                        self.queued -= 1;
                    }
                }
            }
        }
    }

    /// Takes the messages that have arrived by `now` and for which `accepts` returns true, and passes them to
    /// `deliver`. Both take the side of arrival and the label. The first refused message of a circuit blocks the
    /// later ones of this circuit.
    pub(super) fn take(
        &mut self,
        now: Time,
        mut accepts: impl FnMut(usize, u64) -> bool,
        mut deliver: impl FnMut(usize, u64),
    ) {
        for side in 0..2 {
            let links = self.testbenches.iter_mut().zip(&mut self.take_times);
            for ((testbench, take_times), due) in links.zip(&mut self.due) {
                if !due.is_advanced {
                    continue;
                }
                if side == 0 {
                    (due.arrival, due.blocked) = (Time::MAX, false);
                }
                let mut circuits = testbench.ends()[side].received_circuits();
                while circuits != 0 {
                    let circuit = circuits.trailing_zeros() as u8;
                    circuits &= circuits - 1;
                    let take_time = &mut take_times[side][usize::from(circuit) % CIRCUITS];
                    // The receiver starts a message at the first clock at which it is complete and the one before has
                    // been taken.
                    let mut start = None;
                    while let Some(message) = testbench.peek(side, circuit) {
                        if *take_time == 0 {
                            let clocks = testbench.ends()[side].clocks(&message);
                            let completion = || {
                                self.scale
                                    .time(testbench.message_completion_time(side, circuit))
                            };
                            if clocks > 0 {
                                *take_time =
                                    Scale::take_end(start.unwrap_or_else(completion), clocks);
                            }
                        }
                        if *take_time > now {
                            due.arrival = due.arrival.min(*take_time);
                            break;
                        }
                        if !accepts(side, message.label) {
                            due.blocked = true;
                            break;
                        }
                        testbench.end_mut(side).take(circuit);
                        (*take_time, start) = (0, Some(now));
                        deliver(side, message.label);
                    }
                }
            }
        }
    }

    /// Returns the time of the next event that occurs without a new message, in picoseconds. Examines the links
    /// that were advanced since the last call.
    pub(super) fn due(&mut self) -> Option<Time> {
        let next_offer = self
            .scheduled_offers
            .front()
            .map(|offer| offer.0 + self.flight);
        let mut due = next_offer.unwrap_or(Time::MAX);
        for link in 0..self.due.len() {
            if std::mem::take(&mut self.due[link].is_advanced) {
                self.due[link].arrival = self.due[link].arrival.min(self.next_arrival(link, 0..2));
            }
            due = due.min(self.due[link].arrival);
        }
        (due < Time::MAX).then_some(due)
    }

    /// Returns when the message just offered at a side of a link causes an event; `Time::MAX` if there is none.
    pub(super) fn update_due(&mut self, side: usize, link: usize) -> Time {
        let next_arrival = self.next_arrival(link, side..side + 1);
        self.due[link].arrival = self.due[link].arrival.min(next_arrival);
        next_arrival
    }

    /// Sends outstanding acknowledgements and credits, for which no component waits.
    pub(super) fn settle(&mut self) {
        for testbench in &mut self.testbenches {
            testbench.run_to_quiescence(1 << 16);
        }
    }

    /// Bits of a message from a side, header included.
    pub(super) fn message_bits(&self, side: usize, message: &Message) -> u64 {
        let header = (self.testbenches.first())
            .map_or(0, |testbench| testbench.ends()[side].header_bits(message));
        header + 8 * u64::from(message.bytes)
    }

    /// Bytes of non-idle units sent from a side.
    pub(super) fn bytes(&self, side: usize) -> u64 {
        let bits = |testbench: &Testbench<L>| {
            testbench.wires[side]
                .bits
                .saturating_sub(testbench.wires[side].idle)
        };
        self.testbenches.iter().map(bits).sum::<u64>() / 8
    }

    /// Time for which links have sent non-idle units from a side, summed over the links, in picoseconds.
    pub(super) fn busy(&self, side: usize) -> Time {
        if !self.failures.is_empty() {
            let links = self.failures.iter().enumerate();
            let busy = links.map(|(link, failing)| {
                let (busy, counted_bytes) = failing.busy[side];
                busy + self.time_of(link, self.bytes_of(link, side) - counted_bytes)
            });
            return busy.sum();
        }
        let lanes = self
            .testbenches
            .first()
            .map_or(1, |testbench| testbench.lanes());
        let bytes = u128::from(self.bytes(side)) / u128::from(lanes);
        (bytes * self.byte.numerator / self.byte.denominator) as Time
    }

    /// Number of units sent again.
    pub(super) fn replayed(&self) -> u64 {
        let ends = self.testbenches.iter().flat_map(Testbench::ends);
        ends.map(Layer::replayed).sum()
    }

    /// Number of failures of all links, or `None` if links never go down.
    pub(super) fn downs(&self) -> Option<u64> {
        let downs = self.failures.iter().map(|failing| failing.downs);
        (!self.failures.is_empty()).then(|| downs.sum())
    }
}
