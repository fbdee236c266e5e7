//! Hardware prefetchers of host cores: rates by formula, useless lines, and values that they do not change.

use super::{compile, run, run_as, run_watched, RunMode, RunResult};
use cohkit_nearmemory::{Evictions, Platform, RaceKind, RunOutcome};
use cohkit_testing::require;

/// Measurements of rates-host.c.
const ONE_LOAD: u64 = 0;
const SEQUENTIAL_LINES: u64 = 9;
const SCATTERED_LINES: u64 = 10;
const SHORT_RUNS: u64 = 11;

/// Names of counters.
const REQUESTED: &str = "host: lines prefetched by hardware";
const USED: &str = "host: lines prefetched by hardware and used";
const DROPPED: &str = "host: hardware prefetches dropped";
const DROPPED_ON_THEIR_WAY: &str = "host: hardware prefetches dropped on their way";

/// The shipped machine with some settings.
fn platform(settings: &[(&str, &str)]) -> Platform {
    let mut platform = Platform::enzian();
    for (name, value) in settings {
        platform.set(name, value).expect("a valid value");
    }
    platform
}

/// Runs a measurement of rates-host.c. Returns the cycles that it prints, and the result.
fn measure(host: &[u8], kind: u64, count: u64, settings: &[(&str, &str)]) -> (u64, RunResult) {
    let command = format!("{kind} {count}");
    let result = run(&platform(settings), host, &command, &[], None);
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
    (result.text.trim().parse().expect("a number"), result)
}

/// The compiled program of rates-host.c; `None` without a compiler.
fn rates() -> Option<Vec<u8>> {
    let source = "crates/nearmemory/tests/programs/rates-host.c";
    require::require("riscv-gcc").then(|| compile("host", source, &[]))
}

/// Enough reads in flight in the directory for all prefetches of these tests.
const WIDE: (&str, &str) = ("device.slice_reads", "32");

/// A prefetcher with distance D and degree N first requests line J at the load of line J - D - N + 1, so that D + N
/// lines are in flight, with the loaded one: a line takes the latency of a load, divided by D + N. Without a
/// prefetcher, it takes the latency.
#[test]
fn sequential_reads_take_the_latency_over_the_lines_in_flight() {
    let Some(host) = rates() else {
        return;
    };
    let (latency, _) = measure(&host, ONE_LOAD, 0, &[WIDE]);
    for (streams, distance, degree) in [
        ("0", "1", "1"),
        ("1", "1", "1"),
        ("1", "3", "1"),
        ("4", "7", "1"),
        ("1", "15", "1"),
        ("1", "1", "2"),
        ("1", "6", "2"),
        ("1", "4", "4"),
    ] {
        let settings = [
            WIDE,
            ("prefetcher.streams", streams),
            ("prefetcher.distance", distance),
            ("prefetcher.degree", degree),
        ];
        // The difference has neither the first lines, which are not prefetched, nor the fences around the loop.
        let [few, many] =
            [256, 512].map(|lines| measure(&host, SEQUENTIAL_LINES, lines, &settings).0);
        let in_flight = match streams {
            "0" => 1,
            _ => [distance, degree]
                .map(|lines| lines.parse::<u64>().expect("a number"))
                .iter()
                .sum(),
        };
        let expected = 256 * latency / in_flight;
        let difference = (many - few).abs_diff(expected);
        assert!(
            difference <= expected / 20,
            "{streams} {distance} {degree}: {} {expected}",
            many - few
        );
    }
}

/// The number of outstanding lines of the last-level cache bounds prefetches as it bounds prefetch instructions:
/// prefetches beyond it are dropped.
#[test]
fn prefetches_share_the_misses_in_flight() {
    let Some(host) = rates() else {
        return;
    };
    let (latency, _) = measure(&host, ONE_LOAD, 0, &[WIDE]);
    let settings = [
        WIDE,
        ("host.llc_misses", "4"),
        ("prefetcher.streams", "1"),
        ("prefetcher.distance", "15"),
        ("prefetcher.degree", "1"),
    ];
    let (cycles, result) = measure(&host, SEQUENTIAL_LINES, 512, &settings);
    assert!(cycles >= 512 * latency / 4, "{cycles} {latency}");
    assert!(result.counter(DROPPED) > 0);
}

/// Reads that follow no stream (no nine successive lines are near each other) take the same time to the cycle, and
/// nothing is prefetched. Streams of three lines cause as many useless prefetches as the degree says.
#[test]
fn other_reads_only_cost_useless_lines() {
    let Some(host) = rates() else {
        return;
    };
    let settings = [
        ("prefetcher.streams", "8"),
        ("prefetcher.stride", "8"),
        ("prefetcher.distance", "5"),
        ("prefetcher.degree", "2"),
    ];
    let (without, _) = measure(&host, SCATTERED_LINES, 512, &[]);
    let (with, result) = measure(&host, SCATTERED_LINES, 512, &settings);
    assert_eq!((with, result.counter(REQUESTED)), (without, 0));
    let (_, result) = measure(&host, SHORT_RUNS, 40, &settings);
    assert_eq!(
        (result.counter(REQUESTED), result.counter(USED)),
        (2 * 40, 0)
    );
    // The stride of scattered lines is a stream for a prefetcher with this limit.
    let wide_stride = [
        ("prefetcher.streams", "8"),
        ("prefetcher.stride", "59"),
        ("prefetcher.distance", "2"),
    ];
    let (faster, result) = measure(&host, SCATTERED_LINES, 512, &wide_stride);
    assert!(
        faster < without && result.counter(USED) > 0,
        "{faster} {without}"
    );
}

/// A machine without a prefetcher has no counters of it.
#[test]
fn counters_belong_to_machines_with_a_prefetcher() {
    let Some(host) = rates() else {
        return;
    };
    let (_, result) = measure(&host, ONE_LOAD, 0, &[]);
    let names = result.counters.iter().map(|(name, _)| name);
    assert!(!names.into_iter().any(|name| name.contains("hardware")));
}

/// A core stores lines after a prefetcher has read them, and before the host loads them. The host loads what the core
/// has stored, as without a prefetcher, and no race is reported. A host that does not wait for the core has a race.
#[test]
fn prefetched_lines_are_not_stale_after_synchronisation() {
    if !require::require("riscv-gcc") {
        return;
    }
    let folder = "crates/nearmemory/tests/programs";
    let channel = compile("channel", &format!("{folder}/prefetched.c"), &[]);
    let channels: [(&str, &[u8]); 1] = [("prefetched", &channel)];
    let source = format!("{folder}/prefetched-host.c");
    let [host, racing_host] =
        [&[][..], &["-DRACES"]].map(|definitions| compile("host", &source, definitions));
    for distance in ["0", "1", "4", "16"] {
        let settings: &[(&str, &str)] = match distance {
            "0" => &[],
            _ => &[
                ("prefetcher.streams", "4"),
                ("prefetcher.distance", distance),
                ("prefetcher.degree", "4"),
            ],
        };
        let platform = platform(settings);
        for mode in [RunMode::InTime, RunMode::Watched, RunMode::FastInterpreter] {
            let result = run_as(&platform, &host, "", &channels, None, mode);
            assert_eq!(
                result.outcomes,
                [RunOutcome::Exit(0)],
                "{distance} {mode:?}"
            );
            // The sum of 0 to 47.
            assert_eq!(result.text, "1128\n", "{distance} {mode:?}");
            if distance != "0" {
                let useless = result.counter(REQUESTED) - result.counter(USED);
                assert!(
                    useless > 0,
                    "{distance} {mode:?}: no line was prefetched too early"
                );
            }
        }
        let result = run_watched(&platform, &racing_host, "", &channels, None);
        let is_race = |outcome: &RunOutcome| match outcome {
            RunOutcome::Race(race) => race.kind == RaceKind::UnorderedRead,
            _ => false,
        };
        assert!(result.outcomes.iter().any(is_race), "{distance}");
    }
}

/// A core stores lines and notifies the host while prefetches that have read the old lines are on their way to the host.
/// The path from far memory is long for that, and the path of registers short.
#[test]
fn prefetches_in_flight_are_not_stale_after_synchronisation() {
    if !require::require("riscv-gcc") {
        return;
    }
    let folder = "crates/nearmemory/tests/programs";
    let host = compile("host", &format!("{folder}/prefetched-host.c"), &[]);
    let platform = platform(&[
        WIDE,
        ("device.path", "60us"),
        ("prefetcher.streams", "4"),
        ("prefetcher.distance", "16"),
        ("prefetcher.degree", "4"),
    ]);
    // The host reads 18 lines one after the other, each in 60 us: the last prefetches are on their way after 324,000
    // clocks of the core, for 9,000 clocks from far memory to the host.
    let mut dropped = 0;
    for wait in (310_000..350_000).step_by(2_500) {
        let source = format!("{folder}/prefetched.c");
        let channel = compile("channel", &source, &[&format!("-DWAIT={wait}")]);
        let channels: [(&str, &[u8]); 1] = [("prefetched", &channel)];
        let result = run_watched(&platform, &host, "", &channels, None);
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{wait}");
        assert_eq!(result.text, "1128\n", "{wait}");
        dropped += result.counter(DROPPED_ON_THEIR_WAY);
    }
    assert!(dropped > 0, "no line was on its way at the notice");
}

/// A host that waits for a core by atomic accesses with acquire semantics loads what the core has stored, as with
/// fences. The lines are in the cache at the notice with a short path, and on their way with a long one.
#[test]
fn prefetched_lines_are_not_stale_after_an_acquire() {
    if !require::require("riscv-gcc") {
        return;
    }
    let folder = "crates/nearmemory/tests/programs";
    let host = compile(
        "host",
        &format!("{folder}/prefetched-host.c"),
        &["-DACQUIRE"],
    );
    let mut dropped = 0;
    for (path, wait) in [
        ("204ns", 10_000),
        ("60us", 332_500),
        ("60us", 335_000),
        ("60us", 337_500),
        ("60us", 340_000),
    ] {
        let definition = format!("-DWAIT={wait}");
        let channel = compile("channel", &format!("{folder}/prefetched.c"), &[&definition]);
        let channels: [(&str, &[u8]); 1] = [("prefetched", &channel)];
        let platform = platform(&[
            WIDE,
            ("device.path", path),
            ("prefetcher.streams", "4"),
            ("prefetcher.distance", "16"),
            ("prefetcher.degree", "4"),
        ]);
        // Without the race detector, which knows no atomic accesses as synchronisation with copy engines.
        let result = run(&platform, &host, "", &channels, None);
        dropped += result.counter(DROPPED_ON_THEIR_WAY);
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{path} {wait}");
        assert_eq!(result.text, "1128\n", "{path} {wait}");
        assert!(result.counter(REQUESTED) > result.counter(USED));
    }
    assert!(dropped > 0, "no line was on its way at the notice");
}

/// The host stores a word of each line after a core has stored these lines and has notified the host: the other words
/// keep the core's values, also of lines that a prefetcher has read before, or that are on their way to the host. The
/// stores depend on the notice, or a fence orders the notice before them.
#[test]
fn stores_to_prefetched_lines_keep_other_words() {
    if !require::require("riscv-gcc") {
        return;
    }
    let folder = "crates/nearmemory/tests/programs";
    let source = format!("{folder}/prefetched.c");
    for definitions in [&["-DSTORES"][..], &["-DSTORES", "-DFENCED"]] {
        let host = compile("host", &format!("{folder}/prefetched-host.c"), definitions);
        // The lines are in the cache at the notice with a short path, and on their way with a long one.
        let mut dropped = 0;
        for (path, wait, distance) in [
            ("204ns", 10_000, "1"),
            ("204ns", 10_000, "4"),
            ("204ns", 10_000, "16"),
            ("60us", 332_500, "16"),
            ("60us", 335_000, "16"),
            ("60us", 337_500, "16"),
            ("60us", 340_000, "16"),
        ] {
            let channel = compile("channel", &source, &[&format!("-DWAIT={wait}")]);
            let channels: [(&str, &[u8]); 1] = [("prefetched", &channel)];
            let platform = platform(&[
                WIDE,
                ("device.path", path),
                ("prefetcher.streams", "4"),
                ("prefetcher.distance", distance),
                ("prefetcher.degree", "4"),
            ]);
            let result = run_watched(&platform, &host, "", &channels, None);
            let context = format!("{definitions:?} {path} {wait} {distance}");
            dropped += result.counter(DROPPED_ON_THEIR_WAY);
            assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{context}");
            assert_eq!(result.text, "1128\n", "{context}");
            assert!(
                result.counter(REQUESTED) > result.counter(USED),
                "{context}"
            );
        }
        assert!(dropped > 0, "{definitions:?}: no line was on its way");
    }
}

/// A prefetch instruction does not wait for a line that a fence has dropped: it is dropped too, and the core has as
/// many misses left as before. With a miss lost for each, the core would hang after `host.l1_misses` of them.
#[test]
fn prefetches_of_dropped_lines_are_dropped() {
    if !require::require("riscv-gcc") {
        return;
    }
    let source = "crates/nearmemory/tests/programs/dropped-host.c";
    let host = compile("host", source, &[]);
    // The third load of a run prefetches lines 7 to 10 after the first one, which arrive after the loaded line.
    let platform = platform(&[
        WIDE,
        ("prefetcher.streams", "1"),
        ("prefetcher.distance", "5"),
        ("prefetcher.degree", "4"),
    ]);
    let runs = 2 * platform.l1_misses.value;
    let result = run(&platform, &host, &format!("{runs} 10"), &[], None);
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
    assert_eq!(result.text, format!("{runs}\n"));
    assert_eq!(result.counter("host: prefetches dropped"), runs);
}

/// The shipped programs verify their results and have no race with prefetchers of several kinds, with and without
/// evictions.
#[test]
fn shipped_programs_are_correct_with_prefetchers() {
    if !require::require("riscv-gcc") {
        return;
    }
    let programs = [
        ("bulk", "65536"),
        ("gups", "65536 300"),
        ("pagerank", "2 128 1500 60 1 3 31 2"),
        ("pipes", "7 1000"),
        ("rows", "24576 128 1000"),
        ("uts", "1 3 4 4 0 0 29 10000"),
    ];
    for (program, arguments) in programs {
        let host = compile(
            "host",
            &format!("nearmemory/programs/{program}-host.c"),
            &[],
        );
        let channel = compile("channel", &format!("nearmemory/programs/{program}.c"), &[]);
        for (stride, distance, interval) in [("1", "4", None), ("64", "16", Some(50))] {
            let platform = platform(&[
                ("host.cores", "4"),
                ("prefetcher.streams", "8"),
                ("prefetcher.stride", stride),
                ("prefetcher.distance", distance),
                ("prefetcher.degree", "4"),
            ]);
            let evictions = interval.map(|mean_interval| Evictions {
                mean_interval,
                seed: 1,
            });
            let channels: [(&str, &[u8]); 1] = [(program, &channel)];
            let result = run_watched(&platform, &host, arguments, &channels, evictions);
            let context = format!("{program} {stride} {distance}: {}", result.text);
            assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{context}");
            // Pipes are in scratchpads, which are not prefetched.
            assert_eq!(
                result.counter(REQUESTED) > 0,
                program != "pipes",
                "{context}"
            );
        }
    }
}
