//! Simulation of two spaces: lines of a device that the host caches, and lines of the host's memory that both cache.
//!
//! Each is a [`Simulation`] of a protocol file of its own, with caches, home, memory, contents and oracle. They share
//!
//! * *time*: the next event is the earlier one of both, and that of the device's space if both are due at the same
//!   time;
//! * *links*: messages between host and device occupy the same links in both spaces;
//! * *cores and device*: threads and application are in the device's space. They access the host's lines by a
//!   [port](crate::agents::port), and continue when the port reports the result.
//!
//! No agent of one space has a row for a message of the other, so each protocol is checked alone.

use cohkit_application::interface::{Contents, Table};
use cohkit_base::sequence::Sequence;
use cohkit_protocol::controller::Access;
use cohkit_protocol::remotes::KindId;

use crate::agents::host::memory_path::HostMemoryPath;
use crate::agents::port::Port;
use crate::components::layer;
use crate::components::traffic::{Pattern, Workload};
use crate::data::{mix, Data};
use crate::explain::Failure;
use crate::kernel::Time;
use crate::message::{Agent, CoreId, Line};
use crate::oracle::Level;
use crate::platform::Platform;
use crate::scenario::{Performance, Tally};
use crate::simulation::machine::{run_machine, Machine};
use crate::simulation::{context, HostSpace, RunError, Setup, Simulation};
use crate::statistics::Statistics;
use crate::timeline;
use cohkit_timeline::{Filter, Recorded, Side};

/// A run of two spaces.
pub struct Spaces {
    /// Space of the device's lines, with threads and application.
    device: Simulation,
    /// Space of the host's memory.
    host: Simulation,
    /// Space that holds the state of the shared links.
    links_holder: Side,
    /// First caching agent of the device in the host's space.
    first_device_agent: Agent,
    /// Time of the current event, in picoseconds, common to both spaces.
    now: Time,
    /// Number of events handled so far.
    events: u64,
}

impl HostSpace {
    /// Creates the space of the host's memory, used only by the threads and the application of a scenario.
    ///
    /// # Errors
    /// A sentence: there is no home, or the machine has no space of the host's memory.
    pub fn new(
        protocol: cohkit_protocol::protocol::Protocol,
        machine: &Platform,
    ) -> Result<HostSpace, String> {
        let Some(platform) = machine.host() else {
            return Err(format!(
                "{} has no address space for the host's memory, whose protocol `{}` is",
                machine.name, protocol.name
            ));
        };
        let home = crate::simulation::home(&protocol, platform.all_remotes() as u16);
        let home = home.map_err(crate::simulation::sentence)?;
        Ok(HostSpace {
            protocol,
            home,
            platform,
            workloads: [Workload::idle(), Workload::idle()],
        })
    }
}

impl Spaces {
    /// Creates both spaces at time 0. With a line of one of them, the steps that concern the line are recorded.
    ///
    /// # Errors
    /// A sentence about the part of the setup that is inconsistent or not supported.
    pub fn new(setup: &Setup, trace: Option<(Side, Line)>) -> Result<Spaces, String> {
        let Some(space) = &setup.host else {
            return Err("the machine has no second address space for the host's memory".into());
        };
        let traced = |side| {
            trace
                .filter(|(traced_side, _)| *traced_side == side)
                .map(|(_, line)| line)
        };
        let host = host_setup(setup, space);
        check(setup, &host)?;
        let mut device = Simulation::new(setup, traced(Side::Device))?;
        let engine = host.workload.cores as u16;
        let mut host = Simulation::new(&host, traced(Side::Host))?;
        let kind = &host.tables.groups.groups[1];
        let (first, max_outstanding) = (kind.caches.first(), kind.outstanding);
        if usize::from(setup.platform.remotes) != kind.caches.count() {
            let (device_links, host_links) = (kind.caches.count(), setup.platform.remotes);
            return Err(format!(
                "links between host and device carry the messages of both address spaces, but {host_links} lead to caches of the host and {device_links} to those of the device"
            ));
        }
        device
            .interconnect
            .network
            .share_links(&mut host.interconnect.network, first.index());
        // The host's memory begins with zeros.
        host.contents.data = Data::zeroed(space.protocol.line_bytes);
        host.contents.oracle.set_initial_zeros();
        if let (Some(application), Some(threads)) =
            (&mut device.application, &mut device.frontend.threads)
        {
            application.host.path = Some(HostMemoryPath::default());
            threads.has_host_space = true;
            host.frontend.port = Some(Box::new(Port::new(CoreId(engine), max_outstanding.into())));
            let host_words = setup.play.as_ref();
            let host_words = host_words.map_or(0, |play| play.scenario.host_words());
            if let (Some(translations), 1..) = (&mut host.frontend.translations, host_words) {
                translations.set_line_count(host_words.div_ceil(host.contents.data.words().into()));
            }
        }
        Ok(Spaces {
            device,
            host,
            links_holder: Side::Device,
            first_device_agent: first,
            now: 0,
            events: 0,
        })
    }

    /// Runs `action` on one space, after moving the state of the shared links there.
    fn run_on<R>(&mut self, side: Side, action: impl FnOnce(&mut Simulation) -> R) -> R {
        if self.links_holder != side {
            self.links_holder = side;
            let device_network = &mut self.device.interconnect.network;
            let host_network = &mut self.host.interconnect.network;
            let device_agents = self.first_device_agent.index()..;
            let down = host_network.down[device_agents.clone()].iter_mut();
            (device_network.up.iter_mut().zip(down)).for_each(
                |(device_direction, host_direction)| {
                    device_direction.exchange_occupancy(host_direction)
                },
            );
            let up = host_network.up[device_agents].iter_mut();
            (device_network.down.iter_mut().zip(up)).for_each(
                |(device_direction, host_direction)| {
                    device_direction.exchange_occupancy(host_direction)
                },
            );
        }
        let now = self.now;
        let simulation = self.space(side);
        simulation.local.now = now;
        action(simulation)
    }

    /// Returns the simulation of a space.
    fn space(&mut self, side: Side) -> &mut Simulation {
        match side {
            Side::Device => &mut self.device,
            Side::Host => &mut self.host,
        }
    }

    /// Delivers requests to the host's space, completions to the device's space, and messages on shared links, until
    /// none are left.
    fn deliver_between_spaces(&mut self) {
        loop {
            let application = self.device.application.as_mut();
            let host_path = application.and_then(|application| application.host.path.as_mut());
            let requests = host_path.map_or(Vec::new(), |path| std::mem::take(&mut path.requests));
            let port = self.host.frontend.port.as_mut();
            let completions = port.map_or(Vec::new(), |port| std::mem::take(&mut port.completions));
            let lanes = [&mut self.device, &mut self.host].map(|simulation| {
                std::mem::take(&mut simulation.interconnect.network.ports_with_foreign_messages)
            });
            if requests.is_empty() && completions.is_empty() && lanes.iter().all(Vec::is_empty) {
                return;
            }
            let [for_host, for_device] = lanes;
            let first = self.first_device_agent.index();
            for number in for_host {
                self.run_on(Side::Host, |host| {
                    host.deliver_from_shared_lanes(first + number as usize)
                });
            }
            for number in for_device {
                let number = number as usize - first;
                self.run_on(Side::Device, |device| {
                    device.deliver_from_shared_lanes(number)
                });
            }
            for request in requests {
                self.run_on(Side::Host, |host| {
                    (host.frontend).begin_port_request(&mut context!(host), request);
                });
            }
            for completion in completions {
                self.run_on(Side::Device, |device| {
                    let Some(application) = &mut device.application else {
                        return;
                    };
                    let mut context = context!(device);
                    let (host, mut env) =
                        application.host_and_environment(&mut context, &mut device.frontend);
                    host.complete_access(&mut env, completion);
                });
            }
        }
    }

    /// Returns the time, in picoseconds, and the space of the next event. At equal times, the device's space is
    /// first.
    fn next(&self) -> Option<(Time, Side)> {
        let device = self
            .device
            .local
            .queue
            .next()
            .map(|time| (time, Side::Device));
        let host = self.host.local.queue.next().map(|time| (time, Side::Host));
        device.into_iter().chain(host).min_by_key(|(time, _)| *time)
    }

    /// Runs to the end, as long as `should_continue` returns true for the number of performed accesses. Returns true if
    /// the end was reached.
    ///
    /// # Errors
    /// [`Failure`], and its space.
    pub fn run_while(
        &mut self,
        should_continue: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, (Side, Box<Failure>)> {
        run_machine(self, should_continue)
    }

    /// Returns the failure of one of the spaces, if any.
    fn take_failure(&mut self) -> Result<(), (Side, Box<Failure>)> {
        match (self.device.failure.take(), self.host.failure.take()) {
            (Some(failure), _) => Err((Side::Device, failure)),
            (None, Some(failure)) => Err((Side::Host, failure)),
            (None, None) => Ok(()),
        }
    }

    /// Fails the run with a wait-for report if anything is unfinished.
    #[cold]
    fn report_no_progress(&mut self) -> Result<(), (Side, Box<Failure>)> {
        if self.host.tally.in_flight > 0 {
            self.run_on(Side::Host, Simulation::report_no_progress);
        } else if self.device.has_unfinished_work() {
            self.run_on(Side::Device, Simulation::report_no_progress);
        }
        self.take_failure()
    }

    /// Checks the final state of the scenario, if there is one.
    fn verify(&mut self) -> Result<(), (Side, Box<Failure>)> {
        self.device.close_window();
        let Some(threads) = self.device.frontend.threads.take() else {
            return Ok(());
        };
        let verdict = match self.device.contents.oracle.level {
            Level::Off => Ok(()),
            _ => threads.scenario.run.verify(&*self),
        };
        self.device.frontend.threads = Some(threads);
        self.device.judge_scenario(verdict);
        self.take_failure()
    }

    /// Runs a setup to its end, and returns the complete trace of a line.
    ///
    /// # Errors
    /// [`RunError`].
    pub(crate) fn run_traced(
        setup: &Setup,
        side: Side,
        line: Line,
    ) -> Result<(Statistics, Sequence), RunError> {
        let mut spaces = Spaces::new(setup, Some((side, line))).map_err(RunError::Setup)?;
        let protocol = match (side, &setup.host) {
            (Side::Host, Some(host)) => &host.protocol,
            _ => &setup.protocol,
        };
        spaces.space(side).record_full_trace(protocol);
        let result = spaces.run_while(&mut |_| true);
        result.map_err(|(_, failure)| RunError::Failure(failure))?;
        let sequence = spaces.space(side).sequence().unwrap_or_default();
        Ok((spaces.statistics(), sequence))
    }

    /// Returns the statistics, with latency breakdown and timeline of both spaces.
    pub(crate) fn statistics_with_breakdown(&mut self) -> Statistics {
        let mut statistics = self.statistics();
        self.device.add_breakdown(&mut statistics);
        if let Some(host) = &mut statistics.host {
            self.host.add_breakdown(host);
            // The parts of both form one trace.
            let parts = [statistics.timeline.take(), host.timeline.take()];
            let timelines = parts.into_iter().flatten().map(|part| *part);
            statistics.timeline = timelines.reduce(Recorded::merge).map(Box::new);
        }
        statistics
    }

    /// Enables the latency breakdown of both spaces, with all transactions if `records_transactions`.
    pub(crate) fn enable_breakdown(&mut self, records_transactions: bool) {
        self.device.enable_breakdown(records_transactions);
        self.host.enable_breakdown(records_transactions);
    }

    /// Enables the latency breakdown, and the timeline of both spaces or of the filter's. Two spaces share the bytes
    /// equally.
    ///
    /// # Errors
    /// No agent has the filter's name.
    pub(crate) fn enable_timeline(&mut self, filter: &Filter) -> Result<(), String> {
        self.enable_breakdown(false);
        let mut filter = filter.clone();
        let sides = match filter.side {
            Some(side) => vec![side],
            None => vec![Side::Device, Side::Host],
        };
        let agents = sides
            .iter()
            .map(|&side| self.space(side).tables.names.local_lifelines.clone());
        let agents: Vec<String> = agents.collect::<Vec<_>>().concat();
        if let Some(name) = &filter.agent {
            timeline::agent_index(name, &agents)?;
        }
        filter.bytes /= sides.len();
        for side in sides {
            self.space(side).enable_timeline(&filter, Some(side))?;
        }
        Ok(())
    }

    /// Returns the statistics of the device's space, with those [of the host's](Statistics::host).
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.device.statistics();
        statistics.host = Some(Box::new(self.host.statistics()));
        statistics
    }

    /// Returns the counts and times of the scenario after its run; empty without a scenario.
    pub fn tally(&self) -> Tally {
        self.device.tally()
    }

    /// Returns statistics and the results of the scenario.
    pub(crate) fn performance(&self, setup: &Setup) -> Performance {
        let tables = setup.play.as_ref().is_some_and(|play| play.tables);
        Performance {
            statistics: self.statistics(),
            tally: self.tally(),
            tables: if tables {
                self.device.tables()
            } else {
                Vec::<Table>::new()
            },
            end: self.now,
        }
    }
}

impl Machine for Spaces {
    type Part = Side;

    fn create(setup: &Setup, recorded: Option<(Side, Line)>) -> Result<Spaces, String> {
        Spaces::new(setup, recorded)
    }

    fn begin(&mut self) {
        self.run_on(Side::Host, Simulation::start);
        self.run_on(Side::Device, Simulation::start);
        if self.device.application.is_some() {
            self.device.start_timeout_checks();
        }
        self.deliver_between_spaces();
    }

    fn step(&mut self) -> Option<Time> {
        let (time, side) = self.next()?;
        let (_, event) = self.space(side).local.queue.pop()?;
        // Periodic checks alone do not keep a run going.
        if self.space(side).is_watchdog_event(event) {
            let spaces = [&self.device, &self.host];
            let pending: usize = spaces.iter().map(|space| space.local.queue.len()).sum();
            if pending < spaces.iter().map(|space| space.max_watchdog_events()).sum() {
                return None;
            }
        }
        self.now = time;
        self.run_on(side, |simulation| simulation.handle_event(time, event));
        self.deliver_between_spaces();
        self.events += 1;
        Some(time)
    }

    fn check(&mut self, time: Time) -> Result<(), (Side, Box<Failure>)> {
        self.take_failure()?;
        let last_performed = [&self.device, &self.host].map(|space| space.tally.last_performed);
        let progress = last_performed[0].max(last_performed[1]);
        if time.saturating_sub(progress) > self.device.tables.times.progress_timeout {
            self.report_no_progress()?;
        }
        Ok(())
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn poll(&mut self) -> u64 {
        let spaces = [&mut self.device, &mut self.host];
        let performed = spaces.map(|space| {
            space.sweep();
            space.tally.counters.performed
        });
        performed.iter().sum()
    }

    fn finish(&mut self) -> Result<(), (Side, Box<Failure>)> {
        self.device.interconnect.network.settle_links();
        self.host.interconnect.network.settle_links();
        self.report_no_progress()?;
        // Utilisations refer to the time of both spaces.
        let ends = [&self.device, &self.host].map(|space| space.tally.counters.end);
        let end = ends[0].max(ends[1]);
        (self.device.tally.counters.end, self.host.tally.counters.end) = (end, end);
        self.verify()
    }
}

impl Contents for Spaces {
    fn word(&self, line: u32, word: u16) -> u64 {
        self.device.word(line, word)
    }

    fn initial(&self, line: u32, word: u16) -> u64 {
        self.device.initial(line, word)
    }

    fn host(&self, word: u32) -> Option<u64> {
        let words = u32::from(self.host.contents.data.words());
        Some(self.host.word(word / words, (word % words) as u16))
    }
}

/// Returns the setup of the host's space as a run of its own. With a scenario, the port issues all its accesses,
/// from a core for each thread, one for transfers of the bus, and one for the application.
fn host_setup(setup: &Setup, space: &HostSpace) -> Setup {
    let mut platform = space.platform.clone();
    let [mut cpu, mut device] = space.workloads.clone();
    if let Some(play) = &setup.play {
        // Each thread waits for its access, and has one core here.
        let threads = play.scenario.begin().threads() as u32;
        let max_outstanding = platform
            .agents
            .first()
            .map_or(1, |agents| agents.cores.max_outstanding.value);
        // The additional core is for transfers of the bus.
        cpu = workload_without_accesses(&platform, threads + 1, 1);
        device = workload_without_accesses(&platform, 1, max_outstanding as u32);
        platform.cores.write_buffer.value = 0;
        platform.cores.l1_size.value = 0;
        for agents in &mut platform.agents {
            agents.cores.write_buffer.value = 0;
            agents.cores.l1_size.value = 0;
        }
    }
    Setup {
        protocol: space.protocol.clone(),
        home: space.home.clone(),
        platform,
        workload: cpu,
        others: vec![device],
        device: Default::default(),
        clocked: None,
        play: None,
        below: None,
        host: None,
        seed: mix(setup.seed.wrapping_add(1)),
        oracle: setup.oracle,
    }
}

/// Returns a workload without accesses for `cores` cores, for which a port issues accesses.
fn workload_without_accesses(platform: &Platform, cores: u32, outstanding: u32) -> Workload {
    let lines = platform.lines;
    let mut workload = Workload::pass(Pattern::Sequential, Access::Load, lines, cores, outstanding);
    workload.mix.push((Access::Store, 1));
    workload.accesses = 0;
    workload
}

/// Rejects setups that two spaces do not support.
fn check(setup: &Setup, host: &Setup) -> Result<(), String> {
    let machine = &setup.platform.name;
    let unsupported = match setup {
        Setup { below: Some(_), .. } => Some("two levels of caches"),
        Setup {
            clocked: Some(_), ..
        } => Some("a home in hardware"),
        Setup {
            play: Some(play), ..
        } if play.scenario.threads_only() => Some("engines of a device that do what threads do"),
        _ if setup.platform.hosts.is_some() || host.platform.hosts.is_some() => {
            Some("hosts with meshes")
        }
        _ => None,
    };
    if let Some(unsupported) = unsupported {
        return Err(format!(
            "{machine} has two address spaces; with {unsupported} that is not simulated"
        ));
    }
    if let Some(layer) = &setup.platform.link.layer {
        layer::check_bidirectional(layer.framing).map_err(|error| format!("{machine}: {error}"))?;
    }
    for protocol in [&setup.protocol, &host.protocol] {
        if let Some(coupling) = protocol.joins_lines() {
            let name = &protocol.name;
            return Err(format!(
                "{name} has {coupling}, so it cannot be one of two address spaces"
            ));
        }
        if !protocol.guarantee.coherent {
            let name = &protocol.name;
            return Err(format!(
                "{name} has `guarantee none`, so it cannot be one of two address spaces"
            ));
        }
    }
    let kinds = host.platform.kinds(&host.protocol)?;
    if kinds.kinds() != 2 || kinds.count(KindId(0)) == 0 {
        let name = &host.protocol.name;
        return Err(format!(
            "lines of the host's memory are cached by two kinds of remotes, those of host and device, and {name} has {}",
            kinds.kinds()
        ));
    }
    let memory_words = u64::from(host.protocol.line_bytes / 8) * u64::from(host.platform.lines);
    let used_words = setup
        .play
        .as_ref()
        .map_or(0, |play| play.scenario.host_words());
    if used_words > memory_words {
        return Err(format!(
            "{used_words} words of the host's memory are used, but there are only {memory_words}"
        ));
    }
    Ok(())
}
