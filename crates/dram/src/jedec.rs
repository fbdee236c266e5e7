//! DRAM with the timing parameters of a JEDEC standard.

use cohkit_units::{Quantity, Time, NANOSECOND};

/// A standard and speed of DRAM. The timing parameters are those of the common speed bin, for devices with eight data
/// lines (HBM2: for a pseudo channel).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// DDR4-2133, 15-15-15, devices of 8 Gbit.
    Ddr4_2133,
    /// DDR4-2400, 17-17-17, devices of 8 Gbit.
    Ddr4_2400,
    /// DDR4-3200, 22-22-22, devices of 8 Gbit.
    Ddr4_3200,
    /// A subchannel of DDR5-4800, 40-39-39, devices of 16 Gbit.
    Ddr5_4800,
    /// A pseudo channel of HBM2 with 2.0 Gbit/s per data line.
    Hbm2,
}

impl Standard {
    /// All standards, by name.
    pub const ALL: [(&'static str, Standard); 5] = [
        ("ddr4-2133", Standard::Ddr4_2133),
        ("ddr4-2400", Standard::Ddr4_2400),
        ("ddr4-3200", Standard::Ddr4_3200),
        ("ddr5-4800", Standard::Ddr5_4800),
        ("hbm2", Standard::Hbm2),
    ];

    /// Returns the standard of a name, which the quantity `key` has.
    ///
    /// # Errors
    /// A sentence with the known names. It begins with `key`.
    pub fn named(key: &str, name: &str) -> Result<Standard, String> {
        named(key, name, &Standard::ALL)
    }
}

/// Order in which a controller serves the bursts that wait for a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduler {
    /// Column commands that are legal come first, then the oldest burst.
    FirstReady,
    /// Four queues by bank group, each strictly in order, with round robin between them, as in the controller of
    /// UltraScale FPGAs.
    GroupMachines,
}

impl Scheduler {
    /// All schedulers, by name.
    pub const ALL: [(&'static str, Scheduler); 2] = [
        ("fr-fcfs", Scheduler::FirstReady),
        ("group-machines", Scheduler::GroupMachines),
    ];
}

/// Page policies by their former names, with the value of `dram.closed_page`.
const PAGE_POLICIES: [(&str, u64); 2] = [("open", 0), ("closed", 1)];

/// Returns the entry of `known` with this name.
///
/// # Errors
/// A sentence with the known names. It begins with `key`.
fn named<T: Copy>(key: &str, name: &str, known: &[(&'static str, T)]) -> Result<T, String> {
    let entry = known.iter().find(|(known, _)| *known == name);
    entry.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        format!("`{key}` is one of {}, not `{name}`", names.join(", "))
    })
}

/// Commands that group machines issue per clock of the controller: one activate, one column command and one precharge.
const MIN_CONTROLLER_CLOCKS: u64 = 3;

/// Timing parameters of a DRAM, in picoseconds. A controller rounds each up to whole clocks.
#[derive(Clone, Debug)]
pub struct JedecTiming {
    /// From a read to its first data.
    pub t_cl: Quantity,
    /// From a write to its first data.
    pub t_cwl: Quantity,
    /// From an activate to a column command of its bank.
    pub t_rcd: Quantity,
    /// From a precharge to an activate of its bank.
    pub t_rp: Quantity,
    /// From an activate to a precharge of its bank.
    pub t_ras: Quantity,
    /// From a read to a precharge of its bank.
    pub t_rtp: Quantity,
    /// From the last data of a write to a precharge of its bank.
    pub t_wr: Quantity,
    /// Between column commands of different bank groups.
    pub t_ccd_s: Quantity,
    /// Between column commands of one bank group.
    pub t_ccd_l: Quantity,
    /// Between two writes of one bank group.
    pub t_ccd_l_wr: Quantity,
    /// Between activates in different bank groups.
    pub t_rrd_s: Quantity,
    /// Between activates in one bank group.
    pub t_rrd_l: Quantity,
    /// Window with at most four activates.
    pub t_faw: Quantity,
    /// From the last data of a write to a read in another bank group.
    pub t_wtr_s: Quantity,
    /// From the last data of a write to a read in its bank group.
    pub t_wtr_l: Quantity,
    /// From a read to a write.
    pub t_rtw: Quantity,
    /// Interval of refreshes; 0 for none.
    pub t_refi: Quantity,
    /// From a refresh to an activate.
    pub t_rfc: Quantity,
}

/// DRAM with the timing of a JEDEC standard.
#[derive(Clone, Debug)]
pub struct JedecDram {
    /// Order of service.
    pub scheduler: Scheduler,
    /// 1 if a row is closed after a column command, unless a waiting burst hits it; 0 if it stays open until another row of
    /// its bank is needed, or a refresh.
    pub closed_page: Quantity,
    /// Number of channels. A line belongs to channel (line mod channels), unless addresses are hashed.
    pub channels: Quantity,
    /// 1 if bits 5, 6, 13 and 14 of the line number are folded into the two lowest ones for the choice of the channel,
    /// 0 if not.
    pub channel_hash: Quantity,
    /// 1 if the lowest bits of the row number are folded into bank group and bank, 0 if not.
    pub bank_hash: Quantity,
    /// Maximum number of bursts that the scheduler considers: of a channel, or of each group machine.
    pub queue_entries: Quantity,
    /// Time in a queue after which FR-FCFS lets no other burst delay the oldest one of a channel, in picoseconds.
    pub max_wait: Quantity,
    /// Clocks of the DRAM in a clock of a controller with group machines.
    pub controller_clocks: Quantity,
    /// Latency of controller and wires, both directions together, in picoseconds.
    pub controller_latency: Quantity,
    /// Clock period of the command bus, in picoseconds.
    pub clock_period: Quantity,
    /// Clocks for which a burst occupies the data bus.
    pub burst_clocks: Quantity,
    /// Bytes of a burst, a power of two.
    pub burst_bytes: Quantity,
    /// Number of bank groups of a channel, a power of two.
    pub bank_groups: Quantity,
    /// Number of banks of a bank group, a power of two.
    pub banks_per_group: Quantity,
    /// Size of a row over all devices of a channel, in bytes, a power of two.
    pub row_bytes: Quantity,
    /// Timing parameters.
    pub timing: JedecTiming,
}

/// Structure and timing of a standard. Times are in picoseconds.
struct Parameters {
    source: &'static str,
    clock_period: Time,
    burst_clocks: u64,
    burst_bytes: u64,
    bank_groups: u64,
    banks_per_group: u64,
    row_bytes: u64,
    /// In the order of [`JedecTiming`].
    timing: [Time; 18],
}

/// Timing of a standard as JEDEC states it: minima in clocks, and in hundredths of a nanosecond. The larger one counts.
struct Minimum(u64, u64);

/// Returns the picoseconds of minima for a clock period.
fn picoseconds<const N: usize>(period: Time, minima: [Minimum; N]) -> [Time; N] {
    minima.map(|Minimum(clocks, hundredths)| (clocks * period).max(hundredths * NANOSECOND / 100))
}

/// Returns the parameters of DDR4 with devices of 8 Gbit and pages of 1 KiB: clock period, CL (as tRCD and tRP), CWL,
/// tRAS, and the nanoseconds of tCCD_L, tRRD_S and tRRD_L in hundredths.
fn ddr4(
    source: &'static str,
    period: Time,
    (cl, cwl): (u64, u64),
    (ras, ccd_l, rrd_s, rrd_l): (u64, u64, u64, u64),
) -> Parameters {
    let (burst, c) = (4, Minimum);
    Parameters {
        source,
        clock_period: period,
        burst_clocks: burst,
        burst_bytes: 64,
        bank_groups: 4,
        banks_per_group: 4,
        row_bytes: 8 << 10,
        timing: picoseconds(
            period,
            [
                c(cl, 0),
                c(cwl, 0),
                c(cl, 0),
                c(cl, 0),
                c(0, ras),
                c(4, 750),
                c(0, 1500),
                c(4, 0),
                c(5, ccd_l),
                c(5, ccd_l),
                c(4, rrd_s),
                c(4, rrd_l),
                c(20, 2100),
                c(2, 250),
                c(4, 750),
                c(cl + burst + 2 - cwl, 0),
                c(0, 780_000),
                c(0, 35_000),
            ],
        ),
    }
}

/// Returns the parameters of a subchannel of DDR5-4800.
fn ddr5_4800() -> Parameters {
    let c = Minimum;
    Parameters {
        source: "JEDEC JESD79-5, DDR5-4800 (40-39-39), subchannel of 32 bit, 16 Gbit x8",
        clock_period: 417,
        burst_clocks: 8,
        burst_bytes: 64,
        bank_groups: 8,
        banks_per_group: 4,
        row_bytes: 4 << 10,
        timing: picoseconds(
            417,
            [
                c(40, 0),
                c(38, 0),
                c(39, 0),
                c(39, 0),
                c(0, 3200),
                c(12, 750),
                c(0, 3000),
                c(8, 0),
                c(8, 500),
                c(16, 1000),
                c(8, 0),
                c(8, 500),
                c(32, 1333),
                c(4, 250),
                c(16, 1000),
                c(40 + 8 + 2 - 38, 0),
                c(0, 390_000),
                c(0, 29_500),
            ],
        ),
    }
}

/// Returns the parameters of a pseudo channel of HBM2.
fn hbm2() -> Parameters {
    let c = Minimum;
    Parameters {
        source: "HBM2 at 2.0 Gbit/s, pseudo channel of 64 bit; JEDEC JESD235 leaves most times to vendors, these are typical",
        clock_period: 1000,
        burst_clocks: 2,
        burst_bytes: 32,
        bank_groups: 4,
        banks_per_group: 4,
        row_bytes: 1 << 10,
        timing: picoseconds(
            1000,
            [
                c(14, 0),
                c(4, 0),
                c(14, 0),
                c(14, 0),
                c(34, 0),
                c(6, 0),
                c(16, 0),
                c(2, 0),
                c(4, 0),
                c(4, 0),
                c(4, 0),
                c(6, 0),
                c(30, 0),
                c(6, 0),
                c(8, 0),
                c(14 + 2 + 2 - 4, 0),
                c(0, 390_000),
                c(0, 26_000),
            ],
        ),
    }
}

impl Standard {
    fn parameters(self) -> Parameters {
        match self {
            Standard::Ddr4_2133 => ddr4(
                "JEDEC JESD79-4, DDR4-2133 (15-15-15), 8 Gbit x8",
                938,
                (15, 11),
                (3300, 536, 370, 530),
            ),
            Standard::Ddr4_2400 => ddr4(
                "JEDEC JESD79-4, DDR4-2400 (17-17-17), 8 Gbit x8",
                833,
                (17, 12),
                (3200, 500, 330, 490),
            ),
            Standard::Ddr4_3200 => ddr4(
                "JEDEC JESD79-4, DDR4-3200 (22-22-22), 8 Gbit x8",
                625,
                (22, 16),
                (3200, 500, 250, 490),
            ),
            Standard::Ddr5_4800 => ddr5_4800(),
            Standard::Hbm2 => hbm2(),
        }
    }
}

impl JedecDram {
    /// Rejects quantities that contradict each other.
    ///
    /// # Errors
    /// A sentence with their names.
    pub fn check(&self) -> Result<(), String> {
        let (refi, rfc) = (self.timing.t_refi.value, self.timing.t_rfc.value);
        if refi != 0 && refi <= rfc {
            return Err(format!(
                "dram.t_refi is {refi} ps, but a refresh takes dram.t_rfc, {rfc} ps: no time is left for accesses"
            ));
        }
        let (clocks, machines) = (self.controller_clocks.value, Scheduler::GroupMachines);
        if self.scheduler == machines && clocks < MIN_CONTROLLER_CLOCKS {
            return Err(format!(
                "dram.controller_clocks is {clocks}, but group machines issue {MIN_CONTROLLER_CLOCKS} commands per clock of the controller, each in a clock of the DRAM"
            ));
        }
        let channels = self.channels.value;
        if self.channel_hash.value != 0 && !channels.is_power_of_two() {
            return Err(format!(
                "dram.channel_hash needs a power of two of channels, not {channels}"
            ));
        }
        let (row, burst) = (self.row_bytes.value, self.burst_bytes.value);
        if row < burst {
            return Err(format!(
                "dram.row_bytes is {row}, less than the {burst} bytes of a burst (dram.burst_bytes)"
            ));
        }
        Ok(())
    }

    /// Returns the number of clocks of a duration in picoseconds, rounded up. As JEDEC rounds, a duration that exceeds
    /// a whole number of clocks by less than 2.6 % of a clock is that number.
    pub fn clocks(&self, duration: Time) -> u64 {
        (duration * 1000 / self.clock_period.value.max(1) + 974) / 1000
    }

    /// Returns the parts of the latency of a read of a line whose bank has no open row, without any other operation and
    /// without waits for clock edges: names of quantities with times in picoseconds.
    pub fn read_latency(&self, line_bytes: u32) -> [(&'static str, Time); 4] {
        let time = |clocks: u64| clocks * self.clock_period.value;
        let bursts = u64::from(line_bytes).div_ceil(self.burst_bytes.value);
        let interval = self
            .clocks(self.timing.t_ccd_s.value)
            .max(self.burst_clocks.value);
        let transfer = interval * (bursts - 1) + self.burst_clocks.value;
        [
            ("dram.controller_latency", self.controller_latency.value),
            ("dram.t_rcd", time(self.clocks(self.timing.t_rcd.value))),
            ("dram.t_cl", time(self.clocks(self.timing.t_cl.value))),
            ("dram.burst_clocks", time(transfer)),
        ]
    }

    /// Creates one channel of a standard with FR-FCFS, open rows, and no latency of the controller.
    pub fn new(standard: Standard) -> JedecDram {
        let set = |value| Quantity::given(value, "set for this run");
        let mut dram = JedecDram {
            scheduler: Scheduler::FirstReady,
            closed_page: set(0),
            channels: set(1),
            channel_hash: set(0),
            bank_hash: set(0),
            queue_entries: set(32),
            max_wait: set(1000 * NANOSECOND),
            controller_clocks: set(4),
            controller_latency: set(0),
            clock_period: set(0),
            burst_clocks: set(0),
            burst_bytes: set(0),
            bank_groups: set(0),
            banks_per_group: set(0),
            row_bytes: set(0),
            timing: JedecTiming::from_values([0; 18], ""),
        };
        dram.set_standard(standard);
        dram
    }

    /// Gives the DRAM the structure and the timing parameters of a standard.
    pub fn set_standard(&mut self, standard: Standard) {
        let parameters = standard.parameters();
        let given = |value| Quantity::given(value, parameters.source);
        self.clock_period = given(parameters.clock_period);
        self.burst_clocks = given(parameters.burst_clocks);
        self.burst_bytes = given(parameters.burst_bytes);
        self.bank_groups = given(parameters.bank_groups);
        self.banks_per_group = given(parameters.banks_per_group);
        self.row_bytes = given(parameters.row_bytes);
        self.timing = JedecTiming::from_values(parameters.timing, parameters.source);
    }
}

impl JedecDram {
    /// Sets the standard, the scheduler or the page policy by the name of the choice and that of its value. `origin` is
    /// that of the page policy.
    ///
    /// # Errors
    /// A sentence with the known names.
    pub fn set_choice(&mut self, name: &str, value: &str, origin: &str) -> Result<(), String> {
        match name.rsplit('.').next() {
            Some("scheduler") => self.scheduler = named(name, value, &Scheduler::ALL)?,
            Some("page_policy") => {
                let closed_page = named(name, value, &PAGE_POLICIES)?;
                self.closed_page = Quantity::given(closed_page, origin);
            }
            _ => self.set_standard(Standard::named(name, value)?),
        }
        Ok(())
    }
}

impl JedecTiming {
    /// Creates parameters from their values in picoseconds, in the order of the fields.
    fn from_values(values: [Time; 18], origin: &str) -> JedecTiming {
        let mut values = values.into_iter();
        let mut next = || Quantity::given(values.next().unwrap_or_default(), origin);
        JedecTiming {
            t_cl: next(),
            t_cwl: next(),
            t_rcd: next(),
            t_rp: next(),
            t_ras: next(),
            t_rtp: next(),
            t_wr: next(),
            t_ccd_s: next(),
            t_ccd_l: next(),
            t_ccd_l_wr: next(),
            t_rrd_s: next(),
            t_rrd_l: next(),
            t_faw: next(),
            t_wtr_s: next(),
            t_wtr_l: next(),
            t_rtw: next(),
            t_refi: next(),
            t_rfc: next(),
        }
    }
}
