//! The application behind the home, in a simulation: delivery of its events and execution of its actions.
//!
//! Events reach the application, and its actions take effect, after the latency of the path between it and the home.
//! The home's reads and writes take the memory path, everything else the path of local operations. A contract checks
//! both directions, and the oracle records the application's writes.

mod hardware;

use cohkit_application::contract::Contract;
use cohkit_application::interface::{
    Action, Actions, Contents, Event, Operation, Placement, Step, Table, Update, Words,
};
use cohkit_protocol::construct::rights::KnownRights;
use cohkit_protocol::controller::{Controller, Event as Cause};
use cohkit_protocol::orders::{Issue, Orders};
use cohkit_protocol::protocol::{Protocol, Right};
use cohkit_protocol::remotes::KindId;
use cohkit_protocol::threads::Accesses;
use rustc_hash::FxHashMap;

use super::home::Work;
use super::host::Host;
use super::host_memory_path::HostMemoryPath;
use super::program::{ConfigurationId, Transition};
use crate::components::bus::Bus;
use crate::data::{Copy, Data};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{Agent, Agents, Line};
use crate::oracle::Level;
use crate::platform::Platform;
use crate::scenario::{Play, ScenarioRun, Tally, Traffic};
use crate::simulation::{Event as KernelEvent, Simulation};

/// State of a run's application, and of the threads that its scenario brings.
pub(crate) struct ApplicationRun {
    pub played: Box<dyn ScenarioRun>,
    name: String,
    placement: Placement,
    contract: Contract,
    rights: Option<KnownRights>,
    /// Cache of known permissions by configuration of the home; `None` where not computed yet.
    known: Vec<Option<Right>>,
    /// Indices of the home's local operations among those of its controller: clean and clean-invalidate, each without
    /// and with lock.
    operations: [[Option<u8>; 2]; 2],
    /// Events scheduled for the application, by the number of their kernel event.
    pending_events: FxHashMap<u32, Event>,
    numbers: u32,
    /// Contents of the application's own lines, and of those that it serves.
    own: FxHashMap<Line, Words>,
    /// Outstanding local operations: the time of the request, and true if the home has written the line back since.
    asked: FxHashMap<Line, (Time, bool)>,
    /// Locks that the home holds for the application, with the permission that others keep, from the home's completion
    /// of the local operation until the unlock arrives. The application learns of the completion later.
    pub locks: FxHashMap<Line, Right>,
    /// Ports at which the slices accept local operations, and unlocks.
    locals: Ports,
    unlocks: Ports,
    /// Earliest time at which the next local operation may leave the device.
    leaves: Time,
    pub threads: Vec<Running>,
    /// Registers and the CPU's own memory; `None` on a machine without a bus.
    pub host: Option<Host>,
    /// Path to the host's memory if that memory is a separate space.
    pub beyond: Option<HostMemoryPath>,
    /// Start times of the durations that the application measures, by tag.
    began: FxHashMap<u32, Time>,
    pub tally: Tally,
    /// Access kinds with which threads read, write and fence, by kind of caching agent.
    pub accesses: Vec<Accesses>,
    /// Program order that threads keep, if the protocol declares one.
    pub orders: Option<Orders>,
    pub warm_up: Time,
    pub until: Time,
    /// Link traffic so far when the measurement window opened, and when it closed.
    link_traffic: [Option<Vec<Traffic>>; 2],
    stopped: bool,
    /// Number of consecutive events after which the application only woke itself, and the time of the last.
    idle: (u32, Time),
    /// True if the application is hardware in a clocked home. This instance then only observes: it receives the same
    /// events, and may count and time.
    hardware: bool,
}

/// State of a thread in a run.
#[derive(Clone)]
pub(crate) struct Running {
    /// The step in progress.
    pub step: Step,
    /// Result of its last access.
    pub result: u64,
    /// Start of the duration that the thread measures.
    pub since: Time,
    /// Outstanding stores that the thread does not wait for, releases included, in program order.
    pub posted: Vec<(Line, Issue)>,
    /// True if the step is to be executed as it is when the thread continues. Either it waits for a posted store, since
    /// `blocked`, or it replaces a refused step.
    pub again: bool,
    pub blocked: Time,
    /// True if the thread waits for all its stores.
    pub fenced: bool,
    /// True if the step is an acquiring load: caches receive an acquire when it has ended.
    pub acquires: bool,
    /// Time since when the thread waits for a register read.
    pub reads: Option<Time>,
    /// Time from which the thread may handle an interrupt that it has not consumed yet, and true if the thread waits
    /// for one.
    pub interrupted: Option<Time>,
    pub waits: bool,
    pub stopped: bool,
}

impl Running {
    /// Sets the step that follows a refused access.
    pub fn set_step_after_refusal(&mut self, step: Step) {
        (self.step, self.again, self.result, self.acquires) = (step, true, 0, false);
    }
}

/// Ports of all slices; each accepts one item per interval.
struct Ports {
    /// Time from which each port is free.
    free: Vec<Time>,
}

impl Ports {
    fn new(platform: &Platform) -> Ports {
        Ports {
            free: vec![0; platform.home.slices.value as usize],
        }
    }

    /// Returns when the slice of `line` accepts an item that is available at `now`, and occupies its port for
    /// `interval`.
    fn enter(&mut self, line: Line, now: Time, interval: Time) -> Time {
        let slice = line as usize % self.free.len();
        let at = self.free[slice].max(now);
        self.free[slice] = at + interval;
        at
    }

    /// Returns when the slice of `line` accepts, or has accepted, the last item given to its port.
    fn last(&self, line: Line, interval: Time) -> Time {
        let free = self.free[line as usize % self.free.len()];
        free.saturating_sub(interval)
    }
}

/// Describes a local operation that the application requires and the protocol's home lacks.
fn describe_missing_operation(name: &str, operation: Operation, lock: bool) -> String {
    let (operation, lock) = (operation.name(), if lock { " with lock" } else { "" });
    format!("{name} asks for a {operation}{lock}, which the home of the protocol does not support")
}

/// Maximum number of lines in one burst.
const MAX_LINES: Line = 1 << 16;

/// Maximum number of consecutive self-wakes of an application without any other activity.
const MOST_WAKES: u32 = 1 << 20;

/// Upper bound for requested times, in picoseconds: about 107 days. A later time is reported as a mistake.
pub(crate) const MAX_REQUESTED_TIME: Time = 1 << 63;

impl ApplicationRun {
    /// Creates an application that has not started.
    ///
    /// # Errors
    /// A sentence, if the application does not fit the machine or the protocol. It may use lines or words that do not
    /// exist, or have no end. The home may lack a local operation, or not track the permissions that the application
    /// needs.
    pub fn new(
        play: &Play,
        protocol: &Protocol,
        home: &Controller,
        platform: &Platform,
        hardware: bool,
    ) -> Result<ApplicationRun, String> {
        let homed = platform.lines;
        let words = u64::from(protocol.line_bytes / 8);
        let mut played = play.scenario.begin();
        let application = played.application();
        let (name, placement) = (application.name().to_string(), application.placement());
        let uses = match &placement {
            Placement::Between(lines) => lines.end.max(play.scenario.uses()),
            Placement::Beside | Placement::Among(_) => play.scenario.uses(),
        };
        if uses > homed {
            return Err(format!("{name} uses {uses} lines, but memory has {homed}"));
        }
        if play.rights.is_none() && placement != Placement::Beside {
            return Err(format!(
                "{name} is placed between the home and memory, but the home does not track permissions"
            ));
        }
        let used = play.scenario.words_used();
        if used > words {
            return Err(format!(
                "{name} uses {used} words of each line, but a line has {words}"
            ));
        }
        if play.until.is_none() && !play.scenario.has_end() {
            return Err(format!("{name} never ends, and no end time is given"));
        }
        if play.until.is_some_and(|until| until <= play.warm_up) {
            return Err(format!("{name} would end before the end of its warm-up"));
        }
        let number = |operation: Operation, lock: bool| {
            let mut locals = home.locals.iter();
            let found = locals.position(|l| l.ensures == operation.leaves() && l.locks == lock);
            found.map(|found| found as u8)
        };
        let lacks = |&(operation, lock): &(_, _)| number(operation, lock).is_none();
        if let Some((operation, lock)) = play
            .scenario
            .operation_requirements()
            .into_iter()
            .find(lacks)
        {
            return Err(describe_missing_operation(&name, operation, lock));
        }
        let both = |operation| [number(operation, false), number(operation, true)];
        let kinds = (0..protocol.kinds.len() as u8).map(KindId);
        let running = Running {
            step: Step::Stop,
            result: 0,
            since: 0,
            posted: Vec::new(),
            again: false,
            blocked: 0,
            fenced: false,
            acquires: false,
            reads: None,
            interrupted: None,
            waits: false,
            stopped: false,
        };
        Ok(ApplicationRun {
            threads: vec![running; played.threads()],
            played,
            contract: Contract::new(placement.clone(), homed),
            name,
            placement,
            rights: play.rights.clone(),
            known: Vec::new(),
            operations: [both(Operation::Clean), both(Operation::CleanInvalidate)],
            pending_events: FxHashMap::default(),
            numbers: 0,
            own: FxHashMap::default(),
            asked: FxHashMap::default(),
            locks: FxHashMap::default(),
            locals: Ports::new(platform),
            unlocks: Ports::new(platform),
            leaves: 0,
            host: platform.bus.as_ref().map(|bus| Host::new(Bus::new(bus))),
            beyond: None,
            began: FxHashMap::default(),
            tally: Tally::default(),
            accesses: kinds
                .map(|kind| Accesses::of_kind(protocol, kind))
                .collect(),
            orders: protocol.kept,
            warm_up: play.warm_up,
            until: play.until.unwrap_or(Time::MAX),
            link_traffic: [None, None],
            stopped: false,
            idle: (0, 0),
            hardware,
        })
    }

    /// True if no event, local operation or transfer of the application is outstanding.
    pub fn done(&self) -> bool {
        let open = self.contract.open().next().is_some();
        let transfers = self.host.as_ref().is_some_and(|host| !host.done());
        self.pending_events.is_empty() && self.asked.is_empty() && !open && !transfers
    }

    /// True if a thread has not stopped.
    pub fn running(&self) -> bool {
        self.threads.iter().any(|thread| !thread.stopped)
    }

    /// The application's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a thread that polls a word of the CPU's own memory, if there is one.
    pub fn polling_thread(&self) -> Option<usize> {
        let polling_thread =
            |thread: &Running| !thread.stopped && matches!(thread.step, Step::LoadHost { .. });
        self.threads.iter().position(polling_thread)
    }

    /// Returns a thread that waits for an interrupt, if there is one.
    pub fn thread_awaiting_interrupt(&self) -> Option<usize> {
        let waits = |thread: &Running| !thread.stopped && thread.waits;
        self.threads.iter().position(waits)
    }

    /// Returns the outstanding obligations of the application's contract as (line, description).
    pub fn open(&self) -> Vec<(Line, String)> {
        let open = self.contract.open();
        open.map(|open| (open.line, format!("{} {}", self.name, open.what)))
            .collect()
    }

    /// Returns the permission that the application has for a line under its lock.
    pub fn lock_right(&self, line: Line) -> Right {
        match self.locks.get(&line) {
            Some(Right::None) => Right::Write,
            Some(_) => Right::Read,
            None => Right::None,
        }
    }

    /// Adds `by` to a counter if `at` is within the measurement window. Counters saturate.
    pub fn count(&mut self, what: &'static str, by: u64, at: Time) {
        if (self.warm_up..=self.until).contains(&at) {
            let count = self.tally.counts.entry(what).or_default();
            *count = count.saturating_add(by);
            let course = self.tally.rate_samplers.entry(what).or_default();
            if course.happened(by) {
                course.keep(at, 0);
            }
        }
    }

    /// Records that the application has handled an event. Returns the reason if the run will never end.
    ///
    /// While a thread runs, only self-wakes at the same time count.
    fn livelock_reason(&mut self, idles: bool, now: Time, timeout: Time) -> Option<String> {
        let goes_on = idles && (now == self.idle.1 || !self.running());
        self.idle = (if goes_on { self.idle.0 + 1 } else { 0 }, now);
        if self.idle.0 == MOST_WAKES {
            return Some(format!(
                "{} wakes itself {MOST_WAKES} times in a row without any other activity",
                self.name
            ));
        }
        (now.saturating_sub(self.until) > timeout).then(|| {
            format!(
                "{} still runs {} ns after the request to stop",
                self.name,
                (now - self.until) / 1000
            )
        })
    }

    /// Records the duration from `since` to `at` if both are within the measurement window.
    pub fn time(&mut self, what: &'static str, since: Time, at: Time) {
        if since >= self.warm_up && at <= self.until {
            let times = self.tally.times.entry(what);
            times.or_default().record(at - since);
        }
    }
}

impl Simulation {
    /// True if the application answers the home's reads of `line` and accepts its writes.
    #[inline]
    pub(crate) fn served(&self, line: Line) -> bool {
        let behind = self.behind.as_ref();
        behind.is_some_and(|behind| behind.placement.serves(line))
    }

    /// Returns the highest permission that, to the home's knowledge, any cache may have in a configuration.
    fn known_right(&mut self, configuration: ConfigurationId) -> Right {
        let remotes = self.groups.caches();
        let Some(behind) = &mut self.behind else {
            return Right::None;
        };
        let Some(rights) = &behind.rights else {
            return Right::None;
        };
        let known = || {
            let home = self.home.configuration(configuration);
            rights.most(self.home.controller(), remotes, &home)
        };
        if !self.home.is_numbered() {
            return known();
        }
        let index = configuration as usize;
        if index >= behind.known.len() {
            behind.known.resize(index + 1, None);
        }
        match behind.known[index] {
            Some(right) => right,
            None => *behind.known[index].insert(known()),
        }
    }

    /// Schedules the delivery of an event to the application at `at`, which is not in the past.
    pub(crate) fn tell(&mut self, at: Time, event: Event) {
        if let Some(behind) = &mut self.behind {
            let number = behind.numbers;
            behind.numbers = number.wrapping_add(1);
            behind.pending_events.insert(number, event);
            self.expect(at);
            self.queue.push(at, KernelEvent::Application(number));
        }
    }

    /// Starts the application and its threads, and schedules the end of the run.
    pub(crate) fn start_application(&mut self) {
        let words = self.data.words();
        let Some(behind) = &self.behind else {
            return;
        };
        let until = behind.until;
        if self.has_core(0) {
            self.tell(0, Event::Start { words });
        }
        if until < Time::MAX {
            self.queue.push(until, KernelEvent::StopApplication);
        }
        for thread in 0..self.behind.as_ref().map_or(0, |b| b.threads.len()) {
            if self.has_core(thread as u16) {
                self.thread(thread as u16, 0);
            }
        }
    }

    /// Returns the traffic so far on the links of each kind of caching agent.
    fn link_traffic(&self) -> Vec<Traffic> {
        let of_cache = |cache: Agent| {
            let (number, network) = (cache.index(), &self.network);
            let both = [&network.up[number], &network.down[number]];
            let port = network.ports.get(number).and_then(Option::as_ref);
            let bytes = |side: usize| port.map_or(both[side].bytes, |port| port.bytes(side));
            (both[0].messages + both[1].messages, bytes(0) + bytes(1))
        };
        let of_kind = |caches: &Agents| {
            let all = caches.iter().map(of_cache);
            all.fold(Traffic::default(), |sum, (messages, bytes)| Traffic {
                messages: sum.messages + messages,
                bytes: sum.bytes + bytes,
            })
        };
        let groups = self.groups.groups.iter();
        groups.map(|group| of_kind(&group.caches)).collect()
    }

    /// Opens the measurement window of link traffic at the first message sent after warm-up; earlier traffic does not
    /// count.
    pub(crate) fn open_traffic_window(&mut self) {
        let begins = |behind: &ApplicationRun| {
            behind.link_traffic[0].is_none() && self.now >= behind.warm_up
        };
        if self.behind.as_deref().is_some_and(begins) {
            let link_traffic = Some(self.link_traffic());
            if let Some(behind) = &mut self.behind {
                behind.link_traffic[0] = link_traffic;
            }
        }
    }

    /// Stops the application and the threads that wait for interrupts, and closes the window of link traffic.
    pub(crate) fn stop_application(&mut self) {
        let link_traffic = self.link_traffic();
        if let Some(behind) = &mut self.behind {
            behind.link_traffic[1].get_or_insert(link_traffic);
        }
        if let Some(behind) = &mut self.behind {
            // The thread stops even if no interrupt arrives any more.
            for thread in behind.threads.iter_mut().filter(|thread| thread.waits) {
                thread.stopped = true;
            }
            if !std::mem::replace(&mut behind.stopped, true) {
                self.tell(self.now, Event::Stop);
            }
        }
    }

    /// Notifies the application if a step of the home has changed the CPU's permission for `line`.
    pub(crate) fn changed(&mut self, line: Line, before: ConfigurationId, after: ConfigurationId) {
        let (from, to) = (self.known_right(before), self.known_right(after));
        if from != to {
            let at = self.now + self.times.latency + self.times.local.1;
            self.tell(at, Event::Changed { line, from, to });
        }
    }

    /// Presents the home's read of a line that the application serves.
    pub(crate) fn present_application_read(
        &mut self,
        ready: Time,
        line: Line,
        transition: &Transition,
    ) {
        let input = Self::local_input(&self.home, Cause::MemoryData(0), crate::message::HOME);
        let granted = self.home.step(transition.next, &input).next;
        let (has, wants) = (self.known_right(transition.next), self.known_right(granted));
        // An uncached read leaves the CPU's permission as it is.
        let wants = if wants > has { wants } else { Right::None };
        let at = ready + self.times.path.0;
        self.tell(at, Event::Read { line, wants, has });
    }

    /// Presents the home's write of a line that the application serves; memory's copy already has the new contents.
    pub(crate) fn present_application_write(
        &mut self,
        ready: Time,
        line: Line,
        next: ConfigurationId,
    ) {
        let words = self.words(line, self.data.memory(line));
        let keeps = self.known_right(next);
        let at = ready + self.times.path.0;
        self.tell(at, Event::Write { line, words, keeps });
    }

    /// Records that the home has written back a line with an outstanding local operation.
    pub(crate) fn written_back(&mut self, line: Line) {
        if let Some(behind) = &mut self.behind {
            if let Some((_, dirty)) = behind.asked.get_mut(&line) {
                *dirty = true;
            }
        }
    }

    /// Completes a local operation that the application requested.
    pub(crate) fn acknowledge_application(&mut self, line: Line, ensures: Right, locks: bool) {
        let at = self.now + self.times.latency + self.times.local.1;
        let Some(behind) = &mut self.behind else {
            return;
        };
        let Some((since, dirty)) = behind.asked.remove(&line) else {
            return;
        };
        if locks {
            behind.locks.insert(line, ensures);
        }
        let (what, operation) = match ensures {
            Right::None => ("clean-invalidate", Operation::CleanInvalidate),
            _ => ("clean", Operation::Clean),
        };
        behind.time(what, since, at);
        self.tell(
            at,
            Event::Done {
                line,
                operation,
                dirty,
            },
        );
    }

    /// Delivers an event to the application and carries out its actions.
    pub(crate) fn application(&mut self, number: u32) {
        let Some(behind) = &mut self.behind else {
            return;
        };
        let Some(event) = behind.pending_events.remove(&number) else {
            return;
        };
        behind.contract.event(&event);
        let timer = matches!(event, Event::Timer { .. });
        let heard = hardware::heard(&event).filter(|_| behind.hardware);
        let mut actions = Actions::new();
        behind.played.application().handle(event, &mut actions);
        if let Some(heard) = heard {
            self.submit_application_event(heard);
        }
        let actions: Vec<Action> = actions.take().collect();
        let waits =
            |action: &Action| matches!(action, Action::Wake { .. }) || is_measurement(action);
        let idles = timer && actions.iter().all(waits);
        for action in actions {
            self.carry_out(action);
        }
        let (now, timeout) = (self.now, self.times.timeout);
        self.expect(now);
        let livelock_reason = self
            .behind
            .as_mut()
            .and_then(|behind| behind.livelock_reason(idles, now, timeout));
        if let Some(text) = livelock_reason {
            self.fail(FailureKind::Contract, 0, text);
        }
        let behind = self.behind.as_mut();
        if let Some((name, what)) = behind.and_then(|b| {
            b.contract
                .blocking_reason()
                .map(|what| (b.name.clone(), what))
        }) {
            self.fail(FailureKind::Refused, 0, format!("{name} {what}"));
        }
    }

    /// Carries out one action of the application.
    fn carry_out(&mut self, action: Action) {
        let now = self.now;
        let Some(behind) = &mut self.behind else {
            return;
        };
        if behind.hardware && !is_measurement(&action) {
            let text = format!(
                "{} is in hardware, but its software model acts too",
                behind.name
            );
            return self.fail(FailureKind::Contract, 0, text);
        }
        if let Err(breach) = behind.contract.action(&action) {
            let text = format!("{} {}", behind.name, breach.what);
            return self.fail(FailureKind::Contract, breach.line, text);
        }
        match action {
            Action::Answer { line, words } => {
                self.write_by_application(line, &words);
                self.queue
                    .push(now + self.times.path.1, KernelEvent::Read(line));
            }
            Action::Accept { line } => {
                let at = now + self.times.path.1;
                self.queue.push(at, KernelEvent::Written(line));
            }
            Action::Local {
                line,
                operation,
                lock,
            } => {
                let row = behind.operations[usize::from(operation == Operation::CleanInvalidate)];
                let Some(number) = row[usize::from(lock)] else {
                    let text = describe_missing_operation(&behind.name, operation, lock);
                    return self.fail(FailureKind::Incompatible, line, text);
                };
                if line >= self.platform.lines {
                    let text = format!(
                        "{} cleans a line outside the memory of the home",
                        behind.name
                    );
                    return self.fail(FailureKind::Contract, line, text);
                }
                behind.asked.insert(line, (now, false));
                // The operation may concern a line whose unlock still waits at the other port. It must not overtake
                // that unlock.
                let interval = self.times.local_interval;
                // The device gives local operations to all slices through one port.
                let leaves = now.max(behind.leaves);
                behind.leaves = leaves + self.times.issue;
                let since = leaves.max(behind.unlocks.last(line, interval));
                let at = behind.locals.enter(line, since, interval);
                let at = at + self.times.local.0;
                self.queue.push(at, KernelEvent::Local(line, number));
            }
            Action::Unlock { line } => {
                let at = behind.unlocks.enter(line, now, self.times.local_interval);
                let at = at + self.times.local.0;
                self.queue.push(at, KernelEvent::LocalUnlock(line));
            }
            Action::Fetch { tag, first, lines } => self.fetch(tag, first, lines, 1),
            Action::Store { tag, line, words } => self.store_by_application(tag, line, words),
            Action::ReadWords {
                tag,
                line,
                word,
                words,
            } => {
                let its = usize::from(word)..usize::from(word + words);
                let words = self.memory_words(line)[its.clone()].into();
                let at = self.memory_of_words(line, its);
                self.tell(at, Event::WordsRead { tag, words });
            }
            Action::WriteWords {
                tag,
                line,
                word,
                words,
            } => {
                let its = usize::from(word)..usize::from(word) + words.len();
                let mut all = self.memory_words(line);
                all[its.clone()].copy_from_slice(&words);
                self.set_memory_words(line, all);
                let at = self.memory_of_words(line, its);
                self.tell(at, Event::Stored { tag });
            }
            Action::UpdateWord {
                tag,
                line,
                word,
                update,
            } => self.update_by_application(tag, line, word.into(), update),
            Action::Wake { tag, after } => {
                let Some(at) = now.checked_add(after).filter(|at| *at < MAX_REQUESTED_TIME) else {
                    let text = format!(
                        "{} requests a wake-up after {after} ps, which is beyond the end of simulated time",
                        behind.name
                    );
                    return self.fail(FailureKind::Contract, 0, text);
                };
                self.tell(at, Event::Timer { tag });
            }
            Action::Reply { thread, value } => self.reply(thread, value),
            // Only the contract needs this action.
            Action::Forgo { .. } => {}
            Action::HostFetch { tag, first, words } => self.host_fetch(tag, first, words),
            Action::HostStore { first, words } => self.host_store(first, words),
            Action::Interrupt { thread } => self.interrupt(thread),
            Action::CoherentLoad { .. }
            | Action::CoherentStore { .. }
            | Action::CoherentUpdate { .. } => self.issue_application_access(action),
            Action::Begin { tag } => drop(behind.began.insert(tag, now)),
            Action::End { tag, what } => {
                if let Some(since) = behind.began.remove(&tag) {
                    behind.time(what, since, now);
                }
            }
            Action::Count { what, by } => behind.count(what, by, now),
        }
    }

    /// Reads a burst from the application's memory: `lines` lines, `step` apart.
    fn fetch(&mut self, tag: u32, first: Line, lines: Line, step: Line) {
        let last = lines.min(MAX_LINES).checked_mul(step);
        let last = last.and_then(|length| first.checked_add(length));
        let (Some(end), Some(_)) = (last.filter(|_| lines <= MAX_LINES), &self.behind) else {
            let name = self.behind.as_ref().map_or("", |behind| &behind.name);
            let text = format!("{name} reads {lines} lines at once; {MAX_LINES} is the most");
            return self.fail(FailureKind::Contract, first, text);
        };
        let mut at = self.now;
        for line in (first..end).step_by(step as usize) {
            let words = self.memory_words(line);
            at = at.max(self.memory(self.now, line));
            self.tell(at, Event::Fetched { tag, line, words });
        }
    }

    /// Returns the contents of a line of the application's memory.
    fn memory_words(&self, line: Line) -> Words {
        let behind = self.behind.as_ref();
        match behind.and_then(|behind| behind.own.get(&line)) {
            Some(words) => words.clone(),
            // Lines that the application has never written keep their initial contents, or those that the home has
            // written.
            None if line >= self.platform.lines || self.served(line) => {
                self.words(line, Copy::UNTOUCHED)
            }
            None => self.words(line, self.data.memory(line)),
        }
    }

    /// Updates a word of the application's memory atomically and returns the old value. The read and the write of the
    /// word occupy the memory back to back.
    fn update_by_application(&mut self, tag: u32, line: Line, word: usize, update: Update) {
        let mut all = self.memory_words(line);
        let before = all[word];
        all[word] = update.of(before);
        let at = self.memory_of_words(line, word..word + 1);
        if all[word] != before {
            self.set_memory_words(line, all);
            self.memory_of_words(line, word..word + 1);
        }
        let words = [before].into();
        self.tell(at, Event::WordsRead { tag, words });
    }

    /// Occupies the memory behind the line's home for an operation on `words`. Returns when that operation ends.
    fn memory_of_words(&mut self, line: Line, words: std::ops::Range<usize>) -> Time {
        let homes = self.memories.len();
        let place = line >> homes.trailing_zeros();
        let bytes = 8 * words.start as u32..8 * words.end as u32;
        self.memories[line as usize & (homes - 1)].operate_on(self.now, place, bytes)
    }

    /// Sets the contents of a line of the application's memory.
    fn set_memory_words(&mut self, line: Line, words: Words) {
        if line < self.platform.lines && !self.served(line) {
            self.write_by_application(line, &words);
        } else if let Some(behind) = &mut self.behind {
            behind.own.insert(line, words);
        }
    }

    /// Writes a line of the application's memory.
    fn store_by_application(&mut self, tag: u32, line: Line, words: Words) {
        self.set_memory_words(line, words);
        let at = self.memory(self.now, line);
        self.tell(at, Event::Stored { tag });
    }

    /// Returns the words of a copy of a line.
    fn words(&self, line: Line, copy: Copy) -> Words {
        let words = 0..self.data.words();
        words.map(|word| self.data.word(line, copy, word)).collect()
    }

    /// Sets the words of a line homed here. The oracle records a write, performed now, for each word that changes.
    fn write_by_application(&mut self, line: Line, words: &Words) {
        let old = self.data.memory(line);
        let before = self.words(line, old);
        if words.len() != before.len() {
            let name = self.behind.as_ref().map_or("", |behind| &behind.name);
            let (given, wanted) = (words.len(), before.len());
            let text = format!("{name} gives a line of {given} words; lines have {wanted}");
            return self.fail(FailureKind::Contract, line, text);
        }
        let changed = |word: &usize| words[*word] != before[*word];
        let changed: Vec<usize> = (0..words.len()).filter(changed).collect();
        if changed.is_empty() {
            return;
        }
        self.check_memory(line, "is written by the application");
        for cache in self.caches.agents() {
            let configuration = self.caches.configuration(cache, line);
            if self.remote.about(configuration).right > Right::None {
                let name = self.behind.as_ref().map_or("", |behind| &behind.name);
                let cache = self.agent_name(cache);
                let text = format!("{name} changes a line of which {cache} has a copy");
                return self.fail(FailureKind::Contract, line, text);
            }
        }
        let mut copy = self.data.share(old);
        for word in changed {
            let (value, word) = (words[word], word as u16);
            let version = self.oracle.write(line, word..word + 1, value);
            copy = self.data.write_word(line, copy, word, value, version);
        }
        self.data.set_memory(line, copy);
    }

    /// Presents a local operation of the application to the home.
    pub(crate) fn present_local_operation(&mut self, line: Line, number: u8) {
        self.present_local(Work::Local(line, number), line);
    }

    /// Presents an unlock of the application to the home.
    pub(crate) fn present_unlock(&mut self, line: Line) {
        if let Some(behind) = &mut self.behind {
            behind.locks.remove(&line);
        }
        self.present_local(Work::Unlock(line), line);
    }

    /// Closes the measurement window of counts and durations.
    pub(crate) fn close_window(&mut self) {
        if let Some(behind) = &mut self.behind {
            let end = behind.until.min(self.counters.end.max(self.now));
            behind.tally.window = end.saturating_sub(behind.warm_up);
        }
    }

    /// Closes the scenario's measurement and verifies its result.
    pub(crate) fn verify_scenario(&mut self) {
        self.close_window();
        let link_traffic = self.link_traffic();
        let Some(mut behind) = self.behind.take() else {
            return;
        };
        if let [Some(before), after] = &behind.link_traffic {
            let after = after.as_ref().unwrap_or(&link_traffic).iter().zip(before);
            let since = after.map(|(after, before)| Traffic {
                messages: after.messages - before.messages,
                bytes: after.bytes - before.bytes,
            });
            behind.tally.traffic = since.collect();
        }
        let verdict = match self.oracle.level {
            Level::Off => Ok(()),
            _ => behind.played.verify(&*self),
        };
        self.behind = Some(behind);
        self.judge_scenario(verdict);
    }

    /// Fails the run if the scenario's result is wrong.
    pub(crate) fn judge_scenario(&mut self, verdict: Result<(), String>) {
        let name = self.behind.as_ref().map_or("", |behind| behind.name());
        if let Err(wrong) = verdict {
            self.fail(FailureKind::Result, 0, format!("{name}: {wrong}"));
        }
    }

    /// Returns the tables that the scenario produced for external judges; empty without a scenario.
    pub fn tables(&self) -> Vec<Table> {
        let behind = self.behind.as_ref();
        behind
            .map(|behind| behind.played.tables())
            .unwrap_or_default()
    }

    /// Returns the counts and durations of the scenario after the run; empty without a scenario.
    pub fn tally(&self) -> Tally {
        let behind = self.behind.as_ref();
        behind
            .map(|behind| behind.tally.clone())
            .unwrap_or_default()
    }
}

/// True if an action only counts or times.
fn is_measurement(action: &Action) -> bool {
    matches!(
        action,
        Action::Count { .. } | Action::Begin { .. } | Action::End { .. }
    )
}

impl Contents for Simulation {
    fn word(&self, line: Line, word: u16) -> u64 {
        let mut held = self.caches.agents().filter_map(|cache| {
            let (configuration, copy) = self.caches.held(cache, line);
            (self.remote.about(configuration).right > Right::None).then_some(copy)
        });
        let memory = self.data.memory(line);
        let copy = match self.oracle.may_be_stale() {
            // A cache with read permission has the value written last.
            false => held.next().unwrap_or(memory),
            true => held.fold(memory, |newest, copy| {
                let newer = self.data.version(copy) > self.data.version(newest);
                if newer {
                    copy
                } else {
                    newest
                }
            }),
        };
        self.data.word(line, copy, word)
    }

    fn initial(&self, line: Line, word: u16) -> u64 {
        Data::untouched_word(line, word)
    }
}
