//! Results of a run: statistics, latency breakdown, timeline, trace, and those of a scenario.

use super::*;
use cohkit_application::interface::{Contents, Table};

use crate::attribution::Explanation;
use crate::scenario::Tally;
use crate::timeline::Timeline;
use cohkit_timeline::Recorded;

impl Simulation {
    /// Returns the statistics of the run.
    pub fn statistics(&self) -> Statistics {
        let sent = self.interconnect.sent_by_kind.iter().copied();
        let messages = self.tables.message_names().zip(sent).collect();
        let mut statistics = self.tally.counters.statistics(messages, &self.totals());
        statistics.traffic = (self.interconnect.hosts.as_ref()).map_or_else(Vec::new, |hosts| {
            let totals = hosts.totals_by_kind.iter().copied();
            self.tables.message_names().zip(totals).collect()
        });
        statistics
    }

    /// Returns the statistics, with the counts, durations and tables of a scenario.
    pub(super) fn performance(&self, setup: &Setup) -> Performance {
        Performance {
            statistics: self.statistics(),
            tally: self.tally(),
            tables: match &setup.play {
                Some(play) if play.tables => self.tables(),
                _ => Vec::new(),
            },
            end: self.local.now,
        }
    }

    /// Returns the totals of links, memory and units.
    pub(crate) fn totals(&self) -> Totals {
        let sum =
            |directions: &[Direction], f: fn(&Direction) -> u64| directions.iter().map(f).sum();
        let (up, down) = (
            &self.interconnect.network.up,
            &self.interconnect.network.down,
        );
        let ports = self.interconnect.network.ports.iter();
        let sum_over_ports =
            |f: &dyn Fn(&layer::Port) -> u64| ports.clone().flatten().map(f).sum::<u64>();
        // Links of homes at a switch are not links of caches.
        let busy = |side: usize| {
            let cache_ports = ports.clone().take(up.len()).flatten();
            cache_ports.map(|port| port.busy(side)).sum::<u64>()
        };
        if let Some(hosts) = &self.interconnect.hosts {
            let sum = |directions: &[Direction], f: fn(&Direction) -> u64| {
                directions.iter().map(f).sum::<u64>()
            };
            let (to_switch, from_switch) = (&hosts.to_switch, &hosts.from_switch);
            return Totals {
                links: to_switch
                    .iter()
                    .map(|direction| direction.links() as u64)
                    .sum(),
                bytes_up: hosts.bytes_by_caches,
                bytes_down: hosts.bytes_by_homes,
                busy_up: sum(to_switch, |d| d.busy),
                busy_down: sum(from_switch, |d| d.busy),
                waited: sum(to_switch, |d| d.waited)
                    + sum(from_switch, |d| d.waited)
                    + hosts.uplink_wait(),
                ..self.totals_without_links()
            };
        }
        Totals {
            links: up.iter().map(|direction| direction.links() as u64).sum(),
            bytes_up: sum(up, |d| d.bytes),
            bytes_down: sum(down, |d| d.bytes),
            busy_up: sum(up, |d| d.busy) + busy(0),
            busy_down: sum(down, |d| d.busy) + busy(1),
            replayed: (self.interconnect.network.ports.iter().any(Option::is_some))
                .then(|| sum_over_ports(&|port| port.replayed())),
            downs: (ports.clone().flatten())
                .filter_map(layer::Port::failure_count)
                .reduce(|left, right| left + right),
            waited: sum(up, |d| d.waited) + sum(down, |d| d.waited),
            ..self.totals_without_links()
        }
    }

    /// Returns the totals of memory and units; those of links are 0.
    pub(super) fn totals_without_links(&self) -> Totals {
        let (row_hits, row_misses) = self.memory.row_hits_and_misses();
        Totals {
            line_bytes: self.tables.line_bytes,
            units: match self.home.clocked {
                Some(_) => 0,
                None => self.home.units.len(),
            },
            occupied: self.home.units.iter().map(|unit| unit.occupied).sum(),
            cached: self.lines_cached(),
            buffers: self.frontend.cores.buffer_entries(),
            links: 0,
            bytes_up: 0,
            bytes_down: 0,
            busy_up: 0,
            busy_down: 0,
            waited: 0,
            translated: self
                .frontend
                .translations
                .as_ref()
                .map(|translations| translations.counters),
            replayed: None,
            downs: None,
            row_hits,
            row_misses,
        }
    }

    /// Number of lines in caches now.
    pub fn lines_cached(&self) -> u64 {
        self.caches.ways.lines()
    }

    /// Returns the indices of the rules that the caches, and those that the home, have executed, in their
    /// controllers.
    pub fn executed(&self) -> (Vec<u32>, Vec<u32>) {
        (
            self.caches.executor.program.executed(),
            self.home.executor.program.executed(),
        )
    }

    /// Enables the latency breakdown, from the start of the run; with each access if `records_transactions`.
    pub(crate) fn enable_breakdown(&mut self, records_transactions: bool) {
        self.observer.enabled = true;
        self.observer.attribution = Some(Box::new(Attribution::new(
            self.tables.units,
            self.tables.groups.cores().into(),
            records_transactions,
        )));
    }

    /// Enables the latency breakdown and the timeline, from the start of the run. `side` names the space if there are
    /// two.
    ///
    /// # Errors
    /// The filter names an agent that does not exist.
    pub(crate) fn enable_timeline(
        &mut self,
        filter: &Filter,
        side: Option<Side>,
    ) -> Result<(), String> {
        let cores = self.tables.groups.cores().into();
        let agents = &self.tables.names.local_lifelines;
        let messages: Vec<String> = self.tables.message_names().collect();
        let timeline = Timeline::new(filter, agents, &messages, cores, side)?;
        self.enable_breakdown(false);
        if let Some(attribution) = &mut self.observer.attribution {
            attribution.timeline = Some(Box::new(timeline));
        }
        Ok(())
    }

    /// Adds the breakdown and the timeline to the statistics.
    pub(crate) fn add_breakdown(&mut self, statistics: &mut Statistics) {
        statistics.timeline = self.take_timeline().map(Box::new);
        statistics.explanation = Some(Box::new(self.explanation()));
    }

    /// Returns the recorded timeline, if there is one.
    fn take_timeline(&mut self) -> Option<Recorded> {
        let up = self.interconnect.network.up.iter();
        let links = up.map(|links| links.links() as u64).sum();
        let timeline = self.observer.attribution.as_mut()?.timeline.take()?;
        Some(timeline.recorded(self.tally.counters.end, links))
    }

    /// Evaluates the records of the run.
    fn explanation(&mut self) -> Explanation {
        let resources = bottleneck::resources(self);
        let limit = bottleneck::limit(self, &resources);
        let attribution = self.observer.attribution.take();
        let attribution =
            attribution.map_or_else(|| Attribution::new(0, 0, false), |attribution| *attribution);
        attribution.explanation(resources, limit)
    }

    /// Records every event on the traced line, or on all lines if they share state.
    pub(crate) fn record_full_trace(&mut self, protocol: &Protocol) {
        (self.observer).record_full_trace(protocol.line_coupling().is_some());
    }

    /// Returns the recorded steps, if a trace is recorded.
    pub(crate) fn sequence(&mut self) -> Option<Sequence> {
        context!(self).sequence()
    }

    /// Closes the measurement window of counts and durations.
    pub(crate) fn close_window(&mut self) {
        let end = self.tally.counters.end.max(self.local.now);
        if let Some(threads) = &mut self.frontend.threads {
            threads.scenario.close_window(end);
        }
    }

    /// Closes the scenario's measurement and verifies its result.
    pub(crate) fn verify_scenario(&mut self) {
        self.close_window();
        let Some(mut threads) = self.frontend.threads.take() else {
            return;
        };
        if let Some(traffic) = self.interconnect.window_traffic(&self.tables.groups) {
            threads.scenario.tally.traffic = traffic;
        }
        let verdict = match self.contents.oracle.level {
            Level::Off => Ok(()),
            _ => threads.scenario.run.verify(&*self),
        };
        self.frontend.threads = Some(threads);
        self.judge_scenario(verdict);
    }

    /// Fails the run if the scenario's result is wrong.
    pub(crate) fn judge_scenario(&mut self, verdict: Result<(), String>) {
        if let (Some(threads), Err(error)) = (&self.frontend.threads, verdict) {
            let text = format!("{}: {error}", threads.scenario.name);
            context!(self).fail(FailureKind::Result, 0, text);
        }
    }

    /// Returns the tables that the scenario produced for external judges; empty without a scenario.
    pub fn tables(&self) -> Vec<Table> {
        let threads = self.frontend.threads.as_ref();
        threads.map_or(Vec::new(), |threads| threads.scenario.run.tables())
    }

    /// Returns the counts and durations of the scenario after the run; empty without a scenario.
    pub fn tally(&self) -> Tally {
        let threads = self.frontend.threads.as_ref();
        threads.map_or_else(Tally::default, |threads| threads.scenario.tally.clone())
    }
}

impl Contents for Simulation {
    fn word(&self, line: Line, word: u16) -> u64 {
        let data = &self.contents.data;
        let mut cached_copies = self.caches.readable_copies(line);
        let memory = self.memory.copy(line);
        let copy = match self.contents.oracle.may_be_stale() {
            // A cache with read permission has the value written last.
            false => cached_copies.next().unwrap_or(memory),
            true => cached_copies.fold(memory, |newest, copy| {
                match data.version(copy) > data.version(newest) {
                    true => copy,
                    false => newest,
                }
            }),
        };
        data.word(line, copy, word)
    }

    fn initial(&self, line: Line, word: u16) -> u64 {
        Data::untouched_word(line, word)
    }
}
