//! The application behind the home, in a simulation: delivery of its events, and the home's requests to it.
//!
//! Events reach the application, and its actions take effect, after the latency of the path between it and the home.
//! The home's reads and writes take the memory path, everything else the path of local operations. A contract checks
//! both directions, and the oracle records the application's writes. The scenario, with the application's program, is
//! that of the [threads](super::thread).

mod actions;
mod hardware;

use cohkit_application::contract::Contract;
use cohkit_application::interface::{Action, Actions, Event, Operation, Placement, Words};
use cohkit_protocol::construct::permissions::KnownPermissions;
use cohkit_protocol::controller::{Controller, Event as Cause};
use cohkit_protocol::protocol::{Permission, Protocol};
use rustc_hash::FxHashMap;

use super::application_events::ApplicationEvents;
use super::caches::Caches;
use super::clocked::ApplicationEvent;
use super::frontend::Frontend;
use super::host::{Host, HostEnvironment};
use super::program::{ConfigurationId, Program, Transition};
use super::scenario_state::ScenarioState;
use super::thread::Threads;
use crate::data::{Copy, Data};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{CoreId, Line, HOME};
use crate::platform::Platform;
use crate::scenario::{Play, Tally};
use crate::simulation::{Context, Event as KernelEvent, MainMemory};

/// State of a run's application.
pub(crate) struct Application {
    /// Lines that the application serves, between the home and memory.
    placement: Placement,
    /// Permissions that the home can derive from its states; `None` if it tracks none. Then the application is not
    /// notified of changes.
    permissions: Option<KnownPermissions>,
    /// Cache of known permissions by configuration of the home; `None` where not computed yet.
    known_permissions: Vec<Option<Permission>>,
    /// Indices of the home's local operations among those of its controller: clean and clean-invalidate, each without
    /// and with lock.
    operations: [[Option<u8>; 2]; 2],
    /// Events on their way to the application.
    events: ApplicationEvents,
    /// Contents of the application's own lines, and of those that it serves.
    line_contents: FxHashMap<Line, Words>,
    /// Outstanding local operations by line: the time of the request in picoseconds, and true if the home has
    /// written the line back since.
    pending_operations: FxHashMap<Line, (Time, bool)>,
    /// Ports at which the slices accept local operations.
    local_ports: Ports,
    /// Ports at which the slices accept unlocks.
    unlock_ports: Ports,
    /// Earliest time at which the next local operation may leave the device, in picoseconds.
    next_issue: Time,
    /// The CPU's own memory and the bus to it.
    pub host: Host,
    /// Start times of the durations that the application measures, in picoseconds, by tag.
    measurement_starts: FxHashMap<u32, Time>,
    /// True once the application has been asked to stop.
    stopped: bool,
    /// Number of consecutive events after which the application only woke itself, and the time of the last.
    idle_wakes: (u32, Time),
    /// True if the application is hardware in a clocked home. This instance then only observes: it receives the same
    /// events, and may count and time.
    is_hardware: bool,
}

/// Parts of the machine that the application uses in one event.
pub(crate) struct ApplicationEnvironment<'c> {
    /// State of the run that all components use.
    pub context: Context<'c>,
    /// Threads, which share the scenario with the application.
    pub frontend: &'c mut Frontend,
    /// Memory of the home, which is also the application's.
    pub memory: &'c mut MainMemory,
    /// Caches, for checks of permissions only.
    pub caches: &'c Caches,
}

/// Response of the application to an event.
pub(crate) struct Response {
    /// The event, for a clocked home that contains the application; it takes place before the actions.
    pub hardware_event: Option<ApplicationEvent>,
    /// Actions of the application, in order.
    actions: Vec<Action>,
    /// True if the event was a wake-up that the application had requested.
    is_timer: bool,
}

/// Ports of all slices; each accepts one item per interval.
struct Ports {
    /// Time from which the port of each slice is free, in picoseconds.
    free_at: Vec<Time>,
}

impl Ports {
    /// Creates free ports.
    fn new(platform: &Platform) -> Ports {
        Ports {
            free_at: vec![0; platform.home.slices.value as usize],
        }
    }

    /// Returns the time at which the slice of `line` accepts an item that is available at `now`, and occupies its
    /// port for `interval`. All are in picoseconds.
    fn enter(&mut self, line: Line, now: Time, interval: Time) -> Time {
        let slice = line as usize % self.free_at.len();
        let accepted_at = self.free_at[slice].max(now);
        self.free_at[slice] = accepted_at + interval;
        accepted_at
    }

    /// Returns the time at which the slice of `line` accepts, or has accepted, the last item given to its port, in
    /// picoseconds. `interval` must be that of [`Ports::enter`].
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

/// Maximum number of consecutive self-wakes of an application without any other activity. More are reported as a
/// livelock.
const MAX_SELF_WAKES: u32 = 1 << 20;

impl Application {
    /// Creates an application and the threads of its scenario, which have not started.
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
    ) -> Result<(Application, Threads), String> {
        let mut played = play.scenario.begin();
        let application = played.application();
        let (name, placement) = (application.name().to_string(), application.placement());
        check_fit(play, protocol, platform, &name, &placement)?;
        let operation_index = |operation: Operation, lock: bool| {
            let mut locals = home.locals.iter();
            let index = locals.position(|l| l.ensures == operation.leaves() && l.locks == lock);
            index.map(|index| index as u8)
        };
        let is_missing = |&(operation, lock): &(_, _)| operation_index(operation, lock).is_none();
        let requirements = play.scenario.operation_requirements();
        if let Some((operation, lock)) = requirements.into_iter().find(is_missing) {
            return Err(describe_missing_operation(&name, operation, lock));
        }
        let lock_variants = |operation| [false, true].map(|lock| operation_index(operation, lock));
        let scenario = ScenarioState {
            run: played,
            contract: Contract::new(placement.clone(), platform.lines),
            name,
            tally: Tally::default(),
            warm_up: play.warm_up,
            until: play.until.unwrap_or(Time::MAX),
        };
        let application = Application {
            placement,
            permissions: play.permissions.clone(),
            known_permissions: Vec::new(),
            operations: [Operation::Clean, Operation::CleanInvalidate].map(lock_variants),
            events: ApplicationEvents::default(),
            line_contents: FxHashMap::default(),
            pending_operations: FxHashMap::default(),
            local_ports: Ports::new(platform),
            unlock_ports: Ports::new(platform),
            next_issue: 0,
            host: Host::new(platform),
            measurement_starts: FxHashMap::default(),
            stopped: false,
            idle_wakes: (0, 0),
            is_hardware,
        };
        Ok((application, Threads::new(scenario, protocol)))
    }

    /// True if no event, local operation or transfer of the application is outstanding, and no obligation of its
    /// contract.
    pub fn is_done(&self, scenario: &ScenarioState) -> bool {
        let has_obligations = scenario.contract.obligations().next().is_some();
        self.events.is_empty()
            && self.pending_operations.is_empty()
            && !has_obligations
            && self.host.is_done()
    }

    /// True if the application answers the home's reads of `line` and accepts its writes.
    #[inline]
    pub fn serves(&self, line: Line) -> bool {
        self.placement.serves(line)
    }

    /// Returns the host, and the parts of the machine that it uses.
    pub fn host_and_environment<'e, 'c>(
        &'e mut self,
        context: &'e mut Context<'c>,
        frontend: &'e mut Frontend,
    ) -> (&'e mut Host, HostEnvironment<'e, 'c>) {
        let environment = HostEnvironment {
            context,
            frontend,
            events: &mut self.events,
        };
        (&mut self.host, environment)
    }

    /// Starts the application, and schedules the end of the run at `until` (picoseconds; `Time::MAX` for no end).
    pub fn start(&mut self, context: &mut Context, until: Time) {
        if context.tables.has_core(CoreId(0)) {
            let words = context.contents.data.words();
            self.events.schedule(context, 0, Event::Start { words });
        }
        if until < Time::MAX {
            context.schedule(until, KernelEvent::StopApplication);
        }
    }

    /// Stops the application and the threads that wait for interrupts.
    pub fn stop(&mut self, context: &mut Context, threads: &mut Threads) {
        threads.stop_awaiting_threads();
        if !std::mem::replace(&mut self.stopped, true) {
            self.events
                .schedule(context, context.local.now, Event::Stop);
        }
    }

    /// Delivers an event to the application. Returns its response; `None` if there is no such event.
    pub fn deliver_event(
        &mut self,
        env: &mut ApplicationEnvironment,
        number: u32,
    ) -> Option<Response> {
        let threads = env.frontend.threads.as_mut()?;
        let event = self.events.take(number)?;
        threads.scenario.contract.record_event(&event);
        let is_timer = matches!(event, Event::Timer { .. });
        let hardware_event = hardware::hardware_event(&event).filter(|_| self.is_hardware);
        let mut actions = Actions::new();
        (threads.scenario.run.application()).handle(event, &mut actions);
        Some(Response {
            hardware_event,
            actions: actions.take().collect(),
            is_timer,
        })
    }

    /// Carries out the actions of a response.
    pub fn execute_response(&mut self, env: &mut ApplicationEnvironment, response: Response) {
        let Response {
            actions, is_timer, ..
        } = response;
        let is_passive =
            |action: &Action| matches!(action, Action::Wake { .. }) || is_measurement(action);
        let is_idle = is_timer && actions.iter().all(is_passive);
        for action in actions {
            self.execute_action(env, action);
        }
        let Some(threads) = &mut env.frontend.threads else {
            return;
        };
        let (now, timeout) = (env.context.now(), env.context.tables.times.timeout);
        env.context.tally.postpone_watchdog(now);
        if let Some(text) = self.livelock_reason(threads, is_idle, now, timeout) {
            env.context.fail(FailureKind::Contract, 0, text);
        }
        let ScenarioState { contract, name, .. } = &mut threads.scenario;
        if let Some(reason) = contract.blocking_reason() {
            (env.context).fail(FailureKind::Refused, 0, format!("{name} {reason}"));
        }
    }

    /// Records that the application has handled an event. Returns the reason if the run will never end.
    ///
    /// While a thread runs, only self-wakes at the same time count.
    fn livelock_reason(
        &mut self,
        threads: &Threads,
        is_idle: bool,
        now: Time,
        timeout: Time,
    ) -> Option<String> {
        let continues = is_idle && (now == self.idle_wakes.1 || !threads.is_running());
        self.idle_wakes = (if continues { self.idle_wakes.0 + 1 } else { 0 }, now);
        let ScenarioState { name, until, .. } = &threads.scenario;
        if self.idle_wakes.0 == MAX_SELF_WAKES {
            return Some(format!(
                "{name} wakes itself {MAX_SELF_WAKES} times in a row without any other activity"
            ));
        }
        let overtime = now.saturating_sub(*until);
        (overtime > timeout).then(|| {
            let overtime = overtime / 1000;
            format!("{name} still runs {overtime} ns after the request to stop")
        })
    }
}

/// Requests and notifications of the home.
impl Application {
    /// Returns the highest permission that, to the home's knowledge, any cache may have in a configuration.
    fn known_permission(
        &mut self,
        context: &Context,
        program: &Program,
        configuration: ConfigurationId,
    ) -> Permission {
        let Some(permissions) = &self.permissions else {
            return Permission::None;
        };
        let cache_count = context.tables.groups.caches();
        let compute_permission = || {
            let home = program.configuration(configuration);
            permissions.highest(program.controller(), cache_count, &home)
        };
        if !program.is_numbered() {
            return compute_permission();
        }
        let index = configuration as usize;
        if index >= self.known_permissions.len() {
            self.known_permissions.resize(index + 1, None);
        }
        match self.known_permissions[index] {
            Some(permission) => permission,
            None => *self.known_permissions[index].insert(compute_permission()),
        }
    }

    /// Time at which the application is notified of an input that the home handles now, in picoseconds.
    fn notification_time(context: &Context) -> Time {
        let times = &context.tables.times;
        context.now() + times.latency + times.local.1
    }

    /// Notifies the application if a step of the home has changed the CPU's permission for `line`.
    pub fn notify_permission_change(
        &mut self,
        context: &mut Context,
        program: &Program,
        line: Line,
        (before, after): (ConfigurationId, ConfigurationId),
    ) {
        let from = self.known_permission(context, program, before);
        let to = self.known_permission(context, program, after);
        if from != to {
            let delivery = Application::notification_time(context);
            let event = Event::PermissionChange { line, from, to };
            self.events.schedule(context, delivery, event);
        }
    }

    /// Presents the home's read of a line that the application serves.
    pub fn present_read(
        &mut self,
        context: &mut Context,
        program: &mut Program,
        ready: Time,
        line: Line,
        transition: &Transition,
    ) {
        let input = program.input(Cause::MemoryData(0), HOME);
        let granted_configuration = program.step(transition.next, &input).next;
        let has = self.known_permission(context, program, transition.next);
        let wants = self.known_permission(context, program, granted_configuration);
        // An uncached read leaves the CPU's permission as it is.
        let wants = if wants > has { wants } else { Permission::None };
        let delivery = ready + context.tables.times.path.0;
        let event = Event::Read { line, wants, has };
        self.events.schedule(context, delivery, event);
    }

    /// Presents the home's write of a line that the application serves; memory's copy already has the new contents.
    pub fn present_write(
        &mut self,
        context: &mut Context,
        program: &Program,
        ready: Time,
        (line, copy): (Line, Copy),
        next: ConfigurationId,
    ) {
        let words = copy_words(&context.contents.data, line, copy);
        let keeps = self.known_permission(context, program, next);
        let delivery = ready + context.tables.times.path.0;
        let event = Event::Write { line, words, keeps };
        self.events.schedule(context, delivery, event);
    }

    /// Records that the home has written back a line with an outstanding local operation.
    pub fn record_write_back(&mut self, line: Line) {
        if let Some((_, dirty)) = self.pending_operations.get_mut(&line) {
            *dirty = true;
        }
    }

    /// Completes a local operation that the application requested.
    pub fn acknowledge(
        &mut self,
        context: &mut Context,
        frontend: &mut Frontend,
        line: Line,
        ensures: Permission,
        locks: bool,
    ) {
        let delivery = Application::notification_time(context);
        let Some((since, dirty)) = self.pending_operations.remove(&line) else {
            return;
        };
        if locks {
            // The application learns of the completion later.
            context.local.locks.lock(line, ensures);
        }
        let (operation_name, operation) = match ensures {
            Permission::None => ("clean-invalidate", Operation::CleanInvalidate),
            _ => ("clean", Operation::Clean),
        };
        if let Some(threads) = &mut frontend.threads {
            (threads.scenario).record_duration(operation_name, since, delivery);
        }
        let event = Event::LocalCompletion {
            line,
            operation,
            dirty,
        };
        self.events.schedule(context, delivery, event);
    }
}

/// Checks that an application fits the machine.
///
/// # Errors
/// A sentence: the part that the machine lacks, or that the run has no end.
fn check_fit(
    play: &Play,
    protocol: &Protocol,
    platform: &Platform,
    name: &str,
    placement: &Placement,
) -> Result<(), String> {
    let memory_lines = platform.lines;
    let words_per_line = u64::from(protocol.line_bytes / 8);
    let lines_used = match placement {
        Placement::MemoryPath(lines) => lines.end.max(play.scenario.line_count()),
        Placement::Observer | Placement::MemoryPathRanges(_) => play.scenario.line_count(),
    };
    if lines_used > memory_lines {
        return Err(format!(
            "{name} uses {lines_used} lines, but memory has {memory_lines}"
        ));
    }
    if play.permissions.is_none() && *placement != Placement::Observer {
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
    Ok(())
}

/// Returns the words of a copy of a line.
fn copy_words(data: &Data, line: Line, copy: Copy) -> Words {
    (0..data.words())
        .map(|word| data.word(line, copy, word))
        .collect()
}

/// True if an action only counts or times.
fn is_measurement(action: &Action) -> bool {
    matches!(
        action,
        Action::Count { .. } | Action::Begin { .. } | Action::End { .. }
    )
}
