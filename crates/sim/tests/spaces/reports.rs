//! Latency breakdown and traces of two spaces.

use super::*;
use cohkit_sim::attribution::Part;
use cohkit_sim::simulation::{play_watched, trace};
use cohkit_sim::spaces::Side;
use cohkit_sim::timeline::Filter;

/// The latency breakdown covers each space. Its parts agree with the measured latencies, and enabling it changes no
/// result.
#[test]
fn latency_breakdown_covers_both_spaces() {
    let mut told = [0; 2];
    for seed in seeds(12) {
        let setup = machine(Arc::new(mixed(seed)), seed);
        let apart = |mut of: Statistics| {
            let host = of.host.take().expect("there are two spaces");
            [of, *host]
        };
        let plain = apart(plays("latency_breakdown_covers_both_spaces", &setup).statistics());
        let watched = play_watched(&setup, None, &mut |_| true);
        let watched = apart(watched.expect("it runs").statistics);
        for ((mut its, plain), told) in watched.into_iter().zip(plain).zip(&mut told) {
            let explanation = its.explanation.take().expect("it was asked for");
            let parts = Part::ALL.iter().map(|&part| explanation.of_part(part));
            assert_eq!(parts.sum::<u128>(), explanation.latency, "seed {seed}");
            let mean = explanation.latency as f64 / explanation.accesses as f64 / 1000.0;
            assert_eq!(plain.get("latency_mean_ns"), Some(mean), "seed {seed}");
            let slowest = explanation.slowest.as_ref().expect("there are accesses");
            let most = slowest.latency() as f64 / 1000.0;
            assert_eq!(plain.get("latency_max_ns"), Some(most), "seed {seed}");
            assert_eq!(slowest.spent(|_| true), slowest.latency(), "seed {seed}");
            assert_eq!(
                format!("{its:?}"),
                format!("{plain:?}"),
                "seed {seed}: asking changes what is measured"
            );
            *told += explanation.accesses;
        }
    }
    assert!(told.iter().all(|&accesses| accesses > 1000), "{told:?}");
    let setup = machine(Arc::new(mixed(1)), 1);
    let drawn = play_watched(&setup, Some(&Filter::default()), &mut |_| true);
    let statistics = drawn.expect("it runs").statistics;
    let explained = |of: &Statistics| of.explanation.as_ref().map_or(0, |told| told.accesses);
    let host = statistics.host.as_ref().map_or(0, |host| explained(host));
    let timeline = statistics.timeline.as_ref().expect("it was asked for");
    assert_eq!(timeline.accesses, explained(&statistics) + host);
}

/// The trace of a line of either space conforms to the tables of its own protocol, and rarely to those of the other.
#[test]
fn lines_of_both_spaces_are_traced() {
    let mut refused = 0;
    for seed in seeds(6) {
        let setup = machine(Arc::new(mixed(seed)), seed);
        let host = setup.host.as_ref().expect("there are two spaces");
        let device = (&setup.protocol, &setup.home);
        let host = (&host.protocol, &host.home);
        for (side, own, other) in [(Side::Device, device, host), (Side::Host, host, device)] {
            let (_, sequence) = trace(&setup, side, 0).expect("it runs");
            let judged = cohkit_trace::judge(own.0, own.1, &sequence, true);
            let told = judged.unwrap_or_else(|wrong| panic!("seed {seed}, {side:?}: {wrong:?}"));
            assert!(told.rows > 20, "{told:?}");
            // Both protocols have messages of the same names.
            let others = cohkit_trace::judge(other.0, other.1, &sequence, true);
            refused += u32::from(others.is_err());
        }
    }
    assert!(refused > 6, "{refused}");
}
