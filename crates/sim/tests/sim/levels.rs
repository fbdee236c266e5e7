//! Two levels of caches in time: random traffic on small caches that evict each other's lines; the oracle checks every
//! byte.

use cohkit_testing::setups;

use cohkit_base::sequence::Action;
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Protocol;
use cohkit_sim::agents::device::DeviceWorkload;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::explain::FailureKind;
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{home, run, LowerLevelSetup, RunError, Setup};
use cohkit_sim::statistics::Statistics;
use setups::{parse, protocol, protocols, seeds, source, torture};

/// Returns the lower level of a machine: its protocol, with `caches` caches below each of the upper level.
fn lower_level(text: &str, caches: u16) -> LowerLevelSetup {
    let protocol = parse(text);
    LowerLevelSetup {
        home: home(&protocol, caches).expect("protocol with a home"),
        platform: Platform::torture(caches),
        protocol,
    }
}

/// Returns a short run that makes races likely, with `caches` upper caches and `lower_caches` lower ones each.
fn setup(upper: Protocol, text: &str, [caches, lower_caches]: [u16; 2], seed: u64) -> Setup {
    let mut setup = torture(upper, caches, seed).expect("protocol with a home");
    setup.device = DeviceWorkload::default();
    setup.platform = Platform::torture(caches);
    let workload = &mut setup.workload;
    workload.lines = 1 + (5 * seed % 16) as u32;
    workload.cores = 2 * u32::from(caches * lower_caches);
    workload.mix = vec![(Access::Load, 8), (Access::Store, 8), (Access::Evict, 2)];
    setup.below = Some(Box::new(lower_level(text, lower_caches)));
    setup
}

/// Returns the text of the L1 protocol, which runs on the lower level.
fn l1_source() -> String {
    source("mesi-l1")
}

fn statistic(statistics: &Statistics, name: &str) -> f64 {
    statistics.get(name).expect("known statistic")
}

/// Returns the L1 protocol with the line size of `upper`.
fn l1_source_for(upper: &Protocol) -> String {
    let size = format!("line {} bytes", upper.line_bytes);
    l1_source().replace("line 64 bytes", &size)
}

#[test]
fn two_levels_stay_coherent_under_evictions() {
    let (mut recalls, mut evictions) = (0.0, 0);
    let mut rejected = Vec::new();
    for name in protocols() {
        let upper = protocol(&name);
        let shapes = [[1, 2], [2, 1], [2, 2], [3, 2], [4, 4]];
        let runs = shapes
            .into_iter()
            .flat_map(|shape| seeds(4).map(move |seed| (shape, seed)));
        for (shape, seed) in runs {
            let setup = setup(upper.clone(), &l1_source_for(&upper), shape, seed);
            let statistics = match run(&setup) {
                Ok(statistics) => statistics,
                Err(RunError::Setup(_)) => {
                    rejected.push(name);
                    break;
                }
                Err(failure) => panic!(
                    "COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim levels::two_levels_stay_coherent_under_evictions\n{name} {shape:?}\n{failure}"
                ),
            };
            let access_counts =
                ["accesses", "accesses_skipped"].map(|name| statistic(&statistics, name));
            assert_eq!(
                access_counts.iter().sum::<f64>(),
                setup.workload.accesses as f64
            );
            assert!(
                access_counts[1] < access_counts[0] / 10.0,
                "{access_counts:?}"
            );
            recalls += statistic(&statistics, "local_operations_acknowledged");
            let upper_statistics = statistics.upper_level.expect("statistics of both levels");
            let puts = ["PutS", "PutE", "PutM"];
            evictions += puts
                .iter()
                .filter_map(|put| upper_statistics.sent(put))
                .sum::<u64>();
        }
    }
    // The caches of these protocols send stores to the home, so they cannot perform stores of the level below.
    // `self-invalidate` also has bulk transitions.
    let unsupported = ["self-invalidate", "write-through", "write-through-two-step"];
    assert_eq!(rejected, unsupported);
    assert!(
        recalls > 10_000.0 && evictions > 3_000,
        "{recalls} {evictions}"
    );
}

/// Bit errors occur on the links of both levels. Retransmissions are counted for each level, over all lower machines.
#[test]
fn framed_links_of_both_levels_lose_nothing() {
    let mut replayed = [0.0; 2];
    for seed in seeds(6) {
        let mut setup = setup(protocol("mesi"), &l1_source(), [2, 2], seed);
        let lower = setup.below.as_mut().expect("lower level");
        for platform in [&mut setup.platform, &mut lower.platform] {
            for (name, value) in [
                ("link.layer", "ccix"),
                ("link.bit_errors_per_1e15", "20000000000"),
            ] {
                platform.set(name, value).expect("known quantity");
            }
        }
        let statistics = run(&setup).unwrap_or_else(|failure| {
            panic!(
                "COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim levels::framed\n{failure}"
            )
        });
        let upper_statistics = statistics
            .upper_level
            .as_deref()
            .expect("statistics of both levels");
        replayed[0] += statistic(upper_statistics, "link_units_replayed");
        replayed[1] += statistic(&statistics, "link_units_replayed");
    }
    assert!(replayed.iter().all(|count| *count > 20.0), "{replayed:?}");
}

#[test]
fn equal_seeds_give_equal_statistics() {
    let statistics_text = |seed| {
        let setup = setup(protocol("mesi"), &l1_source(), [3, 2], seed);
        format!("{:?}", run(&setup).expect("run without violation"))
    };
    assert_eq!(statistics_text(7), statistics_text(7));
    assert_ne!(statistics_text(7), statistics_text(8));
}

/// A read that misses both levels takes the sum of two misses; the upper cache replaces the memory path of the lower
/// level.
#[test]
fn read_through_both_levels_takes_the_sum_of_its_parts() {
    let mut platform = Platform::shipped("clusters-4x4").expect("shipped platform");
    // A row is closed before the next read.
    platform
        .set("dram.row_idle_timeout", "1ns")
        .expect("known quantity");
    let below = platform.lower().expect("platform with two levels");
    let workload = Workload {
        accesses: 200,
        ..Workload::pass(Pattern::Random, Access::Load, 1 << 22, 1, 1)
    };
    let mut setup =
        Setup::new(protocol("mesi"), platform.clone(), workload).expect("protocol with a home");
    setup.below = Some(Box::new(LowerLevelSetup {
        platform: below.clone(),
        ..lower_level(&l1_source(), below.remotes)
    }));
    let statistics = run(&setup).expect("run without violation");
    let parts = [platform, below].map(|platform| {
        let parts = setups::read_latency(&platform, 64);
        // In these protocols memory has no delay in the controller's terms, so a home sends only once.
        parts.iter().map(|part| part.1).sum::<u64>() - platform.home.latency.value
    });
    for latency in ["latency_mean_ns", "latency_max_ns"] {
        let measured = (statistic(&statistics, latency) * 1000.0).round();
        assert_eq!(
            measured as u64,
            parts.iter().sum::<u64>(),
            "{latency}, {parts:?}"
        );
    }
}

/// A device behind the upper home locks lines as usual, and writes under its locks.
#[test]
fn upper_device_accesses_lines_cached_at_both_levels() {
    for seed in seeds(8) {
        let text = l1_source_for(&protocol("eci"));
        let mut setup = setup(protocol("eci"), &text, [2, 2], seed);
        setup.device = torture(protocol("eci"), 2, seed)
            .expect("protocol with a home")
            .device;
        let statistics = run(&setup).unwrap_or_else(|failure| {
            panic!("COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim levels::upper_device_accesses\n{failure}")
        });
        let upper_statistics = statistics.upper_level.expect("statistics of both levels");
        let local_counts = ["local_operations_acknowledged", "local_operations_rejected"]
            .map(|name| statistic(&upper_statistics, name));
        assert_eq!(
            local_counts.iter().sum::<f64>(),
            setup.device.operations as f64
        );
        assert!(local_counts[0] > local_counts[1], "{local_counts:?}");
    }
}

/// Returns the kinds of failures that one change of the lower protocol causes within some seeds, each once if they are
/// consecutive.
fn failures_after_change(from: &str, to: &str) -> Vec<FailureKind> {
    // A system with a backing permission rejects the change itself; without it, only the simulation can detect the
    // fault.
    let text = l1_source().replace("; parent any }", " }");
    assert_eq!(text.matches(from).count(), 1, "{from}");
    let text = text.replace(from, to);
    let kinds =
        (0..40).filter_map(
            |seed| match run(&setup(protocol("mesi"), &text, [2, 2], seed)) {
                Ok(_) => None,
                Err(RunError::Failure(failure)) => Some(failure.kind),
                Err(other) => panic!("{other}"),
            },
        );
    let mut kinds: Vec<FailureKind> = kinds.collect();
    kinds.dedup();
    kinds
}

/// Each seeded fault lets the lower home grant, keep or lose a permission or data in conflict with the upper cache.
#[test]
fn lower_home_exceeding_upper_permission_is_detected() {
    use FailureKind::{DataValue, Inclusion, Meaningless, SingleWriter};
    for (from, to, expected) in [
        // A permission that the cache above does not have, obtained by the first to take a line.
        (
            "GetS if memory writes",
            "GetS if count(sharers) == 0",
            Inclusion,
        ),
        // Acknowledged without asking any cache: to return the line, or to stop writing it.
        (
            "send Inv to sharers, left := count(sharers), sharers := {}    | RI",
            "acknowledge clean_invalidate, sharers := {} | LI",
            SingleWriter,
        ),
        (
            "send Share to owner                                           | RS",
            "acknowledge clean, sharers := { owner }, owner := none | LS",
            Inclusion,
        ),
        // The write of an L1 is lost on its way up.
        (
            "write, left := 0, acknowledge",
            "left := 0, acknowledge",
            DataValue,
        ),
        // Nothing prevents a new request for the line before it is returned.
        (
            "local clean_invalidate lock",
            "local clean_invalidate",
            Meaningless,
        ),
    ] {
        let kinds = failures_after_change(from, to);
        assert!(kinds.contains(&expected), "{from}: {kinds:?}");
    }
}

#[test]
fn failure_chart_has_the_agents_of_both_levels() {
    let text = l1_source().replace("write, left := 0, acknowledge", "left := 0, acknowledge");
    let failure =
        (0..40).find_map(
            |seed| match run(&setup(protocol("mesi"), &text, [2, 2], seed)) {
                Err(RunError::Failure(failure)) => Some(failure),
                _ => None,
            },
        );
    let failure = failure.expect("failure for a lost L1 write");
    let sequence = &failure.sequence;
    let steps = sequence.steps.iter();
    let states = steps.filter_map(|step| match &step.action {
        Action::Becomes { state } => Some((sequence.agents[step.agent].as_str(), state.as_str())),
        _ => None,
    });
    let states: Vec<_> = states.collect();
    // An L1 had the line modified, and its home locks it on behalf of the cache above.
    let is_modified = |&(agent, state): &(&str, &str)| agent.starts_with("l1 ") && state == "M";
    assert!(states.iter().any(is_modified), "{failure}");
    let is_recalled =
        |&(agent, state): &(&str, &str)| agent.starts_with("l2 ") && state == "RI left=1";
    assert!(states.iter().any(is_recalled), "{failure}");
    let agents: Vec<&str> = sequence.agents.iter().map(String::as_str).collect();
    let expected_agents = "cache 0, cache 1, directory, l1 0.0, l1 0.1, l2 0, l1 1.0, l1 1.1, l2 1";
    assert_eq!(agents.join(", "), expected_agents);
}
