//! Latency breakdown and traces of two spaces.

use super::*;
use cohkit_sim::attribution::Part;
use cohkit_sim::simulation::{play_watched, trace};
use cohkit_timeline::{Filter, Side};

/// The latency breakdown covers each space. Its parts agree with the measured latencies, and enabling it changes no
/// result.
#[test]
fn latency_breakdown_covers_both_spaces() {
    let mut access_counts = [0; 2];
    for seed in seeds(12) {
        let setup = two_space_setup(Arc::new(random_accesses(seed)), seed);
        let by_space = |mut statistics: Statistics| {
            let host = statistics.host.take().expect("host space");
            [statistics, *host]
        };
        let plain = by_space(play_or_panic(&setup).statistics());
        let watched = play_watched(&setup, None, &mut |_| true);
        let watched = by_space(watched.expect("run without violation").statistics);
        for ((mut watched, plain), count) in watched.into_iter().zip(plain).zip(&mut access_counts)
        {
            let explanation = watched
                .explanation
                .take()
                .expect("recording enabled in the run");
            let parts = Part::ALL.iter().map(|&part| explanation.of_part(part));
            assert_eq!(parts.sum::<u128>(), explanation.latency, "seed {seed}");
            let mean = explanation.latency as f64 / explanation.accesses as f64 / 1000.0;
            assert_eq!(plain.get("latency_mean_ns"), Some(mean), "seed {seed}");
            let slowest = explanation.slowest.as_ref().expect("slowest access");
            let max_latency = slowest.latency() as f64 / 1000.0;
            assert_eq!(
                plain.get("latency_max_ns"),
                Some(max_latency),
                "seed {seed}"
            );
            assert_eq!(slowest.spent(|_| true), slowest.latency(), "seed {seed}");
            assert_eq!(
                format!("{watched:?}"),
                format!("{plain:?}"),
                "seed {seed}: asking changes what is measured"
            );
            *count += explanation.accesses;
        }
    }
    assert!(
        access_counts.iter().all(|&accesses| accesses > 1000),
        "{access_counts:?}"
    );
    let setup = two_space_setup(Arc::new(random_accesses(1)), 1);
    let result = play_watched(&setup, Some(&Filter::default()), &mut |_| true);
    let statistics = result.expect("run without violation").statistics;
    let explained_accesses = |statistics: &Statistics| {
        let explanation = statistics.explanation.as_ref();
        explanation.map_or(0, |explanation| explanation.accesses)
    };
    let host = statistics
        .host
        .as_ref()
        .map_or(0, |host| explained_accesses(host));
    let timeline = statistics
        .timeline
        .as_ref()
        .expect("recording enabled in the run");
    assert_eq!(timeline.accesses, explained_accesses(&statistics) + host);
}

/// The trace of a line of either space conforms to the tables of its own protocol, and rarely to those of the other.
#[test]
fn lines_of_both_spaces_are_traced() {
    let mut refused = 0;
    for seed in seeds(6) {
        let setup = two_space_setup(Arc::new(random_accesses(seed)), seed);
        let host = setup.host.as_ref().expect("host space");
        let device = (&setup.protocol, &setup.home);
        let host = (&host.protocol, &host.home);
        for (side, own_tables, other_tables) in
            [(Side::Device, device, host), (Side::Host, host, device)]
        {
            let (_, sequence) = trace(&setup, side, 0).expect("run without violation");
            let verdict = cohkit_trace::judge(own_tables.0, own_tables.1, &sequence, true);
            let summary =
                verdict.unwrap_or_else(|error| panic!("seed {seed}, {side:?}: {error:?}"));
            assert!(summary.rows > 20, "{summary:?}");
            // Both protocols have messages of the same names.
            let other_verdict =
                cohkit_trace::judge(other_tables.0, other_tables.1, &sequence, true);
            refused += u32::from(other_verdict.is_err());
        }
    }
    assert!(refused > 6, "{refused}");
}
