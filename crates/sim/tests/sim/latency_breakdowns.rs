//! Latency breakdown: its parts add up to the latency, to the picosecond, and it names the bottleneck of a machine.

use cohkit_testing::setups;

use cohkit_protocol::controller::Access;
use cohkit_sim::attribution::{Explanation, Part, Step, Transaction};
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::platform::{JedecDram, Memory, Platform, Switch};
use cohkit_sim::simulation::{explain_while, run, Setup};
use cohkit_sim::statistics::{Histogram, Statistics};
use cohkit_units::Quantity;
use std::collections::BTreeMap;

/// Runs a setup, and returns its statistics and the latency breakdown of each access.
fn run_with_breakdown(setup: &Setup) -> (Statistics, Explanation) {
    let mut statistics = explain_while(setup, true, &mut |_| true).expect("run without violation");
    let explanation = statistics
        .explanation
        .take()
        .expect("recording enabled in the run");
    (statistics, *explanation)
}

/// Checks that the steps of an access are contiguous from its issue to its completion.
fn check_contiguous(transaction: &Transaction, label: &str) {
    let mut time = transaction.issued;
    for segment in &transaction.segments {
        assert_eq!(segment.begin, time, "{label}: {transaction:?}");
        assert!(segment.end > time, "{label}: {transaction:?}");
        time = segment.end;
    }
    assert_eq!(time, transaction.done, "{label}: {transaction:?}");
    assert_eq!(
        transaction.spent(|_| true),
        transaction.latency(),
        "{label}"
    );
}

/// Checks that each access has its measured latency, and that the breakdown does not affect the statistics.
fn check(setup: &Setup, label: &str) -> Explanation {
    let (statistics, explanation) = run_with_breakdown(setup);
    let plain = run(setup).expect("run without violation");
    assert_eq!(
        format!("{statistics:?}"),
        format!("{plain:?}"),
        "{label}: asking changes what is measured"
    );
    check_parts(&explanation, &plain, label);
    explanation
}

/// Checks that the parts agree with the statistics.
fn check_parts(explanation: &Explanation, plain: &Statistics, label: &str) {
    let mut latencies = Histogram::default();
    let [mut loads, mut stores] = [(); 2].map(|()| Histogram::default());
    for transaction in &explanation.transactions {
        check_contiguous(transaction, label);
        latencies.record(transaction.spent(|_| true));
        let kind = match transaction.access {
            access if !access.about_line() => continue,
            access if access.writes() && access != Access::Atomic => &mut stores,
            _ => &mut loads,
        };
        kind.record(transaction.spent(|_| true));
    }
    assert_eq!(explanation.accesses, latencies.count(), "{label}");
    let measured = [
        ("latency_mean_ns", latencies.mean() / 1000.0),
        ("latency_max_ns", latencies.max() as f64 / 1000.0),
        ("load_latency_mean_ns", loads.mean() / 1000.0),
        ("load_latency_p50_ns", loads.percentile(0.5) as f64 / 1000.0),
        ("store_latency_mean_ns", stores.mean() / 1000.0),
        (
            "store_latency_p99_ns",
            stores.percentile(0.99) as f64 / 1000.0,
        ),
        ("store_latency_max_ns", stores.max() as f64 / 1000.0),
        // No store is lost, and none becomes visible twice.
        ("stores_visible", stores.count() as f64),
    ];
    for (name, expected) in measured {
        assert_eq!(plain.get(name), Some(expected), "{label}: {name}");
    }
    let parts: u128 = Part::ALL
        .iter()
        .map(|&part| explanation.of_part(part))
        .sum();
    assert_eq!(parts, explanation.latency, "{label}");
    assert_eq!(parts, latencies.total(), "{label}");
    let slowest = explanation.slowest.as_ref().expect("slowest access");
    assert_eq!(slowest.latency(), latencies.max(), "{label}");
}

/// Machines with many races: write buffers, L1s, a device that locks lines, and random delays on all links.
#[test]
fn latency_parts_sum_up_for_every_access() {
    for name in setups::protocols() {
        for seed in [1, 4, 11] {
            let protocol = setups::protocol(&name);
            let Ok(setup) = setups::torture(protocol, 3, seed) else {
                continue;
            };
            check(&setup, &format!("{name}, seed {seed}"));
        }
    }
}

/// Several homes, with and without a switch, for a protocol with registers and fences; and links with few credits.
#[test]
fn latency_parts_sum_up_with_several_homes() {
    let text = include_str!("../../../../tests/homes/ordered-at-homes.coh");
    for (seed, latency) in [(2, None), (5, Some(20_000))] {
        let protocol = setups::parse(text);
        let mut platform = Platform::torture(3);
        platform.home.count = Some(Quantity::given(protocol.homes.into(), "a test"));
        platform.switch = latency.map(|latency| Switch {
            latency: Quantity::given(latency, "a test"),
        });
        let mut workload = Workload::pass(Pattern::Random, Access::Load, 5, 3, 1);
        workload.mix = vec![
            (Access::Load, 4),
            (Access::Store, 8),
            (Access::Acquire, 2),
            (Access::Release, 3),
            (Access::Fence, 1),
        ];
        workload.accesses = 600;
        let mut setup = Setup::new(protocol, platform, workload).unwrap();
        setup.seed = seed;
        check(&setup, &format!("several homes, seed {seed}"));
    }
    let mut platform = Platform::shipped("hosts-8x8").unwrap();
    platform.cache.sets.value = 4;
    platform.cache.ways.value = 4;
    platform.link.credits.value = 2;
    let mut workload = Workload::pass(Pattern::Random, Access::Load, 256, 64, 2);
    workload.mix.push((Access::Store, 1));
    workload.accesses = 5_000;
    let setup = Setup::new(setups::protocol("mesi"), platform, workload).unwrap();
    let explanation = check(&setup, "little room");
    for step in [Step::Room, Step::Ways, Step::LineAtCache, Step::ForwardWire] {
        assert!(explanation.total(step) > 0, "{step:?}");
    }
}

/// The shipped machines without changes, including framed links, a switch, translations and several kinds of agents.
#[test]
fn breakdown_of_shipped_machines_is_complete() {
    for name in Platform::shipped_names() {
        let platform = Platform::shipped(name).unwrap();
        // The breakdown does not support these.
        if platform.below.is_some() || platform.hosts.is_some() {
            continue;
        }
        let text = match name {
            "enzian-cpu-home" => "eci-near",
            "n1sdp-u280" | "n1sdp-vck5000" => "ccix",
            "peers-host-memory" => "cxl-cache",
            "hosts-8x8" | "hosts-512x8" => "back-invalidate",
            _ => "eci",
        };
        let mut workload = Workload::pass(Pattern::Random, Access::Load, 1 << 12, 8, 4);
        workload.mix.push((Access::Store, 1));
        workload.accesses = 4_000;
        let mut setup = Setup::new(setups::protocol(text), platform, workload.clone()).unwrap();
        setup.others = setup
            .platform
            .agents
            .iter()
            .map(|_| workload.clone())
            .collect();
        let explanation = check(&setup, name);
        println!("{name}: {:?}", explanation.limit);
        for resource in &explanation.resources {
            assert!(
                (0.0..=1.0).contains(&resource.utilisation),
                "{name}: {resource:?}"
            );
            assert!(
                resource.mean <= resource.utilisation,
                "{name}: {resource:?}"
            );
        }
        assert_eq!(explanation.of_part(Part::Other), 0, "{name}");
    }
}

/// Runs eight hosts close to their homes, where no component is a bottleneck, with this `change`.
fn explain_changed(change: impl FnOnce(&mut Platform, &mut Workload)) -> Explanation {
    let mut platform = Platform::shipped("hosts-8x8").unwrap();
    platform.link.latency.value = 10_000;
    platform.switch.as_mut().unwrap().latency.value = 10_000;
    platform.cores.write_buffer.value = 0;
    let mut workload = Workload::pass(Pattern::Random, Access::Load, 1 << 20, 64, 8);
    workload.accesses = 20_000;
    change(&mut platform, &mut workload);
    let setup = Setup::new(setups::protocol("mesi"), platform, workload).unwrap();
    run_with_breakdown(&setup).1
}

/// The breakdown names the only scarce resource of a machine; without one, it reports that cores wait.
#[test]
fn breakdown_names_the_scarce_resource() {
    let slow_memory = |platform: &mut Platform, _: &mut Workload| {
        if let Memory::Dram(dram) = &mut platform.memory {
            dram.bandwidth.value /= 40;
        }
    };
    type Change<'p> = &'p dyn Fn(&mut Platform, &mut Workload);
    let machines: [(&str, Change, &str, Part, f64); 7] = [
        (
            "nothing",
            &|_, _| (),
            "accesses in flight",
            Part::Memory,
            0.3,
        ),
        (
            "link.latency",
            &|platform, _| platform.link.latency.value *= 50,
            "latency of links",
            Part::Link,
            0.9,
        ),
        (
            "link.bandwidth",
            &|platform, _| platform.link.bandwidth.value /= 40,
            "links from homes",
            Part::Queue,
            0.7,
        ),
        (
            "home.occupancy",
            &|platform, _| platform.home.occupancy.value *= 200,
            "units of the home",
            Part::Queue,
            0.7,
        ),
        (
            "dram.bandwidth",
            &slow_memory,
            "buses of memory",
            Part::Queue,
            0.7,
        ),
        (
            "outstanding",
            &|_, workload| workload.outstanding = 1,
            "accesses in flight",
            Part::Memory,
            0.3,
        ),
        (
            "one line",
            &|_, workload| (workload.lines, workload.mix) = (1, vec![(Access::Store, 1)]),
            "contended lines",
            Part::Retry,
            0.5,
        ),
    ];
    for (label, change, limit, part, share) in machines {
        let explanation = explain_changed(change);
        let spent = explanation.of_part(part) as f64 / explanation.latency as f64;
        println!(
            "{label}: {:?}; {} {spent:.2}",
            explanation.limit,
            part.name()
        );
        assert_eq!(explanation.limit.name, limit, "{label}");
        assert!(explanation.limit.utilisation > 0.9, "{label}");
        assert!(spent > share, "{label}: {spent}");
    }
}

/// Removes from the steps of a single access the waits of a DRAM for clock edges and refreshes, and the precharge or
/// the activate by which the access differs from one of a closed bank.
fn separate_dram_waits(dram: &JedecDram, measured: &mut BTreeMap<&str, u64>, closed: u64) {
    let timing = &dram.timing;
    let time = |duration| dram.clocks(duration) * dram.clock_period.value;
    let waits = measured.remove(Step::MemoryBusy.name()).unwrap_or(0);
    let slots = 4 * dram.controller_clocks.value * dram.clock_period.value;
    let refresh = timing.t_rfc.value + timing.t_ras.value + timing.t_rp.value + timing.t_rcd.value;
    assert!(waits < slots + refresh, "{waits}");
    let memory = measured
        .get_mut(Step::Memory.name())
        .expect("the read of memory");
    let (hit, conflict) = (
        closed - time(timing.t_rcd.value),
        closed + time(timing.t_rp.value),
    );
    // A refresh while the access waits may change the state of the bank.
    assert!(
        (hit..=conflict).contains(memory),
        "{memory} with a closed bank {closed}"
    );
    *memory = closed;
}

/// For an otherwise undisturbed access, each step equals its platform quantity, to the picosecond.
#[test]
fn steps_are_the_quantities_of_the_platform() {
    for name in setups::single_level_platforms() {
        let platform = Platform::shipped(name).unwrap();
        let mut workload = Workload::pass(Pattern::Random, Access::Load, 1 << 23, 1, 1);
        workload.accesses = 500;
        let setup = Setup::new(setups::protocol("eci"), platform.clone(), workload).unwrap();
        let mut expected = BTreeMap::new();
        for (quantity, time) in setups::read_latency(&platform, 128) {
            let step = match quantity {
                "cache.request_latency" => Step::ToCache,
                "cache.fill_latency" => Step::FromCache,
                "link.bandwidth" => Step::Serialise,
                "link.latency" => Step::Wire,
                "switch.latency" => Step::Switch,
                "home.latency" | "home.completion_latency" => Step::Handling,
                "home.memory_round_trip" => Step::Path,
                "home.llc_latency" => Step::Memory,
                memory => {
                    assert!(memory.contains("ram."), "{memory}");
                    Step::Memory
                }
            };
            *expected.entry(step.name()).or_insert(0) += time;
        }
        expected.retain(|_, time| *time > 0);
        for transaction in run_with_breakdown(&setup).1.transactions {
            let mut measured = BTreeMap::new();
            for segment in &transaction.segments {
                *measured.entry(segment.step.name()).or_insert(0) += segment.end - segment.begin;
            }
            if let Memory::Jedec(dram) = &platform.memory {
                separate_dram_waits(dram, &mut measured, expected[Step::Memory.name()]);
            }
            assert_eq!(measured, expected, "{name}");
        }
    }
}
