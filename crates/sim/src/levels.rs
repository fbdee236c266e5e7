//! Two levels of caches in time: below each cache of a machine lies another machine, whose memory is that cache's copy.
//!
//! Both levels are [`Simulation`]s that know of the other what they are told after each event: caches and homes execute the
//! controllers of their own texts. What is between them follows from rights, by the rules of [`cohkit_system::over`]:
//!
//! * a request waits at its home until the cache above has the right that it needs, which a hint there brings;
//! * what memory is here is the copy there; a write of it is a store in place there;
//! * what would lower the right above, or evict the line, waits until the home here has run a locking local operation;
//! * while such a lock is wanted or held, no hint begins.
//!
//! Contents, the oracle, cores, and what is counted of them are those of all machines of the lower level together.

use cohkit_protocol::protocol::Right;
use cohkit_system::over;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

use crate::agents::behind::ApplicationRun;
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

/// A lock of the upper level at a home below: it wants a line back so far.
#[derive(Clone, Copy, Debug)]
struct Lock {
    /// What caches below may do under it.
    ensures: Right,
    stage: Stage,
    /// Whether the cache wants to evict the line.
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

/// What a machine of the lower level tells the cache above it.
#[derive(Clone, Copy, Debug)]
enum Up {
    /// A request waits for this right.
    Wants(Line, Right),
    /// Memory has been written.
    Written(Line),
    /// The lock that was wanted is held.
    Locked(Line),
    /// It has been given back.
    Unlocked(Line),
}

/// What the upper level tells what is below one of its caches.
#[derive(Clone, Copy, Debug)]
enum Down {
    /// The right or the copy there has changed.
    Changed(Line),
    /// The line has to be locked so that caches below may do no more than this.
    Recall(Line, Right),
    /// The lock is given back.
    Unlock(Line),
}

/// What a machine of the lower level knows of the upper one.
pub(crate) struct Above {
    /// The cache above it, and how many there are.
    pub cache: Agent,
    caches: u16,
    /// What that cache may do with each line.
    rights: Paged<Right>,
    /// The right that each message needs there.
    needs: Vec<Right>,
    locks: FxHashMap<Line, Lock>,
    told: Vec<Up>,
    /// How many lifelines are before those here, and the names of all.
    pub lifelines: usize,
    pub all: Rc<[String]>,
}

impl Above {
    /// Whether a core, of those of all machines, is before one of the so many caches here.
    pub fn has_core(&self, core: u16, caches: u16) -> bool {
        let caches = core / caches;
        caches % self.caches == self.cache.0
    }

    /// Memory has been written.
    pub fn written(&mut self, line: Line) {
        self.told.push(Up::Written(line));
    }

    /// The home has acknowledged the local operation that was asked for.
    pub fn locked(&mut self, line: Line) {
        if let Some(lock) = self.locks.get_mut(&line) {
            lock.stage = Stage::Held;
            self.told.push(Up::Locked(line));
        }
    }

    /// The home takes the unlock.
    pub fn gives_back(&mut self, line: Line) {
        if let Some(lock) = self.locks.get_mut(&line) {
            lock.stage = Stage::GivenBack;
        }
    }

    /// What the level above may do with a line under its lock.
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

/// What the upper level knows of what is below its caches.
pub(crate) struct Below {
    locks: FxHashMap<(Agent, Line), Lock>,
    /// Lines that hints bring at this time.
    asked: FxHashSet<(Agent, Line)>,
    told: Vec<(Agent, Down)>,
    /// The names of all lifelines.
    pub all: Rc<[String]>,
}

impl Below {
    /// Whether no lock of a line is wanted or held.
    pub fn is_free(&self, cache: Agent, line: Line) -> bool {
        !self.locks.contains_key(&(cache, line))
    }

    /// Whether a line is wanted back to be evicted.
    pub fn evicts(&self, cache: Agent, line: Line) -> bool {
        let lock = self.locks.get(&(cache, line));
        lock.is_some_and(|lock| lock.evicts)
    }

    /// A hint has ended.
    pub fn brought(&mut self, cache: Agent, line: Line) {
        self.asked.remove(&(cache, line));
    }

    /// A cache's entry of a line has changed.
    pub fn changed(&mut self, cache: Agent, line: Line) {
        self.told.push((cache, Down::Changed(line)));
    }
}

/// The upper level.
impl Simulation {
    /// Whether what is below has to give a line back before a cache's row runs; it is asked to.
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
        let Some(left) = over::lowers(before, after, sends_line) else {
            return false;
        };
        match below.locks.get_mut(&(cache, line)) {
            Some(lock) => {
                lock.evicts |= evicts;
                lock.stage != Stage::Held || !over::lets(lock.ensures, left)
            }
            None => {
                let lock = Lock::wanted(left, evicts);
                below.locks.insert((cache, line), lock);
                below.told.push((cache, Down::Recall(line, left)));
                true
            }
        }
    }

    /// A request below a cache waits for a right.
    fn wanted_below(&mut self, cache: Agent, line: Line, right: Right) {
        let begins = (self.below.as_mut())
            .is_some_and(|below| below.is_free(cache, line) && below.asked.insert((cache, line)));
        if begins {
            let (access, now) = (over::brings(right), self.now);
            // Before each of these caches is one core, which has its number.
            self.start(line, access, 0, cache.0, now, Purpose::Hint);
        }
    }

    /// A home below has locked a line: what waited for that goes on, and the lock is given back.
    fn locked_below(&mut self, cache: Agent, line: Line) {
        let Some(lock) = (self.below.as_mut()).and_then(|b| b.locks.get_mut(&(cache, line))) else {
            return;
        };
        lock.stage = Stage::Held;
        self.deliver_left(cache, line);
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

    /// A home below is open again for a line.
    fn free_below(&mut self, cache: Agent, line: Line) {
        if let Some(below) = &mut self.below {
            below.locks.remove(&(cache, line));
        }
        self.deliver_left(cache, line);
        self.unpark(cache);
    }
}

/// The lower level.
impl Simulation {
    /// The names of the agents below a cache: each with its number, and its home.
    pub(crate) fn lifelines_below(&self, cache: Agent) -> Vec<String> {
        let name = &self.remote.controller().name;
        let remotes = (0..self.groups.caches()).map(|r| format!("{name} {}.{r}", cache.0));
        let home = format!("{} {}", self.home.controller().name, cache.0);
        remotes.chain([home]).collect()
    }

    /// Whether a message waits until the cache above has the right that it needs; it is asked for that.
    pub(crate) fn waits_for_above(&mut self, line: Line, message: Option<&Message>) -> bool {
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

    /// What the home does with an input, knowing whether it may write its memory.
    pub(crate) fn step_below(
        &mut self,
        line: Line,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        let above = self.above.as_ref();
        let writes = above.is_some_and(|above| above.rights.get(line) == Right::Write);
        let lent = self.home.lent(configuration, writes);
        let mut transition = self.home.step(lent, input);
        if transition.answer == Answer::Take {
            // A configuration is the same whatever the right above was when the home was last asked.
            transition.next = self.home.lent(transition.next, true);
        }
        transition
    }

    /// The cache above has another right or another copy.
    fn changed_above(&mut self, line: Line, right: Right, copy: Copy) {
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
            self.present_again(self.unit_of(line), line);
        }
    }

    /// No cache has a right that the one above lacks.
    pub(crate) fn check_inclusion(&mut self, cache: Agent, line: Line, right: Right) {
        let above = self.above.as_ref().map(|above| above.rights.get(line));
        if let Some(above) = above.filter(|above| right > *above) {
            let name = self.agent_name(cache);
            let text = format!("{name} may {right} while the cache above it may {above}");
            self.fail(FailureKind::Inclusion, line, text);
        }
    }

    /// The level above wants a line back so far.
    fn recalled(&mut self, line: Line, left: Right) {
        let Some(local) = over::recalls(&self.home.controller().locals, left) else {
            let text = format!("no local operation below locks the line and leaves {left:?}");
            return self.fail(FailureKind::Meaningless, line, text);
        };
        if let Some(above) = &mut self.above {
            above.locks.insert(line, Lock::wanted(left, false));
        }
        self.present_local(Work::Local(line, local), line);
    }

    /// The home has taken the unlock.
    pub(crate) fn unlocked_below(&mut self, line: Line) {
        if let Some(above) = &mut self.above {
            above.locks.remove(&line);
            above.told.push(Up::Unlocked(line));
        }
    }
}

/// What all machines of the lower level have together.
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
    /// Changes places with what is in a machine of the lower level.
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

    /// Changes places with what is in the upper level, which has the contents, and its own rights for the oracle.
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
