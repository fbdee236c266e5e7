//! State of a run that several components use, by its scope: one space, the copies of lines, and what is counted.

use super::*;

/// Time, pending events, and the messages and accesses in flight in one space.
pub(crate) struct LocalState {
    pub queue: Queue<Event>,
    pub now: Time,
    pub random: Random,
    pub messages: Pool<Message>,
    pub accesses: Pool<Pending>,
    /// Number of the last message sent.
    pub flights: u32,
}

impl LocalState {
    /// Creates the state at time 0. `in_flight` is the maximum number of outstanding accesses of cores.
    pub fn new(in_flight: u64, seed: u64) -> LocalState {
        LocalState {
            queue: Queue::for_events(in_flight),
            now: 0,
            random: Random::new(seed),
            messages: Pool::default(),
            accesses: Pool::default(),
            flights: 0,
        }
    }
}

/// Bytes of all copies of lines, and the oracle that checks them. Two levels of caches share both.
pub(crate) struct CheckedData {
    pub data: Data,
    pub oracle: Oracle,
}

/// Counters of a run. All machines of a lower level share them.
#[derive(Default)]
pub(crate) struct RunTally {
    pub counters: Counters,
    /// Time of the last performed access, or of a later one that is expected: see
    /// [`Simulation::postpone_watchdog`].
    pub last_performed: Time,
    /// Number of unfinished accesses of cores.
    pub in_flight: u64,
}

/// Connections to other levels and spaces; empty for a machine of one level and one space.
#[derive(Default)]
pub(crate) struct Neighbours {
    /// View of the upper level, if this is the lower of two levels.
    pub upper_level: Option<Box<UpperLevel>>,
    /// View of the lower level, if this is the upper of two levels.
    pub lower_level: Option<Box<LowerLevel>>,
    /// Port for accesses from another space, if there is one.
    pub port: Option<Box<Port>>,
}
