//! One end of an ECI link: circuits with credits, packed into blocks with replay.

use crate::block::{Circuits, SLOTS};
use crate::layer::{Layer, Message, Rejection, Shortage};
use crate::replay::{Retry, Transmission};
pub use crate::words::MAX_MESSAGE_WORDS;
use crate::words::{MessageSummary, Messages};
use crate::{Block, Control};

/// Number of circuits. The last one carries link management and needs no credits.
pub const CIRCUITS: usize = 14;
/// Words per credit.
pub const WORDS_PER_CREDIT: u32 = 8;
/// Clock frequency of the receiver, in Hz.
pub const CLOCK_HZ: u64 = 322_265_625;
/// Words per clock that the receiver takes from each circuit with data.
pub(crate) const WORDS_PER_CLOCK: u32 = 3;
/// Number of circuits that need credits: all but the last.
const CREDITED_CIRCUITS: usize = CIRCUITS - 1;

/// Parameters of an end.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Capacity of this end's receive buffer of each credited circuit, in words.
    pub buffers: [u32; CREDITED_CIRCUITS],
    /// Free words in the partner's buffer that a circuit needs before a message of any size may leave. At least the
    /// longest message of the circuit.
    pub required_words: [u32; CREDITED_CIRCUITS],
    /// Capacity of the transmit queue of each circuit, in words.
    pub queue_capacity: usize,
    /// Retry timeout in block slots, for unanswered requests and unacknowledged blocks. Must exceed the round trip, or
    /// blocks are replayed unnecessarily.
    pub retry_timeout_slots: u32,
    /// Words per clock that the receiver takes from each circuit.
    pub words_per_clock: [u32; CIRCUITS],
    /// Length of a message in words, from its circuit and its header.
    pub message_words: fn(u8, u64) -> usize,
}

impl Parameters {
    /// Parameters of ECI. Buffers hold 256 words on circuits 0 to 5 and 32 on the others. A message needs 17 words on
    /// circuits with data and 2 on the others. The receiver takes 3 words per clock from each circuit with data. From
    /// each other circuit it takes up to the 7 words that arrive per clock.
    pub const ECI: Parameters = Parameters {
        buffers: [256, 256, 256, 256, 256, 256, 32, 32, 32, 32, 32, 32, 32],
        required_words: [2, 2, 17, 17, 17, 17, 2, 2, 2, 2, 2, 2, 2],
        queue_capacity: 4 * MAX_MESSAGE_WORDS,
        retry_timeout_slots: 256,
        words_per_clock: [
            7,
            7,
            WORDS_PER_CLOCK,
            WORDS_PER_CLOCK,
            WORDS_PER_CLOCK,
            WORDS_PER_CLOCK,
            7,
            7,
            7,
            7,
            7,
            7,
            7,
            7,
        ],
        message_words: eci_words,
    };
}

/// Length of an ECI message in words. The mask of a message with data selects quarters of the line; an I/O store has
/// one word of data.
pub fn eci_words(circuit: u8, header: u64) -> usize {
    match circuit {
        2..=5 => 1 + 4 * (header >> 46 & 15).count_ones() as usize,
        // IOBST, IOBSTA, IOBSTP, IOBSTPA.
        0 if matches!(header >> 59, 2..=5) => 2,
        _ => 1,
    }
}

/// One end of an ECI link.
pub struct End {
    /// Parameters of this end.
    parameters: Parameters,
    /// Replay state; keeps blocks until they are acknowledged.
    pub retry: Retry<Block>,
    /// Messages to be sent, by circuit.
    waiting: [Messages; CIRCUITS],
    /// Number of words in all transmit queues.
    waiting_words: usize,
    /// Circuits with waiting words, as a bit set.
    waiting_circuits: u32,
    /// Free words in the partner's buffer of each credited circuit.
    credits: [u32; CREDITED_CIRCUITS],
    /// Circuit whose message is partly sent.
    partly_sent_circuit: Option<u8>,
    /// Circuit at which the round robin continues.
    next_circuit: usize,
    /// Received messages, by circuit.
    buffers: [Messages; CIRCUITS],
    /// Words of free buffer space not yet returned to the partner as credits.
    owed: [u32; CREDITED_CIRCUITS],
    /// Circuits that owe at least one credit, as a bit set.
    due_credits: u32,
    /// True if the next block returns credits of the high circuits, should both halves owe some.
    prefers_high_credits: bool,
    /// Circuits whose receive buffer starts with a complete message, as a bit set.
    complete_circuits: u32,
    /// Receiver clocks to take a message, by circuit and length in words.
    clocks_to_take: [[u8; MAX_MESSAGE_WORDS + 1]; CIRCUITS],
    /// Words received into a full buffer: the partner sent without credit.
    pub overrun: u64,
}

impl End {
    /// Creates an end without credits: it can send only after the partner has returned some.
    pub fn new(parameters: Parameters) -> End {
        End {
            retry: Retry::new(parameters.retry_timeout_slots),
            waiting: Default::default(),
            waiting_words: 0,
            waiting_circuits: 0,
            credits: [0; CREDITED_CIRCUITS],
            partly_sent_circuit: None,
            next_circuit: 0,
            buffers: Default::default(),
            owed: parameters.buffers,
            due_credits: (0..CREDITED_CIRCUITS)
                .filter(|&circuit| parameters.buffers[circuit] >= WORDS_PER_CREDIT)
                .fold(0, |due, circuit| due | 1 << circuit),
            prefers_high_credits: false,
            complete_circuits: 0,
            clocks_to_take: parameters.words_per_clock.map(|limit| {
                std::array::from_fn(|words| words.div_ceil(limit.max(1) as usize) as u8)
            }),
            overrun: 0,
            parameters,
        }
    }

    /// Free words in the transmit queue of a circuit.
    pub fn free_queue_words(&self, circuit: u8) -> usize {
        self.waiting.get(usize::from(circuit)).map_or(0, |queue| {
            self.parameters.queue_capacity.saturating_sub(queue.words())
        })
    }

    /// Number of words waiting in all transmit queues.
    pub fn waiting(&self) -> usize {
        self.waiting_words
    }

    /// Queues a message for transmission.
    ///
    /// # Errors
    /// The transmit queue is full, or the message is invalid for this circuit.
    pub fn send(&mut self, circuit: u8, words: &[u64]) -> Result<(), Rejection> {
        let header = *words.first().ok_or(Rejection::Malformed)?;
        self.admit(circuit, header, words.len())?;
        self.waiting[usize::from(circuit)].push(words);
        Ok(())
    }

    /// Checks a message and reserves queue space for it.
    #[inline]
    fn admit(&mut self, circuit: u8, header: u64, words: usize) -> Result<(), Rejection> {
        let index = usize::from(circuit);
        let required_words = self
            .parameters
            .required_words
            .get(index)
            .map_or(MAX_MESSAGE_WORDS, |&words| words as usize);
        let is_valid_length = index < CIRCUITS && words <= required_words.min(MAX_MESSAGE_WORDS);
        if !is_valid_length || (self.parameters.message_words)(circuit, header) != words {
            return Err(Rejection::Malformed);
        }
        if self.free_queue_words(circuit) < words {
            return Err(Rejection::Full);
        }
        self.waiting_words += words;
        self.waiting_circuits |= 1 << index;
        Ok(())
    }

    /// True if all messages are sent and acknowledged, and less than one credit is owed per circuit.
    pub fn is_quiescent(&self) -> bool {
        self.waiting_words == 0 && self.retry.is_quiescent() && self.due_credits == 0
    }

    /// Returns the block for the next slot.
    pub fn next_block(&mut self) -> Block {
        let mut block = Block::default();
        self.transmit(&mut block);
        block
    }

    /// Selects the circuit whose message is sent next, and consumes its credits. `None` if all lack words or credits.
    #[inline]
    fn next_message(&mut self) -> Option<u8> {
        // Round robin: the circuits from `next_circuit` on, then the others.
        let (circuits_from_next, all_circuits) = (
            self.waiting_circuits >> self.next_circuit << self.next_circuit,
            self.waiting_circuits,
        );
        let mut visited = 0;
        for mut circuits in [circuits_from_next, all_circuits] {
            circuits &= !visited;
            visited |= circuits;
            while circuits != 0 {
                let circuit = circuits.trailing_zeros() as usize;
                circuits &= circuits - 1;
                if let Some(credits) = self.credits.get_mut(circuit) {
                    if *credits < self.parameters.required_words[circuit] {
                        continue;
                    }
                    let words = self.waiting[circuit].first().map_or(0, |first| first.total);
                    *credits -= words as u32;
                }
                self.next_circuit = (circuit + 1) % CIRCUITS;
                return Some(circuit as u8);
            }
        }
        None
    }

    /// Packs a new data block, if words, credits or an acknowledgement are due. Returns false if nothing is due.
    #[inline]
    fn pack(&mut self, ack: bool, block: &mut Block) -> bool {
        let mut circuits = Circuits::NONE;
        let (mut slot, mut clocks) = (0, 0);
        while slot < SLOTS && self.waiting_words > 0 {
            let Some(circuit) = self
                .partly_sent_circuit
                .take()
                .or_else(|| self.next_message())
            else {
                break;
            };
            let waiting = &mut self.waiting[usize::from(circuit)];
            let Some((summary, count)) = waiting.dequeue_words(&mut block.slots_mut()[slot..])
            else {
                break;
            };
            circuits.fill(slot, count, circuit);
            slot += count;
            self.waiting_words -= count;
            if waiting.words() == 0 {
                self.waiting_circuits &= !(1 << circuit);
            }
            if summary.remaining > count {
                self.partly_sent_circuit = Some(circuit);
            } else {
                let message_clocks = self.clocks_to_take[usize::from(circuit)][summary.total];
                clocks = if clocks == 0 {
                    message_clocks
                } else {
                    message_clocks.min(clocks)
                };
            }
        }
        let (low, high) = (self.due_credits & 0xff, self.due_credits >> 8);
        if slot == 0 && self.due_credits == 0 && !ack {
            return false;
        }
        // Alternate if both halves owe credits.
        let high = high != 0 && (low == 0 || self.prefers_high_credits);
        self.prefers_high_credits = !high;
        let first_circuit = if high { 8 } else { 0 };
        let credits = (self.due_credits >> first_circuit) as u8;
        let mut remaining_credits = u32::from(credits) << first_circuit;
        while remaining_credits != 0 {
            let circuit = remaining_credits.trailing_zeros() as usize;
            remaining_credits &= remaining_credits - 1;
            self.owed[circuit] -= WORDS_PER_CREDIT;
            if self.owed[circuit] < WORDS_PER_CREDIT {
                self.due_credits &= !(1 << circuit);
            }
        }
        block.set_control(Control::Data {
            ack,
            high,
            credits,
            circuits,
        });
        block.clocks = clocks;
        true
    }

    /// Processes a received block: acknowledgements, credits and words, or replay control. Words without free buffer
    /// space are counted in [`End::overrun`].
    #[inline]
    pub fn receive(&mut self, block: &Block) {
        match block.control() {
            None => self.retry.record_damaged(),
            Some(Control::Idle) => {}
            Some(Control::Sync(sync)) => self.retry.receive_sync(sync),
            Some(Control::Data {
                ack,
                high,
                credits,
                circuits,
            }) => {
                if self.retry.accept(ack) {
                    self.receive_data(high, credits, circuits, block.words());
                }
            }
        }
    }

    /// Processes the contents of an accepted data block: credits, and words for the receive buffers.
    #[inline]
    fn receive_data(&mut self, high: bool, credits: u8, circuits: Circuits, words: &[u64]) {
        let first_circuit = if high { 8 } else { 0 };
        let mut remaining_credits = credits;
        while remaining_credits != 0 {
            let circuit = first_circuit + remaining_credits.trailing_zeros() as usize;
            remaining_credits &= remaining_credits - 1;
            // The high half has fewer circuits than bits.
            if let Some(available) = self.credits.get_mut(circuit) {
                *available += WORDS_PER_CREDIT;
            }
        }
        let mut slot = 0;
        while slot < SLOTS {
            let (start, circuit) = (slot, circuits.circuit_of(slot));
            let run_length = circuits.run_length(slot);
            slot += run_length;
            let Some(buffer) = self.buffers.get_mut(usize::from(circuit)) else {
                continue;
            };
            let size = self.parameters.buffers.get(usize::from(circuit));
            let free_words = size.map_or(run_length, |&size| {
                (size as usize).saturating_sub(buffer.words())
            });
            let accepted = run_length.min(free_words);
            self.overrun += (run_length - accepted) as u64;
            let word_count = self.parameters.message_words;
            buffer.extend(&words[start..start + accepted], |header| {
                word_count(circuit, header)
            });
            self.complete_circuits |= u32::from(buffer.has_complete_message()) << circuit;
        }
    }

    /// Takes at most `limit` words from the receive buffer of a circuit, as one receiver clock does. Calls `deliver`
    /// for each message that is then complete. The freed space is returned to the partner as credits.
    pub fn drain(&mut self, circuit: u8, limit: usize, deliver: impl FnMut(&[u64])) {
        let buffer = &mut self.buffers[usize::from(circuit)];
        let words_before = buffer.words();
        buffer.drain(limit, deliver);
        let removed = words_before - buffer.words();
        self.release_words(circuit, removed);
    }

    /// Accounts for `words` words taken from a circuit.
    #[inline]
    fn release_words(&mut self, circuit: u8, words: usize) {
        if !self.buffers[usize::from(circuit)].has_complete_message() {
            self.complete_circuits &= !(1 << circuit);
        }
        self.add_owed(circuit.into(), words as u32);
    }

    /// Adds `words` to the space to be returned to the partner as credits.
    #[inline]
    fn add_owed(&mut self, circuit: usize, words: u32) {
        if let Some(owed) = self.owed.get_mut(circuit) {
            *owed += words;
            self.due_credits |= u32::from(*owed >= WORDS_PER_CREDIT) << circuit;
        }
    }

    /// One receiver clock: takes words from each circuit at its rate.
    pub fn clock(&mut self, mut deliver: impl FnMut(u8, &[u64])) {
        for circuit in 0..CIRCUITS as u8 {
            let limit = self.parameters.words_per_clock[usize::from(circuit)] as usize;
            self.drain(circuit, limit, |words| deliver(circuit, words));
        }
    }

    /// Message words and words of credit of a circuit, in blocks that `partner` has not accepted yet.
    fn in_flight(&self, partner: &End, circuit: usize) -> (u64, u64) {
        let accepted = partner.retry.receiver.accepted_units();
        let (mut words, mut credit_words) = (0, 0);
        for block in self.retry.sender.in_flight(accepted) {
            if let Some(Control::Data {
                high,
                credits,
                circuits,
                ..
            }) = block.control()
            {
                let is_on_circuit =
                    |&slot: &usize| usize::from(circuits.circuit_of(slot)) == circuit;
                words += (0..SLOTS).filter(is_on_circuit).count() as u64;
                if high == (circuit >= 8) {
                    credit_words +=
                        u64::from(credits >> (circuit % 8) & 1) * u64::from(WORDS_PER_CREDIT);
                }
            }
        }
        (words, credit_words)
    }
}

/// Converts to the common message type of all links. The label is the low 40 bits of the header.
#[inline]
fn message(circuit: u8, summary: MessageSummary) -> Message {
    Message {
        circuit,
        bytes: 8 * (summary.total - 1) as u16,
        label: summary.header & 0xff_ffff_ffff,
    }
}

/// Names of the circuits, by their numbers.
const CIRCUIT_NAMES: [&str; CIRCUITS] = [
    "I/O requests",
    "I/O responses",
    "requests with data, even",
    "requests with data, odd",
    "responses with data, even",
    "responses with data, odd",
    "requests, even",
    "requests, odd",
    "forwards, even",
    "forwards, odd",
    "responses, even",
    "responses, odd",
    "coprocessor and interrupts",
    "link management",
];

impl Layer for End {
    type Unit = Block;

    fn circuits(&self) -> &'static [&'static str] {
        &CIRCUIT_NAMES
    }

    fn header_bits(&self, _: &Message) -> u64 {
        64
    }

    #[inline]
    fn send(&mut self, message: Message) -> Result<(), Rejection> {
        let quarters = usize::from(message.bytes) / 32;
        if !message.bytes.is_multiple_of(32) || quarters > 4 || message.label >> 40 != 0 {
            return Err(Rejection::Malformed);
        }
        let header = ((1 << quarters) - 1) << 46 | message.label;
        let words = 1 + 4 * quarters;
        self.admit(message.circuit, header, words)?;
        self.waiting[usize::from(message.circuit)].push_zero_payload(header, words);
        Ok(())
    }

    #[inline]
    fn received_circuits(&self) -> u32 {
        self.complete_circuits
    }

    #[inline]
    fn backlog(&self, circuit: u8) -> usize {
        let waiting = self.waiting.get(usize::from(circuit));
        waiting.map_or(0, Messages::words)
    }

    #[inline]
    fn peek(&mut self, circuit: u8) -> Option<Message> {
        let buffer = self.buffers.get(usize::from(circuit))?;
        let summary = buffer.first().filter(|summary| summary.is_complete)?;
        Some(message(circuit, summary))
    }

    #[inline]
    fn clocks(&self, message: &Message) -> u32 {
        let words = usize::from(message.bytes) / 8 + 1;
        self.clocks_to_take[usize::from(message.circuit)][words.min(MAX_MESSAGE_WORDS)].into()
    }

    #[inline]
    fn take(&mut self, circuit: u8) -> Option<Message> {
        let buffer = self.buffers.get_mut(usize::from(circuit))?;
        let summary = buffer.take();
        let Some(summary) = summary else {
            // Free the space of a partly received message, so that the remainder can arrive.
            self.drain(circuit, MAX_MESSAGE_WORDS, |_| {});
            return None;
        };
        self.release_words(circuit, summary.remaining);
        Some(message(circuit, summary))
    }

    #[inline]
    fn transmit(&mut self, block: &mut Block) {
        *block = Block::default();
        if let Some(ack) = self.retry.ack_for_next_block() {
            if self.pack(ack, block) {
                return self.retry.record_sent(block, ack);
            }
        }
        match self.retry.transmit() {
            Transmission::Block(resent) => *block = resent,
            Transmission::Sync(sync) => block.set_control(Control::Sync(sync)),
            Transmission::Idle => block.set_control(Control::Idle),
        }
    }

    #[inline]
    fn idle_units(&self) -> u64 {
        if self.waiting_words > 0 || self.due_credits != 0 {
            0
        } else {
            self.retry.idle_slots()
        }
    }

    #[inline]
    fn units_before_message(&self) -> (u64, u32) {
        // A partly sent message is completed before others; otherwise the shortest first message may be next.
        let mut circuits = match self.partly_sent_circuit {
            Some(circuit) => 1 << circuit,
            None => self.waiting_circuits,
        };
        let (mut min_words, mut clocks) = (MAX_MESSAGE_WORDS, 1);
        while circuits != 0 {
            let circuit = circuits.trailing_zeros() as usize;
            circuits &= circuits - 1;
            if let Some(first) = self.waiting[circuit].first() {
                min_words = min_words.min(first.remaining);
                if first.remaining == self.waiting_words {
                    clocks = self.clocks_to_take[circuit][first.total].into();
                }
            }
        }
        (((min_words - 1) / SLOTS) as u64, clocks)
    }

    #[inline]
    fn idle_bits(&self) -> u64 {
        Block::BITS
    }

    fn skip(&mut self, units: u64) {
        self.retry.skip(units);
    }

    #[inline]
    fn receive(&mut self, block: &mut Block) {
        End::receive(self, block);
    }

    fn disable_replay(&mut self) {
        self.retry.sender.disable_replay();
    }

    fn retrain(&mut self) {
        self.retry.retrain();
    }

    #[inline]
    fn has_queued_messages(&self) -> bool {
        self.waiting_words > 0
    }

    fn is_settled(&self) -> bool {
        self.retry.sender.is_settled()
    }

    fn is_quiescent(&self) -> bool {
        End::is_quiescent(self)
    }

    fn shortages(&self, partner: &End) -> Vec<Shortage> {
        let lost = |circuit: usize| {
            // The unsent words of a partly sent message have already consumed credit.
            let is_partly_sent = self
                .partly_sent_circuit
                .is_some_and(|c| usize::from(c) == circuit);
            let partly_sent = self.waiting[circuit].first().filter(|_| is_partly_sent);
            let accounted = u64::from(self.credits[circuit])
                + partly_sent.map_or(0, |first| first.remaining as u64)
                + self.in_flight(partner, circuit).0
                + partner.buffers[circuit].words() as u64
                + u64::from(partner.owed[circuit])
                + partner.in_flight(self, circuit).1;
            i64::from(partner.parameters.buffers[circuit]) - accounted as i64
        };
        (0..CREDITED_CIRCUITS)
            .map(|circuit| Shortage {
                circuit: circuit as u8,
                lost: lost(circuit),
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
