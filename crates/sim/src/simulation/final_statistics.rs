//! Statistics at the end of a run.

use super::*;

impl Simulation {
    /// Returns the statistics of the run.
    pub fn statistics(&self) -> Statistics {
        let sent = self.interconnect.sent_by_kind.iter().copied();
        let messages = self.message_names().zip(sent).collect();
        let mut statistics = self.tally.counters.statistics(messages, &self.totals());
        statistics.traffic = (self.interconnect.hosts.as_ref()).map_or_else(Vec::new, |hosts| {
            let totals = hosts.totals_by_kind.iter().copied();
            self.message_names().zip(totals).collect()
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

    /// Returns the totals of memory and units.
    pub(super) fn totals_without_links(&self) -> Totals {
        Totals {
            line_bytes: self.tables.line_bytes,
            units: match self.home.clocked {
                Some(_) => 0,
                None => self.home.units.len(),
            },
            occupied: self.home.units.iter().map(|unit| unit.occupied).sum(),
            cached: self.lines_cached(),
            buffers: self.cores.buffer_entries(),
            links: 0,
            bytes_up: 0,
            bytes_down: 0,
            busy_up: 0,
            busy_down: 0,
            waited: 0,
            translated: self
                .translations
                .as_ref()
                .map(|translations| translations.counters),
            replayed: None,
            downs: None,
            row_hits: self.memories.iter().map(|memory| memory.row_hits).sum(),
            row_misses: self.memories.iter().map(|memory| memory.row_misses).sum(),
        }
    }

    /// Number of lines in caches now.
    pub fn lines_cached(&self) -> u64 {
        self.caches.ways.lines()
    }

    /// Returns the indices of the rules that the caches and the home have executed.
    pub fn executed(&self) -> (Vec<u32>, Vec<u32>) {
        (self.remote.executed(), self.home.program.executed())
    }
}
