//! A simulation run: the components of a machine and their event queue.

mod accesses;
mod bottleneck;
mod event_prefetch;
mod final_statistics;
pub(crate) mod groups;
mod input_queues;
mod kinds;
pub(crate) mod observer;
pub(crate) mod order_tracker;
mod running;
mod setup;
mod trace_recorder;

use cohkit_base::sequence::{Action, Sequence};
use cohkit_protocol::construct::ConstructionError;
use cohkit_protocol::controller::{Access, Controller, Event as Cause};
use cohkit_protocol::protocol::{self, Bounds, Carries, Class, End, Home, Protocol, StateId};
use cohkit_protocol::value_text::AgentNames;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::sync::Arc;

use crate::agents::application::ApplicationRun;
use crate::agents::clocked::{Clocked, ClockedHome};
use crate::agents::core::Cores;
use crate::agents::device::{Device, DeviceWorkload};
use crate::agents::home::Unit;
use crate::agents::port::Port;
use crate::agents::program::{Input, Program};
use crate::agents::registers::Registers;
use crate::agents::remote::Caches;
use crate::agents::translation::Translations;
use crate::attribution::Attribution;
use crate::components::hosts::{extra_bytes, Hosts, SwitchHop};
use crate::components::layer::{self, Unclaimed};
use crate::components::link::{Direction, Sent};
use crate::components::memory;
use crate::components::network::Network;
use crate::components::traffic::{Pattern, Traffic, Workload};
use crate::data::{mix, Data, Paged, Random};
use crate::explain::{Failure, FailureKind, Trace};
use crate::kernel::{Queue, Time};
use crate::levels::{Levels, LowerLevel, UpperLevel};
use crate::message::{Agent, Line, Message, Order, Pool, FIELDS, HOME};
use crate::oracle::{Level, Oracle};
use crate::platform::{self, Memory, Platform};
use crate::scenario::{Performance, Play, Playable};
use crate::spaces::{Side, Spaces};
use crate::statistics::{Counters, Stall, Statistics, Totals};
use crate::timeline::Filter;

pub use cohkit_protocol::construct::home;
use groups::{Groups, KindQuantities};
use input_queues::InputQueues;
use kinds::kinds;
pub(crate) use kinds::Kind;
use observer::{Fact, Observer};
use order_tracker::OrderTracker;
pub use running::{
    draw_while, explain_while, play_watched, play_while, run, run_while, trace, RunError,
};
use setup::check;
pub(crate) use setup::sentence;
pub use setup::{ClockedHomeFactory, HostSpace, LowerLevelSetup, NoScenario, Setup};

/// Mask of event numbers: each time these bits are 0, a run frees configurations and polls whether to continue. That is
/// every few milliseconds.
pub(crate) const POLL_MASK: u64 = (1 << 16) - 1;

/// An event of the kernel. Numbers are indices into pools and lists.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A core issues an access that passes an L1 or a write buffer before its cache.
    Core(u32),
    /// An access reaches its cache.
    Access(u32),
    /// A core is notified that a line of its write buffer has been performed: number of the core, and place in the
    /// buffer.
    Drained(u16, u16),
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
    HostStep(u16),
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
    Thread(u16),
    /// Check for timed-out accesses.
    Overdue,
}

/// An outstanding access of a core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub line: Line,
    /// Next access that waits for the same line in the same cache.
    pub next: u32,
    /// Value that a write stores.
    pub value: u64,
    /// Time of issue, in picoseconds.
    pub issued: Time,
    /// Number of the line's last write before a read in progress began.
    pub since: u32,
    pub word: u16,
    /// Number of words that a write stores, from `word` on.
    pub words: u16,
    pub core: u16,
    pub cache: Agent,
    pub kind: Access,
    pub purpose: Purpose,
    /// True if the bytes of the write have been sent to the home, which performs it.
    pub sent: bool,
    /// Number of the message that carries these bytes.
    pub flight: u32,
    /// True if the home has performed the write.
    pub performed: bool,
    /// Value read by an atomic access, if a message has brought it before the access ends.
    pub found: Option<u64>,
}

impl Pending {
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
    /// None. The access is a prefetch, and ends when the permission has been acquired.
    Hint,
    /// A write buffer. The access represents all stores to the line that the core's buffer has sent.
    Drain,
    /// Another space. In place of a value, the access has the port's index of the data to write and the requester.
    Port,
}

/// Delays of the machine, in picoseconds.
pub(crate) struct Times {
    /// Occupancy of a unit by an event, and latency to what the event sends.
    pub occupancy: Time,
    pub latency: Time,
    /// Occupancy and latency of a unit for the completion of a memory operation.
    pub resume_occupancy: Time,
    pub resume: Time,
    /// From one port of the switch to another.
    pub switch: Time,
    /// From a unit to memory, and back.
    pub path: (Time, Time),
    /// From the device to a unit, for local operations, and back.
    pub local: (Time, Time),
    /// Minimum interval between two local operations at a slice, and between two unlocks.
    pub local_interval: Time,
    /// Minimum interval between two local operations of the device, across slices.
    pub issue: Time,
    /// Maximum time that a core waits for an access.
    pub timeout: Time,
    pub progress_timeout: Time,
}

impl Times {
    fn new(platform: &Platform, clocked: bool) -> Times {
        let home = &platform.home;
        // A clocked home models its own delays, up to its ports.
        let home_delay = |quantity: &platform::Quantity| if clocked { 0 } else { quantity.value };
        let path = home_delay(&home.memory_path);
        let local = home_delay(&home.local_path);
        Times {
            occupancy: home.occupancy.value,
            latency: home_delay(&home.latency),
            resume_occupancy: (home.resume_occupancy.as_ref())
                .unwrap_or(&home.occupancy)
                .value,
            resume: home_delay(home.resume.as_ref().unwrap_or(&home.latency)),
            switch: platform.switch.as_ref().map_or(0, |s| s.latency.value),
            path: (path / 2, path - path / 2),
            local: (local / 2, local - local / 2),
            local_interval: home_delay(&home.local_interval),
            issue: home.issue.as_ref().map_or(0, |issue| issue.value),
            timeout: platform.cores.timeout.value,
            progress_timeout: platform.patience.value,
        }
    }
}

/// A run in progress.
pub struct Simulation {
    pub(crate) queue: Queue<Event>,
    pub(crate) now: Time,
    pub(crate) times: Times,
    pub(crate) kinds: Vec<Kind>,
    /// Messages of the protocol, in the order of the protocol file.
    pub(crate) protocol_messages: Vec<protocol::Message>,
    /// Names of the agents, computed on first use.
    agent_names: OnceCell<AgentNames>,
    /// True if the protocol declares which messages are responses to forwards. Then the end of a coherence transaction
    /// can be detected.
    pub(crate) declares_responses: bool,
    /// Bounds on messages in flight that the protocol file declares.
    pub(crate) bounds: Bounds,
    pub(crate) messages: Pool<Message>,
    pub(crate) accesses: Pool<Pending>,
    pub(crate) remote: Program,
    pub(crate) home: Program,
    /// Caches and cores by kind.
    pub(crate) groups: Groups,
    /// Registers of all agents.
    pub(crate) registers: Registers,
    /// Address translations; `None` if all addresses are physical.
    pub(crate) translations: Option<Box<Translations>>,
    pub(crate) cores: Cores,
    pub(crate) caches: Caches,
    pub(crate) units: Vec<Unit>,
    /// Clocked home in place of the units, if there is one.
    pub(crate) clocked: Option<Box<Clocked>>,
    /// The home's configuration of each line.
    pub(crate) directory: Paged<u32>,
    pub(crate) network: Network,
    /// Interconnect in place of `network` where the machine has hosts.
    pub(crate) hosts: Option<Box<Hosts>>,
    /// The memory behind each home.
    pub(crate) memories: Vec<memory::Memory>,
    pub(crate) data: Data,
    pub(crate) oracle: Oracle,
    /// Bulk transitions, from one state to another, still to be applied to all lines of the current cache.
    pub(crate) bulk_transitions: Vec<(StateId, StateId)>,
    pub(crate) device: Device,
    /// The application behind the home, if there is one.
    pub(crate) application: Option<Box<ApplicationRun>>,
    pub(crate) counters: Counters,
    pub(crate) random: Random,
    pub(crate) platform: Platform,
    pub(crate) line_bytes: u32,
    pub(crate) failure: Option<Box<Failure>>,
    /// Recorders of the run.
    pub(crate) observer: Observer,
    /// Number of homes in the protocol file.
    pub(crate) homes: u16,
    /// Time of the last performed access, or of a later one that is expected: see [`Simulation::postpone_watchdog`].
    pub(crate) progress: Time,
    /// Number of unfinished accesses of cores.
    pub(crate) in_flight: u64,
    pub(crate) traffic: Traffic,
    pub(crate) flights: u32,
    /// Times of issue of stores that have ended but that no home has performed, by cache and message number.
    pub(crate) posted_stores: FxHashMap<(Agent, u32), Vec<Time>>,
    /// Ordered messages in flight, behind which later messages must wait.
    pub(crate) order_tracker: OrderTracker,
    /// Input queues of networks; empty if the protocol file has no networks.
    pub(crate) input_queues: InputQueues,
    /// True if memory is prefetched for upcoming events.
    prefetches_events: bool,
    /// View of the upper level, if this is the lower of two levels.
    pub(crate) upper_level: Option<Box<UpperLevel>>,
    /// View of the lower level, if this is the upper of two levels.
    pub(crate) lower_level: Option<Box<LowerLevel>>,
    /// Port for accesses from another space, if there is one.
    pub(crate) port: Option<Box<Port>>,
}

impl Simulation {
    /// Creates a machine at time 0. With a line, the steps that concern the line are recorded.
    ///
    /// # Errors
    /// A sentence about the part of the setup that is inconsistent or not supported.
    pub fn new(setup: &Setup, trace: Option<Line>) -> Result<Simulation, String> {
        let platform = &setup.platform;
        check(setup)?;
        let protocol = &setup.protocol;
        let remotes = platform.kinds(protocol)?;
        let mut kinds = kinds(protocol, platform.hosts.as_ref());
        let homes = platform.homes();
        let workloads: Vec<&Workload> = setup.workloads().take(remotes.kinds()).collect();
        let in_flight = workloads.iter().map(|workload| {
            u64::from(workload.cores) * u64::from(workload.outstanding + workload.prefetch)
        });
        let in_flight = in_flight.sum();
        let kind_quantities = KindQuantities::of_platform(platform, remotes.kinds());
        for layer in kind_quantities
            .iter()
            .filter_map(|quantities| quantities.link.layer.as_ref())
        {
            let orders = layer::receiver_ordered(protocol, layer.framing);
            kinds::enforce_at_receivers(&mut kinds, &orders);
        }
        let units = homes * platform.home.slices.value * platform.home.units.value;
        let clocked = match &setup.clocked {
            Some(make) => Some(make()?),
            None => None,
        };
        let has_hardware_application = clocked.as_ref().is_some_and(|home| home.has_application());
        let application = match &setup.play {
            Some(play) => Some(ApplicationRun::new(
                play,
                protocol,
                &setup.home,
                platform,
                has_hardware_application,
            )?),
            None => None,
        };
        let remote = Program::new(protocol, &protocol.remote, remotes, false)?;
        let home = Program::new(protocol, &setup.home, remotes, true)?;
        let groups = Groups::new(
            remotes,
            &kind_quantities,
            remote.initial_configurations(),
            &workloads,
        );
        let stores = workloads.iter().any(|workload| workload.has(Access::Store));
        let input_queues = InputQueues::new(protocol, remotes.total(), homes);
        let has_limited_queues = input_queues.is_limited();
        let registers = Registers::new(&remote, &home, remotes.total(), homes, has_limited_queues);
        let caches: Vec<_> = groups
            .groups
            .iter()
            .map(|group| group.caches.clone())
            .collect();
        let line_count = workloads.iter().map(|workload| workload.lines);
        let line_count = match &setup.play {
            Some(play) => Some(play.scenario.line_count().max(1)),
            None => line_count.max(),
        };
        let sizes = (line_count.unwrap_or(1), protocol.line_bytes);
        let translations = Translations::new(platform, &caches, sizes, setup.seed)?;
        Ok(Simulation {
            registers,
            translations: translations.map(Box::new),
            queue: Queue::for_events(in_flight),
            now: 0,
            times: Times::new(platform, setup.clocked.is_some()),
            bounds: protocol.bounds.clone(),
            messages: Pool::default(),
            accesses: Pool::default(),
            remote,
            home,
            cores: Cores::new(&groups, &kind_quantities, stores, protocol.line_bytes),
            caches: Caches::new(&groups, &kind_quantities),
            units: (0..units).map(|_| Unit::new(&platform.home)).collect(),
            clocked: clocked.map(|home| Box::new(Clocked::new(home))),
            directory: Paged::new(0),
            hosts: Hosts::new(platform, &kinds).map(Box::new),
            network: Network::new(
                platform,
                &groups,
                &kind_quantities,
                protocol,
                &kinds,
                setup.seed,
            )?,
            memories: (0..homes)
                .map(|_| memory::Memory::new(&platform.memory, protocol.line_bytes))
                .collect(),
            data: Data::new(protocol.line_bytes),
            oracle: Oracle::for_protocol(setup.oracle, protocol),
            bulk_transitions: Vec::new(),
            device: Device::new(&setup.device),
            application: application.map(Box::new),
            counters: Counters {
                ..Counters::default()
            },
            declares_responses: kinds.iter().any(|kind| kind.class == Some(Class::Answer)),
            kinds,
            protocol_messages: protocol.messages.clone(),
            agent_names: OnceCell::new(),
            random: Random::new(setup.seed),
            platform: platform.clone(),
            line_bytes: protocol.line_bytes,
            failure: None,
            homes: protocol.homes,
            observer: Observer::new(trace),
            progress: 0,
            in_flight: 0,
            traffic: Traffic::new(&workloads, mix(setup.seed)),
            groups,
            flights: 0,
            posted_stores: FxHashMap::default(),
            order_tracker: OrderTracker::default(),
            input_queues,
            prefetches_events: Simulation::is_prefetch_worthwhile(in_flight),
            upper_level: None,
            lower_level: None,
            port: None,
        })
    }

    /// Runs to the end: all accesses and local operations done, nothing in flight.
    ///
    /// # Errors
    /// [`Failure`], without a sequence unless one was asked for.
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
        self.begin();
        if self.application.is_some() {
            self.start_timeout_checks();
        }
        while let Some((time, event)) = self.queue.pop() {
            // Periodic checks alone do not keep a run going.
            let may_be_watchdog = matches!(event, Event::Overdue | Event::Translation(_));
            if may_be_watchdog
                && self.is_watchdog_event(event)
                && self.queue.len() < self.max_watchdog_events()
            {
                break;
            }
            self.handle_event(time, event);
            if time.saturating_sub(self.progress) > self.times.progress_timeout
                || self.failure.is_some()
            {
                if self.has_unfinished_work() {
                    self.report_no_progress();
                }
                if let Some(failure) = self.failure.take() {
                    return Err(failure);
                }
            }
            if self.counters.events & POLL_MASK == 0 {
                self.sweep();
                if !should_continue(self.counters.performed) {
                    return Ok(false);
                }
            }
        }
        self.network.settle_links();
        if self.has_unfinished_work() {
            self.report_no_progress();
        } else if self.application.is_some() && self.failure.is_none() {
            self.verify_scenario();
        }
        self.failure.take().map_or(Ok(true), Err)
    }

    /// True if an event alone does not keep a run going: a timeout check, or the invalidation of a page's translation.
    #[cold]
    pub(crate) fn is_watchdog_event(&self, event: Event) -> bool {
        match event {
            Event::Overdue => true,
            Event::Translation(number) => self.must_unmap(number),
            _ => false,
        }
    }

    /// Maximum number of such events that are pending, including the current one.
    #[cold]
    pub(crate) fn max_watchdog_events(&self) -> usize {
        let translations = self.translations.as_ref();
        let unmapping_scheduled =
            translations.is_some_and(|translations| translations.unmapping_scheduled());
        usize::from(self.application.is_some()) + usize::from(unmapping_scheduled)
    }

    /// Starts the application or the traffic, and the device.
    pub(crate) fn begin(&mut self) {
        if self.application.is_some() {
            self.start_application();
        }
        let groups = self.groups.groups.iter();
        let rounds = match self.application {
            Some(_) => 0,
            None => groups.map(|group| group.outstanding).max().unwrap_or(0),
        };
        for round in 0..rounds {
            for core in 0..self.groups.cores() {
                let group = self.groups.of_core(core);
                if round >= group.outstanding || !self.has_core(core) {
                    continue;
                }
                if round == 0 && (core == group.cores.start || group.streams) {
                    self.prefetch_initial_accesses(core);
                }
                self.issue(core, 0);
            }
        }
        if !self.device.is_done() {
            self.queue.push(0, Event::Ask);
        }
    }

    /// Handles an event.
    #[inline(always)]
    pub(crate) fn handle_event(&mut self, time: Time, event: Event) {
        self.now = time;
        self.counters.events += 1;
        self.remote.discard_acts();
        self.home.discard_acts();
        if self.prefetches_events {
            self.prefetch_next_events();
        }
        match event {
            Event::Access(access) => self.present_access(access),
            Event::Core(access) => self.issue_at_core(access),
            Event::Drained(core, place) => self.notify_core_of_drain(core, place),
            Event::Switch(index, at) => self.handle_switch_arrival(index, at),
            Event::Offer(index) => self.offer_to_links(index, true),
            Event::Lanes(number) => self.advance_lanes(number),
            Event::Deliver(index) => self.handle_arrival(index),
            Event::Unit(unit) => self.run_unit(unit as usize),
            Event::Read(line) => self.memory_read(line),
            Event::Written(line) => self.memory_written(line),
            Event::Clock => self.run_clock_edge(),
            Event::Ask => self.issue_device_operation(),
            Event::Unlock(line) => self.end_device_use(line),
            Event::Application(number) => self.deliver_application_event(number),
            Event::StopApplication => self.stop_application(),
            Event::Local(line, number) => self.present_local_operation(line, number),
            Event::LocalUnlock(line) => self.present_unlock(line),
            Event::HostStep(core) => self.execute_host_step(core),
            Event::Transfer(number) => self.complete_transfer(number),
            Event::Registers(number) => self.registers_changed(number),
            Event::InputQueue(number) => self.advance_input_queue(number as usize),
            Event::Translation(number) => self.run_translation_step(number),
            Event::Thread(core) => self.continue_thread(core, time),
            Event::Overdue => self.check_timeouts(),
        }
    }

    /// Handles the arrival of a message at its receiver.
    #[inline(always)]
    fn handle_arrival(&mut self, index: u32) {
        self.observe(Fact::Arrived {
            index,
            at_receiver: true,
        });
        match self.input_queues.is_empty() {
            true => self.present_message(index),
            false => self.enter_input_queue(index),
        }
    }

    /// Presents a message that has arrived to its receiver.
    #[inline(always)]
    fn present_message(&mut self, index: u32) {
        let message = self.messages[index];
        match message.to {
            HOME => self.arrive_home(index, &message),
            _ => self.arrive_remote(index, &message),
        }
    }

    /// Frees configurations that no line has, once a program is full.
    #[cold]
    pub(crate) fn sweep(&mut self) {
        if self.home.is_full() || self.remote.is_full() {
            self.note_sweep();
        }
        if self.home.is_full() {
            self.home.sweep(self.directory.iter());
        }
        if self.remote.is_full() {
            self.remote.sweep(self.caches.configurations());
        }
    }

    /// Starts an operation of the memory behind a line's home. Returns the time at which it ends.
    #[inline(always)]
    pub(crate) fn memory(&mut self, now: Time, line: Line) -> Time {
        let homes = self.memories.len();
        let place = line >> homes.trailing_zeros();
        self.memories[line as usize & (homes - 1)].operate(now, place)
    }

    /// Sends a message that is ready at time `ready`, which is not before now.
    #[inline]
    pub(crate) fn send(&mut self, mut message: Message, ready: Time) {
        if self.application.is_some() {
            self.open_traffic_window();
        }
        self.flights = self.flights.wrapping_add(1);
        message.flight = self.flights;
        message.credit = true;
        let kind = &mut self.kinds[message.kind.index()];
        kind.sent += 1;
        let circuit = kind.circuit;
        let order = kind.order(&message);
        self.order_tracker.record_sent(kind, &message);
        if kind.network.is_some() {
            self.occupy_place(&message);
        }
        self.observe(Fact::Sent {
            message: &message,
            ready,
        });
        if self.hosts.is_some() {
            return self.send_by_hosts(message, ready, order);
        }
        self.prefetch_receiver(&message);
        let switched = self.network.is_switched();
        if message.from == HOME && message.to == HOME && !switched {
            // Without a switch, all homes are in one place.
            message.credit = false;
            let index = self.messages.insert(message);
            return self.queue.push(ready, Event::Deliver(index));
        }
        let index = self.messages.insert(message);
        if self.bounds.in_flight.is_some() {
            self.check_in_flight(&message);
        }
        if self.network.framed_links(&message, false).is_some() {
            return self.schedule_offer(index, ready, false);
        }
        let now = self.now;
        let sent = Sent { now, ready };
        let direction = self.network.links_from_sender(&message);
        if direction.take_credit(circuit) {
            let arrival = direction.send(
                sent,
                (message.kind, extra_bytes(&message)),
                &mut self.random,
                order,
            );
            let event = match switched {
                true => Event::Switch(index, SwitchHop::First),
                false => Event::Deliver(index),
            };
            self.queue.push(arrival, event);
        } else {
            direction.queue(circuit, ready, index);
            self.counters.stall(Stall::NoCredit);
        }
    }

    /// Sends a message in a machine with hosts.
    fn send_by_hosts(&mut self, mut message: Message, ready: Time, order: Option<Order>) {
        let Some(hosts) = &mut self.hosts else { return };
        // Receivers have room for all messages.
        message.credit = false;
        let now = self.now;
        let sent = Sent { now, ready };
        let (arrival, has_switch) = hosts.send(sent, &message, &mut self.random, order);
        let index = self.messages.insert(message);
        if self.bounds.in_flight.is_some() {
            self.check_in_flight(&message);
        }
        self.queue.push(
            arrival,
            match has_switch {
                true => Event::Switch(index, SwitchHop::First),
                false => Event::Deliver(index),
            },
        );
    }

    /// Checks the bound on messages in flight for a message that has just been sent.
    #[cold]
    fn check_in_flight(&mut self, sent: &Message) {
        for remote in [sent.from, sent.to] {
            let uses_remote = |message: &Message| {
                message.line == sent.line && (message.from == remote || message.to == remote)
            };
            let count = self.messages.iter().filter(|(_, m)| uses_remote(m)).count();
            let exceeded = self.bounds.exceeded(count).filter(|_| remote != HOME);
            if let Some(excess) = exceeded {
                let text = format!("{excess}, from or to {}", self.agent_name(remote));
                self.fail(FailureKind::InFlight, sent.line, text);
            }
        }
    }

    /// Sends a message that now has the room it waited for: behind its first links, or behind its last ones if
    /// `to_receiver`.
    fn send_queued(&mut self, index: u32, ready: Time, to_receiver: bool) {
        self.observe(Fact::Credited { index, ready });
        let message = self.messages[index];
        let kind = &self.kinds[message.kind.index()];
        let order = kind.order(&message);
        let now = self.now;
        let sent = Sent { now, ready };
        let direction = match to_receiver {
            true => self.network.links_to_receiver(&message),
            false => self.network.links_from_sender(&message),
        };
        let arrival = direction.send(
            sent,
            (message.kind, extra_bytes(&message)),
            &mut self.random,
            order,
        );
        let event = match to_receiver {
            true => Event::Deliver(index),
            false => Event::Switch(index, SwitchHop::First),
        };
        self.queue.push(arrival, event);
    }

    /// Handles the arrival of a message at a switch. The message continues when there is room behind its last links.
    fn handle_switch_arrival(&mut self, index: u32, switch: SwitchHop) {
        if switch == SwitchHop::First {
            self.observe(Fact::Arrived {
                index,
                at_receiver: false,
            });
        }
        let message = self.messages[index];
        let ready = self.now + self.times.switch;
        if let Some(hosts) = &mut self.hosts {
            let order = self.kinds[message.kind.index()].order(&message);
            let now = self.now;
            let sent = Sent { now, ready };
            let (arrival, next_hop) =
                hosts.send_from_switch(switch, sent, &message, &mut self.random, order);
            let event = match next_hop {
                Some(hop) => Event::Switch(index, hop),
                None => Event::Deliver(index),
            };
            return self.queue.push(arrival, event);
        }
        let circuit = self.kinds[message.kind.index()].circuit;
        if self.network.framed_links(&message, true).is_some() {
            return self.schedule_offer(index, ready, true);
        }
        let direction = self.network.links_to_receiver(&message);
        if direction.take_credit(circuit) {
            self.send_from_switch(index, ready);
        } else {
            direction.queue(circuit, ready, index);
            self.counters.stall(Stall::NoCredit);
        }
    }

    /// Sends a message from the switch to its receiver, and frees its place at the switch.
    fn send_from_switch(&mut self, index: u32, ready: Time) {
        self.send_queued(index, ready, true);
        let message = self.messages[index];
        self.free_switch_place(&message);
    }

    /// Takes a message out of its circuit at the receiver. It stays in the pool.
    pub(crate) fn dequeue_from_circuit(&mut self, index: u32) {
        let message = self.messages[index];
        self.messages[index].credit = false;
        self.free_circuit_place(&message);
    }

    /// Removes a message that a controller takes. If its order spans lines, returns the line of the next message of the
    /// order.
    #[inline(always)]
    pub(crate) fn take_message(&mut self, index: u32, message: &Message) -> Option<Line> {
        self.free_circuit_place(message);
        let kind = &self.kinds[message.kind.index()];
        let next = self.order_tracker.record_taken(kind, message);
        if kind.network.is_some() {
            self.dequeue_from_input_queue(message);
        }
        self.messages.remove(index);
        next
    }

    /// Frees a message's place in its circuit at the receiver. The next message in its queue may be sent.
    #[inline(always)]
    pub(crate) fn free_circuit_place(&mut self, message: &Message) {
        if !message.credit {
            return;
        }
        let circuit = self.kinds[message.kind.index()].circuit;
        let next = self
            .network
            .links_to_receiver(message)
            .return_credit(circuit);
        if let Some((number, _, port)) = self.network.framed_links(message, true) {
            // Messages that arrived on the links without finding room may enter now.
            if std::mem::take(&mut port.blocked) {
                port.set_due(self.now);
                self.queue.push(self.now, Event::Lanes(number as u32));
            }
            return;
        }
        if let Some((ready, next)) = next {
            let ready = ready.max(self.now);
            match self.network.is_switched() {
                true => self.send_from_switch(next, ready),
                false => self.send_queued(next, ready, true),
            }
        }
    }

    /// Schedules the offer of a message to framed links at time `ready`, which is not before now. `to_receiver`: these
    /// are the last links on its path.
    fn schedule_offer(&mut self, index: u32, ready: Time, to_receiver: bool) {
        let message = self.messages[index];
        let Some((number, side, port)) = self.network.framed_links(&message, to_receiver) else {
            return;
        };
        let entry_time = match port.entry_time(side, message.kind, ready) {
            Some(entry_time) => entry_time,
            None if ready > self.now => ready,
            None => return self.offer_to_links(index, to_receiver),
        };
        // Messages that wait for its place are notified when it leaves.
        if to_receiver {
            return self.queue.push(entry_time, Event::Offer(index));
        }
        let next_arrival = port.offer_later(entry_time, side, message.kind, message.line, index);
        if next_arrival < port.due() {
            port.set_due(next_arrival);
            self.queue.push(next_arrival, Event::Lanes(number as u32));
        }
        let direction = self.network.links_from_sender(&message);
        direction.count((message.kind, extra_bytes(&message)));
    }

    /// Offers a message to framed links.
    fn offer_to_links(&mut self, index: u32, to_receiver: bool) {
        let (message, now) = (self.messages[index], self.now);
        match to_receiver {
            true => self
                .network
                .links_to_receiver(&message)
                .count((message.kind, extra_bytes(&message))),
            false => self
                .network
                .links_from_sender(&message)
                .count((message.kind, extra_bytes(&message))),
        }
        let Some((number, side, port)) = self.network.framed_links(&message, to_receiver) else {
            return;
        };
        port.advance(now);
        let due = port.offer(side, message.kind, message.line, index);
        self.schedule_lanes(number, due);
        if to_receiver {
            self.free_switch_place(&message);
        }
    }

    /// Frees a message's place at the switch.
    fn free_switch_place(&mut self, message: &Message) {
        let circuit = self.kinds[message.kind.index()].circuit;
        let next = self
            .network
            .links_from_sender(message)
            .return_credit(circuit);
        if let Some((number, _, port)) = self.network.framed_links(message, false) {
            if std::mem::take(&mut port.blocked) {
                port.set_due(self.now);
                self.queue.push(self.now, Event::Lanes(number as u32));
            }
        } else if let Some((ready, next)) = next {
            self.send_queued(next, ready.max(self.now), false);
        }
    }

    /// Advances framed links that are due. Does nothing if they have been advanced since the event was scheduled.
    fn advance_lanes(&mut self, number: u32) {
        let port = self.network.ports[number as usize].as_ref();
        if port.is_some_and(|port| port.due() <= self.now) {
            let unclaimed = self.deliver_from_lanes(number as usize);
            if unclaimed.has_foreign_message {
                self.network.ports_with_foreign_messages.push(number);
            }
        }
    }

    /// Lets messages for this space in, from links shared with another space and at the request of that space. Messages
    /// left for the other space are reported only if some were taken: these were before them.
    pub(crate) fn deliver_from_shared_lanes(&mut self, number: usize) {
        let unclaimed = self.deliver_from_lanes(number);
        if unclaimed.took_message && unclaimed.has_foreign_message {
            self.network.ports_with_foreign_messages.push(number as u32);
        }
    }

    /// Lets messages in that have arrived on framed links, as far as there is room at the switch or at their receivers.
    fn deliver_from_lanes(&mut self, number: usize) -> Unclaimed {
        let Simulation {
            network,
            messages,
            kinds,
            queue,
            now,
            ..
        } = self;
        // The closure below needs other parts of the network for the room at receivers.
        let mut ports = std::mem::take(&mut network.ports);
        let Some(port) = &mut ports[number] else {
            network.ports = ports;
            return Unclaimed::default();
        };
        port.set_due(Time::MAX);
        let (join, mut blocked) = (port.join, false);
        let switched = network.is_switched();
        let can_enter = |to: usize, index: u32| {
            let message = &messages[index];
            let circuit = kinds[message.kind.index()].circuit;
            let has_room = match switched && to == 1 {
                true => network.links_from_sender(message).take_credit(circuit),
                false => network.links_to_receiver(message).take_credit(circuit),
            };
            blocked |= !has_room;
            has_room
        };
        let mut immediate = std::mem::take(&mut port.arrived_messages);
        let unclaimed = port.take(*now, can_enter, |to, index| match join[to] {
            _ if switched && to == 1 => queue.push(*now, Event::Switch(index, SwitchHop::First)),
            0 => immediate.push(index),
            join => queue.push(*now + join, Event::Deliver(index)),
        });
        port.blocked = blocked;
        network.ports = ports;
        for index in immediate.drain(..) {
            self.handle_arrival(index);
        }
        if let Some(port) = &mut self.network.ports[number] {
            port.arrived_messages = immediate;
            let due = port.next_event().unwrap_or(Time::MAX);
            self.schedule_lanes(number, due);
        }
        unclaimed
    }

    /// Schedules the next progress of framed links, unless an earlier one is scheduled.
    fn schedule_lanes(&mut self, number: usize, due: Time) {
        let due = due.max(self.now);
        if let Some(port) = (self.network.ports[number].as_mut()).filter(|port| due < port.due()) {
            port.set_due(due);
            self.queue.push(due, Event::Lanes(number as u32));
        }
    }

    /// Returns a message as an input for its receiver.
    #[inline]
    pub(crate) fn input(message: &Message) -> Input {
        Input {
            code: message.kind.0,
            sender: message.from,
            agent: message.to,
            fields: message.fields,
        }
    }

    /// Returns an input that is not a message.
    #[inline]
    pub(crate) fn local_input(program: &Program, cause: Cause, agent: Agent) -> Input {
        Input {
            code: program.code(cause),
            sender: HOME,
            agent: agent,
            fields: [0; FIELDS],
        }
    }
}
