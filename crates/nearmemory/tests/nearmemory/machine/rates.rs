//! Rates of the host's reads and of copy engines: formulas on paper.

use super::{compile, run};
use cohkit_dram::{Dram, Memory};
use cohkit_nearmemory::{Platform, RunOutcome};
use cohkit_testing::require;

/// Lines that the program reads with prefetches, and lines of a copy.
const HINTED_LINES: u64 = 512;
const COPIED_LINES: u64 = 240;

/// The compiled programs of host and near-memory core; `None` without a compiler.
fn programs() -> Option<[Vec<u8>; 2]> {
    if !require::require("riscv-gcc") {
        return None;
    }
    let folder = "crates/nearmemory/tests/programs";
    let host = compile("host", &format!("{folder}/rates-host.c"), &[]);
    Some([host, compile("channel", &format!("{folder}/rates.c"), &[])])
}

/// DRAM of a machine, which has no standard.
fn simple_dram(platform: &Platform) -> &Dram {
    match &platform.memory {
        Memory::Dram(dram) => dram,
        memory => panic!("{memory:?}"),
    }
}

/// Runs a measurement on a machine with some settings, and returns the machine and the number that the program prints.
fn measure(programs: &[Vec<u8>; 2], kind: u64, settings: &[(&str, &str)]) -> (Platform, u64) {
    let mut platform = Platform::enzian();
    for (name, value) in settings {
        platform.set(name, value).expect("a valid value");
    }
    let [host, channel] = programs;
    let result = run(
        &platform,
        host,
        &kind.to_string(),
        &[("rates", channel)],
        None,
    );
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
    let number = result.text.trim().parse().expect("a number");
    (platform, number)
}

/// One load takes the time that was measured: 103 ns from the host's own memory (AnandTech article 10353, page 10), 20 ns
/// from the last-level cache (the same), and 591 ns from far memory (CCKit, table 2).
#[test]
fn load_takes_the_measured_time_of_each_memory() {
    let Some(programs) = programs() else {
        return;
    };
    // The line of the host's own memory was written before, and a last-level cache of 64 KiB holds later lines.
    for (kind, llc, picoseconds) in [
        (6, "64KiB", 103_000),
        (6, "16MiB", 20_000),
        (0, "16MiB", 591_000),
    ] {
        let (platform, cycles) = measure(&programs, kind, &[("host.llc", llc)]);
        let expected = picoseconds / platform.host_cycle.value;
        // Reading the cycle counter and using the value take a few instructions.
        let extra = cycles as i64 - expected as i64;
        assert!(
            (0..=12).contains(&extra),
            "{kind} {llc}: {cycles} {expected}"
        );
    }
}

/// Four loads of far memory miss before the first value is used. They take as long as one load if all misses may be
/// outstanding at once, and four times as long if each waits for the previous one.
#[test]
fn load_that_misses_waits_for_earlier_misses() {
    let Some(programs) = programs() else {
        return;
    };
    for (at_once, turns) in [("1", 4), ("2", 2), ("4", 1)] {
        let settings = [("host.load_misses", at_once)];
        let [one, four] = [0, 1].map(|kind| measure(&programs, kind, &settings).1);
        // Instructions around the loads, and the transfer of lines, take some cycles.
        let difference = four.abs_diff(turns * one);
        assert!(difference <= one / 20, "{at_once}: {one} {four}");
    }
}

/// A load of the host's own memory and one of far memory, in either order, take the sum of both alone if a core waits
/// for one line at a time, and as long as the slower one if it waits for two.
#[test]
fn load_misses_bound_lines_of_all_memories_together() {
    let Some(programs) = programs() else {
        return;
    };
    for (at_once, is_sum) in [("1", true), ("2", false)] {
        // The last-level cache holds the line of the host's own memory.
        let settings = [("host.load_misses", at_once), ("host.llc_hit", "400ns")];
        let [far, local, far_first, local_first] =
            [0, 6, 7, 8].map(|kind| measure(&programs, kind, &settings).1);
        // The load of the host's own memory is long enough to tell the two cases apart.
        assert!(far > local && local > far / 8, "{far} {local}");
        let expected = if is_sum { far + local } else { far };
        for both in [far_first, local_first] {
            let difference = both.abs_diff(expected);
            assert!(
                difference <= far / 20,
                "{at_once}: {far} {local} {far_first} {local_first}"
            );
        }
    }
}

/// Prefetches keep every slice at its limit of outstanding reads. Each read takes at least the time of a row hit, and
/// at most that of a row conflict.
#[test]
fn reads_in_flight_of_a_slice_bound_the_rate_of_hints() {
    let Some(programs) = programs() else {
        return;
    };
    for (slices, reads) in [("1", "1"), ("1", "2"), ("2", "2")] {
        let settings = [("device.slices", slices), ("device.slice_reads", reads)];
        let (platform, cycles) = measure(&programs, 2, &settings);
        let dram = simple_dram(&platform);
        let transfer = 128 * 1_000_000_000_000 / dram.bandwidth.value;
        let least = dram.controller_latency.value + dram.t_cl.value + transfer;
        let most = least + dram.t_rcd.value + dram.t_rp.value;
        let in_flight = platform.slices.value * platform.slice_reads.value;
        let measured = cycles * platform.host_cycle.value * in_flight / HINTED_LINES;
        // The loop itself, and the first and the last reads, take a few percent.
        let range = least..=most + most / 20;
        assert!(
            range.contains(&measured),
            "{slices} {reads}: {measured} {range:?}"
        );
    }
}

/// Fetches and stores of a copy engine with two channels overlap; with one channel, their times add up.
#[test]
fn channels_of_a_copy_engine_copy_at_once() {
    let Some(programs) = programs() else {
        return;
    };
    for (channels, in_turn) in [("1", 2), ("2", 1)] {
        let settings = [("copy.channels", channels)];
        let measured = [3, 4, 5].map(|kind| measure(&programs, kind, &settings));
        let platform = &measured[0].0;
        let [fetches, stores, both] = measured.each_ref().map(|(_, clocks)| *clocks);
        // Each line takes one interval of its channel. The copy path and the controller add their latency once; DRAM
        // and the polls of the completion counts add at most 100 ns.
        let controller = simple_dram(platform).controller_latency.value;
        let latency = platform.copy_path.value + controller + 100_000;
        let clock = platform.mcc_cycle.value;
        for (lines, clocks) in [(1, fetches), (1, stores), (in_turn, both)] {
            let issue = lines * COPIED_LINES * platform.copy_line.value;
            let range = issue / clock..=(issue + latency) / clock + 60;
            assert!(
                range.contains(&clocks),
                "{channels} {lines}: {clocks} {range:?}"
            );
        }
    }
}
