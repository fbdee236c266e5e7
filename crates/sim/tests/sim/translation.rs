//! Virtual addresses: the cost of translations, and the check that no translation is used after its page has been
//! unmapped.

use cohkit_testing::setups;

use cohkit_protocol::controller::Access;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::kernel::NANOSECOND;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::{Memory, Platform, Translation};
use cohkit_sim::simulation::{run, Setup};
use cohkit_units::Quantity;
use setups::{protocol, seeds};

fn quantity(value: u64) -> Quantity {
    Quantity::given(value, "a test")
}

/// Returns a translation with short latencies; other quantities have their defaults.
fn translation() -> Translation {
    let mut quantities = Translation::new();
    quantities.enabled = quantity(1);
    quantities.ats_latency = quantity(20 * NANOSECOND);
    quantities.iommu_tlb_latency = quantity(5 * NANOSECOND);
    quantities.atc_hit_latency = quantity(2 * NANOSECOND);
    quantities
}

/// Lines of 64 bytes: a page of 4 KiB has 64 of them.
fn setup(name: &str, remotes: u16, workload: Workload, translation: Translation) -> Setup {
    let mut platform = Platform::torture(remotes);
    platform.lines = platform.lines.max(workload.lines);
    platform.cache.translation = Some(translation);
    Setup::new(protocol(name), platform, workload).unwrap()
}

#[test]
fn no_access_uses_an_invalidated_translation() {
    let mut sums = [0.0; 3];
    let mut runs = 0.0;
    for seed in seeds(1000) {
        let name = ["msi", "mesi", "moesi", "eci"][(seed % 4) as usize];
        let remotes = match name {
            "eci" => 1,
            _ => 1 + (seed / 4 % 3) as u16,
        };
        let mut quantities = translation();
        quantities.atc_entries = quantity(1 + seed % 5);
        quantities.iommu_tlb_entries = quantity(1 + seed % 3);
        quantities.max_outstanding = quantity(1 + seed % 4);
        quantities.jitter = quantity(seed % 7 * 40 * NANOSECOND);
        quantities.invalidation_interval = quantity((400 + seed % 11 * 60) * NANOSECOND);
        let (lines, outstanding) = (64 * (1 + (seed % 6) as u32), 1 + (seed % 5) as u32);
        let cores = u32::from(remotes) * 2;
        let mut workload = Workload::pass(Pattern::Random, Access::Load, lines, cores, outstanding);
        workload.mix.push((Access::Store, 1));
        workload.accesses = 300;
        let mut setup = setup(name, remotes, workload, quantities);
        (setup.seed, setup.oracle) = (seed, Level::Bytes);
        let statistics = run(&setup).unwrap_or_else(|failure| {
            panic!(
                "COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim translation::\n{failure}"
            )
        });
        assert_eq!(statistics.get("accesses"), Some(300.0), "{seed}");
        let counts = ["hits", "misses", "invalidations"];
        for (sum, counter) in sums.iter_mut().zip(counts) {
            *sum += statistics.get(&format!("translation_{counter}")).unwrap();
        }
        runs += 1.0;
    }
    assert!(sums.iter().all(|&sum| sum > 5.0 * runs), "{sums:?}");
}

/// A core that makes one access after the other waits for its translation for the sum of paths, look-ups and table
/// reads.
#[test]
fn translation_latency_is_the_sum_of_its_parts() {
    for (page, pages, tables) in [
        (4 << 10, 8.0, 4.0),
        (64 << 10, 1.0, 4.0),
        (2 << 20, 1.0, 3.0),
    ] {
        let workload = Workload::pass(Pattern::Sequential, Access::Load, 64 * 8, 1, 1);
        let mut quantities = translation();
        quantities.page_size = quantity(page);
        let mut translated = setup("msi", 1, workload, quantities);
        translated.platform.link.jitter = quantity(0);
        // On-chip memory, whose latency does not depend on earlier operations.
        let Memory::Bram(bram) = &translated.platform.memory else {
            panic!("on-chip memory")
        };
        let memory = bram.latency.value + bram.bandwidth.time_of(64);
        let statistics = run(&translated).unwrap();
        translated
            .platform
            .cache
            .translation
            .as_mut()
            .unwrap()
            .enabled = quantity(0);
        let untranslated = run(&translated).unwrap();
        assert_eq!(untranslated.get("translation_hits"), None);
        assert_eq!(statistics.get("translation_misses"), Some(pages));
        assert_eq!(
            statistics.get("translation_table_reads"),
            Some(pages * tables)
        );
        let total_latency = |statistics: &cohkit_sim::statistics::Statistics| {
            statistics.get("latency_mean_ns").unwrap() * statistics.get("accesses").unwrap()
        };
        // In nanoseconds: look-up in the device's translation cache, path to the IOMMU and back (20 each way), look-up
        // in the IOMMU's TLB, and one read of memory for each level of page tables.
        let miss_latency = 2.0 + 40.0 + 5.0 + tables * memory as f64 / 1000.0;
        let cost = total_latency(&statistics) - total_latency(&untranslated);
        // Each of the 512 accesses has a look-up of 2 ns; the first access of each page also waits for the miss.
        let expected = 512.0 * 2.0 + pages * miss_latency;
        assert!(
            (cost - expected).abs() < 0.01 * expected,
            "{page}: {cost}, {expected}"
        );
    }
}

/// Two passes over six pages with four entries: with full associativity, each page is evicted before it is used again.
/// Direct-mapped, pages 2 and 3 are alone in their sets and stay.
#[test]
fn sets_of_translation_caches_keep_pages_without_conflicts() {
    for (ways, misses) in [(0, 12.0), (4, 12.0), (2, 12.0), (1, 10.0)] {
        let mut workload = Workload::pass(Pattern::Sequential, Access::Load, 64 * 6, 1, 1);
        workload.accesses = 2 * 64 * 6;
        let mut quantities = translation();
        quantities.atc_entries = quantity(4);
        quantities.atc_ways = quantity(ways);
        quantities.iommu_tlb_entries = quantity(4);
        quantities.iommu_tlb_ways = quantity(ways);
        let statistics = run(&setup("msi", 1, workload.clone(), quantities.clone())).unwrap();
        assert_eq!(statistics.get("translation_misses"), Some(misses), "{ways}");
        // The IOMMU's TLB of the host sees the misses of the device only, in the same order.
        quantities.atc_entries = quantity(1);
        quantities.atc_ways = quantity(1);
        let statistics = run(&setup("msi", 1, workload, quantities)).unwrap();
        assert_eq!(statistics.get("translation_misses"), Some(12.0), "{ways}");
        assert_eq!(
            statistics.get("translation_table_reads"),
            Some(4.0 * misses),
            "{ways}"
        );
    }
}

/// If pages are unmapped faster than they can be translated, no access is performed, and the report says why.
#[test]
fn starved_translation_is_reported() {
    let workload = Workload::pass(Pattern::Sequential, Access::Load, 64, 1, 1);
    let mut quantities = translation();
    quantities.invalidation_interval = quantity(1);
    let failure =
        run(&setup("msi", 1, workload, quantities)).expect_err("failure without progress");
    let report = failure.to_string();
    let expected = "1 of its accesses wait for translations";
    assert!(report.contains(expected), "{report}");
}

#[test]
fn writes_to_read_only_pages_fault() {
    let workload = Workload::pass(Pattern::Sequential, Access::Store, 64 * 8, 1, 2);
    let mut quantities = translation();
    // Two of the eight pages, each with 64 lines, are read-only: 128 of the 512 stores fault.
    quantities.read_only_one_in = quantity(4);
    let statistics = run(&setup("msi", 1, workload, quantities)).unwrap();
    assert_eq!(statistics.get("translation_faults"), Some(128.0));
    assert_eq!(statistics.get("accesses"), Some(384.0));
}

/// The absence of a page is not cached: each access requests it again, and other pages are requested once.
#[test]
fn absent_pages_are_requested_again() {
    let workload = Workload::pass(Pattern::Sequential, Access::Load, 64 * 8, 1, 1);
    let mut quantities = translation();
    // Two of the eight pages are absent: each of their 128 accesses misses and faults. The other six pages miss once.
    quantities.absent_one_in = quantity(4);
    let statistics = run(&setup("msi", 1, workload, quantities)).unwrap();
    assert_eq!(statistics.get("translation_faults"), Some(128.0));
    assert_eq!(statistics.get("translation_misses"), Some(128.0 + 6.0));
    assert_eq!(
        statistics.get("translation_table_reads"),
        Some(4.0 * (128.0 + 6.0))
    );
    assert_eq!(statistics.get("accesses"), Some(384.0));
}

/// Prefetches for writing to read-only pages are dropped without a report.
#[test]
fn refused_prefetches_are_dropped_silently() {
    let mut workload = Workload::pass(Pattern::Sequential, Access::Store, 64 * 8, 1, 1);
    workload.write_prefetches = 1000;
    let mut quantities = translation();
    // Four of the eight pages are read-only: 256 of the 512 stores fault.
    quantities.read_only_one_in = quantity(2);
    let statistics = run(&setup("msi", 1, workload, quantities)).unwrap();
    assert_eq!(statistics.get("translation_faults"), Some(256.0));
    assert_eq!(statistics.get("accesses"), Some(256.0));
    // All 512 stores and many prefetches hit.
    assert!(statistics.get("translation_hits") > Some(700.0));
}

#[test]
fn untranslatable_setups_are_rejected_by_name() {
    type Change = fn(&mut Setup);
    let changes: [(&str, Change); 3] = [
        ("with write buffers", |setup| {
            setup.platform.cores.write_buffer = quantity(64);
        }),
        ("with L1s", |setup| {
            setup.platform.cores.l1_size = quantity(64 * 2)
        }),
        (
            "translation.page_size is one of 4KiB, 64KiB, 2MiB, 1GiB, not 8KiB",
            |setup| {
                setup.platform.cache.translation.as_mut().unwrap().page_size = quantity(8 << 10);
            },
        ),
    ];
    for (expected, change) in changes {
        let workload = Workload::pass(Pattern::Sequential, Access::Load, 8, 1, 1);
        let mut setup = setup("msi", 1, workload, translation());
        setup.platform.cores.l1_ways = quantity(2);
        change(&mut setup);
        let failure = run(&setup).unwrap_err().to_string();
        assert!(failure.contains(expected), "{failure}");
    }
}
