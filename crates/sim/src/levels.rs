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
use crate::agents::home::Work;
use crate::agents::program::{Act, Answer, ConfigurationId, Input, Transition};
use crate::components::traffic::Traffic;
use crate::data::{Copy, Data, Paged};
use crate::explain::{FailureKind, Trace};
use crate::kernel::Time;
use crate::message::{Agent, Agents, Line, Message};
use crate::oracle::Oracle;
use crate::simulation::{Purpose, Simulation};
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
    fn wanted(ensures: Right, evicts: bool) -> Lock {
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
    rights: Paged<Right>,
    /// Permission above that each message type requires, by message number.
    needs: Vec<Right>,
    locks: FxHashMap<Line, Lock>,
    told: Vec<Up>,
    /// Number of lifelines before those of this machine, and the names of all lifelines.
    pub lifelines: usize,
    pub all: Rc<[String]>,
}

impl UpperLevel {
    /// True if `core`, numbered over all machines, is attached to one of the `caches` caches of this machine.
    pub fn has_core(&self, core: u16, caches: u16) -> bool {
        let caches = core / caches;
        caches % self.caches == self.cache.0
    }

    /// Notifies the upper level that memory has been written.
    pub fn written(&mut self, line: Line) {
        self.told.push(Up::Written(line));
    }

    /// Records that the home has acknowledged the requested local operation, and notifies the upper level.
    pub fn locked(&mut self, line: Line) {
        if let Some(lock) = self.locks.get_mut(&line) {
            lock.stage = Stage::Held;
            self.told.push(Up::Locked(line));
        }
    }

    /// Records that the home is handling the unlock.
    pub fn begin_unlock(&mut self, line: Line) {
        if let Some(lock) = self.locks.get_mut(&line) {
            lock.stage = Stage::GivenBack;
        }
    }

    /// Highest permission that the level above may use for a line under its lock; none while no lock is held.
    pub fn lock_right(&self, line: Line) -> Right {
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
    asked: FxHashSet<(Agent, Line)>,
    told: Vec<(Agent, Down)>,
    /// Names of all lifelines.
    pub all: Rc<[String]>,
}

impl LowerLevel {
    /// True if no lock of the line is wanted or held.
    pub fn is_free(&self, cache: Agent, line: Line) -> bool {
        !self.locks.contains_key(&(cache, line))
    }

    /// True if the line is recalled for an eviction.
    pub fn evicts(&self, cache: Agent, line: Line) -> bool {
        let lock = self.locks.get(&(cache, line));
        lock.is_some_and(|lock| lock.evicts)
    }

    /// Records the end of a prefetch.
    pub fn brought(&mut self, cache: Agent, line: Line) {
        self.asked.remove(&(cache, line));
    }

    /// Notifies the machine below that the cache's entry of a line has changed.
    pub fn changed(&mut self, cache: Agent, line: Line) {
        self.told.push((cache, Down::Changed(line)));
    }
}

/// Actions of the upper level.
impl Simulation {
    /// Returns true if the machine below must give up permissions before a cache's row may run, and requests that.
    #[inline(always)]
    pub(crate) fn holds_back(
        &mut self,
        cache: Agent,
        line: Line,
        transition: &Transition,
        evicts: bool,
    ) -> bool {
        self.below.is_some() && self.recalls(cache, line, transition, evicts)
    }

    #[cold]
    fn recalls(&mut self, cache: Agent, line: Line, transition: &Transition, evicts: bool) -> bool {
        let Some(below) = &mut self.below else {
            return false;
        };
        let sends_line = transition.acts().any(|act| match self.remote.act(act) {
            Act::Send { message, .. } => self.kinds[message.index()].line,
            _ => false,
        });
        let (before, after) = (transition.before.right, transition.after.right);
        let Some(left) = hierarchy::lowered_permission(before, after, sends_line) else {
            return false;
        };
        match below.locks.get_mut(&(cache, line)) {
            Some(lock) => {
                lock.evicts |= evicts;
                lock.stage != Stage::Held || !hierarchy::lock_permits(lock.ensures, left)
            }
            None => {
                let lock = Lock::wanted(left, evicts);
                below.locks.insert((cache, line), lock);
                below.told.push((cache, Down::Recall(line, left)));
                true
            }
        }
    }

    /// Starts a prefetch of a permission for the level below, unless the line is locked or already being prefetched.
    fn prefetch_for_below(&mut self, cache: Agent, line: Line, right: Right) {
        let begins = (self.below.as_mut())
            .is_some_and(|below| below.is_free(cache, line) && below.asked.insert((cache, line)));
        if begins {
            let (access, now) = (hierarchy::brings(right), self.now);
            // Each cache of the upper level has one core, with the same number.
            self.start(line, access, 0, cache.0, now, Purpose::Hint);
        }
    }

    /// Handles a lock held by the home below: resumes what waited for it, then requests its release.
    fn handle_lock_below(&mut self, cache: Agent, line: Line) {
        let Some(lock) = (self.below.as_mut()).and_then(|b| b.locks.get_mut(&(cache, line))) else {
            return;
        };
        lock.stage = Stage::Held;
        self.retry_stalled_messages(cache, line);
        if self.below.as_ref().is_some_and(|b| b.evicts(cache, line)) {
            self.evict_recalled(cache, line);
        }
        if let Some(below) = &mut self.below {
            if let Some(lock) = below.locks.get_mut(&(cache, line)) {
                lock.stage = Stage::GivenBack;
            }
            below.told.push((cache, Down::Unlock(line)));
        }
    }

    /// Handles the release of a lock by the home below.
    fn handle_release_below(&mut self, cache: Agent, line: Line) {
        if let Some(below) = &mut self.below {
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
        let home = format!("{} {}", self.home.controller().name, cache.0);
        remotes.chain([home]).collect()
    }

    /// Returns true if a message must wait for a permission of the cache above, and requests that permission.
    pub(crate) fn must_wait_for_above(&mut self, line: Line, message: Option<&Message>) -> bool {
        let (Some(message), Some(above)) = (message, &mut self.above) else {
            return false;
        };
        let needs = above.needs[message.kind.index()];
        let waits = needs > above.rights.get(line);
        if waits {
            above.told.push(Up::Wants(line, needs));
        }
        waits
    }

    /// Evaluates the home's row for an input, given whether the home may write its memory.
    pub(crate) fn step_below(
        &mut self,
        line: Line,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        let above = self.above.as_ref();
        let writes = above.is_some_and(|above| above.rights.get(line) == Right::Write);
        let with_backing_permission = self.home.with_backing_permission(configuration, writes);
        let mut transition = self.home.step(with_backing_permission, input);
        if transition.answer == Answer::Take {
            // Normalise the configuration, so that it does not depend on the permission above at this step.
            transition.next = self.home.with_backing_permission(transition.next, true);
        }
        transition
    }

    /// Handles a change of the permission or copy of the cache above.
    fn handle_change_above(&mut self, line: Line, right: Right, copy: Copy) {
        let Some(above) = &mut self.above else {
            return;
        };
        let before = above.rights.get(line);
        above.rights.set(line, right);
        let copy = match right {
            Right::None => Copy::UNTOUCHED,
            _ => self.data.share(copy),
        };
        self.data.set_memory(line, copy);
        if right < before {
            for cache in self.caches.agents() {
                let configuration = self.caches.configuration(cache, line);
                let own = self.remote.about(configuration).right;
                self.check_inclusion(cache, line, own);
            }
        } else if right > before {
            self.return_waiting_inputs(self.unit_of(line), line);
        }
    }

    /// Checks inclusion: a cache has no permission that the cache above lacks.
    pub(crate) fn check_inclusion(&mut self, cache: Agent, line: Line, right: Right) {
        let above = self.above.as_ref().map(|above| above.rights.get(line));
        if let Some(above) = above.filter(|above| right > *above) {
            let name = self.agent_name(cache);
            let text = format!("{name} may {right} while the cache above it may {above}");
            self.fail(FailureKind::Inclusion, line, text);
        }
    }

    /// Handles a recall by the level above, after which caches here keep at most permission `left`.
    fn recalled(&mut self, line: Line, left: Right) {
        let Some(local) = hierarchy::recalls(&self.home.controller().locals, left) else {
            let text =
                format!("no local operation of the lower level locks the line and leaves {left:?}");
            return self.fail(FailureKind::Meaningless, line, text);
        };
        if let Some(above) = &mut self.above {
            above.locks.insert(line, Lock::wanted(left, false));
        }
        self.present_local(Work::Local(line, local), line);
    }

    /// Handles an unlock that the home has received.
    pub(crate) fn handle_unlock_below(&mut self, line: Line) {
        if let Some(above) = &mut self.above {
            above.locks.remove(&line);
            above.told.push(Up::Unlocked(line));
        }
    }
}

/// State shared by all machines of the lower level.
struct Shared {
    data: Data,
    oracle: Oracle,
    traffic: Traffic,
    counters: Counters,
    behind: Option<Box<ApplicationRun>>,
    progress: Time,
    in_flight: u64,
    trace: Option<Trace>,
    flights: u32,
}

impl Shared {
    /// Exchanges the shared state with that in a machine of the lower level.
    fn exchange(&mut self, simulation: &mut Simulation) {
        self.data.exchange(&mut simulation.data);
        std::mem::swap(&mut self.oracle, &mut simulation.oracle);
        std::mem::swap(&mut self.traffic, &mut simulation.traffic);
        std::mem::swap(&mut self.counters, &mut simulation.counters);
        std::mem::swap(&mut self.behind, &mut simulation.behind);
        std::mem::swap(&mut self.progress, &mut simulation.progress);
        std::mem::swap(&mut self.in_flight, &mut simulation.in_flight);
        self.exchange_trace(simulation);
    }

    /// Exchanges data and oracle with those in the upper level, which keeps the oracle's counts of its own permissions.
    fn exchange_above(&mut self, simulation: &mut Simulation) {
        self.data.exchange(&mut simulation.data);
        std::mem::swap(&mut self.oracle, &mut simulation.oracle);
        let (one, other) = (&mut self.oracle, &mut simulation.oracle);
        std::mem::swap(&mut one.above, &mut other.above);
        self.exchange_trace(simulation);
    }

    fn exchange_trace(&mut self, simulation: &mut Simulation) {
        std::mem::swap(&mut self.trace, &mut simulation.trace);
        std::mem::swap(&mut self.flights, &mut simulation.flights);
    }
}
