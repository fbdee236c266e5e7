//! Former names of quantities, which are accepted until version 0.3.0.

use super::LOWER;
use std::borrow::Cow;

/// Former prefix of quantities of the lower of two levels.
pub(super) const FORMER_LOWER: &str = "below.";

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
pub(super) fn former_name(name: &str) -> Option<String> {
    let mut names = FORMER_NAMES.iter();
    names.find_map(|(former, current)| replace_suffix(name, current, former))
}

/// Returns a warning that names the current name of a quantity.
pub(super) fn former_name_warning(former: &str, current: &str) -> String {
    format!("`{former}` is now `{current}`; the former name is accepted until version 0.3.0")
}

/// Replaces the last parts of a dotted name, if they are `old`.
fn replace_suffix(name: &str, old: &str, new: &str) -> Option<String> {
    let prefix = name.strip_suffix(old)?;
    (prefix.is_empty() || prefix.ends_with('.')).then(|| format!("{prefix}{new}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{text, Platform, Row, TABLE};

    /// Valid file with current names.
    const TEXT: &str = include_str!("../../../../platforms/enzian-dc-bram.toml");

    #[test]
    fn every_former_name_leads_to_a_quantity() {
        for (former, current) in FORMER_NAMES {
            let rows: Vec<&Row> = TABLE.iter().filter(|row| row.name == *current).collect();
            assert_eq!(rows.len(), 1, "{current}");
            assert!(TABLE.iter().all(|row| row.name != *former), "{former}");
            let row = Row::named(former).expect("the former name is known");
            assert_eq!(row.name, *current);
            for prefix in [
                "",
                "lower.",
                "host.",
                "agents.device.",
                "host.agents.device.",
            ] {
                let [former, current] = [former, current].map(|name| format!("{prefix}{name}"));
                assert_eq!(current_name(&former), current);
                assert_eq!(current_name(&current), current);
                assert_eq!(former_name(&current), Some(former));
            }
        }
        let mut former_names: Vec<&str> = FORMER_NAMES.iter().map(|(former, _)| *former).collect();
        former_names.sort_unstable();
        former_names.dedup();
        assert_eq!(former_names.len(), FORMER_NAMES.len());
        for name in ["below.cores.used", "below.cores.count", "lower.cores.used"] {
            assert_eq!(current_name(name), "lower.cores.count");
        }
        for name in ["uplink.links", "link.latency", "impatience", "remotes", ""] {
            assert_eq!(current_name(name), name);
            assert_eq!(former_name(name), None);
        }
    }

    #[test]
    fn quantities_are_set_by_their_former_names() {
        let mut platform = Platform::shipped("n1sdp-u280").unwrap();
        for (former, value, current) in [
            ("link.links", "2", "link.count"),
            (
                "agents.device.translation.used",
                "1",
                "agents.device.translation.enabled",
            ),
            ("agents.device.link.links", "3", "agents.device.link.count"),
        ] {
            platform.set(former, value).unwrap();
            let quantities = platform.all_quantities().into_iter();
            let mut values = quantities.filter(|(name, ..)| name == current);
            let (_, unit, quantity) = values.next().expect("the quantity exists");
            assert_eq!(cohkit_units::show(quantity.value, unit), value);
            let warning = former_name_warning(former, current);
            assert!(platform.implausible.contains(&warning), "{warning}");
        }
        let error = platform.set("link.links", "0").unwrap_err();
        assert_eq!(error, "link.count must be 1 to 64, not 0");
    }

    #[test]
    fn platform_files_may_have_former_names() {
        let links = "count = { value = 2, origin = \"CCKit, section 4: two links of 12 lanes\" }";
        assert_eq!(TEXT.matches(links).count(), 1);
        let former_links = links.replacen("count", "links", 1);
        let platform = text::read(&TEXT.replace(links, &former_links)).unwrap();
        assert_eq!(platform.link.count.value, 2);
        let warning = former_name_warning("link.links", "link.count");
        assert_eq!(platform.implausible, [warning]);
    }

    #[test]
    fn a_file_with_both_names_of_a_quantity_is_rejected() {
        let links = "count = { value = 2, origin = \"CCKit, section 4: two links of 12 lanes\" }";
        let former_links = links.replacen("count", "links", 1);
        let both = TEXT.replace(links, &format!("{links}\n{former_links}"));
        let errors = text::read(&both).unwrap_err();
        let messages: Vec<&str> = errors.iter().map(|error| &error.message[..]).collect();
        assert_eq!(
            messages,
            ["`link.links` is the former name of `link.count`, which is given, too: remove one of them"]
        );
    }

    #[test]
    fn lower_levels_may_have_their_former_name() {
        let text = include_str!("../../../../platforms/clusters-4x4.toml");
        let former = text.replace("[lower", "[below");
        let platform = text::read(&former).unwrap();
        let shipped = Platform::shipped("clusters-4x4").unwrap();
        assert_eq!(platform.all_quantities(), shipped.all_quantities());
        assert_eq!(
            platform.implausible,
            [former_name_warning("below", "lower")]
        );
        let both = format!("{text}\n[below]\nremotes = 4\n");
        let errors = text::read(&both).unwrap_err();
        let messages: Vec<&str> = errors.iter().map(|error| &error.message[..]).collect();
        let expected =
            "`below` is the former name of `lower`, which is given, too: remove one of them";
        assert_eq!(messages, [expected]);
    }
}
