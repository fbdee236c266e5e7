//! Machines that ship with the simulator.

use super::{Bram, Cache, Dram, Home, Link, Memory, Platform, Quantity};
use crate::kernel::NANOSECOND;

/// One clock of the device's logic at 322 MHz, in picoseconds.
const CLOCK: u64 = 3_106;
/// Where values without a source come from that make the published latencies come out.
const FITTED: &str = "fitted: the published read latencies are sums of these components";

/// The 16 MiB, 16-way last-level cache of a 48-core CPU with lines of 128 bytes.
fn cache() -> Cache {
    let source =
        "CCKit, section 4: 16 MiB, 16 ways, 128 B lines, hash by exclusive or of address bits";
    Cache {
        sets: Quantity::given(8192, source),
        ways: Quantity::given(16, source),
        hashed: Quantity::given(1, source),
        request: Quantity::assumed(
            20 * NANOSECOND,
            (10 * NANOSECOND, 30 * NANOSECOND),
            "assumed: 40 clocks of 2 GHz from the core to the decision of the cache",
        ),
        fill: Quantity::assumed(
            20 * NANOSECOND,
            (10 * NANOSECOND, 30 * NANOSECOND),
            "assumed: 40 clocks of 2 GHz from the cache to the core",
        ),
    }
}

/// Two links of 12 lanes of 10 Gb/s; `bandwidth` is what one carries in lines and headers.
fn link(bandwidth: u64, latency: u64, range: (u64, u64), measured: &str) -> Link {
    Link {
        links: Quantity::given(2, "CCKit, section 4: two links of 12 lanes"),
        bandwidth: Quantity::assumed(bandwidth, (bandwidth, 15_000_000_000), measured),
        latency: Quantity::assumed(latency, range, FITTED),
        header_bytes: Quantity::given(8, "CCKit, section 4: a header of 64 bit"),
        jitter: Quantity::given(0, "nothing is random"),
    }
}

/// The home on the FPGA: 64 serial units in two slices.
fn device_home() -> Home {
    let units = "CCKit, section 4.3: two slices of 32 units";
    Home {
        slices: Quantity::given(2, units),
        units: Quantity::given(32, units),
        occupancy: Quantity::assumed(
            6 * CLOCK,
            (2 * CLOCK, 16 * CLOCK),
            "assumed: 6 clocks of 322 MHz per event",
        ),
        latency: Quantity::assumed(20 * CLOCK, (4 * CLOCK, 40 * CLOCK), FITTED),
        waiting: Quantity::assumed(8, (2, 32), "assumed"),
        memory_path: Quantity::assumed(28 * CLOCK, (10 * CLOCK, 100 * CLOCK), FITTED),
    }
}

/// DDR4 DIMMs, one per channel. Timing as in JEDEC's speed bins, rounded.
fn ddr4(channels: u64, mega_transfers: u64, controller: u64, source: &str) -> Memory {
    let bin = "DDR4 speed bin, about 14 ns each for column, activation and precharge";
    Memory::Dram(Box::new(Dram {
        channels: Quantity::given(channels, source),
        banks: Quantity::given(16, "DDR4: 16 banks"),
        row_bytes: Quantity::given(8192, "DDR4 x8: rows of 8 KiB per rank"),
        bandwidth: Quantity::given(mega_transfers * 8_000_000, source),
        column: Quantity::given(14_160, bin),
        activate: Quantity::given(14_160, bin),
        precharge: Quantity::given(14_160, bin),
        open_for: Quantity::assumed(
            200 * NANOSECOND,
            (50 * NANOSECOND, 1_000 * NANOSECOND),
            "assumed: an idle row is closed, since sequential and random latencies differ little",
        ),
        controller: Quantity::assumed(controller, (controller / 2, controller * 2), FITTED),
    }))
}

impl Platform {
    /// Enzian, with the home on the FPGA in front of two DDR4-2400 DIMMs.
    pub fn enzian_ddr() -> Platform {
        Platform {
            name: "enzian, DC+DDR".into(),
            remotes: 1,
            cache: cache(),
            link: device_link(),
            home: device_home(),
            memory: ddr4(
                2,
                2400,
                116 * NANOSECOND,
                "CCKit, figure 5: 2 x DDR4-2400 behind the FPGA home",
            ),
            lines: 1 << 28,
            patience: patience(),
        }
    }

    /// Enzian, with the home on the FPGA in front of two BRAMs.
    pub fn enzian_bram() -> Platform {
        let source = "CCKit, figure 5: 2 x 64 KiB BRAM, 38.4 GiB/s, 3.1 ns";
        Platform {
            name: "enzian, DC+BRAM".into(),
            memory: Memory::Bram(Bram {
                ports: Quantity::given(2, source),
                bandwidth: Quantity::given(20_615_843_020, source),
                latency: Quantity::given(3_100, source),
            }),
            ..Platform::enzian_ddr()
        }
    }

    /// Two ThunderX-1 sockets: the home is in the other CPU, in front of four DDR4-2133 DIMMs.
    pub fn thunderx1_2s() -> Platform {
        let assumed = "assumed: one unit per bank of the last-level cache";
        Platform {
            name: "thunderx1-2s, LLC+DDR".into(),
            remotes: 1,
            cache: cache(),
            link: link(
                9_824_737_690,
                45 * NANOSECOND,
                (30 * NANOSECOND, 100 * NANOSECOND),
                "CCKit, figure 5: 18.3 GiB/s over both links",
            ),
            home: Home {
                slices: Quantity::assumed(8, (4, 16), assumed),
                units: Quantity::assumed(16, (8, 32), assumed),
                occupancy: Quantity::assumed(2_000, (500, 8_000), "assumed: 4 clocks of 2 GHz"),
                latency: Quantity::assumed(
                    10 * NANOSECOND,
                    (5 * NANOSECOND, 30 * NANOSECOND),
                    FITTED,
                ),
                waiting: Quantity::assumed(16, (4, 64), "assumed"),
                memory_path: Quantity::assumed(15 * NANOSECOND, (0, 30 * NANOSECOND), FITTED),
            },
            memory: ddr4(
                4,
                2133,
                54 * NANOSECOND,
                "CCKit, figure 5: 4 x DDR4-2133, two-socket CPU server",
            ),
            lines: 1 << 28,
            patience: patience(),
        }
    }
}

fn device_link() -> Link {
    link(
        10_522_669_875,
        90 * NANOSECOND,
        (60 * NANOSECOND, 140 * NANOSECOND),
        "CCKit, figure 5: 19.6 GiB/s over both links",
    )
}

fn patience() -> Quantity {
    Quantity::given(100_000 * NANOSECOND, "longer than anything here takes")
}
