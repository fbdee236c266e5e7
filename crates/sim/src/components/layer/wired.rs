//! Parallel links with their endpoints, advanced in time.

use cohkit_link::bit_errors::RandomGenerator;
use cohkit_link::testbench::{Earliest, Testbench, LANE_BYTE};
use cohkit_link::{ccix, cxl, end, Balance, Lanes, Layer, Message, Parameters, Ratio};
use std::collections::VecDeque;
use std::ops::Range;

use crate::kernel::{Time, SECOND};

/// Several links of one kind.
pub(super) enum Links {
    Eci(Wired<end::End>),
    Ccix(Wired<ccix::End>),
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
    Eci(Parameters),
    /// Bytes after which a packet of the link layer leaves, and bytes in flight in one direction.
    Ccix(u64, u64),
    /// Flit size, retry timeout, and role of side 0.
    Cxl(cxl::Flits, u32, cxl::Side),
}

/// Parameters common to all links of a port.
pub(super) struct Plan {
    pub lanes: Lanes,
    pub delay: u64,
    pub rate: f64,
    pub seed: u64,
    pub count: usize,
    pub faults: Faults,
}

impl Plan {
    /// True if nothing is ever lost or damaged.
    fn is_lossless(&self) -> bool {
        self.rate <= 0.0 && self.faults.between == 0
    }
}

/// Parameters of link failures and recoveries.
#[derive(Clone, Copy)]
pub(super) struct Faults {
    /// Mean time between two failures, in picoseconds; 0 for none.
    pub between: Time,
    pub down: Time,
    /// Number of lanes after every other failure.
    pub lanes: u32,
}

/// State of a link that goes down from time to time.
struct Failing {
    chance: RandomGenerator,
    /// Time of its next failure.
    next: Time,
    /// Number of failures.
    downs: u64,
    /// Time for which the link had sent non-idle units up to its last failure, and their bytes, by side.
    busy: [(Time, u64); 2],
}

impl Failing {
    fn new(faults: &Faults, seed: u64) -> Failing {
        let mut failing = Failing {
            chance: RandomGenerator::new(seed),
            next: 0,
            downs: 0,
            busy: [(0, 0); 2],
        };
        failing.draw(faults);
        failing
    }

    fn draw(&mut self, faults: &Faults) {
        self.next += 1 + self.chance.below(2 * faults.between);
    }
}

impl EndKind {
    pub(super) fn of(&self, plan: Plan) -> Links {
        match self {
            EndKind::Eci(parameters) => Links::Eci(Wired::new(&plan, || {
                [(); 2].map(|()| end::End::new(parameters.clone()))
            })),
            EndKind::Ccix(limit, way) => {
                let end = || ccix::End::new(256, ccix::OPTIMISED, true, *limit).over(*way);
                Links::Ccix(Wired::new(&plan, || [end(), end()]))
            }
            EndKind::Cxl(flits, patience, first) => {
                let end = |side| {
                    let parameters = cxl::Parameters::new(*flits, side);
                    cxl::End::new(cxl::Parameters {
                        fifo: usize::MAX,
                        patience: *patience,
                        ..parameters
                    })
                };
                Links::Cxl(Wired::new(&plan, || [end(*first), end(first.partner())]))
            }
        }
    }
}

/// Maximum number of circuits of a link.
const CIRCUITS: usize = 16;

/// Links with their endpoints. A link advances only when an event occurs on it or when it is accessed. The upper half
/// of a label is the message's space.
pub(super) struct Wired<L: Layer> {
    drives: Vec<Testbench<L>>,
    /// Ticks up to which all links are considered advanced.
    now: u64,
    /// Messages that wait in front of each endpoint of each link, by circuit.
    queues: Vec<[Vec<VecDeque<Message>>; 2]>,
    queued: usize,
    /// Messages to be offered later, in time order: time, side, link (if fixed) and message.
    later: VecDeque<(Time, usize, Option<usize>, Message)>,
    /// Minimum latency from offering a message until a receiver has taken it.
    flight: Time,
    /// Time at which the receiver at each side has taken the first message of each circuit of each link; 0 if it has
    /// not started one.
    free: Vec<[[Time; CIRCUITS]; 2]>,
    /// For each link, when it is to be examined next.
    due: Vec<Due>,
    /// True if a link needs to advance only when a message arrives from it, until the next send. Links with bit errors
    /// or failures advance with all others.
    alone: bool,
    /// True if bit errors occur.
    noisy: bool,
    faults: Faults,
    /// Failure state of each link, empty if links never go down; and the number of lanes when all work.
    failing: Vec<Failing>,
    lanes: u32,
    /// Picoseconds of `LANE_BYTE` ticks.
    byte: Ratio,
    scale: Scale,
}

/// Time at which a link is to be examined.
#[derive(Clone, Copy)]
struct Due {
    /// Earliest time at which a message arrives from the link; `Time::MAX` if none does.
    at: Time,
    /// True if the link was advanced since `at` was computed for all messages in flight.
    is_advanced: bool,
    /// True if an arrived message was not accepted.
    blocked: bool,
}

impl Default for Due {
    fn default() -> Due {
        Due {
            at: Time::MAX,
            is_advanced: false,
            blocked: false,
        }
    }
}

/// Conversion between ticks of the drives and time.
#[derive(Clone, Copy)]
struct Scale {
    /// Ticks at time 0.
    begun: u64,
    /// Ticks of 2^[`FRACTION`] picoseconds, and the reverse.
    pace: [u128; 2],
    /// Ticks of a receiver's clock cycle, and of two picoseconds.
    clock: u64,
    apart: u64,
}

/// Fractional bits of the ratios of ticks and picoseconds.
const FRACTION: u32 = 40;

impl Scale {
    /// Returns the ticks at which this time starts.
    #[inline]
    fn ticks(&self, time: Time) -> u64 {
        self.begun + ((u128::from(time) * self.pace[0]) >> FRACTION) as u64
    }

    /// Returns the first time at which `ticks` have passed.
    #[inline]
    fn time(&self, ticks: u64) -> Time {
        let since = u128::from(ticks.saturating_sub(self.begun));
        let mut time = ((since * self.pace[1]) >> FRACTION) as Time;
        // Both ratios are rounded down.
        while self.ticks(time) < ticks {
            time += 1;
        }
        time
    }

    /// Returns when a receiver that starts a message at `begins` has taken it.
    #[inline]
    fn taken(begins: Time, clocks: u32) -> Time {
        begins + u64::from(clocks) * SECOND / end::CLOCK
    }
}

impl<L: Layer> Wired<L> {
    fn new(plan: &Plan, ends: impl Fn() -> [L; 2]) -> Wired<L> {
        let drive = |link: usize| {
            let seed = plan.seed ^ (link as u64) << 32;
            let mut drive = Testbench::new(ends(), plan.lanes.count, plan.delay, 0.0, seed);
            // The links have come up, and the credits have arrived.
            drive.settle(1 << 20);
            drive.advance(drive.now + 4 * plan.delay + 1024 * LANE_BYTE);
            for (wire, side) in drive.wires.iter_mut().zip(0..) {
                wire.noise =
                    cohkit_link::bit_errors::Noise::new(plan.rate, seed ^ (0x1111 << side));
                (wire.bits, wire.idle, wire.units) = (0, 0, 0);
            }
            if plan.is_lossless() {
                drive.forget();
            }
            drive
        };
        let mut drives: Vec<Testbench<L>> = (0..plan.count).map(drive).collect();
        let begun = drives.iter().map(|drive| drive.now).max().unwrap_or(0);
        drives.iter_mut().for_each(|drive| drive.sleep(begun));
        let circuits = |side: usize| {
            drives
                .first()
                .map_or(0, |drive| drive.ends()[side].circuits().len())
        };
        let queues = |side| vec![VecDeque::new(); circuits(side)];
        let byte = plan.lanes.blocks();
        let byte = Ratio::new(
            byte.under * u128::from(plan.lanes.count) * u128::from(SECOND),
            byte.over,
        );
        let one = 1u128 << FRACTION;
        let ticks = u128::from(LANE_BYTE);
        let pace = one * ticks * byte.under / byte.over;
        let mut wired = Wired {
            scale: Scale {
                begun,
                pace: [pace, one * byte.over / (ticks * byte.under)],
                clock: ((u128::from(SECOND / end::CLOCK) * pace) >> FRACTION) as u64,
                apart: ((2 * pace) >> FRACTION) as u64 + 1,
            },
            queues: (0..plan.count).map(|_| [queues(0), queues(1)]).collect(),
            queued: 0,
            later: VecDeque::new(),
            flight: 0,
            free: vec![[[0; CIRCUITS]; 2]; plan.count],
            faults: plan.faults,
            failing: match plan.faults.between {
                0 => Vec::new(),
                _ => (0..plan.count)
                    .map(|link| Failing::new(&plan.faults, plan.seed ^ (0x2222 << link)))
                    .collect(),
            },
            lanes: plan.lanes.count,
            due: vec![Due::default(); plan.count],
            alone: plan.is_lossless(),
            noisy: plan.rate > 0.0,
            byte,
            now: begun,
            drives,
        };
        if let Some(drive) = wired.drives.first() {
            let shortest = Message {
                circuit: 0,
                bytes: 0,
                label: 0,
            };
            let clocks = drive.ends()[0].clocks(&shortest);
            wired.flight = Scale::taken(wired.scale.time(begun + drive.flight()), clocks);
        }
        wired
    }

    /// Bytes of non-idle units sent on a link from a side.
    fn bytes_of(&self, link: usize, side: usize) -> u64 {
        let wire = &self.drives[link].wires[side];
        wire.bits.saturating_sub(wire.idle) / 8
    }

    /// Time for `bytes` on a link with its current number of lanes.
    fn time_of(&self, link: usize, bytes: u64) -> Time {
        let bytes = u128::from(bytes) / u128::from(self.drives[link].lanes());
        (bytes * self.byte.over / self.byte.under) as Time
    }

    /// Returns when receivers take the next message from a link at these sides; `Time::MAX` if none is in flight.
    #[inline]
    fn next_arrival(&mut self, link: usize, sides: Range<usize>) -> Time {
        // A message that waits in front of an endpoint may be able to leave when anything arrives, such as an
        // acknowledgement.
        let anything = self.queued > 0;
        let sides = if anything { 0..2 } else { sides };
        let (scale, drive) = (&self.scale, &mut self.drives[link]);
        let at = |ticks, clocks| Scale::taken(scale.time(ticks), clocks);
        let mut earliest = Earliest::new(scale.clock, scale.apart, at);
        drive.due(sides, anything, &mut earliest);
        earliest.time
    }

    /// Advances all links to a time.
    #[inline]
    fn go_on(&mut self, now: Time) {
        self.fail(now);
        self.now = self.scale.ticks(now) + 1;
        for drive in &mut self.drives {
            go_on(drive, self.now, self.noisy);
        }
    }

    /// Takes links down whose failures are due by `now`, each at its own time.
    fn fail(&mut self, now: Time) {
        for link in 0..self.failing.len() {
            while self.failing[link].next <= now {
                let at = self.scale.ticks(self.failing[link].next);
                go_on(&mut self.drives[link], at, self.noisy);
                for side in 0..2 {
                    let (busy, before) = self.failing[link].busy[side];
                    let bytes = self.bytes_of(link, side);
                    let since = self.time_of(link, bytes - before);
                    self.failing[link].busy[side] = (busy + since, bytes);
                }
                let failing = &mut self.failing[link];
                let lanes = match failing.downs % 2 {
                    0 => self.faults.lanes,
                    _ => self.lanes,
                };
                failing.downs += 1;
                failing.draw(&self.faults);
                let down = self.scale.ticks(self.faults.down) - self.scale.begun;
                self.drives[link].retrain(down, lanes);
            }
        }
    }
}

/// Advances a link to a time. Bit errors do not affect an idle link.
#[inline]
fn go_on<L: Layer>(drive: &mut Testbench<L>, until: u64, noisy: bool) {
    if noisy && drive.is_at_rest() {
        drive.sleep(until);
    } else {
        drive.advance(until);
    }
}

impl<L: Layer> Wired<L> {
    /// Advances all links to `now`, before a message is offered. Messages that are due earlier are offered on the way.
    pub(super) fn advance(&mut self, now: Time) {
        while let Some(&(at, side, link, message)) = self.later.front() {
            if at > now {
                break;
            }
            self.later.pop_front();
            self.go_on(at);
            let link = self.offer(side, link, message);
            // The messages of an examined link are found when they are taken.
            if !self.due[link].is_advanced {
                self.due_of(side, link);
            }
        }
        self.go_on(now);
    }

    /// Advances the links from which messages arrive by `now`, before these are taken.
    pub(super) fn come(&mut self, now: Time) {
        let later = self.later.front().is_some_and(|later| later.0 <= now);
        if later || !self.alone || self.queued > 0 {
            for due in &mut self.due {
                due.is_advanced = true;
            }
            return self.advance(now);
        }
        self.now = self.scale.ticks(now) + 1;
        for (drive, due) in self.drives.iter_mut().zip(&mut self.due) {
            due.is_advanced |= due.at <= now || due.blocked;
            if due.is_advanced {
                drive.advance(self.now);
            }
        }
    }

    /// Schedules a message to be offered at a side. Returns the earliest time of its arrival.
    pub(super) fn offer_later(
        &mut self,
        at: Time,
        side: usize,
        link: Option<usize>,
        message: Message,
    ) -> Time {
        let place = self.later.partition_point(|later| later.0 <= at);
        self.later.insert(place, (at, side, link, message));
        at + self.flight
    }

    /// Offers a message at a side now. Returns the link that takes it.
    pub(super) fn offer(&mut self, side: usize, odd: Option<usize>, message: Message) -> usize {
        let circuit = usize::from(message.circuit);
        let queued = |link: usize| match self.queued {
            0 => 0,
            _ => self.queues[link][side][circuit].len(),
        };
        let waits =
            |link: usize| self.drives[link].ends()[side].backlog(message.circuit) + queued(link);
        let link = match (self.drives.len(), odd) {
            (1, _) => 0,
            (2, Some(odd)) => Balance::Address.choose(message.circuit, odd == 1, [0; 2]),
            (2, None) => Balance::Room.choose(u8::MAX, false, [waits(0), waits(1)]),
            (links, Some(odd)) => odd % links,
            (links, None) => (0..links).min_by_key(|&link| waits(link)).unwrap_or(0),
        };
        if queued(link) > 0 || self.drives[link].end_mut(side).send(message).is_err() {
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
        for (drive, sides) in self.drives.iter_mut().zip(&mut self.queues) {
            for (end, circuits) in drive.ends_mut().iter_mut().zip(sides) {
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

    /// Takes the arrived messages that `lets_in` accepts.
    pub(super) fn take(
        &mut self,
        now: Time,
        mut lets_in: impl FnMut(usize, u64) -> bool,
        mut each: impl FnMut(usize, u64),
    ) {
        for to in 0..2 {
            let links = self.drives.iter_mut().zip(&mut self.free);
            for ((drive, free), due) in links.zip(&mut self.due) {
                if !due.is_advanced {
                    continue;
                }
                if to == 0 {
                    (due.at, due.blocked) = (Time::MAX, false);
                }
                let mut circuits = drive.ends()[to].come();
                while circuits != 0 {
                    let circuit = circuits.trailing_zeros() as u8;
                    circuits &= circuits - 1;
                    let free = &mut free[to][usize::from(circuit) % CIRCUITS];
                    // The receiver starts a message at the first clock at which it is complete and the one before has
                    // been taken.
                    let mut begins = None;
                    while let Some(message) = drive.peek(to, circuit) {
                        if *free == 0 {
                            let clocks = drive.ends()[to].clocks(&message);
                            let whole =
                                || self.scale.time(drive.message_completion_time(to, circuit));
                            if clocks > 0 {
                                *free = Scale::taken(begins.unwrap_or_else(whole), clocks);
                            }
                        }
                        if *free > now {
                            due.at = due.at.min(*free);
                            break;
                        }
                        if !lets_in(to, message.label) {
                            due.blocked = true;
                            break;
                        }
                        drive.end_mut(to).take(circuit);
                        (*free, begins) = (0, Some(now));
                        each(to, message.label);
                    }
                }
            }
        }
    }

    /// Returns the time of the next event that occurs without a new message.
    pub(super) fn due(&mut self) -> Option<Time> {
        let later = self.later.front().map(|later| later.0 + self.flight);
        let mut due = later.unwrap_or(Time::MAX);
        for link in 0..self.due.len() {
            if std::mem::take(&mut self.due[link].is_advanced) {
                self.due[link].at = self.due[link].at.min(self.next_arrival(link, 0..2));
            }
            due = due.min(self.due[link].at);
        }
        (due < Time::MAX).then_some(due)
    }

    /// Returns when the message just offered at a side of a link causes an event.
    pub(super) fn due_of(&mut self, side: usize, link: usize) -> Time {
        let next_arrival = self.next_arrival(link, side..side + 1);
        self.due[link].at = self.due[link].at.min(next_arrival);
        next_arrival
    }

    /// Sends outstanding acknowledgements and credits, for which no component waits.
    pub(super) fn rest(&mut self) {
        for drive in &mut self.drives {
            drive.rest(1 << 16);
        }
    }

    /// Bits of a message from a side, header included.
    pub(super) fn bits(&self, side: usize, message: &Message) -> u64 {
        let header =
            (self.drives.first()).map_or(0, |drive| drive.ends()[side].header_bits(message));
        header + 8 * u64::from(message.bytes)
    }

    /// Bytes of non-idle units sent from a side.
    pub(super) fn bytes(&self, side: usize) -> u64 {
        let bits = |drive: &Testbench<L>| {
            drive.wires[side]
                .bits
                .saturating_sub(drive.wires[side].idle)
        };
        self.drives.iter().map(bits).sum::<u64>() / 8
    }

    /// Total time for which links have sent non-idle units from a side.
    pub(super) fn busy(&self, side: usize) -> Time {
        if !self.failing.is_empty() {
            let links = self.failing.iter().enumerate();
            let busy = links.map(|(link, failing)| {
                let (busy, before) = failing.busy[side];
                busy + self.time_of(link, self.bytes_of(link, side) - before)
            });
            return busy.sum();
        }
        let lanes = self.drives.first().map_or(1, |drive| drive.lanes());
        let bytes = u128::from(self.bytes(side)) / u128::from(lanes);
        (bytes * self.byte.over / self.byte.under) as Time
    }

    /// Number of units sent again.
    pub(super) fn replayed(&self) -> u64 {
        let ends = self.drives.iter().flat_map(Testbench::ends);
        ends.map(Layer::replayed).sum()
    }

    /// Number of failures, or `None` if links never go down.
    pub(super) fn downs(&self) -> Option<u64> {
        let downs = self.failing.iter().map(|failing| failing.downs);
        (!self.failing.is_empty()).then(|| downs.sum())
    }
}
