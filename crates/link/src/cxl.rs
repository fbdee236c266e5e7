//! CXL.mem over 68- or 256-byte flits, and CXL.cache over 68-byte flits: messages packed into slots by their bits,
//! separate data slots, credits per message class, and flit retry.
//!
//! Choices that no public source here determines: A slot holds as many messages of one class as fit by their bits (the
//! specification lists fewer combinations). Flits of both sizes are retried like ECI's blocks ([`crate::replay`]). The
//! 6 bytes of forward error correction correct one wrong byte in each third of a flit.

use crate::crc::{Checksum, ErrorPattern};
use crate::lanes::Ratio;
use crate::layer::{Layer, Message, Rejection, Shortage, WireUnit};
use crate::replay::{Retry, Sync, Transmission};
use std::collections::VecDeque;

/// Class of requests to memory, or to the home host. In the opposite direction: snoops.
pub const REQUEST: u8 = 0;
/// Class of responses to these snoops. In the opposite direction: responses without data.
pub const RESPONSE: u8 = 1;
/// Class of writes to memory, or evictions of a device. In the opposite direction: responses with data.
pub const DATA: u8 = 2;

/// Bytes of data in a message with data.
pub const LINE_BYTES: u16 = 64;
/// Data slots per line.
const SLOTS_PER_LINE: u32 = 4;
/// Bits per slot.
const SLOT_BITS: u32 = 128;
/// Bytes of forward error correction at the end of a large flit.
const FEC_BYTES: u64 = 6;
/// Limit of data slots owed for headers already sent: those of five lines. The header of another line may only leave
/// below this limit.
const MAX_OWED_SLOTS: u32 = 20;

/// Flit format of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flits {
    /// 68 bytes: 2 bytes of protocol identifier, 4 slots of 16 bytes, 2 bytes of CRC. Without back-invalidation.
    Small,
    /// 256 bytes: 2 bytes of header, a slot of 14 bytes and 14 slots of 16 bytes, 2 bytes of credits, 8 bytes of CRC, 6
    /// bytes of error correction.
    Large,
}

/// Sending side: host (M2S) or memory device (S2M) of CXL.mem; caching device (D2H) or host (H2D) of CXL.cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Sends requests, responses to snoops, and writes.
    Host,
    /// Sends snoops, responses, and data.
    Device,
    /// Sends requests, responses to snoops, and data of the host's lines.
    CachingDevice,
    /// Sends snoops, responses, and data of its own lines.
    HomeHost,
}

impl Side {
    /// Side at the other end of the link, which receives what this side sends.
    pub fn partner(self) -> Side {
        match self {
            Side::Host => Side::Device,
            Side::Device => Side::Host,
            Side::CachingDevice => Side::HomeHost,
            Side::HomeHost => Side::CachingDevice,
        }
    }
}

impl Flits {
    /// Bytes per flit.
    pub fn bytes(self) -> u64 {
        match self {
            Flits::Small => 68,
            Flits::Large => 256,
        }
    }

    /// Slots whose 16 bytes are all available for data or messages.
    fn full_slots(self) -> u32 {
        match self {
            Flits::Small => 3,
            Flits::Large => 14,
        }
    }

    /// Message bits in the first slot. In a small flit, 4 of its 16 bytes hold the flit header.
    fn first_slot_bits(self) -> u32 {
        match self {
            Flits::Small => 96,
            Flits::Large => 112,
        }
    }

    /// Header bits of a message; `None` if the format has no such message. The CXL.cache formats of 256-byte flits are
    /// not modelled; those of 68-byte flits are from CXL 2.0.
    ///
    /// A device's request to its host about the device's own memory is a back-invalidate snoop in 256-byte flits. In
    /// 68-byte flits, as before CXL 3, it is a CXL.cache request.
    pub fn header_bits(self, side: Side, class: u8) -> Option<u32> {
        let [small, large] = match (side, class) {
            (Side::Host, REQUEST) => [87, 100],
            (Side::Host, RESPONSE) => [0, 40],
            (Side::Host, DATA) => [87, 104],
            (Side::Device, REQUEST) => [79, 84],
            (Side::Device, RESPONSE) => [30, 40],
            (Side::Device, DATA) => [40, 40],
            (Side::CachingDevice, REQUEST) => [79, 0],
            (Side::CachingDevice, RESPONSE) => [20, 0],
            (Side::CachingDevice, DATA) => [17, 0],
            (Side::HomeHost, REQUEST) => [64, 0],
            (Side::HomeHost, RESPONSE) => [32, 0],
            (Side::HomeHost, DATA) => [24, 0],
            _ => [0, 0],
        };
        let bits = if self == Flits::Small { small } else { large };
        (bits > 0).then_some(bits)
    }

    /// Messages per flit at saturation with one class, or `None` if the format has no such message. A message with data
    /// takes four more slots, and a small flit may consist of data only.
    pub fn messages(self, side: Side, class: u8) -> Option<Ratio> {
        let bits = self.header_bits(side, class)?;
        let (first_slot_messages, slot_messages) = (
            u128::from(self.first_slot_bits() / bits),
            u128::from(SLOT_BITS / bits),
        );
        let slots = u128::from(self.full_slots());
        Some(match (class, self) {
            (DATA, Flits::Small) => {
                Ratio::new(4 * first_slot_messages, 4 * first_slot_messages + 1)
            }
            // Beyond the data owed for the headers of the first slot, one of every `1 + 4 * slot_messages` slots holds
            // headers.
            (DATA, Flits::Large) => {
                let headers = Ratio::new(slots - 4 * first_slot_messages, 1 + 4 * slot_messages);
                Ratio::new(
                    first_slot_messages * headers.denominator + slot_messages * headers.numerator,
                    headers.denominator,
                )
            }
            _ => Ratio::new(first_slot_messages + slots * slot_messages, 1),
        })
    }
}

/// Kind of a flit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Flit with a header. `ack` acknowledges `BLOCKS_PER_ACK` more flits of [`crate::replay`]; `credits` are powers
    /// of two per class, or 0.
    WithHeader { ack: bool, credits: [u8; 3] },
    /// Four data slots.
    Data,
    /// Replay state of both directions.
    Sync(Sync),
    /// Idle flit.
    Idle,
}

/// A flit. Bit errors that error correction does not repair are detected by the checksum, or else change its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flit {
    /// Flit format.
    flits: Flits,
    /// Kind of the flit.
    kind: Kind,
    /// Messages whose headers are in this flit.
    messages: Vec<Message>,
    /// Number of data slots, for the oldest messages with outstanding data.
    data: u32,
    /// True if a message is complete with this flit. Simulation metadata, not transmitted.
    completes_message: bool,
    /// Flipped bits.
    errors: ErrorPattern,
}

impl Default for Flit {
    fn default() -> Flit {
        Flit {
            flits: Flits::Small,
            kind: Kind::Idle,
            messages: Vec::new(),
            data: 0,
            completes_message: false,
            errors: ErrorPattern::default(),
        }
    }
}

impl Flit {
    /// Resets the flit to an idle flit.
    #[inline]
    fn clear(&mut self, flits: Flits) {
        (self.flits, self.kind) = (flits, Kind::Idle);
        (self.data, self.completes_message) = (0, false);
        self.messages.clear();
        self.errors.clear();
    }

    /// Applies error correction: a third with errors in more than one byte stays wrong. Returns true if any bit was
    /// corrected.
    fn correct_errors(&mut self) -> bool {
        if self.flits == Flits::Small || self.errors.is_empty() {
            return false;
        }
        let error_count = self.errors.bits().len();
        let third_of = |bit: u64| bit / 8 % 3;
        let errors = self.errors.bits().to_vec();
        self.errors.correct(|bit| {
            let mut errors_in_third = errors
                .iter()
                .filter(|&&other| third_of(other) == third_of(bit));
            // Correction bytes carry no message data, so errors in them have no effect.
            bit / 8 >= self.flits.bytes() - FEC_BYTES
                || errors_in_third.all(|other| other / 8 == bit / 8)
        });
        self.errors.bits().len() < error_count
    }

    /// True if the receiver detects the remaining bit errors.
    fn is_detected(&self) -> bool {
        let checksum = match self.flits {
            Flits::Small => Checksum::SmallFlit,
            Flits::Large => Checksum::LargeFlit,
        };
        self.errors.is_detected(self.flits.bytes(), checksum)
    }

    /// Applies undetected bit errors to the contents.
    fn corrupt(&mut self) {
        for &bit in self.errors.bits() {
            match self.messages.first_mut() {
                Some(message) => message.label ^= 1 << (bit % 64),
                None => self.data ^= 1,
            }
        }
    }
}

impl WireUnit for Flit {
    fn bits(&self) -> u64 {
        8 * self.flits.bytes()
    }

    fn flip(&mut self, bit: u64) {
        self.errors.flip(bit);
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.kind == Kind::Idle
    }

    #[inline]
    fn completion_clocks(&self) -> Option<u32> {
        self.completes_message.then_some(0)
    }
}

/// Parameters of an end.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Flit format.
    pub flits: Flits,
    /// Side of this end.
    pub side: Side,
    /// Capacity of the receive buffer of each class, in messages. Classes that the partner cannot send get no credits.
    pub capacity: [u32; 3],
    /// Capacity of the transmit queue of each class, in messages.
    pub queue_capacity: usize,
    /// Retry timeout in flits, for unanswered requests and unacknowledged flits.
    pub retry_timeout_flits: u32,
}

impl Parameters {
    /// Creates parameters with receive buffers of 128 messages per class. No source here states their size; 128
    /// suffices for 16 lanes of 32 Gb/s with a delay of 50 ns.
    pub fn new(flits: Flits, side: Side) -> Parameters {
        Parameters {
            flits,
            side,
            capacity: [128; 3],
            queue_capacity: 64,
            retry_timeout_flits: 256,
        }
    }
}

/// One end of a CXL link.
pub struct End {
    /// Parameters; the slot capacities below are derived from them.
    parameters: Parameters,
    /// Maximum messages of each class in the first slot, and in any other slot.
    slot_capacities: [[u32; 3]; 2],
    /// Retry state; keeps flits until they are acknowledged.
    pub retry: Retry<Flit>,
    /// Messages to be sent, by class.
    waiting: [VecDeque<Message>; 3],
    /// Total number of waiting messages.
    waiting_count: usize,
    /// Number of messages for which the partner's buffer of each class has space.
    credits: [u32; 3],
    /// Data slots owed for headers already sent.
    owed_slots: u32,
    /// Data slots sent so far; wraps around.
    sent_data_slots: u32,
    /// Class at which the round robin continues; 3 stands for class 0.
    next_class: usize,
    /// Messages received and not taken, by class.
    received: [VecDeque<Message>; 3],
    /// Classes with received messages, as a bit set.
    received_classes: u32,
    /// Messages of each class that were taken, and whose credits are still to be returned.
    owed: [u32; 3],
    /// Messages whose data is incomplete, in the order of their headers.
    incomplete_messages: VecDeque<Message>,
    /// Data slots received for `incomplete_messages`.
    received_slots: u32,
    /// Flits accepted after error correction.
    pub corrected: u64,
    /// Messages received without credit: a full buffer shows that the partner ignored credits.
    pub overrun: u64,
}

impl End {
    /// Creates an end without credits: it can send only after the partner has returned some.
    pub fn new(parameters: Parameters) -> End {
        let mut owed = parameters.capacity;
        let partner = parameters.side.partner();
        for class in [REQUEST, RESPONSE, DATA] {
            if parameters.flits.header_bits(partner, class).is_none() {
                owed[usize::from(class)] = 0;
            }
        }
        let slot_capacities = [parameters.flits.first_slot_bits(), SLOT_BITS].map(|bits| {
            [REQUEST, RESPONSE, DATA].map(|class| {
                let header = parameters.flits.header_bits(parameters.side, class);
                header.map_or(0, |header| bits / header)
            })
        });
        End {
            slot_capacities,
            retry: Retry::new(parameters.retry_timeout_flits),
            waiting: Default::default(),
            waiting_count: 0,
            credits: [0; 3],
            owed_slots: 0,
            sent_data_slots: 0,
            next_class: 0,
            received: Default::default(),
            received_classes: 0,
            owed,
            incomplete_messages: VecDeque::new(),
            received_slots: 0,
            corrected: 0,
            overrun: 0,
            parameters,
        }
    }

    /// Packs messages of one class into a slot: the first (0) or any other (1). Returns true if it packed any.
    fn pack_messages(&mut self, flit: &mut Flit, slot: usize) -> bool {
        for step in 0..3 {
            let class = (self.next_class + step) % 3;
            if self.waiting[class].is_empty() {
                continue;
            }
            let mut max_count = self.slot_capacities[slot][class].min(self.credits[class]);
            if class == usize::from(DATA) {
                // A header may leave while fewer data slots than the limit are owed.
                let free_data_slots = MAX_OWED_SLOTS.saturating_sub(self.owed_slots);
                max_count = max_count.min(free_data_slots.div_ceil(SLOTS_PER_LINE));
            }
            let count = (max_count as usize).min(self.waiting[class].len());
            if count == 0 {
                continue;
            }
            self.credits[class] -= count as u32;
            self.waiting_count -= count;
            match class == usize::from(DATA) {
                true => self.owed_slots += SLOTS_PER_LINE * count as u32,
                false => flit.completes_message = true,
            }
            for _ in 0..count {
                flit.messages.extend(self.waiting[class].pop_front());
            }
            self.next_class = class + 1;
            return true;
        }
        false
    }

    /// Fills `slots` slots with owed data.
    fn fill(&mut self, flit: &mut Flit, slots: u32) {
        self.owed_slots -= slots;
        flit.data += slots;
        let lines_before = self.sent_data_slots / SLOTS_PER_LINE;
        self.sent_data_slots = self.sent_data_slots.wrapping_add(slots);
        flit.completes_message |= self.sent_data_slots / SLOTS_PER_LINE != lines_before;
    }

    /// Packs a new flit, if messages, data, credits or an acknowledgement are due. Returns whether it contains the
    /// acknowledgement; `None` if nothing is due.
    fn pack(&mut self, ack: bool, flit: &mut Flit) -> Option<bool> {
        let flits = self.parameters.flits;
        if flits == Flits::Small && self.owed_slots >= 4 {
            flit.kind = Kind::Data;
            self.fill(flit, 4);
            return Some(false);
        }
        if self.has_queued_messages() {
            self.pack_messages(flit, 0);
            for _ in 0..flits.full_slots() {
                if self.owed_slots > 0 {
                    self.fill(flit, 1);
                } else if !self.pack_messages(flit, 1) {
                    break;
                }
            }
        }
        let credits = self.owed.map(|owed| owed.min(64));
        if flit.messages.is_empty() && flit.data == 0 && credits == [0; 3] && !ack {
            return None;
        }
        let credits = credits.map(|owed| owed.checked_ilog2().map_or(0, |power| 1 << power));
        for (owed, granted) in self.owed.iter_mut().zip(credits) {
            *owed -= u32::from(granted);
        }
        flit.kind = Kind::WithHeader { ack, credits };
        Some(ack)
    }

    /// Processes the contents of an accepted flit: data slots belong to the oldest headers with incomplete data.
    fn unpack(&mut self, flit: &Flit) {
        for &message in &flit.messages {
            if message.circuit == DATA {
                self.incomplete_messages.push_back(message);
            } else {
                self.receive_message(message);
            }
        }
        self.received_slots += flit.data;
        while self.received_slots >= SLOTS_PER_LINE {
            self.received_slots -= SLOTS_PER_LINE;
            if let Some(message) = self.incomplete_messages.pop_front() {
                self.receive_message(message);
            }
        }
    }

    /// Stores a complete message.
    fn receive_message(&mut self, message: Message) {
        let class = usize::from(message.circuit);
        let occupied = self.received[class].len();
        self.overrun += u64::from(occupied >= self.parameters.capacity[class] as usize);
        self.received[class].push_back(message);
        self.received_classes |= 1 << class;
    }

    /// Messages and credits of a class in flits that `partner` has not accepted yet.
    fn in_flight(&self, partner: &End, class: usize) -> (u32, u32) {
        let accepted = partner.retry.receiver.accepted_units();
        let (mut messages, mut returned_credits) = (0, 0);
        for flit in self.retry.sender.in_flight(accepted) {
            let of_class = |message: &&Message| usize::from(message.circuit) == class;
            messages += flit.messages.iter().filter(of_class).count() as u32;
            if let Kind::WithHeader { credits, .. } = flit.kind {
                returned_credits += u32::from(credits[class]);
            }
        }
        (messages, returned_credits)
    }
}

impl Layer for End {
    type Unit = Flit;

    fn circuits(&self) -> &'static [&'static str] {
        match self.parameters.side {
            Side::Host => &["Req", "BIRsp", "RwD"],
            Side::Device => &["BISnp", "NDR", "DRS"],
            Side::CachingDevice => &["D2H Req", "D2H Rsp", "D2H Data"],
            Side::HomeHost => &["H2D Req", "H2D Rsp", "H2D Data"],
        }
    }

    fn header_bits(&self, message: &Message) -> u64 {
        let Parameters { flits, side, .. } = self.parameters;
        flits.header_bits(side, message.circuit).unwrap_or(0).into()
    }

    fn send(&mut self, message: Message) -> Result<(), Rejection> {
        let Parameters { flits, side, .. } = self.parameters;
        let data = if message.circuit == DATA {
            LINE_BYTES
        } else {
            0
        };
        if flits.header_bits(side, message.circuit).is_none() || message.bytes != data {
            return Err(Rejection::Malformed);
        }
        let waiting = &mut self.waiting[usize::from(message.circuit)];
        if waiting.len() >= self.parameters.queue_capacity {
            return Err(Rejection::Full);
        }
        waiting.push_back(message);
        self.waiting_count += 1;
        Ok(())
    }

    #[inline]
    fn received_circuits(&self) -> u32 {
        self.received_classes
    }

    fn backlog(&self, circuit: u8) -> usize {
        let waiting = self.waiting.get(usize::from(circuit));
        waiting.map_or(0, VecDeque::len)
    }

    fn peek(&mut self, circuit: u8) -> Option<Message> {
        self.received.get(usize::from(circuit))?.front().copied()
    }

    fn take(&mut self, circuit: u8) -> Option<Message> {
        let class = usize::from(circuit);
        let received = self.received.get_mut(class)?;
        let message = received.pop_front()?;
        if received.is_empty() {
            self.received_classes &= !(1 << class);
        }
        self.owed[class] += 1;
        Some(message)
    }

    fn transmit(&mut self, flit: &mut Flit) {
        flit.clear(self.parameters.flits);
        if let Some(ack) = self
            .retry
            .ack_for_next_block()
            .and_then(|ack| self.pack(ack, flit))
        {
            return self.retry.record_sent(flit, ack);
        }
        match self.retry.transmit() {
            Transmission::Block(resent) => *flit = resent,
            Transmission::Sync(sync) => flit.kind = Kind::Sync(sync),
            Transmission::Idle => {}
        }
    }

    fn idle_units(&self) -> u64 {
        if self.has_queued_messages() || self.owed != [0; 3] {
            0
        } else {
            self.retry.idle_slots()
        }
    }

    fn units_before_message(&self) -> (u64, u32) {
        // The data of a header in a small flit is complete with the next flit at the earliest.
        let next_slot_starts_message =
            self.owed_slots == 0 && self.waiting_count == self.waiting[usize::from(DATA)].len();
        let is_small = self.parameters.flits == Flits::Small;
        (u64::from(is_small && next_slot_starts_message), 0)
    }

    fn idle_bits(&self) -> u64 {
        8 * self.parameters.flits.bytes()
    }

    fn skip(&mut self, units: u64) {
        self.retry.skip(units);
    }

    fn receive(&mut self, flit: &mut Flit) {
        if !flit.errors.is_empty() {
            let was_corrected = flit.correct_errors();
            if flit.is_detected() {
                return self.retry.record_damaged();
            }
            self.corrected += u64::from(was_corrected);
            flit.corrupt();
        }
        match flit.kind {
            Kind::Idle => {}
            Kind::Sync(sync) => self.retry.receive_sync(sync),
            Kind::Data => {
                if self.retry.accept(false) {
                    self.unpack(flit);
                }
            }
            Kind::WithHeader { ack, credits } => {
                if self.retry.accept(ack) {
                    for (available, granted) in self.credits.iter_mut().zip(credits) {
                        *available += u32::from(granted);
                    }
                    self.unpack(flit);
                }
            }
        }
    }

    fn disable_replay(&mut self) {
        self.retry.sender.disable_replay();
    }

    fn retrain(&mut self) {
        self.retry.retrain();
    }

    #[inline]
    fn has_queued_messages(&self) -> bool {
        self.owed_slots > 0 || self.waiting_count > 0
    }

    fn is_settled(&self) -> bool {
        self.retry.sender.is_settled()
    }

    fn is_quiescent(&self) -> bool {
        !self.has_queued_messages() && self.owed == [0; 3] && self.retry.is_quiescent()
    }

    fn shortages(&self, partner: &End) -> Vec<Shortage> {
        let Parameters { flits, side, .. } = self.parameters;
        (0..3u8)
            .filter(|&class| flits.header_bits(side, class).is_some())
            .map(|circuit| {
                let class = usize::from(circuit);
                let is_of_class = |message: &&Message| message.circuit == circuit;
                let accounted = self.credits[class]
                    + self.in_flight(partner, class).0
                    + partner
                        .incomplete_messages
                        .iter()
                        .filter(is_of_class)
                        .count() as u32
                    + partner.received[class].len() as u32
                    + partner.owed[class]
                    + partner.in_flight(self, class).1;
                Shortage {
                    circuit,
                    lost: i64::from(partner.parameters.capacity[class]) - i64::from(accounted),
                }
            })
            .filter(|shortage| shortage.lost != 0)
            .collect()
    }

    fn accepted_units(&self) -> u64 {
        self.retry.receiver.accepted_units()
    }

    fn replayed(&self) -> u64 {
        self.retry.sender.replayed
    }

    fn protocol_errors(&self) -> u64 {
        self.retry.sender.protocol_errors + self.overrun
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Flits, Kind, Layer, Parameters, Shortage, Side, DATA, LINE_BYTES};
    use crate::testbench::{Testbench, LANE_BYTE};

    /// An undetected error removes credits from a flit. `shortages` must report it while traffic continues.
    #[test]
    fn lost_credit_is_reported_during_traffic() {
        for flits in [Flits::Small, Flits::Large] {
            let ends =
                [Side::Host, Side::Device].map(|side| End::new(Parameters::new(flits, side)));
            let mut bench = Testbench::new(ends, 16, 50 * LANE_BYTE, 0.0, 0);
            let mut lost = 0;
            for step in 0..6000 {
                bench.fill(0, DATA, LINE_BYTES);
                bench.step();
                bench.drain(0);
                let newest = bench.wires[1].in_flight.iter_mut().next_back();
                if let (true, 0, Some((_, flit))) = (step > 3000, lost, newest) {
                    if let Kind::WithHeader { credits, .. } = &mut flit.kind {
                        lost = std::mem::take(&mut credits[usize::from(DATA)]).into();
                    }
                }
                if step < 3000 {
                    assert_eq!(bench.ends()[0].shortages(&bench.ends()[1]), []);
                }
            }
            assert!(lost > 0 && !bench.ends()[0].is_quiescent());
            let circuit = DATA;
            let shortages = bench.ends()[0].shortages(&bench.ends()[1]);
            assert_eq!(shortages, [Shortage { circuit, lost }]);
        }
    }
}
