//! Statistics: counters of a run, and the named values that a report derives from them. Each statistic is defined
//! in words, here and nowhere else.

use crate::bouncing::{Bouncing, BouncingLine};
use crate::components::hosts::TrafficTotals;
use cohkit_timeline::Recorded;
use serde::Serialize;

use crate::agents::translation::Translated;
use crate::attribution::Explanation;
use crate::kernel::{Time, SECOND};
use crate::rate_sampler::{Quarter, RateSampler};

/// Name and meaning of a statistic.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Definition {
    /// Name, with the unit.
    pub name: &'static str,
    /// Definition: a phrase.
    pub text: &'static str,
}

/// Distribution of durations, with a relative error of at most about 1.6 %.
#[derive(Clone, Default)]
pub struct Histogram {
    /// Number of durations in each bucket.
    counts: Vec<u64>,
    /// Number of durations.
    count: u64,
    /// Sum of the durations, in picoseconds.
    total: u128,
    /// Longest duration, in picoseconds.
    max: Time,
}

/// Logarithm of the number of buckets per power of two: 64, for a relative error of 1/64 (1.6 %). Durations below twice
/// that number have a bucket each.
const SUB_BUCKET_BITS: u32 = 6;

impl Histogram {
    /// Adds one duration, in picoseconds.
    #[inline]
    pub fn record(&mut self, duration: Time) {
        let bucket = bucket_of(duration);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.total += u128::from(duration);
        self.max = self.max.max(duration);
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the durations, in picoseconds.
    pub fn total(&self) -> u128 {
        self.total
    }

    /// Mean duration, in picoseconds; 0 if there are none.
    pub fn mean(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => self.total as f64 / count as f64,
        }
    }

    /// Longest duration, in picoseconds; 0 if there are none.
    pub fn max(&self) -> Time {
        self.max
    }

    /// Smallest duration that at least the fraction `share` (0 to 1) of all durations do not exceed, in picoseconds. It
    /// is rounded up to the end of its bucket.
    pub fn percentile(&self, share: f64) -> Time {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut cumulative = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            cumulative += count;
            if cumulative >= rank {
                return bucket_end(bucket).min(self.max);
            }
        }
        self.max
    }

    /// Cumulative distribution: ends of non-empty buckets, in picoseconds, with the number of durations that do not
    /// exceed them.
    pub fn distribution(&self) -> Vec<(Time, u64)> {
        let mut cumulative = 0;
        let counts = self
            .counts
            .iter()
            .enumerate()
            .filter(|(_, &count)| count > 0);
        counts
            .map(|(bucket, &count)| {
                cumulative += count;
                (bucket_end(bucket).min(self.max), cumulative)
            })
            .collect()
    }
}

/// Returns the index of the bucket of a duration.
fn bucket_of(duration: Time) -> usize {
    let shift = (64 - duration.leading_zeros()).saturating_sub(SUB_BUCKET_BITS + 1);
    ((shift as usize) << SUB_BUCKET_BITS) + (duration >> shift) as usize
}

/// Longest duration of a bucket, in picoseconds.
fn bucket_end(bucket: usize) -> Time {
    let shift = (bucket >> SUB_BUCKET_BITS).saturating_sub(1) as u32;
    let mantissa = (bucket - ((shift as usize) << SUB_BUCKET_BITS)) as u128;
    (((mantissa + 1) << shift) - 1) as Time
}

/// Reason for a stall.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stall {
    /// An access found its set full of lines that cannot be evicted yet.
    NoEvictableWay,
    /// An agent's controller stalled a message, which stays in its channel.
    Controller,
    /// An input of a unit waited for the unit's memory operation or coherence transaction.
    UnitSlot,
    /// A request channel stopped because the stall entries of a unit were all in use.
    StallEntriesFull,
    /// A message found no room at its receiver for one more of its circuit.
    NoCredit,
    /// A store found its core's write buffer full.
    WriteBuffer,
    /// A row found too little room in an input queue for the messages it sends.
    InputQueue,
}

/// Counters of a run. Times are in picoseconds.
#[derive(Default)]
pub struct Counters {
    /// Latency of all accesses of cores, from issue until the core continues.
    pub latency: Histogram,
    /// Latency of accesses that return a value: loads and atomic accesses.
    pub loads: Histogram,
    /// Latency of stores, from issue until the core continues.
    pub stores: Histogram,
    /// Latency of stores, from issue until they are visible to all agents.
    pub visible: Histogram,
    /// Bytes of the words that accesses requested.
    pub bytes_requested: u64,
    /// Lines that move back and forth between caches.
    pub bouncing: Bouncing,
    /// Accesses performed, without prefetches.
    pub performed: u64,
    /// Accesses performed on arrival at the cache.
    pub hits: u64,
    /// Loads performed in the L1 of their core.
    pub l1_hits: u64,
    /// Loads that missed in the L1 of their core.
    pub l1_misses: u64,
    /// Loads that found their word in the write buffer of their core.
    pub forwarded: u64,
    /// Stores that joined others in a write buffer.
    pub coalesced: u64,
    /// Time that stores waited for a write buffer, summed.
    pub buffer_waited: Time,
    /// Time that lines were in write buffers, summed.
    pub buffered: Time,
    /// Time that threads waited for their outstanding stores, summed.
    pub posted_waited: Time,
    /// Time that caches had writes waiting for registers or for room in an input queue, summed.
    pub registers_waited: Time,
    /// Accesses for which the protocol has no row.
    pub skipped: u64,
    /// Lines acquired by prefetches.
    pub prefetched: u64,
    /// Prefetches of threads that were dropped, since too many of the thread were outstanding.
    pub prefetches_dropped: u64,
    /// Number of stalls, by [`Stall`].
    pub stalls: [u64; 7],
    /// Number of local operations acknowledged, and of those refused.
    pub locals: [u64; 2],
    /// Time of the last access performed, as its core saw it.
    pub end: Time,
    /// Events processed.
    pub events: u64,
    /// Timestamps of performed accesses.
    pub throughput_samples: RateSampler,
}

impl Counters {
    /// Counts a stall.
    pub fn stall(&mut self, stall: Stall) {
        self.stalls[stall as usize] += 1;
    }
}

/// A count or a measured value.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Number of things or occasions.
    Count(u64),
    /// A time, a rate, or a share of 1, in the unit that the statistic's name states.
    Measure(f64),
}

impl Value {
    /// Returns the number. Counts above 2^53 are rounded.
    pub fn number(self) -> f64 {
        match self {
            Value::Count(count) => count as f64,
            Value::Measure(measure) => measure,
        }
    }
}

/// Result of a run: all statistics with their definitions.
#[derive(Clone, Debug, Serialize)]
pub struct Statistics {
    /// Single values, in a fixed order.
    pub values: Vec<(Definition, Value)>,
    /// Messages sent, by name in the order of the protocol file.
    pub messages: Vec<(String, u64)>,
    /// Messages of each type between hosts and inside them, by name in the same order; empty in machines without hosts.
    pub traffic: Vec<(String, TrafficTotals)>,
    /// Duration of each quarter of the accesses, and lines in caches at its end; `None` with fewer than four accesses.
    pub quarters: Option<[Quarter; 4]>,
    /// Lines that move back and forth between caches, longest waiting time first.
    pub bouncing: Vec<BouncingLine>,
    /// Two levels: statistics of the upper level. All other fields are those of the lower level, which has the cores.
    pub upper_level: Option<Box<Statistics>>,
    /// Two spaces: statistics of the host's memory. All other fields are those of the device's lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Box<Statistics>>,
    /// Latency breakdown, if requested.
    #[serde(skip)]
    pub explanation: Option<Box<Explanation>>,
    /// Timeline, if requested.
    #[serde(skip)]
    pub timeline: Option<Box<Recorded>>,
}

impl Statistics {
    /// Returns the value of a statistic as a number, or `None` if no statistic has this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        let entry = self
            .values
            .iter()
            .find(|(definition, _)| definition.name == name);
        entry.map(|&(_, value)| value.number())
    }

    /// Returns the number of messages sent of a type, or `None` if the protocol has no such message.
    pub fn sent(&self, message: &str) -> Option<u64> {
        let entry = self.messages.iter().find(|(name, _)| name == message);
        entry.map(|&(_, count)| count)
    }
}

/// Totals of links, memory and units.
pub(crate) struct Totals {
    /// Blocks, packets or flits retransmitted by framed links; `None` without such links.
    pub replayed: Option<u64>,
    /// Number of times that framed links went down; `None` without links that do.
    pub downs: Option<u64>,
    /// Counters of address translation; `None` without it.
    pub translated: Option<Translated>,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Number of units of the homes; 0 if the home is RTL.
    pub units: usize,
    /// Time that units were occupied, summed over units, in picoseconds.
    pub occupied: Time,
    /// Lines in caches at the end.
    pub cached: u64,
    /// Lines that the write buffers of all cores hold.
    pub buffers: u64,
    /// Number of links in each direction, of all caches or hosts.
    pub links: u64,
    /// Bytes sent by caches, headers included.
    pub bytes_up: u64,
    /// Bytes sent to caches, or by homes in machines with hosts, headers included.
    pub bytes_down: u64,
    /// Time for which links from caches were sending, summed over links, in picoseconds.
    pub busy_up: Time,
    /// Time for which links to caches were sending, summed over links, in picoseconds.
    pub busy_down: Time,
    /// Time that messages waited for links, summed over messages, in picoseconds.
    pub waited: Time,
    /// Memory operations that found their row open; 0 for BRAM.
    pub row_hits: u64,
    /// Memory operations that opened a row; 0 for BRAM.
    pub row_misses: u64,
}

impl Totals {
    /// Adds the totals of another machine, which has links, homes and memories of its own. Line size and buffers are
    /// common.
    pub(crate) fn merge(self, other: Totals) -> Totals {
        let sum = |[left, right]: [Option<u64>; 2]| match (left, right) {
            (Some(left), Some(right)) => Some(left + right),
            (left, right) => left.or(right),
        };
        Totals {
            line_bytes: self.line_bytes,
            units: self.units + other.units,
            occupied: self.occupied + other.occupied,
            cached: self.cached + other.cached,
            buffers: self.buffers,
            links: self.links + other.links,
            bytes_up: self.bytes_up + other.bytes_up,
            bytes_down: self.bytes_down + other.bytes_down,
            busy_up: self.busy_up + other.busy_up,
            busy_down: self.busy_down + other.busy_down,
            waited: self.waited + other.waited,
            replayed: sum([self.replayed, other.replayed]),
            downs: sum([self.downs, other.downs]),
            translated: self.translated.or(other.translated),
            row_hits: self.row_hits + other.row_hits,
            row_misses: self.row_misses + other.row_misses,
        }
    }
}

impl Counters {
    /// Returns the statistics of a finished run. `messages` has the name and the number sent of each message kind. The
    /// caller adds the values that [`Totals`] does not contain: traffic of hosts, other levels and spaces, breakdown
    /// and timeline.
    pub(crate) fn statistics(&self, messages: Vec<(String, u64)>, totals: &Totals) -> Statistics {
        let mut values = self.access_statistics(totals);
        values.extend(self.buffer_statistics(totals.buffers));
        if self.prefetches_dropped > 0 {
            values.extend(with_definitions([(
                "prefetches_dropped",
                "prefetches of threads that were dropped, since too many of the thread were outstanding",
                Value::Count(self.prefetches_dropped),
            )]));
        }
        values.extend(self.latency_statistics());
        values.extend(self.link_statistics(totals));
        let mut add_value =
            |name, text, value: Value| values.push((Definition { name, text }, value));
        if let Some(replayed) = totals.replayed {
            add_value(
                "link_units_replayed",
                "blocks, packets or flits that framed links retransmitted",
                Value::Count(replayed),
            );
        }
        if let Some(downs) = totals.downs {
            add_value(
                "link_downs",
                "times a framed link went down",
                Value::Count(downs),
            );
        }
        if let Some(translated) = totals.translated {
            let rows = [
                (
                    "translation_hits",
                    "accesses that hit in the device's address translation cache",
                    translated.hits,
                ),
                (
                    "translation_misses",
                    "accesses that waited for a translation",
                    translated.misses,
                ),
                (
                    "translation_table_reads",
                    "tables that the host's unit read from memory",
                    translated.tables_read,
                ),
                (
                    "translation_invalidations",
                    "pages that the host revoked",
                    translated.invalidations,
                ),
                (
                    "translation_faults",
                    "accesses without permission in the page table",
                    translated.faults,
                ),
            ];
            for (name, meaning, count) in rows {
                add_value(name, meaning, Value::Count(count));
            }
        }
        // Units of a home in hardware are not observed.
        if totals.units > 0 {
            add_value("unit_occupancy", "share of the simulated time that a unit of the home was handling an event, mean over units", ratio(totals.occupied as f64, totals.units as f64 * self.end as f64));
        }
        values.extend(self.home_statistics(totals));
        let quarters = self.throughput_samples.quarters(0);
        Statistics {
            values,
            messages,
            traffic: Vec::new(),
            quarters,
            bouncing: self.bouncing.lines(totals.line_bytes),
            upper_level: None,
            host: None,
            explanation: None,
            timeline: None,
        }
    }

    /// Statistics of accesses and hits.
    fn access_statistics(&self, totals: &Totals) -> Vec<(Definition, Value)> {
        let bytes = self.performed as f64 * f64::from(totals.line_bytes);
        let served_before_cache = self.l1_hits + self.forwarded;
        with_definitions([
        (
            "time_ns",
            "simulated time from the start until the last access completes at its core",
            nanoseconds(self.end),
        ),
        (
            "accesses",
            "accesses performed, without prefetches",
            Value::Count(self.performed),
        ),
        (
            "accesses_skipped",
            "accesses without a row of the protocol in a stable state; not performed",
            Value::Count(self.skipped),
        ),
        (
            "bandwidth_bytes_per_s",
            "accesses performed times the bytes of a line, divided by the simulated time",
            ratio(bytes, self.end as f64 / SECOND as f64),
        ),
        (
            "bandwidth_requested_bytes_per_s",
            "bytes of the words accessed, divided by the simulated time",
            ratio(self.bytes_requested as f64, self.end as f64 / SECOND as f64),
        ),
        (
            "bandwidth_link_bytes_per_s",
            "bytes sent over the links of caches in both directions, headers and payloads, divided by the simulated time",
            ratio(
                (totals.bytes_up + totals.bytes_down) as f64,
                self.end as f64 / SECOND as f64,
            ),
        ),
        (
            "hits",
            "accesses that hit in the cache: performed on arrival",
            Value::Count(self.hits),
        ),
        (
            "hit_ratio",
            "share of the accesses performed in the cache that were hits",
            ratio(self.hits as f64, (self.performed - served_before_cache) as f64),
        ),
        (
            "lines_cached",
            "lines in caches at the end",
            Value::Count(totals.cached),
        ),
        (
            "l1_hits",
            "loads performed in the L1 of their core; 0 without L1",
            Value::Count(self.l1_hits),
        ),
        (
            "l1_hit_ratio",
            "share of the loads that reached the L1 of their core that were performed there",
            ratio(self.l1_hits as f64, (self.l1_hits + self.l1_misses) as f64),
        ),
        (
            "store_to_load_forwards",
            "loads served by the write buffer of their core",
            Value::Count(self.forwarded),
        ),
        (
            "stores_coalesced",
            "stores merged with others to the same line in the write buffer of their core",
            Value::Count(self.coalesced),
        ),
        ])
    }

    /// Statistics of write buffers, posted stores, and waits for registers.
    fn buffer_statistics(&self, buffers: u64) -> Vec<(Definition, Value)> {
        with_definitions([
        (
            "write_buffer_occupancy",
            "share of the simulated time that a line of a write buffer was in use, mean over lines and cores in use",
            ratio(self.buffered as f64, buffers as f64 * self.end as f64),
        ),
        (
            "write_buffer_wait_ns",
            "time that stores waited for room in the write buffer of their core, summed over stores",
            nanoseconds(self.buffer_waited),
        ),
        (
            "posted_wait_ns",
            "time that threads waited for their outstanding posted stores, summed over threads; 0 without posted stores",
            nanoseconds(self.posted_waited),
        ),
        (
            "register_wait_ns",
            "time that caches stalled writes for lack of room in a table or an input queue, summed over caches",
            nanoseconds(self.registers_waited),
        ),
        (
            "stalls_write_buffer",
            "times a store found the write buffer of its core full",
            Value::Count(self.stalls[Stall::WriteBuffer as usize]),
        ),
        (
            "prefetches",
            "lines fetched by prefetches",
            Value::Count(self.prefetched),
        ),
        ])
    }

    /// Statistics of latency: loads; stores until their core continues; stores until they are visible.
    fn latency_statistics(&self) -> Vec<(Definition, Value)> {
        let mean = |histogram: &Histogram| Value::Measure(histogram.mean() / 1000.0);
        let percentile = |histogram: &Histogram, share| nanoseconds(histogram.percentile(share));
        let longest = |histogram: &Histogram| nanoseconds(histogram.max());
        let (loads, stores, visible) = (&self.loads, &self.stores, &self.visible);
        let count = |histogram: &Histogram| Value::Count(histogram.count());
        with_definitions([
        ("loads", "loads and atomic accesses performed", count(loads)),
        ("stores", "stores performed", count(stores)),
        ("stores_visible", "stores visible to all agents: all stores unless one is lost", count(visible)),
        ("load_latency_mean_ns", "mean time from issue of a load, or of an atomic access, at its core to its value there; 0 without loads; without prefetches", mean(loads)),
        ("load_latency_p50_ns", "median latency of a load; relative error at most 1.6 %", percentile(loads, 0.5)),
        ("load_latency_p99_ns", "99th percentile of the latency of a load; relative error at most 1.6 %", percentile(loads, 0.99)),
        ("load_latency_max_ns", "the longest latency of a load", longest(loads)),
        ("store_latency_mean_ns", "mean time from issue of a store until its core goes on: when the store is in the write buffer or posted, or else when it is performed; 0 without stores", mean(stores)),
        ("store_latency_p50_ns", "median time from issue of a store until its core goes on; relative error at most 1.6 %", percentile(stores, 0.5)),
        ("store_latency_p99_ns", "99th percentile of the time from issue of a store until its core goes on; relative error at most 1.6 %", percentile(stores, 0.99)),
        ("store_latency_max_ns", "the longest time until the core of a store goes on", longest(stores)),
        ("store_visible_latency_mean_ns", "mean time from issue of a store until all agents see it: when it is performed in a cache that may write, or at the home; 0 without stores", mean(visible)),
        ("store_visible_latency_p50_ns", "median time from issue of a store until it is visible; relative error at most 1.6 %", percentile(visible, 0.5)),
        ("store_visible_latency_p99_ns", "99th percentile of the time from issue of a store until it is visible; relative error at most 1.6 %", percentile(visible, 0.99)),
        ("store_visible_latency_max_ns", "the longest time until a store is visible", longest(visible)),
        ("latency_mean_ns", "mean time from issue of an access of any kind until its core goes on; without prefetches", mean(&self.latency)),
        ("latency_max_ns", "the longest time from issue of an access of any kind until its core goes on", longest(&self.latency)),
        ])
    }

    /// Statistics of links.
    fn link_statistics(&self, totals: &Totals) -> Vec<(Definition, Value)> {
        let links = (totals.links * self.end) as f64;
        with_definitions([
            (
                "link_bytes_to_home",
                "bytes sent by caches, headers and payloads",
                Value::Count(totals.bytes_up),
            ),
            (
                "link_bytes_from_home",
                "bytes sent by the home, headers and payloads",
                Value::Count(totals.bytes_down),
            ),
            (
                "link_occupancy_to_home",
                "share of the simulated time that the caches' links were sending",
                ratio(totals.busy_up as f64, links),
            ),
            (
                "link_occupancy_from_home",
                "share of the simulated time that the home's links were sending",
                ratio(totals.busy_down as f64, links),
            ),
            (
                "link_wait_ns",
                "time that messages waited for a link, summed over messages",
                nanoseconds(totals.waited),
            ),
        ])
    }

    /// Statistics of memory and home, and of stalls there.
    fn home_statistics(&self, totals: &Totals) -> Vec<(Definition, Value)> {
        with_definitions([
        (
            "memory_row_hits",
            "memory operations that found their row open; 0 without rows",
            Value::Count(totals.row_hits),
        ),
        (
            "memory_row_misses",
            "memory operations that opened a row; 0 without rows",
            Value::Count(totals.row_misses),
        ),
        (
            "stalls_no_evictable_way",
            "times an access found no evictable way in its set",
            Value::Count(self.stalls[Stall::NoEvictableWay as usize]),
        ),
        (
            "stalls_controller",
            "times a controller stalled a message",
            Value::Count(self.stalls[Stall::Controller as usize]),
        ),
        ("stalls_unit_slot", "times an input waited because its unit's memory read, memory write or coherence transaction was in use", Value::Count(self.stalls[Stall::UnitSlot as usize])),
        (
            "stalls_stall_entries_full",
            "times a request channel stopped because the waiting set of a unit was full",
            Value::Count(self.stalls[Stall::StallEntriesFull as usize]),
        ),
        (
            "stalls_no_credit",
            "times a message waited before the link because its receiver had no credit left for its virtual circuit",
            Value::Count(self.stalls[Stall::NoCredit as usize]),
        ),
        (
            "stalls_input_queue",
            "times a row waited because an input queue of a network had too little room for its messages",
            Value::Count(self.stalls[Stall::InputQueue as usize]),
        ),
        (
            "local_operations_acknowledged",
            "local operations of the device that were acknowledged",
            Value::Count(self.locals[0]),
        ),
        (
            "local_operations_rejected",
            "local operations of the device that were refused",
            Value::Count(self.locals[1]),
        ),
        (
            "events",
            "events that the kernel delivered",
            Value::Count(self.events),
        ),
        ])
    }
}

/// Converts a time from picoseconds to nanoseconds.
fn nanoseconds(time: Time) -> Value {
    Value::Measure(time as f64 / 1000.0)
}

/// Returns the quotient; 0 if `total` is 0.
fn ratio(part: f64, total: f64) -> Value {
    Value::Measure(if total > 0.0 { part / total } else { 0.0 })
}

/// Combines values with their names and meanings.
fn with_definitions<const N: usize>(
    values: [(&'static str, &'static str, Value); N],
) -> Vec<(Definition, Value)> {
    let with_definition = |(name, text, value)| (Definition { name, text }, value);
    values.map(with_definition).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_buckets_contain_their_range() {
        let mut previous = None;
        for duration in (0..2000).chain([1 << 20, (1 << 20) + 99, u64::MAX >> 1, u64::MAX]) {
            let bucket = bucket_of(duration);
            assert!(duration <= bucket_end(bucket), "{duration}");
            assert!(
                bucket == 0 || duration > bucket_end(bucket - 1),
                "{duration}"
            );
            assert!(
                bucket_end(bucket) as f64 <= duration as f64 * 1.016 + 1.0,
                "{duration}"
            );
            assert!(previous <= Some(bucket));
            previous = Some(bucket);
        }
    }

    #[test]
    fn percentiles_of_a_hundred() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|n| histogram.record(n));
        assert_eq!(histogram.percentile(0.5), 50);
        assert_eq!(histogram.percentile(0.99), 99);
        assert_eq!((histogram.mean(), histogram.max()), (50.5, 100));
        let distribution = histogram.distribution();
        assert_eq!((distribution[0], distribution[99]), ((1, 1), (100, 100)));
    }
}
