//! Machines of many hosts, with a switch between them and several homes.

use cohkit_testing::setups;

use cohkit_protocol::controller::Access;
use cohkit_protocol::text;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::explain::FailureKind;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{run, RunError, Setup};
use setups::{protocol, source};

/// Returns a setup with `accesses_per_core` loads and stores by each core of a platform, on `lines` lines of memory.
fn random_traffic(platform: &Platform, name: &str, lines: u32, accesses_per_core: u64) -> Setup {
    let cores = platform.cores.count.value;
    let mut workload = Workload::pass(Pattern::Random, Access::Load, lines, cores as u32, 2);
    workload.mix = vec![(Access::Load, 3), (Access::Store, 1)];
    workload.accesses = cores * accesses_per_core;
    let mut setup = Setup::new(protocol(name), platform.clone(), workload).unwrap();
    setup.oracle = Level::Bytes;
    setup
}

/// Returns a shipped platform with small caches, so that they evict lines, and with few credits on links.
fn contended_platform(name: &str) -> Platform {
    let mut platform = Platform::shipped(name).unwrap();
    platform.cache.sets.value = 4;
    platform.cache.ways.value = 4;
    platform.link.credits.value = 2;
    platform
}

#[test]
fn eight_hosts_of_eight_cores_share_lines_through_a_switch() {
    for name in ["msi", "mesi", "moesi", "eci", "write-through"] {
        for (seed, jitter) in [(0, 0), (1, 30_000), (2, 300_000)] {
            let mut platform = contended_platform("hosts-8x8");
            platform.link.jitter.value = jitter;
            let mut setup = random_traffic(&platform, name, 256, 100);
            setup.seed = seed;
            let statistics = run(&setup).unwrap_or_else(|error| panic!("{name}, {seed}: {error}"));
            assert_eq!(statistics.get("accesses"), Some(6400.0));
            assert!(statistics.get("stalls_no_credit").unwrap() > 0.0, "{name}");
        }
    }
}

#[test]
fn hundreds_of_hosts_share_lines() {
    for name in ["msi", "mesi"] {
        let mut setup = random_traffic(&contended_platform("hosts-512x8"), name, 128, 8);
        // Many caches read a line before one writes it.
        setup.workload.mix = vec![(Access::Load, 60), (Access::Store, 1)];
        let statistics = run(&setup).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(statistics.get("accesses"), Some(4096.0 * 8.0));
        let invalidated = statistics.sent("Inv").unwrap() / statistics.sent("GetM").unwrap();
        assert!(invalidated >= 5, "{name}: {invalidated} for each store");
    }
}

/// All caches read a line, and then all write it.
#[test]
fn thousands_of_caches_share_one_line() {
    let mut platform = Platform::torture(4096);
    platform.cores.count.value = 4096;
    let mut setup = random_traffic(&platform, "msi", 1, 2);
    setup.workload.mix = vec![(Access::Load, 1)];
    let statistics = run(&setup).unwrap();
    assert_eq!(statistics.sent("Data"), Some(4096));
    setup.workload.mix = vec![(Access::Load, 1), (Access::Store, 1)];
    setup.workload.accesses = 8192;
    let statistics = run(&setup).unwrap();
    assert_eq!(statistics.get("accesses"), Some(8192.0));
    assert!(statistics.sent("Inv").unwrap() > 1000);
}

/// A directory that loses a sharer is detected, for any number of sharers.
#[test]
fn directory_that_forgets_sharers_is_detected() {
    let original = source("msi");
    let full_update = "sharers := sharers + { sender } ";
    assert_eq!(original.matches(full_update).count(), 1);
    let faulty_text = original.replace(full_update, "sharers := { sender } ");
    let faulty =
        text::parse(&faulty_text).unwrap_or_else(|_| panic!("faulty protocol with syntax errors"));
    for name in ["hosts-8x8", "hosts-512x8"] {
        let mut setup = random_traffic(&contended_platform(name), "msi", 64, 8);
        let home = cohkit_sim::simulation::home(&faulty, setup.platform.remotes);
        setup.home = home.unwrap();
        match run(&setup) {
            Err(RunError::Failure(failure)) => {
                assert_eq!(failure.kind, FailureKind::SingleWriter, "{name}");
                // The chart has only the agents involved, out of thousands.
                assert!(failure.sequence.agents.len() <= 20, "{name}: {failure}");
            }
            _ => panic!("{name}: the fault is not detected"),
        }
    }
}

/// Unused configuration numbers are reused, without any effect on results.
#[test]
fn configuration_numbers_are_reused() {
    let mut platform = contended_platform("hosts-8x8");
    platform.remotes = 32;
    platform.cores.count.value = 64;
    let mut setup = random_traffic(&platform, "mesi", 300, 4000);
    setup.oracle = Level::Versions;
    let statistics = run(&setup).unwrap();
    assert_eq!(statistics.get("accesses"), Some(64.0 * 4000.0));
}

#[test]
fn hardware_home_requires_a_single_home() {
    let mut platform = Platform::shipped("hosts-8x8").unwrap();
    platform.remotes = 1;
    let mut setup = random_traffic(&platform, "eci", 64, 1);
    setup.clocked = Some(std::sync::Arc::new(|| Err("it is not made".into())));
    let error = run(&setup).unwrap_err().to_string();
    assert_eq!(
        error,
        "a home in hardware needs a machine with one home, not 8"
    );
}
