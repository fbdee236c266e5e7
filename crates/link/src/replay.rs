//! Go-back-n retry without sequence numbers on blocks. The sender keeps each block until it is acknowledged, and
//! resends from the first lost one.
//!
//! Data blocks carry no number; both ends count them. After a damaged block, the receiver discards all blocks until a
//! sync block carries the number of the next one. A block is resent with identical bits, so its credits and
//! acknowledgements are accepted once, like its words.

use std::collections::VecDeque;

/// Maximum number of unacknowledged blocks. Numbers have 8 bits. A sync block may be as far behind the expected number
/// as ahead of it, because a repeated request is answered twice. The sum of both distances must stay below 256.
pub const WINDOW: u64 = 127;
/// Blocks per acknowledgement bit. Larger than 1, so that blocks sent only to acknowledge do not cause each other
/// forever.
pub const BLOCKS_PER_ACK: u64 = 8;

/// Sending side: keeps unacknowledged blocks.
pub struct Sender<B> {
    /// Blocks from `oldest` on, in order; empty with replay disabled.
    unacknowledged: VecDeque<B>,
    /// True if new blocks are not kept.
    has_replay_disabled: bool,
    /// Number of the oldest unacknowledged block.
    oldest: u64,
    /// Number of the next block to send.
    next_sent: u64,
    /// Number of the next new block.
    next_new: u64,
    /// Number of blocks acknowledged by acknowledgement bits alone, without those of sync blocks.
    bit_acknowledged: u64,
    /// True if a sync block must announce that the sender goes back.
    pub(crate) announces_go_back: bool,
    /// Blocks resent.
    pub replayed: u64,
    /// Acknowledgements of blocks never sent, caused by undetected errors.
    pub protocol_errors: u64,
}

impl<B> Default for Sender<B> {
    fn default() -> Sender<B> {
        Sender {
            unacknowledged: VecDeque::new(),
            has_replay_disabled: false,
            oldest: 0,
            next_sent: 0,
            next_new: 0,
            bit_acknowledged: 0,
            announces_go_back: false,
            replayed: 0,
            protocol_errors: 0,
        }
    }
}

impl<B: Clone> Sender<B> {
    /// True if a new block may be sent: none is being resent, and the window is not full.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.next_sent == self.next_new && self.next_new - self.oldest < WINDOW
    }

    /// True if all blocks are acknowledged, and no sync block must announce that the sender goes back.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.oldest == self.next_new && !self.announces_go_back
    }

    /// True if blocks are being resent.
    #[inline]
    fn is_resending(&self) -> bool {
        self.next_sent < self.next_new
    }

    /// Number of the next block, as sent in a sync block.
    pub fn number(&self) -> u8 {
        self.next_sent as u8
    }

    /// Keeps a new block, which is sent now. Requires [`Sender::has_room`].
    #[inline]
    pub fn keep(&mut self, block: &B) {
        debug_assert!(self.has_room());
        if !self.has_replay_disabled {
            self.unacknowledged.push_back(block.clone());
        }
        self.next_new += 1;
        self.next_sent = self.next_new;
    }

    /// Stops keeping new blocks, because nothing will be lost. They are only counted.
    pub fn disable_replay(&mut self) {
        self.has_replay_disabled = true;
    }

    /// Returns the next block to resend, if any.
    pub fn resend_next(&mut self) -> Option<B> {
        let block = self
            .unacknowledged
            .get((self.next_sent - self.oldest) as usize)?
            .clone();
        self.next_sent += 1;
        self.replayed += 1;
        Some(block)
    }

    /// Kept blocks that are in flight or to be resent, if the partner has accepted `accepted` blocks.
    pub fn in_flight(&self, accepted: u64) -> impl Iterator<Item = &B> {
        let accepted_kept = accepted.saturating_sub(self.oldest) as usize;
        self.unacknowledged.iter().skip(accepted_kept)
    }

    /// Processes the acknowledgement of all blocks before `number`.
    #[inline]
    fn acknowledge_up_to(&mut self, number: u64) {
        if number > self.next_new {
            self.protocol_errors += 1;
        } else if number > self.oldest {
            for _ in self.oldest..number.min(self.oldest + self.unacknowledged.len() as u64) {
                self.unacknowledged.pop_front();
            }
            self.oldest = number;
            if self.next_sent < number {
                // The sender skips acknowledged blocks, so the last announced number is no longer that of the next
                // block.
                self.next_sent = number;
                self.announces_go_back = true;
            }
        }
    }

    /// Processes an acknowledgement bit, which acknowledges [`BLOCKS_PER_ACK`] more blocks.
    #[inline]
    pub fn acknowledge_bit(&mut self) {
        self.bit_acknowledged += BLOCKS_PER_ACK;
        self.acknowledge_up_to(self.bit_acknowledged);
    }

    /// Processes a sync block: the partner expects block `receive`, and with `request` wants all blocks from there on
    /// again.
    pub fn receive_sync(&mut self, receive: u8, request: bool) {
        let number = self.oldest + u64::from(receive.wrapping_sub(self.oldest as u8));
        self.acknowledge_up_to(number);
        if request && number <= self.next_new {
            self.next_sent = number;
            self.announces_go_back = true;
        }
    }
}

/// Receiving side: accepts each block once and in order.
#[derive(Default)]
pub struct Receiver {
    /// Number of blocks accepted, which is the number of the next one.
    expected: u64,
    /// Number of the next data block to arrive.
    next_arrival_number: u64,
    /// True from a lost block until a sync block announces the expected one.
    is_discarding: bool,
    /// Blocks with an invalid checksum.
    pub damaged: u64,
    /// Blocks received again after they were accepted.
    pub repeated: u64,
}

impl Receiver {
    /// Number of the next block to accept, as sent in a sync block.
    pub fn number(&self) -> u8 {
        self.expected as u8
    }

    /// Number of blocks accepted.
    pub fn accepted_units(&self) -> u64 {
        self.expected
    }

    /// True if all blocks are discarded until the next sync block.
    #[inline]
    pub fn is_discarding(&self) -> bool {
        self.is_discarding
    }

    /// Discards all blocks from now on, because they may not be the expected ones.
    pub fn start_discarding(&mut self) {
        self.is_discarding = true;
    }

    /// Counts an intact data block. Returns true if it is to be accepted.
    #[inline]
    pub fn accept(&mut self) -> bool {
        if self.is_discarding {
            return false;
        }
        let is_new = self.next_arrival_number == self.expected;
        self.next_arrival_number += 1;
        if is_new {
            self.expected += 1;
        } else {
            self.repeated += 1;
        }
        is_new
    }

    /// Processes a sync block: `transmit` is the number of the next data block.
    pub fn receive_sync(&mut self, transmit: u8) {
        let ahead = transmit.wrapping_sub(self.expected as u8) as i8;
        self.next_arrival_number = self.expected.wrapping_add_signed(ahead.into());
        self.is_discarding = ahead > 0;
    }
}

/// Kind of the next transmission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmission<B> {
    /// A sync block.
    Sync(Sync),
    /// A resent data block.
    Block(B),
    /// An idle block.
    Idle,
}

/// Replay state of both directions, sent in a sync block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync {
    /// True to request all blocks from `receive` on again.
    pub request: bool,
    /// True if the sender goes back.
    pub retry: bool,
    /// Number of the next data block sent.
    pub transmit: u8,
    /// Number of the next data block to be accepted.
    pub receive: u8,
}

/// Replay state of one end, for both directions.
pub struct Retry<B> {
    /// The outgoing direction.
    pub sender: Sender<B>,
    /// The incoming direction.
    pub receiver: Receiver,
    /// Number of blocks acknowledged by the acknowledgement bits sent.
    acks_sent: u64,
    /// Number of accepted blocks reported in the last sync block.
    reported_accepted: u64,
    /// True if the partner waits for a sync block with the number of accepted blocks.
    sync_reply_is_due: bool,
    /// Slots since the last request or, without one, since the last new block.
    idle_interval: u32,
    /// Timeout after which a request or an unacknowledged block causes a sync block, in slots.
    retry_timeout_slots: u32,
    /// True if a sync block must request lost blocks.
    request_is_due: bool,
}

impl<B: Clone> Retry<B> {
    /// Creates the state of an end that repeats a request after `retry_timeout_slots` slots without an answer.
    pub fn new(retry_timeout_slots: u32) -> Retry<B> {
        Retry {
            sender: Sender::default(),
            receiver: Receiver::default(),
            acks_sent: 0,
            reported_accepted: 0,
            sync_reply_is_due: false,
            idle_interval: 0,
            retry_timeout_slots,
            request_is_due: false,
        }
    }

    /// Processes a link retraining: blocks in flight in either direction may be lost. Both ends are notified.
    pub fn retrain(&mut self) {
        self.receiver.start_discarding();
        self.request_is_due = true;
    }

    /// True if all blocks are sent and acknowledged, and no sync block or acknowledgement is due.
    pub fn is_quiescent(&self) -> bool {
        self.sender.is_settled()
            && !self.receiver.is_discarding()
            && !self.sync_reply_is_due
            && !self.request_is_due
            && !self.ack_is_due()
    }

    /// True if enough blocks were accepted for another acknowledgement bit.
    #[inline]
    fn ack_is_due(&self) -> bool {
        self.receiver.accepted_units() - self.acks_sent >= BLOCKS_PER_ACK
    }

    /// True if the retry timeout ends with the next slot.
    #[inline]
    fn is_timed_out(&self) -> bool {
        self.idle_interval.saturating_add(1) >= self.retry_timeout_slots
    }

    /// Number of idle slots before the next slot that is not idle, if nothing arrives and no new block is sent.
    #[inline]
    pub fn idle_slots(&self) -> u64 {
        if self.must_send_sync()
            || self.sync_reply_is_due
            || self.ack_is_due()
            || self.sender.is_resending()
        {
            0
        } else if self.receiver.is_discarding() || !self.sender.is_settled() {
            u64::from(
                self.retry_timeout_slots
                    .saturating_sub(1)
                    .saturating_sub(self.idle_interval),
            )
        } else {
            u64::MAX
        }
    }

    /// Accounts for `slots` idle slots.
    pub fn skip(&mut self, slots: u64) {
        let slots = u32::try_from(slots).unwrap_or(u32::MAX);
        self.idle_interval = self.idle_interval.saturating_add(slots);
    }

    /// True if a sync block precedes all other blocks.
    #[inline]
    fn must_send_sync(&self) -> bool {
        self.request_is_due
            || self.sender.announces_go_back
            || (self.is_timed_out() && self.receiver.is_discarding())
    }

    /// Returns whether an acknowledgement is due, if a new block may use the next slot. The block may carry it.
    #[inline]
    pub fn ack_for_next_block(&self) -> Option<bool> {
        (!self.must_send_sync() && self.sender.has_room()).then(|| self.ack_is_due())
    }

    /// Records that a new block uses the next slot, after [`Retry::ack_for_next_block`]. `ack` states if it carries an
    /// acknowledgement.
    #[inline]
    pub fn record_sent(&mut self, block: &B, ack: bool) {
        self.acks_sent += if ack { BLOCKS_PER_ACK } else { 0 };
        self.sender.keep(block);
        self.idle_interval = match self.receiver.is_discarding() {
            true => self.idle_interval.saturating_add(1),
            false => 0,
        };
    }

    /// Returns the transmission for the next slot, if no new block uses it.
    pub fn transmit(&mut self) -> Transmission<B> {
        let is_late = self.is_timed_out();
        if self.must_send_sync() {
            return self.next_sync();
        }
        self.idle_interval = self.idle_interval.saturating_add(1);
        if let Some(block) = self.sender.resend_next() {
            return Transmission::Block(block);
        }
        if self.sync_reply_is_due || (is_late && !self.sender.is_settled()) {
            return self.next_sync();
        }
        Transmission::Idle
    }

    /// Returns a sync block with the state of both directions, which settles all that is due.
    fn next_sync(&mut self) -> Transmission<B> {
        let sync = Sync {
            request: self.receiver.is_discarding(),
            retry: self.sender.announces_go_back,
            transmit: self.sender.number(),
            receive: self.receiver.number(),
        };
        self.request_is_due = false;
        self.sender.announces_go_back = false;
        self.sync_reply_is_due = false;
        self.reported_accepted = self.receiver.accepted_units();
        self.idle_interval = 0;
        Transmission::Sync(sync)
    }

    /// Processes a damaged block. All blocks are then discarded until a sync block announces the expected one.
    pub fn record_damaged(&mut self) {
        self.receiver.damaged += 1;
        // Request a consecutive run of lost blocks only once.
        self.request_is_due |= !self.receiver.is_discarding();
        self.receiver.start_discarding();
    }

    /// Processes a sync block.
    pub fn receive_sync(&mut self, sync: Sync) {
        self.sender.receive_sync(sync.receive, sync.request);
        let was_discarding = self.receiver.is_discarding();
        self.receiver.receive_sync(sync.transmit);
        self.request_is_due |= self.receiver.is_discarding() && !was_discarding;
        self.sync_reply_is_due |= self.receiver.accepted_units() > self.reported_accepted;
    }

    /// Processes an intact data block, which may carry an acknowledgement. Returns true if it is to be accepted.
    #[inline]
    pub fn accept(&mut self, ack: bool) -> bool {
        let is_new = self.receiver.accept();
        if is_new && ack {
            self.sender.acknowledge_bit();
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::{Receiver, Sender};

    /// Fault found by the model `models/link_replay.m`: the sender silently skipped blocks. An acknowledgement arrived
    /// after the position had been announced, and the receiver accepted later blocks under the numbers of earlier ones.
    #[test]
    fn sender_announces_skipped_blocks() {
        let mut sender = Sender::default();
        let mut receiver = Receiver::default();
        for _ in 0..3 {
            sender.keep(&());
            assert!(receiver.accept());
        }
        // A request sent before the blocks arrived, the sync block in reply, and the partner's current state.
        sender.receive_sync(0, true);
        receiver.receive_sync(sender.number());
        sender.announces_go_back = false;
        sender.receive_sync(3, false);
        assert!(sender.announces_go_back);
        receiver.receive_sync(sender.number());
        sender.keep(&());
        assert!(receiver.accept());
        assert_eq!(receiver.accepted_units(), 4);
    }
}
