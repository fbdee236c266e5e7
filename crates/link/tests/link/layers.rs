//! All link layers under the same faults: bit errors, lost lanes, and links that go down and up. No message is lost,
//! repeated or reordered on a circuit, and no credit is lost.

use crate::common;

use cohkit_base::random::SplitMix64;
use cohkit_link::cxl::{self, Flits, Side};
use cohkit_link::layer::WireUnit;
use cohkit_link::testbench::{Testbench, LANE_BYTE};
use cohkit_link::{Layer, Message, Rejection};
use common::ends::{assert_share, ccix, eci, flits, pcie, run_full_queues, DELAY, LANES, TICKS};
use common::{seeds, SeedReport};

/// Sends random messages on random circuits until 500 were sent in each direction. The seed determines the bit error
/// rate and the times at which the link goes down. No credit may be missing at any time.
fn send_with_faults<L: Layer>(name: &str, ends: [L; 2], sizes: &[&[u16]], seed: u64) {
    let mut random = SplitMix64::new(seed);
    let rate = [0.0, 1e-5, 5e-5, 1e-4][seed as usize % 4];
    let mut bench = Testbench::new(ends, LANES, DELAY, rate, seed);
    let mut lanes = LANES;
    let has_sent_enough = |bench: &Testbench<L>| {
        let side_is_done = |side: usize| bench.traffic[side].sent.iter().sum::<u64>() >= 500;
        side_is_done(0) && side_is_done(1)
    };
    for _ in 0..200_000 {
        if has_sent_enough(&bench) {
            break;
        }
        for side in 0..2 {
            let circuit = random.modulo(sizes.len() as u64) as usize;
            let sizes = sizes[circuit];
            let bytes = sizes[random.modulo(sizes.len() as u64) as usize];
            bench.send(side, circuit as u8, bytes);
        }
        bench.step();
        if random.modulo(3) == 0 {
            bench.drain(0);
            bench.drain(1);
        }
        if random.modulo(1500) == 0 {
            // Take the link down, and up again with as many or fewer lanes.
            lanes = 1 + random.modulo(u64::from(lanes)) as u32;
            bench.retrain(random.modulo(2000) * LANE_BYTE, lanes);
        }
        let [first, second] = bench.ends();
        assert_eq!(first.shortages(second), [], "{name}, seed {seed}");
        assert_eq!(second.shortages(first), [], "{name}, seed {seed}");
    }
    assert!(
        bench.settle(4_000_000),
        "{name}, seed {seed}: it comes to rest"
    );
    for traffic in &bench.traffic {
        assert!(
            traffic.messages() >= 500,
            "{name}, seed {seed}: {traffic:?}"
        );
    }
    if rate >= 1e-4 {
        assert!(bench.wires.iter().all(|wire| wire.damaged > 0));
        assert!(
            bench.ends().iter().any(|end| end.replayed() > 0),
            "{name}, seed {seed}"
        );
    }
}

/// One test per link layer: its ends, and the data sizes of the messages on each circuit.
macro_rules! fault_tests {
    ($test:ident, $ends:expr, $sizes:expr) => {
        #[test]
        fn $test() {
            for seed in seeds(24) {
                let _seed_report = SeedReport {
                    seed,
                    file: "layers",
                    test: stringify!($test),
                };
                send_with_faults(stringify!($test), $ends, $sizes, seed);
            }
        }
    };
}

/// Data sizes of messages with lines, in bytes.
const LINES: &[u16] = &[32, 64, 128];

fault_tests!(
    eci_loses_no_message,
    eci(),
    &[&[0], &[0], LINES, LINES, LINES, LINES, &[0], &[0], &[0]]
);

fault_tests!(
    pcie_loses_no_message,
    pcie(),
    &[&[4, 64, 256], &[0], &[64, 256]]
);

fault_tests!(
    ccix_loses_no_message,
    ccix(),
    &[&[0], &[0], &[0], &[64, 128]]
);

// Each side rejects messages that its format lacks: small flits have no back-invalidation.
fault_tests!(
    small_flits_lose_no_message,
    flits(Flits::Small),
    &[&[0], &[0], &[64]]
);

fault_tests!(
    large_flits_lose_no_message,
    flits(Flits::Large),
    &[&[0], &[0], &[64]]
);

/// Messages per flit at saturation, for both formats and directions.
#[test]
fn flit_bandwidth_matches_the_formula() {
    for (format, read, write) in [
        (Flits::Small, 8.0 / 9.0, 0.8),
        (Flits::Large, 44.0 / 13.0, 3.0),
    ] {
        let messages = |side, class| {
            format
                .messages(side, class)
                .expect("there are such messages")
                .value()
        };
        assert_eq!(messages(Side::Device, cxl::DATA), read);
        assert_eq!(messages(Side::Host, cxl::DATA), write);
        let writes = [(cxl::DATA, cxl::LINE_BYTES); 2];
        let [host, device] = flits(format);
        let share = |messages: f64| messages * 64.0 / format.bytes() as f64;
        assert_share(
            run_full_queues([host, device], writes, false, TICKS),
            share(write),
            0.001,
        );
        let [host, device] = flits(format);
        assert_share(
            run_full_queues([device, host], writes, false, TICKS),
            share(read),
            0.001,
        );
    }
}

/// The only message that 68-byte flits lack is the host's response to a back-invalidate snoop.
#[test]
fn small_flits_reject_back_invalidation() {
    for (format, side) in [
        (Flits::Small, 0),
        (Flits::Small, 1),
        (Flits::Large, 0),
        (Flits::Large, 1),
    ] {
        let mut ends = flits(format);
        // Snoop response of the host; in small flits, the device's request is a CXL.cache message.
        let class = [cxl::RESPONSE, cxl::REQUEST][side];
        let sent = ends[side].send(Message {
            circuit: class,
            bytes: 0,
            label: 0,
        });
        let expected = match (format, side) {
            (Flits::Small, 0) => Err(Rejection::Malformed),
            _ => Ok(()),
        };
        assert_eq!(sent, expected);
    }
}

/// Errors in single bytes of a 256-byte flit are corrected; 68-byte flits have no correction.
#[test]
fn error_correction_reduces_flit_retransmissions() {
    let count_errors = |format| {
        let [host, device] = flits(format);
        let mut bench = Testbench::new([host, device], 16, DELAY, 2e-5, 1);
        for _ in 0..20_000 {
            bench.fill(1, cxl::DATA, cxl::LINE_BYTES);
            bench.step();
            bench.drain(1);
        }
        assert!(bench.settle(100_000));
        let damaged = bench.ends()[0].retry.receiver.damaged;
        (bench.wires[1].damaged, damaged, bench.ends()[0].corrected)
    };
    // Two errors in one third of a 2048-bit flit are rare; in small flits each error counts.
    let (damaged_units, damaged, corrected) = count_errors(Flits::Large);
    assert!(
        damaged_units > 50 && damaged * 20 < damaged_units && corrected > 50,
        "{damaged_units} {damaged} {corrected}"
    );
    let (damaged_units, damaged, corrected) = count_errors(Flits::Small);
    assert!(
        damaged_units > 10 && damaged == damaged_units && corrected == 0,
        "{damaged_units} {damaged} {corrected}"
    );
}

/// Messages per circuit received from the first end while all its circuits are kept full.
fn messages_per_circuit<L: Layer>(ends: [L; 2], sizes: &[u16]) -> Vec<u64> {
    let mut bench = Testbench::new(ends, LANES, DELAY, 0.0, 0);
    while bench.now < TICKS / 4 {
        for (circuit, &bytes) in sizes.iter().enumerate() {
            bench.fill(0, circuit as u8, bytes);
        }
        bench.step();
        bench.drain(0);
    }
    bench.traffic[0].received[..sizes.len()].to_vec()
}

/// Regression: CCIX filled its packets with requests as long as there were any, and data starved.
#[test]
fn no_circuit_starves() {
    let lines = [0, 0, 128, 128, 128, 128, 0, 0, 0, 0, 0, 0, 0];
    let [host, device] = flits(Flits::Large);
    for (received, fair) in [
        (messages_per_circuit(eci(), &lines), 3),
        (messages_per_circuit(pcie(), &[256, 0, 256]), 2),
        (messages_per_circuit(ccix(), &[0, 0, 0, 64]), 2),
        (messages_per_circuit([host, device], &[0, 0, 64]), 10),
    ] {
        let (max, min) = (received.iter().max(), received.iter().min());
        assert!(
            min.zip(max).is_some_and(|(min, max)| min * fair >= *max),
            "{received:?}"
        );
    }
}

/// The six bytes of error correction carry no message. Regression: errors in two of them were taken for undetected
/// errors, and corrupted a message.
#[test]
fn corrected_bytes_leave_messages_unchanged() {
    let mut bench = Testbench::new(flits(Flits::Large), LANES, DELAY, 0.0, 0);
    assert!(bench.settle(100_000));
    for bytes in [[250, 253], [251, 254], [252, 255]] {
        assert!(bench.send(0, cxl::REQUEST, 0));
        while bench.wires[0]
            .in_flight
            .iter()
            .all(|(_, unit)| unit.is_idle())
        {
            bench.step();
        }
        let (_, unit) = (bench.wires[0].in_flight.iter_mut())
            .find(|(_, unit)| !unit.is_idle())
            .expect("the request is under way");
        for byte in bytes {
            unit.flip(8 * byte);
        }
        assert!(bench.settle(100_000), "{bytes:?}");
    }
    assert_eq!(bench.ends()[0].replayed(), 0);
    for seed in seeds(6) {
        let _seed_report = SeedReport {
            seed,
            file: "layers",
            test: "corrected_bytes_leave_messages_unchanged",
        };
        // The error rate is high enough that two of these bytes are sometimes wrong.
        let mut bench = Testbench::new(flits(Flits::Large), LANES, DELAY, 4e-4, seed);
        let mut random = SplitMix64::new(seed);
        for _ in 0..60_000 {
            let circuit = random.modulo(20) as u8;
            if let Some(&bytes) = [0, 0, 64].get(usize::from(circuit)) {
                bench.send(random.modulo(2) as usize, circuit, bytes);
            }
            bench.step();
            bench.drain(0);
            bench.drain(1);
        }
        assert!(bench.settle(1_000_000), "{seed}");
    }
}

/// Sends messages at random times, with idle units skipped or, if `is_sending_idle_units`, sent. Returns arrivals and
/// replays with their times, and the number of steps.
fn run_at_random_times<L: Layer>(
    ends: [L; 2],
    sizes: &[u16],
    seed: u64,
    is_sending_idle_units: bool,
) -> (Vec<String>, u64) {
    let mut random = SplitMix64::new(seed);
    let mut bench = Testbench::new(ends, LANES, DELAY, 0.0, 0);
    bench.is_sending_idle_units = is_sending_idle_units;
    let (mut records, mut units, mut time) = (Vec::new(), 0, 0);
    for _ in 0..60 {
        time += random.modulo(1000) * LANE_BYTE + 1;
        bench.advance(time);
        let from = random.modulo(2) as usize;
        let circuit = random.modulo(sizes.len() as u64) as usize;
        for _ in 0..random.modulo(12) {
            bench.send(from, circuit as u8, sizes[circuit]);
        }
        bench.drain(random.modulo(2) as usize);
        if random.modulo(20) == 0 {
            bench.retrain(100 * LANE_BYTE, LANES);
        }
        if random.modulo(2) == 0 {
            // Damage a unit that is not idle, in one byte more than error correction repairs.
            time += random.modulo(100) * LANE_BYTE;
            bench.advance(time);
            let in_flight = bench.wires[random.modulo(2) as usize].in_flight.iter_mut();
            if let Some((_, unit)) = in_flight.rev().find(|(_, unit)| !unit.is_idle()) {
                unit.flip(0);
                unit.flip(24 * 8);
            }
        }
        let sent = bench.wires.each_ref().map(|wire| wire.bits - wire.idle);
        let replayed = bench.ends().each_ref().map(Layer::replayed);
        records.push(format!("{:?} {sent:?} {replayed:?}", bench.traffic));
        units = bench.wires[0].units;
    }
    let units_before = units;
    // Skipped idle units cause no steps.
    let mut steps = 0;
    bench.advance(time + 100_000 * LANE_BYTE);
    while bench.now < time + 110_000 * LANE_BYTE && bench.step() {
        steps += 1;
    }
    assert!(bench.wires[0].units > units_before || !is_sending_idle_units);
    (records, steps)
}

/// Idle units are only counted, which must not change any arrival.
#[test]
fn skipping_idle_slots_preserves_results() {
    fn assert_equivalent<L: Layer>(name: &str, ends: fn() -> [L; 2], sizes: &[u16], seed: u64) {
        let (with_skips, skipping_steps) = run_at_random_times(ends(), sizes, seed, false);
        let (without_skips, full_steps) = run_at_random_times(ends(), sizes, seed, true);
        for (index, records) in with_skips.iter().zip(&without_skips).enumerate() {
            assert_eq!(records.0, records.1, "{name}, seed {seed}, at {index}");
        }
        assert!(
            skipping_steps * 100 < full_steps,
            "{name}: {skipping_steps} steps instead of {full_steps}"
        );
    }
    for seed in seeds(12) {
        let _seed_report = SeedReport {
            seed,
            file: "layers",
            test: "skipping_idle_slots_preserves_results",
        };
        let lines = [0, 0, 128, 128, 128, 128, 0, 0, 0, 0, 0, 0, 0];
        assert_equivalent("eci", eci, &lines, seed);
        assert_equivalent("pcie", pcie, &[256, 0, 256], seed);
        assert_equivalent("ccix", ccix, &[0, 0, 0, 64], seed);
        assert_equivalent("cxl68", || flits(Flits::Small), &[0, 0, 64], seed);
        assert_equivalent("cxl256", || flits(Flits::Large), &[0, 0, 64], seed);
    }
}

/// Sends messages at random times over random lanes. Returns the arrivals with their times.
fn run_over_random_lanes<L: Layer>(
    ends: [L; 2],
    sizes: &[u16],
    seed: u64,
    advance: impl Fn(&mut Testbench<L>, u64),
    has_replay_disabled: bool,
) -> Vec<String> {
    let mut random = SplitMix64::new(seed);
    let rate = [0.0, 0.0, 1e-5, 1e-4][seed as usize % 4];
    let lanes = 1 + random.modulo(16) as u32;
    let delay = random.modulo(2) * random.modulo(2 * DELAY);
    let mut bench = Testbench::new(ends, lanes, delay, rate, seed);
    if rate <= 0.0 && has_replay_disabled {
        bench.settle(100_000);
        bench.disable_replay();
    } else {
        bench.settle(100_000);
    }
    let (mut records, mut time) = (Vec::new(), bench.now);
    let pause = [10, 300, 10_000][random.modulo(3) as usize];
    for _ in 0..150 {
        time += random.modulo(pause * LANE_BYTE);
        advance(&mut bench, time);
        for _ in 0..random.modulo(4) {
            let circuit = random.modulo(sizes.len() as u64) as usize;
            bench.send(random.modulo(2) as usize, circuit as u8, sizes[circuit]);
        }
        let side = random.modulo(2) as usize;
        let completion_times: Vec<u64> = (0..sizes.len() as u8)
            .filter(|&circuit| bench.ends()[1 - side].received_circuits() >> circuit & 1 == 1)
            .map(|circuit| bench.message_completion_time(1 - side, circuit))
            .collect();
        bench.drain(side);
        if rate > 0.0 && random.modulo(50) == 0 {
            bench.retrain(random.modulo(100) * LANE_BYTE, 1 + random.modulo(16) as u32);
        }
        let sent = bench.wires.each_ref().map(|wire| {
            let busy_bits = wire.bits - wire.idle;
            (wire.units, busy_bits, wire.damaged, wire.in_flight.len())
        });
        let next = bench.next_at();
        records.push(format!(
            "{:?} {sent:?} {completion_times:?} {next}",
            bench.traffic
        ));
    }
    records
}

/// A test bench advances each side independently until a new unit could arrive, and ends discard units that they will
/// never resend. Both optimisations must be equivalent to strict event order with all units kept.
#[test]
fn independent_advance_equals_event_order() {
    fn assert_equivalent<L: Layer>(name: &str, ends: fn() -> [L; 2], sizes: &[u16], seed: u64) {
        let step_by_step = |bench: &mut Testbench<L>, until: u64| {
            while bench.next_at() < until {
                bench.step();
            }
            bench.advance(until);
        };
        let expected_records = run_over_random_lanes(ends(), sizes, seed, step_by_step, false);
        let independent_records =
            run_over_random_lanes(ends(), sizes, seed, Testbench::advance, true);
        for (index, records) in expected_records
            .iter()
            .zip(&independent_records)
            .enumerate()
        {
            assert_eq!(records.0, records.1, "{name}, seed {seed}, at {index}");
        }
    }
    for seed in seeds(40) {
        let _seed_report = SeedReport {
            seed,
            file: "layers",
            test: "independent_advance_equals_event_order",
        };
        let lines = [0, 0, 128, 128, 128, 128, 0, 0, 0, 0, 0, 0, 0];
        assert_equivalent("eci", eci, &lines, seed);
        assert_equivalent("pcie", pcie, &[256, 0, 256], seed);
        assert_equivalent("ccix", ccix, &[0, 0, 0, 64], seed);
        assert_equivalent("cxl68", || flits(Flits::Small), &[0, 0, 64], seed);
        assert_equivalent("cxl256", || flits(Flits::Large), &[0, 0, 64], seed);
    }
}
