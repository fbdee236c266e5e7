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

use crate::agents::host_memory_path::HostMemoryPath;
use crate::agents::port::Port;
use crate::components::layer;
use crate::components::traffic::{Pattern, Workload};
use crate::data::{mix, Data};
use crate::explain::Failure;
use crate::kernel::Time;
use crate::message::{Agent, Line};
use crate::oracle::Level;
use crate::platform::Platform;
use crate::scenario::{Performance, Tally};
use crate::simulation::{HostSpace, RunError, Setup, Simulation, POLL_MASK};
use crate::statistics::Statistics;
use crate::timeline::{self, Filter, Recorded};

/// One of the two spaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Lines whose home is the device.
    Device,
    /// Lines of the host's memory.
    Host,
}

/// A run of two spaces.
pub struct Spaces {
    device: Simulation,
    host: Simulation,
    /// Space that holds the state of the shared links.
    turn: Side,
    /// First caching agent of the device in the host's space.
    first: Agent,
    now: Time,
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
        let traced = |side| trace.filter(|(of, _)| *of == side).map(|(_, line)| line);
        let host = host(setup, space);
        check(setup, &host)?;
        let mut device = Simulation::new(setup, traced(Side::Device))?;
        let engine = host.workload.cores as u16;
        let mut host = Simulation::new(&host, traced(Side::Host))?;
        let kind = &host.groups.groups[1];
        let (first, most) = (kind.caches.first(), kind.outstanding);
        if usize::from(setup.platform.remotes) != kind.caches.count() {
            let (there, here) = (kind.caches.count(), setup.platform.remotes);
            return Err(format!(
                "links between host and device carry the messages of both address spaces, but {here} lead to caches of the host and {there} to those of the device"
            ));
        }
        device.network.shares(&mut host.network, first.index());
        // The host's memory begins with zeros.
        host.data = Data::zeroed(space.protocol.line_bytes);
        host.oracle.set_initial_zeros();
        if let Some(behind) = &mut device.behind {
            behind.beyond = Some(HostMemoryPath::default());
            host.port = Some(Box::new(Port::new(engine, most.into())));
            let used = setup.play.as_ref();
            let used = used.map_or(0, |play| play.scenario.host_words());
            if let (Some(translations), 1..) = (&mut host.translations, used) {
                translations.set_line_count(used.div_ceil(host.data.words().into()));
            }
        }
        Ok(Spaces {
            device,
            host,
            turn: Side::Device,
            first,
            now: 0,
            events: 0,
        })
    }

    /// Runs `does` on one space, after moving the state of the shared links there.
    fn on<R>(&mut self, side: Side, does: impl FnOnce(&mut Simulation) -> R) -> R {
        if self.turn != side {
            self.turn = side;
            let here = &mut self.device.network;
            let there = &mut self.host.network;
            let its = self.first.index()..;
            let down = there.down[its.clone()].iter_mut();
            (here.up.iter_mut().zip(down)).for_each(|(one, other)| one.exchange_occupancy(other));
            let up = there.up[its].iter_mut();
            (here.down.iter_mut().zip(up)).for_each(|(one, other)| one.exchange_occupancy(other));
        }
        let now = self.now;
        let simulation = self.of(side);
        simulation.now = now;
        does(simulation)
    }

    fn of(&mut self, side: Side) -> &mut Simulation {
        match side {
            Side::Device => &mut self.device,
            Side::Host => &mut self.host,
        }
    }

    /// Delivers requests to the host's space, completions to the device's space, and messages on shared links, until
    /// none are left.
    fn settle(&mut self) {
        loop {
            let beyond = self.device.behind.as_mut().and_then(|b| b.beyond.as_mut());
            let asks = beyond.map_or(Vec::new(), |beyond| std::mem::take(&mut beyond.asks));
            let port = self.host.port.as_mut();
            let told = port.map_or(Vec::new(), |port| std::mem::take(&mut port.told));
            let lanes = [&mut self.device, &mut self.host]
                .map(|simulation| std::mem::take(&mut simulation.network.elsewhere));
            if asks.is_empty() && told.is_empty() && lanes.iter().all(Vec::is_empty) {
                return;
            }
            let [for_host, for_device] = lanes;
            let first = self.first.index();
            for number in for_host {
                self.on(Side::Host, |host| {
                    host.deliver_from_shared_lanes(first + number as usize)
                });
            }
            for number in for_device {
                let number = number as usize - first;
                self.on(Side::Device, |device| {
                    device.deliver_from_shared_lanes(number)
                });
            }
            for ask in asks {
                self.on(Side::Host, |host| host.asked(ask));
            }
            for told in told {
                self.on(Side::Device, |device| device.complete_host_access(told));
            }
        }
    }

    /// Returns the time and the space of the next event.
    fn next(&self) -> Option<(Time, Side)> {
        let device = self.device.queue.next().map(|time| (time, Side::Device));
        let host = self.host.queue.next().map(|time| (time, Side::Host));
        device.into_iter().chain(host).min_by_key(|(time, _)| *time)
    }

    /// Runs to the end, as long as `go_on` returns true for the number of performed accesses. Returns true if the end
    /// was reached.
    ///
    /// # Errors
    /// [`Failure`], and its space.
    pub fn run_while(
        &mut self,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, (Side, Box<Failure>)> {
        self.on(Side::Host, Simulation::begin);
        self.on(Side::Device, Simulation::begin);
        if self.device.behind.is_some() {
            self.device.start_timeout_checks();
        }
        self.settle();
        while let Some((time, side)) = self.next() {
            let Some((_, event)) = self.of(side).queue.pop() else {
                break;
            };
            // Periodic checks alone do not keep a run going.
            if self.of(side).is_watchdog_event(event) {
                let both = [&self.device, &self.host];
                let come: usize = both.iter().map(|of| of.queue.len()).sum();
                if come < both.iter().map(|of| of.max_watchdog_events()).sum() {
                    break;
                }
            }
            self.now = time;
            self.on(side, |simulation| simulation.handle_event(time, event));
            self.settle();
            self.failed()?;
            let progress = self.device.progress.max(self.host.progress);
            if time.saturating_sub(progress) > self.device.times.patience {
                self.stuck()?;
            }
            self.events += 1;
            if self.events & POLL_MASK == 0 {
                self.device.sweep();
                self.host.sweep();
                let performed = |simulation: &Simulation| simulation.counters.performed;
                if !go_on(performed(&self.device) + performed(&self.host)) {
                    return Ok(false);
                }
            }
        }
        self.device.network.rest();
        self.host.network.rest();
        self.stuck()?;
        // Utilisations refer to the time of both spaces.
        let end = self.device.counters.end.max(self.host.counters.end);
        (self.device.counters.end, self.host.counters.end) = (end, end);
        self.verify().map(|()| true)
    }

    /// Returns the failure of one of the spaces, if any.
    fn failed(&mut self) -> Result<(), (Side, Box<Failure>)> {
        match (self.device.failure.take(), self.host.failure.take()) {
            (Some(failure), _) => Err((Side::Device, failure)),
            (None, Some(failure)) => Err((Side::Host, failure)),
            (None, None) => Ok(()),
        }
    }

    /// Fails the run with a wait-for report if anything is unfinished.
    #[cold]
    fn stuck(&mut self) -> Result<(), (Side, Box<Failure>)> {
        if self.host.in_flight > 0 {
            self.on(Side::Host, Simulation::stuck);
        } else if self.device.waits() {
            self.on(Side::Device, Simulation::stuck);
        }
        self.failed()
    }

    /// Checks the final state of the scenario, if there is one.
    fn verify(&mut self) -> Result<(), (Side, Box<Failure>)> {
        self.device.close_window();
        let Some(behind) = self.device.behind.take() else {
            return Ok(());
        };
        let verdict = match self.device.oracle.level {
            Level::Off => Ok(()),
            _ => behind.played.verify(&*self),
        };
        self.device.behind = Some(behind);
        self.device.judge_scenario(verdict);
        self.failed()
    }

    /// Runs a setup to its end. A failed run is repeated to record the steps that led to the failure.
    ///
    /// # Errors
    /// [`RunError`].
    pub(crate) fn run_to_completion(
        setup: &Setup,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Spaces, RunError> {
        Spaces::watched(setup, go_on, &|_| Ok(()))
    }

    /// Like [`Spaces::run_to_completion`], with `watch` called on the spaces before the run.
    ///
    /// # Errors
    /// [`RunError`].
    pub(crate) fn watched(
        setup: &Setup,
        go_on: &mut dyn FnMut(u64) -> bool,
        watch: &dyn Fn(&mut Spaces) -> Result<(), String>,
    ) -> Result<Spaces, RunError> {
        let mut spaces = Spaces::new(setup, None).map_err(RunError::Setup)?;
        watch(&mut spaces).map_err(RunError::Setup)?;
        let (side, failure) = match spaces.run_while(go_on) {
            Ok(true) => return Ok(spaces),
            Ok(false) => return Err(RunError::Stopped),
            Err(failed) => failed,
        };
        let line = Some((side, failure.line));
        let mut again = Spaces::new(setup, line).map_err(RunError::Setup)?;
        Err(match again.run_while(go_on) {
            Err((_, failure)) => RunError::Failure(failure),
            Ok(true) => RunError::Failure(failure),
            Ok(false) => RunError::Stopped,
        })
    }

    /// Runs a setup to its end, and returns the complete trace of a line.
    ///
    /// # Errors
    /// [`RunError`].
    pub(crate) fn traced(
        setup: &Setup,
        side: Side,
        line: Line,
    ) -> Result<(Statistics, Sequence), RunError> {
        let mut spaces = Spaces::new(setup, Some((side, line))).map_err(RunError::Setup)?;
        let protocol = match (side, &setup.host) {
            (Side::Host, Some(host)) => &host.protocol,
            _ => &setup.protocol,
        };
        spaces.of(side).tells_everything(protocol);
        let ended = spaces.run_while(&mut |_| true);
        ended.map_err(|(_, failure)| RunError::Failure(failure))?;
        let sequence = spaces.of(side).sequence().unwrap_or_default();
        Ok((spaces.statistics(), sequence))
    }

    /// Returns the statistics, with latency breakdown and timeline of both spaces.
    pub(crate) fn noted(&mut self) -> Statistics {
        let mut statistics = self.statistics();
        self.device.add_breakdown(&mut statistics);
        if let Some(host) = &mut statistics.host {
            self.host.add_breakdown(host);
            // The parts of both form one trace.
            let parts = [statistics.timeline.take(), host.timeline.take()];
            let all = parts.into_iter().flatten().map(|part| *part);
            statistics.timeline = all.reduce(Recorded::merge).map(Box::new);
        }
        statistics
    }

    /// Enables the latency breakdown of both spaces, with all transactions if `all`.
    pub(crate) fn attribute(&mut self, all: bool) {
        self.device.attribute(all);
        self.host.attribute(all);
    }

    /// Enables the latency breakdown, and the timeline of both spaces or of the filter's. Two spaces share the bytes
    /// equally.
    ///
    /// # Errors
    /// No agent has the filter's name.
    pub(crate) fn draw(&mut self, filter: &Filter) -> Result<(), String> {
        self.attribute(false);
        let mut filter = filter.clone();
        let sides = match filter.side {
            Some(side) => vec![side],
            None => vec![Side::Device, Side::Host],
        };
        let agents = sides.iter().map(|&side| self.of(side).local_lifelines());
        let agents: Vec<String> = agents.collect::<Vec<_>>().concat();
        if let Some(name) = &filter.agent {
            timeline::named(name, &agents)?;
        }
        filter.bytes /= sides.len();
        for side in sides {
            self.of(side).draw(&filter, Some(side))?;
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

impl Contents for Spaces {
    fn word(&self, line: u32, word: u16) -> u64 {
        self.device.word(line, word)
    }

    fn initial(&self, line: u32, word: u16) -> u64 {
        self.device.initial(line, word)
    }

    fn host(&self, word: u32) -> Option<u64> {
        let words = u32::from(self.host.data.words());
        Some(self.host.word(word / words, (word % words) as u16))
    }
}

/// Returns the setup of the host's space as a run of its own.
fn host(setup: &Setup, space: &HostSpace) -> Setup {
    let mut platform = space.platform.clone();
    let [mut cpu, mut device] = space.workloads.clone();
    if let Some(play) = &setup.play {
        // Each thread waits for its access, and has one core here.
        let threads = play.scenario.begin().threads() as u32;
        let most = platform
            .agents
            .first()
            .map_or(1, |of| of.cores.outstanding.value);
        // The additional core is for transfers of the bus.
        cpu = before(&platform, threads + 1, 1);
        device = before(&platform, 1, most as u32);
        platform.cores.write_buffer.value = 0;
        platform.cores.l1.value = 0;
        for agents in &mut platform.agents {
            agents.cores.write_buffer.value = 0;
            agents.cores.l1.value = 0;
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
fn before(platform: &Platform, cores: u32, outstanding: u32) -> Workload {
    let lines = platform.lines;
    let mut workload = Workload::pass(Pattern::Sequential, Access::Load, lines, cores, outstanding);
    workload.mix.push((Access::Store, 1));
    workload.accesses = 0;
    workload
}

/// Rejects setups that two spaces do not support.
fn check(setup: &Setup, host: &Setup) -> Result<(), String> {
    let machine = &setup.platform.name;
    let beside = match setup {
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
    if let Some(beside) = beside {
        return Err(format!(
            "{machine} has two address spaces; with {beside} that is not simulated"
        ));
    }
    if let Some(layer) = &setup.platform.link.layer {
        layer::check_bidirectional(layer.framing).map_err(|what| format!("{machine}: {what}"))?;
    }
    for protocol in [&setup.protocol, &host.protocol] {
        if let Some(what) = protocol.joins_lines() {
            let name = &protocol.name;
            return Err(format!(
                "{name} has {what}, so it cannot be one of two address spaces"
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
    if kinds.kinds() != 2 || kinds.of(KindId(0)) == 0 {
        let name = &host.protocol.name;
        return Err(format!(
            "lines of the host's memory are cached by two kinds of remotes, those of host and device, and {name} has {}",
            kinds.kinds()
        ));
    }
    let words = u64::from(host.protocol.line_bytes / 8) * u64::from(host.platform.lines);
    let uses = setup
        .play
        .as_ref()
        .map_or(0, |play| play.scenario.host_words());
    if uses > words {
        return Err(format!(
            "{uses} words of the host's memory are used, but there are only {words}"
        ));
    }
    Ok(())
}
