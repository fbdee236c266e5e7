//! Framed links of a caching agent or of a home, as used by the simulation.

use cohkit_link::testbench::LANE_BYTE;
use cohkit_link::{cxl, Lanes, Message, Parameters};
use cohkit_protocol::protocol::MessageId;
use std::cell::RefCell;
use std::rc::Rc;

use super::wired::{of_links, EndKind, Faults, Links, Plan};
use super::{limit, sender, KindTiming};
use crate::kernel::{Time, SECOND};
use crate::platform::{self, Framing};

/// Links and the time of their next event; shared by the ports of two spaces on the same links.
struct Shared {
    links: Links,
    /// Time of the next event, or `Time::MAX` if there is none.
    due: Time,
    /// Bits of the messages sent, by side and space, if two spaces share the links.
    sent: Option<[[u64; 2]; 2]>,
}

/// The links between a caching agent and the home; side 0 is the agent's. If two spaces share links, each has its own
/// port, and the agent of one is on the side of the other's home.
pub(crate) struct Port {
    shared: Rc<RefCell<Shared>>,
    /// Number of the port's space, and the agent's side of the links.
    space: usize,
    agent: usize,
    ways: Rc<[KindTiming]>,
    /// Latency from the end of a link to the receiver, by the side of arrival.
    pub join: [Time; 2],
    /// True if a message that has arrived was not accepted.
    pub blocked: bool,
    /// Buffer for the numbers of messages that arrive at one time.
    pub arrived_messages: Vec<u32>,
    /// Time at which the last ordered message enters at each side.
    entered: [Time; 2],
}

/// Result of [`Port::take`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Unclaimed {
    /// True if a message was taken.
    pub took: bool,
    /// True if a message for the other space has arrived.
    pub elsewhere: bool,
}

impl Port {
    /// Creates idle links with credits exchanged: those of a caching agent, or those of a home at a switch.
    pub fn new(
        link: &platform::Link,
        layer: &platform::Layer,
        ways: &Rc<[KindTiming]>,
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
        let at = |lanes: Lanes, ends: &dyn Fn(u32) -> EndKind| {
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
            // A round trip in units of the longest kind, and as much again for units in flight.
            let unit = 512.0 / 8.0 / (byte * f64::from(lanes.count)) * SECOND as f64;
            let patience = (4.0 * link.latency.value as f64 / unit) as u32;
            ends(patience.max(256)).of(plan)
        };
        let links = match layer.framing {
            Framing::Eci => at(rated(Lanes::ECI.with(lanes)), &|patience| {
                EndKind::Eci(Parameters {
                    patience,
                    // Waiting messages are counted by the simulator.
                    fifo: usize::MAX,
                    ..Parameters::ECI
                })
            }),
            Framing::Ccix => {
                let lanes = rated(Lanes::pcie(lanes, 16));
                let way = link.latency.value as f64 / SECOND as f64 * lanes.blocks().value();
                at(lanes, &|_| EndKind::Ccix(limit(lanes.count), way as u64))
            }
            Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68 => {
                let flits = match layer.framing {
                    Framing::Cxl256 => cxl::Flits::Large,
                    _ => cxl::Flits::Small,
                };
                let agent = sender(layer.framing, !of_home);
                at(rated(Lanes::pcie(lanes, 32)), &|patience| {
                    EndKind::Cxl(flits, patience, agent)
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
            arrived_messages: Vec::new(),
            join: match count {
                0 | 1 => [0; 2],
                _ if of_home => [layer.join.value, 0],
                _ => [layer.join_back.value, layer.join.value],
            },
        }
    }

    /// Creates the port of another space to the same links, replacing its `own`. Its agent is on the side of this one's
    /// home.
    pub fn reversed(&self, own: &Port) -> Port {
        let [agent, home] = self.join;
        self.shared.borrow_mut().sent = Some([[0; 2]; 2]);
        Port {
            shared: Rc::clone(&self.shared),
            space: 1,
            agent: 1,
            ways: Rc::clone(&own.ways),
            blocked: false,
            entered: [0; 2],
            arrived_messages: Vec::new(),
            join: [home, agent],
        }
    }

    /// Returns the time of the links' next event, or `Time::MAX` if there is none.
    pub fn due(&self) -> Time {
        self.shared.borrow().due
    }

    /// Sets the time of the links' next event.
    pub fn set_due(&mut self, due: Time) {
        self.shared.borrow_mut().due = due;
    }

    /// Advances the links to `now`, before a message is offered.
    pub fn advance(&mut self, now: Time) {
        of_links!(&mut self.shared.borrow_mut().links, links => links.advance(now));
    }

    /// Returns when a message of an ordered kind enters at a side: not before an earlier one, even if it is ready
    /// sooner. Returns `None` for other kinds.
    pub fn enters(&mut self, side: usize, kind: MessageId, ready: Time) -> Option<Time> {
        let entered = &mut self.entered[side];
        self.ways[kind.index()].ordered.then(|| {
            *entered = ready.max(*entered);
            *entered
        })
    }

    /// Offers the message `label` at a side now, which must be the time of the last [`Port::advance`]. Returns the time
    /// of the next event that this causes.
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

    /// Offers a message at a side at a time that is not in the past. Returns the earliest time of its arrival.
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

    /// Returns the link-layer message, and the link that it must take, if any.
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

    /// Takes the arrived messages of this space that `lets_in` accepts, and passes them to `each`; the others stay.
    pub fn take(
        &mut self,
        now: Time,
        mut lets_in: impl FnMut(usize, u32) -> bool,
        mut each: impl FnMut(usize, u32),
    ) -> Unclaimed {
        let (agent, space) = (self.agent, self.space as u64);
        let mut left = Unclaimed::default();
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

    /// Returns the time of the next event that occurs without a new message.
    pub fn next(&mut self) -> Option<Time> {
        of_links!(&mut self.shared.borrow_mut().links, links => links.due())
    }

    /// Sends outstanding acknowledgements and credits, for which no component waits.
    pub fn rest(&mut self) {
        of_links!(&mut self.shared.borrow_mut().links, links => links.rest());
    }

    /// Bytes of non-idle units sent from a side, over all links: frames, checksums and retransmissions included. On
    /// links that two spaces share, this space's [share](Shared::share).
    pub fn bytes(&self, side: usize) -> u64 {
        let (shared, side) = (self.shared.borrow(), side ^ self.agent);
        shared.share(
            side,
            self.space,
            of_links!(&shared.links, links => links.bytes(side)),
        )
    }

    /// Total time for which the links have sent non-idle units from a side, summed over the links. On links that two
    /// spaces share, this space's [share](Shared::share).
    pub fn busy(&self, side: usize) -> Time {
        let (shared, side) = (self.shared.borrow(), side ^ self.agent);
        shared.share(
            side,
            self.space,
            of_links!(&shared.links, links => links.busy(side)),
        )
    }

    /// Number of units sent again.
    pub fn replayed(&self) -> u64 {
        of_links!(&self.shared.borrow().links, links => links.replayed())
    }

    /// Number of times that the links went down; `None` for links that never do.
    pub fn downs(&self) -> Option<u64> {
        of_links!(&self.shared.borrow().links, links => links.downs())
    }
}

impl Shared {
    /// Counts a message that a space sends.
    #[inline]
    fn count(&mut self, side: usize, space: usize, message: &Message) {
        if let Some(sent) = &mut self.sent {
            sent[side][space] += of_links!(&self.links, links => links.bits(side, message));
        }
    }

    /// Returns a space's share of a total for a side, in proportion to the bits of its messages. Both shares add up to
    /// the total.
    fn share(&self, side: usize, space: usize, all: u64) -> u64 {
        let sent = self.sent.unwrap_or_default()[side].map(u128::from);
        let first = match sent {
            [_, 0] => all,
            [first, second] => (u128::from(all) * first / (first + second)) as u64,
        };
        [first, all - first][space]
    }
}
