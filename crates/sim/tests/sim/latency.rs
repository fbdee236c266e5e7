//! Read latencies of isolated accesses: sums of platform quantities, compared with published values. This is
//! calibration: platform values were chosen to match, and no value serves one figure alone.

use cohkit_testing::setups;

use cohkit_protocol::controller::Access;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::platform::{JedecDram, Memory, Platform};
use cohkit_sim::simulation::{run, Setup};
use cohkit_units::Unit;
use std::ops::Range;

/// CCKit, table 2, in nanoseconds: sequential and random.
fn published_latencies() -> [(Platform, f64, f64); 3] {
    [
        (Platform::shipped("thunderx1-2s").unwrap(), 268.0, 271.0),
        (Platform::shipped("enzian-dc-bram").unwrap(), 454.0, 444.0),
        (Platform::shipped("enzian-dc-ddr").unwrap(), 591.0, 601.0),
    ]
}

#[test]
fn latencies_are_within_five_percent() {
    for (platform, sequential, random) in published_latencies() {
        for (pattern, published) in [(Pattern::Sequential, sequential), (Pattern::Random, random)] {
            let mut workload = Workload::pass(pattern.clone(), Access::Load, 1 << 23, 1, 1);
            workload.accesses = 20_000;
            let setup = Setup::new(setups::protocol("eci"), platform.clone(), workload).unwrap();
            let simulated = run(&setup).unwrap().get("latency_mean_ns").unwrap();
            let error = simulated / published - 1.0;
            let name = &platform.name;
            println!(
                "{name}, {pattern:?}: published {published} ns, ours {simulated:.1} ns, {:+.1} %",
                error * 100.0
            );
            assert!(error.abs() < 0.05, "{name}, {pattern:?}: {simulated}");
        }
    }
}

/// Latency of a read that misses the cache, in picoseconds: the sum of the platform's quantities.
fn expected_latency(platform: &Platform) -> u64 {
    let parts = setups::read_latency(platform, 128);
    parts.iter().map(|part| part.1).sum()
}

/// Returns the bounds of the mean latency of single reads, by their sum of parts with closed rows. A hit lacks tRCD and
/// a conflict adds tRP. Each of three commands waits for its slot, and 5 % of the time goes to refreshes.
fn latency_bounds(dram: &JedecDram, parts: u64) -> Range<u64> {
    let slots = 3 * dram.controller_clocks.value * dram.clock_period.value;
    let refresh = dram.timing.t_rfc.value / 20;
    let conflict = dram.timing.t_rp.value + dram.clock_period.value;
    parts - dram.timing.t_rcd.value - dram.clock_period.value..parts + conflict + slots + refresh
}

/// Without evictions, every access takes exactly the sum of its parts, but for the waits of a DRAM with a scheduler.
#[test]
fn latencies_are_the_sums_of_their_parts() {
    for name in setups::single_level_platforms() {
        let platform = Platform::shipped(name).unwrap();
        for pattern in [Pattern::Sequential, Pattern::Chunked, Pattern::Random] {
            let mut workload = Workload::pass(pattern.clone(), Access::Load, 1 << 23, 1, 1);
            workload.accesses = 5_000;
            let setup = Setup::new(setups::protocol("eci"), platform.clone(), workload).unwrap();
            let statistics = run(&setup).unwrap();
            assert_eq!(statistics.get("hits"), Some(0.0), "{name}, {pattern:?}");
            let parts = expected_latency(&platform);
            if let Memory::Jedec(dram) = &platform.memory {
                let mean = statistics.get("latency_mean_ns").unwrap() * 1000.0;
                let bounds = latency_bounds(dram, parts);
                assert!(
                    bounds.contains(&(mean as u64)),
                    "{name}, {pattern:?}: {mean}, {bounds:?}"
                );
                continue;
            }
            for latency in ["latency_mean_ns", "latency_max_ns"] {
                let simulated = (statistics.get(latency).unwrap() * 1000.0).round();
                assert_eq!(simulated as u64, parts, "{name}, {pattern:?}: {latency}");
            }
        }
    }
}

/// A change of a part's quantity changes the latency as much as the sum; no other quantity affects it.
#[test]
fn read_latency_covers_every_part() {
    let workload = Workload::pass(Pattern::Sequential, Access::Load, 200, 1, 1);
    let template = Platform::torture(1);
    let template = Setup::new(setups::protocol("eci"), template, workload).unwrap();
    let latency = |platform: &Platform| {
        let mut setup = template.clone();
        // One caching agent is sufficient, and its home need not be constructed again.
        setup.platform = Platform {
            remotes: 1,
            ..platform.clone()
        };
        (run(&setup).unwrap().get("latency_mean_ns").unwrap() * 1000.0).round() as u64
    };
    for name in setups::single_level_platforms() {
        let shipped = Platform::shipped(name).unwrap();
        if !setups::has_exact_latency(&shipped) {
            continue;
        }
        let parts = setups::read_latency(&shipped, 128);
        for (name, unit, _) in shipped.all_quantities() {
            let mut platform = shipped.clone();
            let (_, quantity) = platform.quantity(&name).unwrap();
            let is_part = parts.iter().any(|part| part.0 == name);
            quantity.value = match (unit, quantity.value) {
                (Unit::Picoseconds, 0) if is_part => 1000,
                (Unit::Picoseconds, value) => value + value / 3,
                (Unit::BytesPerSecond, value) => value / 2,
                (Unit::Bytes | Unit::Count, _) => continue,
            };
            assert_eq!(
                expected_latency(&platform) != expected_latency(&shipped),
                is_part,
                "{name}"
            );
            assert_eq!(latency(&platform), expected_latency(&platform), "{name}");
        }
    }
}
