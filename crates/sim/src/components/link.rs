//! Links: when a message arrives, given what was sent before it.
//!
//! A direction of a link set has one or more links; a message takes the one with more room, which is
//! the one that is free first. It occupies that link for its bytes, then travels for the latency.
//! Each virtual circuit has its own queue before the links: a message leaves it when the receiver has
//! room for one more of its circuit, so a circuit that stops holds up no other.
//! Messages of one order group between two agents about one line arrive in the order of sending.

use crate::data::Random;
use crate::kernel::Time;
use crate::message::Line;
use crate::platform;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// One direction of a set of links.
pub struct Direction {
    /// When each link can begin the next message.
    free: Vec<Time>,
    latency: Time,
    bandwidth: platform::Quantity,
    header_bytes: u64,
    /// Random extra delay of each message, up to this; of one in eight up to 16 times this.
    jitter: Time,
    /// Serialisation of a header alone and with a line, as sizes repeat.
    times: [(u32, Time); 2],
    /// Latest arrival per sender, receiver, order group and line, while it may still matter.
    last: FxHashMap<(u8, u8, u8, Line), Time>,
    circuits: Vec<Circuit>,
    /// Whether circuits have a limit at all.
    limited: bool,
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
    /// An idle direction with this many virtual circuits.
    pub fn new(link: &platform::Link, circuits: usize) -> Direction {
        let circuit = Circuit {
            room: link.credits.value,
            queue: VecDeque::new(),
        };
        Direction {
            circuits: vec![circuit; circuits],
            limited: link.credits.value > 0,
            free: vec![0; link.links.value.max(1) as usize],
            latency: link.latency.value,
            bandwidth: link.bandwidth.clone(),
            header_bytes: link.header_bytes.value,
            jitter: link.jitter.value,
            times: [(0, 0); 2],
            last: FxHashMap::default(),
            bytes: 0,
            waited: 0,
            busy: 0,
        }
    }

    /// Takes room for one message of a circuit, if there is any.
    #[inline]
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

    /// The receiver has taken a message of a circuit. The result is the message that gets its room.
    #[inline]
    pub fn release(&mut self, circuit: u8) -> Option<(Time, u32)> {
        if !self.limited {
            return None;
        }
        let circuit = &mut self.circuits[circuit as usize];
        let next = circuit.queue.pop_front();
        circuit.room += u64::from(next.is_none());
        next
    }

    /// Sends a message that is ready at `ready`; the result is when it arrives.
    pub fn send(
        &mut self,
        ready: Time,
        payload_bytes: u32,
        random: &mut Random,
        order: Option<(u8, u8, u8, Line)>,
    ) -> Time {
        let time = self.time_of(payload_bytes);
        let mut link = 0;
        for other in 1..self.free.len() {
            if self.free[other] < self.free[link] {
                link = other;
            }
        }
        let start = ready.max(self.free[link]);
        self.free[link] = start + time;
        self.bytes += self.header_bytes + u64::from(payload_bytes);
        self.waited += start - ready;
        self.busy += time;
        let mut arrival = start + time + self.latency;
        if self.jitter > 0 {
            // One in eight is late by far more: races need messages that many others pass.
            let late = if random.below(8) == 0 { 16 } else { 1 };
            arrival += random.below(self.jitter + 1) * late;
        }
        if let Some(key) = order {
            if self.last.len() > 1 << 16 {
                self.last.retain(|_, last| *last >= ready);
            }
            let last = self.last.entry(key).or_insert(0);
            arrival = arrival.max(*last + 1);
            *last = arrival;
        }
        arrival
    }

    #[inline]
    fn time_of(&mut self, payload_bytes: u32) -> Time {
        let place = usize::from(payload_bytes > 0);
        if self.times[place].0 != payload_bytes || self.times[place].1 == 0 {
            let bytes = self.header_bytes as u32 + payload_bytes;
            self.times[place] = (payload_bytes, self.bandwidth.time_of(bytes));
        }
        self.times[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;

    #[test]
    fn a_circuit_without_room_holds_up_no_other() {
        let mut link = Platform::torture(1).link;
        link.credits.value = 1;
        let mut direction = Direction::new(&link, 2);
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
        let mut direction = Direction::new(&link, 1);
        let mut random = Random::new(0);
        let mut send = |payload| direction.send(0, payload, &mut random, None);
        // 8 bytes a header at 1 GB/s: 8 ns; the third message waits for the first.
        assert_eq!((send(0), send(128), send(0)), (13_000, 141_000, 21_000));
        assert_eq!((direction.bytes, direction.waited), (152, 8_000));
    }
}
