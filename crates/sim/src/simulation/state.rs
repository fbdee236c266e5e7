//! State of a run that several components use, by its scope: one space, the copies of lines, and the counters.

use cohkit_protocol::protocol::Permission;
use rustc_hash::FxHashMap;

use super::*;

/// Time, pending events, and the messages and accesses in flight in one space.
pub(crate) struct LocalState {
    /// Events to come.
    pub queue: Queue<Event>,
    /// Time of the current event, in picoseconds.
    pub now: Time,
    /// Source of random delays.
    pub random: Random,
    /// Messages from their sending until a controller takes them.
    pub messages: Pool<Message>,
    /// Outstanding accesses and prefetches.
    pub accesses: Pool<Pending>,
    /// Number of the last message sent.
    pub flights: u32,
    /// Number of lines in caches.
    pub cached_lines: u64,
    /// Locks of the device, or of the level above.
    pub locks: Locks,
}

/// Lines that the home has locked for the agent behind it: the device, the application, or the cache above.
#[derive(Default)]
pub(crate) struct Locks(FxHashMap<Line, Permission>);

impl Locks {
    /// Locks a line, after which caches keep at most permission `ensures`. The agent may write if caches keep no
    /// permission, and read otherwise.
    pub fn lock(&mut self, line: Line, ensures: Permission) {
        let permission = match ensures {
            Permission::None => Permission::Write,
            _ => Permission::Read,
        };
        self.0.insert(line, permission);
    }

    /// Ends the lock of a line, if there is one.
    pub fn unlock(&mut self, line: Line) {
        self.0.remove(&line);
    }

    /// Returns the permission that the agent has for a line under its lock.
    #[inline]
    pub fn permission(&self, line: Line) -> Permission {
        self.0.get(&line).copied().unwrap_or(Permission::None)
    }

    /// True if no line is locked.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
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
            cached_lines: 0,
            locks: Locks::default(),
        }
    }
}

/// Bytes of all copies of lines, and the oracle that checks them. Two levels of caches share both.
pub(crate) struct CheckedData {
    /// Contents to which copies refer.
    pub data: Data,
    /// Checker of contents and permissions.
    pub oracle: Oracle,
}

/// Counters of a run. All machines of a lower level share them.
#[derive(Default)]
pub(crate) struct RunTally {
    /// Counters of the statistics.
    pub counters: Counters,
    /// Time of the last performed access, or of a later one that is expected, in picoseconds: see
    /// [`RunTally::postpone_watchdog`].
    pub last_performed: Time,
    /// Number of unfinished accesses of cores.
    pub in_flight: u64,
}

impl RunTally {
    /// Restarts the watchdog at `time`, now or later: an access is performed then, and no other progress is expected
    /// before.
    #[inline]
    pub fn postpone_watchdog(&mut self, time: Time) {
        self.last_performed = self.last_performed.max(time);
    }
}
