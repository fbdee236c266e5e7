//! Write buffers and L1s: their effect on time and messages can be derived by hand.

use cohkit_testing::setups;

use cohkit_protocol::controller::Access;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{run, Setup};
use cohkit_sim::statistics::Statistics;
use setups::protocol;

/// Bytes of a line.
const LINE: u64 = 128;

/// Returns a run of one Enzian core without compute time between accesses.
fn single_core_setup(access: Access, lines: u32, accesses: u64) -> Setup {
    let mut platform = Platform::shipped("enzian-dc-bram").unwrap();
    platform.cores.compute_time.value = 0;
    let mut workload = Workload::pass(Pattern::Chunked, access, lines, 1, 1);
    workload.accesses = accesses;
    let mut setup = Setup::new(protocol("eci"), platform, workload).unwrap();
    setup.oracle = Level::Bytes;
    setup
}

/// Returns the values of these statistics.
fn values(statistics: &Statistics, names: &[&str]) -> Vec<f64> {
    let values = names.iter().map(|name| statistics.get(name).unwrap());
    values.collect()
}

/// 3 KiB are 24 lines: 24 stores cost the core nothing, and the next waits until the first has been performed.
#[test]
fn core_stalls_on_a_full_write_buffer() {
    let run_stores =
        |stores| run(&single_core_setup(Access::Store, stores, stores.into())).unwrap();
    let waits = [
        "store_latency_max_ns",
        "stalls_write_buffer",
        "write_buffer_wait_ns",
    ];
    let fitting = run_stores(24);
    assert_eq!(values(&fitting, &waits), [0.0, 0.0, 0.0]);
    assert_eq!(fitting.get("accesses"), Some(24.0));
    let overfull = run_stores(25);
    let platform = Platform::shipped("enzian-dc-bram").unwrap();
    let parts = setups::read_latency(&platform, LINE as u32);
    let miss: u64 = parts.iter().map(|part| part.1).sum();
    let miss = miss as f64 / 1000.0;
    assert_eq!(values(&overfull, &waits), [miss, 1.0, miss]);
    // The store is visible before the core is notified.
    let fill = platform.cache.fill_latency.value as f64 / 1000.0;
    let visible = [
        "store_visible_latency_mean_ns",
        "store_visible_latency_max_ns",
        "loads",
    ];
    assert_eq!(
        values(&run_stores(1), &visible),
        [miss - fill, miss - fill, 0.0]
    );
    // One entry is in use for the time of one miss.
    let single = run_stores(1);
    assert_eq!(
        values(&single, &["time_ns", "write_buffer_occupancy"]),
        [miss, 1.0 / 24.0]
    );
}

/// Without a write buffer each store takes as long as a load.
#[test]
fn without_a_write_buffer_a_core_waits_for_its_stores() {
    let run_pass = |access| {
        let mut setup = single_core_setup(access, 100, 100);
        setup.platform.cores.write_buffer.value = 0;
        run(&setup).unwrap()
    };
    let (stores, loads) = (run_pass(Access::Store), run_pass(Access::Load));
    assert_eq!(stores.get("time_ns"), loads.get("time_ns"));
    for measure in ["mean", "p50", "p99", "max"] {
        let latency = |statistics: &Statistics, kind: &str| {
            statistics.get(&format!("{kind}_latency_{measure}_ns"))
        };
        assert_eq!(
            latency(&stores, "store"),
            latency(&loads, "load"),
            "{measure}"
        );
        let missing = [
            latency(&stores, "load"),
            latency(&loads, "store"),
            latency(&loads, "store_visible"),
        ];
        assert_eq!(missing, [Some(0.0); 3], "{measure}");
    }
}

/// The first store to a line is sent at once; all later ones during its flight coalesce in a second entry.
#[test]
fn stores_to_a_line_join() {
    let statistics = run(&single_core_setup(Access::Store, 1, 20)).unwrap();
    let names = [
        "accesses",
        "stores_coalesced",
        "stalls_write_buffer",
        "hits",
    ];
    // The stores of the second entry hit in the cache.
    assert_eq!(values(&statistics, &names), [20.0, 18.0, 0.0, 19.0]);
    assert_eq!(statistics.sent("ReadExclusive"), Some(1));
}

/// A core that loads its own last store finds it in its write buffer, before it is performed.
#[test]
fn loads_find_their_own_stores() {
    let mut setup = single_core_setup(Access::Store, 1, 2000);
    setup.workload.mix = vec![(Access::Store, 1), (Access::Load, 1)];
    let statistics = run(&setup).unwrap();
    let forwarded = statistics.get("store_to_load_forwards").unwrap();
    assert!(forwarded > 0.0);
    let mut without_buffer = setup.clone();
    without_buffer.platform.cores.write_buffer.value = 0;
    let without_buffer = run(&without_buffer).unwrap();
    assert_eq!(without_buffer.get("store_to_load_forwards"), Some(0.0));
    assert_eq!(without_buffer.get("accesses"), statistics.get("accesses"));
    assert!(without_buffer.get("time_ns") > statistics.get("time_ns"));
}

/// Ten rounds over as many lines as the L1 has: all but the first hit, at its hit latency.
#[test]
fn l1_hits_on_repeated_reads() {
    let mut setup = single_core_setup(Access::Load, 16, 160);
    setup.platform.cores.l1_size.value = 16 * LINE;
    let statistics = run(&setup).unwrap();
    let names = ["l1_hits", "l1_hit_ratio", "hits", "accesses"];
    assert_eq!(values(&statistics, &names), [144.0, 0.9, 0.0, 160.0]);
    assert_eq!(statistics.sent("ReadShared"), Some(16));
    let median = |statistics: &Statistics| statistics.get("load_latency_p50_ns").unwrap();
    assert!((median(&statistics) / 1.5 - 1.0).abs() < 0.016);
    // One line more than the L1 has, in order: each has been evicted before its next use.
    let mut setup = single_core_setup(Access::Load, 17, 170);
    setup.platform.cores.l1_size.value = 16 * LINE;
    let statistics = run(&setup).unwrap();
    assert_eq!(values(&statistics, &names), [0.0, 0.0, 153.0, 170.0]);
    let hit = setup.platform.cache.request_latency.value + setup.platform.cache.hit_latency.value;
    assert!((median(&statistics) * 1000.0 / hit as f64 - 1.0).abs() < 0.016);
}

/// A hundred accesses of one core to one line, one after the other: the 99 that hit take the latency of their kind.
#[test]
fn hits_of_loads_and_stores_have_their_own_latencies() {
    for (access, extra) in [(Access::Load, 0.0), (Access::Store, 7.0)] {
        let mut setup = single_core_setup(access, 1, 100);
        setup.platform.cores.write_buffer.value = 0;
        let before = run(&setup).unwrap();
        assert_eq!(before.get("hits"), Some(99.0));
        let mut store_hit = setup.platform.cache.hit_latency.clone();
        store_hit.value += 7000;
        setup.platform.cache.store_hit_latency = Some(store_hit);
        let after = run(&setup).unwrap();
        let mean = |statistics: &Statistics| statistics.get("latency_mean_ns").unwrap();
        let added = 100.0 * (mean(&after) - mean(&before));
        assert!((added - 99.0 * extra).abs() < 0.1, "{access:?}: {added}");
    }
}

/// An L1 has no line that its shared cache has lost: with a shared cache of two lines, no read hits in the L1.
#[test]
fn shared_cache_eviction_invalidates_the_l1() {
    let mut setup = single_core_setup(Access::Load, 8, 80);
    setup.platform.cores.l1_size.value = 16 * LINE;
    setup.platform.cache.sets.value = 1;
    setup.platform.cache.ways.value = 2;
    let statistics = run(&setup).unwrap();
    assert_eq!(statistics.get("l1_hits"), Some(0.0));
    assert_eq!(statistics.sent("ReadShared"), Some(80));
}

/// A store invalidates the line in the L1s of other cores, not in its own; each load returns the last store.
#[test]
fn store_of_another_core_invalidates_the_l1() {
    let hits = |cores| {
        let mut setup = single_core_setup(Access::Load, 1, 4000);
        setup.workload.mix = vec![(Access::Store, 1), (Access::Load, 3)];
        setup.workload.cores = cores;
        setup.platform.cores.l1_size.value = 16 * LINE;
        // Without a write buffer, loads are not forwarded from it.
        setup.platform.cores.write_buffer.value = 0;
        run(&setup).unwrap().get("l1_hit_ratio").unwrap()
    };
    assert!(hits(1) > 0.99, "{}", hits(1));
    assert!(hits(2) < 0.9, "{}", hits(2));
    assert!(hits(2) > 0.1, "{}", hits(2));
}

/// If no line is read twice, an L1 has no effect: shipped platforms have none. (With prefetching and several cores it
/// changes the order of simultaneous events; then only the messages are the same.)
#[test]
fn l1_has_no_effect_without_reuse() {
    for name in setups::single_cache_platforms() {
        let run_with_l1 = |l1, cores| {
            let mut platform = Platform::shipped(name).unwrap();
            assert_eq!(platform.cores.l1_size.value, 0);
            platform.cores.l1_size.value = l1;
            let lines = 4_000 * cores;
            let mut workload = Workload::pass(Pattern::Chunked, Access::Load, lines, cores, 1);
            workload.prefetch = if cores == 1 { 0 } else { 8 };
            run(&Setup::new(protocol("eci"), platform, workload).unwrap()).unwrap()
        };
        for cores in [1, 48] {
            let (without_l1, with_l1) = (run_with_l1(0, cores), run_with_l1(32 << 10, cores));
            assert_eq!(with_l1.get("l1_hits"), Some(0.0));
            assert_eq!(with_l1.messages, without_l1.messages);
            if cores == 1 {
                assert_eq!(with_l1.get("time_ns"), without_l1.get("time_ns"));
            }
        }
    }
}

#[test]
fn sizes_that_fit_no_lines_are_refused_by_name() {
    let setup_error = |change: &dyn Fn(&mut Platform)| {
        let mut setup = single_core_setup(Access::Load, 1, 1);
        change(&mut setup.platform);
        run(&setup).unwrap_err().to_string()
    };
    assert_eq!(
        setup_error(&|platform| platform.cores.write_buffer.value = 100),
        "cores.write_buffer must be a multiple of a line of 128B, not 100B"
    );
    assert_eq!(
        setup_error(&|platform| platform.cores.l1_size.value = 3 << 10),
        "cores.l1_size must be 0B or a power of two times 2KiB, not 3KiB"
    );
}
