//! Write buffers and L1s: their effect on time and messages can be derived by hand.

mod common;

use cohkit_protocol::controller::Access;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{run, Setup};
use cohkit_sim::statistics::Statistics;
use common::protocol;

const LINE: u64 = 128;

/// Returns a run of one Enzian core without compute time between accesses.
fn one_core(access: Access, lines: u32, accesses: u64) -> Setup {
    let mut platform = Platform::shipped("enzian-dc-ddr").unwrap();
    platform.cores.work.value = 0;
    let mut workload = Workload::pass(Pattern::Chunked, access, lines, 1, 1);
    workload.accesses = accesses;
    let mut setup = Setup::new(protocol("eci"), platform, workload).unwrap();
    setup.oracle = Level::Bytes;
    setup
}

fn get(statistics: &Statistics, names: &[&str]) -> Vec<f64> {
    let values = names.iter().map(|name| statistics.get(name).unwrap());
    values.collect()
}

/// 3 KiB are 24 lines: 24 stores cost the core nothing, and the next waits until the first has been performed.
#[test]
fn a_core_waits_for_a_full_write_buffer() {
    let of = |stores| run(&one_core(Access::Store, stores, stores.into())).unwrap();
    let waits = [
        "store_latency_max_ns",
        "stalls_write_buffer",
        "write_buffer_wait_ns",
    ];
    let fits = of(24);
    assert_eq!(get(&fits, &waits), [0.0, 0.0, 0.0]);
    assert_eq!(fits.get("accesses"), Some(24.0));
    let one_more = of(25);
    let platform = Platform::shipped("enzian-dc-ddr").unwrap();
    let parts = common::read_latency(&platform, LINE as u32);
    let miss: u64 = parts.iter().map(|part| part.1).sum();
    let miss = miss as f64 / 1000.0;
    assert_eq!(get(&one_more, &waits), [miss, 1.0, miss]);
    // The store is visible before the core is notified.
    let fill = platform.cache.fill.value as f64 / 1000.0;
    let visible = [
        "store_visible_latency_mean_ns",
        "store_visible_latency_max_ns",
        "loads",
    ];
    assert_eq!(get(&of(1), &visible), [miss - fill, miss - fill, 0.0]);
    // One entry is in use for the time of one miss.
    let alone = of(1);
    assert_eq!(
        get(&alone, &["time_ns", "write_buffer_occupancy"]),
        [miss, 1.0 / 24.0]
    );
}

/// Without a write buffer each store takes as long as a load.
#[test]
fn without_a_write_buffer_a_core_waits_for_its_stores() {
    let of = |access| {
        let mut setup = one_core(access, 100, 100);
        setup.platform.cores.write_buffer.value = 0;
        run(&setup).unwrap()
    };
    let (stores, loads) = (of(Access::Store), of(Access::Load));
    assert_eq!(stores.get("time_ns"), loads.get("time_ns"));
    for which in ["mean", "p50", "p99", "max"] {
        let of = |ended: &Statistics, kind: &str| ended.get(&format!("{kind}_latency_{which}_ns"));
        assert_eq!(of(&stores, "store"), of(&loads, "load"), "{which}");
        let none = [
            of(&stores, "load"),
            of(&loads, "store"),
            of(&loads, "store_visible"),
        ];
        assert_eq!(none, [Some(0.0); 3], "{which}");
    }
}

/// The first store to a line is sent at once; all later ones during its flight coalesce in a second entry.
#[test]
fn stores_to_a_line_join() {
    let statistics = run(&one_core(Access::Store, 1, 20)).unwrap();
    let names = [
        "accesses",
        "stores_coalesced",
        "stalls_write_buffer",
        "hits",
    ];
    // The stores of the second entry hit in the cache.
    assert_eq!(get(&statistics, &names), [20.0, 18.0, 0.0, 19.0]);
    assert_eq!(statistics.sent("ReadExclusive"), Some(1));
}

/// A core that loads its own last store finds it in its write buffer, before it is performed.
#[test]
fn loads_find_their_own_stores() {
    let mut setup = one_core(Access::Store, 1, 2000);
    setup.workload.mix = vec![(Access::Store, 1), (Access::Load, 1)];
    let statistics = run(&setup).unwrap();
    let found = statistics.get("loads_forwarded").unwrap();
    assert!(found > 0.0);
    let mut without = setup.clone();
    without.platform.cores.write_buffer.value = 0;
    let without = run(&without).unwrap();
    assert_eq!(without.get("loads_forwarded"), Some(0.0));
    assert_eq!(without.get("accesses"), statistics.get("accesses"));
    assert!(without.get("time_ns") > statistics.get("time_ns"));
}

/// Ten rounds over as many lines as the L1 has: all but the first hit, at its hit latency.
#[test]
fn l1_hits_on_repeated_reads() {
    let mut setup = one_core(Access::Load, 16, 160);
    setup.platform.cores.l1.value = 16 * LINE;
    let statistics = run(&setup).unwrap();
    let names = ["l1_hits", "l1_hit_ratio", "hits", "accesses"];
    assert_eq!(get(&statistics, &names), [144.0, 0.9, 0.0, 160.0]);
    assert_eq!(statistics.sent("ReadShared"), Some(16));
    let median = |statistics: &Statistics| statistics.get("load_latency_p50_ns").unwrap();
    assert!((median(&statistics) / 1.5 - 1.0).abs() < 0.016);
    // One line more than the L1 has, in order: each has been evicted before its next use.
    let mut setup = one_core(Access::Load, 17, 170);
    setup.platform.cores.l1.value = 16 * LINE;
    let statistics = run(&setup).unwrap();
    assert_eq!(get(&statistics, &names), [0.0, 0.0, 153.0, 170.0]);
    let hit = setup.platform.cache.request.value + setup.platform.cache.hit.value;
    assert!((median(&statistics) * 1000.0 / hit as f64 - 1.0).abs() < 0.016);
}

/// An L1 has no line that its shared cache has lost: with a shared cache of two lines, no read hits in the L1.
#[test]
fn shared_cache_eviction_invalidates_the_l1() {
    let mut setup = one_core(Access::Load, 8, 80);
    setup.platform.cores.l1.value = 16 * LINE;
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
        let mut setup = one_core(Access::Load, 1, 4000);
        setup.workload.mix = vec![(Access::Store, 1), (Access::Load, 3)];
        setup.workload.cores = cores;
        setup.platform.cores.l1.value = 16 * LINE;
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
    for name in common::single_cache_platforms() {
        let of = |l1, cores| {
            let mut platform = Platform::shipped(name).unwrap();
            assert_eq!(platform.cores.l1.value, 0);
            platform.cores.l1.value = l1;
            let lines = 4_000 * cores;
            let mut workload = Workload::pass(Pattern::Chunked, Access::Load, lines, cores, 1);
            workload.prefetch = if cores == 1 { 0 } else { 8 };
            run(&Setup::new(protocol("eci"), platform, workload).unwrap()).unwrap()
        };
        for cores in [1, 48] {
            let (without, with) = (of(0, cores), of(32 << 10, cores));
            assert_eq!(with.get("l1_hits"), Some(0.0));
            assert_eq!(with.messages, without.messages);
            if cores == 1 {
                assert_eq!(with.get("time_ns"), without.get("time_ns"));
            }
        }
    }
}

#[test]
fn sizes_that_fit_no_lines_are_refused_by_name() {
    let refused = |change: &dyn Fn(&mut Platform)| {
        let mut setup = one_core(Access::Load, 1, 1);
        change(&mut setup.platform);
        run(&setup).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&|platform| platform.cores.write_buffer.value = 100),
        "cores.write_buffer must be a multiple of a line of 128B, not 100B"
    );
    assert_eq!(
        refused(&|platform| platform.cores.l1.value = 3 << 10),
        "cores.l1 must be 0B or a power of two times 2KiB, not 3KiB"
    );
}
