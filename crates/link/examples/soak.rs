//! Millions of messages over lanes with random bit errors, on links that go down and lose lanes. Checks that no message
//! is lost, repeated, changed or reordered on a circuit, and that no credit is lost. Compares the cost of errors with
//! the formula.
//!
//! `soak --link NAME --count N --seed S`

use cohkit_link::bit_errors::RandomGenerator;
use cohkit_link::cxl::{self, Flits, Side};
use cohkit_link::layer::WireUnit;
use cohkit_link::testbench::LANE_BYTE;
use cohkit_link::{ccix, pcie, End, Layer, Message, Parameters, Testbench};
use std::process::exit;

/// Bytes per lane and one-way delay: 50 ns at 16 GT/s.
const DELAY: u64 = 100;
const LANES: u32 = 12;
/// Approximate number of link failures; after every other one, the link comes up with fewer lanes.
const DOWNS: u64 = 100;

struct Load<'a> {
    name: &'a str,
    /// Bit error rate, per bit.
    rate: f64,
    /// Circuits of each end, with the data bytes of their messages.
    circuits: [&'a [(u8, u16)]; 2],
    /// Bytes of a full unit, and retry timeout in units after a repeated loss.
    unit: u64,
    patience: f64,
    /// True if one wrong byte in each third is corrected.
    mended: bool,
}

impl Load<'_> {
    /// Probability that a full unit must be resent.
    fn wrong(&self) -> f64 {
        let bits = 8 * self.unit as i32;
        if !self.mended {
            return 1.0 - (1.0 - self.rate).powi(bits);
        }
        let byte = 1.0 - (1.0 - self.rate).powi(8);
        let good = |bytes: i32| {
            (1.0 - byte).powi(bytes) + f64::from(bytes) * byte * (1.0 - byte).powi(bytes - 1)
        };
        // 256 bytes in three parts.
        1.0 - good(86) * good(85) * good(85)
    }

    /// Cost of an error in units: a round trip with a unit at either end, and the retry timeout weighted by the
    /// probability that the resent unit is damaged in turn.
    fn costs(&self) -> [f64; 2] {
        let way = (DELAY * u64::from(LANES)) as f64 / self.unit as f64;
        [2.0 * way + 2.0, self.wrong() * self.patience]
    }

    /// Share of the bandwidth that errors leave.
    fn share_left(&self) -> f64 {
        let wrong = self.wrong();
        let [there_and_back, again] = self.costs();
        (1.0 - wrong) / (1.0 - wrong + wrong * (there_and_back + again))
    }
}

fn fed<L: Layer>(
    ends: [L; 2],
    load: &Load,
    rate: f64,
    seed: u64,
    count: u64,
) -> (Testbench<L>, u64) {
    let mut drive = Testbench::new(ends, LANES, DELAY * LANE_BYTE, rate, seed);
    let (mut chance, mut lanes) = (RandomGenerator::new(seed), LANES);
    let (mut downs, mut next) = (0, count / DOWNS);
    while drive.traffic[0].messages() + drive.traffic[1].messages() < count {
        for (from, circuits) in load.circuits.iter().enumerate() {
            for &(circuit, bytes) in *circuits {
                drive.fill(from, circuit, bytes);
            }
        }
        drive.step();
        drive.drain(0);
        drive.drain(1);
        // At intervals, the link goes down and comes up with fewer lanes, and soon after with all.
        let came = drive.traffic[0].messages() + drive.traffic[1].messages();
        if rate > 0.0 && came >= next {
            let whole = lanes < LANES;
            lanes = if whole {
                LANES
            } else {
                1 + chance.below(11) as u32
            };
            next += count / DOWNS * if whole { 39 } else { 1 } / 20;
            downs += 1;
            drive.retrain(1000 * LANE_BYTE, lanes);
        }
    }
    (drive, downs)
}

/// Bytes of data per byte on the wires.
fn share<L: Layer>(drive: &Testbench<L>) -> f64 {
    let data: u64 = drive.traffic.iter().map(|traffic| traffic.data).sum();
    let bits: u64 = drive.wires.iter().map(|wire| wire.bits).sum();
    8.0 * data as f64 / bits as f64
}

fn soak<L: Layer>(ends: impl Fn() -> [L; 2], load: &Load, seed: u64, count: u64)
where
    L::Unit: WireUnit,
{
    let whole = share(&fed(ends(), load, 0.0, seed, count / 10).0);
    let (mut drive, downs) = fed(ends(), load, load.rate, seed, count);
    let left = share(&drive) / whole;
    assert!(
        drive.settle(10_000_000),
        "everything arrives, once, in order, and comes to rest"
    );
    let messages = drive.traffic[0].messages() + drive.traffic[1].messages();
    let units: u64 = drive.wires.iter().map(|wire| wire.units).sum();
    let damaged: u64 = drive.wires.iter().map(|wire| wire.damaged).sum();
    let replayed: u64 = drive.ends().iter().map(Layer::replayed).sum();
    let taken: u64 = drive.ends().iter().map(Layer::taken).sum();
    // In percent of the units kept for replay; the others are idle or are superseded by the next one.
    let replays = 100.0 * replayed as f64 / (taken + replayed) as f64;
    assert!(replays >= 1.0, "too few were sent again: {replays} %");
    let (name, formula) = (load.name, load.share_left());
    println!("{name}: {messages} messages in {taken} units, of which some were sent again {replayed} times: {replays:.2} % of what was sent");
    println!("{units} units with what says nothing, acknowledges or returns credits, {damaged} of them damaged");
    println!("{downs} times down, and up with fewer lanes or with all {LANES}");
    println!("none lost, repeated, changed or out of order on its circuit; no credit lost");
    println!("errors leave {left:.4} of the data; by formula {formula:.4}");
    let (wrong, [there_and_back, again]) = (100.0 * load.wrong(), load.costs());
    println!(
        "by formula {wrong:.2} % of full units of {} bytes go wrong, and each costs {:.1} of them: {there_and_back:.1} for the way there and back, {again:.1} as what goes again may go wrong",
        load.unit,
        there_and_back + again
    );
    // The record keeps the last line.
    println!(
        r#"{{"link": "{name}", "messages": {messages}, "downs": {downs}, "units": {units}, "kept": {taken}, "damaged": {damaged}, "replayed": {replayed}, "share_left": {left:.4}, "share_by_formula": {formula:.4}}}"#
    );
}

fn flits(flits: Flits) -> [cxl::End; 2] {
    [Side::Host, Side::Device].map(|side| cxl::End::new(cxl::Parameters::new(flits, side)))
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut link, mut count, mut seed) = ("eci".to_string(), 10_000_000, 1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match (option.as_str(), value.parse()) {
            ("--link", _) => link = value,
            ("--count", Ok(value)) => count = value,
            ("--seed", Ok(value)) => seed = value,
            _ => {
                eprintln!("soak --link NAME --count N --seed S: the last two are numbers, not `{option} {value}`");
                exit(2);
            }
        }
    }
    let mut load = Load {
        name: &link,
        rate: 2e-6,
        circuits: [&[(4, 128), (5, 128), (6, 0)]; 2],
        unit: 64,
        patience: 256.0,
        mended: false,
    };
    match link.as_str() {
        "eci" => soak(
            || std::array::from_fn(|_| End::new(Parameters::ECI)),
            &load,
            seed,
            count,
        ),
        "pcie" => {
            let parameters = pcie::Parameters::new(256, 168);
            (load.rate, load.unit) = (4e-6, 280);
            load.circuits = [&[(pcie::POSTED, 256)]; 2];
            load.patience = parameters.patience as f64 / load.unit as f64;
            let end = |_| pcie::End::<Message>::new(parameters.clone());
            soak(|| std::array::from_fn(end), &load, seed, count);
        }
        "ccix" => {
            (load.rate, load.unit) = (6e-6, 492);
            load.circuits = [&[(0, 0), (3, 64)]; 2];
            load.patience = (64 << 10) as f64 / load.unit as f64;
            let end = |_| ccix::End::new(512, ccix::OPTIMISED, true, 168);
            soak(|| std::array::from_fn(end), &load, seed, count);
        }
        "cxl68" => {
            load.unit = 68;
            load.circuits = [
                &[(cxl::REQUEST, 0), (cxl::DATA, 64)],
                &[(cxl::RESPONSE, 0), (cxl::DATA, 64)],
            ];
            soak(|| flits(Flits::Small), &load, seed, count);
        }
        "cxl256" => {
            (load.rate, load.unit, load.mended) = (4e-5, 256, true);
            load.circuits = [&[(cxl::REQUEST, 0), (cxl::RESPONSE, 0), (cxl::DATA, 64)]; 2];
            soak(|| flits(Flits::Large), &load, seed, count);
        }
        _ => {
            eprintln!("soak --link: eci, pcie, ccix, cxl68 or cxl256, not `{link}`");
            exit(2);
        }
    }
}
