//! A simulation run: the components of a machine and their event queue.

mod bottleneck;
mod context;
mod deferred_memory;
pub(crate) mod event_prefetch;
pub(crate) mod groups;
mod input_queues;
mod interconnect;
mod kinds;
pub(crate) mod machine;
mod main_memory;
mod names;
pub(crate) mod observer;
pub(crate) mod order_tracker;
mod progress;
mod results;
mod running;
mod setup;
mod state;
mod tables;
mod trace_recorder;

use cohkit_base::sequence::{Action, Sequence};
use cohkit_protocol::construct::ConstructionError;
use cohkit_protocol::controller::{Access, Controller};
use cohkit_protocol::protocol::{self, Bounds, Carries, Class, End, Permission, Protocol};
use cohkit_timeline::{Filter, Side};
use std::sync::Arc;

use crate::agents::application::{Application, ApplicationEnvironment};
use crate::agents::caches::{CacheEnvironment, Caches};
use crate::agents::clocked::ClockedHome;
use crate::agents::core::Cores;
use crate::agents::device::{Device, DeviceWorkload};
use crate::agents::frontend::Frontend;
use crate::agents::home::{Clocked, DelayedMessages, Home, HomeEnvironment, Unit};
use crate::agents::program::{Input, Program};
use crate::agents::registers::Executor;
use crate::agents::translation::Translations;
use crate::attribution::Attribution;
use crate::components::hosts::{extra_bytes, Hosts, SwitchHop};
use crate::components::layer::{self, Unclaimed};
use crate::components::link::{Direction, Sent};
use crate::components::network::Network;
use crate::components::traffic::{Pattern, Traffic, Workload};
use crate::data::{mix, Copy, Data, Paged, Random};
use crate::explain::{Failure, FailureKind, Trace};
use crate::kernel::{Queue, Time};
use crate::levels::Levels;
use crate::message::{Agent, CoreId, Line, Message, Order, Pool, Work, HOME};
use crate::oracle::{Level, Oracle};
use crate::platform::{self, Memory, Platform};
use crate::scenario::{Performance, Play, Playable};
use crate::spaces::Spaces;
use crate::statistics::{Counters, Stall, Statistics, Totals};

pub use cohkit_protocol::construct::home;
pub(crate) use context::{context, Context};
use groups::{Group, Groups, KindQuantities};
use input_queues::InputQueues;
use interconnect::Admission;
pub(crate) use interconnect::Interconnect;
use kinds::kinds;
pub(crate) use kinds::Kind;
use machine::{run_machine, Machine};
pub(crate) use main_memory::MainMemory;
use names::Names;
use observer::{Fact, Observer, PathTimes};
use order_tracker::OrderTracker;
pub use running::{
    draw_while, explain_while, play_watched, play_while, run, run_while, trace, RunError,
};
use setup::check;
pub(crate) use setup::sentence;
pub use setup::{ClockedHomeFactory, HostSpace, LowerLevelSetup, NoScenario, Setup};
use state::LocalState;
pub(crate) use state::{CheckedData, Locks, RunTally};
pub(crate) use tables::Tables;

/// An event of the kernel. Numbers are indices into pools and lists.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A core issues an access that passes an L1 or a write buffer before its cache.
    Core(u32),
    /// An access reaches its cache.
    Access(u32),
    /// A core is notified that a line of its write buffer has been performed: number of the core, and place in the
    /// buffer.
    Drained(CoreId, u16),
    /// A message reaches a switch on its path. Most machines have one switch.
    Switch(u32, SwitchHop),
    /// A message leaves its switch for the framed links to its receiver.
    Offer(u32),
    /// Framed links may make progress.
    Lanes(u32),
    /// A message reaches its receiver.
    Deliver(u32),
    /// A unit of the home may handle its next input.
    Unit(u32),
    /// Memory has read a line.
    Read(Line),
    /// Memory has written a line.
    Written(Line),
    /// The DRAM of a home may issue commands.
    Memory(u32),
    /// A cycle of the clocked home.
    Clock,
    /// The device issues its next local operation.
    Ask,
    /// The device unlocks a line.
    Unlock(Line),
    /// The application receives an event.
    Application(u32),
    /// The time limit of the application is reached.
    StopApplication,
    /// A local operation of the application reaches the home.
    Local(Line, u8),
    /// An unlock of the application reaches the home.
    LocalUnlock(Line),
    /// A core's thread executes its step on a register or the CPU's own memory.
    HostStep(CoreId),
    /// A transfer reaches the CPU's own memory.
    Transfer(u32),
    /// Registers of a caching agent have changed, or, for numbers after those of the caching agents, registers of a
    /// home.
    Registers(u32),
    /// The first message of an input queue has been taken.
    InputQueue(u32),
    /// A step of an address translation.
    Translation(u32),
    /// A core's thread continues.
    Thread(CoreId),
    /// Check for timed-out accesses.
    Overdue,
}

/// An outstanding access of a core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// Line of the access; meaningless if the access concerns no line.
    pub line: Line,
    /// Index of the next access that waits for the same line in the same cache; `u32::MAX` if there is none.
    pub next: u32,
    /// Value that a write stores in each of its words. For a port's access, the number of its part of a request;
    /// for an atomic access that the home has performed, the old value.
    pub value: u64,
    /// Time of issue, in picoseconds.
    pub issued: Time,
    /// Number of the line's last write before a read in progress began.
    pub since: u32,
    /// First word of the access in the line.
    pub word: u16,
    /// Number of words that a write stores, from `word` on.
    pub words: u16,
    /// Number of the issuing core.
    pub core: CoreId,
    /// Cache that the access goes to.
    pub cache: Agent,
    /// Kind of access.
    pub kind: Access,
    /// Requester, which determines the effect of the completion.
    pub purpose: Purpose,
    /// True if the bytes of the write have been sent to the home, which performs it.
    pub sent: bool,
    /// Flight number of the message that carries these bytes; meaningless unless `sent`.
    pub flight: u32,
    /// True if the home has performed the write.
    pub performed: bool,
    /// Old value of the word of an atomic access, if a message has brought it before the access ends.
    pub found: Option<u64>,
}

impl Pending {
    /// Creates an access to word 0 of a line, with value 0, that nothing has happened to.
    #[inline(always)]
    pub fn new(
        line: Line,
        kind: Access,
        core: CoreId,
        cache: Agent,
        purpose: Purpose,
        issued: Time,
    ) -> Pending {
        Pending {
            line,
            next: u32::MAX,
            value: 0,
            issued,
            since: 0,
            word: 0,
            words: 1,
            core,
            cache,
            kind,
            purpose,
            sent: false,
            flight: 0,
            performed: false,
            found: None,
        }
    }

    /// True if the access writes and returns no value.
    pub fn is_store(&self) -> bool {
        self.kind.writes() && self.kind != Access::Atomic && self.purpose != Purpose::Atomic
    }
}

/// Requester of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A core.
    Core,
    /// A core's thread, which continues meanwhile.
    Posted,
    /// A core's thread, for an update that its step defines. It is performed with write permission, or by the home.
    Atomic,
    /// No requester: a prefetch, which ends when the permission has been acquired.
    Hint,
    /// A write buffer. The access represents all stores to the line that the core's buffer has sent.
    Drain,
    /// Another space. In place of a value, the access has the port's index of the data to write and the requester.
    Port,
}

/// An access to issue.
#[derive(Clone, Copy)]
pub(crate) struct NewAccess {
    /// Line of the access.
    pub line: Line,
    /// Kind of access.
    pub kind: Access,
    /// Word of the line; reduced modulo the words of a line.
    pub word: u16,
    /// Number of the issuing core.
    pub core: CoreId,
    /// Requester.
    pub purpose: Purpose,
}

impl NewAccess {
    /// Returns the prefetch of a permission for a line.
    pub fn prefetch(line: Line, kind: Access, core: CoreId) -> NewAccess {
        NewAccess {
            line,
            kind,
            word: 0,
            core,
            purpose: Purpose::Hint,
        }
    }
}

/// A run in progress: the components of a machine, and the state that they share.
pub struct Simulation {
    /// Constant properties of machine and protocol.
    pub(crate) tables: Tables,
    /// Time, events, messages and accesses.
    pub(crate) local: LocalState,
    /// Contents of lines, and the oracle.
    pub(crate) contents: CheckedData,
    /// Counters.
    pub(crate) tally: RunTally,
    /// Recorders of the run.
    pub(crate) observer: Observer,
    /// First failure of the run, if it has failed.
    pub(crate) failure: Option<Box<Failure>>,
    /// Sources of accesses, cores, and address translation.
    pub(crate) frontend: Frontend,
    /// Caching agents.
    pub(crate) caches: Caches,
    /// Links, switches and input queues.
    pub(crate) interconnect: Interconnect,
    /// Homes, with their units and directory.
    pub(crate) home: Home,
    /// Memory of the homes.
    pub(crate) memory: MainMemory,
    /// Traffic of the device behind the home.
    pub(crate) device: Device,
    /// The application behind the home, if there is one.
    pub(crate) application: Option<Box<Application>>,
}

impl Simulation {
    /// Creates a machine at time 0. With a line, the steps that concern the line are recorded.
    ///
    /// # Errors
    /// A sentence about the part of the setup that is inconsistent or not supported.
    pub fn new(setup: &Setup, trace: Option<Line>) -> Result<Simulation, String> {
        let (platform, protocol) = (&setup.platform, &setup.protocol);
        check(setup)?;
        let remotes = platform.kinds(protocol)?;
        let workloads: Vec<&Workload> = setup.workloads().take(remotes.kinds()).collect();
        let in_flight = workloads.iter().map(|workload| {
            u64::from(workload.cores) * u64::from(workload.outstanding + workload.prefetch)
        });
        let in_flight = in_flight.sum();
        let quantities = KindQuantities::of_platform(platform, remotes.kinds());
        let clocked = match &setup.clocked {
            Some(make) => Some(make()?),
            None => None,
        };
        let is_hardware = clocked.as_ref().is_some_and(|home| home.has_application());
        let scenario = match &setup.play {
            Some(play) => Some(Application::new(
                play,
                protocol,
                &setup.home,
                platform,
                is_hardware,
            )?),
            None => None,
        };
        let (application, threads) = scenario.unzip();
        let remote = Program::new(protocol, &protocol.remote, remotes, false)?;
        let home = Program::new(protocol, &setup.home, remotes, true)?;
        let initial = remote.initial_configurations();
        let groups = Groups::new(remotes, &quantities, initial, &workloads);
        let kinds = kinds(protocol, platform.hosts.as_ref(), &quantities);
        let tables = Tables::new(setup, kinds, groups, (remotes, &remote), in_flight);
        let (groups, homes) = (&tables.groups, platform.homes() as usize);
        let translations = translations(setup, &tables, &workloads)?;
        let interconnect = Interconnect::new(setup, &tables, &quantities)?;
        let options = (
            remote.has_registers() || home.has_registers(),
            interconnect.input_queues.is_limited(),
        );
        let remotes = usize::from(remotes.total());
        let remote = Executor::new(remote, remotes, 0, options);
        let units = (0..tables.units).map(|_| Unit::new(&platform.home));
        let stores = workloads.iter().any(|workload| workload.has(Access::Store));
        Ok(Simulation {
            local: LocalState::new(in_flight, setup.seed),
            contents: CheckedData {
                data: Data::new(protocol.line_bytes),
                oracle: Oracle::for_protocol(setup.oracle, protocol),
            },
            tally: RunTally::default(),
            observer: Observer::new(trace),
            failure: None,
            frontend: Frontend {
                traffic: Traffic::new(&workloads, mix(setup.seed)),
                cores: Cores::new(groups, &quantities, stores, protocol.line_bytes),
                threads: threads.map(Box::new),
                port: None,
                translations: translations.map(Box::new),
            },
            caches: Caches::new(groups, &quantities, remote),
            home: Home {
                executor: Executor::new(home, homes, remotes, options),
                units: units.collect(),
                clocked: clocked.map(|home| Box::new(Clocked::new(home))),
                directory: Paged::new(0),
                upper_level: None,
                delayed: DelayedMessages::default(),
            },
            interconnect,
            memory: MainMemory::new(platform, protocol.line_bytes),
            device: Device::new(&setup.device),
            application: application.map(Box::new),
            tables,
        })
    }

    /// Runs to the end: all accesses and local operations done, nothing in flight.
    ///
    /// # Errors
    /// [`Failure`], with a sequence only if `trace` of [`Simulation::new`] named its line.
    pub fn run(&mut self) -> Result<(), Box<Failure>> {
        self.run_while(&mut |_| true).map(|_| ())
    }

    /// Like [`Simulation::run`], as long as `should_continue` returns true for the number of performed accesses.
    /// Returns true if the end was reached.
    ///
    /// # Errors
    /// As for [`Simulation::run`].
    pub fn run_while(
        &mut self,
        should_continue: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, Box<Failure>> {
        run_machine(self, should_continue).map_err(|((), failure)| failure)
    }

    /// True if an event alone does not keep a run going: a timeout check, or the invalidation of a page's translation.
    #[cold]
    pub(crate) fn is_watchdog_event(&self, event: Event) -> bool {
        match event {
            Event::Overdue => true,
            Event::Translation(number) => {
                let translations = self.frontend.translations.as_ref();
                translations.is_some_and(|translations| translations.must_unmap(number))
            }
            _ => false,
        }
    }

    /// Maximum number of such events that are pending, including the current one.
    #[cold]
    pub(crate) fn max_watchdog_events(&self) -> usize {
        let translations = self.frontend.translations.as_ref();
        let unmapping_scheduled =
            translations.is_some_and(|translations| translations.unmapping_scheduled());
        usize::from(self.application.is_some()) + usize::from(unmapping_scheduled)
    }

    /// Starts the application or the traffic, and the device.
    pub(crate) fn start(&mut self) {
        let mut context = context!(self);
        let threads = self.frontend.threads.as_ref();
        match (&mut self.application, threads) {
            (Some(application), Some(threads)) => {
                application.start(&mut context, threads.scenario.until);
                self.frontend.start_threads(&mut context);
            }
            _ => self.frontend.start_traffic(&mut context),
        }
        if !self.device.is_done() {
            context.schedule(0, Event::Ask);
        }
    }

    /// Handles an event: hands it to the component that it is for.
    #[inline(always)]
    pub(crate) fn handle_event(&mut self, time: Time, event: Event) {
        self.local.now = time;
        self.tally.counters.events += 1;
        self.caches.executor.program.discard_acts();
        self.home.executor.program.discard_acts();
        if self.tables.prefetches_events {
            event_prefetch::prefetch_next_events(self);
        }
        match event {
            Event::Access(access) => {
                let (caches, mut env) = self.caches_and_environment();
                caches.present_access(&mut env, access);
            }
            Event::Core(access) => self.frontend.issue_at_core(&mut context!(self), access),
            Event::Drained(core, place) => {
                (self.frontend).handle_drain(&mut context!(self), core, place)
            }
            Event::Thread(core) => self
                .frontend
                .continue_thread(&mut context!(self), core, time),
            Event::Translation(number) => {
                let mut context = context!(self);
                (self.frontend).run_translation_step(&mut context, &mut self.memory, number);
            }
            Event::Switch(index, at) => {
                (self.interconnect).handle_switch_arrival(&mut context!(self), index, at)
            }
            Event::Offer(index) => {
                (self.interconnect).offer_to_links(&mut context!(self), index, true)
            }
            Event::Lanes(number) => self.advance_lanes(number),
            Event::InputQueue(number) => self.advance_input_queue(number as usize),
            Event::Deliver(index) => self.handle_arrival(index),
            Event::Unit(unit) => {
                let (home, mut env) = self.home_and_environment();
                home.run_unit(&mut env, unit as usize);
            }
            Event::Read(line) => {
                let (home, mut env) = self.home_and_environment();
                home.memory_read(&mut env, line);
            }
            Event::Written(line) => {
                let (home, mut env) = self.home_and_environment();
                home.memory_written(&mut env, line);
            }
            Event::Memory(number) => {
                self.memory.advance(&mut context!(self), number);
                let (home, mut env) = self.home_and_environment();
                home.send_delayed(&mut env);
            }
            Event::Clock => {
                let (home, mut env) = self.home_and_environment();
                home.run_clock_edge(&mut env);
            }
            Event::Registers(number) => self.handle_register_change(number as usize),
            event => self.handle_device_event(event),
        }
    }

    /// Handles an event of the device or the application behind the home, or a periodic check.
    fn handle_device_event(&mut self, event: Event) {
        match event {
            Event::Ask => {
                if let Some((work, line)) = self.device.issue(&context!(self)) {
                    self.present_local(work, line);
                }
            }
            Event::Unlock(line) => {
                (self.device).end_use(&mut context!(self), &mut self.memory, line);
                self.present_local(Work::Unlock(line), line);
            }
            Event::Local(line, number) => self.present_local(Work::Local(line, number), line),
            Event::LocalUnlock(line) => {
                self.local.locks.unlock(line);
                self.present_local(Work::Unlock(line), line);
            }
            Event::Overdue => self.check_timeouts(),
            event => self.handle_application_event(event),
        }
    }

    /// Handles an event of the application, or of the host that its threads run on.
    fn handle_application_event(&mut self, event: Event) {
        let Some(application) = &mut self.application else {
            return;
        };
        let mut context = context!(self);
        match event {
            Event::Application(number) => {
                let mut env = ApplicationEnvironment {
                    context,
                    frontend: &mut self.frontend,
                    memory: &mut self.memory,
                    caches: &self.caches,
                };
                let Some(mut response) = application.deliver_event(&mut env, number) else {
                    return;
                };
                if let Some(event) = response.hardware_event.take() {
                    self.home.submit_application_event(&mut env.context, event);
                }
                application.execute_response(&mut env, response);
            }
            Event::StopApplication => {
                self.interconnect
                    .close_traffic_window(&context.tables.groups);
                if let Some(threads) = &mut self.frontend.threads {
                    application.stop(&mut context, threads);
                }
            }
            event => {
                let (host, mut env) =
                    application.host_and_environment(&mut context, &mut self.frontend);
                match event {
                    Event::HostStep(core) => host.execute_step(&mut env, core),
                    Event::Transfer(number) => host.complete_transfer(&mut env, number),
                    _ => {}
                }
            }
        }
    }

    /// Returns the caches, and the parts of the machine that they use.
    #[inline(always)]
    pub(crate) fn caches_and_environment(&mut self) -> (&mut Caches, CacheEnvironment<'_>) {
        let upper_level = self.home.upper_level.as_ref();
        let env = CacheEnvironment {
            context: context!(self),
            interconnect: &mut self.interconnect,
            frontend: &mut self.frontend,
            directory: &self.home.directory,
            memory: &self.memory,
            permissions_above: upper_level.map(|above| &above.permissions),
        };
        (&mut self.caches, env)
    }

    /// Returns the home, and the parts of the machine that it uses.
    #[inline(always)]
    pub(crate) fn home_and_environment(&mut self) -> (&mut Home, HomeEnvironment<'_>) {
        let env = HomeEnvironment {
            context: context!(self),
            interconnect: &mut self.interconnect,
            memory: &mut self.memory,
            caches: &mut self.caches,
            frontend: &mut self.frontend,
            device: &mut self.device,
            application: self.application.as_deref_mut(),
        };
        (&mut self.home, env)
    }

    /// Presents a local operation or an unlock to the home.
    pub(crate) fn present_local(&mut self, work: Work, line: Line) {
        let (home, mut env) = self.home_and_environment();
        home.present_local(&mut env, work, line);
    }

    /// Handles a change of registers of an agent. Homes are numbered after the caching agents.
    fn handle_register_change(&mut self, number: usize) {
        match number.checked_sub(self.caches.count().into()) {
            None => {
                let (caches, mut env) = self.caches_and_environment();
                caches.handle_register_change(&mut env, Agent(number as u16));
            }
            Some(number) => {
                let (home, mut env) = self.home_and_environment();
                home.handle_register_change(&mut env, number);
            }
        }
    }

    /// Handles the arrival of a message at its receiver.
    #[inline(always)]
    fn handle_arrival(&mut self, index: u32) {
        let mut context = context!(self);
        if let Some(index) = self.interconnect.handle_arrival(&mut context, index) {
            self.present_message(index);
        }
    }

    /// Presents the next message of an input queue, and retries the rows that wait for room in it.
    fn advance_input_queue(&mut self, number: usize) {
        let mut context = context!(self);
        let (next, waiting) = (self.interconnect).advance_input_queue(&mut context, number);
        if let Some(index) = next {
            self.present_message(index);
        }
        for agent in waiting {
            match agent.checked_sub(self.caches.count().into()) {
                None => {
                    let (caches, mut env) = self.caches_and_environment();
                    caches.retry_waiting(&mut env, Agent(agent as u16));
                }
                Some(number) => {
                    let (home, mut env) = self.home_and_environment();
                    home.retry_waiting(&mut env, number);
                }
            }
        }
    }

    /// Presents a message that has arrived to its receiver.
    #[inline(always)]
    fn present_message(&mut self, index: u32) {
        let message = self.local.messages[index];
        if message.to == HOME {
            let (home, mut env) = self.home_and_environment();
            home.handle_message(&mut env, index, &message);
        } else {
            let (caches, mut env) = self.caches_and_environment();
            caches.handle_message(&mut env, index, &message);
        }
    }

    /// Frees configurations that no line has, once a program is full.
    #[cold]
    pub(crate) fn sweep(&mut self) {
        let home = &mut self.home.executor.program;
        let is_remote_full = self.caches.executor.program.is_full();
        if home.is_full() || is_remote_full {
            // Numbers of configurations are reused, so cached descriptions of states are not valid any more.
            let attribution = self.observer.attribution.as_mut();
            if let Some(timeline) = attribution.and_then(|records| records.timeline.as_mut()) {
                timeline.forget_states();
            }
        }
        if home.is_full() {
            home.sweep(self.home.directory.iter());
        }
        if is_remote_full {
            self.caches.sweep();
        }
    }

    /// Advances framed links that are due.
    fn advance_lanes(&mut self, number: u32) {
        if self.interconnect.is_due(number as usize, self.local.now) {
            let unclaimed = self.deliver_from_lanes(number as usize);
            if unclaimed.has_foreign_message {
                (self.interconnect.network.ports_with_foreign_messages).push(number);
            }
        }
    }

    /// Admits messages for this space from links that it shares with another space, at the request of that space.
    /// Messages left for the other space are reported only if some were taken, which were before them.
    pub(crate) fn deliver_from_shared_lanes(&mut self, number: usize) {
        let unclaimed = self.deliver_from_lanes(number);
        if unclaimed.took_message && unclaimed.has_foreign_message {
            (self.interconnect.network.ports_with_foreign_messages).push(number as u32);
        }
    }

    /// Handles the messages admitted from framed links.
    fn deliver_from_lanes(&mut self, number: usize) -> Unclaimed {
        let mut context = context!(self);
        let Admission {
            mut arrivals,
            unclaimed,
        } = self.interconnect.admit_from_lanes(&mut context, number);
        for index in arrivals.drain(..) {
            self.handle_arrival(index);
        }
        let mut context = context!(self);
        (self.interconnect).complete_admission(&mut context, number, arrivals);
        unclaimed
    }
}

impl Machine for Simulation {
    type Part = ();

    fn create(setup: &Setup, recorded: Option<((), Line)>) -> Result<Simulation, String> {
        Simulation::new(setup, recorded.map(|((), line)| line))
    }

    fn begin(&mut self) {
        self.start();
        if self.application.is_some() {
            self.start_timeout_checks();
        }
    }

    #[inline(always)]
    fn step(&mut self) -> Option<Time> {
        let (time, event) = self.local.queue.pop()?;
        // Periodic checks alone do not keep a run going.
        let may_be_watchdog = matches!(event, Event::Overdue | Event::Translation(_));
        if may_be_watchdog
            && self.is_watchdog_event(event)
            && self.local.queue.len() < self.max_watchdog_events()
        {
            return None;
        }
        self.handle_event(time, event);
        Some(time)
    }

    #[inline(always)]
    fn check(&mut self, time: Time) -> Result<(), ((), Box<Failure>)> {
        if time.saturating_sub(self.tally.last_performed) > self.tables.times.progress_timeout
            || self.failure.is_some()
        {
            if self.has_unfinished_work() {
                self.report_no_progress();
            }
            if let Some(failure) = self.failure.take() {
                return Err(((), failure));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn events(&self) -> u64 {
        self.tally.counters.events
    }

    fn poll(&mut self) -> u64 {
        self.sweep();
        self.tally.counters.performed
    }

    fn finish(&mut self) -> Result<(), ((), Box<Failure>)> {
        self.interconnect.network.settle_links();
        if self.has_unfinished_work() {
            self.report_no_progress();
        } else if self.application.is_some() && self.failure.is_none() {
            self.verify_scenario();
        }
        self.failure
            .take()
            .map_or(Ok(()), |failure| Err(((), failure)))
    }
}

/// Creates the address translations of a setup, if its cores use virtual addresses.
fn translations(
    setup: &Setup,
    tables: &Tables,
    workloads: &[&Workload],
) -> Result<Option<Translations>, String> {
    let line_count = match &setup.play {
        Some(play) => Some(play.scenario.line_count().max(1)),
        None => workloads.iter().map(|workload| workload.lines).max(),
    };
    let groups = tables.groups.groups.iter();
    let caches: Vec<_> = groups.map(|group| group.caches.clone()).collect();
    let sizes = (line_count.unwrap_or(1), tables.line_bytes);
    Translations::new(&setup.platform, &caches, sizes, setup.seed)
}
