//! CCIX over PCIe: several messages in a posted packet, with the optimised header or the one of PCIe.
//!
//! The public sources here tell the sizes of packets and of lines, not those of headers. These are assumed and named:
//! [`OPTIMISED`], [`COMPATIBLE`] and [`MESSAGE`]. Chained requests, whose length no source tells, are not here; nor are
//! the credits that messages have beside those of packets, so all circuits have to be emptied.

use crate::layer::{Layer, Message, Refused, Shortage};
use crate::pcie::{self, Body, Packet, LINK_PACKET, POSTED};
use std::collections::VecDeque;

/// Bytes of the optimised header beside the 8 of framing: assumed, 4 to 8.
pub const OPTIMISED: u64 = 4;
/// Bytes of a header as PCIe has it: as in a write with an address of 64 bits.
pub const COMPATIBLE: u64 = 16;
/// Bytes of a message beside its data: assumed, 8 to 24.
pub const MESSAGE: u16 = 16;
/// Bytes of framing, number and checksum of a packet.
pub const FRAMING: u64 = 8;

const NAMES: [&str; 4] = ["requests", "snoops", "responses", "data"];

/// Messages that travel in one packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    messages: Vec<Message>,
    bytes: u16,
}

impl Body for Bundle {
    fn class(&self) -> u8 {
        POSTED
    }

    fn bytes(&self) -> u16 {
        self.bytes
    }

    fn spoil(&mut self, bit: u64) {
        if let Some(message) = self.messages.first_mut() {
            message.label ^= 1 << (bit % 64);
        }
    }

    fn take(&mut self) -> Bundle {
        std::mem::take(self)
    }
}

/// One end of a link.
pub struct End {
    /// The link of PCIe under it.
    pub link: pcie::End<Bundle>,
    payload: u16,
    packing: bool,
    fifo: usize,
    waiting: [VecDeque<Message>; 4],
    /// How many these are.
    waits: usize,
    turn: usize,
    came: [VecDeque<Message>; 4],
    /// Circuits of which messages have come in bundles that were opened, as bits.
    come: u32,
    /// Room of bundles that were opened, for those that are made.
    spare: Vec<Vec<Message>>,
}

/// Rooms that are kept at most: where more comes than leaves there is always one more.
const SPARE: usize = 16;

impl End {
    /// An end with packets of at most `payload` bytes (128, 256 or 512), with headers of so many bytes beside framing,
    /// and one message in a packet without `packing`.
    pub fn new(payload: u16, header: u64, packing: bool, limit: u64) -> End {
        let mut parameters = pcie::Parameters::new(payload, limit);
        parameters.headers[usize::from(POSTED)] = FRAMING + header;
        let fifo = 4 * parameters.fifo;
        // A packet is made when it can leave, so that it is as full as it can be.
        parameters.fifo = 1;
        End {
            link: pcie::End::new(parameters),
            payload,
            packing,
            fifo,
            waiting: Default::default(),
            waits: 0,
            turn: 0,
            came: Default::default(),
            come: 0,
            spare: Vec::new(),
        }
    }

    /// The same over a way: see [`pcie::Parameters::over`].
    #[must_use]
    pub fn over(mut self, way: u64) -> End {
        self.link = self.link.over(way);
        self
    }

    /// Messages in the fullest packet, of `bytes` of data each.
    pub fn messages_in_packet(&self, bytes: u16) -> u16 {
        if self.packing {
            self.payload / (MESSAGE + bytes)
        } else {
            1
        }
    }

    /// Opens the bundles that have come.
    fn open(&mut self) {
        while let Some(mut bundle) = self.link.take(POSTED) {
            for message in bundle.messages.drain(..) {
                self.come |= 1 << message.circuit;
                self.came[usize::from(message.circuit)].push_back(message);
            }
            if self.spare.len() < SPARE {
                self.spare.push(bundle.messages);
            }
        }
    }

    /// Makes packets of what waits, as far as the link takes them. Circuits take turns.
    fn pack(&mut self) {
        while self.waits > 0 && self.link.has_room(POSTED) {
            let mut bundle = Bundle {
                messages: self.spare.pop().unwrap_or_default(),
                bytes: 0,
            };
            let mut passed = 0;
            while passed < NAMES.len() && (self.packing || bundle.messages.is_empty()) {
                let waiting = &mut self.waiting[self.turn % NAMES.len()];
                self.turn += 1;
                passed += 1;
                let room = self.payload - bundle.bytes;
                let fits = |first: &Message| MESSAGE + first.bytes <= room;
                if waiting.front().is_some_and(fits) {
                    let Some(first) = waiting.pop_front() else {
                        break;
                    };
                    self.waits -= 1;
                    bundle.bytes += MESSAGE + first.bytes;
                    bundle.messages.push(first);
                    passed = 0;
                }
            }
            if bundle.messages.is_empty() || self.link.send(bundle).is_err() {
                return;
            }
        }
    }
}

impl Layer for End {
    type Unit = Packet<Bundle>;

    fn circuits(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn header_bits(&self, _: &Message) -> u64 {
        8 * u64::from(MESSAGE)
    }

    fn send(&mut self, message: Message) -> Result<(), Refused> {
        let waiting = self.waiting.get_mut(usize::from(message.circuit));
        let waiting = waiting.ok_or(Refused::Malformed)?;
        if message.bytes > self.payload.saturating_sub(MESSAGE) {
            return Err(Refused::Malformed);
        }
        if waiting.len() >= self.fifo {
            return Err(Refused::Full);
        }
        waiting.push_back(message);
        self.waits += 1;
        Ok(())
    }

    #[inline]
    fn come(&self) -> u32 {
        match self.link.holds(POSTED) {
            true => 0b1111,
            false => self.come,
        }
    }

    fn backlog(&self, circuit: u8) -> usize {
        let waiting = self.waiting.get(usize::from(circuit));
        waiting.map_or(0, VecDeque::len)
    }

    #[inline]
    fn peek(&mut self, circuit: u8) -> Option<Message> {
        if self.link.holds(POSTED) {
            self.open();
        }
        self.came.get(usize::from(circuit))?.front().copied()
    }

    fn take(&mut self, circuit: u8) -> Option<Message> {
        self.peek(circuit)?;
        let came = self.came.get_mut(usize::from(circuit))?;
        let message = came.pop_front();
        if came.is_empty() {
            self.come &= !(1 << circuit);
        }
        message
    }

    fn transmit(&mut self, packet: &mut Packet<Bundle>) {
        self.pack();
        self.link.leave(packet);
    }

    fn idle_units(&self) -> u64 {
        match self.waits {
            0 => self.link.idle_units(),
            _ => 0,
        }
    }

    fn idle_bits(&self) -> u64 {
        8 * LINK_PACKET
    }

    fn skip(&mut self, units: u64) {
        self.link.skip(units);
    }

    fn receive(&mut self, packet: &mut Packet<Bundle>) {
        self.link.receive(packet);
    }

    fn forget(&mut self) {
        self.link.forget();
    }

    fn retrain(&mut self) {
        self.link.retrain();
    }

    fn waits(&self) -> bool {
        self.waits > 0 || self.link.waits()
    }

    fn is_settled(&self) -> bool {
        self.link.sender.is_settled()
    }

    fn is_at_rest(&self) -> bool {
        self.waits == 0 && self.link.is_at_rest()
    }

    fn shortages(&self, _: &End) -> Vec<Shortage> {
        Vec::new()
    }

    fn taken(&self) -> u64 {
        self.link.receiver.taken()
    }

    fn replayed(&self) -> u64 {
        self.link.sender.replayed
    }

    fn impossible(&self) -> u64 {
        self.link.sender.impossible + self.link.overrun
    }
}
