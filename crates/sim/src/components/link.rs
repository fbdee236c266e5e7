//! Links: when a message arrives, given what was sent before it.
//!
//! A direction of a link set has one or more links; a message takes the one with more room, which is
//! the one that is free first. It occupies that link for its bytes, then travels for the latency.
//! Each virtual circuit has its own queue before the links: a message leaves it when the receiver has
//! room for one more of its circuit, so a circuit that stops holds up no other.
//! Messages of one order group between two agents about one line arrive in the order of sending.

use crate::data::Random;
use crate::kernel::Time;
use crate::message::Order;
use crate::platform;
use cohkit_base::memory::{prefetch, prefetch_whole};
use cohkit_protocol::protocol::MessageId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;

/// What a message takes on a link.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Header and payload.
    bytes: u32,
    /// For which it occupies a link.
    time: Time,
}

impl Size {
    /// The size of a message with this payload.
    pub fn new(link: &platform::Link, payload_bytes: u32) -> Size {
        let bytes = link.header_bytes.value as u32 + payload_bytes;
        Size {
            bytes,
            time: link.bandwidth.time_of(bytes),
        }
    }
}

/// Latest arrivals that are kept in any case.
const FEWEST_KEPT: usize = 1 << 8;

/// When a message is sent, and from when on it may leave, which is not before.
#[derive(Clone, Copy)]
pub struct Sent {
    /// The time at which this is known.
    pub now: Time,
    /// When it may leave.
    pub ready: Time,
}

/// One direction of a set of links.
pub struct Direction {
    /// What each kind of message takes on a link.
    sizes: Rc<[Size]>,
    bandwidth: platform::Quantity,
    /// When each link can begin the next message.
    free: Vec<Time>,
    latency: Time,
    /// Random extra delay of each message, up to this; of one in eight up to 16 times this.
    jitter: Time,
    /// Whether messages arrive in the order in which they are sent, each after the one before.
    serial: bool,
    /// Otherwise, the latest arrival per sender, receiver, order group and line, while it may still matter.
    last: FxHashMap<Order, Time>,
    /// How many there are before it is looked for those that do not matter any more.
    most: usize,
    circuits: Vec<Circuit>,
    /// Whether circuits have a limit at all.
    limited: bool,
    /// Messages sent.
    pub messages: u64,
    /// Bytes sent, headers included.
    pub bytes: u64,
    /// Time that messages waited for a link to be free, in total.
    pub waited: Time,
    /// Time that links were occupied, summed over the links.
    pub busy: Time,
}

/// One virtual circuit.
#[derive(Clone, Default)]
struct Circuit {
    /// Messages that the receiver still has room for.
    room: u64,
    /// Messages that wait for room, with the time at which each was ready.
    queue: VecDeque<(Time, u32)>,
}

impl Direction {
    /// An idle direction with this many virtual circuits, on which messages take so much by their kind.
    pub fn new(link: &platform::Link, sizes: &Rc<[Size]>, circuits: usize) -> Direction {
        let circuit = Circuit {
            room: link.credits.value,
            queue: VecDeque::new(),
        };
        Direction {
            sizes: Rc::clone(sizes),
            bandwidth: link.bandwidth.clone(),
            circuits: vec![circuit; circuits],
            limited: link.credits.value > 0,
            free: vec![0; link.links.value.max(1) as usize],
            latency: link.latency.value,
            serial: link.links.value <= 1
                && link.jitter.value == 0
                && link.bandwidth.time_of(link.header_bytes.value as u32) > 0,
            jitter: link.jitter.value,
            last: FxHashMap::default(),
            most: FEWEST_KEPT,
            messages: 0,
            bytes: 0,
            waited: 0,
            busy: 0,
        }
    }

    /// Changes places on the links with what travels another direction of the same links.
    pub(crate) fn trade(&mut self, other: &mut Direction) {
        std::mem::swap(&mut self.free, &mut other.free);
    }

    /// What a message of a kind takes if nothing else is on the links: for its bytes, and for its way. The rest of its time
    /// it waits, or is late by chance.
    pub fn alone(&self, kind: MessageId) -> (Time, Time) {
        (self.sizes[kind.index()].time, self.latency)
    }

    /// Whether messages are late by chance.
    pub fn is_random(&self) -> bool {
        self.jitter > 0
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.free.len()
    }

    /// Asks memory for what sending looks at.
    #[inline]
    pub fn prefetch_links(&self) {
        prefetch_whole(self);
        prefetch(self.free.as_ptr());
    }

    /// Asks memory for a circuit and for the links.
    #[inline]
    pub fn prefetch(&self, circuit: u8) {
        prefetch(&self.circuits[usize::from(circuit)]);
        prefetch(self.free.as_ptr());
    }

    /// Takes room for one message of a circuit, if there is any.
    #[inline(always)]
    pub fn has_room(&mut self, circuit: u8) -> bool {
        if !self.limited {
            return true;
        }
        let room = &mut self.circuits[circuit as usize].room;
        let has = *room > 0;
        *room -= u64::from(has);
        has
    }

    /// A message for which there is no room, known by its number, waits in its circuit's queue.
    pub fn queue(&mut self, circuit: u8, ready: Time, message: u32) {
        let circuit = &mut self.circuits[circuit as usize];
        circuit.queue.push_back((ready, message));
    }

    /// Counts a message of a kind, and so many bytes besides, that travels on links that are framed.
    pub fn count(&mut self, (kind, more): (MessageId, u32)) {
        self.messages += 1;
        self.bytes += u64::from(self.sizes[kind.index()].bytes + more);
    }

    /// The receiver has taken a message of a circuit. The result is the message that gets its room.
    #[inline(always)]
    pub fn release(&mut self, circuit: u8) -> Option<(Time, u32)> {
        if !self.limited {
            return None;
        }
        let circuit = &mut self.circuits[circuit as usize];
        let next = circuit.queue.pop_front();
        circuit.room += u64::from(next.is_none());
        next
    }

    /// Sends a message of a kind, and so many bytes besides, that is ready at `ready`; the result is when it arrives.
    #[inline(always)]
    pub fn send(
        &mut self,
        Sent { now, ready }: Sent,
        (kind, more): (MessageId, u32),
        random: &mut Random,
        order: Option<Order>,
    ) -> Time {
        let mut size = self.sizes[kind.index()];
        if more > 0 {
            size.bytes += more;
            size.time += self.bandwidth.time_of(more);
        }
        // There is at least one link.
        let (mut link, others) = match &mut self.free[..] {
            [first, others @ ..] => (first, others),
            [] => return ready,
        };
        for other in others {
            if *other < *link {
                link = other;
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
            // One in eight is late by far more: races need messages that many others pass.
            let late = if random.below(8) == 0 { 16 } else { 1 };
            arrival += random.below(self.jitter + 1) * late;
        }
        if let Some(key) = order.filter(|_| !self.serial) {
            if self.last.len() > self.most {
                // What is sent from now on arrives later than what has arrived.
                self.last.retain(|_, last| *last >= now);
                self.most = FEWEST_KEPT.max(2 * self.last.len());
            }
            let last = self.last.entry(key).or_insert(0);
            arrival = arrival.max(*last + 1);
            *last = arrival;
        }
        arrival
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;

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
        assert!(direction.has_room(0));
        assert!(!direction.has_room(0));
        direction.queue(0, 20, 101);
        assert!(direction.has_room(1));
        assert_eq!(direction.release(0), Some((20, 101)));
        assert_eq!(direction.release(0), None);
        assert!(direction.has_room(0));
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
        // 8 bytes a header at 1 GB/s: 8 ns; the third message waits for the first.
        assert_eq!((send(0), send(1), send(0)), (13_000, 141_000, 21_000));
        assert_eq!((direction.bytes, direction.waited), (152, 8_000));
    }
}
