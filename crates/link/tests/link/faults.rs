//! Damaged blocks, link failures, and lost credits: no message is lost, repeated or reordered on a circuit.

use crate::common;

use cohkit_base::random::SplitMix64;
use cohkit_link::bit_errors::Noise;

use cohkit_link::{Block, Control, End, Layer, Parameters, Rejection, Shortage};
use common::{message, seeds, Link, SeedReport};

#[test]
fn bit_errors_preserve_exactly_once_in_order_delivery() {
    for seed in seeds(40) {
        let _seed_report = SeedReport {
            seed,
            file: "faults",
            test: "bit_errors_preserve_exactly_once_in_order_delivery",
        };
        let mut random = SplitMix64::new(seed);
        let rate = [0.0, 1e-5, 1e-4, 5e-4][seed as usize % 4];
        let mut link = Link::new(random.modulo(60) as usize, rate, seed);
        for _ in 0..3000 {
            link.random_slot(&mut random);
        }
        assert!(link.settle(), "seed {seed}: it comes to rest");
        assert!(link.traffic[0].messages() > 500);
        for end in 0..2 {
            assert_eq!(link.ends[end].shortages(&link.ends[1 - end]), []);
            assert_eq!(link.ends[end].overrun, 0);
            assert_eq!(link.ends[end].retry.sender.protocol_errors, 0);
            assert_eq!(
                link.wires[end].damaged,
                link.ends[1 - end].retry.receiver.damaged
            );
        }
        assert_eq!(rate > 0.0, link.wires[0].damaged > 0, "seed {seed}");
    }
}

/// Both directions lose all blocks in flight, ten times.
#[test]
fn link_failure_loses_no_message() {
    for seed in seeds(20) {
        let _seed_report = SeedReport {
            seed,
            file: "faults",
            test: "link_failure_loses_no_message",
        };
        let mut random = SplitMix64::new(seed);
        let mut link = Link::new(20, 0.0, seed);
        for _ in 0..10 {
            for _ in 0..random.modulo(300) {
                link.random_slot(&mut random);
            }
            for end in 0..2 {
                link.wires[end].in_flight.clear();
                link.ends[end].retrain();
            }
        }
        assert!(link.settle(), "seed {seed}: it comes to rest");
        assert_eq!(link.ends[0].shortages(&link.ends[1]), []);
    }
}

#[test]
fn lost_last_block_is_resent() {
    // Nothing reveals the loss: no later block carries a number, and no damage was detected.
    let mut link = Link::new(5, 0.0, 0);
    assert!(link.settle());
    assert!(link.send(0, 6, 1));
    link.advance_slot();
    link.wires[0].in_flight.pop_back();
    assert!(link.settle());
    assert_eq!(link.traffic[0].received[6], 1);
}

#[test]
fn credit_lost_to_an_undetected_error_is_reported() {
    let mut link = Link::new(5, 0.0, 0);
    assert!(link.settle());
    for _ in 0..8 {
        assert!(link.send(0, 6, 1));
    }
    let mut lost = 0;
    for _ in 0..200 {
        link.advance_slot();
        link.drain_all(7);
        for block in &mut link.wires[1].in_flight {
            if let Some(Control::Data {
                ack,
                high,
                circuits,
                credits,
            }) = block.control()
            {
                if lost == 0 && credits == 1 << 6 {
                    lost += 1;
                    let credits = 0;
                    *block = Block::without_words(Control::Data {
                        ack,
                        high,
                        credits,
                        circuits,
                    });
                }
            }
        }
    }
    assert!(link.settle());
    assert_eq!(lost, 1);
    assert_eq!(
        link.ends[0].shortages(&link.ends[1]),
        [Shortage {
            circuit: 6,
            lost: 8
        }]
    );
}

#[test]
fn only_management_is_sent_before_credits_arrive() {
    let mut end = End::new(Parameters::ECI);
    end.send(6, &[0]).unwrap();
    end.send(13, &[7]).unwrap();
    let Some(Control::Data { circuits, .. }) = end.next_block().control() else {
        panic!("credits and a word are due")
    };
    assert_eq!(circuits, [13, 15, 15, 15, 15, 15, 15].into());
}

#[test]
fn malformed_messages_are_rejected() {
    let mut end = End::new(Parameters::ECI);
    let (line, _) = message(4, 0, 4);
    assert_eq!(end.send(14, &[0]), Err(Rejection::Malformed));
    assert_eq!(end.send(6, &[]), Err(Rejection::Malformed));
    assert_eq!(end.send(6, &[0, 0]), Err(Rejection::Malformed));
    assert_eq!(end.send(4, &line[..16]), Err(Rejection::Malformed));
    for _ in 0..4 {
        assert_eq!(end.send(4, &line), Ok(()));
    }
    assert_eq!(end.send(4, &line), Err(Rejection::Full));
}

/// Share of the bandwidth that is left with bit errors in one direction.
#[test]
fn replay_cost_matches_the_formula() {
    let (delay, rate) = (20, 2.5e-5);
    let mut link = Link::new(delay, rate, 1);
    // The reverse direction is error-free: damaged credits would add a cost of their own.
    link.wires[1].noise = Noise::new(0.0, 0);
    for _ in 0..200_000 {
        for circuit in [4, 5] {
            link.fill(0, circuit);
        }
        link.advance_slot();
        link.drain_all(64);
    }
    let share = link.traffic[0].words as f64 / (7.0 * link.wires[0].blocks as f64);
    let expected = common::share_left(rate, delay);
    let replayed = link.ends[0].retry.sender.replayed as f64 / link.wires[0].blocks as f64;
    assert!(replayed > 0.01, "{replayed}");
    assert!(
        (share / expected - 1.0).abs() < 0.05,
        "{share} against {expected}"
    );
}
