//! The framed links of a caching agent or a home, as its simulation sees them.

use cohkit_link::drive::LANE_BYTE;
use cohkit_link::{cxl, Lanes, Message, Parameters};
use cohkit_protocol::protocol::MessageId;
use std::cell::RefCell;
use std::rc::Rc;

use super::wired::{of_links, Faults, Links, Made, Plan};
use super::{limit, sender, Way};
use crate::kernel::{Time, SECOND};
use crate::platform::{self, Framing};

/// Links, and when they are looked at next; two spaces have the same.
struct Shared {
    links: Links,
    /// The last of times if they are not.
    due: Time,
    /// Bits of messages that were sent, by side and space, if there are two spaces.
    sent: Option<[[u64; 2]; 2]>,
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
        let links = match layer.framing {
            Framing::Eci => at(rated(Lanes::ECI.with(lanes)), &|patience| {
                Made::Eci(Parameters {
                    patience,
                    // What waits is counted here.
                    fifo: usize::MAX,
                    ..Parameters::ECI
                })
            }),
            Framing::Ccix => {
                let lanes = rated(Lanes::pcie(lanes, 16));
                let way = link.latency.value as f64 / SECOND as f64 * lanes.blocks().value();
                at(lanes, &|_| Made::Ccix(limit(lanes.count), way as u64))
            }
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
                sent: None,
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
        self.shared.borrow_mut().sent = Some([[0; 2]; 2]);
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
        of_links!(&mut self.shared.borrow_mut().links, links => links.advance(now));
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
        of_links!(&mut shared.links, links => {
            let link = links.offer(side, odd, message);
            links.due_of(side, link)
        })
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
        of_links!(&mut shared.links, links => links.offer_later(at, side, link, message))
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
        let is_let_in = |side: usize, label: u64| match label >> 32 == space {
            true => lets_in(side ^ agent, label as u32),
            false => {
                left.elsewhere = true;
                false
            }
        };
        let took = |side: usize, label: u64| {
            left.took = true;
            each(side ^ agent, label as u32);
        };
        of_links!(&mut shared.links, links => {
            links.come(now);
            links.take(now, is_let_in, took);
            links.feed();
        });
        left
    }

    /// When something is going to happen by itself.
    pub fn next(&mut self) -> Option<Time> {
        of_links!(&mut self.shared.borrow_mut().links, links => links.due())
    }

    /// Acknowledgements and credits that are still to be told are told: nobody waits for them.
    pub fn rest(&mut self) {
        of_links!(&mut self.shared.borrow_mut().links, links => links.rest());
    }

    /// Bytes of units that say something, from a side, over all links: frames, checksums and what is sent again included.
    /// Of links of two spaces it is this one's [share](Shared::share).
    pub fn bytes(&self, side: usize) -> u64 {
        let (shared, side) = (self.shared.borrow(), side ^ self.agent);
        shared.share(
            side,
            self.space,
            of_links!(&shared.links, links => links.bytes(side)),
        )
    }

    /// For how long the links have sent what says something, from a side, summed over them; of links of two spaces this one's
    /// [share](Shared::share).
    pub fn busy(&self, side: usize) -> Time {
        let (shared, side) = (self.shared.borrow(), side ^ self.agent);
        shared.share(
            side,
            self.space,
            of_links!(&shared.links, links => links.busy(side)),
        )
    }

    /// Units that were sent again.
    pub fn replayed(&self) -> u64 {
        of_links!(&self.shared.borrow().links, links => links.replayed())
    }

    /// How often the links went down; nothing of links that never do.
    pub fn downs(&self) -> Option<u64> {
        of_links!(&self.shared.borrow().links, links => links.downs())
    }
}

impl Shared {
    /// A message of a space is sent.
    #[inline]
    fn count(&mut self, side: usize, space: usize, message: &Message) {
        if let Some(sent) = &mut self.sent {
            sent[side][space] += of_links!(&self.links, links => links.bits(side, message));
        }
    }

    /// What of all that a side has sent is a space's: as much as of the messages, by their bits. The parts of both are the
    /// whole.
    fn share(&self, side: usize, space: usize, all: u64) -> u64 {
        let sent = self.sent.unwrap_or_default()[side].map(u128::from);
        let first = match sent {
            [_, 0] => all,
            [first, second] => (u128::from(all) * first / (first + second)) as u64,
        };
        [first, all - first][space]
    }
}
