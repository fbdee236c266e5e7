//! Links whose messages are framed, credited and sent again: two ends of [`cohkit_link`] with lanes between them, in time.
//!
//! A [`Port`] is all links between a caching agent and the home. A message is offered at one side, waits until its circuit
//! has room in the end there, travels as the link layer has it, and can be taken at the other side when it is whole, at the
//! pace of the receiver. What is not taken keeps its room, so that a circuit that stops holds up no other.

use cohkit_link::chance::Chance;
use cohkit_link::drive::{Drive, Earliest, LANE_BYTE};
use cohkit_link::{ccix, cxl, end, Balance, Lanes, Layer, Message, Parameters, Ratio};
use cohkit_protocol::protocol::{Class, End, MessageId, Protocol};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use crate::kernel::{Time, SECOND};
use crate::platform::{self, Framing};

/// How a kind of message travels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Its circuit for lines of even and of odd numbers.
    circuits: [u8; 2],
    /// Its bytes beside the header.
    bytes: u16,
    /// Whether messages of a line keep an order, so that a line's take the same link.
    ordered: bool,
}

/// Several links of one kind. A label's upper half is the space that its message is of.
trait Links {
    /// All links go on until a time: something is going to be offered.
    fn advance(&mut self, now: Time);
    /// Those links go on until a time out of which something comes: it is going to be taken.
    fn come(&mut self, now: Time);
    /// Returns which link takes it.
    fn offer(&mut self, side: usize, link: Option<usize>, message: Message) -> usize;
    /// Returns when it comes, at the earliest.
    fn offer_later(&mut self, at: Time, side: usize, link: Option<usize>, message: Message)
        -> Time;
    fn feed(&mut self);
    fn take(
        &mut self,
        now: Time,
        lets_in: &mut dyn FnMut(usize, u64) -> bool,
        each: &mut dyn FnMut(usize, u64),
    );
    fn due(&mut self) -> Option<Time>;
    /// When something happens because of what was offered last, to a side of a link.
    fn due_of(&mut self, side: usize, link: usize) -> Time;
    fn rest(&mut self);
    /// Bits of a message from a side, with its header.
    fn bits(&self, side: usize, message: &Message) -> u64;
    fn bytes(&self, side: usize) -> u64;
    fn busy(&self, side: usize) -> Time;
    fn replayed(&self) -> u64;
    fn downs(&self) -> Option<u64>;
}

/// Links, and when they are looked at next; two spaces have the same.
struct Shared {
    links: Box<dyn Links>,
    /// The last of times if they are not.
    due: Time,
    /// Bits of messages that were sent, by side and space.
    sent: [[u64; 2]; 2],
}

/// The links between a caching agent and the home, side 0 being the agent's. Where two spaces have the same links, each has a
/// port, and the agent of one is where the home of the other is.
pub(crate) struct Port {
    shared: Rc<RefCell<Shared>>,
    /// The number of its space, and the agent's side on the links.
    space: usize,
    agent: usize,
    ways: Rc<[Way]>,
    /// From coming out of a link to the receiver, by the side at which that is.
    pub join: [Time; 2],
    /// Whether something that has come was not let in.
    pub blocked: bool,
    /// Room for the numbers of messages that come at one time.
    pub came: Vec<u32>,
    /// When the last message that keeps an order enters at each side.
    entered: [Time; 2],
}

/// What is left on links when all has been taken that is let in.
#[derive(Clone, Copy, Default)]
pub(crate) struct Left {
    /// Whether anything was taken.
    pub took: bool,
    /// Whether something is there for the other space.
    pub elsewhere: bool,
}

impl Port {
    /// Idle links, whose ends have exchanged their credits: those of a caching agent, or those of a home at a switch.
    pub fn new(
        link: &platform::Link,
        layer: &platform::Layer,
        ways: &Rc<[Way]>,
        seed: u64,
        of_home: bool,
    ) -> Port {
        let count = link.links.value as usize;
        let lanes = layer.lanes.value as u32;
        let rate = layer.errors.value as f64 / 1e15;
        let rated = |lanes: Lanes| Lanes {
            rate: 8 * layer.lane_rate.value,
            ..lanes
        };
        let at = |lanes: Lanes, ends: &dyn Fn(u32) -> Made| {
            let byte = lanes.blocks().value() / f64::from(lanes.count);
            let delay =
                (link.latency.value as f64 / SECOND as f64 * byte * LANE_BYTE as f64) as u64;
            let plan = Plan {
                lanes,
                delay,
                rate,
                seed,
                count,
                faults: Faults {
                    between: layer.faults.value,
                    down: layer.down.value,
                    lanes: layer.lanes_left.value as u32,
                },
            };
            // A round trip in units of the longest kind, and as much again for what is under way.
            let unit = 512.0 / 8.0 / (byte * f64::from(lanes.count)) * SECOND as f64;
            let patience = (4.0 * link.latency.value as f64 / unit) as u32;
            ends(patience.max(256)).of(plan)
        };
        let links: Box<dyn Links> = match layer.framing {
            Framing::Eci => at(rated(Lanes::ECI.with(lanes)), &|patience| {
                Made::Eci(Parameters {
                    patience,
                    // What waits is counted here.
                    fifo: usize::MAX,
                    ..Parameters::ECI
                })
            }),
            Framing::Ccix => at(rated(Lanes::pcie(lanes, 16)), &|_| Made::Ccix(limit(lanes))),
            Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68 => {
                let flits = match layer.framing {
                    Framing::Cxl256 => cxl::Flits::Large,
                    _ => cxl::Flits::Small,
                };
                let agent = sender(layer.framing, !of_home);
                at(rated(Lanes::pcie(lanes, 32)), &|patience| {
                    Made::Cxl(flits, patience, agent)
                })
            }
        };
        Port {
            shared: Rc::new(RefCell::new(Shared {
                links,
                due: Time::MAX,
                sent: [[0; 2]; 2],
            })),
            space: 0,
            agent: 0,
            ways: Rc::clone(ways),
            blocked: false,
            entered: [0; 2],
            came: Vec::new(),
            join: match count {
                0 | 1 => [0; 2],
                _ if of_home => [layer.join.value, 0],
                _ => [layer.join_back.value, layer.join.value],
            },
        }
    }

    /// The port of another space to the same links, whose agent is where the home of this one is, in place of a port of its own.
    pub fn other_way(&self, own: &Port) -> Port {
        let [agent, home] = self.join;
        Port {
            shared: Rc::clone(&self.shared),
            space: 1,
            agent: 1,
            ways: Rc::clone(&own.ways),
            blocked: false,
            entered: [0; 2],
            came: Vec::new(),
            join: [home, agent],
        }
    }

    /// When the links are looked at next; the last of times if they are not.
    pub fn due(&self) -> Time {
        self.shared.borrow().due
    }

    /// They are looked at then.
    pub fn look_at(&mut self, due: Time) {
        self.shared.borrow_mut().due = due;
    }

    /// Links go on until now: something is going to be offered.
    pub fn advance(&mut self, now: Time) {
        self.shared.borrow_mut().links.advance(now);
    }

    /// When a message of a kind that keeps an order enters at a side: not before one that was sent before it, though it be
    /// ready earlier. Nothing for other kinds.
    pub fn enters(&mut self, side: usize, kind: MessageId, ready: Time) -> Option<Time> {
        let entered = &mut self.entered[side];
        self.ways[kind.index()].ordered.then(|| {
            *entered = ready.max(*entered);
            *entered
        })
    }

    /// A message, known by its number, is to leave at a side now, which is the time of the last [`Port::advance`]. Returns
    /// when something is going to happen because of it.
    pub fn offer(&mut self, side: usize, kind: MessageId, line: u32, label: u32) -> Time {
        let (odd, message) = self.message(kind, line, label);
        let side = side ^ self.agent;
        let mut shared = self.shared.borrow_mut();
        shared.count(side, self.space, &message);
        let link = shared.links.offer(side, odd, message);
        shared.links.due_of(side, link)
    }

    /// A message is to leave at a side at a time that is not before now. Returns when it comes, at the earliest.
    pub fn offer_later(
        &mut self,
        at: Time,
        side: usize,
        kind: MessageId,
        line: u32,
        label: u32,
    ) -> Time {
        let (link, message) = self.message(kind, line, label);
        let side = side ^ self.agent;
        let mut shared = self.shared.borrow_mut();
        shared.count(side, self.space, &message);
        shared.links.offer_later(at, side, link, message)
    }

    /// What travels, and the link that it has to take.
    fn message(&self, kind: MessageId, line: u32, label: u32) -> (Option<usize>, Message) {
        let way = self.ways[kind.index()];
        let odd = (line & 1) as usize;
        let message = Message {
            circuit: way.circuits[odd],
            bytes: way.bytes,
            label: (self.space as u64) << 32 | u64::from(label),
        };
        (way.ordered.then_some(odd), message)
    }

    /// Takes what has come of this space and is let in, and tells it; what is not let in stays.
    pub fn take(
        &mut self,
        now: Time,
        mut lets_in: impl FnMut(usize, u32) -> bool,
        mut each: impl FnMut(usize, u32),
    ) -> Left {
        let (agent, space) = (self.agent, self.space as u64);
        let mut left = Left::default();
        let mut shared = self.shared.borrow_mut();
        shared.links.come(now);
        let mut is_let_in = |side: usize, label: u64| match label >> 32 == space {
            true => lets_in(side ^ agent, label as u32),
            false => {
                left.elsewhere = true;
                false
            }
        };
        let mut took = |side: usize, label: u64| {
            left.took = true;
            each(side ^ agent, label as u32);
        };
        shared.links.take(now, &mut is_let_in, &mut took);
        shared.links.feed();
        left
    }

    /// When something is going to happen by itself.
    pub fn next(&mut self) -> Option<Time> {
        self.shared.borrow_mut().links.due()
    }

    /// Acknowledgements and credits that are still to be told are told: nobody waits for them.
    pub fn rest(&mut self) {
        self.shared.borrow_mut().links.rest();
    }

    /// Bytes of units that say something, from a side, over all links: frames, checksums and what is sent again included.
    /// Of links of two spaces it is this one's [share](Shared::share).
    pub fn bytes(&self, side: usize) -> u64 {
        let (shared, side) = (self.shared.borrow(), side ^ self.agent);
        shared.share(side, self.space, shared.links.bytes(side))
    }

    /// For how long the links have sent what says something, from a side, summed over them; of links of two spaces this one's
    /// [share](Shared::share).
    pub fn busy(&self, side: usize) -> Time {
        let (shared, side) = (self.shared.borrow(), side ^ self.agent);
        shared.share(side, self.space, shared.links.busy(side))
    }

    /// Units that were sent again.
    pub fn replayed(&self) -> u64 {
        self.shared.borrow().links.replayed()
    }

    /// How often the links went down; nothing of links that never do.
    pub fn downs(&self) -> Option<u64> {
        self.shared.borrow().links.downs()
    }
}

impl Shared {
    /// A message of a space is sent.
    #[inline]
    fn count(&mut self, side: usize, space: usize, message: &Message) {
        self.sent[side][space] += self.links.bits(side, message);
    }

    /// What of all that a side has sent is a space's: as much as of the messages, by their bits. The parts of both are the
    /// whole.
    fn share(&self, side: usize, space: usize, all: u64) -> u64 {
        let sent = self.sent[side].map(u128::from);
        let first = match sent {
            [_, 0] => all,
            [first, second] => (u128::from(all) * first / (first + second)) as u64,
        };
        [first, all - first][space]
    }
}

/// Refuses links that cannot be.
///
/// # Errors
/// A sentence that names the quantity.
pub(crate) fn check(layer: &platform::Layer) -> Result<(), String> {
    let (left, all) = (layer.lanes_left.value, layer.lanes.value);
    match layer.faults.value > 0 && left > all {
        true => Err(format!(
            "a link of {all} lanes cannot come up with {left}: `link.lanes_left` must be 1 to {all}"
        )),
        false => Ok(()),
    }
}

/// Refuses links that do not carry the messages of a home at either end.
///
/// # Errors
/// A sentence.
pub(crate) fn carries_both(framing: Framing) -> Result<(), String> {
    let one = match framing {
        Framing::Eci | Framing::Ccix => return Ok(()),
        Framing::Cxl68 | Framing::Cxl256 => "CXL.mem, whose home is the device",
        Framing::CxlCache68 => "CXL.cache, whose home is the host",
    };
    Err(format!(
        "links of {} carry {one}, and not the other direction beside it: `link.layer` of both directions is eci, ccix or none",
        framing.name()
    ))
}

/// Bytes after which a packet of PCIe's link layer has to leave.
fn limit(lanes: u32) -> u64 {
    if lanes > 8 {
        168
    } else {
        203
    }
}

/// Ends that can be made.
enum Made {
    Eci(Parameters),
    Ccix(u64),
    /// With who is at side 0.
    Cxl(cxl::Flits, u32, cxl::Side),
}

/// What is the same for all links of a port.
struct Plan {
    lanes: Lanes,
    delay: u64,
    rate: f64,
    seed: u64,
    count: usize,
    faults: Faults,
}

impl Plan {
    /// Whether nothing is ever lost or damaged.
    fn is_lossless(&self) -> bool {
        self.rate <= 0.0 && self.faults.between == 0
    }
}

/// When links go down, and how they come up.
#[derive(Clone, Copy)]
struct Faults {
    /// The mean time between two of these times; 0 if there are none.
    between: Time,
    down: Time,
    /// Lanes after every other time.
    lanes: u32,
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
    fn of(&self, plan: Plan) -> Box<dyn Links> {
        match self {
            Made::Eci(parameters) => Box::new(Wired::new(&plan, || {
                [(); 2].map(|()| end::End::new(parameters.clone()))
            })),
            Made::Ccix(limit) => {
                let end = || ccix::End::new(256, ccix::OPTIMISED, true, *limit);
                Box::new(Wired::new(&plan, || [end(), end()]))
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
                Box::new(Wired::new(&plan, || [end(*first), end(first.partner())]))
            }
        }
    }
}

/// How each kind of message of a protocol travels in a framing.
///
/// # Errors
/// A sentence that names what does not fit.
pub(crate) fn ways(
    protocol: &Protocol,
    framing: Framing,
    payloads: &[u32],
) -> Result<Rc<[Way]>, String> {
    let line = protocol.line_bytes;
    let fits = match framing {
        Framing::Eci => line.is_multiple_of(32) && line <= 128,
        Framing::Ccix => line <= 128,
        Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68 => line == u32::from(cxl::LINE),
    };
    if !fits {
        let (name, framing) = (&protocol.name, framing.name());
        return Err(format!(
            "a line of {name} has {line} bytes, which links of {framing} do not carry"
        ));
    }
    let way = |id: MessageId| {
        let payload = payloads[id.index()];
        let up = protocol.channel_of(id).from == End::Remote;
        let class = protocol.class(id);
        let data = payload > 0;
        let bytes = match framing {
            Framing::Eci => payload.next_multiple_of(32),
            Framing::Ccix => payload,
            Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68 => {
                if data {
                    line
                } else {
                    0
                }
            }
        };
        Way {
            circuits: circuits(framing, class, data, up),
            bytes: bytes as u16,
            ordered: false,
        }
    };
    let mut ways: Vec<Way> = protocol.message_ids().map(way).collect();
    if framing == Framing::Cxl68 {
        let snoops = protocol.message_ids().zip(&ways).find(|(id, way)| {
            let up = protocol.channel_of(*id).from == End::Remote;
            let flits = cxl::Flits::Small;
            flits.header(sender(framing, up), way.circuits[0]).is_none()
        });
        if let Some((id, _)) = snoops {
            let name = &protocol.message(id).name;
            return Err(format!(
                "{name} is of back-invalidation, which links of cxl-68 do not carry; those of cxl-256 do"
            ));
        }
    }
    let kept = kept_by_receivers(protocol, framing);
    for (number, order) in protocol.orders.iter().enumerate() {
        if kept.contains(&number) {
            continue;
        }
        keep_order(protocol, framing, &mut ways, |id| {
            order.contains(&protocol.message(id).channel)
        })?;
    }
    for behind in &protocol.behind {
        // Between two classes of CXL there is no order: the receiver keeps this one by itself.
        let first = ways[behind.message.index()].circuits;
        let apart = |id: &MessageId| ways[id.index()].circuits != first;
        if of_cxl(framing) && behind.earlier.iter().any(apart) {
            continue;
        }
        keep_order(protocol, framing, &mut ways, |id| {
            id == behind.message || behind.earlier.contains(&id)
        })?;
    }
    Ok(ways.into())
}

fn of_cxl(framing: Framing) -> bool {
    matches!(
        framing,
        Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68
    )
}

/// Who sends on links of CXL: a caching agent, or the home.
fn sender(framing: Framing, agent: bool) -> cxl::Side {
    let of_agents = match framing {
        Framing::CxlCache68 => cxl::Side::CachingDevice,
        _ => cxl::Side::Host,
    };
    if agent {
        of_agents
    } else {
        of_agents.partner()
    }
}

/// The orders of a protocol that links do not keep, so that receivers do: those of one line that CXL.cache has between
/// snoops and the answers that were sent before them.
pub(crate) fn kept_by_receivers(protocol: &Protocol, framing: Framing) -> Vec<usize> {
    let to_remotes = |number: &usize| {
        let mut order = protocol.orders[*number].iter();
        order.all(|channel| protocol.channels[channel.index()].from == End::Home)
    };
    let orders = 0..protocol.orders.len();
    orders
        .filter(|_| framing == Framing::CxlCache68)
        .filter(|&number| protocol.per_line[number])
        .filter(to_remotes)
        .collect()
}

/// Messages that keep an order travel on one circuit, which is one with data if any of them carries some.
fn keep_order(
    protocol: &Protocol,
    framing: Framing,
    ways: &mut [Way],
    is_of: impl Fn(MessageId) -> bool,
) -> Result<(), String> {
    let its: Vec<MessageId> = protocol.message_ids().filter(|&id| is_of(id)).collect();
    let with_data = its.iter().find(|id| ways[id.index()].bytes > 0);
    let Some(leads) = with_data.or(its.first()) else {
        return Ok(());
    };
    let circuits = ways[leads.index()].circuits;
    for id in &its {
        let way = &mut ways[id.index()];
        if of_cxl(framing) && way.circuits != circuits {
            let (one, other) = (&protocol.message(*leads).name, &protocol.message(*id).name);
            return Err(format!(
                "{one} and {other} keep an order, and are of two classes of {}, between which there is none",
                framing.name()
            ));
        }
        (way.circuits, way.ordered) = (circuits, true);
    }
    Ok(())
}

/// The circuits of a message for lines of even and odd numbers.
fn circuits(framing: Framing, class: Option<Class>, data: bool, up: bool) -> [u8; 2] {
    let asks = class == Some(Class::Request);
    match framing {
        // A line of an odd number uses the even circuit, and the reverse.
        Framing::Eci => match (class, data) {
            (Some(Class::Request), true) => [3, 2],
            (Some(Class::Request), false) => [7, 6],
            (Some(Class::Forward), false) => [9, 8],
            (_, true) => [5, 4],
            (_, false) => [11, 10],
        },
        Framing::Ccix => match class {
            _ if data => [3; 2],
            Some(Class::Request | Class::Victim) => [0; 2],
            Some(Class::Forward) => [1; 2],
            _ => [2; 2],
        },
        Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68 => match (data, up) {
            (true, _) => [cxl::DATA; 2],
            (false, true) if asks || class == Some(Class::Victim) => [cxl::REQUEST; 2],
            (false, false) if class == Some(Class::Forward) => [cxl::REQUEST; 2],
            _ => [cxl::RESPONSE; 2],
        },
    }
}

/// Links with their ends. Each goes on only when something happens on it, or when it is touched.
struct Wired<L: Layer> {
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
    free: Vec<[Vec<Time>; 2]>,
    /// When something comes out of each link next, if that is known: the last of times if nothing does.
    due: Vec<Due>,
    /// Whether links go on, until something is sent there, only when something comes out of them. Those on which bits go wrong
    /// or that go down go on with all.
    alone: bool,
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
        // What comes to a side was sent on the circuits of the other.
        let free = |side: usize| vec![0; circuits(1 - side)];
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
            free: (0..plan.count).map(|_| [free(0), free(1)]).collect(),
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
        let scale = self.scale;
        let at = |ticks, clocks| Scale::taken(scale.time(ticks), clocks);
        let mut earliest = Earliest::new(scale.clock, scale.apart, at);
        self.drives[link].due(sides, anything, &mut earliest);
        earliest.time
    }

    /// All links go on until a time.
    #[inline]
    fn go_on(&mut self, now: Time) {
        self.fail(now);
        self.now = self.scale.ticks(now) + 1;
        for drive in &mut self.drives {
            go_on(drive, self.now);
        }
    }

    /// Links go down that do so until now, each at its time.
    fn fail(&mut self, now: Time) {
        for link in 0..self.failing.len() {
            while self.failing[link].next <= now {
                let at = self.scale.ticks(self.failing[link].next);
                go_on(&mut self.drives[link], at);
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
fn go_on<L: Layer>(drive: &mut Drive<L>, until: u64) {
    let [there, back] = &drive.wires;
    let noisy = !(there.noise.is_silent() && back.noise.is_silent());
    if noisy && drive.is_at_rest() {
        drive.sleep(until);
    } else {
        drive.advance(until);
    }
}

impl<L: Layer> Links for Wired<L> {
    fn advance(&mut self, now: Time) {
        while let Some(&(at, side, link, message)) = self.later.front() {
            if at > now {
                break;
            }
            self.later.pop_front();
            self.go_on(at);
            let link = self.offer(side, link, message);
            self.due_of(side, link);
        }
        self.go_on(now);
    }

    fn come(&mut self, now: Time) {
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

    fn offer_later(
        &mut self,
        at: Time,
        side: usize,
        link: Option<usize>,
        message: Message,
    ) -> Time {
        let before = self.later.iter().rev().take_while(|later| later.0 > at);
        let place = self.later.len() - before.count();
        self.later.insert(place, (at, side, link, message));
        at + self.flight
    }

    fn offer(&mut self, side: usize, odd: Option<usize>, message: Message) -> usize {
        let circuit = usize::from(message.circuit);
        let waits = |link: usize| {
            let queued = self.queues[link][side][circuit].len();
            self.drives[link].ends()[side].backlog(message.circuit) + queued
        };
        let link = match (self.drives.len(), odd) {
            (1, _) => 0,
            (2, Some(odd)) => Balance::Address.choose(message.circuit, odd == 1, [0; 2]),
            (2, None) => Balance::Room.choose(u8::MAX, false, [waits(0), waits(1)]),
            (links, Some(odd)) => odd % links,
            (links, None) => (0..links).min_by_key(|&link| waits(link)).unwrap_or(0),
        };
        let waits = !self.queues[link][side][circuit].is_empty();
        if waits || self.drives[link].end_mut(side).send(message).is_err() {
            self.queues[link][side][circuit].push_back(message);
            self.queued += 1;
        }
        link
    }

    fn feed(&mut self) {
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

    fn take(
        &mut self,
        now: Time,
        lets_in: &mut dyn FnMut(usize, u64) -> bool,
        each: &mut dyn FnMut(usize, u64),
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
                    let free = &mut free[to][usize::from(circuit)];
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

    fn due(&mut self) -> Option<Time> {
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

    fn due_of(&mut self, side: usize, link: usize) -> Time {
        let comes = self.comes(link, side..side + 1);
        self.due[link].at = self.due[link].at.min(comes);
        comes
    }

    fn rest(&mut self) {
        for drive in &mut self.drives {
            drive.rest(1 << 16);
        }
    }

    fn bits(&self, side: usize, message: &Message) -> u64 {
        let header =
            (self.drives.first()).map_or(0, |drive| drive.ends()[side].header_bits(message));
        header + 8 * u64::from(message.bytes)
    }

    fn bytes(&self, side: usize) -> u64 {
        let bits = |drive: &Drive<L>| {
            drive.wires[side]
                .bits
                .saturating_sub(drive.wires[side].idle)
        };
        self.drives.iter().map(bits).sum::<u64>() / 8
    }

    fn busy(&self, side: usize) -> Time {
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

    fn replayed(&self) -> u64 {
        let ends = self.drives.iter().flat_map(Drive::ends);
        ends.map(Layer::replayed).sum()
    }

    fn downs(&self) -> Option<u64> {
        let downs = self.failing.iter().map(|failing| failing.downs);
        (!self.failing.is_empty()).then(|| downs.sum())
    }
}
