//! Go-back-n without numbers on blocks: what was sent stays until it is acknowledged, and is sent again from where the partner lost it.
//!
//! Data blocks carry no number; both ends count them. After a damaged block the receiver counts nothing until a sync block
//! tells the number of the next one. A block is sent again with the bits it had, so credits and acknowledgements in it are
//! taken once, as its words are.

use std::collections::VecDeque;

/// Blocks that may be under way. Numbers have 8 bits, and a sync block may stand as far before what the receiver expects as
/// after it (a request that was repeated is answered twice), so both distances together must stay below 256.
pub const WINDOW: u64 = 127;
/// Blocks that one acknowledging bit stands for. More than one, so that blocks sent only to acknowledge die out.
pub const BLOCKS_PER_ACK: u64 = 8;

/// The side that keeps what was sent.
pub struct Sender<B> {
    kept: VecDeque<B>,
    /// Whether new blocks are not kept.
    forgets: bool,
    /// The oldest that is not acknowledged.
    base: u64,
    /// The next one to go.
    next: u64,
    /// The number that the next new block gets.
    top: u64,
    by_bits: u64,
    /// A sync block has to say that the stream goes back.
    pub(crate) announce: bool,
    /// Blocks sent again.
    pub replayed: u64,
    /// Acknowledgements of what was never sent: an error that the checksum missed.
    pub impossible: u64,
}

impl<B> Default for Sender<B> {
    fn default() -> Sender<B> {
        Sender {
            kept: VecDeque::new(),
            forgets: false,
            base: 0,
            next: 0,
            top: 0,
            by_bits: 0,
            announce: false,
            replayed: 0,
            impossible: 0,
        }
    }
}

impl<B: Clone> Sender<B> {
    /// Whether a new block may be sent.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.next == self.top && self.top - self.base < WINDOW
    }

    /// Whether everything sent is acknowledged.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.base == self.top && !self.announce
    }

    #[inline]
    fn is_going_back(&self) -> bool {
        self.next < self.top
    }

    /// The number of the next block, as a sync block tells it.
    pub fn number(&self) -> u8 {
        self.next as u8
    }

    /// Keeps a new block, which leaves now. Only with [`Sender::has_room`].
    #[inline]
    pub fn keep(&mut self, block: &B) {
        debug_assert!(self.has_room());
        if !self.forgets {
            self.kept.push_back(block.clone());
        }
        self.top += 1;
        self.next = self.top;
    }

    /// Nothing is going to be sent again: new blocks are only counted.
    pub fn forget(&mut self) {
        self.forgets = true;
    }

    /// The next block to send again, if there is one.
    pub fn again(&mut self) -> Option<B> {
        let block = self.kept.get((self.next - self.base) as usize)?.clone();
        self.next += 1;
        self.replayed += 1;
        Some(block)
    }

    /// What is on its way to a partner that has taken `taken`: to go, going, or to go again.
    pub fn under_way(&self, taken: u64) -> impl Iterator<Item = &B> {
        let known = taken.saturating_sub(self.base) as usize;
        self.kept.iter().skip(known)
    }

    #[inline]
    fn acknowledged(&mut self, to: u64) {
        if to > self.top {
            self.impossible += 1;
        } else if to > self.base {
            for _ in self.base..to.min(self.base + self.kept.len() as u64) {
                self.kept.pop_front();
            }
            self.base = to;
            if self.next < to {
                // The stream skips what has come meanwhile: the number told last is no longer the next block's.
                self.next = to;
                self.announce = true;
            }
        }
    }

    /// An acknowledging bit has come.
    #[inline]
    pub fn bit(&mut self) {
        self.by_bits += BLOCKS_PER_ACK;
        self.acknowledged(self.by_bits);
    }

    /// A sync block has come: the partner expects `receive`, and with `request` wants everything from there on again.
    pub fn sync(&mut self, receive: u8, request: bool) {
        let to = self.base + u64::from(receive.wrapping_sub(self.base as u8));
        self.acknowledged(to);
        if request && to <= self.top {
            self.next = to;
            self.announce = true;
        }
    }
}

/// The side that takes each block once and in order.
#[derive(Default)]
pub struct Receiver {
    expected: u64,
    /// The number of the next numbered block that comes.
    coming: u64,
    lost: bool,
    /// Blocks whose checksum was wrong.
    pub damaged: u64,
    /// Blocks that came again though they had been taken.
    pub repeated: u64,
}

impl Receiver {
    /// The number of the next block that is taken.
    pub fn number(&self) -> u8 {
        self.expected as u8
    }

    /// Blocks taken so far.
    pub fn taken(&self) -> u64 {
        self.expected
    }

    /// Whether nothing counts until a sync block comes.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// What comes may not be what was sent: nothing counts from here on.
    pub fn lose(&mut self) {
        self.lost = true;
    }

    /// A numbered block has come whole; whether it is to be taken.
    #[inline]
    pub fn take(&mut self) -> bool {
        if self.lost {
            return false;
        }
        let new = self.coming == self.expected;
        self.coming += 1;
        if new {
            self.expected += 1;
        } else {
            self.repeated += 1;
        }
        new
    }

    /// A sync block has come: `transmit` is the number of the next block.
    pub fn sync(&mut self, transmit: u8) {
        let ahead = transmit.wrapping_sub(self.expected as u8) as i8;
        self.coming = self.expected.wrapping_add_signed(ahead.into());
        self.lost = ahead > 0;
    }
}

/// What goes out next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<B> {
    /// Where both directions are.
    Sync(Sync),
    /// A numbered block again.
    Block(B),
    /// Nothing.
    Idle,
}

/// Where both directions are; not numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync {
    /// Blocks from `receive` on are wanted again.
    pub request: bool,
    /// The stream goes back.
    pub retry: bool,
    /// The number of the next numbered block.
    pub transmit: u8,
    /// The number of the next block that is accepted.
    pub receive: u8,
}

/// Both directions of one end: what is to be sent next, and what of that which comes is taken.
pub struct Retry<B> {
    /// The outgoing direction.
    pub sender: Sender<B>,
    /// The incoming direction.
    pub receiver: Receiver,
    acks_sent: u64,
    /// What the partner knows to have arrived by the last sync block.
    told: u64,
    answer: bool,
    /// Slots since the last request or, without one, since something numbered left.
    quiet: u32,
    patience: u32,
    request: bool,
}

impl<B: Clone> Retry<B> {
    /// An end that asks again after `patience` slots without an answer.
    pub fn new(patience: u32) -> Retry<B> {
        Retry {
            sender: Sender::default(),
            receiver: Receiver::default(),
            acks_sent: 0,
            told: 0,
            answer: false,
            quiet: 0,
            patience,
            request: false,
        }
    }

    /// The lanes were retrained: what was under way in both directions may be lost. Both ends are told.
    pub fn retrain(&mut self) {
        self.receiver.lose();
        self.request = true;
    }

    /// Whether all is sent and acknowledged, and nothing has to be told.
    pub fn is_at_rest(&self) -> bool {
        self.sender.is_settled()
            && !self.receiver.is_lost()
            && !self.answer
            && !self.request
            && !self.ack_is_due()
    }

    #[inline]
    fn ack_is_due(&self) -> bool {
        self.receiver.taken() - self.acks_sent >= BLOCKS_PER_ACK
    }

    #[inline]
    fn is_late(&self) -> bool {
        self.quiet.saturating_add(1) >= self.patience
    }

    /// How many idle slots pass before the next one that is not, if nothing comes and no new block goes.
    #[inline]
    pub fn idle_slots(&self) -> u64 {
        if self.must_sync() || self.answer || self.ack_is_due() || self.sender.is_going_back() {
            0
        } else if self.receiver.is_lost() || !self.sender.is_settled() {
            u64::from(self.patience.saturating_sub(1).saturating_sub(self.quiet))
        } else {
            u64::MAX
        }
    }

    /// So many idle slots have passed.
    pub fn skip(&mut self, slots: u64) {
        let slots = u32::try_from(slots).unwrap_or(u32::MAX);
        self.quiet = self.quiet.saturating_add(slots);
    }

    #[inline]
    fn must_sync(&self) -> bool {
        self.request || self.sender.announce || (self.is_late() && self.receiver.is_lost())
    }

    /// Whether a new block may go in the next slot, and then whether an acknowledgement is due, which it may take along.
    #[inline]
    pub fn wants(&self) -> Option<bool> {
        (!self.must_sync() && self.sender.has_room()).then(|| self.ack_is_due())
    }

    /// A new block goes out in the next slot, as one was wanted; and whether it takes an acknowledgement along.
    #[inline]
    pub fn enter(&mut self, block: &B, ack: bool) {
        self.acks_sent += if ack { BLOCKS_PER_ACK } else { 0 };
        self.sender.keep(block);
        self.quiet = match self.receiver.is_lost() {
            true => self.quiet.saturating_add(1),
            false => 0,
        };
    }

    /// What goes out in the next slot if it is no new block.
    pub fn transmit(&mut self) -> Next<B> {
        let late = self.is_late();
        if self.must_sync() {
            return self.sync();
        }
        self.quiet = self.quiet.saturating_add(1);
        if let Some(block) = self.sender.again() {
            return Next::Block(block);
        }
        if self.answer || (late && !self.sender.is_settled()) {
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
        self.answer = false;
        self.told = self.receiver.taken();
        self.quiet = 0;
        Next::Sync(sync)
    }

    /// A block has come damaged.
    pub fn damaged(&mut self) {
        self.receiver.damaged += 1;
        // One request for all that is lost at once.
        self.request |= !self.receiver.is_lost();
        self.receiver.lose();
    }

    /// A sync block has come.
    pub fn synced(&mut self, sync: Sync) {
        self.sender.sync(sync.receive, sync.request);
        let knew = self.receiver.is_lost();
        self.receiver.sync(sync.transmit);
        self.request |= self.receiver.is_lost() && !knew;
        self.answer |= self.receiver.taken() > self.told;
    }

    /// A numbered block has come whole, with an acknowledgement or without; whether it is to be taken.
    #[inline]
    pub fn take(&mut self, ack: bool) -> bool {
        let new = self.receiver.take();
        if new && ack {
            self.sender.bit();
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The model `models/link_replay.m` found that the stream skipped blocks without a word: an acknowledgement came after
    /// the partner was told where the stream goes on, and the receiver took later blocks under the numbers of earlier ones.
    #[test]
    fn a_stream_that_skips_blocks_says_so() {
        let mut sender = Sender::default();
        let mut receiver = Receiver::default();
        for _ in 0..3 {
            sender.keep(&());
            assert!(receiver.take());
        }
        // A request from before they came, its answer, and what is expected by now.
        sender.sync(0, true);
        receiver.sync(sender.number());
        sender.announce = false;
        sender.sync(3, false);
        assert!(sender.announce);
        receiver.sync(sender.number());
        sender.keep(&());
        assert!(receiver.take());
        assert_eq!(receiver.taken(), 4);
    }
}
