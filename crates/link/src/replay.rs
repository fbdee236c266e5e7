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
    unacknowledged: VecDeque<B>,
    /// True if new blocks are not kept.
    has_replay_disabled: bool,
    /// Number of the oldest unacknowledged block.
    base: u64,
    /// Number of the next block to send.
    next: u64,
    /// Number of the next new block.
    top: u64,
    acknowledged_by_bits: u64,
    /// True if a sync block must announce that the sender goes back.
    pub(crate) announce: bool,
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
            base: 0,
            next: 0,
            top: 0,
            acknowledged_by_bits: 0,
            announce: false,
            replayed: 0,
            protocol_errors: 0,
        }
    }
}

impl<B: Clone> Sender<B> {
    /// True if a new block may be sent.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.next == self.top && self.top - self.base < WINDOW
    }

    /// True if all blocks are acknowledged.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.base == self.top && !self.announce
    }

    #[inline]
    fn is_resending(&self) -> bool {
        self.next < self.top
    }

    /// Number of the next block, as sent in a sync block.
    pub fn number(&self) -> u8 {
        self.next as u8
    }

    /// Keeps a new block, which is sent now. Requires [`Sender::has_room`].
    #[inline]
    pub fn keep(&mut self, block: &B) {
        debug_assert!(self.has_room());
        if !self.has_replay_disabled {
            self.unacknowledged.push_back(block.clone());
        }
        self.top += 1;
        self.next = self.top;
    }

    /// Stops keeping new blocks, because nothing will be lost. They are only counted.
    pub fn forget(&mut self) {
        self.has_replay_disabled = true;
    }

    /// Returns the next block to resend, if any.
    pub fn resend_next(&mut self) -> Option<B> {
        let block = self
            .unacknowledged
            .get((self.next - self.base) as usize)?
            .clone();
        self.next += 1;
        self.replayed += 1;
        Some(block)
    }

    /// Kept blocks that a partner which has accepted `taken` blocks has not: in flight, or to be resent.
    pub fn in_flight(&self, taken: u64) -> impl Iterator<Item = &B> {
        let accepted = taken.saturating_sub(self.base) as usize;
        self.unacknowledged.iter().skip(accepted)
    }

    #[inline]
    fn acknowledge_up_to(&mut self, number: u64) {
        if number > self.top {
            self.protocol_errors += 1;
        } else if number > self.base {
            for _ in self.base..number.min(self.base + self.unacknowledged.len() as u64) {
                self.unacknowledged.pop_front();
            }
            self.base = number;
            if self.next < number {
                // The sender skips acknowledged blocks, so the last announced number is no longer that of the next
                // block.
                self.next = number;
                self.announce = true;
            }
        }
    }

    /// Processes an acknowledgement bit.
    #[inline]
    pub fn acknowledge_bit(&mut self) {
        self.acknowledged_by_bits += BLOCKS_PER_ACK;
        self.acknowledge_up_to(self.acknowledged_by_bits);
    }

    /// Processes a sync block: the partner expects block `receive`, and with `request` wants all blocks from there on
    /// again.
    pub fn sync(&mut self, receive: u8, request: bool) {
        let number = self.base + u64::from(receive.wrapping_sub(self.base as u8));
        self.acknowledge_up_to(number);
        if request && number <= self.top {
            self.next = number;
            self.announce = true;
        }
    }
}

/// Receiving side: accepts each block once and in order.
#[derive(Default)]
pub struct Receiver {
    expected: u64,
    /// Number of the next data block to arrive.
    coming: u64,
    lost: bool,
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
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Discards all blocks from now on, because they may not be the expected ones.
    pub fn lose(&mut self) {
        self.lost = true;
    }

    /// Counts an intact data block. Returns true if it is to be accepted.
    #[inline]
    pub fn take(&mut self) -> bool {
        if self.lost {
            return false;
        }
        let is_new = self.coming == self.expected;
        self.coming += 1;
        if is_new {
            self.expected += 1;
        } else {
            self.repeated += 1;
        }
        is_new
    }

    /// Processes a sync block: `transmit` is the number of the next data block.
    pub fn sync(&mut self, transmit: u8) {
        let ahead = transmit.wrapping_sub(self.expected as u8) as i8;
        self.coming = self.expected.wrapping_add_signed(ahead.into());
        self.lost = ahead > 0;
    }
}

/// Kind of the next transmission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<B> {
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
    acks_sent: u64,
    /// Number of accepted blocks reported in the last sync block.
    reported: u64,
    answer_due: bool,
    /// Slots since the last request or, without one, since the last new block.
    idle_interval: u32,
    retry_timeout_slots: u32,
    request: bool,
}

impl<B: Clone> Retry<B> {
    /// Creates the state of an end that repeats a request after `retry_timeout_slots` slots without an answer.
    pub fn new(retry_timeout_slots: u32) -> Retry<B> {
        Retry {
            sender: Sender::default(),
            receiver: Receiver::default(),
            acks_sent: 0,
            reported: 0,
            answer_due: false,
            idle_interval: 0,
            retry_timeout_slots,
            request: false,
        }
    }

    /// Processes a link retraining: blocks in flight in either direction may be lost. Both ends are notified.
    pub fn retrain(&mut self) {
        self.receiver.lose();
        self.request = true;
    }

    /// True if all blocks are sent and acknowledged, and no sync block or acknowledgement is due.
    pub fn is_at_rest(&self) -> bool {
        self.sender.is_settled()
            && !self.receiver.is_lost()
            && !self.answer_due
            && !self.request
            && !self.ack_is_due()
    }

    #[inline]
    fn ack_is_due(&self) -> bool {
        self.receiver.accepted_units() - self.acks_sent >= BLOCKS_PER_ACK
    }

    #[inline]
    fn is_timed_out(&self) -> bool {
        self.idle_interval.saturating_add(1) >= self.retry_timeout_slots
    }

    /// Number of idle slots before the next slot that is not idle, if nothing arrives and no new block is sent.
    #[inline]
    pub fn idle_slots(&self) -> u64 {
        if self.must_sync() || self.answer_due || self.ack_is_due() || self.sender.is_resending() {
            0
        } else if self.receiver.is_lost() || !self.sender.is_settled() {
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

    #[inline]
    fn must_sync(&self) -> bool {
        self.request || self.sender.announce || (self.is_timed_out() && self.receiver.is_lost())
    }

    /// Returns whether an acknowledgement is due, if a new block may use the next slot. The block may carry it.
    #[inline]
    pub fn ack_for_next_block(&self) -> Option<bool> {
        (!self.must_sync() && self.sender.has_room()).then(|| self.ack_is_due())
    }

    /// Enters a new block into the next slot, after [`Retry::ack_for_next_block`]. `ack` states whether it carries an
    /// acknowledgement.
    #[inline]
    pub fn enter(&mut self, block: &B, ack: bool) {
        self.acks_sent += if ack { BLOCKS_PER_ACK } else { 0 };
        self.sender.keep(block);
        self.idle_interval = match self.receiver.is_lost() {
            true => self.idle_interval.saturating_add(1),
            false => 0,
        };
    }

    /// Returns the transmission for the next slot, if no new block uses it.
    pub fn transmit(&mut self) -> Next<B> {
        let is_late = self.is_timed_out();
        if self.must_sync() {
            return self.sync();
        }
        self.idle_interval = self.idle_interval.saturating_add(1);
        if let Some(block) = self.sender.resend_next() {
            return Next::Block(block);
        }
        if self.answer_due || (is_late && !self.sender.is_settled()) {
            return self.sync();
        }
        Next::Idle
    }

    fn sync(&mut self) -> Next<B> {
        let sync = Sync {
            request: self.receiver.is_lost(),
            retry: self.sender.announce,
            transmit: self.sender.number(),
            receive: self.receiver.number(),
        };
        self.request = false;
        self.sender.announce = false;
        self.answer_due = false;
        self.reported = self.receiver.accepted_units();
        self.idle_interval = 0;
        Next::Sync(sync)
    }

    /// Processes a damaged block.
    pub fn damaged(&mut self) {
        self.receiver.damaged += 1;
        // Request a consecutive run of lost blocks only once.
        self.request |= !self.receiver.is_lost();
        self.receiver.lose();
    }

    /// Processes a sync block.
    pub fn synced(&mut self, sync: Sync) {
        self.sender.sync(sync.receive, sync.request);
        let was_lost = self.receiver.is_lost();
        self.receiver.sync(sync.transmit);
        self.request |= self.receiver.is_lost() && !was_lost;
        self.answer_due |= self.receiver.accepted_units() > self.reported;
    }

    /// Processes an intact data block, which may carry an acknowledgement. Returns true if it is to be accepted.
    #[inline]
    pub fn take(&mut self, ack: bool) -> bool {
        let is_new = self.receiver.take();
        if is_new && ack {
            self.sender.acknowledge_bit();
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fault found by the model `models/link_replay.m`: the sender silently skipped blocks. An acknowledgement arrived
    /// after the position had been announced, and the receiver accepted later blocks under the numbers of earlier ones.
    #[test]
    fn sender_announces_skipped_blocks() {
        let mut sender = Sender::default();
        let mut receiver = Receiver::default();
        for _ in 0..3 {
            sender.keep(&());
            assert!(receiver.take());
        }
        // A request from before the blocks arrived, its answer, and the current expectation.
        sender.sync(0, true);
        receiver.sync(sender.number());
        sender.announce = false;
        sender.sync(3, false);
        assert!(sender.announce);
        receiver.sync(sender.number());
        sender.keep(&());
        assert!(receiver.take());
        assert_eq!(receiver.accepted_units(), 4);
    }
}
