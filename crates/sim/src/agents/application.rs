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

use super::host::Host;
use super::host_memory_path::HostMemoryPath;
use super::program::{ConfigurationId, Transition};
use crate::components::bus::Bus;
use crate::data::{Copy, Data};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{Agent, Agents, Line, Work};
use crate::oracle::Level;
use crate::platform::Platform;
use crate::scenario::{Play, ScenarioRun, Tally, Traffic};
use crate::simulation::{Event as KernelEvent, Simulation};

/// State of a run's application, and of the threads that its scenario brings.
pub(crate) struct ApplicationRun {
    pub scenario_run: Box<dyn ScenarioRun>,
    name: String,
    placement: Placement,
    contract: Contract,
    rights: Option<KnownRights>,
    /// Cache of known permissions by configuration of the home; `None` where not computed yet.
    known_rights: Vec<Option<Right>>,
    /// Indices of the home's local operations among those of its controller: clean and clean-invalidate, each without
    /// and with lock.
    operations: [[Option<u8>; 2]; 2],
    /// Events scheduled for the application, by the number of their kernel event.
    pending_events: FxHashMap<u32, Event>,
    next_number: u32,
    /// Contents of the application's own lines, and of those that it serves.
    line_contents: FxHashMap<Line, Words>,
    /// Outstanding local operations: the time of the request, and true if the home has written the line back since.
    pending_operations: FxHashMap<Line, (Time, bool)>,
    /// Locks that the home holds for the application, with the permission that others keep, from the home's completion
    /// of the local operation until the unlock arrives. The application learns of the completion later.
    pub locks: FxHashMap<Line, Right>,
    /// Ports at which the slices accept local operations, and unlocks.
    local_ports: Ports,
    unlock_ports: Ports,
    /// Earliest time at which the next local operation may leave the device.
    next_issue: Time,
    pub threads: Vec<ThreadState>,
    /// Registers and the CPU's own memory; `None` on a machine without a bus.
    pub host: Option<Host>,
    /// Path to the host's memory if that memory is a separate space.
    pub host_path: Option<HostMemoryPath>,
    /// Start times of the durations that the application measures, by tag.
    measurement_starts: FxHashMap<u32, Time>,
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
    idle_wakes: (u32, Time),
    /// True if the application is hardware in a clocked home. This instance then only observes: it receives the same
    /// events, and may count and time.
    is_hardware: bool,
}

/// State of a thread in a run.
#[derive(Clone)]
pub(crate) struct ThreadState {
    /// The step in progress.
    pub step: Step,
    /// Result of its last access.
    pub result: u64,
    /// Start of the duration that the thread measures.
    pub measurement_start: Time,
    /// Outstanding stores that the thread does not wait for, releases included, in program order.
    pub posted: Vec<(Line, Issue)>,
    /// True if the step is to be executed as it is when the thread continues. Either it waits for a posted store, since
    /// `blocked_since`, or it replaces a refused step.
    pub repeats_step: bool,
    pub blocked_since: Time,
    /// True if the thread waits for all its stores.
    pub awaits_stores: bool,
    /// True if the step is an acquiring load: caches receive an acquire when it has ended.
    pub is_acquiring: bool,
    /// Time since when the thread waits for a register read.
    pub reading_since: Option<Time>,
    /// Time from which the thread may handle an interrupt that it has not consumed yet, and true if the thread waits
    /// for one.
    pub pending_interrupt: Option<Time>,
    pub awaits_interrupt: bool,
    pub stopped: bool,
}

impl ThreadState {
    /// Sets the step that follows a refused access.
    pub fn set_step_after_refusal(&mut self, step: Step) {
        (self.step, self.repeats_step, self.result, self.is_acquiring) = (step, true, 0, false);
    }
}

/// Ports of all slices; each accepts one item per interval.
struct Ports {
    /// Time from which each port is free.
    free_at: Vec<Time>,
}

impl Ports {
    fn new(platform: &Platform) -> Ports {
        Ports {
            free_at: vec![0; platform.home.slices.value as usize],
        }
    }

    /// Returns when the slice of `line` accepts an item that is available at `now`, and occupies its port for
    /// `interval`.
    fn enter(&mut self, line: Line, now: Time, interval: Time) -> Time {
        let slice = line as usize % self.free_at.len();
        let accepted_at = self.free_at[slice].max(now);
        self.free_at[slice] = accepted_at + interval;
        accepted_at
    }

    /// Returns when the slice of `line` accepts, or has accepted, the last item given to its port.
    fn last_accepted(&self, line: Line, interval: Time) -> Time {
        let free_at = self.free_at[line as usize % self.free_at.len()];
        free_at.saturating_sub(interval)
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
const MAX_SELF_WAKES: u32 = 1 << 20;

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
        is_hardware: bool,
    ) -> Result<ApplicationRun, String> {
        let memory_lines = platform.lines;
        let words_per_line = u64::from(protocol.line_bytes / 8);
        let mut played = play.scenario.begin();
        let application = played.application();
        let (name, placement) = (application.name().to_string(), application.placement());
        let lines_used = match &placement {
            Placement::Between(lines) => lines.end.max(play.scenario.line_count()),
            Placement::Beside | Placement::Among(_) => play.scenario.line_count(),
        };
        if lines_used > memory_lines {
            return Err(format!(
                "{name} uses {lines_used} lines, but memory has {memory_lines}"
            ));
        }
        if play.rights.is_none() && placement != Placement::Beside {
            return Err(format!(
                "{name} is placed between the home and memory, but the home does not track permissions"
            ));
        }
        let words_used = play.scenario.words_used();
        if words_used > words_per_line {
            return Err(format!(
                "{name} uses {words_used} words of each line, but a line has {words_per_line}"
            ));
        }
        if play.until.is_none() && !play.scenario.has_end() {
            return Err(format!("{name} never ends, and no end time is given"));
        }
        if play.until.is_some_and(|until| until <= play.warm_up) {
            return Err(format!("{name} would end before the end of its warm-up"));
        }
        let operation_index = |operation: Operation, lock: bool| {
            let mut locals = home.locals.iter();
            let index = locals.position(|l| l.ensures == operation.leaves() && l.locks == lock);
            index.map(|index| index as u8)
        };
        let is_missing = |&(operation, lock): &(_, _)| operation_index(operation, lock).is_none();
        if let Some((operation, lock)) = play
            .scenario
            .operation_requirements()
            .into_iter()
            .find(is_missing)
        {
            return Err(describe_missing_operation(&name, operation, lock));
        }
        let lock_variants = |operation| {
            [
                operation_index(operation, false),
                operation_index(operation, true),
            ]
        };
        let kinds = (0..protocol.kinds.len() as u8).map(KindId);
        let initial_thread = ThreadState {
            step: Step::Stop,
            result: 0,
            measurement_start: 0,
            posted: Vec::new(),
            repeats_step: false,
            blocked_since: 0,
            awaits_stores: false,
            is_acquiring: false,
            reading_since: None,
            pending_interrupt: None,
            awaits_interrupt: false,
            stopped: false,
        };
        Ok(ApplicationRun {
            threads: vec![initial_thread; played.threads()],
            scenario_run: played,
            contract: Contract::new(placement.clone(), memory_lines),
            name,
            placement,
            rights: play.rights.clone(),
            known_rights: Vec::new(),
            operations: [
                lock_variants(Operation::Clean),
                lock_variants(Operation::CleanInvalidate),
            ],
            pending_events: FxHashMap::default(),
            next_number: 0,
            line_contents: FxHashMap::default(),
            pending_operations: FxHashMap::default(),
            locks: FxHashMap::default(),
            local_ports: Ports::new(platform),
            unlock_ports: Ports::new(platform),
            next_issue: 0,
            host: platform.bus.as_ref().map(|bus| Host::new(Bus::new(bus))),
            host_path: None,
            measurement_starts: FxHashMap::default(),
            tally: Tally::default(),
            accesses: kinds
                .map(|kind| Accesses::of_kind(protocol, kind))
                .collect(),
            orders: protocol.program_order,
            warm_up: play.warm_up,
            until: play.until.unwrap_or(Time::MAX),
            link_traffic: [None, None],
            stopped: false,
            idle_wakes: (0, 0),
            is_hardware,
        })
    }

    /// True if no event, local operation or transfer of the application is outstanding.
    pub fn is_done(&self) -> bool {
        let has_obligations = self.contract.obligations().next().is_some();
        let has_transfers = self.host.as_ref().is_some_and(|host| !host.done());
        self.pending_events.is_empty()
            && self.pending_operations.is_empty()
            && !has_obligations
            && !has_transfers
    }

    /// True if a thread has not stopped.
    pub fn has_running_thread(&self) -> bool {
        self.threads.iter().any(|thread| !thread.stopped)
    }

    /// The application's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a thread that polls a word of the CPU's own memory, if there is one.
    pub fn polling_thread(&self) -> Option<usize> {
        let polling_thread =
            |thread: &ThreadState| !thread.stopped && matches!(thread.step, Step::LoadHost { .. });
        self.threads.iter().position(polling_thread)
    }

    /// Returns a thread that waits for an interrupt, if there is one.
    pub fn thread_awaiting_interrupt(&self) -> Option<usize> {
        let awaits_interrupt = |thread: &ThreadState| !thread.stopped && thread.awaits_interrupt;
        self.threads.iter().position(awaits_interrupt)
    }

    /// Returns the outstanding obligations of the application's contract as (line, description).
    pub fn open_obligations(&self) -> Vec<(Line, String)> {
        let obligations = self.contract.obligations();
        obligations
            .map(|obligation| {
                (
                    obligation.line,
                    format!("{} {}", self.name, obligation.description),
                )
            })
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

    /// Adds `increment` to a counter if `time` is within the measurement window. Counters saturate.
    pub fn add_count(&mut self, counter: &'static str, increment: u64, time: Time) {
        if (self.warm_up..=self.until).contains(&time) {
            let count = self.tally.counts.entry(counter).or_default();
            *count = count.saturating_add(increment);
            let sampler = self.tally.rate_samplers.entry(counter).or_default();
            if sampler.count_events(increment) {
                sampler.take_samples(time, 0);
            }
        }
    }

    /// Records that the application has handled an event. Returns the reason if the run will never end.
    ///
    /// While a thread runs, only self-wakes at the same time count.
    fn livelock_reason(&mut self, is_idle: bool, now: Time, timeout: Time) -> Option<String> {
        let continues = is_idle && (now == self.idle_wakes.1 || !self.has_running_thread());
        self.idle_wakes = (if continues { self.idle_wakes.0 + 1 } else { 0 }, now);
        if self.idle_wakes.0 == MAX_SELF_WAKES {
            return Some(format!(
                "{} wakes itself {MAX_SELF_WAKES} times in a row without any other activity",
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

    /// Records the duration from `since` to `end` if both are within the measurement window.
    pub fn record_duration(&mut self, name: &'static str, since: Time, end: Time) {
        if since >= self.warm_up && end <= self.until {
            let times = self.tally.times.entry(name);
            times.or_default().record(end - since);
        }
    }
}

impl Simulation {
    /// True if the application answers the home's reads of `line` and accepts its writes.
    #[inline]
    pub(crate) fn is_served(&self, line: Line) -> bool {
        let application = self.application.as_ref();
        application.is_some_and(|application| application.placement.serves(line))
    }

    /// Returns the highest permission that, to the home's knowledge, any cache may have in a configuration.
    fn known_right(&mut self, configuration: ConfigurationId) -> Right {
        let cache_count = self.groups.caches();
        let Some(application) = &mut self.application else {
            return Right::None;
        };
        let Some(rights) = &application.rights else {
            return Right::None;
        };
        let compute_right = || {
            let home = self.home.program.configuration(configuration);
            rights.highest(self.home.program.controller(), cache_count, &home)
        };
        if !self.home.program.is_numbered() {
            return compute_right();
        }
        let index = configuration as usize;
        if index >= application.known_rights.len() {
            application.known_rights.resize(index + 1, None);
        }
        match application.known_rights[index] {
            Some(right) => right,
            None => *application.known_rights[index].insert(compute_right()),
        }
    }

    /// Schedules the delivery of an event to the application at `delivery`, which is not in the past.
    pub(crate) fn schedule_application_event(&mut self, delivery: Time, event: Event) {
        if let Some(application) = &mut self.application {
            let number = application.next_number;
            application.next_number = number.wrapping_add(1);
            application.pending_events.insert(number, event);
            self.postpone_watchdog(delivery);
            self.local
                .queue
                .push(delivery, KernelEvent::Application(number));
        }
    }

    /// Starts the application and its threads, and schedules the end of the run.
    pub(crate) fn start_application(&mut self) {
        let words = self.contents.data.words();
        let Some(application) = &self.application else {
            return;
        };
        let until = application.until;
        if self.has_core(0) {
            self.schedule_application_event(0, Event::Start { words });
        }
        if until < Time::MAX {
            self.local.queue.push(until, KernelEvent::StopApplication);
        }
        for thread in 0..self.application.as_ref().map_or(0, |run| run.threads.len()) {
            if self.has_core(thread as u16) {
                self.continue_thread(thread as u16, 0);
            }
        }
    }

    /// Returns the traffic so far on the links of each kind of caching agent.
    fn link_traffic(&self) -> Vec<Traffic> {
        let cache_traffic = |cache: Agent| {
            let (number, network) = (cache.index(), &self.interconnect.network);
            let directions = [&network.up[number], &network.down[number]];
            let port = network.ports.get(number).and_then(Option::as_ref);
            let bytes = |side: usize| port.map_or(directions[side].bytes, |port| port.bytes(side));
            (
                directions[0].messages + directions[1].messages,
                bytes(0) + bytes(1),
            )
        };
        let kind_traffic = |caches: &Agents| {
            let traffic = caches.iter().map(cache_traffic);
            traffic.fold(Traffic::default(), |sum, (messages, bytes)| Traffic {
                messages: sum.messages + messages,
                bytes: sum.bytes + bytes,
            })
        };
        let groups = self.groups.groups.iter();
        groups.map(|group| kind_traffic(&group.caches)).collect()
    }

    /// Opens the measurement window of link traffic at the first message sent after warm-up; earlier traffic does not
    /// count.
    pub(crate) fn open_traffic_window(&mut self) {
        let opens_window = |application: &ApplicationRun| {
            application.link_traffic[0].is_none() && self.local.now >= application.warm_up
        };
        if self.application.as_deref().is_some_and(opens_window) {
            let link_traffic = Some(self.link_traffic());
            if let Some(application) = &mut self.application {
                application.link_traffic[0] = link_traffic;
            }
        }
    }

    /// Stops the application and the threads that wait for interrupts, and closes the window of link traffic.
    pub(crate) fn stop_application(&mut self) {
        let link_traffic = self.link_traffic();
        if let Some(application) = &mut self.application {
            application.link_traffic[1].get_or_insert(link_traffic);
        }
        if let Some(application) = &mut self.application {
            // The thread stops even if no interrupt arrives any more.
            for thread in application
                .threads
                .iter_mut()
                .filter(|thread| thread.awaits_interrupt)
            {
                thread.stopped = true;
            }
            if !std::mem::replace(&mut application.stopped, true) {
                self.schedule_application_event(self.local.now, Event::Stop);
            }
        }
    }

    /// Notifies the application if a step of the home has changed the CPU's permission for `line`.
    pub(crate) fn notify_permission_change(
        &mut self,
        line: Line,
        before: ConfigurationId,
        after: ConfigurationId,
    ) {
        let (from, to) = (self.known_right(before), self.known_right(after));
        if from != to {
            let delivery = self.local.now + self.tables.times.latency + self.tables.times.local.1;
            self.schedule_application_event(delivery, Event::Changed { line, from, to });
        }
    }

    /// Presents the home's read of a line that the application serves.
    pub(crate) fn present_application_read(
        &mut self,
        ready: Time,
        line: Line,
        transition: &Transition,
    ) {
        let input = Self::local_input(
            &self.home.program,
            Cause::MemoryData(0),
            crate::message::HOME,
        );
        let granted_configuration = self.home.program.step(transition.next, &input).next;
        let (has, wants) = (
            self.known_right(transition.next),
            self.known_right(granted_configuration),
        );
        // An uncached read leaves the CPU's permission as it is.
        let wants = if wants > has { wants } else { Right::None };
        let delivery = ready + self.tables.times.path.0;
        self.schedule_application_event(delivery, Event::Read { line, wants, has });
    }

    /// Presents the home's write of a line that the application serves; memory's copy already has the new contents.
    pub(crate) fn present_application_write(
        &mut self,
        ready: Time,
        line: Line,
        next: ConfigurationId,
    ) {
        let words = self.copy_words(line, self.contents.data.memory(line));
        let keeps = self.known_right(next);
        let delivery = ready + self.tables.times.path.0;
        self.schedule_application_event(delivery, Event::Write { line, words, keeps });
    }

    /// Records that the home has written back a line with an outstanding local operation.
    pub(crate) fn note_write_back(&mut self, line: Line) {
        if let Some(application) = &mut self.application {
            if let Some((_, dirty)) = application.pending_operations.get_mut(&line) {
                *dirty = true;
            }
        }
    }

    /// Completes a local operation that the application requested.
    pub(crate) fn acknowledge_application(&mut self, line: Line, ensures: Right, locks: bool) {
        let delivery = self.local.now + self.tables.times.latency + self.tables.times.local.1;
        let Some(application) = &mut self.application else {
            return;
        };
        let Some((since, dirty)) = application.pending_operations.remove(&line) else {
            return;
        };
        if locks {
            application.locks.insert(line, ensures);
        }
        let (operation_name, operation) = match ensures {
            Right::None => ("clean-invalidate", Operation::CleanInvalidate),
            _ => ("clean", Operation::Clean),
        };
        application.record_duration(operation_name, since, delivery);
        self.schedule_application_event(
            delivery,
            Event::Done {
                line,
                operation,
                dirty,
            },
        );
    }

    /// Delivers an event to the application and carries out its actions.
    pub(crate) fn deliver_application_event(&mut self, number: u32) {
        let Some(application) = &mut self.application else {
            return;
        };
        let Some(event) = application.pending_events.remove(&number) else {
            return;
        };
        application.contract.record_event(&event);
        let is_timer = matches!(event, Event::Timer { .. });
        let hardware_event = hardware::hardware_event(&event).filter(|_| application.is_hardware);
        let mut actions = Actions::new();
        application
            .scenario_run
            .application()
            .handle(event, &mut actions);
        if let Some(hardware_event) = hardware_event {
            self.submit_application_event(hardware_event);
        }
        let actions: Vec<Action> = actions.take().collect();
        let is_passive =
            |action: &Action| matches!(action, Action::Wake { .. }) || is_measurement(action);
        let is_idle = is_timer && actions.iter().all(is_passive);
        for action in actions {
            self.execute_action(action);
        }
        let (now, timeout) = (self.local.now, self.tables.times.timeout);
        self.postpone_watchdog(now);
        let livelock_reason = self
            .application
            .as_mut()
            .and_then(|application| application.livelock_reason(is_idle, now, timeout));
        if let Some(text) = livelock_reason {
            self.fail(FailureKind::Contract, 0, text);
        }
        let application = self.application.as_mut();
        if let Some((name, reason)) = application.and_then(|b| {
            b.contract
                .blocking_reason()
                .map(|reason| (b.name.clone(), reason))
        }) {
            self.fail(FailureKind::Refused, 0, format!("{name} {reason}"));
        }
    }

    /// Carries out one action of the application.
    fn execute_action(&mut self, action: Action) {
        let now = self.local.now;
        let Some(application) = &mut self.application else {
            return;
        };
        if application.is_hardware && !is_measurement(&action) {
            let text = format!(
                "{} is in hardware, but its software model acts too",
                application.name
            );
            return self.fail(FailureKind::Contract, 0, text);
        }
        if let Err(breach) = application.contract.check_action(&action) {
            let text = format!("{} {}", application.name, breach.description);
            return self.fail(FailureKind::Contract, breach.line, text);
        }
        match action {
            Action::Answer { line, words } => {
                self.write_homed_line(line, &words);
                self.local
                    .queue
                    .push(now + self.tables.times.path.1, KernelEvent::Read(line));
            }
            Action::Accept { line } => {
                let arrival = now + self.tables.times.path.1;
                self.local.queue.push(arrival, KernelEvent::Written(line));
            }
            Action::Local {
                line,
                operation,
                lock,
            } => {
                let operation_row =
                    application.operations[usize::from(operation == Operation::CleanInvalidate)];
                let Some(operation_index) = operation_row[usize::from(lock)] else {
                    let text = describe_missing_operation(&application.name, operation, lock);
                    return self.fail(FailureKind::Incompatible, line, text);
                };
                if line >= self.tables.platform.lines {
                    let text = format!(
                        "{} cleans a line outside the memory of the home",
                        application.name
                    );
                    return self.fail(FailureKind::Contract, line, text);
                }
                application.pending_operations.insert(line, (now, false));
                // The operation may concern a line whose unlock still waits at the other port. It must not overtake
                // that unlock.
                let interval = self.tables.times.local_interval;
                // The device gives local operations to all slices through one port.
                let departure = now.max(application.next_issue);
                application.next_issue = departure + self.tables.times.issue;
                let ready = departure.max(application.unlock_ports.last_accepted(line, interval));
                let arrival = application.local_ports.enter(line, ready, interval);
                let arrival = arrival + self.tables.times.local.0;
                self.local
                    .queue
                    .push(arrival, KernelEvent::Local(line, operation_index));
            }
            Action::Unlock { line } => {
                let arrival =
                    application
                        .unlock_ports
                        .enter(line, now, self.tables.times.local_interval);
                let arrival = arrival + self.tables.times.local.0;
                self.local
                    .queue
                    .push(arrival, KernelEvent::LocalUnlock(line));
            }
            Action::Fetch { tag, first, lines } => self.read_burst(tag, first, lines, 1),
            Action::Store { tag, line, words } => self.store_memory_line(tag, line, words),
            Action::ReadWords {
                tag,
                line,
                word,
                words,
            } => {
                let word_range = usize::from(word)..usize::from(word + words);
                let words = self.memory_words(line)[word_range.clone()].into();
                let completion = self.operate_on_words(line, word_range);
                self.schedule_application_event(completion, Event::WordsRead { tag, words });
            }
            Action::WriteWords {
                tag,
                line,
                word,
                words,
            } => {
                let word_range = usize::from(word)..usize::from(word) + words.len();
                let mut line_words = self.memory_words(line);
                line_words[word_range.clone()].copy_from_slice(&words);
                self.set_memory_words(line, line_words);
                let completion = self.operate_on_words(line, word_range);
                self.schedule_application_event(completion, Event::Stored { tag });
            }
            Action::UpdateWord {
                tag,
                line,
                word,
                update,
            } => self.update_memory_word(tag, line, word.into(), update),
            Action::Wake { tag, delay } => {
                let Some(wake_time) = now
                    .checked_add(delay)
                    .filter(|wake_time| *wake_time < MAX_REQUESTED_TIME)
                else {
                    let text = format!(
                        "{} requests a wake-up after {delay} ps, which is beyond the end of simulated time",
                        application.name
                    );
                    return self.fail(FailureKind::Contract, 0, text);
                };
                self.schedule_application_event(wake_time, Event::Timer { tag });
            }
            Action::Reply { thread, value } => self.reply_to_thread(thread, value),
            // Only the contract needs this action.
            Action::Forgo { .. } => {}
            Action::HostFetch { tag, first, words } => self.host_fetch(tag, first, words),
            Action::HostStore { first, words } => self.host_store(first, words),
            Action::Interrupt { thread } => self.start_interrupt(thread),
            Action::CoherentLoad { .. }
            | Action::CoherentStore { .. }
            | Action::CoherentUpdate { .. } => self.issue_application_access(action),
            Action::Begin { tag } => drop(application.measurement_starts.insert(tag, now)),
            Action::End { tag, name } => {
                if let Some(since) = application.measurement_starts.remove(&tag) {
                    application.record_duration(name, since, now);
                }
            }
            Action::Count { name, by } => application.add_count(name, by, now),
        }
    }

    /// Reads a burst from the application's memory: `lines` lines, `step` apart.
    fn read_burst(&mut self, tag: u32, first: Line, lines: Line, step: Line) {
        let burst_end = lines.min(MAX_LINES).checked_mul(step);
        let burst_end = burst_end.and_then(|length| first.checked_add(length));
        let (Some(end), Some(_)) = (burst_end.filter(|_| lines <= MAX_LINES), &self.application)
        else {
            let name = self
                .application
                .as_ref()
                .map_or("", |application| &application.name);
            let text = format!("{name} reads {lines} lines at once; {MAX_LINES} is the most");
            return self.fail(FailureKind::Contract, first, text);
        };
        let mut completion = self.local.now;
        for line in (first..end).step_by(step as usize) {
            let words = self.memory_words(line);
            completion = completion.max(self.memory(self.local.now, line));
            self.schedule_application_event(completion, Event::Fetched { tag, line, words });
        }
    }

    /// Returns the contents of a line of the application's memory.
    fn memory_words(&self, line: Line) -> Words {
        let application = self.application.as_ref();
        match application.and_then(|application| application.line_contents.get(&line)) {
            Some(words) => words.clone(),
            // Lines that the application has never written keep their initial contents, or those that the home has
            // written.
            None if line >= self.tables.platform.lines || self.is_served(line) => {
                self.copy_words(line, Copy::UNTOUCHED)
            }
            None => self.copy_words(line, self.contents.data.memory(line)),
        }
    }

    /// Updates a word of the application's memory atomically and returns the old value. The read and the write of the
    /// word occupy the memory back to back.
    fn update_memory_word(&mut self, tag: u32, line: Line, word: usize, update: Update) {
        let mut line_words = self.memory_words(line);
        let old_value = line_words[word];
        line_words[word] = update.apply(old_value);
        let completion = self.operate_on_words(line, word..word + 1);
        if line_words[word] != old_value {
            self.set_memory_words(line, line_words);
            self.operate_on_words(line, word..word + 1);
        }
        let words = [old_value].into();
        self.schedule_application_event(completion, Event::WordsRead { tag, words });
    }

    /// Occupies the memory behind the line's home for an operation on `words`. Returns when that operation ends.
    fn operate_on_words(&mut self, line: Line, words: std::ops::Range<usize>) -> Time {
        let home_count = self.memories.len();
        let memory_line = line >> home_count.trailing_zeros();
        let bytes = 8 * words.start as u32..8 * words.end as u32;
        self.memories[line as usize & (home_count - 1)].operate_on(
            self.local.now,
            memory_line,
            bytes,
        )
    }

    /// Sets the contents of a line of the application's memory.
    fn set_memory_words(&mut self, line: Line, words: Words) {
        if line < self.tables.platform.lines && !self.is_served(line) {
            self.write_homed_line(line, &words);
        } else if let Some(application) = &mut self.application {
            application.line_contents.insert(line, words);
        }
    }

    /// Writes a line of the application's memory.
    fn store_memory_line(&mut self, tag: u32, line: Line, words: Words) {
        self.set_memory_words(line, words);
        let completion = self.memory(self.local.now, line);
        self.schedule_application_event(completion, Event::Stored { tag });
    }

    /// Returns the words of a copy of a line.
    fn copy_words(&self, line: Line, copy: Copy) -> Words {
        let words = 0..self.contents.data.words();
        words
            .map(|word| self.contents.data.word(line, copy, word))
            .collect()
    }

    /// Sets the words of a line homed here. The oracle records a write, performed now, for each word that changes.
    fn write_homed_line(&mut self, line: Line, words: &Words) {
        let old_copy = self.contents.data.memory(line);
        let old_words = self.copy_words(line, old_copy);
        if words.len() != old_words.len() {
            let name = self
                .application
                .as_ref()
                .map_or("", |application| &application.name);
            let (word_count, expected_count) = (words.len(), old_words.len());
            let text =
                format!("{name} gives a line of {word_count} words; lines have {expected_count}");
            return self.fail(FailureKind::Contract, line, text);
        }
        let differs = |word: &usize| words[*word] != old_words[*word];
        let changed_words: Vec<usize> = (0..words.len()).filter(differs).collect();
        if changed_words.is_empty() {
            return;
        }
        self.check_memory(line, "is written by the application");
        for cache in self.caches.agents() {
            let configuration = self.caches.configuration(cache, line);
            if self.remote.properties(configuration).right > Right::None {
                let name = self
                    .application
                    .as_ref()
                    .map_or("", |application| &application.name);
                let cache = self.agent_name(cache);
                let text = format!("{name} changes a line of which {cache} has a copy");
                return self.fail(FailureKind::Contract, line, text);
            }
        }
        let mut copy = self.contents.data.share(old_copy);
        for word in changed_words {
            let (value, word) = (words[word], word as u16);
            let version = self.contents.oracle.write(line, word..word + 1, value);
            copy = self
                .contents
                .data
                .write_word(line, copy, word, value, version);
        }
        self.contents.data.set_memory(line, copy);
    }

    /// Presents a local operation of the application to the home.
    pub(crate) fn present_local_operation(&mut self, line: Line, number: u8) {
        self.present_local(Work::Local(line, number), line);
    }

    /// Presents an unlock of the application to the home.
    pub(crate) fn present_unlock(&mut self, line: Line) {
        if let Some(application) = &mut self.application {
            application.locks.remove(&line);
        }
        self.present_local(Work::Unlock(line), line);
    }

    /// Closes the measurement window of counts and durations.
    pub(crate) fn close_window(&mut self) {
        if let Some(application) = &mut self.application {
            let end = application
                .until
                .min(self.tally.counters.end.max(self.local.now));
            application.tally.window = end.saturating_sub(application.warm_up);
        }
    }

    /// Closes the scenario's measurement and verifies its result.
    pub(crate) fn verify_scenario(&mut self) {
        self.close_window();
        let link_traffic = self.link_traffic();
        let Some(mut application) = self.application.take() else {
            return;
        };
        if let [Some(opening), closing] = &application.link_traffic {
            let closing = closing
                .as_ref()
                .unwrap_or(&link_traffic)
                .iter()
                .zip(opening);
            let window_traffic = closing.map(|(closing, opening)| Traffic {
                messages: closing.messages - opening.messages,
                bytes: closing.bytes - opening.bytes,
            });
            application.tally.traffic = window_traffic.collect();
        }
        let verdict = match self.contents.oracle.level {
            Level::Off => Ok(()),
            _ => application.scenario_run.verify(&*self),
        };
        self.application = Some(application);
        self.judge_scenario(verdict);
    }

    /// Fails the run if the scenario's result is wrong.
    pub(crate) fn judge_scenario(&mut self, verdict: Result<(), String>) {
        let name = self
            .application
            .as_ref()
            .map_or("", |application| application.name());
        if let Err(error) = verdict {
            self.fail(FailureKind::Result, 0, format!("{name}: {error}"));
        }
    }

    /// Returns the tables that the scenario produced for external judges; empty without a scenario.
    pub fn tables(&self) -> Vec<Table> {
        let application = self.application.as_ref();
        application
            .map(|application| application.scenario_run.tables())
            .unwrap_or_default()
    }

    /// Returns the counts and durations of the scenario after the run; empty without a scenario.
    pub fn tally(&self) -> Tally {
        let application = self.application.as_ref();
        application
            .map(|application| application.tally.clone())
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
        let mut cached_copies = self.caches.agents().filter_map(|cache| {
            let (configuration, copy) = self.caches.configuration_and_copy(cache, line);
            (self.remote.properties(configuration).right > Right::None).then_some(copy)
        });
        let memory = self.contents.data.memory(line);
        let copy = match self.contents.oracle.may_be_stale() {
            // A cache with read permission has the value written last.
            false => cached_copies.next().unwrap_or(memory),
            true => cached_copies.fold(memory, |newest, copy| {
                let is_newer =
                    self.contents.data.version(copy) > self.contents.data.version(newest);
                if is_newer {
                    copy
                } else {
                    newest
                }
            }),
        };
        self.contents.data.word(line, copy, word)
    }

    fn initial(&self, line: Line, word: u16) -> u64 {
        Data::untouched_word(line, word)
    }
}
