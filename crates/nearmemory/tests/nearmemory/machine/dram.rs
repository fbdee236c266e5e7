//! Far memory with DRAM of a JEDEC standard, and with a memory-side cache: latency and bandwidth of a whole machine by
//! formula, equal results of equal runs, and correct programs.

use super::{compile, run, run_watched};
use cohkit_dram::{JedecDram, Memory};
use cohkit_nearmemory::platform::ENZIAN;
use cohkit_nearmemory::{Platform, RunOutcome};
use cohkit_testing::require;

/// The DRAM of `enzian-dc-ddr`, a platform of the simulator.
const PLATFORM_FILE: &str = include_str!("../../../../../platforms/enzian-dc-ddr.toml");

/// Lines of a copy of rates.c.
const COPIED_LINES: u64 = 240;

/// Text of the shipped machine with the DRAM of a platform of the simulator.
fn machine_file() -> String {
    let (rest, _) = ENZIAN.split_once("[dram]").expect("a table");
    let (_, dram) = PLATFORM_FILE.split_once("[dram]").expect("a table");
    format!("{rest}[dram]{dram}")
}

/// The machine of [`machine_file`] with some settings.
fn platform(settings: &[(&str, &str)]) -> Platform {
    let mut platform = Platform::read(&machine_file()).expect("a valid machine");
    for (name, value) in settings {
        platform.set(name, value).expect("a valid value");
    }
    platform.check().expect("no contradiction");
    platform
}

/// DRAM of a machine, which has a standard.
fn jedec(platform: &Platform) -> &JedecDram {
    match &platform.memory {
        Memory::Jedec(dram) => dram,
        memory => panic!("{memory:?}"),
    }
}

/// Runs a measurement of rates-host.c, by its number, and returns what it prints.
fn measure(programs: &[Vec<u8>; 2], platform: &Platform, kind: u64) -> u64 {
    let [host, channel] = programs;
    let channels: [(&str, &[u8]); 1] = [("rates", channel)];
    let result = run(platform, host, &kind.to_string(), &channels, None);
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
    result.text.trim().parse().expect("a number")
}

/// The compiled programs of host and near-memory core; `None` without a compiler.
fn rates() -> Option<[Vec<u8>; 2]> {
    let folder = "crates/nearmemory/tests/programs";
    require::require("riscv-gcc").then(|| {
        let host = compile("host", &format!("{folder}/rates-host.c"), &[]);
        [host, compile("channel", &format!("{folder}/rates.c"), &[])]
    })
}

/// A load of the host takes as much longer than with DRAM without a standard as the latencies of the two differ. Both
/// are sums of their quantities.
#[test]
fn load_takes_the_latency_of_the_standard() {
    let Some(programs) = rates() else {
        return;
    };
    let simple = Platform::enzian();
    let Memory::Dram(dram) = &simple.memory else {
        panic!("DRAM without a standard");
    };
    let transfer = dram.bandwidth.time_of(128);
    let simple_latency =
        dram.controller_latency.value + dram.t_rcd.value + dram.t_cl.value + transfer;
    let simple_load = measure(&programs, &simple, 0) * simple.host_cycle.value;
    for standard in ["ddr4-2133", "ddr4-2400", "ddr4-3200", "ddr5-4800"] {
        for scheduler in ["fr-fcfs", "group-machines"] {
            // Rows are closed after their last use, so that each load opens one.
            let platform = platform(&[
                ("dram.standard", standard),
                ("dram.scheduler", scheduler),
                ("dram.closed_page", "1"),
                ("dram.t_refi", "0ns"),
            ]);
            let dram = jedec(&platform);
            let latency: u64 = dram.read_latency(128).iter().map(|(_, time)| time).sum();
            // Commands wait for clock edges of the DRAM or of the controller, and the core for its own clock.
            let clock = dram.controller_clocks.value * dram.clock_period.value;
            let waits = 2 * clock + 2 * platform.host_cycle.value;
            let load = measure(&programs, &platform, 0) * platform.host_cycle.value;
            let least = simple_load + latency - simple_latency;
            let range = least - platform.host_cycle.value..=least + waits;
            assert!(
                range.contains(&load),
                "{standard} {scheduler}: {load} {range:?}"
            );
        }
    }
}

/// A copy engine without limits of its own reads lines at the rate of the data buses: a line takes its bursts, at the
/// interval of column commands of different bank groups, divided by the number of channels.
#[test]
fn sequential_copies_fill_the_data_buses() {
    let Some(programs) = rates() else {
        return;
    };
    for (standard, channels) in [("ddr4-2133", "1"), ("ddr4-2400", "2"), ("ddr4-3200", "1")] {
        let platform = platform(&[
            ("dram.standard", standard),
            ("dram.scheduler", "fr-fcfs"),
            ("dram.channels", channels),
            ("dram.t_refi", "0ns"),
            ("copy.line", "1ps"),
            ("copy.lines", "1024"),
        ]);
        let dram = jedec(&platform);
        let bursts = 128 / dram.burst_bytes.value;
        let clocks = dram
            .clocks(dram.timing.t_ccd_s.value)
            .max(dram.burst_clocks.value);
        let line = bursts * clocks * dram.clock_period.value / dram.channels.value;
        let latency: u64 = dram.read_latency(128).iter().map(|(_, time)| time).sum();
        let measured = measure(&programs, &platform, 3) * platform.mcc_cycle.value;
        let transfer = COPIED_LINES * line;
        // The scheduler loses at most a twentieth; commands and polls of the core take at most 60 clocks.
        let fixed = latency + platform.copy_path.value + 60 * platform.mcc_cycle.value;
        let range = transfer..=transfer + transfer / 20 + fixed;
        assert!(
            range.contains(&measured),
            "{standard}: {measured} {range:?}"
        );
    }
}

/// Programs verify their results and have no race with DRAM of a standard, with and without a small memory-side cache.
/// Two runs have the same counters.
#[test]
fn programs_are_correct_and_runs_are_repeatable() {
    if !require::require("riscv-gcc") {
        return;
    }
    let cached = [
        ("memory_cache.size", "16KiB"),
        ("memory_cache.ways", "4"),
        ("memory_cache.line", "256B"),
    ];
    for (program, arguments) in [("bulk", "65536"), ("gups", "65536 300")] {
        let host = compile(
            "host",
            &format!("nearmemory/programs/{program}-host.c"),
            &[],
        );
        let channel = compile("channel", &format!("nearmemory/programs/{program}.c"), &[]);
        let channels: [(&str, &[u8]); 1] = [(program, &channel)];
        let mut simple_with_cache = Platform::enzian();
        for (name, value) in cached {
            simple_with_cache.set(name, value).expect("a valid value");
        }
        for platform in [simple_with_cache, platform(&[]), platform(&cached)] {
            let results =
                [(); 2].map(|()| run_watched(&platform, &host, arguments, &channels, None));
            for result in &results {
                let context = format!("{program}: {}", result.text);
                assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{context}");
            }
            let [first, second] = &results;
            assert_eq!(
                (&first.text, &first.counters),
                (&second.text, &second.counters)
            );
            let rows = ["rows found open", "rows opened"]
                .map(|name| first.counter(&format!("far memory: {name}")));
            assert!(rows.iter().all(|count| *count > 0), "{program}: {rows:?}");
            if platform.cache_bytes.value > 0 {
                let [hits, misses, write_backs] = ["hits", "misses", "write-backs"]
                    .map(|name| first.counter(&format!("far memory: cache {name}")));
                let accesses = ["lines read", "lines written"]
                    .map(|name| first.counter(&format!("far memory: {name}")));
                assert_eq!(hits + misses, accesses.iter().sum::<u64>());
                assert!(
                    hits > 0 && write_backs > 0,
                    "{program}: {hits} {write_backs}"
                );
                // Each miss reads a block of two lines, and each write-back writes one.
                assert_eq!(rows.iter().sum::<u64>(), 2 * (misses + write_backs));
            }
        }
    }
}
