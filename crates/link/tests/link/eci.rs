//! Both links of ECI: drain rates of circuits, lost credits, and messages of one line that arrive on either link.

use crate::common;

use cohkit_link::testbench::{Testbench, LANE_BYTE};
use cohkit_link::{Balance, Block, Control, Lanes, Layer, Message, Shortage};
use common::ends::{eci, DELAY};
use std::collections::BTreeMap;

#[test]
fn lost_credit_is_reported_during_traffic() {
    // An undetected error removes the credits of a block. `shortages` must report it while traffic continues.
    let mut bench = Testbench::new(eci(), 12, DELAY, 0.0, 0);
    let mut drop_step = None;
    for step in 0..20_000 {
        for circuit in [4, 5] {
            bench.fill(0, circuit, 128);
        }
        bench.send(0, 6, 0);
        bench.step();
        bench.drain(0);
        if step > 5000 && drop_step.is_none() {
            if let Some((_, block)) = bench.wires[1].in_flight.iter_mut().next_back() {
                if let Some(Control::Data {
                    ack,
                    high: false,
                    credits,
                    circuits,
                }) = block.control()
                {
                    if credits & 1 << 6 != 0 {
                        let credits = credits & !(1 << 6);
                        *block = Block::without_words(Control::Data {
                            ack,
                            high: false,
                            credits,
                            circuits,
                        });
                        drop_step = Some(step);
                    }
                }
            }
        }
        let [first, second] = bench.ends();
        let lost = first.shortages(second);
        match drop_step {
            None => assert_eq!(lost, []),
            // Until the block arrives, its original credits count as in flight.
            Some(dropped_step) if step < dropped_step + 500 => {}
            Some(_) => {
                assert_eq!(
                    lost,
                    [Shortage {
                        circuit: 6,
                        lost: 8
                    }]
                );
                assert_eq!(first.circuits()[6], "requests, even");
                assert!(!first.is_quiescent());
            }
        }
    }
    assert!(drop_step.is_some());
}

#[test]
fn receiver_drains_each_circuit_at_its_rate() {
    let mut bench = Testbench::new(eci(), 12, 0, 0.0, 0);
    for _ in 0..200 {
        for circuit in [4, 6] {
            bench.fill(0, circuit, if circuit == 4 { 128 } else { 0 });
        }
        bench.step();
    }
    let [_, receiver] = bench.ends_mut();
    let mut words = [0; 14];
    // In 17 clocks, the receiver takes 51 words (3 lines) of a circuit with data, and all 32 credited words of the
    // other.
    for clock in 0..17 {
        receiver.clock(|circuit, message| words[usize::from(circuit)] += message.len());
        assert!(words[4] <= 3 * (clock + 1) && words[6] <= 7 * (clock + 1));
    }
    assert_eq!((words[4], words[6]), (51, 31));
}

#[test]
fn balance_selects_the_link_of_each_policy() {
    let by_queue_length =
        |circuit, odd, waiting| Balance::QueueLength.choose(circuit, odd, waiting);
    assert_eq!(
        [
            by_queue_length(4, true, [8, 8]),
            by_queue_length(4, true, [9, 8])
        ],
        [0, 1]
    );
    assert_eq!(
        [
            by_queue_length(0, true, [9, 8]),
            by_queue_length(1, false, [8, 9])
        ],
        [0, 1]
    );
    let by_address = |odd| Balance::Address.choose(4, odd, [9, 8]);
    assert_eq!([by_address(false), by_address(true)], [0, 1]);
    assert_eq!(Balance::SingleLink.choose(4, true, [9, 8]), 0);
}

/// Sends lines over two links with different delays. Returns the data bytes per byte carried by one link, and whether
/// two messages of one line arrived on different links.
fn run_two_links(balance: Balance) -> (f64, bool) {
    let link = |delay| Testbench::new(eci(), 12, delay, 0.0, 0);
    let mut links = [link(DELAY), link(2 * DELAY)];
    let (mut sent, mut labels, mut data, mut bits) = (0u64, Vec::new(), 0, 0);
    let mut link_of_line: BTreeMap<u64, usize> = BTreeMap::new();
    let mut splits_line = false;
    let block = 64 * LANE_BYTE / 12;
    for clock in 0..12_000u64 {
        for link in &mut links {
            link.advance(clock * block);
        }
        // Send as many messages as fit, about lines 0 to 23 in turn.
        for _ in 0..4 {
            let line = sent % 24;
            let circuit = 4 + (line / 2 % 2) as u8;
            let waiting = links.each_ref().map(|link| link.ends()[0].waiting());
            let link_index = balance.choose(circuit, line % 2 == 1, waiting);
            let message = Message {
                circuit,
                bytes: 128,
                label: sent,
            };
            if Layer::send(&mut links[link_index].ends_mut()[0], message).is_err() {
                break;
            }
            splits_line |= link_of_line
                .insert(line, link_index)
                .is_some_and(|previous| previous != link_index);
            sent += 1;
        }
        for link in &mut links {
            for circuit in [4, 5] {
                while let Some(message) = link.ends_mut()[1].take(circuit) {
                    labels.push(message.label);
                    data += u64::from(clock >= 2000) * u64::from(message.bytes);
                }
            }
        }
        bits += u64::from(clock >= 2000) * 64;
    }
    let total = labels.len();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), total, "nothing comes twice");
    (data as f64 / bits as f64, splits_line)
}

#[test]
fn two_links_double_the_bandwidth() {
    let single_link_share = Lanes::ECI.payload(17).value() / Lanes::ECI.blocks().value();
    for (balance, links, expected_split) in [
        (Balance::QueueLength, 2.0, true),
        (Balance::Address, 2.0, false),
        (Balance::SingleLink, 1.0, false),
    ] {
        let (share, splits_line) = run_two_links(balance);
        assert!(
            (share / (links * single_link_share) - 1.0).abs() < 0.003,
            "{balance:?}: {share} of {single_link_share}"
        );
        assert_eq!(splits_line, expected_split, "{balance:?}");
    }
}
