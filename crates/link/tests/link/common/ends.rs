//! Ends of all links, and traffic that keeps them full.

use cohkit_link::cxl::{self, Flits, Side};
use cohkit_link::testbench::{Testbench, LANE_BYTE};
use cohkit_link::{ccix, pcie, End, Layer, Message, Parameters};

/// Number of lanes of the tested links.
pub const LANES: u32 = 8;

/// One-way delay in ticks: 50 ns on lanes of about 1 GB/s.
pub const DELAY: u64 = 50 * LANE_BYTE;

/// Two ends of an ECI link.
pub fn eci() -> [End; 2] {
    std::array::from_fn(|_| End::new(Parameters::ECI))
}

/// Two ends of a PCIe link with packets of 256 bytes.
pub fn pcie() -> [pcie::End<Message>; 2] {
    std::array::from_fn(|_| pcie::End::new(pcie::Parameters::new(256, 168)))
}

/// Two ends of a CCIX link with packets of 512 bytes.
pub fn ccix() -> [ccix::End; 2] {
    std::array::from_fn(|_| ccix::End::new(512, ccix::OPTIMISED_HEADER_BYTES, true, 168))
}

/// Host and memory device of a CXL link.
pub fn flits(flits: Flits) -> [cxl::End; 2] {
    [Side::Host, Side::Device].map(|side| cxl::End::new(cxl::Parameters::new(flits, side)))
}

/// Duration of a bandwidth measurement: 100,000 bytes per lane.
pub const TICKS: u64 = 100_000 * LANE_BYTE;

/// Fills both directions, or only the first, for `ticks` ticks after a warm-up. Returns the bytes of data received
/// in the first direction, and the bytes carried by its wire.
pub fn run_full_queues<L: Layer>(
    ends: [L; 2],
    circuits: [(u8, u16); 2],
    is_bidirectional: bool,
    ticks: u64,
) -> (u64, u64) {
    let mut bench = Testbench::new(ends, 16, DELAY, 0.0, 0);
    let mut start = None;
    while bench.now < ticks + ticks / 8 {
        let sides = circuits.into_iter().enumerate();
        for (from, (circuit, bytes)) in sides.take(1 + usize::from(is_bidirectional)) {
            bench.fill(from, circuit, bytes);
        }
        bench.step();
        bench.drain(0);
        bench.drain(1);
        if bench.now >= ticks / 8 && start.is_none() {
            start = Some((bench.traffic[0].data, bench.wires[0].bits));
        }
    }
    let (data, bits) = start.expect("the beginning is over");
    (
        bench.traffic[0].data - data,
        (bench.wires[0].bits - bits) / 8,
    )
}

/// Asserts that data per bytes on the wire is that of a formula, with a relative tolerance.
pub fn assert_share(share: (u64, u64), formula: f64, tolerance: f64) {
    let share = share.0 as f64 / share.1 as f64;
    assert!(
        (share / formula - 1.0).abs() < tolerance,
        "{share} by run, {formula} by formula"
    );
}
