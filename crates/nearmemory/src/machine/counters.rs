//! Counters of a machine, with their names.

use super::host_programs::HostSystem;
use super::{Machine, Runner};
use crate::device::State;
use crate::events::Wire;

impl Machine {
    /// Returns the counters with their names: those of the machine, and of each near-memory core that has had a
    /// program. With several hosts, each has counters of its own, whose names contain its number.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let mut all_counters = vec![("time in picoseconds".to_string(), self.now)];
        let hosts = || self.hosts.iter().enumerate();
        for (number, host_system) in hosts() {
            let name = self.host_label("host", number);
            all_counters.extend(with_prefix(&name, host_counters(host_system)));
        }
        for (number, host_system) in hosts() {
            let name = self.host_label("link", number);
            let (uplink, downlink) = (&host_system.host.uplink, &self.device.downlinks[number]);
            all_counters.extend(with_prefix(&name, link_counters(uplink, downlink)));
        }
        let far = &self.device.far;
        let (row_hits, row_misses) = far.row_hits_and_misses();
        let far_counters = [
            ("lines read", far.reads),
            ("lines written", far.writes),
            ("rows found open", row_hits),
            ("rows opened", row_misses),
        ];
        all_counters.extend(with_prefix("far memory", far_counters));
        if self.platform.prefetch_streams.value > 0 {
            for (number, host_system) in hosts() {
                let name = self.host_label("host", number);
                all_counters.extend(with_prefix(&name, prefetcher_counters(host_system)));
            }
        }
        if let Some(cache) = far.cache_counters() {
            let cache_counters = [
                ("cache hits", cache.hits),
                ("cache misses", cache.misses),
                ("cache write-backs", cache.write_backs),
            ];
            all_counters.extend(with_prefix("far memory", cache_counters));
        }
        self.add_core_counters(&mut all_counters);
        all_counters
    }

    /// Returns the name of a host or of its link, with a number if there are several.
    fn host_label(&self, name: &str, number: usize) -> String {
        match self.hosts.len() {
            1 => name.to_string(),
            _ => format!("{name} {number}"),
        }
    }

    /// Adds the counters of each near-memory core that has had a program.
    fn add_core_counters(&self, all_counters: &mut Vec<(String, u64)>) {
        for (number, mcc) in self.device.mccs.iter().enumerate() {
            let (counters, hart) = (&mcc.counters, &self.mccs[number].hart);
            let core_counters = [
                ("instructions", hart.csrs.instret),
                ("scratchpad accesses", counters.scratchpad),
                ("register accesses", counters.registers),
                ("lines read by the host", counters.host_reads),
                ("lines written by the host", counters.host_writes),
                ("requests of the host stalled", counters.held),
                ("lines fetched", counters.fetched),
                ("lines stored", counters.stored),
                ("words sent", counters.words),
            ];
            if mcc.state != State::Idle {
                all_counters.extend(with_prefix(&format!("mcc {number}"), core_counters));
            }
        }
    }
}

/// Puts the name of a part before the names of its counters.
fn with_prefix<const N: usize>(part: &str, counters: [(&str, u64); N]) -> [(String, u64); N] {
    counters.map(|(name, value)| (format!("{part}: {name}"), value))
}

/// Returns the counters of a host.
fn host_counters(host_system: &HostSystem) -> [(&'static str, u64); 15] {
    let host = &host_system.host.counters;
    let sum = |count: fn(&Runner) -> u64| host_system.cores.iter().map(count).sum();
    [
        ("instructions", sum(|runner| runner.hart.csrs.instret)),
        ("pages found", sum(|runner| runner.pages.hits())),
        ("pages missed", sum(|runner| runner.pages.misses())),
        ("own cache hits", host.l1_hits),
        ("last cache hits", host.llc_hits),
        ("lines of its memory", host.main_misses),
        ("lines of far memory and scratchpads", host.far_misses),
        ("lines prefetched", host.prefetches),
        ("prefetches dropped", host.dropped),
        ("lines that copies read", host.copied_reads),
        ("lines that copies wrote", host.copied_writes),
        ("lines cleaned", host.cleaned),
        ("lines evicted at random", host.evicted),
        ("uncached accesses", host.uncached),
        ("register accesses", host.registers),
    ]
}

/// Returns the counters of a host's hardware prefetchers.
fn prefetcher_counters(host_system: &HostSystem) -> [(&'static str, u64); 4] {
    let host = &host_system.host.counters;
    [
        ("lines prefetched by hardware", host.hardware_prefetches),
        ("lines prefetched by hardware and used", host.hardware_used),
        ("hardware prefetches dropped", host.hardware_dropped),
        (
            "hardware prefetches dropped on their way",
            host.hardware_discarded,
        ),
    ]
}

/// Returns the counters of the link of a host.
fn link_counters(uplink: &Wire, downlink: &Wire) -> [(&'static str, u64); 4] {
    [
        ("messages to the device", uplink.messages),
        ("bytes to the device", uplink.bytes),
        ("messages to the host", downlink.messages),
        ("bytes to the host", downlink.bytes),
    ]
}
