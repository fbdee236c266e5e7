//! Millions of messages over lanes with random bit errors, on links that go down and lose lanes. Checks that no message
//! is lost, repeated, changed or reordered on a circuit, and that no credit is lost. Compares the cost of errors with
//! the formula.
//!
//! `soak --link NAME --count N --seed S`

use cohkit_base::random::SplitMix64;
use cohkit_link::cxl::{self, Flits, Side};
use cohkit_link::layer::WireUnit;
use cohkit_link::testbench::LANE_BYTE;
use cohkit_link::{ccix, pcie, End, Layer, Message, Parameters, Testbench};
use std::process::exit;

/// Bytes per lane and one-way delay: 50 ns at 16 GT/s.
const DELAY_BYTES: u64 = 100;
/// Number of lanes of the intact link.
const LANES: u32 = 12;
/// Approximate number of link failures; after every other one, the link comes up with fewer lanes.
const LINK_FAILURES: u64 = 100;

/// Traffic of a link, and the parameters of the formula.
struct Workload<'a> {
    /// Name of the link on the command line.
    name: &'a str,
    /// Bit error rate, per bit.
    rate: f64,
    /// Circuits of each end, with the data bytes of their messages.
    circuits: [&'a [(u8, u16)]; 2],
    /// Bytes of a full unit.
    unit: u64,
    /// Retry timeout in units after a repeated loss.
    retry_timeout_units: f64,
    /// True if one wrong byte in each third is corrected.
    has_error_correction: bool,
}

impl Workload<'_> {
    /// Probability that a full unit must be resent.
    fn resend_probability(&self) -> f64 {
        let bits = 8 * self.unit as i32;
        if !self.has_error_correction {
            return 1.0 - (1.0 - self.rate).powi(bits);
        }
        let byte = 1.0 - (1.0 - self.rate).powi(8);
        let correctable = |bytes: i32| {
            (1.0 - byte).powi(bytes) + f64::from(bytes) * byte * (1.0 - byte).powi(bytes - 1)
        };
        // 256 bytes in three parts.
        1.0 - correctable(86) * correctable(85) * correctable(85)
    }

    /// Cost of an error in units: a round trip with a unit at either end, and the retry timeout weighted by the
    /// probability that the resent unit is damaged in turn.
    fn costs(&self) -> [f64; 2] {
        let units_one_way = (DELAY_BYTES * u64::from(LANES)) as f64 / self.unit as f64;
        [
            2.0 * units_one_way + 2.0,
            self.resend_probability() * self.retry_timeout_units,
        ]
    }

    /// Expected share of the bandwidth with errors.
    fn expected_share(&self) -> f64 {
        let resend_probability = self.resend_probability();
        let [round_trip, repeated_loss] = self.costs();
        (1.0 - resend_probability)
            / (1.0 - resend_probability + resend_probability * (round_trip + repeated_loss))
    }
}

/// Sends `count` messages at the given bit error rate, over a link that fails if the rate is not 0. Returns the bench
/// and the number of link failures.
fn run_traffic<L: Layer>(
    ends: [L; 2],
    workload: &Workload,
    rate: f64,
    seed: u64,
    count: u64,
) -> (Testbench<L>, u64) {
    let mut bench = Testbench::new(ends, LANES, DELAY_BYTES * LANE_BYTE, rate, seed);
    let (mut random, mut lanes) = (SplitMix64::new(seed), LANES);
    let (mut failures, mut next) = (0, count / LINK_FAILURES);
    while bench.traffic[0].messages() + bench.traffic[1].messages() < count {
        for (side, circuits) in workload.circuits.iter().enumerate() {
            for &(circuit, bytes) in *circuits {
                bench.fill(side, circuit, bytes);
            }
        }
        bench.step();
        bench.drain(0);
        bench.drain(1);
        // At intervals, the link goes down and comes up with fewer lanes, and soon after with all.
        let received = bench.traffic[0].messages() + bench.traffic[1].messages();
        if rate > 0.0 && received >= next {
            let degraded = lanes < LANES;
            lanes = if degraded {
                LANES
            } else {
                1 + random.modulo(11) as u32
            };
            next += count / LINK_FAILURES * if degraded { 39 } else { 1 } / 20;
            failures += 1;
            bench.retrain(1000 * LANE_BYTE, lanes);
        }
    }
    (bench, failures)
}

/// Bytes of data per byte on the wires.
fn share<L: Layer>(bench: &Testbench<L>) -> f64 {
    let data: u64 = bench.traffic.iter().map(|traffic| traffic.data).sum();
    let bits: u64 = bench.wires.iter().map(|wire| wire.bits).sum();
    8.0 * data as f64 / bits as f64
}

/// Runs without and with errors, checks that nothing is lost, and prints the cost of the errors beside the formula's.
fn soak<L: Layer>(ends: impl Fn() -> [L; 2], workload: &Workload, seed: u64, count: u64)
where
    L::Unit: WireUnit,
{
    let error_free_share = share(&run_traffic(ends(), workload, 0.0, seed, count / 10).0);
    let (mut bench, failures) = run_traffic(ends(), workload, workload.rate, seed, count);
    let share_with_errors = share(&bench) / error_free_share;
    assert!(
        bench.settle(10_000_000),
        "not all messages arrived intact and in order, or the ends are not at rest"
    );
    let messages = bench.traffic[0].messages() + bench.traffic[1].messages();
    let units: u64 = bench.wires.iter().map(|wire| wire.units).sum();
    let damaged: u64 = bench.wires.iter().map(|wire| wire.damaged).sum();
    let replayed: u64 = bench.ends().iter().map(Layer::replayed).sum();
    let accepted: u64 = bench.ends().iter().map(Layer::accepted_units).sum();
    // In percent of the units kept for replay; the others are idle or are superseded by the next one.
    let replays = 100.0 * replayed as f64 / (accepted + replayed) as f64;
    assert!(
        replays >= 1.0,
        "too few units were resent to test replay: {replays} %"
    );
    let (name, formula) = (workload.name, workload.expected_share());
    println!("{name}: {messages} messages in {accepted} units kept for replay, and {replayed} replays: {replays:.2} % of both together");
    println!("{units} units of all kinds, including idle units, acknowledgements and credits; {damaged} arrived with bit errors");
    println!("{failures} link failures; the link came up with fewer lanes or with all {LANES}");
    println!("none lost, repeated, changed or out of order on its circuit; no credit lost");
    println!("errors leave {share_with_errors:.4} of the data; by formula {formula:.4}");
    let (percent_resent, [round_trip, repeated_loss]) =
        (100.0 * workload.resend_probability(), workload.costs());
    println!(
        "by formula, {percent_resent:.2} % of full units of {} bytes are resent, and each costs {:.1} units: {round_trip:.1} for the round trip, {repeated_loss:.1} for damage to the resent unit",
        workload.unit,
        round_trip + repeated_loss
    );
    // The record keeps the last line.
    println!(
        r#"{{"link": "{name}", "messages": {messages}, "downs": {failures}, "units": {units}, "kept": {accepted}, "damaged": {damaged}, "replayed": {replayed}, "share_left": {share_with_errors:.4}, "share_by_formula": {formula:.4}}}"#
    );
}

/// Host and memory device of a CXL link.
fn flits(flits: Flits) -> [cxl::End; 2] {
    [Side::Host, Side::Device].map(|side| cxl::End::new(cxl::Parameters::new(flits, side)))
}

/// Options of the command line.
struct Options {
    /// Name of the link.
    link: String,
    /// Number of messages.
    count: u64,
    /// Seed of bit errors and link failures.
    seed: u64,
}

impl Options {
    /// Parses the options; ends the process with a message if one is invalid.
    fn parse() -> Options {
        let mut options = Options {
            link: "eci".to_string(),
            count: 10_000_000,
            seed: 1,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(option) = arguments.next() {
            let value = arguments.next().unwrap_or_default();
            match (option.as_str(), value.parse()) {
                ("--link", _) => options.link = value,
                ("--count", Ok(value)) => options.count = value,
                ("--seed", Ok(value)) => options.seed = value,
                _ => {
                    eprintln!("soak --link NAME --count N --seed S: the last two are numbers, not `{option} {value}`");
                    exit(2);
                }
            }
        }
        options
    }
}

fn main() {
    let Options { link, count, seed } = Options::parse();
    let mut workload = Workload {
        name: &link,
        rate: 2e-6,
        circuits: [&[(4, 128), (5, 128), (6, 0)]; 2],
        unit: 64,
        retry_timeout_units: 256.0,
        has_error_correction: false,
    };
    match link.as_str() {
        "eci" => soak(
            || std::array::from_fn(|_| End::new(Parameters::ECI)),
            &workload,
            seed,
            count,
        ),
        "pcie" => {
            let parameters = pcie::Parameters::new(256, 168);
            (workload.rate, workload.unit) = (4e-6, 280);
            workload.circuits = [&[(pcie::POSTED, 256)]; 2];
            workload.retry_timeout_units =
                parameters.retry_timeout_bytes as f64 / workload.unit as f64;
            let end = |_| pcie::End::<Message>::new(parameters.clone());
            soak(|| std::array::from_fn(end), &workload, seed, count);
        }
        "ccix" => {
            (workload.rate, workload.unit) = (6e-6, 492);
            workload.circuits = [&[(0, 0), (3, 64)]; 2];
            workload.retry_timeout_units = (64 << 10) as f64 / workload.unit as f64;
            let end = |_| ccix::End::new(512, ccix::OPTIMISED_HEADER_BYTES, true, 168);
            soak(|| std::array::from_fn(end), &workload, seed, count);
        }
        "cxl68" => {
            workload.unit = 68;
            workload.circuits = [
                &[(cxl::REQUEST, 0), (cxl::DATA, 64)],
                &[(cxl::RESPONSE, 0), (cxl::DATA, 64)],
            ];
            soak(|| flits(Flits::Small), &workload, seed, count);
        }
        "cxl256" => {
            (workload.rate, workload.unit, workload.has_error_correction) = (4e-5, 256, true);
            workload.circuits = [&[(cxl::REQUEST, 0), (cxl::RESPONSE, 0), (cxl::DATA, 64)]; 2];
            soak(|| flits(Flits::Large), &workload, seed, count);
        }
        _ => {
            eprintln!("soak --link: eci, pcie, ccix, cxl68 or cxl256, not `{link}`");
            exit(2);
        }
    }
}
