//! Compares `cohkit-dram` with DRAMsim3 on the same accesses, with the structure and timing parameters of a standard.
//!
//! Each access is a burst at a bank group, bank, row and column; both address maps are inverted, so that both simulators
//! access the same place. A driver keeps a number of reads in flight. Writes are posted in DRAMsim3, so that their rate is
//! that of their acceptance; here it is that of their ends. The first quarter of a run is not measured.
//!
//! The output is JSON: for each standard and pattern the clocks of an access, or of one alone, in both simulators.

use cohkit_dram::{Controller, JedecDram, Line, Standard};
use dramsim3::MemorySystem;
use std::path::{Path, PathBuf};

/// Place and direction of an access.
#[derive(Clone, Copy)]
struct Access {
    group: u64,
    bank: u64,
    row: u64,
    column: u64,
    write: bool,
}

/// Number of accesses of a run.
const ACCESSES: u64 = 20_000;
/// Accesses in flight of a run that measures a rate: fewer than the entries of any queue of DRAMsim3's.
const IN_FLIGHT: usize = 24;
/// Clocks between accesses that are alone.
const PAUSE: u64 = 400;
/// Columns of the accesses; a standard with fewer bursts in a row takes the rest of the division by their number.
const BURSTS_PER_ROW: u64 = 128;
/// Rows of a bank.
const ROWS: u64 = 1 << 14;

/// Standards that both simulators have.
const STANDARDS: [(&str, Standard); 4] = [
    ("ddr4-2133", Standard::Ddr4_2133),
    ("ddr4-2400", Standard::Ddr4_2400),
    ("ddr4-3200", Standard::Ddr4_3200),
    ("hbm2", Standard::Hbm2),
];

/// Pseudo-random number of an index (SplitMix64).
fn random(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Access number `number` in address order, with bank groups in the lowest bits.
fn sequential(number: u64, write: bool) -> Access {
    let (number, group) = (number / 4, number % 4);
    let (number, column) = (number / BURSTS_PER_ROW, number % BURSTS_PER_ROW);
    Access {
        group,
        bank: number % 4,
        row: number / 4 % ROWS,
        column,
        write,
    }
}

/// Access number `number` of random places.
fn scattered(number: u64, write: bool) -> Access {
    let bits = random(number);
    Access {
        group: bits % 4,
        bank: bits >> 2 & 3,
        row: bits >> 4 & (ROWS - 1),
        column: bits >> 32 & (BURSTS_PER_ROW - 1),
        write,
    }
}

/// Access to one bank.
fn of_bank(row: u64, column: u64, write: bool) -> Access {
    Access {
        group: 0,
        bank: 0,
        row: row % ROWS,
        column: column % BURSTS_PER_ROW,
        write,
    }
}

/// A pattern: its name, its accesses by number, and whether each is alone.
struct Pattern {
    name: &'static str,
    access: fn(u64) -> Access,
    is_alone: bool,
}

const fn rate(name: &'static str, access: fn(u64) -> Access) -> Pattern {
    Pattern {
        name,
        access,
        is_alone: false,
    }
}

const fn alone(name: &'static str, access: fn(u64) -> Access) -> Pattern {
    Pattern {
        name,
        access,
        is_alone: true,
    }
}

const PATTERNS: [Pattern; 14] = [
    rate("sequential reads", |n| sequential(n, false)),
    rate("sequential writes", |n| sequential(n, true)),
    rate("random reads", |n| scattered(n, false)),
    rate("random writes", |n| scattered(n, true)),
    rate("row hits of one bank", |n| of_bank(0, n, false)),
    rate("row misses of one bank", |n| of_bank(n, 0, false)),
    rate("write misses of one bank", |n| of_bank(n, 0, true)),
    rate("row hits of one bank group", |n| Access {
        bank: n % 4,
        ..of_bank(0, n / 4, false)
    }),
    rate("row misses of one bank group", |n| Access {
        bank: n % 4,
        ..of_bank(n / 4, 0, false)
    }),
    rate("reads at a stride of one row", |n| Access {
        group: n % 4,
        bank: n / 4 % 4,
        ..of_bank(n / 16, 0, false)
    }),
    rate("random places, two reads and a write", |n| {
        scattered(n, n % 3 == 2)
    }),
    alone("row hit alone", |n| of_bank(0, n, false)),
    alone("row miss alone", |n| of_bank(n, 0, false)),
    alone("random reads alone", |n| scattered(n, false)),
];

/// Returns a DRAM of Cohkit with FR-FCFS and as many entries as DRAMsim3 has transactions that wait.
fn dram(standard: Standard) -> JedecDram {
    let mut dram = JedecDram::new(standard);
    dram.queue_entries.value = 32;
    // DRAMsim3 has no limit.
    dram.max_wait.value = 1 << 40;
    dram
}

/// Writes DRAMsim3's configuration for the same structure and timing: one channel of one rank, open pages.
fn configuration(name: &str, dram: &JedecDram, folder: &Path) -> PathBuf {
    let timing = &dram.timing;
    let clocks = |duration: u64| dram.clocks(duration);
    let (bus_bytes, is_hbm) = (8, name == "hbm2");
    // DRAMsim3 counts a column of HBM as two.
    let columns = dram.row_bytes.value / bus_bytes / if is_hbm { 2 } else { 1 };
    let banks = dram.bank_groups.value * dram.banks_per_group.value;
    let megabytes = dram.row_bytes.value * ROWS * banks >> 20;
    let (cl, cwl, burst) = (
        clocks(timing.t_cl.value),
        clocks(timing.t_cwl.value),
        dram.burst_clocks.value,
    );
    // DRAMsim3 computes the time from a read to a write as RL + burst - WL + tRTRS.
    let rtrs = clocks(timing.t_rtw.value) + cwl - cl - burst;
    let structure = [
        ("bankgroups", dram.bank_groups.value),
        ("banks_per_group", dram.banks_per_group.value),
        ("rows", ROWS),
        ("columns", columns),
        ("device_width", 8 * bus_bytes),
        ("BL", 2 * burst),
    ];
    let times = [
        ("CL", cl),
        ("CWL", cwl),
        ("tRTRS", rtrs),
        ("tRCD", clocks(timing.t_rcd.value)),
        ("tRCDRD", clocks(timing.t_rcd.value)),
        ("tRCDWR", clocks(timing.t_rcd.value)),
        ("tRP", clocks(timing.t_rp.value)),
        ("tRAS", clocks(timing.t_ras.value)),
        ("tRTP", clocks(timing.t_rtp.value)),
        ("tWR", clocks(timing.t_wr.value)),
        ("tCCD_S", clocks(timing.t_ccd_s.value)),
        ("tCCD_L", clocks(timing.t_ccd_l.value)),
        ("tRRD_S", clocks(timing.t_rrd_s.value)),
        ("tRRD_L", clocks(timing.t_rrd_l.value)),
        ("tFAW", clocks(timing.t_faw.value)),
        ("tWTR_S", clocks(timing.t_wtr_s.value)),
        ("tWTR_L", clocks(timing.t_wtr_l.value)),
        ("tREFI", clocks(timing.t_refi.value)),
        ("tRFC", clocks(timing.t_rfc.value)),
    ];
    let lines = |pairs: &[(&str, u64)]| -> String {
        pairs
            .iter()
            .map(|(name, value)| format!("{name} = {value}\n"))
            .collect()
    };
    let text = format!(
        "[dram_structure]\nprotocol = {}\nhbm_dual_cmd = false\n{}[timing]\ntCK = 1\n{}[system]\nchannel_size = {megabytes}\nchannels = 1\n\
         bus_width = {}\naddress_mapping = rochrababgco\nqueue_structure = PER_BANK\nrow_buf_policy = OPEN_PAGE\n\
         cmd_queue_size = 8\ntrans_queue_size = 32\n[other]\noutput_level = 0\n",
        if is_hbm { "HBM" } else { "DDR4" },
        lines(&structure),
        lines(&times),
        8 * bus_bytes,
    );
    let file = folder.join(format!("{name}.ini"));
    std::fs::write(&file, text).expect("the configuration can be written");
    file
}

/// Line of an access in Cohkit's address map: bank group, one bit of the bank, column, other bit of the bank, row.
fn line(access: Access, bursts_per_row: u64) -> Line {
    let place =
        (access.row * 2 + access.bank / 2) * bursts_per_row + access.column % bursts_per_row;
    ((place * 2 + access.bank % 2) * 4 + access.group) as Line
}

/// Number of a burst in DRAMsim3's map `rochrababgco` of one channel and one rank: column, bank group, bank, row.
fn place(access: Access, bursts_per_row: u64) -> u64 {
    let row = (access.row * 4 + access.bank) * 4 + access.group;
    row * bursts_per_row + access.column % bursts_per_row
}

/// A simulator that is driven clock by clock.
trait Memory {
    /// Submits an access. Returns false if it cannot be taken now.
    fn submit(&mut self, number: u64, access: Access) -> bool;
    /// Advances by one clock. Returns the number of accesses that have ended.
    fn tick(&mut self) -> usize;
}

struct Ours {
    controller: Controller,
    /// Clock period, in picoseconds.
    period: u64,
    burst_bytes: u64,
    bursts_per_row: u64,
    clock: u64,
    /// Clocks of ends that are known before they are reached.
    ends: Vec<u64>,
}

impl Memory for Ours {
    fn submit(&mut self, number: u64, access: Access) -> bool {
        let line = line(access, self.bursts_per_row);
        let bytes = 0..self.burst_bytes as u32;
        self.controller.submit(
            self.clock * self.period,
            (line, bytes),
            access.write,
            number as u32,
        );
        true
    }

    fn tick(&mut self) -> usize {
        let mut finished = Vec::new();
        self.controller
            .advance(self.clock * self.period, &mut finished);
        self.ends
            .extend(finished.iter().map(|one| one.end / self.period));
        self.clock += 1;
        let before = self.ends.len();
        self.ends.retain(|&end| end > self.clock);
        before - self.ends.len()
    }
}

struct Peer {
    system: MemorySystem,
    burst_bytes: u64,
    bursts_per_row: u64,
}

impl Memory for Peer {
    fn submit(&mut self, _: u64, access: Access) -> bool {
        let address = place(access, self.bursts_per_row) * self.burst_bytes;
        self.system.can_add(address, access.write) && self.system.add(address, access.write)
    }

    fn tick(&mut self) -> usize {
        let mut ended = 0;
        self.system.tick(|_, _| ended += 1);
        ended
    }
}

/// Clocks of an access: with `IN_FLIGHT` of them at most, or of one alone.
fn measure(memory: &mut impl Memory, pattern: &Pattern) -> f64 {
    let (mut clock, mut submitted, mut ended) = (0_u64, 0, 0);
    // Waiting time of accesses that are alone, and the end of the first quarter.
    let (mut latency, mut quarter) = (0, 0);
    let accesses = if pattern.is_alone { 2_000 } else { ACCESSES };
    let mut free_from = 0;
    while ended < accesses {
        let most = if pattern.is_alone {
            1
        } else {
            IN_FLIGHT as u64
        };
        while submitted < accesses && submitted - ended < most && clock >= free_from {
            if !memory.submit(submitted, (pattern.access)(submitted)) {
                break;
            }
            submitted += 1;
        }
        let now_ended = memory.tick() as u64;
        clock += 1;
        if pattern.is_alone {
            latency += submitted - ended;
            if now_ended > 0 {
                free_from = clock + PAUSE + random(submitted) % 64;
            }
        }
        ended += now_ended;
        if ended >= accesses / 4 && quarter == 0 {
            quarter = clock;
            // Refers to what has ended by now, which is a few accesses more than a quarter.
            free_from = free_from.max(clock);
        }
    }
    match pattern.is_alone {
        true => latency as f64 / accesses as f64,
        false => (clock - quarter) as f64 / (accesses - accesses / 4) as f64,
    }
}

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut results = Vec::new();
    for (name, standard) in STANDARDS {
        let dram = dram(standard);
        let file = configuration(name, &dram, folder.path());
        let bursts_per_row = dram.row_bytes.value / dram.burst_bytes.value;
        for pattern in &PATTERNS {
            let mut ours = Ours {
                controller: Controller::new(&dram, dram.burst_bytes.value as u32),
                period: dram.clock_period.value,
                burst_bytes: dram.burst_bytes.value,
                bursts_per_row,
                clock: 0,
                ends: Vec::new(),
            };
            let mut peer = Peer {
                system: MemorySystem::new(&file, folder.path()).expect("DRAMsim3 starts"),
                burst_bytes: dram.burst_bytes.value,
                bursts_per_row,
            };
            let (ours, theirs) = (measure(&mut ours, pattern), measure(&mut peer, pattern));
            results.push(format!(
                r#"{{"standard": "{name}", "pattern": "{}", "ours": {ours:.3}, "dramsim3": {theirs:.3}}}"#,
                pattern.name
            ));
        }
    }
    println!("[{}]", results.join(", "));
}
