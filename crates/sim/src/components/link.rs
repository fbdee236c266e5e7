//! Links: when a message arrives, given what was sent before it.
//!
//! A direction of a link set has one or more links; a message takes the one with more room, which is
//! the one that is free first. It occupies that link for its bytes, then travels for the latency.
//! Messages of one order group between two agents about one line arrive in the order of sending.

use crate::data::Random;
use crate::kernel::Time;
use crate::message::Line;
use crate::platform;
use rustc_hash::FxHashMap;

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
    /// Bytes sent, headers included.
    pub bytes: u64,
    /// Time that messages waited for a link to be free, in total.
    pub waited: Time,
    /// Time that links were occupied, summed over the links.
    pub busy: Time,
}

impl Direction {
    /// An idle direction.
    pub fn new(link: &platform::Link) -> Direction {
        Direction {
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
