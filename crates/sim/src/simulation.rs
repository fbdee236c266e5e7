//! A simulation run: the components of a machine and their event queue.

mod accesses;
mod bottleneck;
mod event_prefetch;
mod final_statistics;
pub(crate) mod groups;
mod input_queues;
mod interconnect;
mod kinds;
pub(crate) mod observer;
pub(crate) mod order_tracker;
mod running;
mod setup;
mod state;
mod tables;
mod trace_recorder;

use cohkit_base::sequence::{Action, Sequence};
use cohkit_protocol::construct::ConstructionError;
use cohkit_protocol::controller::{Access, Controller, Event as Cause};
use cohkit_protocol::protocol::{self, Bounds, Carries, Class, End, Home, Protocol};
use cohkit_protocol::value_text::AgentNames;
use cohkit_timeline::{Filter, Side};
use std::sync::Arc;

use crate::agents::application::ApplicationRun;
use crate::agents::clocked::{Clocked, ClockedHome};
use crate::agents::core::Cores;
use crate::agents::device::{Device, DeviceWorkload};
use crate::agents::home::{HomeState, Unit};
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
use crate::spaces::Spaces;
use crate::statistics::{Counters, Stall, Statistics, Totals};

pub use cohkit_protocol::construct::home;
use groups::{Groups, KindQuantities};
use input_queues::InputQueues;
use interconnect::{Admission, Context, Interconnect};
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
pub(crate) use state::{CheckedData, RunTally};
use state::{LocalState, Neighbours};
use tables::Tables;

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

/// A run in progress.
pub struct Simulation {
    pub(crate) tables: Tables,
    pub(crate) local: LocalState,
    pub(crate) contents: CheckedData,
    pub(crate) tally: RunTally,
    /// Recorders of the run.
    pub(crate) observer: Observer,
    pub(crate) failure: Option<Box<Failure>>,
    /// Caches and cores by kind.
    pub(crate) groups: Groups,
    pub(crate) cores: Cores,
    pub(crate) traffic: Traffic,
    /// Controller of the caches.
    pub(crate) remote: Program,
    pub(crate) caches: Caches,
    pub(crate) home: HomeState,
    /// Registers of all agents.
    pub(crate) registers: Registers,
    pub(crate) interconnect: Interconnect,
    /// Input queues of networks; empty if the protocol file has no networks.
    pub(crate) input_queues: InputQueues,
    /// The memory behind each home.
    pub(crate) memories: Vec<memory::Memory>,
    /// Address translations; `None` if all addresses are physical.
    pub(crate) translations: Option<Box<Translations>>,
    pub(crate) device: Device,
    /// The application behind the home, if there is one.
    pub(crate) application: Option<Box<ApplicationRun>>,
    pub(crate) neighbours: Neighbours,
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
            local: LocalState::new(in_flight, setup.seed),
            contents: CheckedData {
                data: Data::new(protocol.line_bytes),
                oracle: Oracle::for_protocol(setup.oracle, protocol),
            },
            tally: RunTally::default(),
            observer: Observer::new(trace),
            failure: None,
            cores: Cores::new(&groups, &kind_quantities, stores, protocol.line_bytes),
            traffic: Traffic::new(&workloads, mix(setup.seed)),
            remote,
            caches: Caches::new(&groups, &kind_quantities),
            home: HomeState {
                program: home,
                units: (0..units).map(|_| Unit::new(&platform.home)).collect(),
                clocked: clocked.map(|home| Box::new(Clocked::new(home))),
                directory: Paged::new(0),
            },
            registers,
            interconnect: Interconnect {
                hosts: Hosts::new(platform, &kinds).map(Box::new),
                network: Network::new(
                    platform,
                    &groups,
                    &kind_quantities,
                    protocol,
                    &kinds,
                    setup.seed,
                )?,
                order_tracker: OrderTracker::default(),
                sent_by_kind: vec![0; kinds.len()],
            },
            input_queues,
            memories: (0..homes)
                .map(|_| memory::Memory::new(&platform.memory, protocol.line_bytes))
                .collect(),
            translations: translations.map(Box::new),
            device: Device::new(&setup.device),
            application: application.map(Box::new),
            neighbours: Neighbours::default(),
            groups,
            tables: Tables::new(setup, kinds, in_flight),
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
        while let Some((time, event)) = self.local.queue.pop() {
            // Periodic checks alone do not keep a run going.
            let may_be_watchdog = matches!(event, Event::Overdue | Event::Translation(_));
            if may_be_watchdog
                && self.is_watchdog_event(event)
                && self.local.queue.len() < self.max_watchdog_events()
            {
                break;
            }
            self.handle_event(time, event);
            if time.saturating_sub(self.tally.last_performed) > self.tables.times.progress_timeout
                || self.failure.is_some()
            {
                if self.has_unfinished_work() {
                    self.report_no_progress();
                }
                if let Some(failure) = self.failure.take() {
                    return Err(failure);
                }
            }
            if self.tally.counters.events & POLL_MASK == 0 {
                self.sweep();
                if !should_continue(self.tally.counters.performed) {
                    return Ok(false);
                }
            }
        }
        self.interconnect.network.settle_links();
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
            self.local.queue.push(0, Event::Ask);
        }
    }

    /// Handles an event.
    #[inline(always)]
    pub(crate) fn handle_event(&mut self, time: Time, event: Event) {
        self.local.now = time;
        self.tally.counters.events += 1;
        self.remote.discard_acts();
        self.home.program.discard_acts();
        if self.tables.prefetches_events {
            self.prefetch_next_events();
        }
        match event {
            Event::Access(access) => self.present_access(access),
            Event::Core(access) => self.issue_at_core(access),
            Event::Drained(core, place) => self.notify_core_of_drain(core, place),
            Event::Switch(index, at) => self.handle_switch_arrival(index, at),
            Event::Offer(index) => self.offer_to_links(index),
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
        let message = self.local.messages[index];
        match message.to {
            HOME => self.arrive_home(index, &message),
            _ => self.arrive_remote(index, &message),
        }
    }

    /// Frees configurations that no line has, once a program is full.
    #[cold]
    pub(crate) fn sweep(&mut self) {
        if self.home.program.is_full() || self.remote.is_full() {
            self.note_sweep();
        }
        if self.home.program.is_full() {
            self.home.program.sweep(self.home.directory.iter());
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

    /// Returns the interconnect, and the parts of the run that it uses.
    #[inline(always)]
    pub(crate) fn interconnect_and_context(&mut self) -> (&mut Interconnect, Context<'_>) {
        let context = Context {
            tables: &self.tables,
            local: &mut self.local,
            counters: &mut self.tally.counters,
            observer: &mut self.observer,
        };
        (&mut self.interconnect, context)
    }

    /// Sends a message that is ready at time `ready`, which is not before now.
    #[inline]
    pub(crate) fn send(&mut self, mut message: Message, ready: Time) {
        if self.application.is_some() {
            self.open_traffic_window();
        }
        let (interconnect, mut context) = self.interconnect_and_context();
        interconnect.number(&mut context, &mut message);
        if self.tables.kinds[message.kind.index()].network.is_some() {
            self.occupy_place(&message);
        }
        self.observe(Fact::Sent {
            message: &message,
            ready,
        });
        if self.interconnect.hosts.is_none() {
            self.prefetch_receiver(&message);
        }
        let (interconnect, mut context) = self.interconnect_and_context();
        interconnect.send(&mut context, message, ready);
        if self.tables.bounds.in_flight.is_some() {
            self.check_in_flight(&message);
        }
    }

    /// Checks the bound on messages in flight for a message that has just been sent.
    #[cold]
    fn check_in_flight(&mut self, sent: &Message) {
        for remote in [sent.from, sent.to] {
            let uses_remote = |message: &Message| {
                message.line == sent.line && (message.from == remote || message.to == remote)
            };
            let count = self
                .local
                .messages
                .iter()
                .filter(|(_, m)| uses_remote(m))
                .count();
            let exceeded = self
                .tables
                .bounds
                .exceeded(count)
                .filter(|_| remote != HOME);
            if let Some(excess) = exceeded {
                let text = format!("{excess}, from or to {}", self.agent_name(remote));
                self.fail(FailureKind::InFlight, sent.line, text);
            }
        }
    }

    /// Handles the arrival of a message at a switch.
    fn handle_switch_arrival(&mut self, index: u32, switch: SwitchHop) {
        if switch == SwitchHop::First {
            self.observe(Fact::Arrived {
                index,
                at_receiver: false,
            });
        }
        let (interconnect, mut context) = self.interconnect_and_context();
        interconnect.handle_switch_arrival(&mut context, index, switch);
    }

    /// Takes a message out of its circuit at the receiver. It stays in the pool.
    pub(crate) fn dequeue_from_circuit(&mut self, index: u32) {
        let (interconnect, mut context) = self.interconnect_and_context();
        interconnect.dequeue_from_circuit(&mut context, index);
    }

    /// Removes a message that a controller takes. If its order spans lines, returns the line of the next message of the
    /// order.
    #[inline(always)]
    pub(crate) fn take_message(&mut self, index: u32, message: &Message) -> Option<Line> {
        let (interconnect, mut context) = self.interconnect_and_context();
        interconnect.free_circuit_place(&mut context, message);
        let kind = &self.tables.kinds[message.kind.index()];
        let next = self.interconnect.order_tracker.record_taken(kind, message);
        if kind.network.is_some() {
            self.dequeue_from_input_queue(message);
        }
        self.local.messages.remove(index);
        next
    }

    /// Offers a message that has passed its switch to framed links.
    fn offer_to_links(&mut self, index: u32) {
        let (interconnect, mut context) = self.interconnect_and_context();
        interconnect.offer_to_links(&mut context, index, true);
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

    /// Lets messages for this space in, from links shared with another space and at the request of that space. Messages
    /// left for the other space are reported only if some were taken: these were before them.
    pub(crate) fn deliver_from_shared_lanes(&mut self, number: usize) {
        let unclaimed = self.deliver_from_lanes(number);
        if unclaimed.took_message && unclaimed.has_foreign_message {
            (self.interconnect.network.ports_with_foreign_messages).push(number as u32);
        }
    }

    /// Handles the messages that framed links let in.
    fn deliver_from_lanes(&mut self, number: usize) -> Unclaimed {
        let (interconnect, mut context) = self.interconnect_and_context();
        let Admission {
            mut arrivals,
            unclaimed,
        } = interconnect.admit_from_lanes(&mut context, number);
        for index in arrivals.drain(..) {
            self.handle_arrival(index);
        }
        let (interconnect, mut context) = self.interconnect_and_context();
        interconnect.complete_admission(&mut context, number, arrivals);
        unclaimed
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
            agent,
            fields: [0; FIELDS],
        }
    }
}
