//! Links: the arrival time of a message, given the messages sent before it. All times are in picoseconds.
//!
//! A direction of a link set has one or more links. A message takes the link that is free first. It occupies that
//! link for its bytes, then travels for the latency. Each virtual circuit has its own queue in front of the links.
//! A message leaves the queue when the receiver has room for one more message of its circuit, so a stopped circuit
//! blocks no other. Messages of one order group between two agents about one line arrive in the order of sending.

use crate::data::Random;
use crate::kernel::Time;
use crate::message::Order;
use crate::platform;
use cohkit_base::memory::{prefetch, prefetch_value};
use cohkit_protocol::protocol::MessageId;
use cohkit_units::Quantity;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;

/// Size of a message kind on a link.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Header and payload, in bytes.
    bytes: u32,
    /// Time for which the message occupies a link, in picoseconds.
    time: Time,
}

impl Size {
    /// Returns the size of a message with this payload and the link's header.
    pub fn new(link: &platform::Link, payload_bytes: u32) -> Size {
        let bytes = link.header_bytes.value as u32 + payload_bytes;
        Size {
            bytes,
            time: link.bandwidth.time_of(bytes),
        }
    }
}

/// Minimum number of last arrivals to keep before obsolete ones are searched for, because a search visits all of them.
const MIN_ARRIVALS_BEFORE_SWEEP: usize = 1 << 8;

/// Times of sending a message, in picoseconds; `ready` is not before `now`.
#[derive(Clone, Copy)]
pub struct Sent {
    /// Current time of the simulation.
    pub now: Time,
    /// Earliest time at which the message may leave.
    pub ready: Time,
}

/// One direction of a set of links.
pub struct Direction {
    /// Size of each message kind, by its number in the protocol.
    sizes: Rc<[Size]>,
    /// Bandwidth of one link; 0 if it is unlimited.
    bandwidth: Quantity,
    /// Time from which each link can start the next message.
    free_at: Vec<Time>,
    /// Time from the end of a message's occupancy to its arrival, in picoseconds.
    latency: Time,
    /// Maximum random extra delay of a message; one message in eight has up to 16 times this.
    jitter: Time,
    /// True if messages arrive in the order of sending, each after the one before.
    serial: bool,
    /// If not serial, the last arrival by sender, receiver, order group and line, while it may still delay a message.
    last_arrivals: FxHashMap<Order, Time>,
    /// Number of entries of `last_arrivals` that triggers a search for obsolete ones.
    sweep_threshold: usize,
    /// Virtual circuits by number; empty for the tile ports and switch links of hosts, which have no credits.
    circuits: Vec<Circuit>,
    /// True if circuits have a limited number of credits.
    limited: bool,
    /// Messages sent.
    pub messages: u64,
    /// Bytes sent, headers included.
    pub bytes: u64,
    /// Total time that messages waited for a free link, in picoseconds.
    pub waited: Time,
    /// Time for which links were occupied, summed over the links, in picoseconds.
    pub busy: Time,
}

/// A virtual circuit.
#[derive(Clone, Default)]
struct Circuit {
    /// Number of messages that the receiver still has room for; meaningless if the direction is not limited.
    credits: u64,
    /// Messages that wait for room, by the time at which each was ready and its index in the pool of messages.
    queue: VecDeque<(Time, u32)>,
}

impl Direction {
    /// Creates an idle direction with `circuits` virtual circuits. `sizes` is indexed by message kind.
    pub fn new(link: &platform::Link, sizes: &Rc<[Size]>, circuits: usize) -> Direction {
        let circuit = Circuit {
            credits: link.credits.value,
            queue: VecDeque::new(),
        };
        Direction {
            sizes: Rc::clone(sizes),
            bandwidth: link.bandwidth.clone(),
            circuits: vec![circuit; circuits],
            limited: link.credits.value > 0,
            free_at: vec![0; link.count.value.max(1) as usize],
            latency: link.latency.value,
            serial: link.count.value <= 1
                && link.jitter.value == 0
                && link.bandwidth.time_of(link.header_bytes.value as u32) > 0,
            jitter: link.jitter.value,
            last_arrivals: FxHashMap::default(),
            sweep_threshold: MIN_ARRIVALS_BEFORE_SWEEP,
            messages: 0,
            bytes: 0,
            waited: 0,
            busy: 0,
        }
    }

    /// Exchanges the links' occupancy with another direction of the same links.
    pub(crate) fn exchange_occupancy(&mut self, other: &mut Direction) {
        std::mem::swap(&mut self.free_at, &mut other.free_at);
    }

    /// Returns the occupancy and the latency of a message on otherwise idle links, in picoseconds. Any further time
    /// is waiting or jitter.
    pub fn uncontended_times(&self, kind: MessageId) -> (Time, Time) {
        (self.sizes[kind.index()].time, self.latency)
    }

    /// True if messages have random delays.
    pub fn is_random(&self) -> bool {
        self.jitter > 0
    }

    /// Number of links.
    pub fn links(&self) -> usize {
        self.free_at.len()
    }

    /// Prefetches the state that sending needs.
    #[inline]
    pub fn prefetch_links(&self) {
        prefetch_value(self);
        prefetch(self.free_at.as_ptr());
    }

    /// Prefetches the state of a circuit and of the links.
    #[inline]
    pub fn prefetch(&self, circuit: u8) {
        prefetch(&self.circuits[usize::from(circuit)]);
        prefetch(self.free_at.as_ptr());
    }

    /// Takes a credit for one message of a circuit. Returns false if there is none.
    #[inline(always)]
    pub fn take_credit(&mut self, circuit: u8) -> bool {
        if !self.limited {
            return true;
        }
        let credits = &mut self.circuits[circuit as usize].credits;
        let has_credit = *credits > 0;
        *credits -= u64::from(has_credit);
        has_credit
    }

    /// Queues the message `message` in its circuit, which has no credit for it.
    pub fn queue(&mut self, circuit: u8, ready: Time, message: u32) {
        let circuit = &mut self.circuits[circuit as usize];
        circuit.queue.push_back((ready, message));
    }

    /// Counts a message, with `extra_bytes` bytes beyond those of its kind, that travels on framed links.
    /// [`Direction::send`] counts all others.
    pub fn count(&mut self, (kind, extra_bytes): (MessageId, u32)) {
        self.messages += 1;
        self.bytes += u64::from(self.sizes[kind.index()].bytes + extra_bytes);
    }

    /// Frees a credit of a circuit. Returns the queued message that takes the credit, with the time at which it was
    /// ready, if any; the caller must send it.
    #[inline(always)]
    pub fn return_credit(&mut self, circuit: u8) -> Option<(Time, u32)> {
        if !self.limited {
            return None;
        }
        let circuit = &mut self.circuits[circuit as usize];
        let next = circuit.queue.pop_front();
        circuit.credits += u64::from(next.is_none());
        next
    }

    /// Sends a message with `extra_bytes` bytes beyond those of its kind, without a check of credits. `random` is
    /// used only with jitter; `order` is the message's order group, if any. Returns the arrival time in
    /// picoseconds.
    #[inline(always)]
    pub fn send(
        &mut self,
        Sent { now, ready }: Sent,
        (kind, extra_bytes): (MessageId, u32),
        random: &mut Random,
        order: Option<Order>,
    ) -> Time {
        let mut size = self.sizes[kind.index()];
        if extra_bytes > 0 {
            size.bytes += extra_bytes;
            size.time += self.bandwidth.time_of(extra_bytes);
        }
        // There is at least one link.
        let (mut link, other_links) = match &mut self.free_at[..] {
            [first, other_links @ ..] => (first, other_links),
            [] => return ready,
        };
        for candidate in other_links {
            if *candidate < *link {
                link = candidate;
            }
        }
        let start = ready.max(*link);
        *link = start + size.time;
        self.messages += 1;
        self.bytes += u64::from(size.bytes);
        self.waited += start - ready;
        self.busy += size.time;
        let mut arrival = start + size.time + self.latency;
        if self.jitter > 0 {
            // One message in eight is delayed by far more: races need messages that many others overtake.
            let delay_factor = if random.below(8) == 0 { 16 } else { 1 };
            arrival += random.below(self.jitter + 1) * delay_factor;
        }
        if let Some(key) = order.filter(|_| !self.serial) {
            if self.last_arrivals.len() > self.sweep_threshold {
                // Messages sent from now on arrive later than those that have already arrived.
                self.last_arrivals
                    .retain(|_, last_arrival| *last_arrival >= now);
                self.sweep_threshold = MIN_ARRIVALS_BEFORE_SWEEP.max(2 * self.last_arrivals.len());
            }
            let last_arrival = self.last_arrivals.entry(key).or_insert(0);
            arrival = arrival.max(*last_arrival + 1);
            *last_arrival = arrival;
        }
        arrival
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;

    /// Sizes of messages with these payloads.
    fn sizes(link: &platform::Link, payloads: &[u32]) -> Rc<[Size]> {
        payloads
            .iter()
            .map(|&bytes| Size::new(link, bytes))
            .collect()
    }

    #[test]
    fn a_circuit_without_room_holds_up_no_other() {
        let mut link = Platform::torture(1).link;
        link.credits.value = 1;
        let mut direction = Direction::new(&link, &sizes(&link, &[0]), 2);
        assert!(direction.take_credit(0));
        assert!(!direction.take_credit(0));
        direction.queue(0, 20, 101);
        assert!(direction.take_credit(1));
        assert_eq!(direction.return_credit(0), Some((20, 101)));
        assert_eq!(direction.return_credit(0), None);
        assert!(direction.take_credit(0));
    }

    #[test]
    fn messages_take_the_link_with_more_room() {
        let mut link = Platform::shipped("enzian-dc-ddr").unwrap().link;
        link.bandwidth.value = 1_000_000_000;
        link.latency.value = 5_000;
        let mut direction = Direction::new(&link, &sizes(&link, &[0, 128]), 1);
        let mut random = Random::new(0);
        let mut send = |kind| {
            direction.send(
                Sent { now: 0, ready: 0 },
                (MessageId(kind), 0),
                &mut random,
                None,
            )
        };
        // Headers of 8 bytes at 1 GB/s take 8 ns. The third message waits for the first.
        assert_eq!((send(0), send(1), send(0)), (13_000, 141_000, 21_000));
        assert_eq!((direction.bytes, direction.waited), (152, 8_000));
    }
}
