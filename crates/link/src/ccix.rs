//! CCIX over PCIe: several messages per posted packet, with the optimised or the PCIe-compatible header.
//!
//! Public sources state the sizes of packets and lines, but not those of headers. Header sizes are assumed and named:
//! [`OPTIMISED_HEADER_BYTES`], [`COMPATIBLE_HEADER_BYTES`] and [`MESSAGE_BYTES`]. Chained requests are not modelled,
//! because no source states their length. Message credits beyond those of packets are not modelled either, so the
//! receiver must drain all circuits.

use crate::layer::{Layer, Message, Rejection, Shortage};
use crate::pcie::{self, Body, Packet, LINK_PACKET_BYTES, POSTED};
use std::collections::VecDeque;

/// Bytes of the optimised header, in addition to 8 bytes of framing: assumed, from a range of 4 to 8.
pub const OPTIMISED_HEADER_BYTES: u64 = 4;
/// Bytes of the PCIe-compatible header, as in a write with a 64-bit address.
pub const COMPATIBLE_HEADER_BYTES: u64 = 16;
/// Bytes of a message without data: assumed, from a range of 8 to 24.
pub const MESSAGE_BYTES: u16 = 16;
/// Bytes of framing, sequence number and checksum per packet.
pub const FRAMING_BYTES: u64 = 8;

/// Names of the circuits, by their numbers.
const CIRCUIT_NAMES: [&str; 4] = ["requests", "snoops", "responses", "data"];

/// Messages of one packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    /// Messages in the order of packing.
    messages: Vec<Message>,
    /// Bytes of all messages with their data, without the packet's header.
    bytes: u16,
}

impl Body for Bundle {
    fn class(&self) -> u8 {
        POSTED
    }

    fn bytes(&self) -> u16 {
        self.bytes
    }

    fn corrupt(&mut self, bit: u64) {
        if let Some(message) = self.messages.first_mut() {
            message.label ^= 1 << (bit % 64);
        }
    }

    fn take(&mut self) -> Bundle {
        std::mem::take(self)
    }
}

/// One end of a CCIX link.
pub struct End {
    /// Underlying PCIe link.
    pub link: pcie::End<Bundle>,
    /// Maximum bytes of messages per packet.
    max_payload: u16,
    /// True if a packet may carry several messages.
    packing: bool,
    /// Capacity of the transmit queue of each circuit, in messages.
    queue_capacity: usize,
    /// Messages to be packed, by circuit.
    waiting: [VecDeque<Message>; 4],
    /// Total number of waiting messages.
    waiting_count: usize,
    /// Number of circuits visited by the round robin; modulo 4, the circuit at which it continues.
    next_circuit: usize,
    /// Unpacked messages that were not taken, by circuit.
    received: [VecDeque<Message>; 4],
    /// Circuits with received and unpacked messages, as a bit set.
    unpacked_circuits: u32,
    /// Message buffers of unpacked bundles, reused for new ones.
    spare_buffers: Vec<Vec<Message>>,
}

/// Maximum number of spare buffers. Without it, their number would grow if more messages arrive than leave.
const MAX_SPARE_BUFFERS: usize = 16;

impl End {
    /// Creates an end with at most `max_payload` bytes (128, 256 or 512) of messages per packet and headers of
    /// `header` bytes in addition to framing. Without `packing`, each packet carries one message. `limit` is that of
    /// [`pcie::Parameters::new`].
    pub fn new(max_payload: u16, header: u64, packing: bool, limit: u64) -> End {
        let mut parameters = pcie::Parameters::new(max_payload, limit);
        parameters.headers[usize::from(POSTED)] = FRAMING_BYTES + header;
        let queue_capacity = 4 * parameters.queue_capacity;
        // Packets are built as late as possible, so that they are as full as possible.
        parameters.queue_capacity = 1;
        End {
            link: pcie::End::new(parameters),
            max_payload,
            packing,
            queue_capacity,
            waiting: Default::default(),
            waiting_count: 0,
            next_circuit: 0,
            received: Default::default(),
            unpacked_circuits: 0,
            spare_buffers: Vec::new(),
        }
    }

    /// Adapts the retry timeout to the link: see [`pcie::Parameters::with_bytes_in_flight`].
    #[must_use]
    pub fn with_bytes_in_flight(mut self, bytes_in_flight: u64) -> End {
        self.link = self.link.with_bytes_in_flight(bytes_in_flight);
        self
    }

    /// Number of messages per full packet, with `bytes` bytes of data each.
    pub fn messages_in_packet(&self, bytes: u16) -> u16 {
        if self.packing {
            self.max_payload / (MESSAGE_BYTES + bytes)
        } else {
            1
        }
    }

    /// Unpacks all received bundles.
    fn unpack(&mut self) {
        while let Some(mut bundle) = self.link.take(POSTED) {
            for message in bundle.messages.drain(..) {
                self.unpacked_circuits |= 1 << message.circuit;
                self.received[usize::from(message.circuit)].push_back(message);
            }
            if self.spare_buffers.len() < MAX_SPARE_BUFFERS {
                self.spare_buffers.push(bundle.messages);
            }
        }
    }

    /// Packs queued messages into packets, round robin over circuits, until the link's queue is full.
    fn pack(&mut self) {
        while self.waiting_count > 0 && self.link.has_space(POSTED) {
            let mut bundle = Bundle {
                messages: self.spare_buffers.pop().unwrap_or_default(),
                bytes: 0,
            };
            let mut skipped_circuits = 0;
            while skipped_circuits < CIRCUIT_NAMES.len()
                && (self.packing || bundle.messages.is_empty())
            {
                let waiting = &mut self.waiting[self.next_circuit % CIRCUIT_NAMES.len()];
                self.next_circuit += 1;
                skipped_circuits += 1;
                let room = self.max_payload - bundle.bytes;
                let fits = |message: &Message| MESSAGE_BYTES + message.bytes <= room;
                if waiting.front().is_some_and(fits) {
                    let Some(message) = waiting.pop_front() else {
                        break;
                    };
                    self.waiting_count -= 1;
                    bundle.bytes += MESSAGE_BYTES + message.bytes;
                    bundle.messages.push(message);
                    skipped_circuits = 0;
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
        &CIRCUIT_NAMES
    }

    fn header_bits(&self, _: &Message) -> u64 {
        8 * u64::from(MESSAGE_BYTES)
    }

    fn send(&mut self, message: Message) -> Result<(), Rejection> {
        let waiting = self.waiting.get_mut(usize::from(message.circuit));
        let waiting = waiting.ok_or(Rejection::Malformed)?;
        if message.bytes > self.max_payload.saturating_sub(MESSAGE_BYTES) {
            return Err(Rejection::Malformed);
        }
        if waiting.len() >= self.queue_capacity {
            return Err(Rejection::Full);
        }
        waiting.push_back(message);
        self.waiting_count += 1;
        Ok(())
    }

    #[inline]
    fn received_circuits(&self) -> u32 {
        match self.link.has_received(POSTED) {
            true => 0b1111,
            false => self.unpacked_circuits,
        }
    }

    fn backlog(&self, circuit: u8) -> usize {
        let waiting = self.waiting.get(usize::from(circuit));
        waiting.map_or(0, VecDeque::len)
    }

    #[inline]
    fn peek(&mut self, circuit: u8) -> Option<Message> {
        if self.link.has_received(POSTED) {
            self.unpack();
        }
        self.received.get(usize::from(circuit))?.front().copied()
    }

    fn take(&mut self, circuit: u8) -> Option<Message> {
        self.peek(circuit)?;
        let received = self.received.get_mut(usize::from(circuit))?;
        let message = received.pop_front();
        if received.is_empty() {
            self.unpacked_circuits &= !(1 << circuit);
        }
        message
    }

    fn transmit(&mut self, packet: &mut Packet<Bundle>) {
        self.pack();
        self.link.transmit_packet(packet);
    }

    fn idle_units(&self) -> u64 {
        match self.waiting_count {
            0 => self.link.idle_units(),
            _ => 0,
        }
    }

    fn idle_bits(&self) -> u64 {
        8 * LINK_PACKET_BYTES
    }

    fn skip(&mut self, units: u64) {
        self.link.skip(units);
    }

    fn receive(&mut self, packet: &mut Packet<Bundle>) {
        self.link.receive(packet);
    }

    fn disable_replay(&mut self) {
        self.link.disable_replay();
    }

    fn retrain(&mut self) {
        self.link.retrain();
    }

    fn has_queued_messages(&self) -> bool {
        self.waiting_count > 0 || self.link.has_queued_messages()
    }

    fn is_settled(&self) -> bool {
        self.link.sender.is_settled()
    }

    fn is_quiescent(&self) -> bool {
        self.waiting_count == 0 && self.link.is_quiescent()
    }

    fn shortages(&self, _: &End) -> Vec<Shortage> {
        Vec::new()
    }

    fn accepted_units(&self) -> u64 {
        self.link.receiver.accepted_units()
    }

    fn replayed(&self) -> u64 {
        self.link.sender.replayed
    }

    fn protocol_errors(&self) -> u64 {
        self.link.sender.protocol_errors + self.link.overrun
    }
}
