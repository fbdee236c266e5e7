//! Summary of a simulation: its time, latencies, bandwidths, and lines that bounce between caches.

use crate::table::wrap;
use cohkit_sim::bouncing::BouncingLine;
use cohkit_sim::statistics::Statistics;
use std::fmt::Write;

/// Writes the summary of a run, wrapped to `width` columns.
pub(crate) fn write(text: &mut String, statistics: &Statistics, width: usize) {
    let get = |name: &str| statistics.get(name).expect("every run has it");
    let _ = writeln!(
        text,
        "{} for {} accesses, {} % of those that reached a cache hit",
        time(get("time_ns")),
        get("accesses"),
        significant(100.0 * get("hit_ratio")),
    );
    let _ = writeln!(
        text,
        "{}/s requested, {}/s moved over links",
        bytes(get("bandwidth_requested_bytes_per_s")),
        bytes(get("bandwidth_link_bytes_per_s")),
    );
    write_latencies(text, get);
    for line in &statistics.bouncing {
        text.push('\n');
        for line in wrap(&describe_bouncing(line), width) {
            let _ = writeln!(text, "{line}");
        }
    }
}

/// Writes a table of latencies: a row for each kind of access that was performed. `get` returns a quantity of the
/// statistics.
fn write_latencies(text: &mut String, get: impl Fn(&str) -> f64) {
    let _ = writeln!(
        text,
        "\n{:30} {:>10} {:>10} {:>10} {:>10}",
        "latency", "mean", "median", "99 %", "longest"
    );
    // Label, quantity with the number of accesses, and prefix of the quantities with the latency.
    let latencies = [
        ("loads", "loads", "load_latency"),
        ("stores, until the core goes on", "stores", "store_latency"),
        (
            "stores, until visible",
            "stores_visible",
            "store_visible_latency",
        ),
    ];
    for (label, _, latency) in latencies
        .into_iter()
        .filter(|(_, count, _)| get(count) > 0.0)
    {
        let _ = write!(text, "{label:30}");
        for statistic in ["mean", "p50", "p99", "max"] {
            let value = time(get(&format!("{latency}_{statistic}_ns")));
            let _ = write!(text, " {value:>10}");
        }
        text.push('\n');
    }
}

/// Description of a line that bounces between caches, and of false sharing if most transfers have that cause.
fn describe_bouncing(line: &BouncingLine) -> String {
    let false_share = 100.0 * line.other_words as f64 / line.transfers.max(1) as f64;
    let note = match false_share > 50.0 {
        true => format!(
            "; {} % were to another word: false sharing",
            significant(false_share)
        ),
        false => String::new(),
    };
    format!(
        "the line at {:#x} bounces between caches: {} transfers, {} % of the time that accesses waited{note}",
        line.address,
        line.transfers,
        significant(100.0 * line.share),
    )
}

/// Formats a number with three significant digits.
fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_string();
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    let text = format!("{value:.*}", digits.max(0) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// Formats a number with the largest unit that it reaches. `units` are in ascending order.
fn with_unit(value: f64, units: &[(f64, &str)]) -> String {
    let unit = units.iter().rev().find(|(factor, _)| value >= *factor);
    let (factor, unit) = unit.or(units.first()).copied().unwrap_or((1.0, ""));
    format!("{} {unit}", significant(value / factor))
}

/// Formats a time in nanoseconds with a suitable unit.
fn time(ns: f64) -> String {
    with_unit(ns, &[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")])
}

/// Formats a number of bytes with a suitable decimal unit.
fn bytes(count: f64) -> String {
    with_unit(
        count,
        &[
            (1.0, "B"),
            (1e3, "kB"),
            (1e6, "MB"),
            (1e9, "GB"),
            (1e12, "TB"),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::{bytes, significant, time};

    #[test]
    fn numbers_have_three_significant_digits() {
        let texts = [0.0, 0.016_295, 1.0, 12.34, 999.9, 123_456.0].map(significant);
        assert_eq!(texts, ["0", "0.0163", "1", "12.3", "1000", "123456"]);
        assert_eq!(
            [0.5, 1500.0, 2.5e9].map(time),
            ["0.5 ns", "1.5 us", "2.5 s"]
        );
        assert_eq!(bytes(31.5e9), "31.5 GB");
    }
}
