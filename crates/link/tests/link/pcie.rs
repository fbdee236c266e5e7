//! PCIe, and CCIX over it: rates, ordering of classes, cumulative credits, and reads.

use crate::common;

use cohkit_base::random::SplitMix64;
use cohkit_link::layer::WireUnit;
use cohkit_link::pcie::reads::{Completer, Requester};
use cohkit_link::testbench::{Testbench, LANE_BYTE};
use cohkit_link::{ccix, pcie, Lanes, Message};
use common::ends::{assert_share, pcie, run_full_queues, DELAY, LANES, TICKS};
use common::{seeds, SeedReport};
use std::collections::VecDeque;

#[test]
fn pcie_write_bandwidth_matches_the_published_table() {
    for (lanes, limit) in [(8, 203), (16, 168)] {
        for payload in [128, 256] {
            let ends =
                || std::array::from_fn(|_| pcie::End::new(pcie::Parameters::new(payload, limit)));
            let formula = pcie::Pcie {
                lanes,
                giga_transfers: 8,
                payload: payload.into(),
                request: 512,
                limit,
            };
            // The formula subtracts the skips (4 of 1538 bytes) and the data link layer packets from the total. Here
            // data link layer packets are shares of the bytes that remain without skips.
            let bytes = formula.packets().value() / Lanes::pcie(lanes, 8).blocks().value();
            let share = bytes * f64::from(payload) / formula.write(payload.into()) as f64;
            let writes = [(pcie::POSTED, payload); 2];
            assert_share(
                run_full_queues::<pcie::End<_>>(ends(), writes, true, TICKS),
                share,
                0.001,
            );
            // The formula assumes data link layer packets under load in both directions; with one direction loaded
            // there are fewer.
            let (data, wire) = run_full_queues::<pcie::End<_>>(ends(), writes, false, TICKS);
            assert!(data as f64 / wire as f64 > 1.05 * share);
        }
    }
}

#[test]
fn ccix_gains_from_packing_and_short_headers() {
    let share = |header, packing: bool, messages: u64| {
        let ends = || std::array::from_fn(|_| ccix::End::new(512, header, packing, 168));
        let packet =
            ccix::FRAMING_BYTES + header + messages * (u64::from(ccix::MESSAGE_BYTES) + 64);
        let formula = 64.0 * messages as f64 / packet as f64;
        // Each 168 received bytes cause 16 bytes of answers; both directions are saturated.
        assert_share(
            run_full_queues::<ccix::End>(ends(), [(3, 64); 2], true, TICKS),
            formula * (1.0 - 16.0 / 168.0),
            0.001,
        );
        formula
    };
    assert_eq!(messages_per_packet(), [6, 1]);
    let packed = share(ccix::OPTIMISED_HEADER_BYTES, true, 6);
    let compatible = share(ccix::COMPATIBLE_HEADER_BYTES, true, 6);
    let single = share(ccix::OPTIMISED_HEADER_BYTES, false, 1);
    assert!(single < compatible && compatible < packed);
}

/// Messages of 64 bytes per 512-byte packet, packed and unpacked.
fn messages_per_packet() -> [u16; 2] {
    [true, false].map(|packing| {
        ccix::End::new(512, ccix::OPTIMISED_HEADER_BYTES, packing, 168).messages_in_packet(64)
    })
}

/// Credit returns carry totals, so that the next one makes up for a lost one.
#[test]
fn cumulative_credit_return_recovers_from_loss() {
    let mut bench = Testbench::new(pcie(), 16, DELAY, 0.0, 0);
    let (mut lost, mut returned, mut last_arrival) = (0, 0, 0);
    for _ in 0..40_000 {
        bench.fill(0, pcie::POSTED, 256);
        bench.step();
        bench.drain(0);
        // Three of four credit returns are lost.
        let newest = bench.wires[1].in_flight.iter().next_back();
        if let Some(&(arrival, ref packet)) = newest {
            let credits = matches!(packet.content, pcie::Content::Credits(pcie::POSTED, _));
            if credits && arrival > last_arrival {
                last_arrival = arrival;
                returned += 1;
                if returned % 4 != 1 {
                    lost += 1;
                    bench.wires[1].in_flight.drop_back();
                }
            }
        }
    }
    assert!(lost > 100, "{lost}");
    assert!(bench.settle(100_000));
    assert!(bench.traffic[0].messages() > 300);
}

/// PCIe's ordering rules: posted writes pass the other classes, and no class passes a posted write.
#[test]
fn writes_pass_stalled_packets_and_no_packet_passes_writes() {
    let [mut sender, mut receiver] = pcie();
    let message = |circuit, label| Message {
        circuit,
        bytes: 0,
        label,
    };
    for (label, circuit) in [pcie::NON_POSTED, pcie::POSTED, pcie::COMPLETIONS]
        .into_iter()
        .enumerate()
    {
        assert_eq!(sender.send(message(circuit, label as u64)), Ok(()));
    }
    let exchange = |sender: &mut pcie::End<Message>, receiver: &mut pcie::End<Message>| {
        let mut packet = sender.next_packet();
        receiver.receive(&mut packet);
        packet.content
    };
    let sent = |content| match content {
        pcie::Content::Body(_, message) => Some(message),
        _ => None,
    };
    // The sender's own credits leave first. Without the partner's credits only completions could go, and they must not
    // pass the write.
    for _ in 0..10 {
        assert_eq!(sent(exchange(&mut sender, &mut receiver)), None);
    }
    // Grant credits for writes only: the write passes the read, then the completion follows.
    let mut credits = loop {
        let packet = receiver.next_packet();
        if matches!(packet.content, pcie::Content::Credits(pcie::POSTED, _)) {
            break packet;
        }
    };
    sender.receive(&mut credits);
    let order: Vec<_> = (0..20)
        .filter_map(|_| sent(exchange(&mut sender, &mut receiver)))
        .map(|m| m.label)
        .collect();
    assert_eq!(order, [1, 2]);
    // The receiver does not let the completion pass the write either.
    assert_eq!(receiver.take(pcie::COMPLETIONS), None);
    assert_eq!(receiver.take(pcie::POSTED), Some(message(pcie::POSTED, 1)));
    assert_eq!(
        receiver.take(pcie::COMPLETIONS),
        Some(message(pcie::COMPLETIONS, 2))
    );
}

/// Reads despite bit errors and link failures: each completes once, with its bytes in order.
#[test]
fn reads_complete_once_despite_link_errors() {
    for seed in seeds(12) {
        let _seed_report = SeedReport {
            seed,
            file: "pcie",
            test: "reads_complete_once_despite_link_errors",
        };
        let mut random = SplitMix64::new(seed);
        let mut bench = Testbench::new(pcie(), LANES, DELAY, 2e-5, seed);
        let mut requester = Requester::new(8, 512);
        let completer = Completer {
            payload: 256,
            boundary: 64,
        };
        let (mut requests, mut answers) = (VecDeque::new(), VecDeque::new());
        let mut completion_counts = vec![0; 100];
        for read in 0..completion_counts.len() as u64 {
            requester.queue_read(read, random.modulo(1 << 20), 1 + random.modulo(5000));
        }
        let mut steps = 0;
        while completion_counts.contains(&0) {
            steps += 1;
            assert!(steps < 1_000_000, "seed {seed}: {completion_counts:?}");
            if requests.is_empty() {
                requests.extend(requester.next_request());
            }
            let [reader, memory] = bench.ends_mut();
            if requests
                .front()
                .is_some_and(|&request| reader.send(request).is_ok())
            {
                requests.pop_front();
            }
            if let Some(request) = memory.take(pcie::NON_POSTED) {
                answers.extend(completer.completions(request));
            }
            if answers
                .front()
                .is_some_and(|&answer| memory.send(answer).is_ok())
            {
                answers.pop_front();
            }
            if let Some(completion) = reader.take(pcie::COMPLETIONS) {
                if let Some(read) = requester.complete(completion).expect("asked for, in order") {
                    completion_counts[read as usize] += 1;
                }
            }
            bench.step();
            if random.modulo(2000) == 0 {
                bench.retrain(100 * LANE_BYTE, 1 + random.modulo(8) as u32);
            }
        }
        assert!(completion_counts.iter().all(|&times| times == 1));
        assert_eq!(
            (requester.open_request_count(), requester.waiting()),
            (0, 0)
        );
    }
}

/// A link at rest after the exchange of credits.
fn bench_at_rest() -> Testbench<pcie::End<Message>> {
    let mut bench = Testbench::new(pcie(), LANES, DELAY, 0.0, 0);
    assert!(bench.settle(1000));
    bench
}

/// Ticks until all messages have arrived and are acknowledged.
fn ticks_to_rest(bench: &mut Testbench<pcie::End<Message>>) -> u64 {
    let start = bench.now;
    assert!(bench.settle(100_000));
    bench.now - start
}

/// Retry timeout of [`pcie::Parameters::new`], 64 KiB, in ticks.
const RETRY_TIMEOUT_TICKS: u64 = (64 << 10) * LANE_BYTE / LANES as u64;

/// A NAK requests the damaged packet again, so the sender does not wait for its timeout.
#[test]
fn damaged_packet_is_resent_before_the_retry_timeout() {
    let mut bench = bench_at_rest();
    for _ in 0..3 {
        assert!(bench.send(0, pcie::POSTED, 256));
    }
    let mut damaged = false;
    while !damaged {
        assert!(bench.step());
        for (_, packet) in bench.wires[0].in_flight.iter_mut() {
            if matches!(packet.content, pcie::Content::Body(0, _)) {
                packet.flip(0);
                damaged = true;
            }
        }
    }
    assert!(ticks_to_rest(&mut bench) < RETRY_TIMEOUT_TICKS / 4);
    assert_eq!(bench.ends()[0].sender.replayed, 3);
}

/// Without a NAK, only the timeout shows that an acknowledgement is missing.
#[test]
fn lost_acknowledgement_is_resent_after_the_retry_timeout() {
    let mut bench = bench_at_rest();
    assert!(bench.send(0, pcie::NON_POSTED, 0));
    let is_ack = |(_, packet): &(u64, pcie::Packet<Message>)| {
        matches!(packet.content, pcie::Content::AckNak(..))
    };
    while !bench.wires[1].in_flight.iter().any(is_ack) {
        assert!(bench.step());
    }
    bench.wires[1].in_flight.retain(|packet| !is_ack(packet));
    let ticks = ticks_to_rest(&mut bench);
    assert!(
        RETRY_TIMEOUT_TICKS / 2 < ticks && ticks < 2 * RETRY_TIMEOUT_TICKS,
        "{ticks}"
    );
    assert_eq!(bench.ends()[1].receiver.repeated, 1);
}

/// Credits are repeated periodically, so a link recovers even if all initial credits are lost.
#[test]
fn lost_initial_credits_are_resent() {
    let mut bench = Testbench::new(pcie(), LANES, DELAY, 0.0, 0);
    for _ in 0..6 {
        assert!(bench.step());
        for wire in &mut bench.wires {
            wire.in_flight.clear();
        }
    }
    assert!(bench.send(0, pcie::POSTED, 256));
    let ticks = ticks_to_rest(&mut bench);
    assert!(
        RETRY_TIMEOUT_TICKS / 4 < ticks && ticks < RETRY_TIMEOUT_TICKS,
        "{ticks}"
    );
}
