//! Links with their ends, as many as are beside each other, which go on in time.

use cohkit_link::chance::Chance;
use cohkit_link::drive::{Drive, Earliest, LANE_BYTE};
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

/// What is the same for links of any kind.
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

/// Ends that can be made.
pub(super) enum Made {
    Eci(Parameters),
    /// With the bytes for which a packet of the link layer leaves, and those that are under way one way.
    Ccix(u64, u64),
    /// With who is at side 0.
    Cxl(cxl::Flits, u32, cxl::Side),
}

/// What is the same for all links of a port.
pub(super) struct Plan {
    pub lanes: Lanes,
    pub delay: u64,
    pub rate: f64,
    pub seed: u64,
    pub count: usize,
    pub faults: Faults,
}

impl Plan {
    /// Whether nothing is ever lost or damaged.
    fn is_lossless(&self) -> bool {
        self.rate <= 0.0 && self.faults.between == 0
    }
}

/// When links go down, and how they come up.
#[derive(Clone, Copy)]
pub(super) struct Faults {
    /// The mean time between two of these times; 0 if there are none.
    pub between: Time,
    pub down: Time,
    /// Lanes after every other time.
    pub lanes: u32,
}

/// A link that goes down now and then.
struct Failing {
    chance: Chance,
    /// When it goes down next.
    next: Time,
    /// How often it has gone down.
    downs: u64,
    /// For how long it has sent what says something, by side, until it went down last, and how many bytes that were.
    busy: [(Time, u64); 2],
}

impl Failing {
    fn new(faults: &Faults, seed: u64) -> Failing {
        let mut failing = Failing {
            chance: Chance::new(seed),
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

impl Made {
    pub(super) fn of(&self, plan: Plan) -> Links {
        match self {
            Made::Eci(parameters) => Links::Eci(Wired::new(&plan, || {
                [(); 2].map(|()| end::End::new(parameters.clone()))
            })),
            Made::Ccix(limit, way) => {
                let end = || ccix::End::new(256, ccix::OPTIMISED, true, *limit).over(*way);
                Links::Ccix(Wired::new(&plan, || [end(), end()]))
            }
            Made::Cxl(flits, patience, first) => {
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

/// Most circuits of a link.
const CIRCUITS: usize = 16;

/// Links with their ends. Each goes on only when something happens on it, or when it is touched. A label's upper half is the
/// space that its message is of.
pub(super) struct Wired<L: Layer> {
    drives: Vec<Drive<L>>,
    /// The ticks to which all links have gone on, or would have.
    now: u64,
    /// What waits before each end of each link, by circuit.
    queues: Vec<[Vec<VecDeque<Message>>; 2]>,
    queued: usize,
    /// What is offered later, by time: when, at which side, on which link if that is given, and what.
    later: VecDeque<(Time, usize, Option<usize>, Message)>,
    /// From when something is offered until a receiver has taken it, at least.
    flight: Time,
    /// When the receiver at each side has taken the first message of each circuit of each link; 0 if it has not begun with
    /// one.
    free: Vec<[[Time; CIRCUITS]; 2]>,
    /// When something comes out of each link next, if that is known: the last of times if nothing does.
    due: Vec<Due>,
    /// Whether links go on, until something is sent there, only when something comes out of them. Those on which bits go wrong
    /// or that go down go on with all.
    alone: bool,
    /// Whether bits go wrong.
    noisy: bool,
    faults: Faults,
    /// Each link, if they go down at all; and how many lanes it has when all work.
    failing: Vec<Failing>,
    lanes: u32,
    /// Picoseconds of `LANE_BYTE` ticks.
    byte: Ratio,
    scale: Scale,
}

/// When a link is to be looked at.
#[derive(Clone, Copy)]
struct Due {
    /// When something comes out of it, at the earliest: the last of times if nothing does.
    at: Time,
    /// Whether it was looked at since that was known of all that is under way.
    looked: bool,
    /// Whether something that has come was not let in.
    blocked: bool,
}

impl Default for Due {
    fn default() -> Due {
        Due {
            at: Time::MAX,
            looked: false,
            blocked: false,
        }
    }
}

/// Ticks of the drives beside time.
#[derive(Clone, Copy)]
struct Scale {
    /// Ticks at time 0.
    begun: u64,
    /// Ticks of 2^[`FRACTION`] picoseconds, and the reverse.
    pace: [u128; 2],
    /// Ticks of a clock of a receiver, and of two picoseconds.
    clock: u64,
    apart: u64,
}

/// Bits behind the point of ratios of ticks and picoseconds.
const FRACTION: u32 = 40;

impl Scale {
    /// The ticks at which this time begins.
    #[inline]
    fn ticks(&self, time: Time) -> u64 {
        self.begun + ((u128::from(time) * self.pace[0]) >> FRACTION) as u64
    }

    /// The first time at which so many ticks have passed.
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

    /// When a receiver that begins with a message at a time has taken it.
    #[inline]
    fn taken(begins: Time, clocks: u32) -> Time {
        begins + u64::from(clocks) * SECOND / end::CLOCK
    }
}

impl<L: Layer> Wired<L> {
    fn new(plan: &Plan, ends: impl Fn() -> [L; 2]) -> Wired<L> {
        let drive = |link: usize| {
            let seed = plan.seed ^ (link as u64) << 32;
            let mut drive = Drive::new(ends(), plan.lanes.count, plan.delay, 0.0, seed);
            // The links have come up: the credits are there.
            drive.settle(1 << 20);
            drive.advance(drive.now + 4 * plan.delay + 1024 * LANE_BYTE);
            for (wire, side) in drive.wires.iter_mut().zip(0..) {
                wire.noise = cohkit_link::chance::Noise::new(plan.rate, seed ^ (0x1111 << side));
                (wire.bits, wire.idle, wire.units) = (0, 0, 0);
            }
            if plan.is_lossless() {
                drive.forget();
            }
            drive
        };
        let mut drives: Vec<Drive<L>> = (0..plan.count).map(drive).collect();
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

    /// Bytes of what has said something on a link, from a side.
    fn bytes_of(&self, link: usize, side: usize) -> u64 {
        let wire = &self.drives[link].wires[side];
        wire.bits.saturating_sub(wire.idle) / 8
    }

    /// The time of so many bytes on a link as it is now.
    fn time_of(&self, link: usize, bytes: u64) -> Time {
        let bytes = u128::from(bytes) / u128::from(self.drives[link].lanes());
        (bytes * self.byte.over / self.byte.under) as Time
    }

    /// When receivers are going to take messages from a link and these sides: the last of times if they are not.
    #[inline]
    fn comes(&mut self, link: usize, sides: Range<usize>) -> Time {
        // What waits before an end may go on whenever something comes, an acknowledgement, say.
        let anything = self.queued > 0;
        let sides = if anything { 0..2 } else { sides };
        let (scale, drive) = (&self.scale, &mut self.drives[link]);
        let at = |ticks, clocks| Scale::taken(scale.time(ticks), clocks);
        let mut earliest = Earliest::new(scale.clock, scale.apart, at);
        drive.due(sides, anything, &mut earliest);
        earliest.time
    }

    /// All links go on until a time.
    #[inline]
    fn go_on(&mut self, now: Time) {
        self.fail(now);
        self.now = self.scale.ticks(now) + 1;
        for drive in &mut self.drives {
            go_on(drive, self.now, self.noisy);
        }
    }

    /// Links go down that do so until now, each at its time.
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

/// A link goes on until a time. Bits that go wrong make no difference to one at rest.
#[inline]
fn go_on<L: Layer>(drive: &mut Drive<L>, until: u64, noisy: bool) {
    if noisy && drive.is_at_rest() {
        drive.sleep(until);
    } else {
        drive.advance(until);
    }
}

impl<L: Layer> Wired<L> {
    /// All links go on until a time: something is going to be offered.
    pub(super) fn advance(&mut self, now: Time) {
        while let Some(&(at, side, link, message)) = self.later.front() {
            if at > now {
                break;
            }
            self.later.pop_front();
            self.go_on(at);
            let link = self.offer(side, link, message);
            // Of a link that was looked at all is found when it has been taken from.
            if !self.due[link].looked {
                self.due_of(side, link);
            }
        }
        self.go_on(now);
    }

    /// Those links go on until a time out of which something comes: it is going to be taken.
    pub(super) fn come(&mut self, now: Time) {
        let later = self.later.front().is_some_and(|later| later.0 <= now);
        if later || !self.alone || self.queued > 0 {
            for due in &mut self.due {
                due.looked = true;
            }
            return self.advance(now);
        }
        self.now = self.scale.ticks(now) + 1;
        for (drive, due) in self.drives.iter_mut().zip(&mut self.due) {
            due.looked |= due.at <= now || due.blocked;
            if due.looked {
                drive.advance(self.now);
            }
        }
    }

    /// A message is to leave at a side at a time. Returns when it comes, at the earliest.
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

    /// A message is to leave at a side now. Returns which link takes it.
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

    /// What waits before the ends goes on as far as there is room.
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

    /// Takes what has come and is let in.
    pub(super) fn take(
        &mut self,
        now: Time,
        mut lets_in: impl FnMut(usize, u64) -> bool,
        mut each: impl FnMut(usize, u64),
    ) {
        for to in 0..2 {
            let links = self.drives.iter_mut().zip(&mut self.free);
            for ((drive, free), due) in links.zip(&mut self.due) {
                if !due.looked {
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
                    // The receiver begins with a message at the first clock at which it is whole and the one before is taken.
                    let mut begins = None;
                    while let Some(message) = drive.peek(to, circuit) {
                        if *free == 0 {
                            let clocks = drive.ends()[to].clocks(&message);
                            let whole = || self.scale.time(drive.whole_at(to, circuit));
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

    /// When something happens by itself.
    pub(super) fn due(&mut self) -> Option<Time> {
        let later = self.later.front().map(|later| later.0 + self.flight);
        let mut due = later.unwrap_or(Time::MAX);
        for link in 0..self.due.len() {
            if std::mem::take(&mut self.due[link].looked) {
                self.due[link].at = self.due[link].at.min(self.comes(link, 0..2));
            }
            due = due.min(self.due[link].at);
        }
        (due < Time::MAX).then_some(due)
    }

    /// When something happens because of what was offered last, to a side of a link.
    pub(super) fn due_of(&mut self, side: usize, link: usize) -> Time {
        let comes = self.comes(link, side..side + 1);
        self.due[link].at = self.due[link].at.min(comes);
        comes
    }

    /// Nobody waits for what is still to be told.
    pub(super) fn rest(&mut self) {
        for drive in &mut self.drives {
            drive.rest(1 << 16);
        }
    }

    /// Bits of a message from a side, with its header.
    pub(super) fn bits(&self, side: usize, message: &Message) -> u64 {
        let header =
            (self.drives.first()).map_or(0, |drive| drive.ends()[side].header_bits(message));
        header + 8 * u64::from(message.bytes)
    }

    /// Bytes of what has said something, from a side.
    pub(super) fn bytes(&self, side: usize) -> u64 {
        let bits = |drive: &Drive<L>| {
            drive.wires[side]
                .bits
                .saturating_sub(drive.wires[side].idle)
        };
        self.drives.iter().map(bits).sum::<u64>() / 8
    }

    /// For how long links have sent that.
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

    /// Units sent again.
    pub(super) fn replayed(&self) -> u64 {
        let ends = self.drives.iter().flat_map(Drive::ends);
        ends.map(Layer::replayed).sum()
    }

    /// How often links went down, if they do.
    pub(super) fn downs(&self) -> Option<u64> {
        let downs = self.failing.iter().map(|failing| failing.downs);
        (!self.failing.is_empty()).then(|| downs.sum())
    }
}
