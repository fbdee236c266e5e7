//! Former names of quantities, which are accepted until version 0.3.0.

use std::borrow::Cow;

/// Prefix of quantities of the lower of two levels.
pub const LOWER: &str = "lower.";

/// Former prefix of these quantities.
pub const FORMER_LOWER: &str = "below.";

/// Former name and name of each renamed quantity, without the prefix of a kind, level or space.
pub const FORMER_NAMES: &[(&str, &str)] = &[
    ("bus.interrupt", "bus.interrupt_latency"),
    ("bus.memory", "bus.memory_latency"),
    ("cache.fill", "cache.fill_latency"),
    ("cache.hashed", "cache.index_hash"),
    ("cache.hit", "cache.hit_latency"),
    ("cache.request", "cache.request_latency"),
    ("cores.chunked", "cores.partitioned"),
    ("cores.issue", "cores.issue_interval"),
    ("cores.l1", "cores.l1_size"),
    ("cores.l1_hit", "cores.l1_hit_latency"),
    ("cores.outstanding", "cores.max_outstanding"),
    ("cores.posted", "cores.max_posted_stores"),
    ("cores.prefetch", "cores.prefetch_distance"),
    ("cores.used", "cores.count"),
    ("cores.work", "cores.compute_time"),
    ("device.issue", "device.issue_interval"),
    ("dram.activate", "dram.t_rcd"),
    ("dram.column", "dram.t_cl"),
    ("dram.controller", "dram.controller_latency"),
    ("dram.open_for", "dram.row_idle_timeout"),
    ("dram.precharge", "dram.t_rp"),
    ("home.local_interval", "home.local_issue_interval"),
    ("home.local_path", "home.device_round_trip"),
    ("home.memory_path", "home.memory_round_trip"),
    ("home.pending", "home.queue_entries"),
    ("home.reads", "home.max_reads"),
    ("home.resume", "home.completion_latency"),
    ("home.resume_occupancy", "home.completion_occupancy"),
    ("home.waiting", "home.stall_entries"),
    ("home.writes", "home.max_writes"),
    ("hosts.flit", "hosts.flit_bytes"),
    ("hosts.flit_time", "hosts.flit_interval"),
    ("hosts.hop", "hosts.hop_latency"),
    ("hosts.late", "hosts.extra_latency"),
    ("hosts.late_from", "hosts.extra_latency_from"),
    ("hosts.late_to", "hosts.extra_latency_to"),
    ("link.down", "link.retrain_time"),
    ("link.errors", "link.bit_errors_per_1e15"),
    ("link.faults", "link.mean_uptime"),
    ("link.join", "link.merge_latency"),
    ("link.join_back", "link.merge_latency_back"),
    ("link.lanes_left", "link.degraded_lanes"),
    ("link.links", "link.count"),
    ("patience", "watchdog_timeout"),
    ("translation.absent", "translation.absent_one_in"),
    ("translation.entries", "translation.atc_entries"),
    ("translation.hit", "translation.atc_hit_latency"),
    ("translation.host_entries", "translation.iommu_tlb_entries"),
    ("translation.lookup", "translation.iommu_tlb_latency"),
    ("translation.outstanding", "translation.max_outstanding"),
    ("translation.page", "translation.page_size"),
    ("translation.read_only", "translation.read_only_one_in"),
    ("translation.unmap", "translation.invalidation_interval"),
    ("translation.used", "translation.enabled"),
    ("translation.way", "translation.ats_latency"),
];

/// Returns the name of a quantity that is given by its name or its former name, with or without a prefix.
pub fn current_name(name: &str) -> Cow<'_, str> {
    let mut names = FORMER_NAMES.iter();
    let current = names.find_map(|(former, current)| replace_suffix(name, former, current));
    let current = current.map_or(Cow::Borrowed(name), Cow::Owned);
    match current.strip_prefix(FORMER_LOWER) {
        Some(inner_name) => Cow::Owned(format!("{LOWER}{inner_name}")),
        None => current,
    }
}

/// Returns the former name of a quantity with the prefix of its name, if it was renamed.
pub fn former_name(name: &str) -> Option<String> {
    let mut names = FORMER_NAMES.iter();
    names.find_map(|(former, current)| replace_suffix(name, current, former))
}

/// Returns a warning that names the current name of a quantity.
pub fn former_name_warning(former: &str, current: &str) -> String {
    format!("`{former}` is now `{current}`; the former name is accepted until version 0.3.0")
}

/// Replaces the last parts of a dotted name, if they are `old`.
fn replace_suffix(name: &str, old: &str, new: &str) -> Option<String> {
    let prefix = name.strip_suffix(old)?;
    (prefix.is_empty() || prefix.ends_with('.')).then(|| format!("{prefix}{new}"))
}
