//! Read latencies of one access at a time, beside the published ones. These are calibration:
//! platform values were chosen so that they come out, and no value serves one figure alone.

mod common;

use cohkit_protocol::controller::Access;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{run, Setup};

/// CCKit, table 2, in nanoseconds: sequential and random.
fn published() -> [(Platform, f64, f64); 3] {
    [
        (Platform::shipped("thunderx1-2s").unwrap(), 268.0, 271.0),
        (Platform::shipped("enzian-dc-bram").unwrap(), 454.0, 444.0),
        (Platform::shipped("enzian-dc-ddr").unwrap(), 591.0, 601.0),
    ]
}

#[test]
fn latencies_are_within_five_percent() {
    for (platform, sequential, random) in published() {
        for (pattern, published) in [(Pattern::Sequential, sequential), (Pattern::Random, random)] {
            let mut workload = Workload::pass(pattern, Access::Load, 1 << 23, 1, 1);
            workload.accesses = 20_000;
            let setup = Setup::new(common::protocol("eci"), platform.clone(), workload).unwrap();
            let ours = run(&setup).unwrap().get("latency_mean_ns").unwrap();
            let error = ours / published - 1.0;
            let name = &platform.name;
            println!(
                "{name}, {pattern:?}: published {published} ns, ours {ours:.1} ns, {:+.1} %",
                error * 100.0
            );
            assert!(error.abs() < 0.05, "{name}, {pattern:?}: {ours}");
        }
    }
}
