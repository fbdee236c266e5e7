//! Framed links of a caching agent or of a home, as used by the simulation. All times are in picoseconds.

use cohkit_link::testbench::LANE_BYTE;
use cohkit_link::{cxl, Lanes, Message, Parameters};
use cohkit_protocol::protocol::MessageId;
use std::cell::RefCell;
use std::rc::Rc;

use super::wired::{of_links, EndKind, Faults, Links, Plan};
use super::{packet_limit, sender, KindTiming};
use crate::kernel::{Time, SECOND};
use crate::platform::{self, Framing};

/// Links and the time of their next event; shared by the ports of two spaces on the same links.
struct Shared {
    /// Links with their endpoints.
    links: Links,
    /// Time of the next event in picoseconds, or `Time::MAX` if there is none.
    due: Time,
    /// Bits of the messages sent, by side of the links and space; `None` unless two spaces share the links.
    sent_bits: Option<[[u64; 2]; 2]>,
}

/// The links between a caching agent and its home, as seen by one space. In the methods, side 0 is the agent's and side
/// 1 the home's. If two spaces share links, each has its own port, and the agent of one space is on the side of the
/// other's home.
pub(crate) struct Port {
    /// The links, which two ports share if two spaces use them.
    shared: Rc<RefCell<Shared>>,
    /// Number of the port's space, 0 or 1; part of each message's label.
    space: usize,
    /// Side of the links on which the space's agent is. A side of the links is a side of the port XOR this number.
    agent_side: usize,
    /// Circuits, size and order of the messages, by kind.
    timings: Rc<[KindTiming]>,
    /// Latency from the end of a link to the receiver in picoseconds, by the side of arrival.
    pub join: [Time; 2],
    /// True if an arrived message was not accepted by its receiver.
    pub blocked: bool,
    /// Buffer for the labels of messages that arrive at one time, reused to avoid allocations.
    pub arrived_messages: Vec<u32>,
    /// Time at which the last ordered message enters the links, in picoseconds, by side of the port.
    last_entry_times: [Time; 2],
}

/// Result of [`Port::take`]: messages taken, and messages left for the other space.
#[derive(Clone, Copy, Default)]
pub(crate) struct Unclaimed {
    /// True if a message of this space was taken.
    pub took_message: bool,
    /// True if a message for the other space has arrived, which only that space's port can take.
    pub has_foreign_message: bool,
}

/// Returns the parameters of a port's links. `lanes` is at the rate of the layer.
fn plan(link: &platform::Link, layer: &platform::Layer, lanes: Lanes, seed: u64) -> Plan {
    let lane_bandwidth = lanes.blocks().value() / f64::from(lanes.count); // bytes per second
    let latency = link.latency.value as f64 / SECOND as f64;
    Plan {
        lanes,
        delay_ticks: (latency * lane_bandwidth * LANE_BYTE as f64) as u64,
        bit_error_rate: layer.bit_errors_per_1e15.value as f64 / 1e15,
        seed,
        link_count: link.count.value as usize,
        faults: Faults {
            mean_interval: layer.mean_uptime.value,
            down: layer.retrain_time.value,
            lanes: layer.degraded_lanes.value as u32,
        },
    }
}

impl Port {
    /// Creates idle links with credits exchanged: those of a caching agent, or, if `is_home`, those of a home at a
    /// switch. `timings` is indexed by message kind.
    pub fn new(
        link: &platform::Link,
        layer: &platform::Layer,
        timings: &Rc<[KindTiming]>,
        seed: u64,
        is_home: bool,
    ) -> Port {
        let link_count = link.count.value as usize;
        let lanes = layer.lanes.value as u32;
        let rated = |lanes: Lanes| Lanes {
            rate: 8 * layer.lane_rate.value,
            ..lanes
        };
        let create = |lanes: Lanes, end_kind: &dyn Fn(u32) -> EndKind| {
            let lane_bandwidth = lanes.blocks().value() / f64::from(lanes.count);
            let plan = plan(link, layer, lanes, seed);
            // Duration of the longest unit, 512 bits, in picoseconds. The retry timeout is twice the round trip (two
            // latencies) in such units, because an acknowledgement may wait behind units in flight.
            let unit = 512.0 / 8.0 / (lane_bandwidth * f64::from(lanes.count)) * SECOND as f64;
            let retry_timeout = (4.0 * link.latency.value as f64 / unit) as u32;
            end_kind(retry_timeout.max(256)).create_links(plan)
        };
        let links = match layer.framing {
            Framing::Eci => create(rated(Lanes::ECI.with(lanes)), &|retry_timeout| {
                EndKind::Eci(Parameters {
                    retry_timeout_slots: retry_timeout,
                    // The simulator limits the waiting messages, not the link.
                    queue_capacity: usize::MAX,
                    ..Parameters::ECI
                })
            }),
            Framing::Ccix => {
                let lanes = rated(Lanes::pcie(lanes, 16));
                let bytes_in_flight =
                    link.latency.value as f64 / SECOND as f64 * lanes.blocks().value();
                create(lanes, &|_| {
                    EndKind::Ccix(packet_limit(lanes.count), bytes_in_flight as u64)
                })
            }
            Framing::Cxl68 | Framing::Cxl256 | Framing::CxlCache68 => {
                let flits = match layer.framing {
                    Framing::Cxl256 => cxl::Flits::Large,
                    _ => cxl::Flits::Small,
                };
                let agent = sender(layer.framing, !is_home);
                create(rated(Lanes::pcie(lanes, 32)), &|retry_timeout| {
                    EndKind::Cxl(flits, retry_timeout, agent)
                })
            }
        };
        Port {
            shared: Rc::new(RefCell::new(Shared {
                links,
                due: Time::MAX,
                sent_bits: None,
            })),
            space: 0,
            agent_side: 0,
            timings: Rc::clone(timings),
            blocked: false,
            last_entry_times: [0; 2],
            arrived_messages: Vec::new(),
            join: match link_count {
                0 | 1 => [0; 2],
                _ if is_home => [layer.merge_latency.value, 0],
                _ => [layer.merge_latency_back.value, layer.merge_latency.value],
            },
        }
    }

    /// Creates the port of another space to the same links, in place of that space's port `replaced`. The other space's
    /// agent is on the side of this space's home.
    pub fn reversed(&self, replaced: &Port) -> Port {
        let [agent, home] = self.join;
        self.shared.borrow_mut().sent_bits = Some([[0; 2]; 2]);
        Port {
            shared: Rc::clone(&self.shared),
            space: 1,
            agent_side: 1,
            timings: Rc::clone(&replaced.timings),
            blocked: false,
            last_entry_times: [0; 2],
            arrived_messages: Vec::new(),
            join: [home, agent],
        }
    }

    /// Returns the time of the links' next event in picoseconds, or `Time::MAX` if there is none.
    pub fn due(&self) -> Time {
        self.shared.borrow().due
    }

    /// Sets the time of the links' next event, in picoseconds.
    pub fn set_due(&mut self, due: Time) {
        self.shared.borrow_mut().due = due;
    }

    /// Advances the links to `now` (picoseconds), before a message is offered.
    pub fn advance(&mut self, now: Time) {
        of_links!(&mut self.shared.borrow_mut().links, links => links.advance(now));
    }

    /// Returns the time at which a message of an ordered kind enters at a side: `ready`, but not before an earlier
    /// ordered message. Returns `None` for unordered kinds.
    pub fn entry_time(&mut self, side: usize, kind: MessageId, ready: Time) -> Option<Time> {
        let last_entry_time = &mut self.last_entry_times[side];
        self.timings[kind.index()].ordered.then(|| {
            *last_entry_time = ready.max(*last_entry_time);
            *last_entry_time
        })
    }

    /// Offers the message `label`, its index in the pool of messages, at a side. The current time must be that of
    /// the last [`Port::advance`]. Returns the time of the next event that the message causes, `Time::MAX` if there
    /// is none.
    pub fn offer(&mut self, side: usize, kind: MessageId, line: u32, label: u32) -> Time {
        let (required_link, message) = self.message(kind, line, label);
        let side = side ^ self.agent_side;
        let mut shared = self.shared.borrow_mut();
        shared.count(side, self.space, &message);
        of_links!(&mut shared.links, links => {
            let link = links.offer(side, required_link, message);
            links.update_due(side, link)
        })
    }

    /// Offers a message at a side at a time that is not in the past. Returns the earliest time of its arrival.
    pub fn offer_later(
        &mut self,
        time: Time,
        side: usize,
        kind: MessageId,
        line: u32,
        label: u32,
    ) -> Time {
        let (required_link, message) = self.message(kind, line, label);
        let side = side ^ self.agent_side;
        let mut shared = self.shared.borrow_mut();
        shared.count(side, self.space, &message);
        of_links!(&mut shared.links, links => links.offer_later(time, side, required_link, message))
    }

    /// Returns the link-layer message, and the link that it must take: that of the line's parity for ordered kinds.
    fn message(&self, kind: MessageId, line: u32, label: u32) -> (Option<usize>, Message) {
        let timing = self.timings[kind.index()];
        let odd = (line & 1) as usize;
        let message = Message {
            circuit: timing.circuits[odd],
            bytes: timing.bytes,
            label: (self.space as u64) << 32 | u64::from(label),
        };
        (timing.ordered.then_some(odd), message)
    }

    /// Takes the arrived messages of this space for which `accepts` returns true, and passes them to `deliver_message`.
    /// Both take a side and a label. All other messages stay in the receive buffers.
    pub fn take(
        &mut self,
        now: Time,
        mut accepts: impl FnMut(usize, u32) -> bool,
        mut deliver_message: impl FnMut(usize, u32),
    ) -> Unclaimed {
        let (agent_side, space) = (self.agent_side, self.space as u64);
        let mut unclaimed = Unclaimed::default();
        let mut shared = self.shared.borrow_mut();
        let accepts_label = |side: usize, label: u64| match label >> 32 == space {
            true => accepts(side ^ agent_side, label as u32),
            false => {
                unclaimed.has_foreign_message = true;
                false
            }
        };
        let deliver = |side: usize, label: u64| {
            unclaimed.took_message = true;
            deliver_message(side ^ agent_side, label as u32);
        };
        of_links!(&mut shared.links, links => {
            links.advance_due(now);
            links.take(now, accepts_label, deliver);
            links.feed();
        });
        unclaimed
    }

    /// Returns the time of the next event that occurs without a new message, in picoseconds; `None` if there is
    /// none.
    pub fn next_event(&mut self) -> Option<Time> {
        of_links!(&mut self.shared.borrow_mut().links, links => links.due())
    }

    /// Sends outstanding acknowledgements and credits, for which no component waits.
    pub fn settle(&mut self) {
        of_links!(&mut self.shared.borrow_mut().links, links => links.settle());
    }

    /// Bytes of non-idle units sent from a side, over all links, including frames, checksums and retransmissions. On
    /// links that two spaces share, this space's [share](Shared::share).
    pub fn bytes(&self, side: usize) -> u64 {
        let (shared, side) = (self.shared.borrow(), side ^ self.agent_side);
        shared.share(
            side,
            self.space,
            of_links!(&shared.links, links => links.bytes(side)),
        )
    }

    /// Time in picoseconds for which the links have sent non-idle units from a side, summed over the links. On links
    /// that two spaces share, this space's [share](Shared::share).
    pub fn busy(&self, side: usize) -> Time {
        let (shared, side) = (self.shared.borrow(), side ^ self.agent_side);
        shared.share(
            side,
            self.space,
            of_links!(&shared.links, links => links.busy(side)),
        )
    }

    /// Number of units (blocks, packets or flits) sent again, from both sides of all links.
    pub fn replayed(&self) -> u64 {
        of_links!(&self.shared.borrow().links, links => links.replayed())
    }

    /// Number of times that a link went down, summed over the links; `None` for links that never do.
    pub fn failure_count(&self) -> Option<u64> {
        of_links!(&self.shared.borrow().links, links => links.downs())
    }
}

impl Shared {
    /// Adds a message that a space sends to [`Shared::sent_bits`].
    #[inline]
    fn count(&mut self, side: usize, space: usize, message: &Message) {
        if let Some(sent) = &mut self.sent_bits {
            sent[side][space] += of_links!(&self.links, links => links.message_bits(side, message));
        }
    }

    /// Returns a space's share of a total for a side, in proportion to the bits of its messages. Both shares add up to
    /// the total.
    fn share(&self, side: usize, space: usize, total: u64) -> u64 {
        let sent = self.sent_bits.unwrap_or_default()[side].map(u128::from);
        let first_share = match sent {
            [_, 0] => total,
            [first, second] => (u128::from(total) * first / (first + second)) as u64,
        };
        [first_share, total - first_share][space]
    }
}
