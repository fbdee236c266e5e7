//! All link layers under the same faults: bits wrong, lanes lost, links that go down and up. Nothing is lost, repeated or
//! out of order on a circuit, and no credit is lost.

mod common;

use cohkit_link::chance::Chance;
use cohkit_link::cxl::{self, Flits, Side};
use cohkit_link::drive::{Drive, LANE_BYTE};
use cohkit_link::layer::Carried;
use cohkit_link::pcie;
use cohkit_link::pcie::reads::{Completer, Requester};
use cohkit_link::{
    ccix, Balance, Block, Control, End, Join, Layer, Message, Parameters, Refused, Shortage,
};
use common::{seeds, Told};
use std::collections::VecDeque;

/// Lanes of the links here, and 50 ns on lanes of about 1 GB/s.
const LANES: u32 = 8;
const DELAY: u64 = 50 * LANE_BYTE;

fn eci() -> [End; 2] {
    std::array::from_fn(|_| End::new(Parameters::ECI))
}

fn pcie() -> [pcie::End<Message>; 2] {
    std::array::from_fn(|_| pcie::End::new(pcie::Parameters::new(256, 168)))
}

fn ccix() -> [ccix::End; 2] {
    std::array::from_fn(|_| ccix::End::new(512, ccix::OPTIMISED, true, 168))
}

fn flits(flits: Flits) -> [cxl::End; 2] {
    [Side::Host, Side::Device].map(|side| cxl::End::new(cxl::Parameters::new(flits, side)))
}

/// Random messages of random circuits, until so many have been sent each way; things go wrong `faults` times.
fn torture<L: Layer>(name: &str, ends: [L; 2], sizes: &[&[u16]], seed: u64) {
    let mut chance = Chance::new(seed);
    let rate = [0.0, 1e-5, 5e-5, 1e-4][seed as usize % 4];
    let mut drive = Drive::new(ends, LANES, DELAY, rate, seed);
    let mut lanes = LANES;
    let enough = |drive: &Drive<L>| {
        let sent = |side: usize| drive.traffic[side].sent.iter().sum::<u64>() >= 500;
        sent(0) && sent(1)
    };
    for _ in 0..200_000 {
        if enough(&drive) {
            break;
        }
        for from in 0..2 {
            let circuit = chance.below(sizes.len() as u64) as usize;
            let sizes = sizes[circuit];
            let bytes = sizes[chance.below(sizes.len() as u64) as usize];
            drive.send(from, circuit as u8, bytes);
        }
        drive.step();
        if chance.below(3) == 0 {
            drive.drain(0);
            drive.drain(1);
        }
        if chance.below(1500) == 0 {
            // Down, and up again with as many lanes or with some of them lost.
            lanes = 1 + chance.below(u64::from(lanes)) as u32;
            drive.retrain(chance.below(2000) * LANE_BYTE, lanes);
        }
        let [first, second] = &drive.ends;
        assert_eq!(first.shortages(second), [], "{name}, seed {seed}");
        assert_eq!(second.shortages(first), [], "{name}, seed {seed}");
    }
    assert!(
        drive.settle(4_000_000),
        "{name}, seed {seed}: it comes to rest"
    );
    for traffic in &drive.traffic {
        assert!(
            traffic.messages() >= 500,
            "{name}, seed {seed}: {traffic:?}"
        );
    }
    if rate >= 1e-4 {
        assert!(drive.wires.iter().all(|wire| wire.damaged > 0));
        assert!(
            drive.ends.iter().any(|end| end.replayed() > 0),
            "{name}, seed {seed}"
        );
    }
}

macro_rules! tortured {
    ($test:ident, $ends:expr, $sizes:expr) => {
        #[test]
        fn $test() {
            for seed in seeds(24) {
                let _told = Told(seed, "layers", stringify!($test));
                torture(stringify!($test), $ends, $sizes, seed);
            }
        }
    };
}

const LINES: &[u16] = &[32, 64, 128];
tortured!(
    eci_loses_nothing,
    eci(),
    &[&[0], &[0], LINES, LINES, LINES, LINES, &[0], &[0], &[0]]
);
tortured!(
    pcie_loses_nothing,
    pcie(),
    &[&[4, 64, 256], &[0], &[64, 256]]
);
tortured!(ccix_loses_nothing, ccix(), &[&[0], &[0], &[0], &[64, 128]]);
// What one side has no message for, it refuses: small flits have no back-invalidation.
tortured!(
    small_flits_lose_nothing,
    flits(Flits::Small),
    &[&[0], &[0], &[64]]
);
tortured!(
    large_flits_lose_nothing,
    flits(Flits::Large),
    &[&[0], &[0], &[64]]
);

/// Fills both directions, or only the first, for so many ticks after a beginning; says what came in them of the first, and
/// the bits that its wire carried meanwhile.
fn filled<L: Layer>(ends: [L; 2], circuits: [(u8, u16); 2], both: bool, ticks: u64) -> (u64, u64) {
    let mut drive = Drive::new(ends, 16, DELAY, 0.0, 0);
    let mut start = None;
    while drive.now < ticks + ticks / 8 {
        let sides = circuits.into_iter().enumerate();
        for (from, (circuit, bytes)) in sides.take(1 + usize::from(both)) {
            drive.fill(from, circuit, bytes);
        }
        drive.step();
        drive.drain(0);
        drive.drain(1);
        if drive.now >= ticks / 8 && start.is_none() {
            start = Some((drive.traffic[0].data, drive.wires[0].bits));
        }
    }
    let (data, bits) = start.expect("the beginning is over");
    (
        drive.traffic[0].data - data,
        (drive.wires[0].bits - bits) / 8,
    )
}

const TICKS: u64 = 100_000 * LANE_BYTE;

fn agree(share: (u64, u64), formula: f64, within: f64) {
    let share = share.0 as f64 / share.1 as f64;
    assert!(
        (share / formula - 1.0).abs() < within,
        "{share} by run, {formula} by formula"
    );
}

#[test]
fn large_writes_of_pcie_run_as_the_published_table_says() {
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
            // The formula subtracts 4 of 1538 bytes of skips beside the packets of the link layer; here these are shares of what skips leave.
            let bytes =
                formula.packets().value() / cohkit_link::Lanes::pcie(lanes, 8).blocks().value();
            let share = bytes * f64::from(payload) / formula.write(payload.into()) as f64;
            let writes = [(pcie::POSTED, payload); 2];
            agree(
                filled::<pcie::End<_>>(ends(), writes, true, TICKS),
                share,
                0.001,
            );
            // The formula has the link layer's packets of both directions loaded; one way there are fewer.
            let (data, wire) = filled::<pcie::End<_>>(ends(), writes, false, TICKS);
            assert!(data as f64 / wire as f64 > 1.05 * share);
        }
    }
}

#[test]
fn flits_carry_what_the_formula_says() {
    for (form, read, write) in [
        (Flits::Small, 8.0 / 9.0, 0.8),
        (Flits::Large, 44.0 / 13.0, 3.0),
    ] {
        let messages = |side, class| {
            form.messages(side, class)
                .expect("there are such messages")
                .value()
        };
        assert_eq!(messages(Side::Device, cxl::DATA), read);
        assert_eq!(messages(Side::Host, cxl::DATA), write);
        let writes = [(cxl::DATA, cxl::LINE); 2];
        let [host, device] = flits(form);
        let share = |messages: f64| messages * 64.0 / form.bytes() as f64;
        agree(
            filled([host, device], writes, false, TICKS),
            share(write),
            0.001,
        );
        let [host, device] = flits(form);
        agree(
            filled([device, host], writes, false, TICKS),
            share(read),
            0.001,
        );
    }
}

#[test]
fn ccix_packs_messages_and_saves_what_its_header_is_shorter() {
    let share = |header, packing: bool, messages: u64| {
        let ends = || std::array::from_fn(|_| ccix::End::new(512, header, packing, 168));
        let packet = ccix::FRAMING + header + messages * (u64::from(ccix::MESSAGE) + 64);
        let formula = 64.0 * messages as f64 / packet as f64;
        // Of each 168 bytes that come, 16 are answered with; both directions are full.
        agree(
            filled::<ccix::End>(ends(), [(3, 64); 2], true, TICKS),
            formula * (1.0 - 16.0 / 168.0),
            0.001,
        );
        formula
    };
    assert_eq!(ends_of_packets(), [6, 1]);
    let packed = share(ccix::OPTIMISED, true, 6);
    let compatible = share(ccix::COMPATIBLE, true, 6);
    let single = share(ccix::OPTIMISED, false, 1);
    assert!(single < compatible && compatible < packed);
}

/// Messages of 64 bytes in a packet of 512, packed and not.
fn ends_of_packets() -> [u16; 2] {
    [true, false]
        .map(|packing| ccix::End::new(512, ccix::OPTIMISED, packing, 168).messages_in_packet(64))
}

#[test]
fn small_flits_know_no_back_invalidation() {
    for (form, side) in [
        (Flits::Small, 0),
        (Flits::Small, 1),
        (Flits::Large, 0),
        (Flits::Large, 1),
    ] {
        let mut ends = flits(form);
        // The answer of the host, the snoop of the device.
        let class = [cxl::RESPONSE, cxl::REQUEST][side];
        let sent = ends[side].send(Message {
            circuit: class,
            bytes: 0,
            token: 0,
        });
        let expected = if form == Flits::Small {
            Err(Refused::Malformed)
        } else {
            Ok(())
        };
        assert_eq!(sent, expected);
    }
}

#[test]
fn error_correction_of_large_flits_leaves_few_to_send_again() {
    let replayed = |form| {
        let [host, device] = flits(form);
        let mut drive = Drive::new([host, device], 16, DELAY, 2e-5, 1);
        for _ in 0..20_000 {
            drive.fill(1, cxl::DATA, cxl::LINE);
            drive.step();
            drive.drain(1);
        }
        assert!(drive.settle(100_000));
        let damaged = drive.ends[0].retry.receiver.damaged;
        (drive.wires[1].damaged, damaged, drive.ends[0].mended)
    };
    // Two errors in a flit of 2048 bits, and then in one third, are rare; in small flits each error counts.
    let (wrong, damaged, mended) = replayed(Flits::Large);
    assert!(
        wrong > 50 && damaged * 20 < wrong && mended > 50,
        "{wrong} {damaged} {mended}"
    );
    let (wrong, damaged, mended) = replayed(Flits::Small);
    assert!(
        wrong > 10 && damaged == wrong && mended == 0,
        "{wrong} {damaged} {mended}"
    );
}

#[test]
fn a_lost_return_of_credits_heals_where_it_tells_all_of_them() {
    let mut drive = Drive::new(pcie(), 16, DELAY, 0.0, 0);
    let (mut lost, mut told, mut judged) = (0, 0, 0);
    for _ in 0..40_000 {
        drive.fill(0, pcie::POSTED, 256);
        drive.step();
        drive.drain(0);
        // Of four returns three are lost.
        if let Some(&(arrival, packet)) = drive.wires[1].under_way.back() {
            let credits = matches!(packet.content, pcie::Content::Credits(pcie::POSTED, _));
            if credits && arrival > judged {
                judged = arrival;
                told += 1;
                if told % 4 != 1 {
                    lost += 1;
                    drive.wires[1].under_way.pop_back();
                }
            }
        }
    }
    assert!(lost > 100, "{lost}");
    assert!(drive.settle(100_000));
    assert!(drive.traffic[0].messages() > 300);
}

#[test]
fn writes_pass_what_waits_and_nothing_passes_writes() {
    let [mut sender, mut receiver] = pcie();
    let message = |circuit, token| Message {
        circuit,
        bytes: 0,
        token,
    };
    for (token, circuit) in [pcie::NON_POSTED, pcie::POSTED, pcie::COMPLETIONS]
        .into_iter()
        .enumerate()
    {
        assert_eq!(sender.send(message(circuit, token as u64)), Ok(()));
    }
    let exchange = |sender: &mut pcie::End<Message>, receiver: &mut pcie::End<Message>| {
        let packet = sender.transmit();
        receiver.receive(&packet);
        packet.content
    };
    let sent = |content| match content {
        pcie::Content::Body(_, message) => Some(message),
        _ => None,
    };
    // Its own credits first; without the partner's only completions could go, and they stay behind the write.
    for _ in 0..10 {
        assert_eq!(sent(exchange(&mut sender, &mut receiver)), None);
    }
    // Credits for writes alone: the write passes the read, then the completion goes.
    let credits = loop {
        let packet = receiver.transmit();
        if matches!(packet.content, pcie::Content::Credits(pcie::POSTED, _)) {
            break packet;
        }
    };
    sender.receive(&credits);
    let order: Vec<_> = (0..20)
        .filter_map(|_| sent(exchange(&mut sender, &mut receiver)))
        .map(|m| m.token)
        .collect();
    assert_eq!(order, [1, 2]);
    // At the other side the completion stays behind the write, too.
    assert_eq!(receiver.take(pcie::COMPLETIONS), None);
    assert_eq!(receiver.take(pcie::POSTED), Some(message(pcie::POSTED, 1)));
    assert_eq!(
        receiver.take(pcie::COMPLETIONS),
        Some(message(pcie::COMPLETIONS, 2))
    );
}

#[test]
fn a_lost_credit_is_named_while_messages_flow() {
    // An error that the checksum missed took the credits out of a block. Nothing rests when that is seen.
    let mut drive = Drive::new(eci(), 12, DELAY, 0.0, 0);
    let mut found = None;
    for step in 0..20_000 {
        for circuit in [4, 5] {
            drive.fill(0, circuit, 128);
        }
        drive.send(0, 6, 0);
        drive.step();
        drive.drain(0);
        if step > 5000 && found.is_none() {
            if let Some((_, block)) = drive.wires[1].under_way.back_mut() {
                if let Some(Control::Data {
                    ack,
                    high: false,
                    credits,
                    circuits,
                }) = block.control()
                {
                    if credits & 1 << 6 != 0 {
                        let credits = credits & !(1 << 6);
                        *block = Block::bare(Control::Data {
                            ack,
                            high: false,
                            credits,
                            circuits,
                        });
                        found = Some(step);
                    }
                }
            }
        }
        let [first, second] = &drive.ends;
        let lost = first.shortages(second);
        match found {
            None => assert_eq!(lost, []),
            // Until the block has come, its credits are under way as they were sent.
            Some(since) if step < since + 500 => {}
            Some(_) => {
                assert_eq!(
                    lost,
                    [Shortage {
                        circuit: 6,
                        lost: 8
                    }]
                );
                assert_eq!(first.circuits()[6], "requests, even");
                assert!(!first.is_at_rest());
            }
        }
    }
    assert!(found.is_some());
}

#[test]
fn each_circuit_drains_at_its_pace() {
    let mut drive = Drive::new(eci(), 12, 0, 0.0, 0);
    for _ in 0..200 {
        for circuit in [4, 6] {
            drive.fill(0, circuit, if circuit == 4 { 128 } else { 0 });
        }
        drive.step();
    }
    let [_, receiver] = &mut drive.ends;
    let mut words = [0; 14];
    // 17 clocks take 51 words of a circuit with data, which are 3 lines, and all of the 32 words that had credit beside it.
    for clock in 0..17 {
        receiver.clock(|circuit, message| words[usize::from(circuit)] += message.len());
        assert!(words[4] <= 3 * (clock + 1) && words[6] <= 7 * (clock + 1));
    }
    assert_eq!((words[4], words[6]), (51, 31));
}

#[test]
fn messages_of_both_links_are_joined_after_a_named_time_or_at_once() {
    for (balance, due) in [
        (Balance::Room, 107),
        (Balance::Address, 100),
        (Balance::One, 100),
    ] {
        let mut join = Join::new(balance, 7);
        join.arrive(100, "first");
        join.arrive(100, "second");
        assert_eq!(join.due(), Some(due));
        assert_eq!(join.leave(due - 1), None);
        assert_eq!(
            [join.leave(due), join.leave(due), join.leave(due)],
            [Some("first"), Some("second"), None]
        );
    }
}

/// Messages of each circuit that came from the first end, where all its circuits are full for a while.
fn shared<L: Layer>(ends: [L; 2], sizes: &[u16]) -> Vec<u64> {
    let mut drive = Drive::new(ends, LANES, DELAY, 0.0, 0);
    while drive.now < TICKS / 4 {
        for (circuit, &bytes) in sizes.iter().enumerate() {
            drive.fill(0, circuit as u8, bytes);
        }
        drive.step();
        drive.drain(0);
    }
    drive.traffic[0].came[..sizes.len()].to_vec()
}

/// CCIX once filled its packets with requests for as long as there were any, and data never left.
#[test]
fn no_circuit_starves_another() {
    let lines = [0, 0, 128, 128, 128, 128, 0, 0, 0, 0, 0, 0, 0];
    let [host, device] = flits(Flits::Large);
    for (came, fair) in [
        (shared(eci(), &lines), 3),
        (shared(pcie(), &[256, 0, 256]), 2),
        (shared(ccix(), &[0, 0, 0, 64]), 2),
        (shared([host, device], &[0, 0, 64]), 10),
    ] {
        let (most, least) = (came.iter().max(), came.iter().min());
        assert!(
            least
                .zip(most)
                .is_some_and(|(least, most)| least * fair >= *most),
            "{came:?}"
        );
    }
}

/// Messages at random times, with idle units skipped and one by one: what came by when, what was sent again, and the steps.
fn at_times<L: Layer>(ends: [L; 2], sizes: &[u16], seed: u64, awake: bool) -> (Vec<String>, u64) {
    let mut chance = Chance::new(seed);
    let mut drive = Drive::new(ends, LANES, DELAY, 0.0, 0);
    drive.awake = awake;
    let (mut seen, mut units, mut time) = (Vec::new(), 0, 0);
    for _ in 0..60 {
        time += chance.below(1000) * LANE_BYTE + 1;
        drive.advance(time);
        let from = chance.below(2) as usize;
        let circuit = chance.below(sizes.len() as u64) as usize;
        for _ in 0..chance.below(12) {
            drive.send(from, circuit as u8, sizes[circuit]);
        }
        drive.drain(chance.below(2) as usize);
        if chance.below(20) == 0 {
            drive.retrain(100 * LANE_BYTE, LANES);
        }
        if chance.below(2) == 0 {
            // Damage to what says something, where a byte more than can be mended is wrong.
            time += chance.below(100) * LANE_BYTE;
            drive.advance(time);
            let under_way = drive.wires[chance.below(2) as usize].under_way.iter_mut();
            if let Some((_, unit)) = under_way.rev().find(|(_, unit)| !unit.is_idle()) {
                unit.flip(0);
                unit.flip(24 * 8);
            }
        }
        let sent = drive.wires.each_ref().map(|wire| wire.bits - wire.idle);
        let replayed = drive.ends.each_ref().map(Layer::replayed);
        seen.push(format!("{:?} {sent:?} {replayed:?}", drive.traffic));
        units = drive.wires[0].units;
    }
    let before = units;
    // Nobody asks for what is skipped.
    let mut steps = 0;
    drive.advance(time + 100_000 * LANE_BYTE);
    while drive.now < time + 110_000 * LANE_BYTE && drive.step() {
        steps += 1;
    }
    assert!(drive.wires[0].units > before || !awake);
    (seen, steps)
}

#[test]
fn skipping_what_says_nothing_changes_nothing() {
    fn same<L: Layer>(name: &str, ends: fn() -> [L; 2], sizes: &[u16], seed: u64) {
        let (skipped, few) = at_times(ends(), sizes, seed, false);
        let (whole, many) = at_times(ends(), sizes, seed, true);
        for (place, pair) in skipped.iter().zip(&whole).enumerate() {
            assert_eq!(pair.0, pair.1, "{name}, seed {seed}, at {place}");
        }
        assert!(few * 100 < many, "{name}: {few} steps instead of {many}");
    }
    for seed in seeds(12) {
        let _told = Told(seed, "layers", "skipping_what_says_nothing_changes_nothing");
        let lines = [0, 0, 128, 128, 128, 128, 0, 0, 0, 0, 0, 0, 0];
        same("eci", eci, &lines, seed);
        same("pcie", pcie, &[256, 0, 256], seed);
        same("ccix", ccix, &[0, 0, 0, 64], seed);
        same("cxl68", || flits(Flits::Small), &[0, 0, 64], seed);
        same("cxl256", || flits(Flits::Large), &[0, 0, 64], seed);
    }
}

/// Reads through errors and links that go down: each is whole once, with bytes that its completions had in order.
#[test]
fn reads_end_once_whatever_goes_wrong() {
    for seed in seeds(12) {
        let _told = Told(seed, "layers", "reads_end_once_whatever_goes_wrong");
        let mut chance = Chance::new(seed);
        let mut drive = Drive::new(pcie(), LANES, DELAY, 2e-5, seed);
        let mut requester = Requester::new(8, 512);
        let completer = Completer {
            payload: 256,
            boundary: 64,
        };
        let (mut requests, mut answers) = (VecDeque::new(), VecDeque::new());
        let mut ended = vec![0; 100];
        for read in 0..ended.len() as u64 {
            requester.want(read, chance.below(1 << 20), 1 + chance.below(5000));
        }
        let mut steps = 0;
        while ended.contains(&0) {
            steps += 1;
            assert!(steps < 1_000_000, "seed {seed}: {ended:?}");
            if requests.is_empty() {
                requests.extend(requester.next_request());
            }
            let [reader, memory] = &mut drive.ends;
            if requests
                .front()
                .is_some_and(|&request| reader.send(request).is_ok())
            {
                requests.pop_front();
            }
            if let Some(request) = memory.take(pcie::NON_POSTED) {
                answers.extend(completer.answer(request));
            }
            if answers
                .front()
                .is_some_and(|&answer| memory.send(answer).is_ok())
            {
                answers.pop_front();
            }
            if let Some(completion) = reader.take(pcie::COMPLETIONS) {
                if let Some(read) = requester.complete(completion).expect("asked for, in order") {
                    ended[read as usize] += 1;
                }
            }
            drive.step();
            if chance.below(2000) == 0 {
                drive.retrain(100 * LANE_BYTE, 1 + chance.below(8) as u32);
            }
        }
        assert!(ended.iter().all(|&times| times == 1));
        assert_eq!((requester.open(), requester.waiting()), (0, 0));
    }
}
