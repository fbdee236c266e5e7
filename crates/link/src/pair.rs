//! Distribution of messages over two parallel links.

/// Policy that selects the link of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// Memory messages take the link with fewer queued words. I/O requests take the first link, I/O responses the
    /// second. Messages of one line may arrive on either link, so the receiver must join them.
    QueueLength,
    /// By a bit of the line address, supplied by the sender.
    Address,
    /// All messages take the first link.
    SingleLink,
}

impl Balance {
    /// Selects the link of a message, 0 or 1. `has_odd_line` is the address bit of its line, and `waiting` the number of
    /// words queued on each link.
    pub fn choose(self, circuit: u8, has_odd_line: bool, waiting: [usize; 2]) -> usize {
        match (self, circuit) {
            (Balance::SingleLink, _) | (Balance::QueueLength, 0) => 0,
            (Balance::QueueLength, 1) => 1,
            (Balance::Address, _) => has_odd_line.into(),
            (Balance::QueueLength, _) => (waiting[1] < waiting[0]).into(),
        }
    }
}
