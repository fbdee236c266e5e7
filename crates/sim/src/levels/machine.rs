//! Simulation of two levels of caches with a common time.

use cohkit_application::interface::{Contents, Table};
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Permission;

use super::*;
use std::rc::Rc;

use crate::agents::device::DeviceWorkload;
use crate::components::traffic::{Pattern, Workload};
use crate::data::mix;
use crate::explain::Failure;
use crate::message::{CoreId, HOME};
use crate::oracle::Level;
use crate::platform::Platform;
use crate::scenario::Performance;
use crate::simulation::machine::Machine;
use crate::simulation::NewAccess;
use crate::simulation::{context, Setup};
use crate::statistics::{Definition, Statistics};

/// A run of two levels.
pub struct Levels {
    /// The upper level.
    upper: Simulation,
    /// Machine below each cache of the upper level.
    lower: Vec<Simulation>,
    /// Time of each lower machine's next event, in picoseconds; `Time::MAX` if it has none.
    due: Vec<Time>,
    /// Lower machines with possible messages for the upper level.
    notifying: Vec<usize>,
    /// State that all machines of the lower level share. It is swapped into a machine while the machine handles an
    /// event.
    shared: Shared,
    /// Time of the current event, in picoseconds, common to all machines.
    now: Time,
    /// Number of events handled so far.
    events: u64,
}

/// Names of the statistics that are meaningful at the upper level.
const UPPER_LEVEL_STATISTICS: [&str; 19] = [
    "prefetches",
    "lines_cached",
    "link_bytes_to_home",
    "link_bytes_from_home",
    "link_occupancy_to_home",
    "link_occupancy_from_home",
    "link_wait_ns",
    "link_units_replayed",
    "link_downs",
    "unit_occupancy",
    "memory_row_hits",
    "memory_row_misses",
    "stalls_no_evictable_way",
    "stalls_controller",
    "stalls_unit_slot",
    "stalls_stall_entries_full",
    "stalls_no_credit",
    "local_operations_acknowledged",
    "local_operations_rejected",
];

/// Statistic that replaces `prefetches` at the upper level.
const PREFETCHED_FOR_BELOW: Definition = Definition {
    name: "brought",
    text: "permissions to lines that the upper level acquired for requests of the lower level",
};

impl Levels {
    /// Creates two levels at time 0. The steps that concern the line `trace` are recorded.
    ///
    /// # Errors
    /// A sentence that names the invalid value or combination.
    pub fn new(setup: &Setup, trace: Option<Line>) -> Result<Levels, String> {
        let Some(below) = &setup.below else {
            return Err("this machine has only one level of caches".into());
        };
        check(setup)?;
        let caches = setup.platform.remotes;
        let mut upper = new_upper(setup, trace)?;
        let messages = below.protocol.message_ids();
        let needed_permissions: Vec<Permission> = messages
            .map(|message| hierarchy::required_permission(&below.protocol, message))
            .collect();
        let machine = |cache: Agent| {
            let machine_setup = Setup {
                protocol: below.protocol.clone(),
                home: below.home.clone(),
                platform: below.platform.clone(),
                device: DeviceWorkload::default(),
                below: None,
                host: None,
                seed: mix(setup.seed.wrapping_add(1 + u64::from(cache.0))),
                ..setup.clone()
            };
            let mut machine = Simulation::new(&machine_setup, trace)?;
            machine.home.upper_level = Some(Box::new(UpperLevel {
                permissions: Paged::new(Permission::None),
                needed_permissions: needed_permissions.clone(),
                locks: FxHashMap::default(),
                notifications: Vec::new(),
            }));
            machine.tables.names.set_cache_above(cache);
            machine.tables.cache_above = Some((cache, caches));
            Ok::<_, String>(machine)
        };
        let mut lower = Agents::new(0..caches)
            .iter()
            .map(machine)
            .collect::<Result<Vec<Simulation>, String>>()?;
        let shared = Shared {
            contents: CheckedData {
                data: Data::new(setup.protocol.line_bytes),
                oracle: Oracle::new(setup.oracle),
            },
            traffic: Traffic::new(&[&setup.workload], mix(setup.seed)),
            tally: RunTally::default(),
            threads: lower[0].frontend.threads.take(),
            application: lower[0].application.take(),
            trace: upper.observer.trace.take(),
            flights: 0,
        };
        share_lifelines(&mut upper, &mut lower);
        upper.caches.lower_level = Some(Box::new(LowerLevel {
            locks: FxHashMap::default(),
            prefetching: FxHashSet::default(),
            notifications: Vec::new(),
        }));
        for machine in &mut lower {
            machine.observer.trace = None;
            (machine.frontend.threads, machine.application) = (None, None);
        }
        Ok(Levels {
            upper,
            due: vec![Time::MAX; lower.len()],
            notifying: Vec::new(),
            lower,
            shared,
            now: 0,
            events: 0,
        })
    }

    /// Executes `action` on a machine of the lower level, with the shared state.
    fn run_lower<R>(&mut self, number: usize, action: impl FnOnce(&mut Simulation) -> R) -> R {
        let machine = &mut self.lower[number];
        self.shared.swap_with_lower(machine);
        machine.local.now = self.now;
        let result = action(machine);
        self.shared.swap_with_lower(machine);
        self.due[number] = machine.local.queue.next().unwrap_or(Time::MAX);
        if machine
            .home
            .upper_level
            .as_ref()
            .is_some_and(|above| !above.notifications.is_empty())
        {
            self.notifying.push(number);
        }
        result
    }

    /// Executes `action` on the upper level, with the shared state.
    fn run_upper<R>(&mut self, action: impl FnOnce(&mut Simulation) -> R) -> R {
        self.shared.swap_with_upper(&mut self.upper);
        self.upper.local.now = self.now;
        let result = action(&mut self.upper);
        self.shared.swap_with_upper(&mut self.upper);
        result
    }

    /// Delivers the messages between the levels until there are none.
    fn deliver_notifications(&mut self) {
        let mut delivered = true;
        while std::mem::take(&mut delivered) {
            let below = self.upper.caches.lower_level.as_mut();
            for (cache, notification) in
                below.map_or(Vec::new(), |b| std::mem::take(&mut b.notifications))
            {
                delivered = true;
                self.notify_below(cache, notification);
            }
            for number in std::mem::take(&mut self.notifying) {
                let above = self.lower[number].home.upper_level.as_mut();
                for notification in
                    above.map_or(Vec::new(), |a| std::mem::take(&mut a.notifications))
                {
                    delivered = true;
                    self.notify_above(Agent(number as u16), notification);
                }
            }
        }
    }

    /// Delivers a notification of the upper level to the machine below a cache.
    fn notify_below(&mut self, cache: Agent, notification: Down) {
        let number = cache.index();
        match notification {
            Down::Changed(line) => {
                let (configuration, copy) = self.upper.caches.configuration_and_copy(cache, line);
                let program = &self.upper.caches.executor.program;
                let permission = program.properties(configuration).permission;
                self.run_lower(number, |machine| {
                    let (home, mut env) = machine.home_and_environment();
                    home.handle_change_above(&mut env, line, permission, copy);
                });
            }
            Down::Recall(line, remaining) => self.run_lower(number, |machine| {
                let (home, mut env) = machine.home_and_environment();
                home.handle_recall(&mut env, line, remaining);
            }),
            Down::Unlock(line) => self.run_lower(number, |machine| {
                machine.present_local(Work::Unlock(line), line);
            }),
        }
    }

    /// Delivers a notification of the machine below a cache to the upper level.
    fn notify_above(&mut self, cache: Agent, notification: Up) {
        let copy = match notification {
            Up::Written(line) => self.lower[cache.index()].memory.copy(line),
            _ => Copy::UNTOUCHED,
        };
        self.run_upper(|upper| {
            if let Up::Wants(line, permission) = notification {
                return prefetch_for_below(upper, cache, line, permission);
            }
            let (caches, mut env) = upper.caches_and_environment();
            match notification {
                Up::Written(line) => {
                    let copy = env.context.contents.data.share(copy);
                    caches.store_in_place(&mut env, cache, line, copy);
                }
                Up::Locked(line) => caches.handle_lock_below(&mut env, cache, line),
                Up::Unlocked(line) => caches.handle_release_below(&mut env, cache, line),
                Up::Wants(..) => {}
            }
        });
    }

    /// Returns the time and the level of the next event: the upper level, or a machine of the lower one. At equal times
    /// the upper level is first, then the machines in order.
    fn next(&self) -> Option<(Time, Option<usize>)> {
        let upper = self.upper.local.queue.next().map(|time| (time, None));
        let lower = self
            .due
            .iter()
            .zip(0..)
            .filter(|(due, _)| **due < Time::MAX);
        let lower = lower.map(|(due, number)| (*due, Some(number)));
        upper.into_iter().chain(lower).min_by_key(|(time, _)| *time)
    }

    /// Returns the first failure of a level.
    fn take_failure(&mut self) -> Result<(), ((), Box<Failure>)> {
        let lower = self.lower.iter_mut();
        let mut simulations = std::iter::once(&mut self.upper).chain(lower);
        simulations
            .find_map(|simulation| simulation.failure.take())
            .map_or(Ok(()), |failure| Err(((), failure)))
    }

    /// Fails the run, with a list of waiting agents, if an access or operation does not complete.
    #[cold]
    fn report_no_progress(&mut self) -> Result<(), ((), Box<Failure>)> {
        if !self.upper.has_unfinished_work()
            && !self.run_lower(0, |machine| machine.has_unfinished_work())
        {
            return Ok(());
        }
        let oldest = |machine: &Simulation| {
            let cores = machine.local.accesses.iter();
            let cores = cores.filter(|(_, access)| access.purpose != Purpose::Hint);
            cores.map(|(_, access)| access.issued).min()
        };
        let machines = self.lower.iter().enumerate();
        let waiting = machines.filter_map(|(number, m)| Some((oldest(m)?, number)));
        let number = waiting.min().map_or(0, |(_, number)| number);
        self.run_lower(number, Simulation::report_no_progress);
        let mut result = self.take_failure();
        if let Err(((), failure)) = &mut result {
            let (upper, line) = (&self.upper, failure.line);
            for cache in upper.caches.agents() {
                let configuration = upper.caches.configuration(cache, line);
                let state = upper.caches.state_text(&upper.tables, cache, configuration);
                let name = upper.tables.agent_name(cache);
                failure.wait_for.push(format!("{name} is in {state}"));
            }
            let (home, state) = (
                upper.tables.agent_name(HOME),
                (upper.home).state_text(&upper.tables, line, upper.home.directory.get(line)),
            );
            failure.wait_for.push(format!("{home} is in {state}"));
        }
        result
    }

    /// Verifies the scenario's result, if there is one.
    fn verify(&mut self) -> Result<(), ((), Box<Failure>)> {
        let Some(mut threads) = self.shared.threads.take() else {
            return Ok(());
        };
        let end = self.shared.tally.counters.end.max(self.now);
        threads.scenario.close_window(end);
        let verdict = match self.shared.contents.oracle.level {
            Level::Off => Ok(()),
            _ => threads.scenario.run.verify(&*self),
        };
        if let Err(violation) = verdict {
            let text = format!("{}: {violation}", threads.scenario.name);
            context!(self.upper).fail(FailureKind::Result, 0, text);
        }
        self.shared.threads = Some(threads);
        self.take_failure()
    }

    /// Returns the statistics of the lower level, with those [of the upper one](Statistics::upper_level).
    pub fn statistics(&self) -> Statistics {
        let machines = self.lower.iter();
        let totals = machines
            .map(Simulation::totals)
            .reduce(|sum, machine_totals| sum.merge(machine_totals));
        let sent = |number: usize| {
            self.lower
                .iter()
                .map(|m| m.interconnect.sent_by_kind[number])
                .sum()
        };
        let names = self.lower[0].tables.message_names().enumerate();
        let messages = names.map(|(number, name)| (name, sent(number))).collect();
        let totals = totals.unwrap_or_else(|| self.upper.totals());
        let mut statistics = self.shared.tally.counters.statistics(messages, &totals);
        let upper = &self.upper;
        let messages = upper.tables.message_names();
        let messages = messages.zip(upper.interconnect.sent_by_kind.iter().copied());
        let counters = Counters {
            // Shares refer to the total time of both levels.
            end: self.shared.tally.counters.end,
            prefetched: upper.tally.counters.prefetched,
            stalls: upper.tally.counters.stalls,
            locals: upper.tally.counters.locals,
            ..Counters::default()
        };
        let mut upper_level = counters.statistics(messages.collect(), &upper.totals());
        let is_meaningful =
            |definition: &Definition| UPPER_LEVEL_STATISTICS.contains(&definition.name);
        upper_level
            .values
            .retain(|(definition, _)| is_meaningful(definition));
        // The level below these caches only requests permissions.
        let prefetches = upper_level
            .values
            .iter_mut()
            .find(|(d, _)| d.name == "prefetches");
        if let Some((definition, _)) = prefetches {
            *definition = PREFETCHED_FOR_BELOW;
        }
        statistics.upper_level = Some(Box::new(upper_level));
        statistics
    }

    /// Returns the statistics, with the counts, durations and tables of a scenario.
    pub(crate) fn performance(&self, setup: &Setup) -> Performance {
        let scenario = self
            .shared
            .threads
            .as_ref()
            .map(|threads| &threads.scenario);
        let tables = setup.play.as_ref().is_some_and(|play| play.tables);
        let with_tables = scenario.filter(|_| tables);
        Performance {
            statistics: self.statistics(),
            tally: scenario
                .map(|scenario| scenario.tally.clone())
                .unwrap_or_default(),
            tables: with_tables.map_or(Vec::<Table>::new(), |scenario| scenario.run.tables()),
            end: self.now,
        }
    }
}

impl Machine for Levels {
    type Part = ();

    fn create(setup: &Setup, recorded: Option<((), Line)>) -> Result<Levels, String> {
        Levels::new(setup, recorded.map(|((), line)| line))
    }

    fn begin(&mut self) {
        for number in 0..self.lower.len() {
            self.run_lower(number, Simulation::start);
        }
        self.run_upper(Simulation::start);
        self.deliver_notifications();
    }

    fn step(&mut self) -> Option<Time> {
        let (time, machine) = self.next()?;
        self.now = time;
        let step = |simulation: &mut Simulation| {
            if let Some((time, event)) = simulation.local.queue.pop() {
                simulation.handle_event(time, event);
            }
        };
        match machine {
            None => self.run_upper(step),
            Some(number) => self.run_lower(number, step),
        }
        self.deliver_notifications();
        self.events += 1;
        Some(time)
    }

    fn check(&mut self, time: Time) -> Result<(), ((), Box<Failure>)> {
        self.take_failure()?;
        if time.saturating_sub(self.shared.tally.last_performed)
            > self.upper.tables.times.progress_timeout
        {
            self.report_no_progress()?;
        }
        Ok(())
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn poll(&mut self) -> u64 {
        self.upper.sweep();
        self.lower.iter_mut().for_each(Simulation::sweep);
        self.shared.tally.counters.performed
    }

    fn finish(&mut self) -> Result<(), ((), Box<Failure>)> {
        self.run_upper(|simulation| simulation.interconnect.network.settle_links());
        for number in 0..self.lower.len() {
            self.run_lower(number, |simulation| {
                simulation.interconnect.network.settle_links()
            });
        }
        self.report_no_progress()?;
        self.verify()
    }
}

impl Contents for Levels {
    fn word(&self, line: u32, word: u16) -> u64 {
        let readable_copy =
            |simulation: &Simulation| simulation.caches.readable_copies(line).next();
        let copy = self
            .lower
            .iter()
            .find_map(readable_copy)
            .or_else(|| readable_copy(&self.upper));
        let copy = copy.unwrap_or_else(|| self.upper.memory.copy(line));
        self.shared.contents.data.word(line, copy, word)
    }

    fn initial(&self, line: u32, word: u16) -> u64 {
        Data::untouched_word(line, word)
    }
}

/// Creates the upper of two levels.
///
/// # Errors
/// A sentence that names the invalid value or combination.
fn new_upper(setup: &Setup, trace: Option<Line>) -> Result<Simulation, String> {
    let mut upper = setup.clone();
    (upper.below, upper.platform.below) = (None, None);
    upper.play = None;
    upper.workload = idle_workload(&setup.platform, setup.workload.lines);
    // The lower level is in front of these caches.
    upper.platform.cores.l1_size.value = 0;
    upper.platform.cores.write_buffer.value = 0;
    let mut upper = Simulation::new(&upper, trace)?;
    upper.contents.oracle.above = Some(Paged::new([0; 2]));
    if upper.tables.caches_send_stores {
        return Err(format!(
            "caches of {} send their stores to the home, but the lower level writes to their copies",
            setup.protocol.name
        ));
    }
    Ok(upper)
}

/// Gives all machines the lifelines of both levels: those of the upper level, then those of each machine below.
fn share_lifelines(upper: &mut Simulation, lower: &mut [Simulation]) {
    let mut lifelines = upper.tables.names.local_lifelines.clone();
    for machine in lower.iter_mut() {
        let names = &mut machine.tables.names;
        names.first_lifeline = lifelines.len();
        lifelines.extend(names.agents.iter().cloned());
    }
    let lifelines: Rc<[String]> = lifelines.into();
    for machine in std::iter::once(upper).chain(lower) {
        machine.tables.names.lifelines = Rc::clone(&lifelines);
    }
}

/// Starts a prefetch of a permission for the level below, unless the line is locked or already being prefetched.
fn prefetch_for_below(upper: &mut Simulation, cache: Agent, line: Line, permission: Permission) {
    let lower_level = upper.caches.lower_level.as_mut();
    if lower_level.is_some_and(|lower_level| lower_level.begin_prefetch(cache, line)) {
        // Each cache of the upper level has one core, with the same number.
        let access = NewAccess::prefetch(
            line,
            hierarchy::acquiring_access(permission),
            CoreId(cache.0),
        );
        let mut context = context!(upper);
        let now = context.now();
        upper.frontend.start_access(&mut context, access, now);
    }
}

/// Rejects setups that two levels do not support.
fn check(setup: &Setup) -> Result<(), String> {
    let Some(below) = &setup.below else {
        return Ok(());
    };
    let (upper_bytes, lower_bytes) = (setup.protocol.line_bytes, below.protocol.line_bytes);
    if upper_bytes != lower_bytes {
        let (name, lower_name) = (&setup.protocol.name, &below.protocol.name);
        return Err(format!(
            "a line of {name} has {upper_bytes} bytes, and one of {lower_name}, below it, {lower_bytes}"
        ));
    }
    let caches = u32::from(setup.platform.remotes) * u32::from(below.platform.remotes);
    let max_caches = Platform::MAX_AGENTS.into();
    if !(1..=max_caches).contains(&caches) {
        let subject = "caches of the lower level, all together";
        return Err(format!(
            "{subject}, must be 1 to {max_caches}, not {caches}"
        ));
    }
    if !setup.platform.agents.is_empty() {
        return Err("two levels of caches support one kind of caching agents".into());
    }
    if below.platform.homes() != 1 {
        let subject = "the lower level needs one home per upper cache";
        return Err(format!("{subject}, not {}", below.platform.homes()));
    }
    if below.platform.cores.l1_size.value > 0 {
        return Err("cores.l1_size must be 0B when a protocol specifies the first level".into());
    }
    if setup.clocked.is_some() {
        return Err("a home in hardware does not support two levels of caches".into());
    }
    Ok(())
}

/// Returns a workload without accesses: the lower level issues all accesses.
fn idle_workload(platform: &Platform, lines: Line) -> Workload {
    let cores = platform.remotes.into();
    let mut workload = Workload::pass(Pattern::Sequential, Access::Load, lines, cores, 1);
    workload.mix.push((Access::Store, 1));
    workload.accesses = 0;
    workload
}
