//! Two links beside each other, as one way to send.

use std::collections::VecDeque;

/// Which link a message takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// Messages of memory go where fewer words wait; I/O requests to the first link, I/O responses to the second.
    Room,
    /// By a bit of the line, which the sender gives.
    Address,
    /// All to the first.
    One,
}

impl Balance {
    /// Whether messages of one line may arrive on either link, so that the device has to join them.
    pub fn joins(self) -> bool {
        self == Balance::Room
    }

    /// The link of a message; `odd` is the bit of its line that chooses by address, and `waiting` the words that wait on
    /// each link.
    pub fn choose(self, circuit: u8, odd: bool, waiting: [usize; 2]) -> usize {
        match (self, circuit) {
            (Balance::One, _) | (Balance::Room, 0) => 0,
            (Balance::Room, 1) => 1,
            (Balance::Address, _) => odd.into(),
            (Balance::Room, _) => (waiting[1] < waiting[0]).into(),
        }
    }
}

/// Where a device joins the messages of one line that arrived on either link. They leave in the order in which they
/// arrived, each after a fixed time.
pub struct Join<M> {
    delay: u64,
    waiting: VecDeque<(u64, M)>,
}

impl<M> Join<M> {
    /// A stage of so many clocks; of none where no line's messages arrive on both links.
    pub fn new(balance: Balance, delay: u64) -> Join<M> {
        Join {
            delay: if balance.joins() { delay } else { 0 },
            waiting: VecDeque::new(),
        }
    }

    /// A message has arrived on one of the links, at a time that is not before that of the last one.
    pub fn arrive(&mut self, now: u64, message: M) {
        self.waiting.push_back((now + self.delay, message));
    }

    /// When the next message leaves.
    pub fn due(&self) -> Option<u64> {
        self.waiting.front().map(|next| next.0)
    }

    /// The next message that has left by now.
    pub fn leave(&mut self, now: u64) -> Option<M> {
        if self.due()? > now {
            return None;
        }
        self.waiting.pop_front().map(|next| next.1)
    }
}
