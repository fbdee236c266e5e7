//! Output of `cohkit link`: driven ends reach the rates of the formulas.

use cohkit_link::cxl::Flits;
use cohkit_link::rates::{Flow, Kind, LinkConfig};

/// Asserts that all measured rates are within 0.3 % of their formulas, without a resent unit.
fn assert_rates_match_formulas(config: &LinkConfig) {
    let rates = config.rates();
    assert!(rates
        .steps
        .is_sorted_by(|previous, next| previous.1 > next.1));
    for flow in rates.flows {
        let error = (flow.run / flow.formula - 1.0).abs();
        assert!(error < 0.003, "{config:?}: {flow:?}");
        assert_eq!(flow.replayed, 0.0);
    }
}

#[test]
fn link_rates_match_their_formulas() {
    for (_, kind) in Kind::ALL {
        for &payload in kind.payloads() {
            assert_rates_match_formulas(&LinkConfig {
                payload,
                ..LinkConfig::new(kind)
            });
        }
    }
}

#[test]
fn degraded_link_rate_follows_its_lanes() {
    for (_, kind) in Kind::ALL {
        for lanes in [1, 5] {
            assert_rates_match_formulas(&LinkConfig {
                lanes,
                ..LinkConfig::new(kind)
            });
        }
    }
}

/// With a long delay, credits limit the data per round trip: 16 KiB of writes, and 64 read requests of 512 bytes. No
/// packet is resent without a loss.
#[test]
fn throughput_is_credits_per_round_trip() {
    for (kind, delay) in [(Kind::Pcie(8), 5000), (Kind::Pcie(32), 3000)] {
        let config = LinkConfig {
            delay,
            ..LinkConfig::new(kind)
        };
        for flow in config.rates().flows {
            let room = if flow.name == "reads" {
                64 * 512
            } else {
                16 << 10
            };
            let limit = f64::from(room) / f64::from(2 * delay) * 1e9;
            assert!(
                flow.run < 1.005 * limit && flow.run > 0.95 * limit,
                "{limit}: {flow:?}"
            );
            assert_eq!(flow.replayed, 0.0);
        }
    }
    let ccix = LinkConfig {
        delay: 5000,
        ..LinkConfig::new(Kind::Ccix)
    };
    for flow in ccix.rates().flows {
        assert_eq!(flow.replayed, 0.0, "{flow:?}");
    }
}

/// First kind of traffic, in both directions.
fn first_bidirectional_flow(config: &LinkConfig) -> Flow {
    let mut flows = config.rates().flows.into_iter();
    flows
        .find(|flow| flow.is_bidirectional)
        .expect("each link has one")
}

/// Credits bound the data per round trip on long links; on noisy links, resent units cost bandwidth.
#[test]
fn long_links_are_credit_bound_and_noisy_ones_replay_bound() {
    for kind in [Kind::Eci, Kind::Pcie(16), Kind::Cxl(Flits::Small)] {
        let config = LinkConfig::new(kind);
        let long_link = first_bidirectional_flow(&LinkConfig {
            delay: 1000,
            ..config
        });
        assert!(long_link.run < 0.6 * long_link.formula, "{long_link:?}");
        let noisy = first_bidirectional_flow(&LinkConfig {
            errors: 1e-6,
            ..config
        });
        assert!(noisy.replayed > 0.5, "{noisy:?}");
        assert!(noisy.run < 0.995 * noisy.formula, "{noisy:?}");
    }
}
