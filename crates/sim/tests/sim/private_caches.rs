//! Machines of private caches, one core each: every cache executes the controller of the remote, and they share lines
//! through one home.

use cohkit_testing::setups;

use cohkit_protocol::controller::Access;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{run, Setup};
use cohkit_sim::statistics::Statistics;
use setups::{protocol, protocols, restrict_to_protocol};

/// Number of private caches, one per core.
const CACHES: u16 = 4;
/// Number of lines that all cores share.
const LINES: u32 = 64;

/// Returns the latencies of Enzian around small private caches, each with its core, its L1 and its write buffer.
fn machine(name: &str, mix: &[(Access, u32)], sets: u64) -> Setup {
    let protocol = protocol(name);
    let mut platform = Platform::shipped("enzian-dc-ddr").unwrap();
    platform.remotes = CACHES;
    platform.cache.sets.value = sets;
    platform.cache.ways.value = 2;
    platform.cores.write_buffer.value = 2 * u64::from(protocol.line_bytes);
    let workload = Workload {
        mix: mix.to_vec(),
        accesses: 20_000,
        ..Workload::pass(Pattern::Random, Access::Load, LINES, CACHES.into(), 2)
    };
    let mut setup = Setup::new(protocol, platform, workload).unwrap();
    setup.oracle = Level::Bytes;
    restrict_to_protocol(setup)
}

/// Number of sent messages with these names, together.
fn sent(statistics: &Statistics, names: &[&str]) -> u64 {
    let counts = names.iter().filter_map(|name| statistics.sent(name));
    counts.sum()
}

/// True if caches keep modified lines; otherwise every store goes to the home.
fn writes_back(name: &str) -> bool {
    protocol(name).remote.states.iter().any(|state| state.dirty)
}

/// If all lines fit and there are no stores, each cache fetches each line once and never loses it.
#[test]
fn each_cache_fetches_each_line_once() {
    for name in protocols() {
        let statistics = run(&machine(&name, &[(Access::Load, 1)], LINES.into())).unwrap();
        let expected = u64::from(LINES) * u64::from(CACHES);
        let requests = [
            "GetS",
            "ReadShared",
            "MemRdShared",
            "MemRdS",
            "RdAny",
            "Read",
            "AcquireNtoB",
        ];
        assert_eq!(sent(&statistics, &requests), expected, "{name}");
        assert_eq!(
            statistics.get("lines_cached"),
            Some(expected as f64),
            "{name}"
        );
        assert_eq!(statistics.get("accesses"), Some(20_000.0), "{name}");
    }
}

/// Caches share lines that they write, and have room for a quarter of them. Lines move between caches and to memory,
/// and every load is compared with the last write.
#[test]
fn caches_share_written_lines() {
    for name in protocols() {
        for seed in 0..3 {
            let mix = [(Access::Load, 3), (Access::Store, 1)];
            let mut setup = machine(&name, &mix, u64::from(LINES) / 8);
            setup.seed = seed;
            // Without an L1, and with one.
            setup.platform.cores.l1_size.value =
                seed % 2 * 16 * u64::from(setup.protocol.line_bytes);
            let is_coherent = setup.protocol.guarantee.coherent;
            let statistics = run(&restrict_to_protocol(setup));
            let statistics = statistics.unwrap_or_else(|failure| panic!("{name}: {failure}"));
            assert_eq!(statistics.get("accesses"), Some(20_000.0), "{name}");
            let invalidating = [
                "Inv",
                "FwdGetM",
                "Invalidate",
                "ForwardInvalid",
                "BISnpInv",
                "RdOwnNoData",
                "SnpUnique",
                "SnpInv",
                "Recall",
                "ProbeToN",
            ];
            let downgrading = [
                "FwdGetS",
                "Share",
                "Downgrade",
                "ForwardShared",
                "BISnpData",
                "RdShared",
                "SnpShared",
                "SnpData",
                "Recall",
                "ProbeToB",
            ];
            let write_backs = [
                "PutM",
                "Put",
                "VictimDirty",
                "MemDirtyEvct",
                "MemWrI",
                "WriteBack",
                "DirtyEvict",
                "WriteBackFull",
                "ReleaseData",
            ];
            let kinds = match (writes_back(&name), is_coherent) {
                (true, _) => &[&invalidating[..], &downgrading, &write_backs][..],
                (false, true) => &[&invalidating[..], &["Write"]],
                // No agent takes a line from a cache whose copies may be stale.
                (false, false) => &[&["Write"][..], &["Read"]],
            };
            for kind in kinds {
                assert!(sent(&statistics, kind) > 100, "{name}: {kind:?}");
            }
        }
    }
}

/// Invalidations by other caches cause misses; a single cache keeps its lines.
#[test]
fn lines_are_invalidated_only_by_other_caches() {
    for name in protocols().iter().filter(|name| writes_back(name)) {
        let requests = |cores| {
            let mix = [(Access::Load, 1), (Access::Store, 1)];
            let mut setup = machine(name, &mix, LINES.into());
            setup.workload.cores = cores;
            let statistics = run(&setup).unwrap();
            sent(
                &statistics,
                &[
                    "GetS",
                    "GetM",
                    "ReadShared",
                    "ReadExclusive",
                    "Upgrade",
                    "MemRdShared",
                    "MemRdS",
                    "MemRdOwn",
                    "MemRdA",
                    "MemInv",
                    "RdAny",
                    "RdOwn",
                    "ReadUnique",
                    "CleanUnique",
                    "AcquireNtoB",
                    "AcquireNtoT",
                    "AcquireBtoT",
                ],
            )
        };
        // Read, then written: at most two requests for a line.
        assert!(requests(1) <= u64::from(2 * LINES), "{name}");
        assert!(requests(4) > 5_000, "{name}: {}", requests(4));
    }
}
