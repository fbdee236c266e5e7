//! A host that gives part of its own memory to copy engines, and ranges that it cannot give.

use super::{compile, run, run_watched};
use cohkit_nearmemory::{Evictions, Platform, RunOutcome};
use cohkit_testing::require;

/// Lines of host memory that copy engines may access in a round, and number of rounds, as in lends-host.c.
const LINES: u64 = 100;
const ROUNDS: u64 = 3;

/// Compiles the host's and the channel program.
fn programs() -> (Vec<u8>, Vec<u8>) {
    let source = |name| format!("crates/nearmemory/tests/programs/{name}.c");
    let host = compile("host", &source("lends-host"), &[]);
    (host, compile("channel", &source("lends"), &[]))
}

/// Copy engines read and write lines that are also in the caches of the host, with one or two cores, evictions, or a
/// small last-level cache. The measured copy of one line takes the sum of the latencies on its path.
#[test]
fn host_memory_copies_are_coherent() {
    if !require::require("riscv-gcc") {
        return;
    }
    let (host, lends) = programs();
    for (cores, interval, llc) in [
        ("1", None, "16MiB"),
        ("2", None, "16MiB"),
        ("1", Some(5), "16MiB"),
        ("1", None, "1KiB"),
    ] {
        let mut platform = Platform::enzian();
        platform.set("host.cores", cores).expect("a valid value");
        platform.set("host.llc", llc).expect("a valid value");
        let evictions = interval.map(|interval| Evictions {
            mean_interval: interval,
            seed: 1,
        });
        let channels: [(&str, &[u8]); 1] = [("lends", &lends)];
        let result = run_watched(&platform, &host, "", &channels, evictions);
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
        // The line with the measured time, and the line that signals a round.
        assert_eq!(
            result.counter("host: lines that copies read"),
            ROUNDS * LINES + 1
        );
        assert_eq!(
            result.counter("host: lines that copies wrote"),
            ROUNDS * (LINES + 1)
        );
        let words = result.text.split([' ', ',', '\n']);
        let clocks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let [host_clocks, far_clocks] = clocks[..] else {
            panic!("{}", result.text);
        };
        // A round trip over the link, one line with a header each way. Lines that the host has read hit its last-level
        // cache if that is large.
        let bytes = 2 * platform.link_header.value + 128;
        let transmission = bytes * 1_000_000_000_000 / platform.link_bandwidth.value;
        let memory_latency = if llc == "1KiB" {
            &platform.main_latency
        } else {
            &platform.llc_hit
        };
        let latencies = [&platform.copy_path, &platform.device_path, memory_latency];
        let total: u64 = latencies.iter().map(|latency| latency.value).sum();
        let min_time = total + 2 * platform.link_latency.value + transmission;
        let time = host_clocks * platform.mcc_cycle.value;
        // Rounding to clock cycles, and the line of memory.
        let max_time = min_time + 4 * platform.mcc_cycle.value;
        assert!(
            (min_time..max_time).contains(&time),
            "{min_time} {time} {max_time}"
        );
        assert!(far_clocks < host_clocks, "{far_clocks} {host_clocks}");
    }
}

/// Each of three hosts lends its own memory to a core of its own, at the same addresses: copies reach the memory of the
/// host that has started the program. A host cannot lend memory to a program that another host starts.
#[test]
fn copies_reach_the_memory_of_the_starting_host() {
    if !require::require("riscv-gcc") {
        return;
    }
    let (host, lends) = programs();
    let channels: [(&str, &[u8]); 1] = [("lends", &lends)];
    let run_hosts = |count: &str, command: &str| {
        let mut platform = Platform::enzian();
        platform.set("hosts.count", count).expect("a valid value");
        run_watched(&platform, &host, command, &channels, None)
    };
    let result = run_hosts("3", "");
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
    for number in 0..3 {
        let read = result.counter(&format!("host {number}: lines that copies read"));
        assert_eq!(read, ROUNDS * LINES + 1);
    }
    let result = run_hosts("2", "lend");
    let is_stopped = matches!(
        result.outcomes[..],
        [RunOutcome::Stopped { mcc: 0, .. }, RunOutcome::Exit(0)]
    );
    assert!(is_stopped, "{:?}", result.outcomes);
    assert_eq!(result.text, "state 5 cause 7 value 0x200038\n");
}

/// Ranges (address and bytes) below, between and beyond the memories, and across their ends: an access fault (cause 7)
/// stops the core.
#[test]
fn copy_outside_host_memory_faults() {
    if !require::require("riscv-gcc") {
        return;
    }
    let (host, lends) = programs();
    // Far memory ends at 0x50_0000_0000, and the host's own memory at 0x8400_0000.
    for range in [
        "0x1000 4096",
        "0x4fffffff80 256",
        "0x6000000000 4096",
        "0x7000000000 4096",
        "0x7fffff80 12800",
        "0x83ffff80 256",
        "0xffffffffffffff80 128",
    ] {
        let result = run(
            &Platform::enzian(),
            &host,
            range,
            &[("lends", &lends)],
            None,
        );
        // The program is stopped when it starts the fetch.
        let is_stopped = matches!(
            result.outcomes[..],
            [RunOutcome::Stopped { mcc: 0, .. }, RunOutcome::Exit(0)]
        );
        assert!(is_stopped, "{range}: {:?}", result.outcomes);
        assert_eq!(result.text, "state 5 cause 7 value 0x200038\n", "{range}");
    }
}
