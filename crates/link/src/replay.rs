//! Go-back-n: what was sent stays until it is acknowledged, and is sent again from where the partner lost it.
//!
//! Data blocks carry no number; both ends count them. After a damaged block the receiver counts nothing until a sync block
//! tells the number of the next one. A block is sent again with the bits it had, so credits and acknowledgements in it are
//! taken once, as its words are.

use crate::{Block, Control};

/// Blocks that may be under way. Numbers have 8 bits, and a sync block may stand as far before what the receiver expects as
/// after it (a request that was repeated is answered twice), so both distances together must stay below 256.
pub const WINDOW: u64 = 127;
/// Blocks that one acknowledging bit stands for. More than one, so that blocks sent only to acknowledge die out.
pub const BLOCKS_PER_ACK: u64 = 8;

const PLACES: usize = 128;

/// The side that keeps what was sent.
pub struct Sender {
    kept: Box<[Block; PLACES]>,
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

impl Default for Sender {
    fn default() -> Sender {
        Sender {
            kept: Box::new([Block::bare(Control::Idle); PLACES]),
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

impl Sender {
    /// Whether a new block may be sent.
    pub fn has_room(&self) -> bool {
        self.next == self.top && self.top - self.base < WINDOW
    }

    /// Whether everything sent is acknowledged.
    pub fn is_settled(&self) -> bool {
        self.base == self.top && !self.announce
    }

    /// The number of the next block, as a sync block tells it.
    pub fn number(&self) -> u8 {
        self.next as u8
    }

    /// Keeps a new block, which leaves now. Only with [`Sender::has_room`].
    pub fn keep(&mut self, block: Block) {
        debug_assert!(self.has_room());
        self.kept[self.top as usize % PLACES] = block;
        self.top += 1;
        self.next = self.top;
    }

    /// The next block to send again, if there is one.
    pub fn again(&mut self) -> Option<Block> {
        if self.next == self.top {
            return None;
        }
        let block = self.kept[self.next as usize % PLACES];
        self.next += 1;
        self.replayed += 1;
        Some(block)
    }

    fn acknowledged(&mut self, to: u64) {
        if to > self.top {
            self.impossible += 1;
        } else if to > self.base {
            self.base = to;
            if self.next < to {
                // The stream skips what has come meanwhile: the number told last is no longer the next block's.
                self.next = to;
                self.announce = true;
            }
        }
    }

    /// An acknowledging bit has come.
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
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// What comes may not be what was sent: nothing counts from here on.
    pub fn lose(&mut self) {
        self.lost = true;
    }

    /// A numbered block has come whole; whether it is to be taken.
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
            sender.keep(Block::bare(Control::Idle));
            assert!(receiver.take());
        }
        // A request from before they came, its answer, and what is expected by now.
        sender.sync(0, true);
        receiver.sync(sender.number());
        sender.announce = false;
        sender.sync(3, false);
        assert!(sender.announce);
        receiver.sync(sender.number());
        sender.keep(Block::bare(Control::Idle));
        assert!(receiver.take());
        assert_eq!(receiver.taken(), 4);
    }
}
