//! Order of the host's uncached accesses and fences, and the steps of a start, in time: formulas on paper.

use super::{compile, run};
use cohkit_nearmemory::{Platform, RunOutcome};
use cohkit_testing::require;

/// Repetitions of a measurement, as in the program.
const COUNT: u64 = 64;

/// Runs a measurement and returns its duration in picoseconds.
fn duration(platform: &Platform, program: &[u8], kind: u64) -> u64 {
    let result = run(platform, program, &kind.to_string(), &[], None);
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
    let cycles: u64 = result.text.trim().parse().expect("a number");
    cycles * platform.host_cycle.value
}

/// Returns the time of a message of `bytes` bytes of data on the link.
fn on_link(platform: &Platform, bytes: u64) -> u64 {
    let bits = (bytes + platform.link_header.value) * 1_000_000_000_000;
    platform.link_latency.value + bits.div_ceil(platform.link_bandwidth.value)
}

/// Returns the time from a load of a register to its value: core, link, register, link, core.
fn register_load(platform: &Platform) -> u64 {
    let path = platform.register_path.value;
    platform.request.value
        + on_link(platform, 0)
        + path
        + on_link(platform, 8)
        + platform.fill.value
}

#[test]
fn uncached_loads_of_a_core_are_one_after_the_other() {
    if !require::require("riscv-gcc") {
        return;
    }
    let program = compile(
        "host",
        "crates/nearmemory/tests/programs/ordered-host.c",
        &[],
    );
    let mut platform = Platform::enzian();
    for latency in ["90ns", "300ns"] {
        platform
            .set("link.latency", latency)
            .expect("a valid value");
        let (measured, paper) = (
            duration(&platform, &program, 0),
            COUNT * register_load(&platform),
        );
        // The core needs at most a few cycles for each load.
        assert!(
            (paper..=paper + COUNT * 4000).contains(&measured),
            "{measured} {paper}"
        );
    }
}

#[test]
fn device_takes_one_register_access_at_a_time() {
    if !require::require("riscv-gcc") {
        return;
    }
    let program = compile(
        "host",
        "crates/nearmemory/tests/programs/ordered-host.c",
        &[],
    );
    let mut platform = Platform::enzian();
    for interval in ["60ns", "200ns"] {
        platform
            .set("device.register_interval", interval)
            .expect("a valid value");
        // Stores do not wait for one another: the load follows after as many intervals.
        let paper = COUNT * platform.register_interval.value + register_load(&platform);
        let measured = duration(&platform, &program, 1);
        assert!(
            (paper..=paper + 40_000).contains(&measured),
            "{measured} {paper}"
        );
    }
}

#[test]
fn fence_of_stores_does_not_wait_for_acknowledgements() {
    if !require::require("riscv-gcc") {
        return;
    }
    let program = compile(
        "host",
        "crates/nearmemory/tests/programs/ordered-host.c",
        &[],
    );
    let platform = Platform::enzian();
    // A write-back there, and its acknowledgement back.
    let round_trip = platform.request.value
        + on_link(&platform, 128)
        + platform.device_path.value
        + on_link(&platform, 0)
        + platform.fill.value;
    let [of_stores, full] = [2, 3].map(|kind| duration(&platform, &program, kind));
    assert!(full >= COUNT * round_trip, "{full} {round_trip}");
    // Fewer lines than the cache has outstanding requests leave the core without waiting for the first acknowledgement.
    assert!(of_stores < round_trip, "{of_stores} {round_trip}");
}

/// A start takes its fixed steps, and those that follow from the lengths of binary and memories.
#[test]
fn start_takes_its_fixed_steps_and_those_per_byte() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", "nearmemory/programs/spawn-host.c", &[]);
    let channel = compile("channel", "nearmemory/programs/spawn.c", &[]);
    // Durations of a verified and of a trusted start, in cycles of the host, and the bytes of the binary.
    let starts = |settings: &[(&str, &str)]| {
        let mut platform = Platform::enzian();
        for (name, value) in settings {
            platform.set(name, value).expect("a valid value");
        }
        let result = run(&platform, &host, "1", &[("spawn", &channel)], None);
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
        let mut numbers = result
            .text
            .split_whitespace()
            .filter_map(|word| word.parse::<u64>().ok());
        [(); 3].map(|()| numbers.next().expect("a number"))
    };
    let platform = Platform::enzian();
    let cleared = platform.private.value / 128 + platform.scratchpad.value;
    let base = starts(&[]);
    let (bytes, lines) = (base[2], base[2].div_ceil(128));
    // Each step is lengthened by 40 us in all, many polls of the host: the quantity, its new value, and the starts that it
    // lengthens.
    for (name, old, times, affects_trusted) in [
        ("loader.handshake", platform.handshake.value, 1, true),
        ("loader.start", platform.load_start.value, 1, true),
        (
            "loader.reset_line",
            platform.reset_line.value,
            cleared,
            true,
        ),
        ("loader.line", platform.load_line.value, lines, true),
        ("loader.verify_start", platform.verify_start.value, 1, false),
        ("loader.verify", platform.verify_byte.value, bytes, false),
    ] {
        let added = 40_000_000_u64.div_ceil(times);
        let longer = starts(&[(name, &format!("{}ps", old + added))]);
        for (start, affected) in [true, affects_trusted].into_iter().enumerate() {
            let expected = u64::from(affected) * added * times;
            let cycles = longer[start].abs_diff(base[start]);
            let difference = (cycles * platform.host_cycle.value).abs_diff(expected);
            // The host sees the end at its next poll of a register.
            assert!(
                difference <= 2 * register_load(&platform),
                "{name} {start}: {difference}"
            );
        }
    }
}
