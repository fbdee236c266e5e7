//! Knowledge of cores: vector clocks, and the channels that carry them.

use std::collections::VecDeque;

/// A vector clock: one time per core.
pub(super) type Clock = Vec<u64>;

/// A synchronisation channel, which carries knowledge between cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SyncChannel {
    /// A register that hosts and core share: core and number.
    Register(usize, u64),
    /// The registers that control programs.
    Control(usize),
    /// The register with the state of the last load, which reveals nothing of the program's later actions.
    Load(usize),
    /// A scratchpad line: core and line.
    Line(usize, usize),
    /// The hosts' requests for a scratchpad line, which notices and stamps reveal.
    Request(usize, usize),
    /// Words that have arrived through a FIFO: sender and receiver.
    Fifo(usize, usize),
    /// Words taken out of a FIFO: sender and receiver.
    FifoSpace(usize, usize),
    /// A line of a host's own memory that a copy engine copies: host and address.
    Main(usize, u64),
}

/// State of a FIFO from one core to another.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    /// The sender's knowledge for each word in flight.
    pub(super) in_flight: VecDeque<Clock>,
    /// Number of words sent.
    pub(super) sent: u64,
    /// The receiver's knowledge when it took each word whose room is still free.
    pub(super) pop_clocks: VecDeque<Clock>,
}

/// Raises each time of a clock to at least that of another clock.
pub(super) fn join(clock: &mut Clock, other: &Clock) {
    clock.resize(clock.len().max(other.len()), 0);
    for (time, other_time) in clock.iter_mut().zip(other) {
        *time = (*time).max(*other_time);
    }
}

/// Returns true if `clock` is known to a core whose clock is `other`.
pub(super) fn happens_before(clock: &Clock, other: &Clock) -> bool {
    let other_times = other.iter().copied().chain(std::iter::repeat(0));
    clock
        .iter()
        .zip(other_times)
        .all(|(time, other_time)| *time <= other_time)
}
