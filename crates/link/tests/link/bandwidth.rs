//! Bandwidth by formula, compared with state machines that transfer whole lines.

use crate::common;

use cohkit_link::{Lanes, Ratio};
use common::Link;

/// One-way delay in slots.
const DELAY: usize = 20;

/// Bandwidths in hundredths of GiB/s of one link, and of both.
#[test]
fn rates_match_the_published_figures() {
    let lanes = Lanes::ECI;
    assert_eq!(lanes.raw().hundredths_of_gib(), 1441);
    assert_eq!(lanes.blocks().hundredths_of_gib(), 1373);
    assert_eq!(lanes.messages().hundredths_of_gib(), 1202);
    assert_eq!(lanes.messages().times(2, 1).hundredths_of_gib(), 2404);
    assert_eq!(lanes.payload(17).hundredths_of_gib(), 1131);
    assert_eq!(lanes.payload(17).times(2, 1).hundredths_of_gib(), 2262);
}

#[test]
fn bandwidth_is_proportional_to_lanes() {
    for count in 1..12 {
        let messages = Lanes::ECI.with(count).messages();
        assert_eq!(messages.times(12, count.into()), Lanes::ECI.messages());
    }
}

/// Words and messages received from the first end during `blocks` slots, after a warm-up.
fn measure_steady_flow(
    link: &mut Link,
    circuits: &[u8],
    is_bidirectional: bool,
    blocks: u64,
) -> (u64, u64) {
    let mut start = (0, 0);
    for slot in 0..1000 + blocks {
        if slot == 1000 {
            start = (link.traffic[0].words, link.traffic[0].messages());
        }
        for &circuit in circuits {
            link.fill(0, circuit);
            if is_bidirectional {
                link.fill(1, circuit);
            }
        }
        link.advance_slot();
        link.drain_all(64);
    }
    let traffic = &link.traffic[0];
    (traffic.words - start.0, traffic.messages() - start.1)
}

/// Driven ends reach the formula exactly, because 17 blocks hold 7 lines.
#[test]
fn block_bandwidth_matches_the_formula() {
    for is_bidirectional in [false, true] {
        let mut link = Link::new(DELAY, 0.0, 0);
        // 17 blocks hold 7 lines, so a multiple of 17 leaves no remainder.
        let blocks = 17 * 200;
        let (words, lines) = measure_steady_flow(&mut link, &[4, 5], is_bidirectional, blocks);
        assert_eq!((words, lines), (7 * blocks, 7 * blocks / 17));
        let driven = Lanes::ECI
            .blocks()
            .times((words * 8).into(), (blocks * 64).into());
        assert_eq!(driven, Lanes::ECI.messages());
        let data = Lanes::ECI
            .blocks()
            .times((lines * 128).into(), (blocks * 64).into());
        assert_eq!(data, Lanes::ECI.payload(17));
    }
}

#[test]
fn credits_limit_a_circuit_to_fourteen_lines_in_flight() {
    // Credit for 256 words allows 14 lines: the 15th would need 17 free words, and fewer are left.
    let mut link = Link::new(DELAY, 0.0, 0);
    for _ in 0..1000 {
        link.fill(0, 4);
        link.advance_slot();
    }
    let in_flight_lines = link.traffic[0].sent[4] - link.ends[0].waiting() as u64 / 17;
    link.drain(0, 4, 10_000);
    assert_eq!((in_flight_lines, link.traffic[0].received[4]), (15, 15));
}

#[test]
fn credits_limit_one_circuit_on_a_long_link() {
    // A round trip of 100 blocks corresponds to 700 words, but a circuit has credit for 256.
    let (words, _) = measure_steady_flow(&mut Link::new(50, 0.0, 0), &[4], false, 10_000);
    assert!((20_000..30_000).contains(&words), "{words}");
}

/// A receiver clock takes 3 words of a circuit with data, which is less than the lanes carry; two
/// circuits suffice.
#[test]
fn slow_circuit_needs_a_second_one_for_full_bandwidth() {
    let clock = Ratio::new(322_265_625, 1);
    let clocks_per_block = clock.times(
        Lanes::ECI.block_seconds().numerator,
        Lanes::ECI.block_seconds().denominator,
    );
    let driven = |circuits: &[u8]| {
        let mut link = Link::new(DELAY, 0.0, 0);
        let (mut clocks, mut words, mut start_clocks) = (0, 0, 0);
        for slot in 0..6000u128 {
            if slot == 1000 {
                (words, start_clocks) = (link.traffic[0].words, clocks);
            }
            for &circuit in circuits {
                link.fill(0, circuit);
            }
            link.advance_slot();
            while clocks * clocks_per_block.denominator < slot * clocks_per_block.numerator {
                clocks += 1;
                for &circuit in circuits {
                    link.drain(0, circuit, 3);
                }
            }
        }
        (
            link.traffic[0].words - words,
            (clocks - start_clocks) as u64,
        )
    };
    let (words, clocks) = driven(&[4]);
    assert!(
        (3 * clocks - 17..=3 * clocks + 17).contains(&words),
        "{words} in {clocks}"
    );
    let (words, _) = driven(&[4, 5]);
    assert!((7 * 5000 - 34..=7 * 5000 + 34).contains(&words), "{words}");
}
