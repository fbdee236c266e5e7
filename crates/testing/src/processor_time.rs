//! Processor time of benchmarks.

use std::time::Instant;

/// Processor time of this thread in seconds; wall-clock time if the system does not report it.
pub fn processor_seconds(begin: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|n| n.parse::<f64>().ok());
    nanoseconds.map_or(begin.elapsed().as_secs_f64(), |n| n / 1e9)
}
