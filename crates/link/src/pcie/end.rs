//! One end of a PCIe link: three classes with credits for headers and data, numbered packets with replay, and data link
//! layer packets (DLLPs) that acknowledge packets and return credits.

use super::sequence_numbers::{Arrival, Receiver, Sender};
use crate::crc::{Checksum, ErrorPattern};
use crate::layer::{Layer, Message, Rejection, Shortage, WireUnit};
use std::collections::VecDeque;

/// Posted requests: writes and messages.
pub const POSTED: u8 = 0;
/// Non-posted requests: reads.
pub const NON_POSTED: u8 = 1;
/// Completions.
pub const COMPLETIONS: u8 = 2;
/// Names of the classes, by their numbers. A class is a circuit of [`Layer`].
const CLASS_NAMES: [&str; 3] = ["posted", "non-posted", "completions"];
/// Bytes of data per data credit.
const DATA_CREDIT_BYTES: u64 = 16;
/// Bytes of a DLLP on the wire, including framing.
pub(crate) const LINK_PACKET_BYTES: u64 = 8;
/// Modulus of the transmitted credit counters for headers (8 bits) and data (12 bits). Fewer than half may be free.
const COUNTER_MODULUS: [u64; 2] = [256, 4096];

/// Parameters of an end.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Bytes on the wire of a packet of each class without data, including framing.
    pub headers: [u64; 3],
    /// Maximum bytes of data per packet.
    pub max_payload: u16,
    /// Receive buffer of each class: headers, and 16-byte units of data. 0 means infinite credits.
    pub capacity: [[u64; 2]; 3],
    /// Number of received bytes per acknowledgement, and per credit return.
    pub bytes_per_dllp: u64,
    /// Retry timeout: number of bytes sent without progress before unacknowledged packets are resent.
    pub retry_timeout_bytes: u64,
    /// Number of bytes sent before unchanged credits are repeated, so that a lost credit return has no lasting effect.
    pub credit_repeat_bytes: u64,
    /// Capacity of the transmit queue of each class, in packets.
    pub queue_capacity: usize,
}

impl Parameters {
    /// Creates parameters of an end with at most `max_payload` bytes of data per packet and one acknowledgement per
    /// `bytes_per_dllp` received bytes. Values that no source here states
    /// are chosen: receive buffers of 16 KiB and 64 headers per class, infinite credits for completions, a retry
    /// timeout of 64 KiB, and credit repetition after 32 KiB.
    pub fn new(max_payload: u16, bytes_per_dllp: u64) -> Parameters {
        Parameters {
            headers: [
                super::REQUEST_BYTES,
                super::REQUEST_BYTES,
                super::COMPLETION_BYTES,
            ],
            max_payload,
            capacity: [[64, 1024], [64, 0], [0, 0]],
            bytes_per_dllp,
            retry_timeout_bytes: 64 << 10,
            credit_repeat_bytes: 32 << 10,
            queue_capacity: 8,
        }
    }

    /// Returns parameters whose retry timeout suits a link with up to `bytes_in_flight` bytes in flight per direction:
    /// at least four times that number. The timeout must exceed the round trip, or intact packets are resent.
    #[must_use]
    pub fn with_bytes_in_flight(self, bytes_in_flight: u64) -> Parameters {
        Parameters {
            retry_timeout_bytes: self.retry_timeout_bytes.max(4 * bytes_in_flight),
            ..self
        }
    }
}

/// Contents of a transaction layer packet (TLP).
pub trait Body: Clone {
    /// Message class: [`POSTED`], [`NON_POSTED`] or [`COMPLETIONS`].
    fn class(&self) -> u8;
    /// Number of bytes of data.
    fn bytes(&self) -> u16;
    /// Corrupts the contents, as an undetected bit error does. `bit` is the index of the flipped bit in the packet.
    fn corrupt(&mut self, bit: u64);
    /// Takes the contents out of a packet, which need not keep them.
    fn take(&mut self) -> Self {
        self.clone()
    }
}

impl Body for Message {
    fn class(&self) -> u8 {
        self.circuit
    }

    fn bytes(&self) -> u16 {
        self.bytes
    }

    fn corrupt(&mut self, bit: u64) {
        self.label ^= 1 << (bit % 64);
    }
}

/// Contents of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<T> {
    /// TLP with its sequence number.
    Body(u16, T),
    /// ACK, or NAK if `true`: all packets before this number have been received. A NAK requests the following ones
    /// again.
    AckNak(u16, bool),
    /// Total credits ever granted to a class, as (headers, data) modulo the counter size.
    Credits(u8, [u16; 2]),
    /// No contents: a filler where nothing else is to be sent.
    Idle,
}

/// A packet. Bit errors are detected by its checksum, or else change its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<T> {
    /// Contents.
    pub content: Content<T>,
    /// Bytes on the wire.
    bytes: u64,
    /// Flipped bits.
    errors: ErrorPattern,
}

impl<T> Default for Packet<T> {
    fn default() -> Packet<T> {
        Packet {
            content: Content::Idle,
            bytes: LINK_PACKET_BYTES,
            errors: ErrorPattern::default(),
        }
    }
}

impl<T: Body> Packet<T> {
    /// Applies the bit errors as the receiver sees them: returns true if the checksum detects them, and otherwise changes
    /// the contents.
    #[inline]
    fn apply_errors(&mut self) -> bool {
        if self.errors.is_empty() {
            return false;
        }
        let checksum = match self.content {
            Content::Body(..) => Checksum::Packet,
            _ => Checksum::LinkPacket,
        };
        if self.errors.is_detected(self.bytes, checksum) {
            return true;
        }
        for &bit in self.errors.bits() {
            match &mut self.content {
                Content::Body(_, body) => body.corrupt(bit),
                Content::AckNak(number, _) => *number ^= 1 << (bit % 12),
                Content::Credits(_, granted) => granted[1] ^= 1 << (bit % 12),
                Content::Idle => {}
            }
        }
        false
    }
}

impl<T: Body> WireUnit for Packet<T> {
    fn bits(&self) -> u64 {
        8 * self.bytes
    }

    fn flip(&mut self, bit: u64) {
        self.errors.flip(bit);
    }

    #[inline]
    fn is_idle(&self) -> bool {
        matches!(self.content, Content::Idle)
    }

    #[inline]
    fn completion_clocks(&self) -> Option<u32> {
        matches!(self.content, Content::Body(..)).then_some(0)
    }
}

/// Flow control of one class. Each pair has the credits for headers (unit 0) and for data (unit 1).
#[derive(Clone, Copy, Default)]
struct Flow {
    /// Credits consumed by sent packets.
    used: [u64; 2],
    /// Total credits granted by the partner.
    granted_by_partner: [u64; 2],
    /// Total credits granted to the partner.
    granted: [u64; 2],
    /// Value of `granted` last sent to the partner.
    advertised: [u64; 2],
    /// Credits of packets received and not taken.
    occupied: [u64; 2],
}

/// Bytes since the last DLLP of one kind: each is due after a number of received bytes.
#[derive(Clone, Copy, Default)]
struct BytesSince {
    /// Bytes received that no DLLP of this kind covers yet.
    received: u64,
    /// Bytes sent since then.
    sent: u64,
}

impl BytesSince {
    /// Restarts the counts: a DLLP is sent, which covers `limit` received bytes.
    fn restart(&mut self, limit: u64) {
        self.sent = 0;
        self.received = self.received.saturating_sub(limit);
    }
}

/// One end of a PCIe link.
pub struct End<T> {
    /// Parameters, with the capacities limited to half of the counters.
    parameters: Parameters,
    /// Outgoing direction.
    pub sender: Sender<T>,
    /// Incoming direction.
    pub receiver: Receiver,
    /// Flow control of each class.
    flows: [Flow; 3],
    /// Queued packets of each class, with their position in the order of submission.
    waiting: [VecDeque<(u64, T)>; 3],
    /// Total number of queued packets.
    waiting_count: usize,
    /// Received packets of each class, with their position in the order of arrival.
    received: [VecDeque<(u64, T)>; 3],
    /// Number of packets submitted for transmission.
    submitted_packets: u64,
    /// Number of packets received.
    received_packets: u64,
    /// Bytes since the last acknowledgement.
    since_acknowledgement: BytesSince,
    /// Bytes since the last credit return.
    since_credit_return: BytesSince,
    /// Bytes sent since the last progress of the sender.
    bytes_since_progress: u64,
    /// Number of accepted packets at the last acknowledgement sent.
    acknowledged: u64,
    /// True if the next acknowledgement must be a NAK.
    nak_due: bool,
    /// Class at which the search for the next credit return begins; 3 stands for class 0.
    next_credit_class: usize,
    /// Number of classes whose credits are sent even if unchanged: at the start, and for periodic repetition.
    forced_credit_returns: usize,
    /// Bytes sent since the last repetition of all credits.
    bytes_since_refresh: u64,
    /// Number of times that a received packet exceeded a credit limit, for headers and data separately.
    pub overrun: u64,
    /// Packets received damaged.
    pub damaged: u64,
}

/// Returns the credits that a packet consumes, as (headers, data).
fn credit_cost(body: &impl Body) -> [u64; 2] {
    [1, u64::from(body.bytes()).div_ceil(DATA_CREDIT_BYTES)]
}

impl<T: Body> End<T> {
    /// Creates an end without credits: it can send only after the partner has granted some.
    pub fn new(mut parameters: Parameters) -> End<T> {
        let mut flows = [Flow::default(); 3];
        for (flow, capacity) in flows.iter_mut().zip(&mut parameters.capacity) {
            *capacity = [capacity[0].min(127), capacity[1].min(2047)];
            flow.granted = *capacity;
        }
        End {
            sender: Sender::default(),
            receiver: Receiver::default(),
            flows,
            waiting: Default::default(),
            waiting_count: 0,
            received: Default::default(),
            submitted_packets: 0,
            received_packets: 0,
            since_acknowledgement: BytesSince::default(),
            since_credit_return: BytesSince::default(),
            bytes_since_progress: 0,
            acknowledged: 0,
            nak_due: false,
            next_credit_class: 0,
            forced_credit_returns: 3,
            bytes_since_refresh: 0,
            overrun: 0,
            damaged: 0,
            parameters,
        }
    }

    /// Adapts the retry timeout to the link: see [`Parameters::with_bytes_in_flight`].
    #[must_use]
    pub fn with_bytes_in_flight(mut self, bytes_in_flight: u64) -> End<T> {
        self.parameters = self.parameters.with_bytes_in_flight(bytes_in_flight);
        self
    }

    /// Class whose packet may leave, the earliest submitted first. Nothing passes a posted request; a posted request
    /// passes requests and completions that lack credits.
    fn next_class(&self) -> Option<usize> {
        let posted = self.waiting[0].front().map_or(u64::MAX, |first| first.0);
        let sendable_position = |class: usize| {
            let (position, body) = self.waiting[class].front()?;
            let (flow, capacity, cost) = (
                self.flows[class],
                self.parameters.capacity[class],
                credit_cost(body),
            );
            let has_credit = (0..2).all(|unit| {
                capacity[unit] == 0 || flow.used[unit] + cost[unit] <= flow.granted_by_partner[unit]
            });
            (*position <= posted && has_credit).then_some((*position, class))
        };
        (0..3)
            .filter_map(sendable_position)
            .min()
            .map(|(_, class)| class)
    }

    /// Takes the next queued packet that may leave, and consumes its credits.
    fn new_packet(&mut self) -> Option<Content<T>> {
        if self.waiting_count == 0 || !self.sender.has_space() {
            return None;
        }
        let class = self.next_class()?;
        let (_, body) = self.waiting[class].pop_front()?;
        self.waiting_count -= 1;
        let cost = credit_cost(&body);
        for (used, cost) in self.flows[class].used.iter_mut().zip(cost) {
            *used += cost;
        }
        let number = self.sender.keep(&body);
        Some(Content::Body(number, body))
    }

    /// Stores the body of an accepted packet, which occupies its credits until it is taken.
    fn receive_body(&mut self, body: T) {
        let class = usize::from(body.class());
        let capacity = self.parameters.capacity[class];
        let flow = &mut self.flows[class];
        for (unit, cost) in credit_cost(&body).into_iter().enumerate() {
            flow.occupied[unit] += cost;
            self.overrun += u64::from(capacity[unit] > 0 && flow.occupied[unit] > capacity[unit]);
        }
        self.received[class].push_back((self.received_packets, body));
        self.received_packets += 1;
    }

    /// Creates an acknowledgement.
    fn acknowledge(&mut self) -> Content<T> {
        self.acknowledged = self.receiver.accepted_units();
        self.since_acknowledgement
            .restart(self.parameters.bytes_per_dllp);
        let is_nak = std::mem::take(&mut self.nak_due);
        Content::AckNak(self.receiver.number(), is_nak)
    }

    /// Creates the credit return of one class: round robin over the classes, those with changes first.
    fn credit_return(&mut self) -> Content<T> {
        self.since_credit_return
            .restart(self.parameters.bytes_per_dllp);
        self.forced_credit_returns = self.forced_credit_returns.saturating_sub(1);
        let has_changed = |step: &usize| {
            let flow = &self.flows[(self.next_credit_class + step) % 3];
            self.forced_credit_returns == 0 && flow.granted != flow.advertised
        };
        let class = (self.next_credit_class + (0..3).find(has_changed).unwrap_or(0)) % 3;
        self.next_credit_class = class + 1;
        let flow = &mut self.flows[class];
        flow.advertised = flow.granted;
        let totals =
            std::array::from_fn(|unit| (flow.granted[unit] % COUNTER_MODULUS[unit]) as u16);
        Content::Credits(class as u8, totals)
    }

    /// Selects the contents of the next packet: due acknowledgements and credits first, then resent and new packets.
    fn next_content(&mut self) -> Content<T> {
        let limit = self.parameters.bytes_per_dllp;
        if self.nak_due || self.since_acknowledgement.received >= limit {
            return self.acknowledge();
        }
        if self.forced_credit_returns > 0 || self.since_credit_return.received >= limit {
            return self.credit_return();
        }
        if let Some((number, body)) = self.sender.resend_next() {
            self.bytes_since_progress = 0;
            return Content::Body(number, body);
        }
        if let Some(content) = self.new_packet() {
            return content;
        }
        if self.acknowledged != self.receiver.accepted_units()
            && self.since_acknowledgement.sent >= limit
        {
            return self.acknowledge();
        }
        if self.has_new_credits() && self.since_credit_return.sent >= limit {
            return self.credit_return();
        }
        Content::Idle
    }

    /// Returns true if the transmit queue of a class is not full; false for a class that does not exist.
    pub fn has_space(&self, class: u8) -> bool {
        let waiting = self.waiting.get(usize::from(class));
        waiting.is_some_and(|waiting| waiting.len() < self.parameters.queue_capacity)
    }

    /// Queues a packet for transmission, in the queue of its class.
    ///
    /// # Errors
    /// See [`Layer::send`].
    pub fn send(&mut self, body: T) -> Result<(), Rejection> {
        let class = usize::from(body.class());
        let fits = |capacity: &[u64; 2]| {
            let cost = credit_cost(&body);
            (0..2).all(|unit| capacity[unit] == 0 || cost[unit] <= capacity[unit])
        };
        let fits_buffer = self.parameters.capacity.get(class).is_some_and(fits);
        if !fits_buffer || body.bytes() > self.parameters.max_payload {
            return Err(Rejection::Malformed);
        }
        if !self.has_space(body.class()) {
            return Err(Rejection::Full);
        }
        self.waiting[class].push_back((self.submitted_packets, body));
        self.submitted_packets += 1;
        self.waiting_count += 1;
        Ok(())
    }

    /// True if packets of a class have been received.
    #[inline]
    pub fn has_received(&self, class: u8) -> bool {
        let received = self.received.get(usize::from(class));
        received.is_some_and(|received| !received.is_empty())
    }

    /// Packet that [`End::take`] would return: the first of its class, unless an earlier posted request is left.
    fn peek(&self, class: usize) -> Option<&T> {
        let posted = self.received[0].front().map_or(u64::MAX, |first| first.0);
        let (position, body) = self.received.get(class)?.front()?;
        (*position <= posted).then_some(body)
    }

    /// Takes the next received packet of a class. Non-posted requests and completions do not pass posted requests
    /// received before them.
    pub fn take(&mut self, class: u8) -> Option<T> {
        let class = usize::from(class);
        self.peek(class)?;
        let (_, body) = self.received[class].pop_front()?;
        let flow = &mut self.flows[class];
        for (unit, cost) in credit_cost(&body).into_iter().enumerate() {
            flow.occupied[unit] -= cost;
            if self.parameters.capacity[class][unit] > 0 {
                flow.granted[unit] += cost;
            }
        }
        Some(body)
    }

    /// Returns the next packet to send, which is idle if nothing else is due.
    pub fn next_packet(&mut self) -> Packet<T> {
        let mut packet = Packet::default();
        self.transmit_packet(&mut packet);
        packet
    }

    /// See [`Layer::transmit`].
    #[inline]
    pub(crate) fn transmit_packet(&mut self, packet: &mut Packet<T>) {
        if self.sender.is_settled() {
            self.bytes_since_progress = 0;
        } else if self.bytes_since_progress >= self.parameters.retry_timeout_bytes {
            self.sender.go_back();
            self.bytes_since_progress = 0;
        }
        if self.bytes_since_refresh >= self.parameters.credit_repeat_bytes {
            (self.forced_credit_returns, self.bytes_since_refresh) = (3, 0);
        }
        packet.errors.clear();
        packet.content = self.next_content();
        packet.bytes = match &packet.content {
            Content::Body(_, body) => {
                let header = self.parameters.headers[usize::from(body.class())];
                header + u64::from(body.bytes())
            }
            _ => LINK_PACKET_BYTES,
        };
        self.account_sent_bytes(packet.bytes);
    }

    /// True if credits were granted to the partner that it has not received yet.
    fn has_new_credits(&self) -> bool {
        self.flows
            .iter()
            .any(|flow| flow.advertised != flow.granted)
    }

    /// See [`Layer::idle_units`].
    pub fn idle_units(&self) -> u64 {
        let limit = self.parameters.bytes_per_dllp;
        if self.nak_due
            || self.since_acknowledgement.received >= limit
            || self.since_credit_return.received >= limit
            || self.forced_credit_returns > 0
            || self.sender.is_resending()
            || self.has_queued_messages()
        {
            return 0;
        }
        let mut bytes = self
            .parameters
            .credit_repeat_bytes
            .saturating_sub(self.bytes_since_refresh);
        let mut limit_idle_bytes = |applies: bool, limit: u64, since: u64| {
            if applies {
                bytes = bytes.min(limit.saturating_sub(since));
            }
        };
        limit_idle_bytes(
            self.acknowledged != self.receiver.accepted_units(),
            limit,
            self.since_acknowledgement.sent,
        );
        limit_idle_bytes(self.has_new_credits(), limit, self.since_credit_return.sent);
        let retry_timeout_bytes = self.parameters.retry_timeout_bytes;
        limit_idle_bytes(
            !self.sender.is_settled(),
            retry_timeout_bytes,
            self.bytes_since_progress,
        );
        bytes.div_ceil(LINK_PACKET_BYTES)
    }

    /// See [`Layer::skip`].
    pub fn skip(&mut self, units: u64) {
        self.account_sent_bytes(units * LINK_PACKET_BYTES);
    }

    /// Accounts for `bytes` bytes sent.
    fn account_sent_bytes(&mut self, bytes: u64) {
        for counter in [
            &mut self.bytes_since_progress,
            &mut self.bytes_since_refresh,
            &mut self.since_acknowledgement.sent,
            &mut self.since_credit_return.sent,
        ] {
            *counter += bytes;
        }
    }

    /// Processes a received packet: a body, an acknowledgement or credits. A damaged body causes a NAK; other damaged
    /// packets are ignored.
    pub fn receive(&mut self, packet: &mut Packet<T>) {
        if packet.is_idle() {
            return;
        }
        self.since_acknowledgement.received += packet.bytes;
        self.since_credit_return.received += packet.bytes;
        let is_damaged = packet.apply_errors();
        self.damaged += u64::from(is_damaged);
        match &mut packet.content {
            Content::Body(number, body) => {
                let arrival = if is_damaged {
                    self.receiver.reject()
                } else {
                    self.receiver.receive(*number)
                };
                match arrival {
                    Arrival::New => self.receive_body(body.take()),
                    // Repeat the acknowledgement, which the partner has not received.
                    Arrival::Repeated => {
                        let received = &mut self.since_acknowledgement.received;
                        *received = (*received).max(self.parameters.bytes_per_dllp);
                    }
                    Arrival::Rejected => self.nak_due = true,
                    Arrival::Ignored => {}
                }
            }
            _ if is_damaged => {}
            Content::AckNak(number, is_nak) => {
                if self.sender.acknowledge(*number, *is_nak) {
                    self.bytes_since_progress = 0;
                }
            }
            Content::Credits(class, totals) => {
                let flow = &mut self.flows[usize::from(*class)];
                for kind in 0..2 {
                    let newly_granted = u64::from(totals[kind]) + COUNTER_MODULUS[kind]
                        - flow.granted_by_partner[kind] % COUNTER_MODULUS[kind];
                    flow.granted_by_partner[kind] += newly_granted % COUNTER_MODULUS[kind];
                }
            }
            Content::Idle => {}
        }
    }

    /// See [`Layer::retrain`].
    pub fn retrain(&mut self) {
        self.sender.go_back();
        self.forced_credit_returns = 3;
        self.acknowledged = self
            .acknowledged
            .min(self.receiver.accepted_units().saturating_sub(1));
    }

    /// See [`Layer::has_queued_messages`].
    #[inline]
    pub fn has_queued_messages(&self) -> bool {
        self.waiting_count > 0
    }

    /// See [`Layer::disable_replay`].
    pub fn disable_replay(&mut self) {
        self.sender.disable_replay();
    }

    /// See [`Layer::is_quiescent`].
    pub fn is_quiescent(&self) -> bool {
        self.sender.is_settled()
            && !self.has_queued_messages()
            && self.acknowledged == self.receiver.accepted_units()
            && !self.nak_due
            && self.forced_credit_returns == 0
            && !self.has_new_credits()
    }
}

impl Layer for End<Message> {
    type Unit = Packet<Message>;

    fn circuits(&self) -> &'static [&'static str] {
        &CLASS_NAMES
    }

    fn header_bits(&self, message: &Message) -> u64 {
        8 * self.parameters.headers[usize::from(message.circuit)]
    }

    fn send(&mut self, message: Message) -> Result<(), Rejection> {
        End::send(self, message)
    }

    fn received_circuits(&self) -> u32 {
        (0..3)
            .map(|class| u32::from(self.has_received(class)) << class)
            .sum()
    }

    fn backlog(&self, circuit: u8) -> usize {
        let waiting = self.waiting.get(usize::from(circuit));
        waiting.map_or(0, VecDeque::len)
    }

    fn peek(&mut self, circuit: u8) -> Option<Message> {
        End::peek(self, circuit.into()).cloned()
    }

    fn take(&mut self, circuit: u8) -> Option<Message> {
        End::take(self, circuit)
    }

    fn transmit(&mut self, packet: &mut Packet<Message>) {
        self.transmit_packet(packet);
    }

    fn idle_units(&self) -> u64 {
        End::idle_units(self)
    }

    fn idle_bits(&self) -> u64 {
        8 * LINK_PACKET_BYTES
    }

    fn skip(&mut self, units: u64) {
        End::skip(self, units);
    }

    fn receive(&mut self, packet: &mut Packet<Message>) {
        End::receive(self, packet);
    }

    fn disable_replay(&mut self) {
        End::disable_replay(self);
    }

    fn retrain(&mut self) {
        End::retrain(self);
    }

    fn has_queued_messages(&self) -> bool {
        End::has_queued_messages(self)
    }

    fn is_settled(&self) -> bool {
        self.sender.is_settled()
    }

    fn is_quiescent(&self) -> bool {
        End::is_quiescent(self)
    }

    /// Always empty: credit returns carry totals, so the next one compensates for a lost one.
    fn shortages(&self, _: &Self) -> Vec<Shortage> {
        Vec::new()
    }

    fn accepted_units(&self) -> u64 {
        self.receiver.accepted_units()
    }

    fn replayed(&self) -> u64 {
        self.sender.replayed
    }

    fn protocol_errors(&self) -> u64 {
        self.sender.protocol_errors + self.overrun
    }
}
