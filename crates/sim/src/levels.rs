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

use cohkit_protocol::protocol::Right;
use cohkit_system::hierarchy;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

use crate::agents::application::ApplicationRun;
use crate::agents::program::{Act, Answer, ConfigurationId, Input, Transition};
use crate::components::traffic::Traffic;
use crate::data::{Copy, Data, Paged};
use crate::explain::{FailureKind, Trace};
use crate::kernel::Time;
use crate::message::{Agent, Agents, Line, Message, Work};
use crate::oracle::Oracle;
use crate::simulation::{CheckedData, Purpose, RunTally, Simulation};
use crate::statistics::Counters;

mod machine;
pub use machine::Levels;

/// A lock that the upper level requests at a home below, so that caches there give up permissions.
#[derive(Clone, Copy, Debug)]
struct Lock {
    /// Highest permission that caches below may keep under the lock.
    ensures: Right,
    stage: Stage,
    /// True if the cache above wants to evict the line.
    evicts: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Wanted,
    Held,
    GivenBack,
}

impl Lock {
    fn requested(ensures: Right, evicts: bool) -> Lock {
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
    Wants(Line, Right),
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
    Recall(Line, Right),
    /// Release the lock.
    Unlock(Line),
}

/// View that a machine of the lower level has of the upper one.
pub(crate) struct UpperLevel {
    /// Number of the cache above, and the number of caches of the upper level.
    pub cache: Agent,
    caches: u16,
    /// Permission of the cache above for each line.
    permissions: Paged<Right>,
    /// Permission above that each message type requires, by message number.
    needed_permissions: Vec<Right>,
    locks: FxHashMap<Line, Lock>,
    notifications: Vec<Up>,
    /// Number of lifelines before those of this machine, and the names of all lifelines.
    pub lifelines: usize,
    pub lifeline_names: Rc<[String]>,
}

impl UpperLevel {
    /// True if `core`, numbered over all machines, is attached to one of the `caches` caches of this machine.
    pub fn has_core(&self, core: u16, caches: u16) -> bool {
        let caches = core / caches;
        caches % self.caches == self.cache.0
    }

    /// Notifies the upper level that memory has been written.
    pub fn notify_written(&mut self, line: Line) {
        self.notifications.push(Up::Written(line));
    }

    /// Records that the home has acknowledged the requested local operation, and notifies the upper level.
    pub fn notify_locked(&mut self, line: Line) {
        if let Some(lock) = self.locks.get_mut(&line) {
            lock.stage = Stage::Held;
            self.notifications.push(Up::Locked(line));
        }
    }

    /// Records that the home is handling the unlock.
    pub fn begin_unlock(&mut self, line: Line) {
        if let Some(lock) = self.locks.get_mut(&line) {
            lock.stage = Stage::GivenBack;
        }
    }

    /// Highest permission that the level above may use for a line under its lock; none while no lock is held.
    pub fn lock_permission(&self, line: Line) -> Right {
        match self.locks.get(&line) {
            Some(lock) if lock.stage == Stage::Held => match lock.ensures {
                Right::None => Right::Write,
                _ => Right::Read,
            },
            _ => Right::None,
        }
    }
}

/// View that the upper level has of the machines below its caches.
pub(crate) struct LowerLevel {
    locks: FxHashMap<(Agent, Line), Lock>,
    /// Lines that are being prefetched for the level below.
    prefetching: FxHashSet<(Agent, Line)>,
    notifications: Vec<(Agent, Down)>,
    /// Names of all lifelines.
    pub lifeline_names: Rc<[String]>,
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

    /// Records the end of a prefetch.
    pub fn end_prefetch(&mut self, cache: Agent, line: Line) {
        self.prefetching.remove(&(cache, line));
    }

    /// Notifies the machine below that the cache's entry of a line has changed.
    pub fn notify_change(&mut self, cache: Agent, line: Line) {
        self.notifications.push((cache, Down::Changed(line)));
    }
}

/// Actions of the upper level.
impl Simulation {
    /// Returns true if the machine below must give up permissions before a cache's row may run, and requests that.
    #[inline(always)]
    pub(crate) fn must_wait_for_recall(
        &mut self,
        cache: Agent,
        line: Line,
        transition: &Transition,
        evicts: bool,
    ) -> bool {
        self.neighbours.lower_level.is_some() && self.must_recall(cache, line, transition, evicts)
    }

    #[cold]
    fn must_recall(
        &mut self,
        cache: Agent,
        line: Line,
        transition: &Transition,
        evicts: bool,
    ) -> bool {
        let Some(below) = &mut self.neighbours.lower_level else {
            return false;
        };
        let sends_line = transition.acts().any(|act| match self.remote.act(act) {
            Act::Send { message, .. } => self.tables.kinds[message.index()].line,
            _ => false,
        });
        let (before, after) = (transition.before.right, transition.after.right);
        let Some(remaining) = hierarchy::lowered_permission(before, after, sends_line) else {
            return false;
        };
        match below.locks.get_mut(&(cache, line)) {
            Some(lock) => {
                lock.evicts |= evicts;
                lock.stage != Stage::Held || !hierarchy::lock_permits(lock.ensures, remaining)
            }
            None => {
                let lock = Lock::requested(remaining, evicts);
                below.locks.insert((cache, line), lock);
                below
                    .notifications
                    .push((cache, Down::Recall(line, remaining)));
                true
            }
        }
    }

    /// Starts a prefetch of a permission for the level below, unless the line is locked or already being prefetched.
    fn prefetch_for_below(&mut self, cache: Agent, line: Line, permission: Right) {
        let starts = (self.neighbours.lower_level.as_mut()).is_some_and(|below| {
            below.is_free(cache, line) && below.prefetching.insert((cache, line))
        });
        if starts {
            let (access, now) = (hierarchy::brings(permission), self.local.now);
            // Each cache of the upper level has one core, with the same number.
            self.start_access(line, access, 0, cache.0, now, Purpose::Hint);
        }
    }

    /// Handles a lock held by the home below: resumes what waited for it, then requests its release.
    fn handle_lock_below(&mut self, cache: Agent, line: Line) {
        let Some(lock) = (self.neighbours.lower_level.as_mut())
            .and_then(|lower| lower.locks.get_mut(&(cache, line)))
        else {
            return;
        };
        lock.stage = Stage::Held;
        self.retry_stalled_messages(cache, line);
        if self
            .neighbours
            .lower_level
            .as_ref()
            .is_some_and(|lower| lower.is_evicting(cache, line))
        {
            self.evict_recalled(cache, line);
        }
        if let Some(below) = &mut self.neighbours.lower_level {
            if let Some(lock) = below.locks.get_mut(&(cache, line)) {
                lock.stage = Stage::GivenBack;
            }
            below.notifications.push((cache, Down::Unlock(line)));
        }
    }

    /// Handles the release of a lock by the home below.
    fn handle_release_below(&mut self, cache: Agent, line: Line) {
        if let Some(below) = &mut self.neighbours.lower_level {
            below.locks.remove(&(cache, line));
        }
        self.retry_stalled_messages(cache, line);
        self.retry_waiting_for_way(cache);
    }
}

/// Actions of the lower level.
impl Simulation {
    /// Names of the agents below a cache: its caches, then its home, each with the number of the cache above.
    pub(crate) fn lifelines_below(&self, cache: Agent) -> Vec<String> {
        let name = &self.remote.controller().name;
        let remotes = (0..self.groups.caches()).map(|r| format!("{name} {}.{r}", cache.0));
        let home = format!("{} {}", self.home.program.controller().name, cache.0);
        remotes.chain([home]).collect()
    }

    /// Returns true if a message must wait for a permission of the cache above, and requests that permission.
    pub(crate) fn must_wait_for_above(&mut self, line: Line, message: Option<&Message>) -> bool {
        let (Some(message), Some(above)) = (message, &mut self.neighbours.upper_level) else {
            return false;
        };
        let needed = above.needed_permissions[message.kind.index()];
        let must_wait = needed > above.permissions.get(line);
        if must_wait {
            above.notifications.push(Up::Wants(line, needed));
        }
        must_wait
    }

    /// Evaluates the home's row for an input, given whether the home may write its memory.
    pub(crate) fn step_below(
        &mut self,
        line: Line,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        let above = self.neighbours.upper_level.as_ref();
        let may_write = above.is_some_and(|above| above.permissions.get(line) == Right::Write);
        let with_backing_permission = self
            .home
            .program
            .with_backing_permission(configuration, may_write);
        let mut transition = self.home.program.step(with_backing_permission, input);
        if transition.answer == Answer::Take {
            // Normalise the configuration, so that it does not depend on the permission above at this step.
            transition.next = self
                .home
                .program
                .with_backing_permission(transition.next, true);
        }
        transition
    }

    /// Handles a change of the permission or copy of the cache above.
    fn handle_change_above(&mut self, line: Line, permission: Right, copy: Copy) {
        let Some(above) = &mut self.neighbours.upper_level else {
            return;
        };
        let previous = above.permissions.get(line);
        above.permissions.set(line, permission);
        let copy = match permission {
            Right::None => Copy::UNTOUCHED,
            _ => self.contents.data.share(copy),
        };
        self.contents.data.set_memory(line, copy);
        if permission < previous {
            for cache in self.caches.agents() {
                let configuration = self.caches.configuration(cache, line);
                let cache_permission = self.remote.properties(configuration).right;
                self.check_inclusion(cache, line, cache_permission);
            }
        } else if permission > previous {
            self.return_waiting_inputs(self.unit_of(line), line);
        }
    }

    /// Checks inclusion: a cache has no permission that the cache above lacks.
    pub(crate) fn check_inclusion(&mut self, cache: Agent, line: Line, permission: Right) {
        let upper = self
            .neighbours
            .upper_level
            .as_ref()
            .map(|above| above.permissions.get(line));
        if let Some(upper) = upper.filter(|upper| permission > *upper) {
            let name = self.agent_name(cache);
            let text = format!("{name} may {permission} while the cache above it may {upper}");
            self.fail(FailureKind::Inclusion, line, text);
        }
    }

    /// Handles a recall by the level above, after which caches here keep at most permission `remaining`.
    fn handle_recall(&mut self, line: Line, remaining: Right) {
        let Some(operation) = hierarchy::recalls(&self.home.program.controller().locals, remaining)
        else {
            let text = format!(
                "no local operation of the lower level locks the line and leaves {remaining:?}"
            );
            return self.fail(FailureKind::Meaningless, line, text);
        };
        if let Some(above) = &mut self.neighbours.upper_level {
            above.locks.insert(line, Lock::requested(remaining, false));
        }
        self.present_local(Work::Local(line, operation), line);
    }

    /// Handles an unlock that the home has received.
    pub(crate) fn handle_unlock_below(&mut self, line: Line) {
        if let Some(above) = &mut self.neighbours.upper_level {
            above.locks.remove(&line);
            above.notifications.push(Up::Unlocked(line));
        }
    }
}

/// State shared by all machines of the lower level.
struct Shared {
    contents: CheckedData,
    traffic: Traffic,
    tally: RunTally,
    application: Option<Box<ApplicationRun>>,
    trace: Option<Trace>,
    flights: u32,
}

impl Shared {
    /// Exchanges the shared state with that in a machine of the lower level.
    fn swap_with_lower(&mut self, simulation: &mut Simulation) {
        self.contents.data.exchange(&mut simulation.contents.data);
        std::mem::swap(&mut self.contents.oracle, &mut simulation.contents.oracle);
        std::mem::swap(&mut self.traffic, &mut simulation.traffic);
        std::mem::swap(&mut self.tally, &mut simulation.tally);
        std::mem::swap(&mut self.application, &mut simulation.application);
        self.swap_trace(simulation);
    }

    /// Exchanges data and oracle with those in the upper level, which keeps the oracle's counts of its own permissions.
    fn swap_with_upper(&mut self, simulation: &mut Simulation) {
        self.contents.data.exchange(&mut simulation.contents.data);
        let (shared_oracle, upper_oracle) =
            (&mut self.contents.oracle, &mut simulation.contents.oracle);
        std::mem::swap(shared_oracle, upper_oracle);
        std::mem::swap(&mut shared_oracle.above, &mut upper_oracle.above);
        self.swap_trace(simulation);
    }

    fn swap_trace(&mut self, simulation: &mut Simulation) {
        std::mem::swap(&mut self.trace, &mut simulation.observer.trace);
        std::mem::swap(&mut self.flights, &mut simulation.local.flights);
    }
}
