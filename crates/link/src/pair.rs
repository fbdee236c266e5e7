//! Two links beside each other, as one way to send.

/// Which link a message takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// Messages of memory go where fewer words wait; I/O requests to the first link, I/O responses to the second. Those of one
    /// line may arrive on either, so who receives them has to join them.
    Room,
    /// By a bit of the line, which the sender gives.
    Address,
    /// All to the first.
    One,
}

impl Balance {
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
