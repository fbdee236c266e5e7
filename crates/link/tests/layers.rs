//! All link layers under the same faults: bit errors, lost lanes, and links that go down and up. No message is lost,
//! repeated or reordered on a circuit, and no credit is lost.

mod common;

use cohkit_link::bit_errors::RandomGenerator;
use cohkit_link::cxl::{self, Flits, Side};
use cohkit_link::layer::WireUnit;
use cohkit_link::testbench::{Testbench, LANE_BYTE};
use cohkit_link::{Layer, Message, Rejection};
use common::ends::{agree, ccix, eci, filled, flits, pcie, DELAY, LANES, TICKS};
use common::{seeds, SeedReport};

/// Sends random messages on random circuits until enough were sent in each direction, with `faults` injected faults.
fn torture<L: Layer>(name: &str, ends: [L; 2], sizes: &[&[u16]], seed: u64) {
    let mut chance = RandomGenerator::new(seed);
    let rate = [0.0, 1e-5, 5e-5, 1e-4][seed as usize % 4];
    let mut drive = Testbench::new(ends, LANES, DELAY, rate, seed);
    let mut lanes = LANES;
    let enough = |drive: &Testbench<L>| {
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
            // Take the link down, and up again with as many or fewer lanes.
            lanes = 1 + chance.below(u64::from(lanes)) as u32;
            drive.retrain(chance.below(2000) * LANE_BYTE, lanes);
        }
        let [first, second] = drive.ends();
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
            drive.ends().iter().any(|end| end.replayed() > 0),
            "{name}, seed {seed}"
        );
    }
}

macro_rules! tortured {
    ($test:ident, $ends:expr, $sizes:expr) => {
        #[test]
        fn $test() {
            for seed in seeds(24) {
                let _told = SeedReport(seed, "layers", stringify!($test));
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

// Each side refuses messages that its format lacks: small flits have no back-invalidation.
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

#[test]
fn flit_bandwidth_matches_the_formula() {
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
fn small_flits_know_no_back_invalidation() {
    for (form, side) in [
        (Flits::Small, 0),
        (Flits::Small, 1),
        (Flits::Large, 0),
        (Flits::Large, 1),
    ] {
        let mut ends = flits(form);
        // Snoop response of the host; in small flits, the device's request is a CXL.cache message.
        let class = [cxl::RESPONSE, cxl::REQUEST][side];
        let sent = ends[side].send(Message {
            circuit: class,
            bytes: 0,
            label: 0,
        });
        let expected = match (form, side) {
            (Flits::Small, 0) => Err(Rejection::Malformed),
            _ => Ok(()),
        };
        assert_eq!(sent, expected);
    }
}

#[test]
fn error_correction_reduces_flit_retransmissions() {
    let replayed = |form| {
        let [host, device] = flits(form);
        let mut drive = Testbench::new([host, device], 16, DELAY, 2e-5, 1);
        for _ in 0..20_000 {
            drive.fill(1, cxl::DATA, cxl::LINE);
            drive.step();
            drive.drain(1);
        }
        assert!(drive.settle(100_000));
        let damaged = drive.ends()[0].retry.receiver.damaged;
        (drive.wires[1].damaged, damaged, drive.ends()[0].mended)
    };
    // Two errors in one third of a 2048-bit flit are rare; in small flits each error counts.
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

/// Messages per circuit received from the first end while all its circuits are kept full.
fn shared<L: Layer>(ends: [L; 2], sizes: &[u16]) -> Vec<u64> {
    let mut drive = Testbench::new(ends, LANES, DELAY, 0.0, 0);
    while drive.now < TICKS / 4 {
        for (circuit, &bytes) in sizes.iter().enumerate() {
            drive.fill(0, circuit as u8, bytes);
        }
        drive.step();
        drive.drain(0);
    }
    drive.traffic[0].came[..sizes.len()].to_vec()
}

/// Regression: CCIX filled its packets with requests as long as there were any, and data starved.
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

/// The six bytes of error correction carry no message. Regression: errors in two of them were taken for undetected
/// errors, and corrupted a message.
#[test]
fn wrong_bytes_that_mend_change_nothing() {
    let mut drive = Testbench::new(flits(Flits::Large), LANES, DELAY, 0.0, 0);
    assert!(drive.settle(100_000));
    for bytes in [[250, 253], [251, 254], [252, 255]] {
        assert!(drive.send(0, cxl::REQUEST, 0));
        while drive.wires[0]
            .under_way
            .iter()
            .all(|(_, unit)| unit.is_idle())
        {
            drive.step();
        }
        let (_, unit) = (drive.wires[0].under_way.iter_mut())
            .find(|(_, unit)| !unit.is_idle())
            .expect("the request is under way");
        for byte in bytes {
            unit.flip(8 * byte);
        }
        assert!(drive.settle(100_000), "{bytes:?}");
    }
    assert_eq!(drive.ends()[0].replayed(), 0);
    for seed in seeds(6) {
        let _told = SeedReport(seed, "layers", "wrong_bytes_that_mend_change_nothing");
        // The error rate is high enough that two of these bytes are sometimes wrong.
        let mut drive = Testbench::new(flits(Flits::Large), LANES, DELAY, 4e-4, seed);
        let mut chance = RandomGenerator::new(seed);
        for _ in 0..60_000 {
            let circuit = chance.below(20) as u8;
            if let Some(&bytes) = [0, 0, 64].get(usize::from(circuit)) {
                drive.send(chance.below(2) as usize, circuit, bytes);
            }
            drive.step();
            drive.drain(0);
            drive.drain(1);
        }
        assert!(drive.settle(1_000_000), "{seed}");
    }
}

/// Sends messages at random times, with idle units skipped or, if `is_sending_idle_units`, sent. Returns arrivals and replays with
/// their times, and the number of steps.
fn at_times<L: Layer>(
    ends: [L; 2],
    sizes: &[u16],
    seed: u64,
    is_sending_idle_units: bool,
) -> (Vec<String>, u64) {
    let mut chance = RandomGenerator::new(seed);
    let mut drive = Testbench::new(ends, LANES, DELAY, 0.0, 0);
    drive.is_sending_idle_units = is_sending_idle_units;
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
            // Damage a unit that is not idle, in one byte more than error correction repairs.
            time += chance.below(100) * LANE_BYTE;
            drive.advance(time);
            let under_way = drive.wires[chance.below(2) as usize].under_way.iter_mut();
            if let Some((_, unit)) = under_way.rev().find(|(_, unit)| !unit.is_idle()) {
                unit.flip(0);
                unit.flip(24 * 8);
            }
        }
        let sent = drive.wires.each_ref().map(|wire| wire.bits - wire.idle);
        let replayed = drive.ends().each_ref().map(Layer::replayed);
        seen.push(format!("{:?} {sent:?} {replayed:?}", drive.traffic));
        units = drive.wires[0].units;
    }
    let before = units;
    // Skipped idle units cause no steps.
    let mut steps = 0;
    drive.advance(time + 100_000 * LANE_BYTE);
    while drive.now < time + 110_000 * LANE_BYTE && drive.step() {
        steps += 1;
    }
    assert!(drive.wires[0].units > before || !is_sending_idle_units);
    (seen, steps)
}

#[test]
fn skipping_idle_slots_changes_nothing() {
    fn same<L: Layer>(name: &str, ends: fn() -> [L; 2], sizes: &[u16], seed: u64) {
        let (skipped, few) = at_times(ends(), sizes, seed, false);
        let (whole, many) = at_times(ends(), sizes, seed, true);
        for (place, pair) in skipped.iter().zip(&whole).enumerate() {
            assert_eq!(pair.0, pair.1, "{name}, seed {seed}, at {place}");
        }
        assert!(few * 100 < many, "{name}: {few} steps instead of {many}");
    }
    for seed in seeds(12) {
        let _told = SeedReport(seed, "layers", "skipping_idle_slots_changes_nothing");
        let lines = [0, 0, 128, 128, 128, 128, 0, 0, 0, 0, 0, 0, 0];
        same("eci", eci, &lines, seed);
        same("pcie", pcie, &[256, 0, 256], seed);
        same("ccix", ccix, &[0, 0, 0, 64], seed);
        same("cxl68", || flits(Flits::Small), &[0, 0, 64], seed);
        same("cxl256", || flits(Flits::Large), &[0, 0, 64], seed);
    }
}

/// Sends messages at random times over random lanes. Returns the arrivals with their times.
fn over_random_lanes<L: Layer>(
    ends: [L; 2],
    sizes: &[u16],
    seed: u64,
    go_on: impl Fn(&mut Testbench<L>, u64),
    has_replay_disabled: bool,
) -> Vec<String> {
    let mut chance = RandomGenerator::new(seed);
    let rate = [0.0, 0.0, 1e-5, 1e-4][seed as usize % 4];
    let lanes = 1 + chance.below(16) as u32;
    let delay = chance.below(2) * chance.below(2 * DELAY);
    let mut drive = Testbench::new(ends, lanes, delay, rate, seed);
    if rate <= 0.0 && has_replay_disabled {
        drive.settle(100_000);
        drive.forget();
    } else {
        drive.settle(100_000);
    }
    let (mut seen, mut time) = (Vec::new(), drive.now);
    let pause = [10, 300, 10_000][chance.below(3) as usize];
    for _ in 0..150 {
        time += chance.below(pause * LANE_BYTE);
        go_on(&mut drive, time);
        for _ in 0..chance.below(4) {
            let circuit = chance.below(sizes.len() as u64) as usize;
            drive.send(chance.below(2) as usize, circuit as u8, sizes[circuit]);
        }
        let side = chance.below(2) as usize;
        let whole: Vec<u64> = (0..sizes.len() as u8)
            .filter(|&circuit| drive.ends()[1 - side].come() >> circuit & 1 == 1)
            .map(|circuit| drive.message_completion_time(1 - side, circuit))
            .collect();
        drive.drain(side);
        if rate > 0.0 && chance.below(50) == 0 {
            drive.retrain(chance.below(100) * LANE_BYTE, 1 + chance.below(16) as u32);
        }
        let sent = drive.wires.each_ref().map(|wire| {
            let said = wire.bits - wire.idle;
            (wire.units, said, wire.damaged, wire.under_way.len())
        });
        let next = drive.next_at();
        seen.push(format!("{:?} {sent:?} {whole:?} {next}", drive.traffic));
    }
    seen
}

/// A drive advances each side independently until a new unit could arrive, and ends discard what they will never
/// resend. Both optimisations must be equivalent to strict event order with all units kept.
#[test]
fn independent_advance_equals_event_order() {
    fn same<L: Layer>(name: &str, ends: fn() -> [L; 2], sizes: &[u16], seed: u64) {
        let in_turn = |drive: &mut Testbench<L>, until: u64| {
            while drive.next_at() < until {
                drive.step();
            }
            drive.advance(until);
        };
        let slow = over_random_lanes(ends(), sizes, seed, in_turn, false);
        let fast = over_random_lanes(ends(), sizes, seed, Testbench::advance, true);
        for (place, pair) in slow.iter().zip(&fast).enumerate() {
            assert_eq!(pair.0, pair.1, "{name}, seed {seed}, at {place}");
        }
    }
    for seed in seeds(40) {
        let _told = SeedReport(seed, "layers", "independent_advance_equals_event_order");
        let lines = [0, 0, 128, 128, 128, 128, 0, 0, 0, 0, 0, 0, 0];
        same("eci", eci, &lines, seed);
        same("pcie", pcie, &[256, 0, 256], seed);
        same("ccix", ccix, &[0, 0, 0, 64], seed);
        same("cxl68", || flits(Flits::Small), &[0, 0, 64], seed);
        same("cxl256", || flits(Flits::Large), &[0, 0, 64], seed);
    }
}
