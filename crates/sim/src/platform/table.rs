//! The table of all machine quantities: name, unit, limits, and location in a platform.

use super::{current_name, Memory, Platform, Translation, Uplink, AGENTS};
use super::{
    Agents, Bram, Bus, Cache, Cores, Dram, Framing, Home, HomeCache, Hosts, JedecDram, Layer, Link,
};
use crate::kernel::{NANOSECOND, SECOND};
use cohkit_link::Lanes;
use cohkit_units::Unit::{Bytes, BytesPerSecond, Count, Picoseconds};
use cohkit_units::{self as units, Quantity, Unit};

/// Properties of a quantity that are the same in all machines.
pub struct Row {
    /// Name, without the prefix of a kind or level.
    pub name: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Smallest value that the simulator supports and that is meaningful, in the base unit.
    low: u64,
    /// Largest such value.
    high: u64,
    /// True if the value must be a power of two.
    power_of_two: bool,
    /// True if a machine can lack the quantity.
    optional: bool,
    /// Location of the quantity in a platform.
    place: Place,
}

/// Location of a quantity in a platform: the part, and a function that returns the quantity in this part.
enum Place {
    /// Quantity of the cores of each kind of caching agents.
    Cores(fn(&mut Cores) -> &mut Quantity),
    /// Quantity of the caches of each kind.
    Cache(fn(&mut Cache) -> &mut Quantity),
    /// Quantity of the links of each kind.
    Link(fn(&mut Link) -> &mut Quantity),
    /// Quantity of framed links only.
    Layer(fn(&mut Layer) -> &mut Quantity),
    /// Quantity of address translation only.
    Translation(fn(&mut Translation) -> &mut Quantity),
    /// Quantity of homes.
    Home(fn(&mut Home) -> &mut Quantity),
    /// Quantity that cores can lack.
    ExtraCores(fn(&mut Cores) -> &mut Option<Quantity>),
    /// Quantity that caches can lack.
    ExtraCache(fn(&mut Cache) -> &mut Option<Quantity>),
    /// Quantity that a home can lack.
    Extra(fn(&mut Home) -> &mut Option<Quantity>),
    /// Quantity of the cache at a home only.
    HomeCache(fn(&mut HomeCache) -> &mut Quantity),
    /// Progress timeout of the machine.
    WatchdogTimeout,
    /// Quantity of a DRAM without a standard.
    Dram(fn(&mut Dram) -> &mut Quantity),
    /// Quantity of a DRAM with a standard only.
    Jedec(fn(&mut JedecDram) -> &mut Quantity),
    /// Quantity that the standard of a DRAM sets, unless the platform does.
    Standard(fn(&mut JedecDram) -> &mut Quantity),
    /// Quantity of each kind of DRAM.
    AnyDram(
        fn(&mut Dram) -> &mut Quantity,
        fn(&mut JedecDram) -> &mut Quantity,
    ),
    /// Quantity of machines with on-chip memory only.
    Bram(fn(&mut Bram) -> &mut Quantity),
    /// Latency of the switch.
    Switch,
    /// Quantity of hosts only.
    Hosts(fn(&mut Hosts) -> &mut Quantity),
    /// Quantity of switches of two levels only.
    Uplink(fn(&mut Uplink) -> &mut Quantity),
    /// Quantity of machines with a device bus only.
    Bus(fn(&mut Bus) -> &mut Quantity),
}

impl Row {
    /// Returns the row of a name or a former name.
    pub fn named(name: &str) -> Option<&'static Row> {
        let name = current_name(name);
        TABLE.iter().find(|row| row.name == name)
    }

    /// Returns the quantity of a machine, if it has it. With several kinds of agents, it is that of the first.
    pub fn quantity_of<'p>(&self, platform: &'p mut Platform) -> Option<&'p mut Quantity> {
        Some(match self.place {
            Place::Cores(accessor) => accessor(&mut platform.cores),
            Place::Cache(accessor) => accessor(&mut platform.cache),
            Place::Link(accessor) => accessor(&mut platform.link),
            Place::Layer(accessor) => accessor(platform.link.layer.as_mut()?),
            Place::Translation(accessor) => accessor(platform.cache.translation.as_mut()?),
            Place::Home(accessor) => accessor(&mut platform.home),
            Place::ExtraCores(accessor) => accessor(&mut platform.cores).as_mut()?,
            Place::ExtraCache(accessor) => accessor(&mut platform.cache).as_mut()?,
            Place::Extra(accessor) => accessor(&mut platform.home).as_mut()?,
            Place::HomeCache(accessor) => accessor(platform.home.llc.as_mut()?),
            Place::WatchdogTimeout => &mut platform.watchdog_timeout,
            Place::Dram(accessor) => match &mut platform.memory {
                Memory::Dram(dram) => accessor(dram),
                _ => return None,
            },
            Place::Jedec(accessor) | Place::Standard(accessor) => match &mut platform.memory {
                Memory::Jedec(dram) => accessor(dram),
                _ => return None,
            },
            Place::AnyDram(accessor, jedec_accessor) => match &mut platform.memory {
                Memory::Dram(dram) => accessor(dram),
                Memory::Jedec(dram) => jedec_accessor(dram),
                Memory::Bram(_) => return None,
            },
            Place::Bram(accessor) => match &mut platform.memory {
                Memory::Bram(bram) => accessor(bram),
                _ => return None,
            },
            Place::Switch => &mut platform.switch.as_mut()?.latency,
            Place::Hosts(accessor) => accessor(platform.hosts.as_mut()?),
            Place::Uplink(accessor) => accessor(platform.uplink.as_mut()?),
            Place::Bus(accessor) => accessor(platform.bus.as_mut()?),
        })
    }

    /// Returns the quantity of agents of a further kind, if they have one of their own.
    pub fn of_agents<'p>(&self, agents: &'p mut Agents) -> Option<&'p mut Quantity> {
        Some(match self.place {
            Place::Cores(accessor) if self.name != "cores.timeout" => accessor(&mut agents.cores),
            Place::ExtraCores(accessor) => accessor(&mut agents.cores).as_mut()?,
            Place::ExtraCache(accessor) => accessor(&mut agents.cache).as_mut()?,
            Place::Cache(accessor) => accessor(&mut agents.cache),
            Place::Link(accessor) => accessor(&mut agents.link),
            Place::Layer(accessor) => accessor(agents.link.layer.as_mut()?),
            Place::Translation(accessor) => accessor(agents.cache.translation.as_mut()?),
            _ => return None,
        })
    }

    /// Removes an optional quantity from a machine. Returns true if the quantity is optional.
    pub(super) fn remove_from(&self, platform: &mut Platform) -> bool {
        match self.place {
            Place::Extra(accessor) => *accessor(&mut platform.home) = None,
            Place::ExtraCores(accessor) => *accessor(&mut platform.cores) = None,
            Place::ExtraCache(accessor) => *accessor(&mut platform.cache) = None,
            _ => {}
        }
        self.optional || self.is_set_by_standard(platform)
    }

    /// True if the quantity has a value from the standard of a platform's DRAM.
    fn is_set_by_standard(&self, platform: &Platform) -> bool {
        let has_standard = matches!(platform.memory, Memory::Jedec(_));
        let is_of_standard = match self.place {
            Place::Standard(_) => true,
            Place::AnyDram(..) => !matches!(self.name, "dram.channels" | "dram.controller_latency"),
            _ => false,
        };
        has_standard && is_of_standard
    }

    /// Returns a clause for errors, if the name is a quantity of framed links that the platform lacks for want of a
    /// layer.
    pub(super) fn layer_requirement(name: &str) -> Option<String> {
        let kind_and_name = name
            .strip_prefix(AGENTS)
            .and_then(|name| name.split_once('.'));
        let row = Row::named(kind_and_name.map_or(name, |(_, name)| name))?;
        let layers = Framing::ALL.map(|(name, _)| name).join(", ");
        matches!(row.place, Place::Layer(_))
            .then(|| format!("needs a layer of the link: `link.layer` is one of {layers}"))
    }

    /// Removes an optional quantity from agents of a further kind. Returns true if the quantity is optional.
    pub(super) fn remove_from_agents(&self, agents: &mut Agents) -> bool {
        match self.place {
            Place::ExtraCores(accessor) => *accessor(&mut agents.cores) = None,
            Place::ExtraCache(accessor) => *accessor(&mut agents.cache) = None,
            _ => {}
        }
        self.optional
    }

    /// Rejects values outside the limits, in a sentence with the quantity's full name.
    pub(super) fn check(&self, name: &str, value: u64) -> Result<(), String> {
        let value_text = units::show(value, self.unit);
        if !(self.low..=self.high).contains(&value) {
            let (low, high) = (
                units::show(self.low, self.unit),
                units::show(self.high, self.unit),
            );
            return Err(format!("{name} must be {low} to {high}, not {value_text}"));
        }
        if self.power_of_two && !value.is_power_of_two() {
            return Err(format!("{name} must be a power of two, not {value_text}"));
        }
        Ok(())
    }

    /// Permits a file without the quantity, which then keeps its default.
    const fn with_default(mut self) -> Row {
        self.optional = true;
        self
    }

    /// Restricts the values to powers of two.
    const fn with_power_of_two(mut self) -> Row {
        self.power_of_two = true;
        self
    }
}

/// Creates a row with limits in the base unit of `unit`. Quantities that cores, caches or homes can lack are optional.
const fn row(name: &'static str, unit: Unit, (low, high): (u64, u64), place: Place) -> Row {
    Row {
        name,
        unit,
        low,
        high,
        power_of_two: false,
        optional: matches!(
            place,
            Place::Extra(_) | Place::ExtraCores(_) | Place::ExtraCache(_)
        ),
        place,
    }
}

/// Limits of a delay, in picoseconds: 0 to 1 ms.
const TIME: (u64, u64) = (0, SECOND / 1000);
/// Limits of a bandwidth, in bytes per second: 1 MB/s to 1 PB/s.
const RATE: (u64, u64) = (1_000_000, 1_000_000_000_000_000);
/// Limits of a payload, in bytes: 1 B to 4 GiB.
const SIZE: (u64, u64) = (1, 1 << 32);
/// Limits of a flag: 0 or 1.
const BOOLEAN: (u64, u64) = (0, 1);
/// Limits of a header, in bytes.
const HEADER: (u64, u64) = (0, 4096);
/// Limits of a number of cores, homes or hosts.
const AGENT_COUNT: (u64, u64) = (1, Platform::MAX_AGENTS as u64);

/// All quantities, in the order of reports. Each row keeps to its line, so that the table can be read by columns.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row("cores.count", Count, AGENT_COUNT, Place::Cores(|c| &mut c.count)),
    row("cores.partitioned", Count, BOOLEAN, Place::Cores(|c| &mut c.partitioned)),
    row("cores.max_outstanding", Count, (1, 4096), Place::Cores(|c| &mut c.max_outstanding)),
    row("cores.prefetch_distance", Count, (0, 4096), Place::Cores(|c| &mut c.prefetch_distance)),
    row("cores.compute_time", Picoseconds, TIME, Place::Cores(|c| &mut c.compute_time)),
    row("cores.write_buffer", Bytes, (0, 1 << 20), Place::Cores(|c| &mut c.write_buffer)),
    row("cores.l1_size", Bytes, (0, 1 << 24), Place::Cores(|c| &mut c.l1_size)),
    row("cores.l1_ways", Count, (1, 16), Place::Cores(|c| &mut c.l1_ways)),
    row("cores.l1_hit_latency", Picoseconds, TIME, Place::Cores(|c| &mut c.l1_hit_latency)),
    row("cores.timeout", Picoseconds, (NANOSECOND, 10 * SECOND), Place::Cores(|c| &mut c.timeout)),
    row("cores.issue_interval", Picoseconds, TIME, Place::ExtraCores(|c| &mut c.issue_interval)),
    row("cores.max_posted_stores", Count, (1, 4096), Place::ExtraCores(|c| &mut c.max_posted_stores)),
    row("cache.sets", Count, (1, 1 << 24), Place::Cache(|c| &mut c.sets)).with_power_of_two(),
    row("cache.ways", Count, (1, 16), Place::Cache(|c| &mut c.ways)),
    row("cache.index_hash", Count, BOOLEAN, Place::Cache(|c| &mut c.index_hash)),
    row("cache.request_latency", Picoseconds, TIME, Place::Cache(|c| &mut c.request_latency)),
    row("cache.hit_latency", Picoseconds, TIME, Place::Cache(|c| &mut c.hit_latency)),
    row("cache.store_hit_latency", Picoseconds, TIME, Place::ExtraCache(|c| &mut c.store_hit_latency)),
    row("cache.fill_latency", Picoseconds, TIME, Place::Cache(|c| &mut c.fill_latency)),
    row("translation.enabled", Count, BOOLEAN, Place::Translation(|t| &mut t.enabled)),
    row("translation.page_size", Bytes, (4 << 10, 1 << 30), Place::Translation(|t| &mut t.page_size)).with_power_of_two(),
    row("translation.atc_entries", Count, (1, 1 << 20), Place::Translation(|t| &mut t.atc_entries)),
    row("translation.atc_ways", Count, (0, 1 << 20), Place::Translation(|t| &mut t.atc_ways)).with_default(),
    row("translation.atc_hit_latency", Picoseconds, TIME, Place::Translation(|t| &mut t.atc_hit_latency)),
    row("translation.max_outstanding", Count, (1, 4096), Place::Translation(|t| &mut t.max_outstanding)),
    row("translation.ats_latency", Picoseconds, TIME, Place::Translation(|t| &mut t.ats_latency)),
    row("translation.jitter", Picoseconds, TIME, Place::Translation(|t| &mut t.jitter)),
    row("translation.iommu_tlb_entries", Count, (1, 1 << 20), Place::Translation(|t| &mut t.iommu_tlb_entries)),
    row("translation.iommu_tlb_ways", Count, (0, 1 << 20), Place::Translation(|t| &mut t.iommu_tlb_ways)).with_default(),
    row("translation.iommu_tlb_latency", Picoseconds, TIME, Place::Translation(|t| &mut t.iommu_tlb_latency)),
    row("translation.levels", Count, (1, 8), Place::Translation(|t| &mut t.levels)),
    row("translation.invalidation_interval", Picoseconds, TIME, Place::Translation(|t| &mut t.invalidation_interval)),
    row("translation.read_only_one_in", Count, (0, 1 << 20), Place::Translation(|t| &mut t.read_only_one_in)),
    row("translation.absent_one_in", Count, (0, 1 << 20), Place::Translation(|t| &mut t.absent_one_in)),
    row("link.count", Count, (1, 64), Place::Link(|l| &mut l.count)),
    row("link.bandwidth", BytesPerSecond, RATE, Place::Link(|l| &mut l.bandwidth)),
    row("link.latency", Picoseconds, TIME, Place::Link(|l| &mut l.latency)),
    row("link.header_bytes", Bytes, HEADER, Place::Link(|l| &mut l.header_bytes)),
    row("link.credits", Count, (0, 1 << 16), Place::Link(|l| &mut l.credits)),
    row("link.jitter", Picoseconds, TIME, Place::Link(|l| &mut l.jitter)),
    row("link.lanes", Count, (1, Lanes::MAX_LANES as u64), Place::Layer(|l| &mut l.lanes)),
    row("link.lane_rate", BytesPerSecond, RATE, Place::Layer(|l| &mut l.lane_rate)),
    row("link.bit_errors_per_1e15", Count, (0, 1_000_000_000_000), Place::Layer(|l| &mut l.bit_errors_per_1e15)),
    row("link.mean_uptime", Picoseconds, TIME, Place::Layer(|l| &mut l.mean_uptime)),
    row("link.retrain_time", Picoseconds, TIME, Place::Layer(|l| &mut l.retrain_time)),
    row("link.degraded_lanes", Count, (1, Lanes::MAX_LANES as u64), Place::Layer(|l| &mut l.degraded_lanes)),
    row("link.merge_latency", Picoseconds, TIME, Place::Layer(|l| &mut l.merge_latency)),
    row("link.merge_latency_back", Picoseconds, TIME, Place::Layer(|l| &mut l.merge_latency_back)),
    row("home.slices", Count, (1, 64), Place::Home(|h| &mut h.slices)).with_power_of_two(),
    row("home.units", Count, (1, 1024), Place::Home(|h| &mut h.units)).with_power_of_two(),
    row("home.occupancy", Picoseconds, TIME, Place::Home(|h| &mut h.occupancy)),
    row("home.latency", Picoseconds, TIME, Place::Home(|h| &mut h.latency)),
    row("home.stall_entries", Count, (1, 1 << 16), Place::Home(|h| &mut h.stall_entries)),
    row("home.queue_entries", Count, (1, 1 << 16), Place::Home(|h| &mut h.queue_entries)),
    row("home.memory_round_trip", Picoseconds, TIME, Place::Home(|h| &mut h.memory_round_trip)),
    row("home.device_round_trip", Picoseconds, TIME, Place::Home(|h| &mut h.device_round_trip)),
    row("home.local_issue_interval", Picoseconds, TIME, Place::Home(|h| &mut h.local_issue_interval)),
    row("home.completion_latency", Picoseconds, TIME, Place::Extra(|h| &mut h.completion_latency)),
    row("home.completion_occupancy", Picoseconds, TIME, Place::Extra(|h| &mut h.completion_occupancy)),
    row("home.count", Count, AGENT_COUNT, Place::Extra(|h| &mut h.count)).with_power_of_two(),
    row("home.max_reads", Count, (1, 64), Place::Extra(|h| &mut h.max_reads)),
    row("home.max_writes", Count, (1, 64), Place::Extra(|h| &mut h.max_writes)),
    row("home.memory_in_flight", Count, (0, 1 << 16), Place::Extra(|h| &mut h.memory_in_flight)),
    row("home.llc_sets", Count, (1, 1 << 24), Place::HomeCache(|c| &mut c.sets)).with_power_of_two(),
    row("home.llc_ways", Count, (1, 64), Place::HomeCache(|c| &mut c.ways)),
    row("home.llc_latency", Picoseconds, TIME, Place::HomeCache(|c| &mut c.latency)),
    row("home.address_aliasing", Count, BOOLEAN, Place::Extra(|h| &mut h.address_aliasing)),
    row("device.issue_interval", Picoseconds, TIME, Place::Extra(|h| &mut h.issue_interval)),
    // With a progress timeout of 0, every run would fail immediately.
    row("watchdog_timeout", Picoseconds, (NANOSECOND, SECOND), Place::WatchdogTimeout),
    row("dram.channels", Count, (1, 64), Place::AnyDram(|d| &mut d.channels, |d| &mut d.channels)),
    row("dram.channel_hash", Count, BOOLEAN, Place::Jedec(|d| &mut d.channel_hash)),
    row("dram.bank_hash", Count, BOOLEAN, Place::Jedec(|d| &mut d.bank_hash)),
    row("dram.closed_page", Count, BOOLEAN, Place::Jedec(|d| &mut d.closed_page)),
    row("dram.queue_entries", Count, (1, 1024), Place::Jedec(|d| &mut d.queue_entries)),
    row("dram.max_wait", Picoseconds, TIME, Place::Jedec(|d| &mut d.max_wait)),
    row("dram.controller_clocks", Count, (1, 16), Place::Jedec(|d| &mut d.controller_clocks)),
    row("dram.clock_period", Picoseconds, (100, 10_000), Place::Standard(|d| &mut d.clock_period)),
    row("dram.burst_clocks", Count, (1, 64), Place::Standard(|d| &mut d.burst_clocks)),
    row("dram.burst_bytes", Bytes, (16, 256), Place::Standard(|d| &mut d.burst_bytes)).with_power_of_two(),
    row("dram.bank_groups", Count, (1, 8), Place::Standard(|d| &mut d.bank_groups)).with_power_of_two(),
    row("dram.banks_per_group", Count, (1, 8), Place::Standard(|d| &mut d.banks_per_group)).with_power_of_two(),
    row("dram.banks", Count, (1, 1024), Place::Dram(|d| &mut d.banks)).with_power_of_two(),
    row("dram.row_bytes", Bytes, (64, 1 << 24), Place::AnyDram(|d| &mut d.row_bytes, |d| &mut d.row_bytes)).with_power_of_two(),
    row("dram.bandwidth", BytesPerSecond, RATE, Place::Dram(|d| &mut d.bandwidth)),
    row("dram.t_cl", Picoseconds, TIME, Place::AnyDram(|d| &mut d.t_cl, |d| &mut d.timing.t_cl)),
    row("dram.t_cwl", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_cwl)),
    row("dram.t_rcd", Picoseconds, TIME, Place::AnyDram(|d| &mut d.t_rcd, |d| &mut d.timing.t_rcd)),
    row("dram.t_rp", Picoseconds, TIME, Place::AnyDram(|d| &mut d.t_rp, |d| &mut d.timing.t_rp)),
    row("dram.t_ras", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_ras)),
    row("dram.t_rtp", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_rtp)),
    row("dram.t_wr", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_wr)),
    row("dram.t_ccd_s", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_ccd_s)),
    row("dram.t_ccd_l", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_ccd_l)),
    row("dram.t_ccd_l_wr", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_ccd_l_wr)),
    row("dram.t_rrd_s", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_rrd_s)),
    row("dram.t_rrd_l", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_rrd_l)),
    row("dram.t_faw", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_faw)),
    row("dram.t_wtr_s", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_wtr_s)),
    row("dram.t_wtr_l", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_wtr_l)),
    row("dram.t_rtw", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_rtw)),
    row("dram.t_refi", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_refi)),
    row("dram.t_rfc", Picoseconds, TIME, Place::Standard(|d| &mut d.timing.t_rfc)),
    row("dram.row_idle_timeout", Picoseconds, TIME, Place::Dram(|d| &mut d.row_idle_timeout)),
    row("dram.controller_latency", Picoseconds, TIME, Place::AnyDram(|d| &mut d.controller_latency, |d| &mut d.controller_latency)),
    row("bram.ports", Count, (1, 64), Place::Bram(|b| &mut b.ports)),
    row("bram.bandwidth", BytesPerSecond, RATE, Place::Bram(|b| &mut b.bandwidth)),
    row("bram.latency", Picoseconds, TIME, Place::Bram(|b| &mut b.latency)),
    row("switch.latency", Picoseconds, TIME, Place::Switch),
    row("hosts.count", Count, AGENT_COUNT, Place::Hosts(|h| &mut h.count)).with_power_of_two(),
    row("hosts.columns", Count, (1, 64), Place::Hosts(|h| &mut h.columns)),
    row("hosts.rows", Count, (1, 64), Place::Hosts(|h| &mut h.rows)),
    row("hosts.hop_latency", Picoseconds, TIME, Place::Hosts(|h| &mut h.hop_latency)),
    row("hosts.flit_bytes", Bytes, (1, 4096), Place::Hosts(|h| &mut h.flit_bytes)),
    row("hosts.flit_interval", Picoseconds, TIME, Place::Hosts(|h| &mut h.flit_interval)),
    row("hosts.free_bits", Count, (0, 1024), Place::Hosts(|h| &mut h.free_bits)),
    row("hosts.counter_bits", Count, (0, 64), Place::Hosts(|h| &mut h.counter_bits)),
    row("hosts.number_bits", Count, (0, 64), Place::Hosts(|h| &mut h.number_bits)),
    row("hosts.extra_latency", Picoseconds, TIME, Place::Hosts(|h| &mut h.extra_latency)),
    row("hosts.extra_latency_from", Count, (0, 4095), Place::Hosts(|h| &mut h.extra_latency_from)),
    row("hosts.extra_latency_to", Count, (0, 4095), Place::Hosts(|h| &mut h.extra_latency_to)),
    row("uplink.hosts", Count, AGENT_COUNT, Place::Uplink(|u| &mut u.hosts)).with_power_of_two(),
    row("uplink.links", Count, (1, 64), Place::Uplink(|u| &mut u.links)),
    row("uplink.bandwidth", BytesPerSecond, RATE, Place::Uplink(|u| &mut u.bandwidth)),
    row("uplink.latency", Picoseconds, TIME, Place::Uplink(|u| &mut u.latency)),
    row("bus.bandwidth", BytesPerSecond, RATE, Place::Bus(|b| &mut b.bandwidth)),
    row("bus.latency", Picoseconds, TIME, Place::Bus(|b| &mut b.latency)),
    row("bus.header_bytes", Bytes, HEADER, Place::Bus(|b| &mut b.header_bytes)),
    row("bus.payload_bytes", Bytes, SIZE, Place::Bus(|b| &mut b.payload_bytes)),
    row("bus.memory_latency", Picoseconds, TIME, Place::Bus(|b| &mut b.memory_latency)),
    row("bus.interrupt_latency", Picoseconds, TIME, Place::Bus(|b| &mut b.interrupt_latency)),
];
