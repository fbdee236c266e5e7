//! Simulation of two cache levels: below each cache of the upper level is a machine whose memory is that cache's copy.
//!
//! Both levels are [`Simulation`]s, which notify each other after each event. Caches and homes execute the controllers
//! of their own protocol files. The coupling follows from permissions, by the rules of [`cohkit_system::hierarchy`]:
//!
//! * a request waits at its home until the cache above has the permission that it needs, which a prefetch there
//!   acquires;
//! * memory of the lower level is the copy of the cache above, and a write of it is a store in place there;
//! * a row that lowers the permission above, or evicts the line, waits for a locking local operation of the home below;
//! * while such a lock is wanted or held, no prefetch starts.
//!
//! The machines of the lower level share their data, the oracle, the cores, and the statistics of the cores.

use cohkit_protocol::protocol::Permission;
use cohkit_system::hierarchy;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::agents::application::Application;
use crate::agents::program::Transition;
use crate::agents::thread::Threads;
use crate::components::traffic::Traffic;
use crate::data::{Copy, Data, Paged};
use crate::explain::{FailureKind, Trace};
use crate::kernel::Time;
use crate::message::{Agent, Agents, Line, Message, Work};
use crate::oracle::Oracle;
use crate::simulation::{CheckedData, Locks, Pending, Purpose, RunTally, Simulation};
use crate::statistics::Counters;

mod machine;
pub use machine::Levels;

/// A lock that the upper level requests at a home below, so that caches there give up permissions.
#[derive(Clone, Copy, Debug)]
struct Lock {
    /// Highest permission that caches below keep under the lock.
    ensures: Permission,
    /// Progress of the lock.
    stage: Stage,
    /// True if the cache above wants to evict the line.
    evicts: bool,
}

/// Progress of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The upper level has requested the lock; the home below may still be collecting permissions.
    Wanted,
    /// The home below holds the lock: caches below have at most the permitted permission.
    Held,
    /// The upper level has requested the release, which the home below has not completed.
    GivenBack,
}

impl Lock {
    /// Creates a lock that has just been requested.
    fn requested(ensures: Permission, evicts: bool) -> Lock {
        Lock {
            ensures,
            stage: Stage::Wanted,
            evicts,
        }
    }
}

/// Notification from a machine of the lower level to the cache above it.
#[derive(Clone, Copy, Debug)]
enum Up {
    /// A request needs this permission.
    Wants(Line, Permission),
    /// Memory has been written.
    Written(Line),
    /// The requested lock is held.
    Locked(Line),
    /// The lock has been released.
    Unlocked(Line),
}

/// Notification from the upper level to the machine below one of its caches.
#[derive(Clone, Copy, Debug)]
enum Down {
    /// The permission or the copy above has changed.
    Changed(Line),
    /// Lock the line, so that caches below keep at most this permission.
    Recall(Line, Permission),
    /// Release the lock.
    Unlock(Line),
}

/// View that a machine of the lower level has of the upper one.
pub(crate) struct UpperLevel {
    /// Permission of the cache above for each line.
    pub permissions: Paged<Permission>,
    /// Permission above that each message type requires, by message number.
    needed_permissions: Vec<Permission>,
    /// Locks that the level above has requested, by line.
    locks: FxHashMap<Line, Lock>,
    /// Notifications that have not been delivered, in order.
    notifications: Vec<Up>,
}

impl UpperLevel {
    /// Returns true if a message must wait for a permission of the cache above, and requests that permission.
    pub fn must_wait(&mut self, line: Line, message: Option<&Message>) -> bool {
        let Some(message) = message else {
            return false;
        };
        let needed = self.needed_permissions[message.kind.index()];
        let must_wait = needed > self.permissions.get(line);
        if must_wait {
            self.notifications.push(Up::Wants(line, needed));
        }
        must_wait
    }

    /// Records that the level above wants a lock of a line, under which caches keep at most permission `remaining`.
    pub fn request_lock(&mut self, line: Line, remaining: Permission) {
        self.locks.insert(line, Lock::requested(remaining, false));
    }

    /// Records that the home has released the lock of a line, and notifies the upper level.
    pub fn end_unlock(&mut self, line: Line) {
        self.locks.remove(&line);
        self.notifications.push(Up::Unlocked(line));
    }

    /// Notifies the upper level that memory has been written.
    pub fn notify_written(&mut self, line: Line) {
        self.notifications.push(Up::Written(line));
    }

    /// Records that the home has acknowledged the requested local operation, and notifies the upper level.
    pub fn notify_locked(&mut self, line: Line, held: &mut Locks) {
        if let Some(lock) = self.locks.get_mut(&line) {
            lock.stage = Stage::Held;
            held.lock(line, lock.ensures);
            self.notifications.push(Up::Locked(line));
        }
    }

    /// Records that the home is handling the unlock.
    pub fn begin_unlock(&mut self, line: Line, held: &mut Locks) {
        if let Some(lock) = self.locks.get_mut(&line) {
            lock.stage = Stage::GivenBack;
            held.unlock(line);
        }
    }
}

/// View that the upper level has of the machines below its caches.
pub(crate) struct LowerLevel {
    /// Locks requested at the home below each cache, by cache and line.
    locks: FxHashMap<(Agent, Line), Lock>,
    /// Lines that are being prefetched for the level below.
    prefetching: FxHashSet<(Agent, Line)>,
    /// Notifications that have not been delivered, each with the cache above the receiver.
    notifications: Vec<(Agent, Down)>,
}

impl LowerLevel {
    /// True if no lock of the line is wanted or held.
    pub fn is_free(&self, cache: Agent, line: Line) -> bool {
        !self.locks.contains_key(&(cache, line))
    }

    /// True if the line is recalled for an eviction.
    pub fn is_evicting(&self, cache: Agent, line: Line) -> bool {
        let lock = self.locks.get(&(cache, line));
        lock.is_some_and(|lock| lock.evicts)
    }

    /// Returns true if a prefetch for the level below may start: the line is neither locked nor being prefetched.
    fn begin_prefetch(&mut self, cache: Agent, line: Line) -> bool {
        self.is_free(cache, line) && self.prefetching.insert((cache, line))
    }

    /// Records the end of an access, which may be such a prefetch.
    pub fn end_prefetch(&mut self, access: &Pending) {
        if access.purpose == Purpose::Hint {
            self.prefetching.remove(&(access.cache, access.line));
        }
    }

    /// Returns true if the machine below must give up permissions before a row may run, and requests that.
    pub fn must_recall(
        &mut self,
        cache_line: (Agent, Line),
        transition: &Transition,
        sends_line: bool,
        evicts: bool,
    ) -> bool {
        let (before, after) = (transition.before.permission, transition.after.permission);
        let Some(remaining) = hierarchy::lowered_permission(before, after, sends_line) else {
            return false;
        };
        if let Some(lock) = self.locks.get_mut(&cache_line) {
            lock.evicts |= evicts;
            return lock.stage != Stage::Held || !hierarchy::lock_permits(lock.ensures, remaining);
        }
        let lock = Lock::requested(remaining, evicts);
        self.locks.insert(cache_line, lock);
        let (cache, line) = cache_line;
        self.notifications
            .push((cache, Down::Recall(line, remaining)));
        true
    }

    /// Records that the home below holds the lock of a line. Returns false if no lock is wanted.
    pub fn hold_lock(&mut self, cache: Agent, line: Line) -> bool {
        let lock = self.locks.get_mut(&(cache, line));
        lock.map(|lock| lock.stage = Stage::Held).is_some()
    }

    /// Requests the release of a lock.
    pub fn give_lock_back(&mut self, cache: Agent, line: Line) {
        if let Some(lock) = self.locks.get_mut(&(cache, line)) {
            lock.stage = Stage::GivenBack;
        }
        self.notifications.push((cache, Down::Unlock(line)));
    }

    /// Records that the home below has released a lock.
    pub fn remove_lock(&mut self, cache: Agent, line: Line) {
        self.locks.remove(&(cache, line));
    }

    /// Notifies the machine below that the cache's entry of a line has changed.
    pub fn notify_change(&mut self, cache: Agent, line: Line) {
        self.notifications.push((cache, Down::Changed(line)));
    }
}

/// State shared by all machines of the lower level.
struct Shared {
    /// Contents of lines, and the oracle. The upper level uses both, too.
    contents: CheckedData,
    /// Access generators of all cores.
    traffic: Traffic,
    /// Counters of the lower level.
    tally: RunTally,
    /// Threads on the cores; `None` without a scenario.
    threads: Option<Box<Threads>>,
    /// Application of the scenario; `None` without a scenario.
    application: Option<Box<Application>>,
    /// Recorded steps of both levels, if any are recorded.
    trace: Option<Trace>,
    /// Number of the last message sent in any machine.
    flights: u32,
}

impl Shared {
    /// Exchanges the shared state with that in a machine of the lower level.
    fn swap_with_lower(&mut self, simulation: &mut Simulation) {
        std::mem::swap(&mut self.contents, &mut simulation.contents);
        std::mem::swap(&mut self.traffic, &mut simulation.frontend.traffic);
        std::mem::swap(&mut self.threads, &mut simulation.frontend.threads);
        std::mem::swap(&mut self.tally, &mut simulation.tally);
        std::mem::swap(&mut self.application, &mut simulation.application);
        self.swap_trace(simulation);
    }

    /// Exchanges data and oracle with those in the upper level, which keeps the oracle's counts of its own permissions.
    fn swap_with_upper(&mut self, simulation: &mut Simulation) {
        std::mem::swap(&mut self.contents.data, &mut simulation.contents.data);
        let (shared_oracle, upper_oracle) =
            (&mut self.contents.oracle, &mut simulation.contents.oracle);
        std::mem::swap(shared_oracle, upper_oracle);
        std::mem::swap(&mut shared_oracle.above, &mut upper_oracle.above);
        self.swap_trace(simulation);
    }

    /// Exchanges the trace and the numbering of messages with those in a machine.
    fn swap_trace(&mut self, simulation: &mut Simulation) {
        std::mem::swap(&mut self.trace, &mut simulation.observer.trace);
        std::mem::swap(&mut self.flights, &mut simulation.local.flights);
    }
}
