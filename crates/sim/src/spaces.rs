//! Two spaces in time: lines of a device that the host caches, and lines of the host's memory that both cache.
//!
//! Both are [`Simulation`]s, each of a text of its own, with caches, home, memory, contents and oracle. They have together
//!
//! * *time*: the next event is the earlier of both, and of equal times the device's space is first;
//! * *links*: what one sends between host and device occupies the links for the other, too;
//! * *cores and device*: threads and application, which are in the device's space, reach the host's lines by a
//!   [port](crate::agents::port), and go on when that has told them what came of it.
//!
//! No agent of one has a row for anything of the other, so each is checked alone.

use cohkit_application::interface::{Contents, Table};
use cohkit_base::sequence::Sequence;
use cohkit_protocol::controller::Access;
use cohkit_protocol::remotes::KindId;

use crate::agents::beyond::Beyond;
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
use crate::simulation::{HostSpace, RunError, Setup, Simulation, ASKED_AFTER};
use crate::statistics::Statistics;
use crate::timeline::{self, Filter, Recorded};

/// One of the two.
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
    /// Who has the links as they are now.
    turn: Side,
    /// The first caching agent that the device has in the host's space.
    first: Agent,
    now: Time,
    events: u64,
}

impl HostSpace {
    /// The host's memory for threads and an application that do there what they are told, and nothing besides.
    ///
    /// # Errors
    /// A sentence: there is no home, or the machine has none of the host's memory.
    pub fn new(
        protocol: cohkit_protocol::protocol::Protocol,
        machine: &Platform,
    ) -> Result<HostSpace, String> {
        let Some(platform) = machine.host() else {
            return Err(format!(
                "{} has no space of the host's memory, of which `{}` is",
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
    /// Sets two spaces up, at time 0. With a line of one of them, the steps that concern it are recorded.
    ///
    /// # Errors
    /// A sentence that names what makes no sense.
    pub fn new(setup: &Setup, trace: Option<(Side, Line)>) -> Result<Spaces, String> {
        let Some(space) = &setup.host else {
            return Err("there is no space of the host's memory beside this one".into());
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
                "links between host and device carry the messages of both spaces, and {here} lead to caches of the host and {there} to those of the device"
            ));
        }
        device.network.shares(&mut host.network, first.index());
        // The host's memory begins with zeros.
        host.data = Data::of_zeros(space.protocol.line_bytes);
        host.oracle.begins_with_zeros();
        if let Some(behind) = &mut device.behind {
            behind.beyond = Some(Beyond::default());
            host.port = Some(Box::new(Port::new(engine, most.into())));
            let used = setup.play.as_ref();
            let used = used.map_or(0, |play| play.scenario.host_words());
            if let (Some(translations), 1..) = (&mut host.translations, used) {
                translations.goes_to(used.div_ceil(host.data.words().into()));
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

    /// One of the two does something, with the links as they are now.
    fn on<R>(&mut self, side: Side, does: impl FnOnce(&mut Simulation) -> R) -> R {
        if self.turn != side {
            self.turn = side;
            let here = &mut self.device.network;
            let there = &mut self.host.network;
            let its = self.first.index()..;
            let down = there.down[its.clone()].iter_mut();
            (here.up.iter_mut().zip(down)).for_each(|(one, other)| one.trade(other));
            let up = there.up[its].iter_mut();
            (here.down.iter_mut().zip(up)).for_each(|(one, other)| one.trade(other));
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

    /// What threads and application ask for reaches the host's space, and what came of it them.
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
                    host.lanes_of_both(first + number as usize)
                });
            }
            for number in for_device {
                let number = number as usize - first;
                self.on(Side::Device, |device| device.lanes_of_both(number));
            }
            for ask in asks {
                self.on(Side::Host, |host| host.asked(ask));
            }
            for told in told {
                self.on(Side::Device, |device| device.told_beyond(told));
            }
        }
    }

    /// Whose event is the next.
    fn next(&self) -> Option<(Time, Side)> {
        let device = self.device.queue.next().map(|time| (time, Side::Device));
        let host = self.host.queue.next().map(|time| (time, Side::Host));
        device.into_iter().chain(host).min_by_key(|(time, _)| *time)
    }

    /// Runs to the end, for as long as `go_on` says so of the accesses performed; whether the end was reached.
    ///
    /// # Errors
    /// [`Failure`], and the space in which it is.
    pub fn run_while(
        &mut self,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, (Side, Box<Failure>)> {
        self.on(Side::Host, Simulation::begin);
        self.on(Side::Device, Simulation::begin);
        if self.device.behind.is_some() {
            self.device.look_for_overdue();
        }
        self.settle();
        while let Some((time, side)) = self.next() {
            let Some((_, event)) = self.of(side).queue.pop() else {
                break;
            };
            // To look for what takes too long is no reason for time to go on.
            if self.of(side).watches(event) {
                let both = [&self.device, &self.host];
                let come: usize = both.iter().map(|of| of.queue.len()).sum();
                if come < both.iter().map(|of| of.watchers()).sum() {
                    break;
                }
            }
            self.now = time;
            self.on(side, |simulation| simulation.happen(time, event));
            self.settle();
            self.failed()?;
            let progress = self.device.progress.max(self.host.progress);
            if time.saturating_sub(progress) > self.device.times.patience {
                self.stuck()?;
            }
            self.events += 1;
            if self.events & ASKED_AFTER == 0 {
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
        // Shares of time are of that of both.
        let end = self.device.counters.end.max(self.host.counters.end);
        (self.device.counters.end, self.host.counters.end) = (end, end);
        self.verify().map(|()| true)
    }

    /// The failure of one of the two.
    fn failed(&mut self) -> Result<(), (Side, Box<Failure>)> {
        match (self.device.failure.take(), self.host.failure.take()) {
            (Some(failure), _) => Err((Side::Device, failure)),
            (None, Some(failure)) => Err((Side::Host, failure)),
            (None, None) => Ok(()),
        }
    }

    /// If something has begun that does not end, says who waits for whom.
    #[cold]
    fn stuck(&mut self) -> Result<(), (Side, Box<Failure>)> {
        if self.host.in_flight > 0 {
            self.on(Side::Host, Simulation::stuck);
        } else if self.device.waits() {
            self.on(Side::Device, Simulation::stuck);
        }
        self.failed()
    }

    /// At the end all is as the scenario says, if there is one.
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

    /// Runs a setup to its end. A run that fails is run again to record what led to it.
    ///
    /// # Errors
    /// [`RunError`].
    pub(crate) fn to_end(
        setup: &Setup,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Spaces, RunError> {
        Spaces::watched(setup, go_on, &|_| Ok(()))
    }

    /// The same, of which the spaces are watched.
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

    /// Runs a setup to its end, with everything that has happened on a line.
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

    /// What has been measured, with what was noted where both spaces are watched.
    pub(crate) fn noted(&mut self) -> Statistics {
        let mut statistics = self.statistics();
        self.device.add_noted(&mut statistics);
        if let Some(host) = &mut statistics.host {
            self.host.add_noted(host);
            // Both are one trace.
            let parts = [statistics.timeline.take(), host.timeline.take()];
            let all = parts.into_iter().flatten().map(|part| *part);
            statistics.timeline = all.reduce(Recorded::and).map(Box::new);
        }
        statistics
    }

    /// From the beginning on it is noted of both where the time of accesses goes.
    pub(crate) fn attribute(&mut self, all: bool) {
        self.device.attribute(all);
        self.host.attribute(all);
    }

    /// The same, and what happens is drawn, in both or in that of the filter: each has half of the room.
    ///
    /// # Errors
    /// There is no agent of the name that is asked for.
    pub(crate) fn draw(&mut self, filter: &Filter) -> Result<(), String> {
        self.attribute(false);
        let mut filter = filter.clone();
        let sides = match filter.side {
            Some(side) => vec![side],
            None => vec![Side::Device, Side::Host],
        };
        let agents = sides.iter().map(|&side| self.of(side).own_lifelines());
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

    /// What has been measured: of the device's space, and [of the host's](Statistics::host).
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.device.statistics();
        statistics.host = Some(Box::new(self.host.statistics()));
        statistics
    }

    /// What a scenario has counted and timed, after its run; nothing without one.
    pub fn tally(&self) -> Tally {
        self.device.tally()
    }

    /// What has been measured, with what a scenario has counted, timed and left.
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

/// The host's space as a run of its own.
fn host(setup: &Setup, space: &HostSpace) -> Setup {
    let mut platform = space.platform.clone();
    let [mut cpu, mut device] = space.workloads.clone();
    if let Some(play) = &setup.play {
        // Threads wait for each access of theirs, and are as many here as there.
        let threads = play.scenario.begin().threads() as u32;
        let most = platform
            .agents
            .first()
            .map_or(1, |of| of.cores.outstanding.value);
        // Behind them is where transfers of the bus enter.
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

/// No accesses of so many cores, which a port makes for them.
fn before(platform: &Platform, cores: u32, outstanding: u32) -> Workload {
    let lines = platform.lines;
    let mut workload = Workload::pass(Pattern::Sequential, Access::Load, lines, cores, outstanding);
    workload.mix.push((Access::Store, 1));
    workload.accesses = 0;
    workload
}

/// Refuses what two spaces cannot be.
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
            "{machine} is of two spaces; with {beside} that is not simulated"
        ));
    }
    if let Some(layer) = &setup.platform.link.layer {
        layer::carries_both(layer.framing).map_err(|what| format!("{machine}: {what}"))?;
    }
    for protocol in [&setup.protocol, &host.protocol] {
        if let Some(what) = protocol.joins_lines() {
            let name = &protocol.name;
            return Err(format!("{name} has {what}, and is no space beside another"));
        }
        if !protocol.guarantee.coherent {
            let name = &protocol.name;
            return Err(format!(
                "{name} has `guarantee none`, and is no space beside another"
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
            "{uses} words of the host's memory are used, and there are {words}"
        ));
    }
    Ok(())
}
